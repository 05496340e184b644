# SPDX-License-Identifier: BSD-3-Clause
"""Differences and sums along an axis: diff, gradient, trapezoid, running sums and products, interp, convolve, unwrap.

Labels: an axis along which neighbours are combined keeps its label.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import COMPLEX128, FLOAT32, FLOAT64, is_half, wanted_dtype
from tracejit.errors import ArgumentValueError, DimsError
from tracejit.functions import elementwise, joining, linear, movement, reductions
from tracejit.functions.axes import axes_as_given, axis_of_a_number, normalize_axis
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.numpy_api.flattening import flattened
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, integer, is_option
from tracejit.util.text import brief

_NOT_GIVEN = np._NoValue
_SHORT_KERNEL = 4  # elements: shorter kernels of a convolution are sums of shifted operands, which fuse


def along(array: dlarray, axis: int, start: int | None, stop: int | None) -> dlarray:
    """Return a slice of one axis."""
    return movement.sliced(array, {axis: slice(start, stop)})


def _floating(array: dlarray) -> dlarray:
    return array if array.dtype.kind in "fc" else in_dtype(array, FLOAT64)


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> dlarray:
    """Return the n-th differences of neighbours along an axis; of bools, whether they differ."""
    n = integer("np.diff", "n", n)
    array = as_array(a, "np.diff")
    if n == 0:
        return array
    if n < 0 or not array.ndim:
        refuse(
            "np.diff",
            f"n must not be negative (it is {n}), and a must have an axis (it has {array.ndim})",
            ArgumentValueError,
        )
    number = normalize_axis("np.diff", array, axis)
    parts: list[Any] = [array]
    for extra, at in ((prepend, 0), (append, 2)):
        if extra is not None and extra is not _NOT_GIVEN:
            part = as_array(extra, "np.diff")
            if not part.ndim:
                shape = (*array.shape[:number], 1, *array.shape[number + 1 :])
                part = movement.broadcast_to(part, shape)
            parts.insert(at, part)
    if len(parts) > 1:
        array = joining.concatenate(parts, number)
    for _ in range(min(n, array.shape[number] + 1)):
        late, early = along(array, number, 1, None), along(array, number, None, -1)
        array = elementwise.not_equal(late, early) if array.dtype == bool else late - early
    return array


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> dlarray:
    """Return the differences of neighbours among all elements in C order, between `to_begin` and `to_end`."""
    array = flattened("np.ediff1d", ary)
    if array.dtype == bool:
        refuse("np.ediff1d", "bools have no differences; cast them first (x.astype(np.int64))")
    parts = [array[1:] - array[:-1]]
    for extra, at in ((to_begin, 0), (to_end, 2)):
        if extra is not None:
            given = as_array(extra, "np.ediff1d")
            if not np.can_cast(given.dtype, array.dtype, "same_kind"):
                refuse(
                    "np.ediff1d",
                    f"to_begin and to_end do not fit {array.dtype} (one is {given.dtype}); cast them",
                )
            part = in_dtype(movement.ravel(given), array.dtype)
            parts.insert(at, movement.relabel(part, None))
    return joining.concatenate(parts) if len(parts) > 1 else parts[0]


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Return the derivative of samples by second-order differences, for each axis."""
    array = as_array(f, "np.gradient")
    if array.dtype.kind == "b":
        refuse(
            "np.gradient", "f holds bools, whose difference NumPy does not define; cast it (f.astype(int))"
        )
    array = _floating(array)
    axes = axes_as_given("np.gradient", array, axis)
    order = integer("np.gradient", "edge_order", edge_order)
    if len(varargs) == 1 and not as_array(varargs[0]).ndim:
        varargs = varargs * len(axes)
    if order not in (1, 2) or len(varargs) not in (0, len(axes)):
        refuse(
            "np.gradient",
            f"edge_order must be 1 or 2 (it is {order}), and spacings none, one number, or one for each of "
            f"{len(axes)} axes ({len(varargs)} were given)",
            ArgumentValueError,
        )
    results = []
    for number, spacing in zip(axes, varargs or (1.0,) * len(axes), strict=True):
        if array.shape[number] < order + 1:
            refuse(
                "np.gradient",
                f"axis {number} has {array.shape[number]} elements, expected {order + 1} or more",
                DimsError,
            )
        results.append(_derivative(array, number, spacing, order))
    if len(results) == 1:
        return results[0]
    return tuple(results)


def _derivative(f: dlarray, axis: int, spacing: Any, order: int) -> dlarray:
    def part(start: int | None, stop: int | None) -> dlarray:
        return along(f, axis, start, stop)

    first, last = slice(0, 1), slice(-1, None)
    steps = as_array(spacing, "np.gradient")
    if not steps.ndim:
        h = spacing
        inner = (part(2, None) - part(None, -2)) / (2.0 * h)
        if order == 1:
            return _joined(f, axis, (part(1, 2) - part(0, 1)) / h, inner, (part(-1, None) - part(-2, -1)) / h)
        begin, end = (-1.5 / h, 2.0 / h, -0.5 / h), (0.5 / h, -2.0 / h, 1.5 / h)
    else:
        if steps.shape != (f.shape[axis],):
            refuse(
                "np.gradient",
                f"places have size {steps.shape}, expected ({f.shape[axis]},), that of the axis",
                ArgumentValueError,
            )
        shape = tuple(-1 if i == axis else 1 for i in range(f.ndim))
        d = movement.reshape(diff(_floating(movement.relabel(steps, None))), shape)
        d1, d2 = along(d, axis, None, -1), along(d, axis, 1, None)
        a, b, c = -d2 / (d1 * (d1 + d2)), (d2 - d1) / (d1 * d2), d1 / (d2 * (d1 + d2))
        # Between places as far apart NumPy does not look at the middle one, which may not be finite.
        middle, is_even = part(1, -1), reductions.all(d == along(d, axis, 0, 1))
        middle = where(is_even & ~elementwise.isfinite(middle), 0, middle)
        inner = a * part(None, -2) + b * middle + c * part(2, None)
        if order == 1:
            ends = [(part(*x) - part(*y)) / along(d, axis, z.start, z.stop)
                    for x, y, z in (((1, 2), (0, 1), first), ((-1, None), (-2, -1), last))]  # fmt: skip
            return _joined(f, axis, ends[0], inner, ends[1])
        d1, d2 = along(d, axis, 0, 1), along(d, axis, 1, 2)
        begin = (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2)))
        d1, d2 = along(d, axis, -2, -1), along(d, axis, -1, None)
        end = (d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2), (2.0 * d2 + d1) / (d2 * (d1 + d2)))
    left = begin[0] * part(0, 1) + begin[1] * part(1, 2) + begin[2] * part(2, 3)
    n = f.shape[axis]
    right = end[0] * part(n - 3, n - 2) + end[1] * part(n - 2, n - 1) + end[2] * part(n - 1, n)
    return _joined(f, axis, left, inner, right)


def _joined(f: dlarray, axis: int, *parts: dlarray) -> dlarray:
    return joining.concatenate([in_dtype(movement.relabel(p, f._format), f.dtype) for p in parts], axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> dlarray:
    """Return the integral of samples along an axis by the trapezoidal rule."""
    array = as_array(y, "np.trapezoid")
    number = normalize_axis("np.trapezoid", array, axis)
    steps = dx
    if x is not None:
        places = movement.relabel(as_array(x, "np.trapezoid"), None)
        if places.ndim == 1:
            shape = tuple(-1 if i == number else 1 for i in range(array.ndim))
            steps = movement.reshape(diff(places), shape)
        else:
            steps = diff(places, axis=axis)
    total = steps * (along(array, number, 1, None) + along(array, number, None, -1)) / 2.0
    return reductions.sum(total, number)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> dlarray:
    """Return the running products along an axis, of all elements in C order where it is None."""
    array = as_array(a, "np.cumprod")
    wanted = None if dtype is None else wanted_dtype("np.cumprod", dtype)
    array = array if wanted is None else in_dtype(array, wanted)
    if axis is None:
        array, axis = movement.ravel(array), 0
    array = axis_of_a_number(array, axis)
    result = apply("cumprod", array, axis=normalize_axis("np.cumprod", array, axis))
    return result if wanted is None else in_dtype(result, wanted)


def _cumulative(name: str, running: Callable[..., dlarray], neutral: int) -> Callable[..., dlarray]:
    def function(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> dlarray:
        array = as_array(x, name)
        if axis is None and array.ndim > 1:
            refuse(name, f"axis= is needed for an array of {array.ndim} axes; pass it")
        array = axis_of_a_number(array, 0 if axis is None else axis)
        number = 0 if axis is None else normalize_axis(name, array, axis)
        result = running(array, number, dtype=dtype)
        if not flag(name, "include_initial", include_initial):
            return result
        first = np.full((*result.shape[:number], 1, *result.shape[number + 1 :]), neutral, result.dtype)
        return joining.concatenate([movement.relabel(as_array(first), result._format), result], number)

    return function


def _without_nan(array: dlarray, value: int) -> dlarray:
    return where(elementwise.isnan(array), value, array) if array.dtype.kind in "fc" else array


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> dlarray:
    """Return the running sums along an axis, NaN as 0."""
    return reductions.cumsum(_without_nan(as_array(a, "np.nancumsum"), 0), axis, dtype=dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> dlarray:
    """Return the running products along an axis, NaN as 1."""
    return cumprod(_without_nan(as_array(a, "np.nancumprod"), 1), axis, dtype)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> dlarray:
    """Return the piecewise linear function through (xp, fp) at `x`, in float64 or, of complex `fp`, complex128."""
    points, knots = as_array(x, "np.interp"), as_array(xp, "np.interp", "xp")
    is_narrow = points.dtype == knots.dtype == FLOAT32 and period is None
    given = in_dtype(points, FLOAT64)
    heights = as_array(fp, "np.interp", "fp")
    wide = COMPLEX128 if heights.dtype.kind == "c" else FLOAT64
    places, values = (
        movement.relabel(in_dtype(part, dtype), None) for part, dtype in ((knots, FLOAT64), (heights, wide))
    )
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        refuse(
            "np.interp",
            f"xp and fp have sizes {places.shape} and {values.shape}, expected vectors of one size",
            DimsError,
        )
    if period is not None:
        period = abs(period)
        given, places = given % period, places % period
        order = apply("order", places, axis=0)[0]
        places, values = places[order], values[order]
        places = joining.concatenate([places[-1:] - period, places, places[:1] + period])
        values = joining.concatenate([values[-1:], values, values[:1]])
    asked = movement.relabel(given, None)
    before, beyond, unknown = asked < places[0], asked > places[-1], elementwise.isnan(asked)
    at = where(before | beyond | unknown, places[0], asked)  # infinities would spoil derivatives
    # Among numbers of float32 it takes half of the time, and has the same result.
    table, wanted = (in_dtype(part, FLOAT32 if is_narrow else FLOAT64) for part in (places, at))
    after = apply("searchsorted", table, wanted, right=True)
    n = places.size
    if n == 1:
        inner = movement.broadcast_to(values, at.shape) if at.ndim else values[0]
    else:
        j = elementwise.clip(after - 1, 0, n - 2)
        xj, yj = apply("take", places, j, axis=0), apply("take", values, j, axis=0)
        xk, yk = apply("take", places, j + 1, axis=0), apply("take", values, j + 1, axis=0)
        slope = (yk - yj) / (xk - xj)
        inner = where(at == xj, yj, where(after == n, yk, slope * (at - xj) + yj))
        again = where(yj == yk, yj, slope * (at - xk) + yk)  # where the first way gave NaN
        inner = where(elementwise.isnan(inner), again, inner)
        inner = where(unknown, asked, inner)
    result = where(before, values[0] if left is None else left, inner)
    result = where(beyond, values[-1] if right is None else right, result)
    return movement.relabel(in_dtype(result, wide), given._format)


def _part_of(name: str, n: int, m: int, mode: Any) -> tuple[int, int]:
    """Return where the part of a full convolution of n and m elements begins that a mode is, and its size; n >= m."""
    if not is_option(mode, ("full", "same", "valid")):
        refuse(name, f"mode must be 'full', 'same' or 'valid', not {brief(mode)}", ArgumentValueError)
    return {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]


def _convolved(name: str, a: dlarray, v: dlarray, mode: Any) -> dlarray:
    """Return part of the convolution of two vectors, the first at least as long as the second."""
    n, m = a.size, v.size
    start, size = _part_of(name, n, m, mode)
    if m <= _SHORT_KERNEL:
        total: Any = None
        for j in range(m):
            term = apply("pad", v[j] * a, widths=((j, m - 1 - j),), value=0)
            total = term if total is None else total + term
        return total if size == n + m - 1 else total[start : start + size]  # type: ignore[no-any-return]
    zeros = {"before": m - 1 - start, "behind": start + size - n}
    if a.dtype.kind != "c":
        return _sliding(a, movement.flip(v), zeros)
    x, y = [[apply(part, z) for part in ("real", "imag")] for z in (a, movement.flip(v))]
    (rr, ri), (ir, ii) = [[_sliding(left, right, zeros) for right in y] for left in x]
    return apply("complex_of", rr - ii, ri + ir)


def _sliding(x: dlarray, w: dlarray, zeros: dict[str, int]) -> dlarray:
    """Return the sums of the products of `w` with all places of `x`, which has zeros around it, in their dtype."""
    if is_half(x.dtype):  # as sums of 16 bits are: in 32 bits, rounded at the end
        return in_dtype(_sliding(in_dtype(x, FLOAT32), in_dtype(w, FLOAT32), zeros), x.dtype)
    found = apply("sliding_sums", x, w, **zeros)
    return found != 0 if x.dtype.kind == "b" else found


def convolve(a: Any, v: Any, mode: Any = "full") -> dlarray:
    """Return the convolution of two vectors: sums of products at all shifts."""
    first, second = _vectors("np.convolve", a, v)
    if second.size > first.size:
        first, second = second, first
    return _convolved("np.convolve", first, second, mode)


def correlate(a: Any, v: Any, mode: Any = "valid") -> dlarray:
    """Return the cross-correlation of two vectors: sums of products at all shifts, `v` as it is."""
    for given, name in ((a, "a"), (v, "v")):
        if not as_array(given, "np.correlate", name).ndim:
            refuse("np.correlate", f"{name} is a number, expected a vector", ArgumentValueError)
    first, second = _vectors("np.correlate", a, v)
    second = linear.conjugated(second)
    if second.size > first.size:
        return movement.flip(_convolved("np.correlate", second, movement.flip(first), mode))
    return _convolved("np.correlate", first, movement.flip(second), mode)


def _vectors(name: str, a: Any, v: Any) -> list[dlarray]:
    found = [movement.relabel(movement.atleast_1d(as_array(x, name)), None) for x in (a, v)]
    if any(x.ndim != 1 or not x.size for x in found):
        refuse(
            name,
            f"operands have sizes {found[0].shape} and {found[1].shape}, expected vectors that are not empty",
            DimsError,
        )
    dtype = np.result_type(*(x.dtype for x in found))
    return [in_dtype(x, dtype) for x in found]


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> dlarray:
    """Return angles along an axis with jumps of more than half a period taken out."""
    array = as_array(p, "np.unwrap")
    number = normalize_axis("np.unwrap", array, axis)
    jumps = diff(array, axis=number)
    discont = period / 2 if discont is None else discont
    if array.dtype.kind == "u" and isinstance(period, int):
        refuse(
            "np.unwrap",
            f"p has dtype {array.dtype}, whose differences have no sign; cast it (x.astype(np.int64))",
        )
    dtype = np.result_type(jumps, period) if recorder.is_array(period) else (jumps * period).dtype
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    wrapped = (jumps + high) % period - high
    if ambiguous:
        wrapped = where((wrapped == -high) & (jumps > 0), high, wrapped)
    correction = where(elementwise.abs(jumps) < discont, 0, wrapped - jumps)
    rest_of = along(array, number, 1, None) + reductions.cumsum(correction, number)
    return joining.concatenate(
        [in_dtype(along(array, number, None, 1), dtype), in_dtype(rest_of, dtype)], number
    )


def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> dlarray:
    """Return an array without zeros at the front ("f") and back ("b") of axes; how many there are is a size."""
    array = as_array(filt, "np.trim_zeros")
    axes = axes_as_given("np.trim_zeros", array, axis)
    chosen = trim.lower() if isinstance(trim, str) else ""
    if not is_option(chosen, ("f", "b", "fb", "bf")):
        refuse(
            "np.trim_zeros",
            f"trim must be made of 'f' (front) and 'b' (back), not {brief(trim)}",
            ArgumentValueError,
        )
    if not axes or not array.size:
        return movement.sliced(array, dict.fromkeys(axes, slice(0, 0)))
    some = array != 0
    if not bool(recorder.need_value(reductions.any(some), "np.trim_zeros", Decides.TRUTH)):
        return movement.sliced(array, dict.fromkeys(axes, slice(0, 0)))
    parts = {}
    for number in axes:
        start = stop = None
        others = tuple(i for i in range(array.ndim) if i != number)
        found = reductions.any(some, others) if others else some
        if "f" in chosen:
            start = int(recorder.need_value(reductions.argmax(found), "np.trim_zeros"))
        if "b" in chosen:
            back = recorder.need_value(reductions.argmax(movement.flip(found)), "np.trim_zeros")
            stop = array.shape[number] - int(back)
        parts[number] = slice(start, stop)
    return movement.sliced(array, parts)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.diff: diff,
    np.ediff1d: ediff1d,
    np.gradient: gradient,
    np.trapezoid: trapezoid,
    np.cumprod: cumprod,
    np.nancumsum: nancumsum,
    np.nancumprod: nancumprod,
    np.interp: interp,
    np.convolve: convolve,
    np.correlate: correlate,
    np.unwrap: unwrap,
    np.trim_zeros: trim_zeros,
}
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    FUNCTIONS[np.cumulative_sum] = _cumulative("np.cumulative_sum", reductions.cumsum, 0)
    FUNCTIONS[np.cumulative_prod] = _cumulative("np.cumulative_prod", cumprod, 1)
