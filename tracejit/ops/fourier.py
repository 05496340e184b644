# SPDX-License-Identifier: BSD-3-Clause
"""Discrete Fourier transforms along one axis, divided by n**power: 0 where `norm` asks for no factor, 1 or 0.5.

Adjoints are transforms again (Note [complex cotangents] in autodiff.py): the matrix of fft is symmetric, so that the
cotangent of x is the transform of that of y in the same direction.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from tracejit.aval import Aval, complex_dtype, describe_shape, part_dtype
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.complex import numpy_complex
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample


def _check_axis(name: str, x: Aval, axis: int) -> None:
    if not 0 <= axis < x.ndim or not x.shape[axis]:
        raise DimsError(
            f"{name}: axis {axis} of x of {describe_shape(x.shape, x.format)} has no elements to transform; pass an "
            "axis that has some, or n."
        )


Norm = Literal["backward", "ortho", "forward"]
_NORMS: dict[float, Norm] = {0.0: "backward", 0.5: "ortho", 1.0: "forward"}
"""The norm of a transform that is not inverse, by power."""
_INVERSE_NORMS: dict[float, Norm] = {0.0: "forward", 0.5: "ortho", 1.0: "backward"}


def factor_of(n: int, power: float) -> float:
    """Return what the sums of a transform of n elements are multiplied by."""
    return 1.0 / float(n**power)


def _infer_fft(x: Aval, *, axis: int, inverse: bool, power: float = 0.0) -> Aval:
    _check_axis("fft", x, axis)
    return Aval(x.shape, x.format, complex_dtype(x.dtype))


def _numpy_fft(x: np.ndarray, *, axis: int, inverse: bool, power: float = 0.0) -> np.ndarray:
    if inverse:
        found = np.fft.ifft(x, axis=axis, norm=_INVERSE_NORMS[power])
    else:
        found = np.fft.fft(x, axis=axis, norm=_NORMS[power])
    return found.astype(complex_dtype(x.dtype), copy=False)  # NumPy 1 has complex128 only


def _vjp_fft(b: Any, node: Any, ct: Any) -> Any:
    return (b.fft(ct, **node.params),)


def _infer_rfft(x: Aval, *, axis: int, power: float = 0.0) -> Aval:
    _check_axis("rfft", x, axis)
    shape = (*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :])
    return Aval(shape, x.format, complex_dtype(x.dtype))


def _numpy_rfft(x: np.ndarray, *, axis: int, power: float = 0.0) -> np.ndarray:
    return np.fft.rfft(x, axis=axis, norm=_NORMS[power]).astype(complex_dtype(x.dtype), copy=False)


def _vjp_rfft(b: Any, node: Any, ct: Any) -> Any:
    # The sums of Re(c_k e**(-2 pi i k t / n)) are those of irfft, which counts elements between the ends twice.
    axis, n = node.params["axis"], node.inputs[0].shape[node.params["axis"]]
    power = node.params.get("power", 0.0)
    weights = 1.0 / _counts(n, part_dtype(ct.dtype))
    weights = weights.reshape(-1, *(1,) * (ct.ndim - axis - 1))
    return (b.irfft(b.mul(b.conj(ct), b.constant(weights)), axis=axis, n=n, power=power),)


def _counts(n: int, dtype: np.dtype) -> np.ndarray:
    """Return how many elements of a transform of n real numbers each of the first n // 2 + 1 stands for."""
    counts = np.full(n // 2 + 1, 2.0, dtype)
    counts[0] = 1.0
    if n % 2 == 0:
        counts[-1] = 1.0
    return counts


def _infer_irfft(x: Aval, *, axis: int, n: int, power: float = 0.0) -> Aval:
    _check_axis("irfft", x, axis)
    if x.shape[axis] != n // 2 + 1 or n < 1:
        raise DimsError(
            f"irfft: axis {axis} of x of {describe_shape(x.shape, x.format)} has {x.shape[axis]} elements, expected "
            f"{n // 2 + 1} for n={n}; cut or pad it first."
        )
    return Aval((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.format, part_dtype(complex_dtype(x.dtype)))


def _numpy_irfft(x: np.ndarray, *, axis: int, n: int, power: float = 0.0) -> np.ndarray:
    found = np.fft.irfft(x, n, axis, norm=_INVERSE_NORMS[power])
    return found.astype(part_dtype(complex_dtype(x.dtype)), copy=False)


def _vjp_irfft(b: Any, node: Any, ct: Any) -> Any:
    axis, n, power = node.params["axis"], node.params["n"], node.params.get("power", 0.0)
    counts = _counts(n, ct.dtype).reshape(-1, *(1,) * (ct.ndim - axis - 1))
    return (b.mul(b.conj(b.rfft(ct, axis=axis, power=power)), b.constant(counts)),)


def _promote_complex(x: np.dtype) -> tuple[np.dtype, ...]:
    return (complex_dtype(x),)


def _promote_real(x: np.dtype) -> tuple[np.dtype, ...]:
    return (part_dtype(complex_dtype(x)),)


_COMPLEX = ("complex128",)


def _samples(dtypes: tuple[str, ...], **params: Any) -> tuple[Sample, ...]:
    kinds: tuple[tuple[tuple[int, ...], int], ...] = (((2, 6), 1), ((5, 2), 0), ((2, 8, 3), 1), ((1,), 0))
    return tuple(Sample((shape,), {"axis": axis, **params}, dtypes=dtypes) for shape, axis in kinds)


def _no_kernel(name: str) -> Callable[..., Any]:
    def numbers(*avals: Any, **params: Any) -> Any:
        raise AssertionError(f"{name} is made of fft_lines: passes/graph/complex_fourier.py")

    return numbers


BESIDE = (
    2  # elements between parts in scratch memory, which would fall on the same places of a cache otherwise
)
UNIT = 16  # lines that are transformed together: as many as the widest vectors have lanes

Steps = tuple[int, int, int]


@lru_cache(maxsize=256)
def primes(n: int) -> tuple[int, ...]:
    """Return the prime factors of n, smallest first."""
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return (*found, n) if n > 1 else tuple(found)


def radices(n: int) -> list[int]:
    """Return the steps of the kernel: factors of n, with factors of 2 combined to 8 or 4."""
    found = primes(n)
    twos = found.count(2)
    eights = twos // 3 - (twos % 3 == 1 and twos > 1)
    rest = twos - 3 * eights
    return [8] * eights + [4] * (rest // 2) + [2] * (rest % 2) + [p for p in found if p > 2]


def _infer_lines(
    x: Aval,
    *rest: Aval,
    count: Steps,
    reads: Steps,
    writes: Steps,
    inverse: bool,
    paired: bool,
    wrapped: bool,
) -> tuple[Aval, Aval]:
    outer, lines, n = count
    flat = Aval((outer * lines * (n + wrapped),), None, complex_dtype(x.dtype))
    # Scratch memory for each group of lines; that of the first in a part of the launch serves the others.
    return flat, Aval((outer * -(-lines // UNIT) * 4 * (n + BESIDE) * UNIT,), None, part_dtype(x.dtype))


def _numpy_lines(
    x: np.ndarray, y: np.ndarray, *rest: np.ndarray, count: Steps, reads: Steps, writes: Steps, inverse: bool,
    paired: bool, wrapped: bool,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    if paired:
        whole = np.ascontiguousarray(x).ravel().view(complex_dtype(x.dtype))
    else:
        whole = x.ravel() if x.dtype.kind == "c" else numpy_complex(x.ravel(), y.ravel())
    size = whole.itemsize
    given = np.lib.stride_tricks.as_strided(whole, count, [size * step for step in reads])
    flat, work = _infer_lines(
        Aval(x.shape, None, x.dtype), count=count, reads=reads, writes=writes, inverse=inverse, paired=paired,
        wrapped=wrapped,
    )  # fmt: skip
    out = np.zeros(flat.shape, whole.dtype)
    wide = (*count[:2], count[2] + wrapped)
    place = np.lib.stride_tricks.as_strided(out, wide, [size * step for step in writes])
    if out.size:
        place[..., : count[2]] = _numpy_fft(given, axis=2, inverse=inverse) * rest[0][-1]
        place[..., count[2] :] = place[..., :wrapped]
    return out, np.zeros(work.shape, work.dtype)


def _numbers_lines(
    out: Any, x: Aval, y: Aval, a: Aval, b: Aval, plan: Aval, *, count: Steps, reads: Steps, writes: Steps,
    inverse: bool, paired: bool, wrapped: bool,
) -> Sequence[int]:  # fmt: skip
    # An inverse transform is one of exchanged parts, whose parts are exchanged again.
    outer, lines, n = count
    groups = -(-lines // UNIT)
    step = 2 if paired or x.dtype.kind == "c" else 1  # the parts lie side by side
    given = [step * distance for distance in reads]
    made = [2 * distance for distance in writes]
    beside = step == 2
    return (
        0, outer * groups, groups, lines, n, *given, int(beside and inverse), int(beside and not inverse),
        *made, int(inverse), int(not inverse), plan.shape[0], int(wrapped),
    )  # fmt: skip


_NS = 4.0  # of a vector and a step
_CUT = RangeCut(lambda n: n[1] * n[4] * (4 + n[15]) * _NS, lambda numbers: numbers[1])

OPS = (
    Op(name="fft_lines", doc="transforms of lines anywhere in flat memory, of the same complex numbers twice, of their "
       "parts, or of real numbers twice that are parts side by side if `paired`, by tables of roots, behind which is "
       "what the sums are multiplied by, and of steps; to places anywhere, with the first element once more at the "
       "end if `wrapped`; and scratch memory; no derivative",
       kind=Kind.KERNEL, takes_complex=True, infer=_infer_lines,
       numpy=_numpy_lines, vjp=None, analytic=False, emit=KernelCall("fft_lines", _numbers_lines, cut=_CUT),
       samples=(Sample(((0,), (0,), (3,), (3,), (1,)),
                       {"count": (0, 1, 2), "reads": (2, 2, 1), "writes": (2, 2, 1), "inverse": False,
                        "paired": False, "wrapped": False},
                       dtypes=("float64", "float64", "float64", "float64", "int64")),)),
    Op(name="fft", doc="sums of x e**(-2 pi i k t / n) along an axis, e**(2 pi i k t / n) if `inverse`, over "
       "n**power; that of ct",
       kind=Kind.KERNEL, takes_complex=True, batch=batch.shifted, infer=_infer_fft,
       numpy=_numpy_fft, promote=_promote_complex, vjp=_vjp_fft,
       analytic=False, emit=KernelCall("fft_lines", _no_kernel("fft")),
       samples=(*_samples(_COMPLEX, inverse=False), *_samples(_COMPLEX, inverse=True),
                Sample(((2, 6),), {"axis": 1, "inverse": True, "power": 1.0}, dtypes=_COMPLEX))),
    Op(name="rfft", doc="the first n // 2 + 1 elements of fft of real x, over n**power; irfft(conj(ct)), halved "
       "between the ends",
       kind=Kind.KERNEL, batch=batch.shifted, infer=_infer_rfft, numpy=_numpy_rfft, promote=_promote_real,
       vjp=_vjp_rfft, analytic=False,
       emit=KernelCall("fft_lines", _no_kernel("rfft")),
       samples=(*_samples(("float64",)), Sample(((2, 6),), {"axis": 1, "power": 0.5}, dtypes=("float64",)))),
    Op(name="irfft", doc="the n real numbers whose fft begins with x, times n over n**power; conj(rfft(ct)), doubled "
       "but at the ends",
       kind=Kind.KERNEL, takes_complex=True, batch=batch.shifted, infer=_infer_irfft,
       numpy=_numpy_irfft, promote=_promote_complex,
       vjp=_vjp_irfft, analytic=False, emit=KernelCall("fft_lines", _no_kernel("irfft")),
       samples=(Sample(((2, 4),), {"axis": 1, "n": 6}, dtypes=_COMPLEX),
                Sample(((3, 2),), {"axis": 0, "n": 5}, dtypes=_COMPLEX),
                Sample(((1,),), {"axis": 0, "n": 1}, dtypes=_COMPLEX),
                Sample(((2, 4),), {"axis": 1, "n": 6, "power": 1.0}, dtypes=_COMPLEX))),
)  # fmt: skip
