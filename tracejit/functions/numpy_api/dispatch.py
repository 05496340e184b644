# SPDX-License-Identifier: BSD-3-Clause
"""Calls of NumPy's functions and ufuncs with dlarrays: the choice of the toolbox's function and of its arguments."""

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    AxisError,
    DTypeError,
    TraceError,
    TraceJitError,
)
from tracejit.functions import elementwise
from tracejit.functions.halves import rounded_to_loop
from tracejit.functions.numpy_api import outputs, writes
from tracejit.functions.numpy_api.table import (
    FUNCTIONS,
    REDUCTIONS,
    SAVES,
    TEXTS,
    UFUNCS,
    late_implementations,
)
from tracejit.record import recorder, views
from tracejit.record.conversion import LISTS
from tracejit.record.derived import elements, is_derived
from tracejit.record.guards import GuardFailed
from tracejit.record.memory import is_private, root_of
from tracejit.util.compositions import advice
from tracejit.util.frames import scipy_call
from tracejit.util.text import brief
from tracejit.util.uninterrupted import is_of_handler

_DEFAULTS = {"casting": "same_kind", "order": "K", "where": True}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a ufunc that was called with a dlarray among its inputs or outputs.

    Raises:
        ArgumentError: for a ufunc, a method of it, or an option that dlarrays do not support.
    """
    name = _name_of_ufunc(ufunc)
    if options and method == "__call__":
        options = {key: value for key, value in options.items() if not _has_no_effect(key, value)}
    if _is_numpys_alone(ufunc, method, options) and _are_constants((inputs, options)):
        return getattr(ufunc, method)(*_constants(inputs, name), **_constants(options, name))
    if method == "at":
        if ufunc not in (np.add, np.subtract) or writes.is_rounded_between(*inputs):
            changed = _methods().at(ufunc, _apply_ufunc, *inputs)
            return writes.replace(f"{name}.at", inputs[0], changed, inputs[1:])
        return writes.at(ufunc, name, *inputs)
    out = options.pop("out", None)
    if out is not None:
        # Of a call, where= chooses results; of a reduction, operands.
        chosen = options.pop("where", True) if method == "__call__" else True
        if method in ("reduce", "accumulate", "reduceat") and options.get("dtype") is None:
            options["dtype"] = _methods().dtype_for_out(ufunc, inputs[0], out[0])
        if chosen is not True:
            inputs = tuple([_without_others(x, chosen) for x in inputs])
        casting = options.get("casting", "same_kind")
        result = call_ufunc(ufunc, method, inputs, options)
        if isinstance(result, tuple):
            pairs = zip(result, out, strict=True)
            return tuple([_written(name, part, one, chosen, casting) for part, one in pairs])
        return _written(name, result, out[0], chosen, casting, method in ("__call__", "outer"))
    if method == "reduce" and ufunc in REDUCTIONS and options.keys() <= {"axis", "keepdims"}:
        return REDUCTIONS[ufunc](
            *inputs, axis=options.get("axis", 0), keepdims=options.get("keepdims", False)
        )
    if method != "__call__":
        if _are_constants((inputs, options)):  # where= may be traced alone, as in w.sum(where=x > 0)
            return getattr(ufunc, method)(*_constants(inputs, name), **_constants(options, name))
        return getattr(_methods(), method)(ufunc, _apply_ufunc, *inputs, **options)
    if ufunc.signature is not None and options.keys() & {"axes", "axis", "keepdims"}:
        return _methods().along_axes(ufunc, call_ufunc, inputs, options)
    dtype = options.pop("dtype", None)
    function = UFUNCS.get(ufunc) or late_implementations().UFUNCS.get(ufunc) or _of_scipy(ufunc)
    if function is None:
        if _are_constants(inputs, is_derived):
            return ufunc(*_constants(inputs, name))
        return _in_python(ufunc, name, inputs, options if dtype is None else {**options, "dtype": dtype})
    casting = options.pop("casting", "same_kind")
    _refuse_options(name, options)
    if dtype is not None or casting != "same_kind":
        return _methods().with_dtype(ufunc, _apply_ufunc, inputs, dtype, casting)
    return rounded_to_loop(ufunc, inputs, function(*inputs))


def _has_no_effect(option: str, value: Any) -> bool:
    """Return whether an option of a ufunc has the value that it has without it."""
    if option == "order" and type(value) is str and value in ("C", "A"):
        return True  # results have the layout that they have
    return option == "subok" or (type(value) in (str, bool) and _DEFAULTS.get(option) == value)


def _without_others(x: Any, chosen: Any) -> Any:
    """Return an operand of which only the elements that are chosen have a derivative: NumPy computes of no others."""
    if not isinstance(x, dlarray) or x._value is None or x._data.dtype.kind not in "fc":
        return x
    return elementwise.where(chosen, x, elementwise.stop_gradient(x))


def _written(name: str, result: Any, out: Any, chosen: Any, casting: str, broadcasts: bool = True) -> Any:
    """Return a result of a ufunc, written into the array that was given for it, if there is one."""
    if out is None:
        return result
    given = outputs.fitting(as_array(result), out, casting, name)
    if chosen is not True:
        given = elementwise.where(chosen, given, out)
    return writes.into(out, given, name, broadcasts)


def _apply_ufunc(ufunc: np.ufunc, *operands: Any) -> Any:
    return call_ufunc(ufunc, "__call__", operands, {})


@cache
def _methods() -> Any:
    """Return the module of the methods of ufuncs, for the same reason."""
    from tracejit.functions.numpy_api import ufunc_methods

    return ufunc_methods


def _of_scipy(ufunc: np.ufunc) -> Any:
    """Return the function that stands for a ufunc of scipy.special, None for any other ufunc."""
    if "scipy.special" not in sys.modules:
        return None
    from tracejit.functions import special_ufuncs  # late: it makes 200 records

    return special_ufuncs.answer(ufunc)


def _is_numpys_alone(ufunc: np.ufunc, method: str, options: dict[str, Any]) -> bool:
    """Return whether NumPy can do what dlarrays do not support, which arrays without traced values may need."""
    if method == "at":
        return ufunc not in (np.add, np.subtract)
    if method == "reduce" and ufunc in REDUCTIONS:
        return not options.keys() <= {"axis", "keepdims", "out"}
    return method != "__call__" or not options.keys() <= {"out", "where"}


def _are_constants(x: Any, is_known: Callable[[dlarray], bool] = lambda array: False) -> bool:
    """Return whether the dlarrays in arguments are private to a recording, or traced and known."""
    if isinstance(x, LISTS):
        return all(_are_constants(part, is_known) for part in x)
    if isinstance(x, dict):
        return all(_are_constants(part, is_known) for part in x.values())
    return not isinstance(x, dlarray) or (is_private(x) if x._value is None else is_known(x))


def _is_view(result: Any, args: Any) -> bool:
    """Return whether a result shows the memory of private arrays among arguments, whose later writes it must see."""
    parts = result if isinstance(result, (list, tuple)) else (result,)
    arrays = [x._data for x in args if isinstance(x, dlarray)]
    return any(
        isinstance(part, np.ndarray) and any(np.may_share_memory(part, data) for data in arrays)
        for part in parts
    )


def _constants(x: Any, name: str) -> Any:
    """Return arguments of a function of NumPy with the ndarrays of the dlarrays in them."""
    if type(x) in LISTS:
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
        if getattr(sys.modules.get(package), name, None) == ufunc:
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
    """Return the result of a NumPy function that was called with a dlarray somewhere in its arguments.

    Raises:
        ArgumentError: for a function, or an argument of it, that dlarrays do not support.
    """
    if function in _OF_MEMORY:
        if any(isinstance(x, dlarray) and views.is_scalar(x) for x in args):
            return False  # a number of NumPy's is a copy
        _note_memory(function, args)
        return function(*[x._data if isinstance(x, dlarray) else x for x in args], **options)
    ours = FUNCTIONS.get(function)
    if function in SAVES or (function in TEXTS and not _are_constants((args, options), is_derived)):
        name = _name(function)
        arrays = {key: _untraced(x, name, function in SAVES) for key, x in options.items()}
        return function(*[_untraced(x, name, function in SAVES) for x in args], **arrays)
    if function in writes.WRITERS:
        return writes.WRITERS[function](*args, **options)
    if ours is None:
        if _are_constants((args, options)):
            result = function(*_constants(args, ""), **_constants(options, ""))
            if not _is_view(result, args):
                return result
        ours = late_implementations().FUNCTIONS.get(function)
        if ours is not None:
            return _checked(function, ours, args, options)
        if recorder.recorder() is not None and function.__module__.startswith("numpy.polynomial"):
            return function._implementation(*args, **options)  # type: ignore[attr-defined]  # which is recorded
        name, _ = scipy_call() or (_name(function), None)
        if not _are_constants((args, options), is_derived):
            return _in_python(function, name, args, options)
        # The values would be compared at each call, and what a program calls needs no comparison.
        if (
            _is_for_replays()
            and (result := _called_in_python(function, name, args, options)) is not NotImplemented
        ):
            return result
        return function(*_constants(args, name), **_constants(options, name))
    return _with_out(function, ours, args, options)


_OF_MEMORY = frozenset({np.may_share_memory, np.shares_memory})


def _note_memory(function: Callable[..., Any], args: Any) -> None:
    """Note in a recording that the memory of arrays is asked about, which may differ from call to call."""
    current = recorder.recorder()
    if current is None or not current.accelerating:
        return
    roots = [root_of(x) if isinstance(x, dlarray) else x for x in args[:2]]
    are_outside = [
        not isinstance(root, dlarray) or not (is_private(root) or (root._value and root._value.node))
        for root in roots
    ]
    if roots[0] is not roots[-1] and all(are_outside):
        current.refuse(
            f"{_name(function)} asks about two arrays from outside",
            recorder.user_location(),
            "ask before the call",
        )


_GIVES_ARRAYS = frozenset({
    np.broadcast_to, np.copy, np.i0, np.isin, np.pad, np.select, np.tensordot, np.where,
})  # fmt: skip
_GIVES_NUMBERS = frozenset({
    np.around, np.conjugate, np.einsum, np.flip, np.iscomplex, np.isreal, np.linalg.multi_dot, np.nan_to_num,
    np.nanpercentile, np.nanquantile, np.percentile, np.positive, np.quantile, np.round,
})  # fmt: skip


_ADDED_UP: dict[Any, np.ufunc] = {
    np.sum: np.add, np.nansum: np.add, np.cumsum: np.add, np.nancumsum: np.add,
    np.prod: np.multiply, np.nanprod: np.multiply, np.cumprod: np.multiply, np.nancumprod: np.multiply,
}  # fmt: skip
"""Functions that add or multiply in the dtype of the array that is given as out=."""


def in_form(function: Callable[..., Any], result: Any) -> Any:
    """Return a result without axes as NumPy gives it: some functions give arrays, which are written, some numbers."""
    if type(result) is dlarray and not result._data.ndim:
        if function in _GIVES_ARRAYS and views.is_scalar(result):
            return views.without_axes(result)
        if function in _GIVES_NUMBERS:
            return views.number(result)
    return result


def _in_python(function: Callable[..., Any], name: str, args: Any, options: dict[str, Any]) -> Any:
    """Return the result of NumPy's own function, which a program calls and nobody differentiates."""
    result = _called_in_python(function, name, args, options)
    if result is NotImplemented:
        raise ArgumentError(f"{name}: not supported on dlarrays; {advice(name)}.")
    return result


def _called_in_python(function: Callable[..., Any], name: str, args: Any, options: dict[str, Any]) -> Any:
    """Return what _in_python() does, or NotImplemented where a program cannot call the function."""
    from tracejit.functions.numpy_api import in_python

    if not in_python.is_pure(function, name) or not options.keys().isdisjoint(("out", "where")):
        return NotImplemented
    try:
        return in_python.call(name, function, args, options)
    except (TraceJitError, GuardFailed, np.linalg.LinAlgError):
        raise
    except Exception as error:
        if is_of_handler(error):
            raise
        raise _not_used(name, error) from error


def _is_for_replays() -> bool:
    """Return whether this thread records a trace that will be replayed, and no mapped function."""
    current = recorder.recorder()
    return current is not None and current.accelerating and not current.maps


def _with_out(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    out = options.pop("out", None)
    if out is not None:
        if function in _ADDED_UP and len(args) == 1 and options.get("dtype") is None:
            options["dtype"] = _methods().dtype_for_out(_ADDED_UP[function], args[0], out)
        casting = options.get("casting")
        return outputs.put(function, _name(function), out, call_function(function, args, options), casting)
    return _result(function, ours, args, options)


def _checked(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Return the result of our function; what it cannot do with its arguments is an error in NumPy's name for it."""
    if function in late_implementations().CALLING:  # what the user's function raises is its own
        return _with_out(function, ours, args, options)
    try:
        return _with_out(function, ours, args, options)
    except DTypeError:
        if function.__module__ != "numpy.linalg" or "out" in options:
            raise
        # Factors of complex matrices are those of NumPy.
        return _in_python(function, _name(function), args, options)
    except (TraceJitError, GuardFailed, np.linalg.LinAlgError):
        raise
    except Exception as error:
        if is_of_handler(error):
            raise
        raise _not_used(_name(function), error) from error


def _not_used(name: str, error: Exception) -> TraceJitError:
    """Return the error for arguments that a function of NumPy raised an error for."""
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    kind: type[TraceJitError] = ArgumentError
    for numpys, ours in ((np.exceptions.AxisError, AxisError), (ValueError, ArgumentValueError)):
        if isinstance(error, numpys):
            kind = ours
            break
    return kind(
        f"{name}: these arguments cannot be used: {type(error).__name__}: {brief(reason)}; see the documentation of "
        "NumPy for what it takes."
    )


def _result(
    function: Callable[..., Any], ours: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Return the result of our function for the arguments of NumPy's."""
    names, numpy_signature = _translation(function, ours)
    if numpy_signature is None:
        return ours(*args, **options)
    given = numpy_signature.bind(*args, **options).arguments
    out = given.pop("out", None)
    if out is not None:
        if function in _ADDED_UP and given.get("dtype") is None:
            given["dtype"] = _methods().dtype_for_out(_ADDED_UP[function], given["a"], out)
        return outputs.put(function, _name(function), out, call_function(function, (), given))
    translated = {}
    for name, value in given.items():
        parameter = numpy_signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            value = {option: one for option, one in value.items() if not _has_no_effect(option, one)}
            for option in value:
                if option not in names and not _takes_any(ours):
                    raise _unsupported(function, option, ours)
            translated.update(value)
        elif name in names:
            if value is not np._NoValue:
                translated[names[name]] = value
        elif name != "subok" and not _is_default(value, parameter.default):
            full_form = late_implementations().FULL_FORMS.get(function)
            if full_form is not None and full_form is not ours:
                return _result(function, full_form, args, options)
            raise _unsupported(function, name, ours)
    return ours(**translated)


@cache
def _takes_any(ours: Callable[..., Any]) -> bool:
    """Return whether a function takes options of any name."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(ours).parameters.values())


def _untraced(x: Any, name: str, is_file: bool) -> Any:
    """Return an argument of a function that writes files or text, an array as an ndarray."""
    if not recorder.is_array(x):
        return x
    if recorder.is_open(x):
        kind, instead = ("file", "save it outside") if is_file else ("text", "write it outside")
        raise TraceError(
            f"{name}: {recorder.describe(x)} is traced, and a replay writes no {kind}; return the array from the "
            f"function and {instead}."
        )
    return np.asarray(x)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or value is None or (type(value) is type(default) and bool(value == default))


def _unsupported(function: Callable[..., Any], argument: str, ours: Callable[..., Any]) -> ArgumentError:
    arguments = ", ".join(inspect.signature(ours).parameters)
    return ArgumentError(
        f"{_name(function)}: {argument}= is not supported on dlarrays; arguments are {arguments}."
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


# Functions of NumPy that are written in C have had a signature only since NumPy 2.4.
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
