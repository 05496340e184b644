# SPDX-License-Identifier: BSD-3-Clause
"""dlarray: an array with labels, whose operations are recorded while a trace is open.

Operators, methods and NumPy's protocols lead to the functions of the toolbox, and those to trace.apply.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, final

import numpy as np

from tracejit.aval import check_format, describe_shape
from tracejit.errors import ArgumentError, DimsError, TraceError
from tracejit.functions import elementwise, indexing, linear, movement, numpy_api, reductions
from tracejit.ir import Value
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util import html

_new = object.__new__
_apply: Callable[..., "dlarray"] = recorder.apply


@final
class dlarray:
    """An array of numbers with a label for each axis, or with none.

    Labels are S (spatial), C (channel), B (batch), T (time) and U (unspecified); C, B and T occur once at
    most. The order of the axes stays as given. Index assignment makes a new array underneath: neither
    the data that a dlarray was made of nor another dlarray that shares them is ever written.

    Args:
        data: array-like of numbers, anything with ``__dlpack__``, or a dlarray, which is relabelled and
            stays on its trace. An ndarray is shared, not copied; Python numbers become float64, int64
            or bool.
        format: one label for each axis, such as "CB"; None for an unformatted array (a dlarray given as
            data then keeps its labels; stripdims removes them).

    Raises:
        ArgumentError: if `data` is no array of numbers.
        DTypeError: if the dtype is not float64, float32, bool or an integer type.
        DimsError: if `format` does not fit.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.arange(6.0).reshape(2, 3), "BC")
        >>> x
        2(B) x 3(C) dlarray float64
        [[0. 1. 2.]
         [3. 4. 5.]]
        >>> (x + 1).sum().item()
        21.0
    """

    __slots__ = ("__weakref__", "_data", "_format", "_value")

    _data: np.ndarray
    _format: str | None
    _value: Value | None

    def __init__(self, data: Any, format: str | None = None) -> None:
        source = recorder.as_array(data, "dlarray")
        self._data = source._data
        self._format = (
            source._format if format is None else check_format("dlarray", format, source._data.ndim)
        )
        self._value = source._value

    @classmethod
    def _wrap(cls, data: np.ndarray, format: str | None, value: Value | None) -> "dlarray":
        """Return an array around checked parts."""
        array = _new(cls)
        array._data = data
        array._format = format
        array._value = value
        return array

    @property
    def format(self) -> str | None:
        """Labels of the axes, or None."""
        return self._format

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._data.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim

    @property
    def dtype(self) -> np.dtype:
        """Data type of the elements."""
        return self._data.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._data.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._data.nbytes

    @property
    def T(self) -> "dlarray":  # noqa: N802 - as ndarray has it
        """The array with its axes, and their labels, in reverse order."""
        return movement.transpose(self)

    def __len__(self) -> int:
        if not self._data.ndim:
            raise ArgumentError("len(): a scalar dlarray has no length; its size is 1.")
        return len(self._data)

    def __iter__(self) -> Iterator["dlarray"]:
        if not self._data.ndim:
            raise ArgumentError("iter(): a scalar dlarray cannot be iterated over; use item() for its value.")
        return (self[i] for i in range(len(self._data)))

    def __contains__(self, x: Any) -> bool:
        return bool(recorder.need_value((self == x).any(), "in", Decides.TRUTH))

    def __repr__(self) -> str:
        header = f"{describe_shape(self._data.shape, self._format)} dlarray {self._data.dtype}"
        if self._value is not None:
            # Printing must neither fail in a debugger nor freeze what a replay would compute afresh.
            if self._value.owner.closed:
                return f"{header} of a trace that has ended"
            if self._value.owner.accelerating:
                return f"{header} traced"
        return f"{header}\n{self._data}"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        header, _, rest = repr(self).partition("\n")
        return html.block(header, "", *([html.values(self._data)] if rest else []))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self._single("format()").item(), spec)

    # Values that leave the array

    def _single(self, what: str, decides: Decides = Decides.VALUE) -> np.ndarray:
        """Return the data of an array of one element for `what`, with no axes."""
        if self._data.size != 1:
            hint = "use any() or all()" if what == "bool()" else "reduce it or select an element first"
            raise DimsError(
                f"{what}: {recorder.describe(self)} has {self._data.size} elements, not one; {hint}."
            )
        return recorder.need_value(self, what, decides).reshape(())

    def __bool__(self) -> bool:
        return bool(self._single("bool()", Decides.TRUTH))

    def __float__(self) -> float:
        if self._value is not None and self._data.dtype.kind == "f" and recorder.is_storing():
            self._refuse_conversion("an element of an ndarray")
        return float(self._single("float()"))

    def __int__(self) -> int:
        return int(self._single("int()", Decides.WHOLE if self._data.dtype.kind == "f" else Decides.VALUE))

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iu" or self._data.ndim:
            raise ArgumentError(
                f"index: an integer scalar is needed, not {recorder.describe(self)}; cast it, for example with "
                "int(x)."
            )
        return int(self._single("index"))

    def __complex__(self) -> complex:
        return complex(self._single("complex()"))

    def item(self, *index: int) -> Any:
        """Return one element as a Python number: the only one, or that at `index`.

        Raises:
            DimsError: without an index, if there is more than one element.
        """
        if index:
            if recorder.steers(self):
                flat = len(index) == 1 and self._data.ndim > 1
                return (movement.ravel(self) if flat else self)[index].item()
            return recorder.need_value(self, "item()").item(*index)
        return self._single("item()").item()

    def tolist(self) -> Any:
        """Return the values as (nested lists of) Python numbers."""
        return recorder.need_value(self, "tolist()").tolist()

    def _refuse_conversion(self, target: str) -> None:
        raise TraceError(
            f"conversion of a traced {recorder.describe(self)} to {target} at "
            f"{recorder.describe_location(recorder.user_location())} would lose its derivative without a word. "
            "Use stack or concatenate instead of filling an ndarray, NumPy's functions on the dlarray itself, or, "
            "if its value is meant to be a constant, extractdata."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        data = recorder.need_value(self, "conversion to an ndarray")
        if self._value is not None and data.dtype.kind == "f":
            self._refuse_conversion("an ndarray")
        if copy:
            return np.array(data, dtype)
        wanted = data.dtype if dtype is None else np.dtype(dtype)
        if wanted != data.dtype:
            if copy is False:
                raise ValueError(f"dlarray: {data.dtype} data cannot be seen as {wanted} without a copy.")
            return data.astype(wanted)
        view = data.view()
        view.flags.writeable = False  # the array, and a tape that holds it, must not change
        return view

    def __dlpack__(self, **options: Any) -> Any:
        data = recorder.need_value(self, "__dlpack__()")
        # Whoever takes it may write to it, and a tape that holds it must not change.
        return (data if self._value is None else data.copy()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._value is not None:
            raise TraceError(
                f"copy or pickle: {recorder.describe(self)} is traced, and a trace cannot be taken along; use "
                "x.copy(), or extractdata(x) for its value."
            )
        return (dlarray, (self._data, self._format))

    # NumPy's protocols

    __array_priority__ = 1000.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return numpy_api.call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return numpy_api.call_function(function, args, options)

    # Operators

    def __pos__(self) -> "dlarray":
        return self

    def __neg__(self) -> "dlarray":
        return _apply("neg", self)

    def __abs__(self) -> "dlarray":
        return _apply("abs", self)

    def __invert__(self) -> "dlarray":
        return _apply("invert", self)

    def __round__(self, decimals: int = 0) -> "dlarray":
        return elementwise.round(self, decimals)

    def __add__(self, other: Any) -> "dlarray":
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> "dlarray":
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> "dlarray":
        return _apply("sub", self, other)

    def __rsub__(self, other: Any) -> "dlarray":
        return _apply("sub", other, self)

    def __mul__(self, other: Any) -> "dlarray":
        return _apply("mul", self, other)

    def __rmul__(self, other: Any) -> "dlarray":
        return _apply("mul", other, self)

    def __truediv__(self, other: Any) -> "dlarray":
        return _apply("div", self, other)

    def __rtruediv__(self, other: Any) -> "dlarray":
        return _apply("div", other, self)

    def __floordiv__(self, other: Any) -> "dlarray":
        return _apply("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> "dlarray":
        return _apply("floordiv", other, self)

    def __mod__(self, other: Any) -> "dlarray":
        return _apply("mod", self, other)

    def __rmod__(self, other: Any) -> "dlarray":
        return _apply("mod", other, self)

    def __pow__(self, other: Any) -> "dlarray":
        return elementwise.power(self, other)

    def __rpow__(self, other: Any) -> "dlarray":
        return _apply("pow", other, self)

    def __matmul__(self, other: Any) -> "dlarray":
        return linear.matmul(self, other)

    def __rmatmul__(self, other: Any) -> "dlarray":
        return linear.matmul(other, self)

    def __and__(self, other: Any) -> "dlarray":
        return _apply("bitwise_and", self, other)

    def __rand__(self, other: Any) -> "dlarray":
        return _apply("bitwise_and", other, self)

    def __or__(self, other: Any) -> "dlarray":
        return _apply("bitwise_or", self, other)

    def __ror__(self, other: Any) -> "dlarray":
        return _apply("bitwise_or", other, self)

    def __xor__(self, other: Any) -> "dlarray":
        return _apply("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> "dlarray":
        return _apply("bitwise_xor", other, self)

    def __eq__(self, other: Any) -> "dlarray":  # type: ignore[override]
        return _apply("equal", self, other)

    def __ne__(self, other: Any) -> "dlarray":  # type: ignore[override]
        return _apply("not_equal", self, other)

    def __lt__(self, other: Any) -> "dlarray":
        return _apply("less", self, other)

    def __le__(self, other: Any) -> "dlarray":
        return _apply("less_equal", self, other)

    def __gt__(self, other: Any) -> "dlarray":
        return _apply("greater", self, other)

    def __ge__(self, other: Any) -> "dlarray":
        return _apply("greater_equal", self, other)

    __hash__ = None  # type: ignore[assignment]  # == is elementwise, as for ndarray

    def __getitem__(self, key: Any) -> "dlarray":
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        result = indexing.setitem(self, key, value)
        self._data = result._data
        self._format = result._format
        self._value = result._value

    # Methods of ndarray

    def astype(self, dtype: Any) -> "dlarray":
        """Return the array in another dtype; see cast."""
        return elementwise.cast(self, dtype)

    def copy(self) -> "dlarray":
        """Return an array of its own, on the same trace; untraced data are copied."""
        # A recorded array is never written, and a copy of its data would not be what the tape holds.
        return dlarray._wrap(
            self._data if self._value is not None else self._data.copy(), self._format, self._value
        )

    def clip(self, min: Any = None, max: Any = None) -> "dlarray":
        """Return the array limited to [min, max]; see clip."""
        return elementwise.clip(self, min, max)

    def round(self, decimals: int = 0) -> "dlarray":
        """Return the array rounded to `decimals` places; see round."""
        return elementwise.round(self, decimals)

    def sum(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the sum over `axis`; see sum."""
        return reductions.sum(self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the product over `axis`; see prod."""
        return reductions.prod(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the mean over `axis`; see mean."""
        return reductions.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, keepdims: bool = False, *, ddof: float = 0) -> "dlarray":
        """Return the variance over `axis`; see var."""
        return reductions.var(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, keepdims: bool = False, *, ddof: float = 0) -> "dlarray":
        """Return the standard deviation over `axis`; see std."""
        return reductions.std(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the largest element over `axis`; see max."""
        return reductions.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the smallest element over `axis`; see min."""
        return reductions.min(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return whether any element over `axis` is true; see any."""
        return reductions.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return whether all elements over `axis` are true; see all."""
        return reductions.all(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the index of the largest element along `axis`; see argmax."""
        return reductions.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> "dlarray":
        """Return the index of the smallest element along `axis`; see argmin."""
        return reductions.argmin(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: Any = None) -> "dlarray":
        """Return the running sums along `axis`; see cumsum."""
        return reductions.cumsum(self, axis=axis)

    def dot(self, other: Any) -> "dlarray":
        """Return the dot product with `other`; see dot."""
        return linear.dot(self, other)

    def reshape(self, *shape: Any, order: Literal["C"] = "C") -> "dlarray":
        """Return the elements in another shape, given as one tuple or as several numbers; see reshape."""
        if order != "C":
            raise ArgumentError(
                f"reshape: order must be 'C', not {order!r}; transpose around the reshape instead."
            )
        return movement.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> "dlarray":
        """Return the elements along one axis."""
        return movement.ravel(self)

    def flatten(self) -> "dlarray":
        """Return the elements along one axis."""
        return movement.ravel(self)

    def transpose(self, *axes: Any) -> "dlarray":
        """Return the array with its axes, and their labels, in another order; see transpose."""
        return movement.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: Any, axis2: Any) -> "dlarray":
        """Return the array with two axes, and their labels, exchanged; see swapaxes."""
        return movement.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> "dlarray":
        """Return the array without its axes of size 1; see squeeze."""
        return movement.squeeze(self, axis)

    def repeat(self, repeats: int, axis: Any = None) -> "dlarray":
        """Return the array with each element repeated; see repeat."""
        return movement.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: Any = None) -> "dlarray":
        """Return the elements at `indices` along `axis`; see take."""
        return indexing.take(self, indices, axis)


recorder.register_array_class(dlarray)
