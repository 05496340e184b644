# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's less common ufuncs on dlarrays: one op each, or a composition of ops with NumPy's numbers.

Labels: operands are aligned by label as in every elementwise function, and the result has the merged format.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import umath

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX128, FLOAT64, INT64, UINT64, is_half, supported
from tracejit.errors import DimsError, RangeError
from tracejit.functions import elementwise, linear, movement, reductions
from tracejit.functions.elementwise import cast, where
from tracejit.functions.formats import describe_sizes, dtypes_of, in_dtype
from tracejit.functions.halves import in_single
from tracejit.functions.refusals import refuse
from tracejit.record.conversion import too_large
from tracejit.util.arguments import integer


def in_loop(ufunc: np.ufunc, *operands: Any) -> list[dlarray]:
    """Return operands in the dtypes of the loop that NumPy would run; Python numbers take that of the others.

    Those of 16 bits keep them; a loop of 16 bits for integers and bools is one of float32, whose result
    is rounded (functions/halves.py).
    """
    dtypes = dtypes_of(operands, ufunc.__name__)
    try:
        loop = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
    except TypeError:
        names = ", ".join(dtype.__name__ if isinstance(dtype, type) else str(dtype) for dtype in dtypes)
        refuse(f"np.{ufunc.__name__}", f"it is not defined for {names}; cast the operands first")
    arrays = [
        weak(x, dtype, ufunc.__name__) if type(x) is int else as_array(x, ufunc.__name__)
        for x, dtype in zip(operands, loop, strict=False)
    ]
    is_of_halves = any(is_half(x.dtype) for x in arrays)
    return [
        in_dtype(x, dtype if is_of_halves else supported(dtype))
        for x, dtype in zip(arrays, loop, strict=False)
    ]


def weak(x: int, dtype: np.dtype, function: str) -> dlarray:
    """Return a Python integer in the dtype that NumPy converts it to."""
    try:
        return as_array(np.asarray(x, FLOAT64 if dtype.kind == "f" else dtype))
    except OverflowError:
        if dtype.kind in "fc" or not -(2**63) <= x < 2**64:
            raise too_large(x, function, "x") from None
        limits = np.iinfo(dtype)
        raise RangeError(
            f"{function}: x={x} does not fit {dtype} ({limits.min} to {limits.max}); cast the array first "
            "(x.astype(np.int64))."
        ) from None


def _op(name: str) -> Callable[..., dlarray]:
    """Return the function that applies an op to its operands."""
    return lambda *operands: apply(name, *operands)


def fmax(x: Any, y: Any) -> dlarray:
    """Return the larger of two, NaN only where both are."""
    x, y = in_loop(np.fmax, x, y)
    if x.dtype.kind not in "fc":
        return elementwise.maximum(x, y)
    if x.dtype.kind == "c":  # NumPy's choice between numbers that are equal, or both NaN
        return where((x >= y) | elementwise.isnan(y), x, y)
    return elementwise.maximum(where(elementwise.isnan(x), y, x), where(elementwise.isnan(y), x, y))


def fmin(x: Any, y: Any) -> dlarray:
    """Return the smaller of two, NaN only where both are."""
    x, y = in_loop(np.fmin, x, y)
    if x.dtype.kind not in "fc":
        return elementwise.minimum(x, y)
    if x.dtype.kind == "c":
        return where((x <= y) | elementwise.isnan(y), x, y)
    return elementwise.minimum(where(elementwise.isnan(x), y, x), where(elementwise.isnan(y), x, y))


def fmod(x: Any, y: Any) -> dlarray:
    """Return the remainder of x / y with the sign of x."""
    x, y = in_loop(np.fmod, x, y)
    if x.dtype.kind == "f":
        # The remainder of positive numbers is exact. |y| has the derivative 0 at 0, where the result is NaN.
        return apply("copysign", apply("mod", elementwise.abs(x), elementwise.abs(y)), x)
    rest = apply("mod", x, y)
    if x.dtype.kind in "ub":
        return rest
    return where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)


def float_power(x: Any, y: Any) -> dlarray:
    """Return x ** y in float64, or complex128."""
    x, y = (weak(part, FLOAT64, "float_power") if type(part) is int else as_array(part) for part in (x, y))
    wanted = COMPLEX128 if "c" in x.dtype.kind + y.dtype.kind else FLOAT64
    return apply("pow", in_dtype(x, wanted), in_dtype(y, wanted))


def logaddexp(x: Any, y: Any) -> dlarray:
    """Return log(e**x + e**y) as max(x, y) + log1p(e**-|x - y|)."""
    x, y = in_loop(np.logaddexp, x, y)
    larger, gap = _ordered(x, y)
    return larger + elementwise.log1p(elementwise.exp(gap))


def logaddexp2(x: Any, y: Any) -> dlarray:
    """Return log2(2**x + 2**y) as max(x, y) + log2(e) log1p(2**-|x - y|)."""
    x, y = in_loop(np.logaddexp2, x, y)
    larger, gap = _ordered(x, y)
    return larger + elementwise.log1p(elementwise.exp2(gap)) * float(1 / np.log(2.0))


def _ordered(x: dlarray, y: dlarray) -> tuple[dlarray, dlarray]:
    """Return the larger of two operands, and the other minus that.

    Where they are equal, either order has all derivatives of what is symmetric in both; max(x, y) and |x - y| have the
    first ones only.
    """
    is_first = x >= y
    larger, smaller = where(is_first, x, y), where(is_first, y, x)
    is_infinite = elementwise.logical_and(
        elementwise.isinf(smaller), smaller == larger
    )  # which have no difference
    return larger, where(is_infinite, 0, smaller - larger)


def heaviside(x: Any, y: Any) -> dlarray:
    """Return 0 for x < 0, y for x = 0, 1 for x > 0, NaN for NaN; ct to y where x = 0."""
    x, y = in_loop(np.heaviside, x, y)
    step = where(x > 0, x.dtype.type(1), x.dtype.type(0))
    return where(elementwise.isnan(x), elementwise.stop_gradient(x), where(x == 0, y, step))


def modf(x: Any) -> tuple[dlarray, dlarray]:
    """Return the fractional and the whole part, both with the sign of x."""
    (x,) = in_loop(np.modf, x)
    whole = elementwise.trunc(x)
    fraction = x - where(elementwise.isinf(x), x, whole)
    return apply("copysign", where(elementwise.isinf(x), 0, fraction), x), whole


def frexp(x: Any) -> tuple[dlarray, dlarray]:
    """Return f and n with x = f 2**n and 0.5 <= |f| < 1."""
    (x,) = in_loop(np.frexp, x)
    return apply("frexp_fraction", x), apply("frexp_exponent", x)


def ldexp(x: Any, n: Any) -> dlarray:
    """Return x 2**n for integers n."""
    kept = as_array(n, "np.ldexp").dtype
    if kept.kind not in "iub" or kept == UINT64:
        refuse("np.ldexp", f"x2 has dtype {kept}, expected integers that fit int64; use x * 2.0**n")
    if type(x) is int:
        loop = np.ldexp.resolve_dtypes((int, supported(kept), None))[0]
        x = in_dtype(weak(x, FLOAT64, "np.ldexp"), loop)
    dtype = as_array(x, "np.ldexp").dtype
    loop = dtype if dtype.kind == "f" else np.ldexp.resolve_dtypes((dtype, INT64, None))[0]
    result = apply("ldexp", in_dtype(as_array(x), loop), n)
    return in_dtype(result, loop) if is_half(loop) else result


def gcd(x: Any, y: Any) -> dlarray:
    """Return the greatest common divisor of integers; no derivative."""
    x, y = in_loop(np.gcd, x, y)
    return in_dtype(apply("gcd", *_magnitudes(x, y)), x.dtype)


def _magnitudes(x: dlarray, y: dlarray) -> tuple[dlarray, dlarray]:
    """Return |x| and |y| of integers, without a sign, of the broadcast size and the merged format."""
    zero = apply("bitwise_and", x, apply("bitwise_xor", y, y))
    return _magnitude(zero + x), _magnitude(zero + y)


def _magnitude(x: dlarray) -> dlarray:
    """Return |x| of integers, without a sign, so that the smallest one has its own."""
    if x.dtype.kind == "u":
        return x
    return cast(elementwise.abs(x), np.dtype(f"u{x.dtype.itemsize}"))


def lcm(x: Any, y: Any) -> dlarray:
    """Return the least common multiple of integers; no derivative."""
    x, y = in_loop(np.lcm, x, y)
    a, b = _magnitudes(x, y)
    # What does not fit loses its upper bits, as in NumPy.
    return cast(elementwise.floor_divide(a, apply("gcd", a, b)) * b, x.dtype)


_BITS = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))


def bitwise_count(x: Any) -> dlarray:
    """Return the number of ones in the bits of |x|, as uint8; no derivative."""
    (x,) = in_loop(np.bitwise_count, x)
    counts = in_dtype(_magnitude(x), UINT64)
    for places, mask in _BITS:
        shifted = apply("right_shift", counts, np.uint64(places))
        counts = apply("bitwise_and", counts, np.uint64(mask)) + apply(
            "bitwise_and", shifted, np.uint64(mask)
        )
    total = counts * np.uint64(0x0101010101010101)
    return cast(apply("right_shift", total, np.uint64(56)), np.uint8)


def _scaled(ufunc: np.ufunc, over: float, under: float) -> Callable[[Any], dlarray]:
    """Return the ufunc that multiplies by a quotient, which NumPy computes in the dtype of the loop."""

    def function(x: Any) -> dlarray:
        (x,) = in_loop(ufunc, x)
        return x * (x.dtype.type(over) / x.dtype.type(under))  # type: ignore[no-any-return]

    return function


def conjugate(x: Any) -> dlarray:
    """Return the conjugates of complex numbers; a copy of real ones, which are their own conjugates."""
    (x,) = in_loop(np.conjugate, x)
    return apply("conj", x) if x.dtype.kind == "c" else elementwise.positive(x)


def vecdot(x: Any, y: Any, axis: Any = -1) -> dlarray:
    """Return the sums of products along an axis, other axes broadcast."""
    x, y = as_array(x, "np.vecdot"), as_array(y, "np.vecdot")
    axis = integer("np.vecdot", "axis", axis)
    if axis != -1:
        x, y = movement.moveaxis(x, axis, -1), movement.moveaxis(y, axis, -1)
    if x.shape[-1:] != y.shape[-1:] or not x.ndim:
        raise DimsError(
            f"np.vecdot: x1 ({describe_sizes(x)}) and x2 ({describe_sizes(y)}) need vectors of one length along "
            "axis, which are not broadcast; cut them, or use np.sum(x1 * x2, axis)."
        )
    if x.dtype == bool and y.dtype == bool:
        return reductions.any(x & y, axis=-1)
    product = (apply("conj", x) if x.dtype.kind == "c" else x) * y
    return reductions.sum(product, axis=-1, dtype=product.dtype)


def matvec(x: Any, y: Any) -> dlarray:
    """Return the products of matrices with vectors, other axes broadcast."""
    x, y = _matrix(x, "np.matvec", "x1"), as_array(y, "np.matvec")
    return movement.squeeze(linear.matmul(x, movement.expand_dims(y, -1)), -1)


def vecmat(x: Any, y: Any) -> dlarray:
    """Return the products of vectors with matrices, other axes broadcast."""
    x, y = as_array(x, "np.vecmat"), _matrix(y, "np.vecmat", "x2")
    x = apply("conj", x) if x.dtype.kind == "c" else x
    return movement.squeeze(linear.matmul(movement.expand_dims(x, -2), y), -2)


def _matrix(x: Any, function: str, argument: str) -> dlarray:
    array = as_array(x, function)
    if array._data.ndim < 2:
        raise DimsError(
            f"{function}: {argument} has {array._data.ndim} axes, expected matrices (two axes or more); use np.vecdot "
            "for two vectors."
        )
    return array


def _fabs(x: Any) -> dlarray:
    return elementwise.abs(*in_loop(np.fabs, x))


UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.fabs: _fabs,
    np.fmax: fmax,
    np.fmin: fmin,
    np.fmod: fmod,
    np.float_power: float_power,
    np.logaddexp: logaddexp,
    np.logaddexp2: logaddexp2,
    np.hypot: _op("hypot"),
    np.copysign: _op("copysign"),
    np.nextafter: _op("nextafter"),
    np.spacing: _op("spacing"),
    np.signbit: _op("signbit"),
    np.heaviside: heaviside,
    np.modf: modf,
    np.frexp: frexp,
    np.ldexp: ldexp,
    np.gcd: gcd,
    np.lcm: lcm,
    np.left_shift: _op("left_shift"),
    np.right_shift: _op("right_shift"),
    np.bitwise_count: bitwise_count,
    np.deg2rad: in_single(_scaled(np.deg2rad, np.pi, 180.0)),
    np.radians: in_single(_scaled(np.radians, np.pi, 180.0)),
    np.rad2deg: in_single(_scaled(np.rad2deg, 180.0, np.pi)),
    np.degrees: in_single(_scaled(np.degrees, 180.0, np.pi)),
    np.conjugate: conjugate,
    np.vecdot: vecdot,
    **{getattr(np, f.__name__): f for f in (matvec, vecmat) if hasattr(np, f.__name__)},  # NumPy 2.2
    # The method of an ndarray calls this ufunc, which has no public name: w.clip(x, y).
    **({umath.clip: elementwise.clip} if hasattr(umath, "clip") else {}),
}
