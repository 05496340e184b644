# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms of complex arrays as transforms of lines (ops/fourier.py), which have a kernel.

Note [transforms in two steps]
The kernel transforms one line in each lane of a vector. Where there are too few lines, or a line is longer than the
cache, a transform of n = a b elements is b of a elements, which lie beside each other, a rotation of each result, and a
of b elements (Cooley and Tukey, 1965). The second step stores where the results belong, so that nothing is transposed.

A prime factor beyond LARGEST makes the transform a convolution with a chirp (Bluestein, 1970), which takes two
transforms of a size that is a power of 2.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracejit.ir import Node, Value
from tracejit.ops.fourier import factor_of, primes, radices
from tracejit.passes.graph import pairs
from tracejit.passes.graph.pairs import Operand, Parts, pair_of

LARGEST = 61  # the largest prime that is a step of the kernel
LONGEST = 2048  # elements of a line that is transformed in one step: with those beside it, it fits the cache
_SHORTEST = 32  # elements of a line that is transformed in two steps
_FEWEST = 8  # lines that fill most of a vector


@lru_cache(maxsize=64)
def _halves(n: int) -> tuple[int, int]:
    """Return two factors of n, as equal as they can be."""
    first = 1
    for p in sorted(primes(n), reverse=True):
        if first * p <= max(p, int(n**0.5) + 1):
            first *= p
    return max(first, n // first), min(first, n // first)


@lru_cache(maxsize=64)
def _roots(n: int) -> np.ndarray:
    """Return e**(-2 pi i k / n) for k < n, exact at quarters of a turn."""
    quarter, rest = np.divmod(4 * np.arange(n), n)
    angle = rest * (np.pi / (2 * n))
    return np.asarray((np.cos(angle) - 1j * np.sin(angle)) * np.array([1, -1j, -1, 1j])[quarter % 4])


def _constant(b: Any, values: np.ndarray, dtype: np.dtype) -> Parts:
    return Parts(b.constant(values.real.astype(dtype)), b.constant(values.imag.astype(dtype)))


def _reshaped(b: Any, x: Parts, shape: tuple[int, ...]) -> Parts:
    if x.re.shape == shape:
        return x
    whole = pairs.whole_of(x)
    if whole is not None:
        return _parts_of(b, b.reshape(whole, shape=shape))
    return Parts(*[b.reshape(part, shape=shape) for part in x])


def _parts_of(b: Any, whole: Value) -> Parts:
    return Parts(b.real(whole), b.imag(whole))


def _turned(b: Any, x: Parts, axes: tuple[int, ...]) -> Parts:
    return Parts(*[b.transpose(part, axes=axes) for part in x])


def _part_of(b: Any, x: Parts, axis: int, start: int, stop: int, step: int = 1) -> Parts:
    starts = tuple([start if i == axis else 0 for i in range(x.re.ndim)])
    stops = tuple([stop if i == axis else extent for i, extent in enumerate(x.re.shape)])
    steps = tuple([step if i == axis else 1 for i in range(x.re.ndim)])
    return Parts(*[b.slice(part, starts=starts, stops=stops, steps=steps) for part in x])


def _tables(b: Any, n: int, scale: float, dtype: np.dtype) -> tuple[Value, ...]:
    """Return the tables of transforms of n elements: roots, and then what the sums are multiplied by; the steps."""
    return (*_constant(b, np.append(_roots(n), scale), dtype), b.constant(np.array(radices(n), np.int64)))


def _lines(
    b: Any, x: Parts, count: tuple[int, int, int], reads: Any, writes: Any, inverse: bool, scale: float = 1.0
) -> Parts:
    """Return transforms of lines in flat memory: how many, and how far apart, by outer group, line and element."""
    n = count[2]
    flat = _reshaped(b, x, (prod(count),))
    whole = pairs.whole_of(flat)
    operands = (whole, whole) if whole is not None else flat
    found, _ = b.fft_lines(
        *operands,
        *_tables(b, n, scale, x.re.dtype),
        count=count,
        reads=reads,
        writes=writes,
        inverse=inverse,
        paired=False,
        wrapped=False,
    )
    return _parts_of(b, found)


def _pairs_of_rows(b: Any, x: Value) -> Parts | None:
    """Return transforms of the rows of real numbers as if pairs of them were complex, and the first element once more.

    None for other rows than such as are transformed in one step.
    """
    *outer, n = x.shape
    rows, half = prod(outer), n // 2
    is_short = _halves(half)[1] == 1 or half < _SHORTEST or (rows >= _FEWEST and half <= LONGEST)
    if primes(half)[-1] > LARGEST or not is_short:
        return None
    flat = b.reshape(x, shape=(rows * n,))
    tables = _tables(b, half, 1.0, x.dtype)
    reads, writes = (rows * half, half, 1), (rows * (half + 1), half + 1, 1)
    found, _ = b.fft_lines(
        flat, flat, *tables, count=(1, rows, half), reads=reads, writes=writes, inverse=False, paired=True,
        wrapped=True,
    )  # fmt: skip
    return _reshaped(b, _parts_of(b, found), (*outer, half + 1))


def _transformed(
    b: Any, x: Parts, outer: int, n: int, inner: int, inverse: bool, scale: float = 1.0
) -> Parts:
    """Return transforms of (outer, n, inner) along the second axis, times a number; 1 where n is 1."""
    shape = (outer, n, inner)
    if n == 1:
        return x
    if primes(n)[-1] > LARGEST:
        return _by_chirp(b, x, outer, n, inner, inverse, scale)
    if inner >= _FEWEST and n <= LONGEST:
        places = (n * inner, 1, inner)
        return _reshaped(b, _lines(b, x, (outer, inner, n), places, places, inverse, scale), shape)
    if inner > 1 and n * outer < _FEWEST * _SHORTEST:
        places = (n * inner, 1, inner)
        return _reshaped(b, _lines(b, x, (outer, inner, n), places, places, inverse, scale), shape)
    if inner > 1:
        rows = _reshaped(b, _turned(b, x, (0, 2, 1)), (outer * inner, n, 1))
        made = _transformed(b, rows, outer * inner, n, 1, inverse, scale)
        return _turned(b, _reshaped(b, made, (outer, inner, n)), (0, 2, 1))
    first, second = _halves(n)
    if second == 1 or n < _SHORTEST or (outer >= _FEWEST and n <= LONGEST):
        places = (outer * n, n, 1)
        return _reshaped(b, _lines(b, x, (1, outer, n), places, places, inverse, scale), shape)
    return _in_two_steps(b, x, outer, first, second, inverse, scale)


def _in_two_steps(
    b: Any, x: Parts, outer: int, first: int, second: int, inverse: bool, scale: float
) -> Parts:
    """Return transforms of lines of first * second elements (Note [transforms in two steps])."""
    n = first * second
    places = (n, 1, second)
    if first > LONGEST:
        found = _transformed(b, _reshaped(b, x, (outer, first, second)), outer, first, second, inverse)
    else:
        found = _lines(b, x, (outer, second, first), places, places, inverse)
    turns = _roots(n)[np.outer(np.arange(first), np.arange(second)) % n]
    turns = scale * (turns.conj() if inverse else turns)
    found = pairs.mul(b, _reshaped(b, found, (outer, first, second)), _constant(b, turns, x.re.dtype))
    found = _lines(b, found, (outer, first, second), (n, second, 1), (n, 1, first), inverse)
    return _reshaped(b, found, (outer, n, 1))


def _by_chirp(b: Any, x: Parts, outer: int, n: int, inner: int, inverse: bool, scale: float) -> Parts:
    """Return transforms of any size: k t = (k**2 + t**2 - (k - t)**2) / 2 makes them convolutions."""
    size = 1 << (2 * n - 2).bit_length()
    k = np.arange(n)
    chirp = _roots(2 * n)[k * k % (2 * n)]
    chirp = chirp.conj() if inverse else chirp
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    turns = _constant(b, chirp.reshape(-1, 1), x.re.dtype)
    spectrum = _constant(b, (np.fft.fft(kernel) * (scale / size)).reshape(-1, 1), x.re.dtype)
    wide = Parts(*[
        b.pad(part, widths=((0, 0), (0, size - n), (0, 0)), value=0.0) for part in pairs.mul(b, x, turns)
    ])  # fmt: skip
    found = pairs.mul(b, _transformed(b, wide, outer, size, inner, False), spectrum)
    back = _transformed(b, found, outer, size, inner, True)
    return pairs.mul(b, _part_of(b, back, 1, 0, n), turns)


def _along(b: Any, x: Parts, axis: int, inverse: bool, scale: float = 1.0) -> Parts:
    """Return transforms along an axis, times a number."""
    shape = x.re.shape
    if not x.re.aval.size:
        return x
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    x = _reshaped(b, x, (outer, shape[axis], inner))
    return _reshaped(b, _transformed(b, x, outer, shape[axis], inner, inverse, scale), shape)


def _scale(node: Node, n: int) -> float:
    """Return what a node multiplies a transform of n elements by."""
    return factor_of(n, node.params.get("power", 0.0))


def _fft(b: Any, node: Node, x: Operand) -> Parts:
    axis = node.params["axis"]
    return _along(b, pair_of(b, x), axis, node.params["inverse"], _scale(node, node.output.shape[axis]))


def _rfft(b: Any, node: Node, x: Value) -> Parts:
    axis, count = node.params["axis"], node.output.shape[node.params["axis"]]
    n = x.shape[axis]
    if n % 2 or n < 4 or not x.aval.size:
        found = _along(b, Parts(x, pairs.zeros(b, x)), axis, False, _scale(node, n))
        return _part_of(b, found, axis, 0, count)
    # Real numbers in pairs are complex ones: z = x[0::2] + i x[1::2], and X_k = E_k + w**k O_k with the transforms
    # E = (Z_k + conj Z_-k) / 2 and O = (Z_k - conj Z_-k) / 2i of the two.
    ahead = _pairs_of_rows(b, x) if axis == x.ndim - 1 else None
    if ahead is None:
        ahead = _wrapped_pairs(b, x, axis)
    back = _reversed(b, ahead, axis)
    summed = Parts(b.add(ahead.re, back.re), b.sub(ahead.im, back.im))
    rest = Parts(b.sub(ahead.re, back.re), b.add(ahead.im, back.im))
    half = 0.5 * _scale(node, n)
    turns = _along_axis(_roots(n)[: n // 2 + 1] * (-1j * half), x.ndim - axis - 1)
    found = pairs.mul(b, rest, _constant(b, turns, x.dtype))
    return Parts(b.add(b.mul(summed.re, half), found.re), b.add(b.mul(summed.im, half), found.im))


def _wrapped_pairs(b: Any, x: Value, axis: int) -> Parts:
    """Return what _pairs_of_rows does, along any axis."""
    n = x.shape[axis]
    halves = Parts(x, x)
    even, odd = _part_of(b, halves, axis, 0, n, 2), _part_of(b, halves, axis, 1, n, 2)
    half = _along(b, Parts(even.re, odd.re), axis, False)
    return _joined(b, axis, half, _part_of(b, half, axis, 0, 1))


def _along_axis(values: np.ndarray, behind: int) -> np.ndarray:
    """Return a vector that broadcasts along an axis with some axes behind it."""
    return values.reshape(-1, *(1,) * behind)


def _joined(b: Any, axis: int, *given: Parts) -> Parts:
    return Parts(*[b.concatenate(*parts, axis=axis) for parts in zip(*given, strict=True)])


def _reversed(b: Any, x: Parts, axis: int) -> Parts:
    return _part_of(b, x, axis, x.re.shape[axis] - 1, -1, -1)


def _irfft(b: Any, node: Node, x: Operand) -> Value:
    axis, n = node.params["axis"], node.params["n"]
    half = pair_of(b, x)
    behind = half.re.ndim - axis - 1
    # Imaginary parts at the ends do not count.
    inside = np.ones(n // 2 + 1, bool)
    inside[0] = False
    if n % 2 == 0:
        inside[-1] = False
    half = Parts(half.re, b.where(b.constant(_along_axis(inside, behind)), half.im, 0.0))
    if n % 2 or n < 4 or not half.re.aval.size:
        if n > 2:
            # The conjugates of the elements between the ends, in the opposite order.
            others = _part_of(b, half, axis, (n - 1) // 2, 0, -1)
            half = _joined(b, axis, half, Parts(others.re, b.neg(others.im)))
        return _along(b, half, axis, True, _scale(node, n)).re
    # The reverse of what _rfft does: Z = E + i O.
    last = _reversed(b, half, axis)
    ahead, back = (_part_of(b, part, axis, 0, n // 2) for part in (half, last))
    summed = Parts(b.add(ahead.re, back.re), b.sub(ahead.im, back.im))
    rest = Parts(b.sub(ahead.re, back.re), b.add(ahead.im, back.im))
    turns = _along_axis(_roots(n)[: n // 2].conj() * 1j, behind)
    both = _along(
        b,
        pairs.add(b, summed, pairs.mul(b, rest, _constant(b, turns, half.re.dtype))),
        axis,
        True,
        _scale(node, n),
    )
    shape = both.re.shape
    whole = pairs.whole_of(both)
    if whole is not None and not behind:  # whose memory has the real numbers one after the other
        return b.reshape(b.pairs(whole), shape=(*shape[:-1], n))  # type: ignore[no-any-return]
    apart = _reshaped(b, both, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    joined = b.concatenate(*apart, axis=axis + 1)
    found: Value = b.reshape(joined, shape=(*shape[:axis], n, *shape[axis + 1 :]))
    return found


def _of_lines(b: Any, node: Node, x: Operand, y: Operand, *tables: Value) -> list[Operand]:
    """Return the results of fft_lines as they are: whole numbers, seen in parts."""
    operands = [b.complex_of(*part) if isinstance(part, Parts) else part for part in (x, y)]
    found, work = b.fft_lines(*operands, *tables, **node.params)
    return [_parts_of(b, found), work]


FOURIER: dict[str, Callable[..., Any]] = {"fft_lines": _of_lines, "fft": _fft, "rfft": _rfft, "irfft": _irfft}
