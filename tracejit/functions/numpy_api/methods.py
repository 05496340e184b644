# SPDX-License-Identifier: BSD-3-Clause
"""The methods of dlarray that are functions of the toolbox, installed on the class when tracejit is imported.

dlarray declares each of them for type checkers (tracejit/array.py); a test compares the two. Long because it has all
methods of an array.
"""

import functools
import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import apply, as_array, dlarray, refused
from tracejit.errors import ArgumentError, DimsError, DTypeError, TraceError, TraceJitError, WriteError
from tracejit.functions import elementwise, indexing, linear, movement, padding, selected_keys, taking
from tracejit.functions.numpy_api import dispatch, exchange, reducing, seen
from tracejit.record import conversions, recorder, views
from tracejit.record.deferring import PLAIN, answer, has_override
from tracejit.record.derived import as_number, elements, is_derived, otherwise, settle
from tracejit.record.memory import is_ndarray
from tracejit.util.arguments import is_option
from tracejit.util.compositions import ADVICE, ATTRIBUTES, advice_about_attribute
from tracejit.util.frames import SOLVERS, called_by
from tracejit.util.other_names import TENSORS
from tracejit.util.text import brief

_numpy: Any = np  # whose functions answer for dlarrays
_UNSUPPORTED = (TraceJitError, TypeError)


def reversed_axes(self: dlarray) -> dlarray:
    """The array with its axes, and their labels, in reverse order."""
    return movement.transpose(self)


def array_ufunc(self: dlarray, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    if any(map(has_override, inputs)):
        return NotImplemented  # NumPy asks the next one
    kept = options.copy()
    try:
        result = dispatch.call_ufunc(ufunc, method, inputs, options)
        return result if kept.get("out") is not None else as_number(dispatch.in_form(ufunc, result))
    except _UNSUPPORTED as error:
        return otherwise(error, getattr(ufunc, method), *inputs, **kept)


def array_function(self: dlarray, function: Any, types: Any, args: Any, options: Any) -> Any:
    if recorder.thread.recorder is None and called_by(SOLVERS):
        # Their Python code hands what it got to code in C, which takes ndarrays alone.
        args, options = tree.map(_plain, (args, options))
        return function(*args, **options)
    kept = options.copy()
    try:
        result = dispatch.call_function(function, args, options)
        return result if kept.get("out") is not None else as_number(dispatch.in_form(function, result))
    except _UNSUPPORTED as error:
        return otherwise(error, function, *args, **kept)


def _plain(given: Any) -> Any:
    return given._data if type(given) is dlarray else given


def round_to(self: dlarray, decimals: int | None = None) -> Any:
    if decimals is None and not self._data.ndim and self._data.dtype.kind == "c":
        raise DTypeError(
            "round: a complex number has no nearest integer; np.round(x) rounds its real and its imaginary part."
        )
    rounded = elementwise.round(self, 0 if decimals is None else decimals)
    if decimals is not None or self._data.ndim:
        return rounded
    number = conversions.element(rounded, int)  # of a number, as Python's
    return int(rounded) if number is None else number


_EXACT = {(float, 0.5): elementwise.sqrt, (int, -1): elementwise.reciprocal}  # of complex numbers


def power(self: dlarray, other: Any) -> dlarray:
    if type(other) not in PLAIN:
        answered = answer(np.power, self, other)
        if answered is not None:
            return answered  # type: ignore[no-any-return]
    if type(other) is int and other == 2 and self._data.dtype.kind == "b" and not views.is_scalar(self):
        return elementwise.square(self)  # the operator, unlike np.power, gives int8 for arrays
    if self._data.dtype.kind == "c" and type(other) in (int, float) and self._data.ndim:
        exact = _EXACT.get((type(other), other))  # as NumPy's operator, whose numbers differ from np.power's
        if exact is not None:
            return exact(self)
    try:
        return elementwise.power(self, other)
    except TraceJitError as error:
        return refused(error, operator.pow, self, other)  # type: ignore[no-any-return]


def matmul(self: dlarray, other: Any) -> dlarray:
    if type(other) not in PLAIN:
        answered = answer(np.matmul, self, other)
        if answered is not None:
            return answered  # type: ignore[no-any-return]
    try:
        return as_number(linear.matmul(self, other))  # type: ignore[no-any-return]
    except TraceJitError as error:
        return refused(error, operator.matmul, self, other)  # type: ignore[no-any-return]


def reflected_matmul(self: dlarray, other: Any) -> dlarray:
    answered = answer(np.matmul, self, other, is_reflected=True)
    if answered is not None:
        return answered  # type: ignore[no-any-return]
    try:
        return as_number(linear.matmul(other, self))  # type: ignore[no-any-return]
    except TraceJitError as error:
        return otherwise(error, operator.matmul, other, self)  # type: ignore[no-any-return]


def getitem(self: dlarray, key: Any) -> Any:
    try:
        selection = selected_keys.getitem(self, key)
        result = indexing.getitem(self, key) if selection is None else selection
    except TraceJitError as error:
        return otherwise(error, operator.getitem, self, key)
    if result._data.ndim:
        return result
    if result._view is None or not views.is_scalar(result) or not is_ndarray(result):
        return as_number(result)
    return result._data[()]  # an element of a constant is the number that NumPy gives


def setitem(self: dlarray, key: Any, value: Any) -> None:
    try:
        if not selected_keys.assign(self, key, value):
            indexing.assign(self, key, value)
    except TraceJitError as error:
        otherwise(error, operator.setitem, self, key, value)


def astype(
    self: dlarray, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: Any = True, copy: Any = True
) -> dlarray:
    """Return the array in another dtype; see cast. Without `copy` it is the array itself where it has that dtype.

    `order` and `subok` say what memory and class NumPy's result has; results are dlarrays whose memory has no order.
    """
    if casting != "unsafe" and not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"astype: {self.dtype} numbers cannot be cast to {np.dtype(dtype)} with casting={brief(casting)}; leave "
            'casting= out, or pass "unsafe".'
        )
    if not copy and self.dtype == np.dtype(dtype):
        return self
    return views.as_given(elementwise.cast(self, dtype), self)  # type: ignore[no-any-return]


def clip(self: dlarray, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> dlarray:
    """Return the array limited to [min, max]; see clip."""
    if out is not None or options:
        return _numpy.clip(self, min, max, out=out, **options)  # type: ignore[no-any-return]
    return elementwise.clip(self, min, max)


def round(self: dlarray, decimals: int = 0, out: Any = None) -> dlarray:
    """Return the array rounded to `decimals` places; see round."""
    if out is not None:
        return _numpy.round(self, decimals, out=out)  # type: ignore[no-any-return]
    return views.number(elementwise.round(self, decimals))  # type: ignore[no-any-return]


def real(self: dlarray) -> dlarray:
    """The real parts, which share memory with the array; of real numbers the array itself."""
    return apply("real", self) if self._data.dtype.kind == "c" else self


def imag(self: dlarray) -> dlarray:
    """The imaginary parts, which share memory with the array; of real numbers zeros, which are read-only."""
    return _numpy.imag(self)  # type: ignore[no-any-return]


def conj(self: dlarray) -> dlarray:
    """Return the conjugates; see np.conjugate. An array of other numbers than complex ones is returned itself."""
    return _numpy.conjugate(self) if self.dtype.kind == "c" else self


def conjugate(self: dlarray) -> dlarray:
    """Return the conjugates; see np.conjugate."""
    return conj(self)


def _set_real(self: dlarray, value: Any) -> None:
    setitem(real(self), ..., value)


def _set_imag(self: dlarray, value: Any) -> None:
    if self._data.dtype.kind != "c":
        raise WriteError(
            "imag: an array of real numbers has no imaginary parts to write; cast it (x.astype(complex))."
        )
    setitem(imag(self), ..., value)


def argsort(
    self: dlarray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> dlarray:
    """Return the places that sort the array along `axis`; see np.argsort."""
    result: dlarray = _numpy.argsort(self, axis, kind, order, stable=stable)
    return result


def sort(self: dlarray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort the array along `axis` in place."""
    views.assign(self, as_array(_numpy.sort(self, axis, kind, order, stable=stable)), "sort")


def partition(self: dlarray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
    """Put the elements that `kth` names where they belong in sorted order along `axis`, smaller ones before them."""
    views.assign(self, as_array(_numpy.partition(self, kth, axis, kind, order)), "partition")


def put(self: dlarray, indices: Any, values: Any, mode: Any = "raise") -> None:
    """Write `values` at places in C order; see np.put."""
    _numpy.put(self, indices, values, mode)


def diagonal(self: dlarray, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> dlarray:
    """Return the diagonal of two axes as the last one; see np.diagonal."""
    result: dlarray = _numpy.diagonal(self, offset, axis1, axis2)
    return result


def reshape(self: dlarray, *shape: Any, order: Any = "C", copy: Any = None) -> dlarray:
    """Return the elements in another shape, given as one tuple or as several numbers; see np.reshape."""
    sizes = shape[0] if len(shape) == 1 else shape
    if copy is None and is_option(order, ("C",)):
        return movement.reshape(self, sizes)
    return reducing.answer("reshape", self, sizes, order=order, copy=copy)  # type: ignore[no-any-return]


def ravel(self: dlarray, order: Any = "C") -> dlarray:
    """Return the elements along one axis; see np.ravel."""
    if is_option(order, ("C",)):
        return movement.ravel(self)
    return reducing.answer("ravel", self, order=order)  # type: ignore[no-any-return]


def flatten(self: dlarray, order: Any = "C") -> dlarray:
    """Return a copy of the elements along one axis; see np.ravel."""
    if is_option(order, ("C",)):
        return movement.flatten(self)
    return views.apart(ravel(self, order), self, "C")  # type: ignore[no-any-return]


def transpose(self: dlarray, *axes: Any) -> dlarray:
    """Return the array with its axes, and their labels, in another order; see transpose."""
    return movement.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def swapaxes(self: dlarray, axis1: Any, axis2: Any) -> dlarray:
    """Return the array with two axes, and their labels, exchanged; see swapaxes."""
    return movement.swapaxes(self, axis1, axis2)


def squeeze(self: dlarray, axis: Any = None) -> dlarray:
    """Return the array without its axes of size 1; see squeeze."""
    return movement.squeeze(self, axis)


def repeat(self: dlarray, repeats: int, axis: Any = None) -> dlarray:
    """Return the array with each element repeated; see repeat."""
    return padding.repeat(self, repeats, axis)


def take(self: dlarray, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> dlarray:
    """Return the elements at `indices` along `axis`; see np.take."""
    if out is None and is_option(mode, ("raise",)):
        return taking.take(self, indices, axis)
    return reducing.answer("take", self, indices, axis=axis, out=out, mode=mode)  # type: ignore[no-any-return]


def choose(self: dlarray, choices: Any, out: Any = None, mode: Any = "raise") -> dlarray:
    """Return for each element, which is a number of a choice, the element of that choice; see np.choose."""
    return reducing.answer("choose", self, choices, out=out, mode=mode)  # type: ignore[no-any-return]


def compress(self: dlarray, condition: Any, axis: Any = None, out: Any = None) -> dlarray:
    """Return the elements along `axis` where a condition holds; see np.compress."""
    return reducing.answer("compress", condition, self, axis=axis, out=out)  # type: ignore[no-any-return]


def searchsorted(self: dlarray, v: Any, side: Any = "left", sorter: Any = None) -> dlarray:
    """Return the places where `v` fits into the array, which is sorted; see np.searchsorted."""
    return reducing.answer("searchsorted", self, v, side=side, sorter=sorter)  # type: ignore[no-any-return]


def argpartition(
    self: dlarray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> dlarray:
    """Return the places that partition the array along `axis`; see np.argpartition."""
    result: dlarray = _numpy.argpartition(self, kth, axis, kind, order)
    return result


def tobytes(self: dlarray, order: Any = "C") -> bytes:
    """Return the bytes of the elements in C order, or in the order of memory."""
    return recorder.need_value(self, "tobytes()").tobytes(order)


def strides(self: dlarray) -> tuple[int, ...]:
    """The bytes from one element to the next along each axis."""
    return self._data.strides


def fill(self: dlarray, value: Any) -> None:
    """Set every element to `value`, as x[...] = value; of a number nothing, as in NumPy."""
    if not views.is_scalar(self):
        self[...] = value


def copy(self: dlarray, order: str = "C") -> dlarray:
    """Return an array of its own, on the same trace, in memory in the order "C", "F", or "K", that of `self`."""
    if not is_option(order, ("C", "K", "A", "F")):
        raise ArgumentError(f"copy: order must be 'C', 'K', 'A' or 'F', not {brief(order)}.")
    if order == "F" or (order == "A" and self._data.flags.f_contiguous):
        return views.copy(self.T, "C").T  # type: ignore[no-any-return]
    return views.copy(self, "K" if order == "K" else "C")  # type: ignore[no-any-return]


def text(self: dlarray) -> str:
    if is_derived(self):
        return str(elements(self, "str()"))
    shown = repr(self)
    # A number is printed as NumPy prints it: it has no format to show.
    return shown if self._data.ndim or "\n" not in shown else str(self._data)


def pickled(self: dlarray) -> tuple[Any, ...]:
    if is_derived(self):
        return elements(self, "pickle").copy().__reduce__()  # type: ignore[return-value]
    if recorder.is_open(self):
        raise TraceError(
            f"pickle: {recorder.describe(self)} is traced, and a trace cannot be pickled; use extractdata(x) for "
            "its value."
        )
    return (dlarray, (self._data, self._format))


def memory(self: dlarray) -> bytes:
    return recorder.need_value(self, "bytes()").tobytes()


def nonzero(self: dlarray) -> tuple[dlarray, ...]:
    """Return the places where the array is not zero; see nonzero."""
    return taking.nonzero(self)


def divided(self: dlarray, other: Any) -> tuple[dlarray, dlarray]:
    answered = answer(np.divmod, self, other)
    if answered is not None:
        return answered  # type: ignore[no-any-return]
    try:
        return elementwise.floor_divide(self, other), elementwise.remainder(self, other)
    except TraceJitError as error:
        return refused(error, divmod, self, other)  # type: ignore[no-any-return]


def reflected_divided(self: dlarray, other: Any) -> tuple[dlarray, dlarray]:
    answered = answer(np.divmod, self, other, is_reflected=True)
    if answered is not None:
        return answered  # type: ignore[no-any-return]
    return elementwise.floor_divide(other, self), elementwise.remainder(other, self)


class Absent:
    """An attribute of an ndarray or a tensor that a dlarray does not have; whoever reads it is told what works.

    An array that NumPy made in a recorded function has that of an ndarray as long as it holds nothing that somebody may
    differentiate.

    A __getattr__ would be shorter, but with one CPython looks up every attribute in a slower way.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None and is_derived(instance):
            settle(instance, self._name)
        if instance is not None and is_ndarray(instance) and hasattr(np.ndarray, self._name):
            return getattr(instance._data, self._name)
        raise self._error()

    def _error(self) -> AttributeError:
        return AttributeError(
            f"'dlarray' object has no attribute {self._name!r}: {advice_about_attribute(self._name)}."
        )

    def __set__(self, instance: Any, value: Any) -> None:
        if self._name in TENSORS:
            raise self._error()
        if self._name != "flat" or not is_ndarray(instance) or isinstance(value, dlarray):
            raise AttributeError(
                f"attribute {self._name!r} of a dlarray cannot be set; write x[...] = values."
            )
        instance._data.flat = value


def array_namespace(self: dlarray, *, api_version: str | None = None) -> Any:
    """Return the functions of the Python array API standard, ``tj.xp``."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ArgumentError(
            f"__array_namespace__: api_version is {brief(api_version)}, expected '2025.12' or an earlier one."
        )
    return importlib.import_module("tracejit.xp")  # which stands above, as the package does


def turned_matrices(self: dlarray) -> dlarray:
    """Return the array with its last two axes exchanged."""
    if self.ndim < 2:
        raise DimsError(f"mT: an array of {self.ndim} axes holds no matrices; use reshape.")
    return self.swapaxes(-1, -2)


METHODS: dict[str, Callable[..., Any]] = {
    "T": reversed_axes,
    "__array_namespace__": array_namespace,
    "__cuda_array_interface__": exchange.cuda_array_interface,
    "__dlpack__": exchange.dlpack,
    "__dlpack_device__": exchange.dlpack_device,
    "device": exchange.device,
    "mT": turned_matrices,
    "to_device": exchange.to_device,
    "__array_function__": array_function,
    "__array_ufunc__": array_ufunc,
    "__bytes__": memory,
    "__divmod__": divided,
    "__getitem__": getitem,
    "__matmul__": matmul,
    "__pow__": power,
    "__rdivmod__": reflected_divided,
    "__rmatmul__": reflected_matmul,
    "__reduce__": pickled,
    "__round__": round_to,
    "__setitem__": setitem,
    "__str__": text,
    "all": reducing.all,
    "any": reducing.any,
    "argmax": reducing.argmax,
    "argmin": reducing.argmin,
    "astype": astype,
    "clip": clip,
    "copy": copy,
    "argpartition": argpartition,
    "argsort": argsort,
    "choose": choose,
    "compress": compress,
    "cumprod": reducing.cumprod,
    "cumsum": reducing.cumsum,
    "diagonal": diagonal,
    "dot": reducing.dot,
    "fill": fill,
    "flags": seen.flags,
    "flat": seen.flat,
    "flatten": flatten,
    "max": reducing.max,
    "mean": reducing.mean,
    "min": reducing.min,
    "nonzero": nonzero,
    "prod": reducing.prod,
    "ravel": ravel,
    "repeat": repeat,
    "real": real,
    "imag": imag,
    "conj": conj,
    "conjugate": conjugate,
    "reshape": reshape,
    "round": round,
    "searchsorted": searchsorted,
    "partition": partition,
    "put": put,
    "sort": sort,
    "squeeze": squeeze,
    "std": reducing.std,
    "strides": strides,
    "sum": reducing.sum,
    "swapaxes": swapaxes,
    "take": take,
    "tobytes": tobytes,
    "trace": reducing.trace,
    "transpose": transpose,
    "var": reducing.var,
    "view": seen.view,
}


SETTERS: dict[str, Any] = dict.fromkeys(("T", "__cuda_array_interface__", "device", "flags", "mT", "strides"))
SETTERS |= {"real": _set_real, "imag": _set_imag, "flat": seen.set_flat}
"""Properties, with the functions that set them."""
PROPERTIES = tuple(SETTERS)
_GUARDED = (
    "__array_function__", "__array_namespace__", "__array_ufunc__", "__bytes__", "__dlpack__", "__dlpack_device__",
    "__getitem__", "__matmul__", "__pow__", "__reduce__", "__rmatmul__", "__round__", "__setitem__", "__str__",
)  # fmt: skip
"""Methods that do by themselves what _as_ndarrays_otherwise() does for others, since they are called often."""


def _as_ndarrays_otherwise(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that lets NumPy do what it does not support, where dlarrays stand for ndarrays."""

    @functools.wraps(function)
    def method(self: dlarray, *args: Any, **options: Any) -> Any:
        try:
            return as_number(function(self, *args, **options))
        except _UNSUPPORTED as error:
            return otherwise(error, numpys, self, *args, **options)

    numpys = getattr(np.ndarray, name)
    return method


def install() -> None:
    """Complete dlarray, as if the methods stood in its body: help, signatures and pickles name the class."""
    for name, function in METHODS.items():
        function.__name__, function.__qualname__ = name, f"dlarray.{name}"
        function.__module__ = dlarray.__module__
        function.__annotations__.pop("self", None)  # gone already where tracejit is reloaded
        if name in PROPERTIES:
            attribute = property(function, SETTERS[name])
            attribute.__set_name__(dlarray, name)  # type: ignore[attr-defined]  # which errors show
            setattr(dlarray, name, attribute)
        else:
            method = function if name in _GUARDED else _as_ndarrays_otherwise(name, function)
            setattr(dlarray, name, method)
    shape: Any = vars(dlarray)["shape"]
    dlarray.shape = shape.setter(seen.set_shape)  # type: ignore[method-assign]
    for name in (*ATTRIBUTES, *ADVICE, *TENSORS):
        setattr(dlarray, name, Absent(name))
