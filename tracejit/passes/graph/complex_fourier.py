# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms as products of matrices.

Note [transforms by products]
A transform of n = r m elements is m transforms of r elements, a rotation of each result, and r transforms of m
elements (Cooley and Tukey, 1965). A transform of r elements is a product with an r x r matrix. That takes 8 n r real
multiplications and additions for each factor r, where a kernel of butterflies takes 5 n log2 r. But products run at
the peak of the CPU, on all its vectors, and butterflies do not: with factors of about 16 a product takes no longer. The
parts of complex numbers lie beside each other, [re im] times [[W.re W.im] [-W.im W.re]], so that it is a product of
real matrices, and rotations are fused with what is around them.

A prime factor beyond _LARGEST is a convolution with a chirp (Bluestein, 1970), which takes two transforms of a size that
is a power of 2.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracejit.ir import Node, Value
from tracejit.passes.graph import pairs
from tracejit.passes.graph.pairs import Operand, Parts, pair_of

_LARGEST = 64  # the largest factor that is one product
_WANTED = 16  # the factor that transforms are cut into


@lru_cache(maxsize=256)
def _factors(n: int) -> tuple[int, ...]:
    """Return factors of n, each near _WANTED where that can be; one is a prime beyond _LARGEST if n has such a factor."""
    primes, rest, p = [], n, 2
    while p * p <= rest:
        while rest % p == 0:
            primes.append(p)
            rest //= p
        p += 1
    if rest > 1:
        primes.append(rest)
    found: list[int] = []
    for prime in sorted(primes, reverse=True):
        # The smallest factor that stays small takes the prime.
        fits = [i for i, factor in enumerate(found) if factor * prime <= 2 * _WANTED]
        if fits:
            found[min(fits, key=found.__getitem__)] *= prime
        else:
            found.append(prime)
    return tuple(sorted(found)) or (1,)


@lru_cache(maxsize=64)
def _roots(n: int, sign: int) -> np.ndarray:
    """Return e**(sign 2 pi i k / n) for k < n, exact at quarters of a turn."""
    k = np.arange(n)
    quarter, rest = np.divmod(4 * k, n)  # 4 k = quarter n + rest
    angle = rest * (np.pi / (2 * n))
    turned = (np.cos(angle) + 1j * np.sin(angle)) * np.array([1, 1j, -1, -1j])[quarter % 4]
    return turned if sign > 0 else turned.conj()


def _matrix(n: int, sign: int) -> np.ndarray:
    """Return the matrix of a transform."""
    k = np.arange(n)
    return _roots(n, sign)[np.outer(k, k) % n]


def _beside(w: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the real matrix by which [re im] is multiplied."""
    return np.block([[w.real, w.imag], [-w.imag, w.real]]).astype(dtype)


def _reshaped(b: Any, x: Parts, shape: tuple[int, ...]) -> Parts:
    return Parts(*[part if part.shape == shape else b.reshape(part, shape=shape) for part in x])


def _turned(b: Any, x: Parts, axes: tuple[int, ...]) -> Parts:
    return Parts(*[b.transpose(part, axes=axes) for part in x])


def _last_part(b: Any, x: Value, start: int, stop: int) -> Value:
    starts, stops = (0,) * (x.ndim - 1) + (start,), (*x.shape[:-1], stop)
    part: Value = b.slice(x, starts=starts, stops=stops, steps=(1,) * x.ndim)
    return part


def _times(b: Any, x: Parts, w: np.ndarray, is_real: bool) -> Parts:
    """Return the products of rows (..., n) with a complex matrix; of a real x the imaginary part is left out."""
    dtype = x.re.dtype
    n = w.shape[1]
    last = x.re.ndim - 1
    if is_real:
        both, matrix = x.re, np.concatenate([w.real, w.imag], 1).astype(dtype)
    else:
        both, matrix = b.concatenate(x.re, x.im, axis=last), _beside(w, dtype)
    rows = b.reshape(both, shape=(prod(both.shape[:-1]), both.shape[-1]))
    found = b.reshape(b.matmul(rows, b.constant(matrix)), shape=(*both.shape[:-1], 2 * n))
    return Parts(_last_part(b, found, 0, n), _last_part(b, found, n, 2 * n))


def _rows_transformed(b: Any, x: Parts, sign: int, is_real: bool = False) -> Parts:
    """Return the transforms of rows (count, n)."""
    count, n = x.re.shape
    factors = _factors(n)
    if n == 1:
        return x
    if factors[-1] > _LARGEST:
        return _by_chirp(b, x, sign)
    if len(factors) == 1:
        return _times(b, x, _matrix(n, sign), is_real)
    dtype = x.re.dtype
    done: list[int] = []
    rest = n
    # (count, done factors, r, m): transforms along r are those of the rows of (..., m, r).
    current = x
    for number, r in enumerate(factors):
        m = rest // r
        current = _reshaped(b, current, (count * prod(done), r, m))
        current = _times(b, _turned(b, current, (0, 2, 1)), _matrix(r, sign), is_real and number == 0)
        current = _turned(b, current, (0, 2, 1))
        if m > 1:
            turns = _roots(rest, sign)[np.outer(np.arange(r), np.arange(m)) % rest]
            rotation = Parts(*[b.constant(part.astype(dtype)) for part in (turns.real, turns.imag)])
            current = pairs.mul(b, current, rotation)
        done.append(r)
        rest = m
    axes = (0, *range(len(done), 0, -1))
    return _reshaped(b, _turned(b, _reshaped(b, current, (count, *done)), axes), (count, n))


def _by_chirp(b: Any, x: Parts, sign: int) -> Parts:
    """Return transforms of any size: k t = (k**2 + t**2 - (k - t)**2) / 2 makes them convolutions."""
    count, n = x.re.shape
    dtype = x.re.dtype
    size = 1 << (2 * n - 2).bit_length()
    k = np.arange(n)
    chirp = _roots(2 * n, sign)[k * k % (2 * n)]
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    spectrum = np.fft.fft(kernel) / size

    def constant(values: np.ndarray) -> Parts:
        return Parts(b.constant(values.real.astype(dtype)), b.constant(values.imag.astype(dtype)))

    def padded(part: Value) -> Value:
        wide: Value = b.pad(part, widths=((0, 0), (0, size - n)), value=0.0)
        return wide

    wide = Parts(*map(padded, pairs.mul(b, x, constant(chirp))))
    found = pairs.mul(b, _rows_transformed(b, wide, -1), constant(spectrum))
    back = _rows_transformed(b, found, 1)
    cut = Parts(*[_last_part(b, part, 0, n) for part in back])
    return pairs.mul(b, cut, constant(chirp))


def _along(b: Any, x: Parts, axis: int, sign: int, is_real: bool = False) -> Parts:
    """Return transforms along an axis."""
    shape = x.re.shape
    if not x.re.aval.size:
        return x
    last = x.re.ndim - 1
    order = (*[i for i in range(x.re.ndim) if i != axis], axis)
    back = tuple(order.index(i) for i in range(x.re.ndim))
    moved = x if axis == last else _turned(b, x, order)
    rows = _reshaped(b, moved, (x.re.aval.size // shape[axis], shape[axis]))
    found = _reshaped(b, _rows_transformed(b, rows, sign, is_real), moved.re.shape)
    return found if axis == last else _turned(b, found, back)


def _fft(b: Any, node: Node, x: Operand) -> Parts:
    return _along(b, pair_of(b, x), node.params["axis"], 1 if node.params["inverse"] else -1)


def _rfft(b: Any, node: Node, x: Value) -> Parts:
    axis = node.params["axis"]
    found = _along(b, Parts(x, pairs.zeros(b, x)), axis, -1, True)
    return _part_of(b, found, axis, 0, node.output.shape[axis])


def _part_of(b: Any, x: Parts, axis: int, start: int, stop: int, step: int = 1) -> Parts:
    starts = tuple([start if i == axis else 0 for i in range(x.re.ndim)])
    stops = tuple([stop if i == axis else extent for i, extent in enumerate(x.re.shape)])
    steps = tuple([step if i == axis else 1 for i in range(x.re.ndim)])
    return Parts(*[b.slice(part, starts=starts, stops=stops, steps=steps) for part in x])


def _irfft(b: Any, node: Node, x: Operand) -> Value:
    axis, n = node.params["axis"], node.params["n"]
    half = pair_of(b, x)
    if n > 2:
        # The conjugates of the elements between the ends, in the opposite order.
        others = _part_of(b, half, axis, (n - 1) // 2, 0, -1)
        half = Parts(
            b.concatenate(half.re, others.re, axis=axis), b.concatenate(half.im, b.neg(others.im), axis=axis)
        )
    # Imaginary parts at the ends do not count.
    ends = np.ones(n)
    ends[0] = 0.0
    if n % 2 == 0:
        ends[n // 2] = 0.0
    mask = b.constant((ends != 0).reshape(-1, *(1,) * (half.re.ndim - axis - 1)))
    half = Parts(half.re, b.where(mask, half.im, 0.0))
    return _along(b, half, axis, 1).re


FOURIER = {"fft": _fft, "rfft": _rfft, "irfft": _irfft}
