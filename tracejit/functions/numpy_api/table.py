# SPDX-License-Identifier: BSD-3-Clause
"""The tables of NumPy's common functions and ufuncs, each with the function of the toolbox that replaces it."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import INT64, Aval, broadcast_shapes, wanted_dtype
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions import (
    contraction,
    creation,
    elementwise,
    joining,
    linear,
    movement,
    norms,
    padding,
    reductions,
    rolling,
    taking,
)
from tracejit.functions.axes import normalize_axes
from tracejit.functions.refusals import refuse
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, is_option, is_real, real
from tracejit.util.text import brief


@cache
def late_implementations() -> Any:
    """Return the module of the implementations that are rarely needed, which takes some milliseconds to import."""
    from tracejit.functions.numpy_api import implementations

    return implementations


def _divmod(x: Any, y: Any) -> tuple[dlarray, dlarray]:
    return elementwise.floor_divide(x, y), elementwise.remainder(x, y)


# Elementwise ufuncs have the same name on both sides; np.absolute and np.bitwise_not do not.
UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: elementwise.add,
    np.subtract: elementwise.subtract,
    np.multiply: elementwise.multiply,
    np.divide: elementwise.divide,
    np.floor_divide: elementwise.floor_divide,
    np.remainder: elementwise.remainder,
    np.power: elementwise.power,
    np.positive: elementwise.positive,
    np.negative: elementwise.negative,
    np.absolute: elementwise.abs,
    np.square: elementwise.square,
    np.reciprocal: elementwise.reciprocal,
    np.sign: elementwise.sign,
    np.maximum: elementwise.maximum,
    np.minimum: elementwise.minimum,
    np.floor: elementwise.floor,
    np.ceil: elementwise.ceil,
    np.trunc: elementwise.trunc,
    np.rint: elementwise.rint,
    np.exp: elementwise.exp,
    np.expm1: elementwise.expm1,
    np.exp2: elementwise.exp2,
    np.log: elementwise.log,
    np.log2: elementwise.log2,
    np.log10: elementwise.log10,
    np.log1p: elementwise.log1p,
    np.sqrt: elementwise.sqrt,
    np.cbrt: elementwise.cbrt,
    np.sin: elementwise.sin,
    np.cos: elementwise.cos,
    np.tan: elementwise.tan,
    np.arcsin: elementwise.arcsin,
    np.arccos: elementwise.arccos,
    np.arctan: elementwise.arctan,
    np.arctan2: elementwise.arctan2,
    np.sinh: elementwise.sinh,
    np.cosh: elementwise.cosh,
    np.tanh: elementwise.tanh,
    np.arcsinh: elementwise.arcsinh,
    np.arccosh: elementwise.arccosh,
    np.arctanh: elementwise.arctanh,
    np.equal: elementwise.equal,
    np.not_equal: elementwise.not_equal,
    np.less: elementwise.less,
    np.less_equal: elementwise.less_equal,
    np.greater: elementwise.greater,
    np.greater_equal: elementwise.greater_equal,
    np.logical_and: elementwise.logical_and,
    np.logical_or: elementwise.logical_or,
    np.logical_xor: elementwise.logical_xor,
    np.logical_not: elementwise.logical_not,
    np.bitwise_and: elementwise.bitwise_and,
    np.bitwise_or: elementwise.bitwise_or,
    np.bitwise_xor: elementwise.bitwise_xor,
    np.invert: elementwise.invert,
    np.isnan: elementwise.isnan,
    np.isinf: elementwise.isinf,
    np.isfinite: elementwise.isfinite,
    np.matmul: linear.matmul,
    np.divmod: _divmod,
}

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.logical_or: reductions.any,
    np.logical_and: reductions.all,
}


def _value(x: Any, what: str) -> Any:
    return recorder.need_value(x, what) if recorder.is_array(x) else x


def _allclose(x: Any, y: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    pair = [as_array(a, "np.allclose", name) for a, name in ((x, "a"), (y, "b"))]
    broadcast_shapes("np.allclose", [Aval(a.shape, None, a.dtype) for a in pair])
    equal_nan = flag("np.allclose", "equal_nan", equal_nan)
    rtol, atol = (
        t if recorder.is_array(t) or np.ndim(t) else real("np.allclose", name, t)
        for t, name in ((rtol, "rtol"), (atol, "atol"))
    )
    if any(map(recorder.steers, [*pair, *(t for t in (rtol, atol) if recorder.is_array(t))])):
        isclose = late_implementations().FUNCTIONS[np.isclose]
        return _all(isclose(x, y, rtol, atol, equal_nan), "np.allclose")
    a, b, rtol, atol = (_value(part, "np.allclose") for part in (x, y, rtol, atol))
    return np.allclose(a, b, rtol, atol, equal_nan)


def _array_equal(x: Any, y: Any, equal_nan: bool = False) -> bool:
    pair = [as_array(a, "np.array_equal", name) for a, name in ((x, "a1"), (y, "a2"))]
    equal_nan = flag("np.array_equal", "equal_nan", equal_nan)
    if any(map(recorder.steers, pair)):
        a, b = pair
        return bool(a.shape == b.shape) and _all((a == b) | _both_nan(a, b, equal_nan), "np.array_equal")
    return np.array_equal(_value(x, "np.array_equal"), _value(y, "np.array_equal"), equal_nan=equal_nan)


def _both_nan(x: Any, y: Any, wanted: bool) -> Any:
    return elementwise.isnan(x) & elementwise.isnan(y) if wanted else False


def _all(condition: Any, what: str) -> bool:
    """Return whether a traced condition holds everywhere: one guard instead of one for each value."""
    return bool(recorder.need_value(reductions.all(condition), what, Decides.TRUTH))


def _copy(a: Any, order: str = "K") -> Any:
    return as_array(a).copy(order)


def _clip(
    x: Any,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    if (a_min is not None or a_max is not None) and not (min is np._NoValue and max is np._NoValue):
        raise ArgumentValueError(
            "np.clip: min= and max= mean the same as a_min and a_max; pass one pair of them."
        )
    parts = [x, a_min if min is np._NoValue else min, a_max if max is np._NoValue else max]
    if dtype is not None:
        wanted = wanted_dtype("np.clip", dtype)
        parts = [part if part is None else _cast_as(part, wanted, casting) for part in parts]
    return elementwise.clip(*parts)


def _cast_as(x: Any, dtype: np.dtype, casting: str) -> dlarray:
    """Return an operand of np.clip in the dtype of the loop, as far as NumPy's rule for casts allows."""
    array = as_array(x, "np.clip")
    own = np.result_type(dtype, x) if type(x) in (int, float, complex) else array.dtype
    if not np.can_cast(own, dtype, casting):  # type: ignore[arg-type]
        raise ArgumentError(
            f"np.clip: operands of {own} are not cast to {dtype} with casting={casting!r}; use x.astype(dtype)."
        )
    return array if array.dtype == dtype else elementwise.cast(array, dtype)


def _where(condition: Any, x: Any = np._NoValue, y: Any = np._NoValue) -> Any:
    """Answer np.where; of texts and other objects it is an array of NumPy's, for which the condition is a guard."""
    choices = [part for part in (x, y) if part is not np._NoValue]
    if not any(map(_is_of_objects, choices)):
        return elementwise.where(condition, *choices)
    what = "np.where"
    parts = [x.needed(what) if recorder.is_number(x) else _value(x, what) for x in (condition, *choices)]
    try:
        return np.where(*parts)
    except (TypeError, ValueError) as error:  # texts and numbers have no common dtype, or sizes do not fit
        reason = str(error).partition(". ")[0].rstrip(". ")
        refuse(
            what,
            f"{reason}; use arrays of sizes that fit, and dtype=object for texts among numbers",
            ArgumentValueError,
        )


def _is_of_objects(x: Any) -> bool:
    """Return whether an operand holds something else than numbers."""
    if x is None or type(x) in (str, bytes):
        return True
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "USOMm"


def _take(x: Any, indices: Any, axis: Any = None) -> dlarray:
    if getattr(getattr(indices, "dtype", None), "kind", "") == "b":  # places 0 and 1, and no mask
        indices = elementwise.cast(as_array(indices), INT64)
    return taking.take(x, indices, axis)


def _for_each(one: Callable[[Any], dlarray]) -> Callable[..., Any]:
    """Return a function of any number of arrays: the result for one, a tuple for several."""

    def function(*arys: Any) -> Any:
        return one(arys[0]) if len(arys) == 1 else tuple(map(one, arys))

    return function


def _pad(x: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> dlarray:
    value: Any = kwargs.get("constant_values")
    x = as_array(x, "np.pad")
    if recorder.is_number(value):
        value = value._array if value.fits(x.dtype) else value.needed("an assignment")
        kwargs["constant_values"] = value
    if isinstance(value, (int, float, np.generic)) and x.dtype.kind in "biu":
        np.empty(1, x.dtype)[:] = np.ravel(value)[0]  # NumPy's error for one that does not fit
    if recorder.is_array(value) and not value._data.ndim and is_option(mode, ("constant",)):
        inside = padding.pad(np.ones(x.shape, bool), pad_width, mode)
        return elementwise.where(inside, padding.pad(x, pad_width, mode), elementwise.cast(value, x.dtype))
    if recorder.is_array(value) and is_option(mode, ("constant",)):
        return late_implementations().constant_border(x, pad_width, value)  # type: ignore[no-any-return]
    if kwargs.keys() <= {"constant_values"} and is_option(
        mode, ("constant", "edge", "symmetric", "wrap", "reflect")
    ):
        return padding.pad(x, pad_width, mode, **kwargs)
    return late_implementations().FORMS[np.pad](x, pad_width, mode, **kwargs)  # type: ignore[no-any-return]


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> dlarray:
    is_number = is_real(ord)
    if isinstance(axis, (tuple, list)) and len(axis) not in (1, 2):
        raise DimsError(
            f"np.linalg.norm: axis={brief(axis)} names {len(axis)} axes, expected one for vectors or two for matrices; "
            "leave axis out for all elements."
        )
    if (is_number and ord not in (1, 2, math.inf)) or is_option(ord, ("nuc",)):
        return late_implementations().spectral.norm(x, ord, axis, keepdims)  # type: ignore[no-any-return]
    if is_number and ord == 2:
        array = as_array(x, "norm")
        if len(normalize_axes("norm", array, axis)) == 2:
            return late_implementations().spectral.norm(array, ord, axis, keepdims)  # type: ignore[no-any-return]
    return norms.norm(x, ord, axis, keepdims)


def _einsum(*operands: Any, optimize: Any = True, **kwargs: Any) -> dlarray:
    if not kwargs and operands and isinstance(operands[0], str):
        return contraction.einsum(*operands, optimize=optimize)
    return late_implementations().FORMS[np.einsum](*operands, optimize=optimize, **kwargs)  # type: ignore[no-any-return]


def _result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(*(x.dtype if recorder.is_array(x) else x for x in arrays_and_dtypes))


def _ndim(x: dlarray) -> int:
    return x.ndim


def _shape(x: dlarray) -> tuple[int, ...]:
    return x.shape


def _size(x: Any, axis: Any = None) -> int:
    return math.prod(x._data.shape[i] for i in normalize_axes("np.size", as_array(x, "np.size"), axis))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    # reductions
    np.sum: reductions.sum,
    np.prod: reductions.prod,
    np.mean: reductions.mean,
    np.var: reductions.var,
    np.std: reductions.std,
    np.max: reductions.max,
    np.min: reductions.min,
    np.ptp: reductions.ptp,
    np.any: reductions.any,
    np.all: reductions.all,
    np.argmax: reductions.argmax,
    np.argmin: reductions.argmin,
    np.count_nonzero: reductions.count_nonzero,
    np.cumsum: reductions.cumsum,
    np.linalg.norm: _norm,
    # products
    np.dot: linear.dot,
    np.vdot: linear.vdot,
    np.inner: linear.inner,
    np.outer: linear.outer,
    np.tensordot: linear.tensordot,
    np.einsum: _einsum,
    np.trace: linear.trace,
    np.diag: linear.diag,
    np.tril: linear.tril,
    np.triu: linear.triu,
    # movement
    np.reshape: movement.reshape,
    np.ravel: movement.ravel,
    np.transpose: movement.transpose,
    np.swapaxes: movement.swapaxes,
    np.moveaxis: movement.moveaxis,
    np.broadcast_to: movement.broadcast_to,
    np.squeeze: movement.squeeze,
    np.expand_dims: movement.expand_dims,
    np.concatenate: joining.concatenate,
    np.stack: joining.stack,
    np.vstack: joining.vstack,
    np.hstack: joining.hstack,
    np.split: joining.split,
    np.array_split: joining.array_split,
    np.flip: movement.flip,
    np.roll: rolling.roll,
    np.pad: _pad,
    np.repeat: padding.repeat,
    np.tile: padding.tile,
    np.atleast_1d: _for_each(movement.atleast_1d),
    np.atleast_2d: _for_each(movement.atleast_2d),
    np.atleast_3d: _for_each(movement.atleast_3d),
    # selection
    np.take: _take,
    np.take_along_axis: taking.take_along_axis,
    np.nonzero: taking.nonzero,
    np.where: _where,
    np.clip: _clip,
    np.round: elementwise.round,
    # creation
    np.copy: _copy,
    np.zeros_like: creation.zeros_in_order,
    np.ones_like: creation.ones_in_order,
    np.full_like: creation.full_in_order,
    np.empty_like: creation.zeros_in_order,
    # questions about arrays
    np.allclose: _allclose,
    np.array_equal: _array_equal,
    np.result_type: _result_type,
    np.ndim: _ndim,
    np.shape: _shape,
    np.size: _size,
}


SAVES: tuple[Callable[..., Any], ...] = (np.save, np.savez, np.savez_compressed, np.savetxt)
"""NumPy's functions that write arrays to files; they take untraced dlarrays as ndarrays."""

TEXTS: tuple[Callable[..., Any], ...] = (np.array2string, np.array_repr, np.array_str)
"""NumPy's functions that write an array as text; they likewise take untraced dlarrays."""
