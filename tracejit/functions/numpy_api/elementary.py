# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise functions of NumPy that are not ufuncs: nan_to_num, sinc, i0, fix, isclose, parts of complex numbers.

Labels: elementwise functions keep the format.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64
from tracejit.functions import elementwise, movement, reductions
from tracejit.functions.elementwise import cast, where
from tracejit.functions.formats import in_dtype
from tracejit.functions.halves import rounded_to_loop
from tracejit.functions.refusals import refuse
from tracejit.record import recorder, views
from tracejit.record.guards import Decides


def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> dlarray:
    """Return x with numbers in place of NaN and infinities; those have the derivative 0."""
    array = as_array(x, "np.nan_to_num")
    if array.dtype.kind == "c":
        parts = [nan_to_num(part, True, nan, posinf, neginf) for part in (real(array), imag(array))]
        result = apply("complex_of", *parts)
        return views.assign(x, result, "np.nan_to_num") if not copy and recorder.is_array(x) else result
    if array.dtype.kind != "f":
        return views.copy(array) if copy else array
    info = np.finfo(array.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    result = where(elementwise.isinf(array), where(array > 0, high, low), array)
    result = in_dtype(where(elementwise.isnan(array), nan, result), array.dtype)
    if copy or not recorder.is_array(x):
        return result
    return views.assign(x, result, "np.nan_to_num")  # type: ignore[no-any-return]


def sinc(x: Any) -> dlarray:
    """Return sin(pi x) / (pi x); near 0 by the series of sine, which has all derivatives there."""
    array = as_array(x, "np.sinc") * np.pi
    near = elementwise.abs(array) < 0.01
    square = elementwise.square(where(near, array, 0.0))
    series = 1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0)))
    safe = where(near, 1.0, array)
    return where(near, series, elementwise.sin(safe) / safe)


# The coefficients of Chebyshev series of exp(-x) I0(x), of x / 4 - 1 for x <= 8, and of exp(-x) sqrt(x) I0(x), of
# 16 / x - 1 beyond; from values of 50 digits at the zeros of the polynomials.
_NEAR = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
    -0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
    0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06,
    1.1173875391201037e-06, -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11,
    2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14,
    1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
)  # fmt: skip
_FAR = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383665e-13,
    3.852778382742146e-13, 1.5400862175214194e-14, -4.1505693472873724e-14, -9.554846698826346e-15,
    3.811680669355557e-15, 1.772560133044269e-15, -3.425485619612872e-16, -2.8276239801126035e-16,
    3.4612228592379905e-17, 4.465621415504806e-17, -4.830504064929991e-18, -7.233180856778778e-18,
    1.193654193491388e-18,
)  # fmt: skip


def _chebyshev(t: dlarray, coefficients: tuple[float, ...]) -> dlarray:
    """Return a Chebyshev series by Clenshaw's recurrence."""
    late: Any = coefficients[-1]
    later: Any = 0.0
    for coefficient in coefficients[-2:0:-1]:
        late, later = 2.0 * t * late - later + coefficient, late
    return t * late - later + coefficients[0]  # type: ignore[no-any-return]


def i0(x: Any) -> dlarray:
    """Return the modified Bessel function of the first kind of order 0."""
    array = as_array(x, "np.i0")
    size = elementwise.abs(array) if array.dtype.kind == "f" else elementwise.abs(in_dtype(array, FLOAT64))
    is_near = size <= 8.0
    near = _chebyshev(where(is_near, size, 0.0) / 4.0 - 1.0, _NEAR)
    beyond = where(is_near, 8.0, size)
    far = _chebyshev(16.0 / beyond - 1.0, _FAR) / elementwise.sqrt(beyond)
    # At 0 the magnitude has no derivative, so there it is the power series.
    at_0 = size < 0.1
    z = elementwise.square(where(at_0, array, 0.0)) * 0.25
    series = 1.0 + z * (1.0 + z / 4.0 * (1.0 + z / 9.0 * (1.0 + z / 16.0 * (1.0 + z / 25.0))))
    return where(at_0, series, elementwise.exp(size) * where(is_near, near, far))


def isclose(a: Any, b: Any, rtol: Any = 1.0e-5, atol: Any = 1.0e-8, equal_nan: Any = False) -> dlarray:
    """Return where |a - b| <= atol + rtol |b|, or both are the same infinity, or NaN if `equal_nan`."""
    x, y = as_array(a, "np.isclose"), as_array(b, "np.isclose")
    if type(b) in (int, float):
        y = in_dtype(y, x.dtype if x.dtype.kind in "fc" else FLOAT64)
    elif y.dtype.kind not in "fc":
        y = in_dtype(y, np.result_type(y.dtype, 1.0))
    near = elementwise.abs(x - y) <= atol + rtol * elementwise.abs(y)
    result = (near & elementwise.isfinite(y)) | (x == y)
    if equal_nan:
        result = result | (elementwise.isnan(x) & elementwise.isnan(y))
    return result  # type: ignore[no-any-return]


def array_equiv(a1: Any, a2: Any) -> bool:
    """Return whether two arrays are equal after broadcasting; a guard."""
    x, y = as_array(a1, "np.array_equiv"), as_array(a2, "np.array_equiv")
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    same = reductions.all(x == y)
    return bool(recorder.need_value(same, "np.array_equiv", Decides.TRUTH))


def real(val: Any) -> dlarray:
    """Return the real parts, which share memory with the array; of real numbers the array itself."""
    array = as_array(val, "np.real")
    return apply("real", array) if array._data.dtype.kind == "c" else array


def imag(val: Any) -> dlarray:
    """Return the imaginary parts, which share memory with the array; of real numbers zeros, which are read-only."""
    array = as_array(val, "np.imag")
    if array._data.dtype.kind == "c":
        return apply("imag", array)
    zeros = movement.relabel(apply("broadcast_to", array.dtype.type(0), shape=array.shape), array._format)
    return views.number(zeros) if views.is_scalar(array) else zeros


def angle(z: Any, deg: Any = False) -> dlarray:
    """Return the angles of complex numbers from the positive real axis, in radians or degrees.

    Those of real numbers are 0, or pi for negative ones, and have no derivative.
    """
    array = as_array(z, "np.angle")
    if array.dtype.kind == "c":
        result = elementwise.arctan2(imag(array), real(array))
    else:
        result = elementwise.arctan2(0, elementwise.stop_gradient(array))
        result = rounded_to_loop(np.arctan2, (0, array), result)
    return result * (180 / np.pi) if deg else result


def isreal(x: Any) -> dlarray:
    """Return where the imaginary part is 0."""
    array = as_array(x, "np.isreal")
    if array.dtype.kind == "c":
        return elementwise.equal(imag(array), 0)
    return dlarray(np.ones(array.shape, bool), array._format)


def iscomplex(x: Any) -> dlarray:
    """Return where the imaginary part is not 0."""
    array = as_array(x, "np.iscomplex")
    if array.dtype.kind == "c":
        return elementwise.not_equal(imag(array), 0)
    return dlarray(np.zeros(array.shape, bool), array._format)


def real_if_close(a: Any, tol: Any = 100) -> dlarray:
    """Return the real parts if all imaginary ones are within `tol` epsilons of 0, which is a guard; else the array.

    A `tol` of 1 or less is the distance itself.
    """
    array = as_array(a, "np.real_if_close")
    if array.dtype.kind != "c":
        return array
    most = tol * float(np.finfo(array.dtype).eps) if tol > 1 else tol
    near = reductions.all(elementwise.abs(imag(array)) < most)
    return real(array) if bool(recorder.need_value(near, "np.real_if_close", Decides.TRUTH)) else array


def _signed_infinity(name: str, sign: float) -> Callable[..., dlarray]:
    def function(x: Any, out: Any = None) -> dlarray:
        array = as_array(x, name)
        if array.dtype.kind == "c":
            refuse(name, "complex numbers have no sign; pass x.real or x.imag")
        return array == sign * np.inf

    return function


def fix(x: Any, out: Any = None) -> dlarray:
    """Return x rounded towards 0."""
    return elementwise.trunc(x)


def astype(x: Any, dtype: Any, *, copy: Any = True, device: Any = None) -> dlarray:
    """Return x in another dtype."""
    array = as_array(x, "np.astype")
    if not copy and array.dtype == np.dtype(dtype):
        return array
    return views.as_given(cast(array, dtype), array)  # type: ignore[no-any-return]


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is complex."""
    return as_array(x, "np.iscomplexobj")._data.dtype.kind == "c"


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is not complex."""
    return not iscomplexobj(x)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.nan_to_num: nan_to_num,
    np.sinc: sinc,
    np.i0: i0,
    np.isclose: isclose,
    np.array_equiv: array_equiv,
    np.real: real,
    np.imag: imag,
    np.angle: angle,
    np.isreal: isreal,
    np.iscomplex: iscomplex,
    np.real_if_close: real_if_close,
    np.isposinf: _signed_infinity("np.isposinf", 1.0),
    np.isneginf: _signed_infinity("np.isneginf", -1.0),
    np.fix: fix,
    np.astype: astype,
    np.iscomplexobj: iscomplexobj,
    np.isrealobj: isrealobj,
}
