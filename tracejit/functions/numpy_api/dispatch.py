# SPDX-License-Identifier: BSD-3-Clause
"""The functions of the toolbox that answer NumPy's functions when these are called with dlarrays."""

import inspect
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import Aval, broadcast_shapes
from tracejit.errors import ArgumentError, TraceError, TraceJitError
from tracejit.functions import creation, elementwise, indexing, linear, movement, reductions
from tracejit.functions.axes import normalize_axes
from tracejit.functions.numpy_api import writes
from tracejit.record import recorder, views
from tracejit.record.derived import elements, is_derived
from tracejit.record.guards import Decides, GuardFailed
from tracejit.record.memory import is_private
from tracejit.util.arguments import flag, is_option, real
from tracejit.util.compositions import advice
from tracejit.util.frames import scipy_call
from tracejit.util.text import brief
from tracejit.util.uninterrupted import is_of_handler


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
        t if recorder.is_array(t) else real("np.allclose", name, t)
        for t, name in ((rtol, "rtol"), (atol, "atol"))
    )
    if any(map(recorder.steers, pair)):
        a, b = pair
        near = (elementwise.abs(a - b) <= atol + rtol * elementwise.abs(b)) & elementwise.isfinite(b)
        return _all(near | (a == b) | _both_nan(a, b, equal_nan), "np.allclose")
    return np.allclose(
        _value(x, "np.allclose"), _value(y, "np.allclose"), rtol=rtol, atol=atol, equal_nan=equal_nan
    )


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


def _copy(a: Any) -> Any:
    return views.copy(as_array(a))


def _clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = np._NoValue, max: Any = np._NoValue
) -> Any:
    return elementwise.clip(x, a_min if min is np._NoValue else min, a_max if max is np._NoValue else max)


def _for_each(one: Callable[[Any], dlarray]) -> Callable[..., Any]:
    """Return a function of any number of arrays: the result for one, a tuple for several."""

    def function(*arys: Any) -> Any:
        return one(arys[0]) if len(arys) == 1 else tuple(map(one, arys))

    return function


def _pad(x: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> dlarray:
    if kwargs.keys() <= {"constant_values"} and is_option(
        mode, ("constant", "edge", "symmetric", "wrap", "reflect")
    ):
        return movement.pad(x, pad_width, mode, **kwargs)
    return _answers().wider.pad(x, pad_width, mode, **kwargs)  # type: ignore[no-any-return]


def _einsum(*operands: Any, optimize: Any = True, **kwargs: Any) -> dlarray:
    if not kwargs and operands and isinstance(operands[0], str):
        return linear.einsum(*operands, optimize=optimize)
    return _answers().wider.einsum(*operands, optimize=optimize, **kwargs)  # type: ignore[no-any-return]


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
    np.linalg.norm: reductions.norm,
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
    np.concatenate: movement.concatenate,
    np.stack: movement.stack,
    np.vstack: movement.vstack,
    np.hstack: movement.hstack,
    np.split: movement.split,
    np.array_split: movement.array_split,
    np.flip: movement.flip,
    np.roll: movement.roll,
    np.pad: _pad,
    np.repeat: movement.repeat,
    np.tile: movement.tile,
    np.atleast_1d: _for_each(movement.atleast_1d),
    np.atleast_2d: _for_each(movement.atleast_2d),
    np.atleast_3d: _for_each(movement.atleast_3d),
    # selection
    np.take: indexing.take,
    np.take_along_axis: indexing.take_along_axis,
    np.nonzero: indexing.nonzero,
    np.where: elementwise.where,
    np.clip: _clip,
    np.round: elementwise.round,
    # creation
    np.copy: _copy,
    np.zeros_like: creation.zeros_like,
    np.ones_like: creation.ones_like,
    np.full_like: creation.full_like,
    np.empty_like: creation.zeros_like,
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


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Answer a ufunc that was called with a dlarray among its inputs or outputs.

    Raises:
        ArgumentError: for a ufunc, a method of it, or an option that dlarrays do not support.
    """
    name = _name_of_ufunc(ufunc)
    if _is_numpys_alone(ufunc, method, options) and _are_constants((inputs, options)):
        return getattr(ufunc, method)(*_constants(inputs, name), **_constants(options, name))
    if method == "at":
        if ufunc not in (np.add, np.subtract):
            changed = _methods().at(ufunc, _apply_ufunc, *inputs)
            return writes.replace(f"{name}.at", inputs[0], changed, inputs[1:])
        return writes.at(ufunc, name, *inputs)
    out = options.pop("out", None)
    if out is not None:
        chosen = options.pop("where", True)
        result = as_array(call_ufunc(ufunc, method, inputs, options))
        if chosen is not True:
            result = elementwise.where(chosen, result, *out)
        return writes.into(out, result, name)
    if method == "reduce" and ufunc in REDUCTIONS and options.keys() <= {"axis", "keepdims"}:
        return REDUCTIONS[ufunc](
            *inputs, axis=options.get("axis", 0), keepdims=options.get("keepdims", False)
        )
    if method != "__call__":
        if _are_constants(inputs):
            return getattr(ufunc, method)(*_constants(inputs, name), **options)
        return getattr(_methods(), method)(ufunc, _apply_ufunc, *inputs, **options)
    dtype = options.pop("dtype", None)
    function = UFUNCS.get(ufunc) or _answers().UFUNCS.get(ufunc)
    if function is None:
        if _are_constants(inputs, is_derived):
            return ufunc(*_constants(inputs, name))
        raise ArgumentError(f"{name}: not supported on dlarrays; {advice(name)}.")
    if dtype is not None:
        return _methods().with_dtype(ufunc, _apply_ufunc, inputs, dtype)
    if ufunc is np.vecdot:
        return function(*inputs, **options)
    _refuse_options(name, options)
    return function(*inputs)


def _apply_ufunc(ufunc: np.ufunc, *operands: Any) -> Any:
    return call_ufunc(ufunc, "__call__", operands, {})


@cache
def _answers() -> Any:
    """Return the module of the answers that are rarely needed, which takes some milliseconds to import."""
    from tracejit.functions.numpy_api import answers

    return answers


@cache
def _methods() -> Any:
    """Return the module of the methods of ufuncs, for the same reason."""
    from tracejit.functions.numpy_api import ufunc_methods

    return ufunc_methods


def _is_numpys_alone(ufunc: np.ufunc, method: str, options: dict[str, Any]) -> bool:
    """Return whether NumPy can do what dlarrays do not support, which arrays without traced values may need."""
    if method == "at":
        return ufunc not in (np.add, np.subtract)
    if method == "reduce" and ufunc in REDUCTIONS:
        return not options.keys() <= {"axis", "keepdims", "out"}
    return method != "__call__" or not options.keys() <= {"out", "where"}


def _are_constants(x: Any, is_known: Callable[[dlarray], bool] = lambda array: False) -> bool:
    """Return whether the dlarrays in arguments are private to a recording, or traced and known."""
    if isinstance(x, (list, tuple)):
        return all(_are_constants(part, is_known) for part in x)
    if isinstance(x, dict):
        return all(_are_constants(part, is_known) for part in x.values())
    return not isinstance(x, dlarray) or (is_private(x) if x._value is None else is_known(x))


def _constants(x: Any, name: str) -> Any:
    """Return arguments of a function of NumPy with the ndarrays of the dlarrays in them."""
    if type(x) in (list, tuple):
        return type(x)([_constants(part, name) for part in x])
    if isinstance(x, dict):
        return {key: _constants(value, name) for key, value in x.items()}
    if not isinstance(x, dlarray):
        return x
    return x._data if x._value is None else elements(x, name)


def _name_of_ufunc(ufunc: np.ufunc) -> str:
    """Return the name of a ufunc with that of its package, which it does not tell itself."""
    name = ufunc.__name__
    for short, package in (("np", "numpy"), ("scipy.special", "scipy.special")):
        if getattr(sys.modules.get(package), name, None) is ufunc:
            return f"{short}.{name}"
    return name


def _refuse_options(name: str, options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            raise ArgumentError(
                f"{name}: {option}= is not supported on dlarrays; use where(condition, x, y) to select, and "
                "x.astype(dtype) to convert."
            )


def call_function(function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """Answer a NumPy function that was called with a dlarray somewhere in its arguments.

    Raises:
        ArgumentError: for a function, or an argument of it, that dlarrays do not support.
    """
    ours = FUNCTIONS.get(function)
    if function in SAVES:
        name = _name(function)
        arrays = {key: _untraced(x, name) for key, x in options.items()}
        return function(*[_untraced(x, name) for x in args], **arrays)
    if function in writes.WRITERS:
        return writes.WRITERS[function](*args, **options)
    if ours is None:
        if _are_constants((args, options)):
            return function(*_constants(args, ""), **_constants(options, ""))
        ours = _answers().FUNCTIONS.get(function)
        if ours is not None:
            return _checked(function, ours, args, options)
        name, _ = scipy_call() or (_name(function), None)
        if _are_constants((args, options), is_derived):
            return function(*_constants(args, name), **_constants(options, name))
        raise ArgumentError(f"{name}: not supported on dlarrays; {advice(name)}.")
    return _with_out(function, ours, args, options)


def _with_out(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    out = options.pop("out", None)
    if out is not None:
        return writes.into(out, as_array(call_function(function, args, options)), _name(function))
    return _answered(function, ours, args, options)


def _checked(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Return the result of our function; what it cannot do with its arguments is an error in NumPy's name for it."""
    if function in _answers().CALLING:  # what the user's function raises is its own
        return _with_out(function, ours, args, options)
    try:
        return _with_out(function, ours, args, options)
    except (TraceJitError, GuardFailed):
        raise
    except Exception as error:
        if is_of_handler(error):
            raise
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise ArgumentError(
            f"{_name(function)}: these arguments cannot be used: {type(error).__name__}: {brief(reason)}; see the "
            "documentation of NumPy for what it takes."
        ) from error


def _answered(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Return the result of our function for the arguments of NumPy's."""
    names, numpy_signature = _translation(function, ours)
    if numpy_signature is None:
        return ours(*args, **options)
    given = numpy_signature.bind(*args, **options).arguments
    out = given.pop("out", None)
    if out is not None:
        return writes.into(out, as_array(call_function(function, (), given)), _name(function))
    translated = {}
    for name, value in given.items():
        parameter = numpy_signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            translated.update(value)
        elif name in names:
            if value is not np._NoValue:
                translated[names[name]] = value
        elif not _is_default(value, parameter.default):
            wider = _answers().WIDER.get(function)
            if wider is not None and wider is not ours:
                return _answered(function, wider, args, options)
            raise _unsupported(function, name, ours)
    return ours(**translated)


def _untraced(x: Any, name: str) -> Any:
    """Return an argument of a function that writes files, an array as an ndarray."""
    if not recorder.is_array(x):
        return x
    if recorder.is_open(x):
        raise TraceError(
            f"{name}: {recorder.describe(x)} is traced, and a replay writes no file; return the array from the "
            "function and save it outside."
        )
    return np.asarray(x)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or value is None or (type(value) is type(default) and bool(value == default))


def _unsupported(function: Callable[..., Any], argument: str, ours: Callable[..., Any]) -> ArgumentError:
    arguments = ", ".join(inspect.signature(ours).parameters)
    remedy = "transpose before and after; " if argument == "order" else ""
    return ArgumentError(
        f"{_name(function)}: {argument}= is not supported on dlarrays; {remedy}arguments are {arguments}."
    )


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__.replace('numpy', 'np', 1)}.{function.__qualname__}"


@cache
def _translation(
    function: Callable[..., Any], ours: Callable[..., Any]
) -> tuple[dict[str, str], inspect.Signature | None]:
    """Return our name for each of NumPy's arguments that we take, and NumPy's signature, if it matters.

    Arguments correspond by name. One whose name we do not use (`a`, `arr`, `m`, `tup`) corresponds by
    position, if NumPy does not use our name. For a function of any number of arrays there is no signature.
    """
    theirs = _signature(function)
    parameters = inspect.signature(ours).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in theirs.parameters.values()):
        return {name: name for name in parameters}, None
    positions = list(parameters)
    names = {}
    for i, name in enumerate(theirs.parameters):
        if name in parameters:
            names[name] = name
        elif i < len(positions) and positions[i] not in theirs.parameters:
            names[name] = positions[i]
    for name in parameters:
        names.setdefault(name, name)  # what reaches us through NumPy's **kwargs (np.pad)
    return names, theirs


def _concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> None: ...
def _dot(a: Any, b: Any, out: Any = None) -> None: ...
def _pair(a: Any, b: Any, /) -> None: ...
def _where(condition: Any, x: Any = None, y: Any = None, /) -> None: ...
def _any_number(*arrays_and_dtypes: Any) -> None: ...


# Functions of NumPy that are written in C tell their signature from NumPy 2.4 on only.
def _packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> None: ...
def _unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> None: ...
def _lexsort(keys: Any, axis: Any = -1) -> None: ...
def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> None: ...
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> None: ...
def _unravel_index(indices: Any, shape: Any, order: Any = "C") -> None: ...
def _empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> None: ...


_WRITTEN_IN_C: dict[Callable[..., Any], Callable[..., None]] = {
    np.concatenate: _concatenate, np.dot: _dot, np.inner: _pair, np.vdot: _pair, np.where: _where,
    np.result_type: _any_number, np.empty_like: _empty_like, np.lexsort: _lexsort, np.bincount: _bincount,
    np.packbits: _packbits, np.unpackbits: _unpackbits,
    np.ravel_multi_index: _ravel_multi_index, np.unravel_index: _unravel_index,
}  # fmt: skip


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function of NumPy."""
    return inspect.signature(_WRITTEN_IN_C.get(function, function))
