# SPDX-License-Identifier: BSD-3-Clause
"""dlarray: an array with labels, whose operations are recorded while a trace is open.

The class holds data, labels, conversions and the operators that are one op. The toolbox in functions/ is written in
terms of dlarrays, so it stands above this file. The methods that are functions of the toolbox are installed by
functions/numpy_api/methods.py. They are declared below for type checkers. Long because of these declarations.
"""

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Never, TypeVar, final

import numpy as np

from tracejit.aval import GIVE_DTYPE, check_format, describe_shape
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError, TraceError, TraceJitError
from tracejit.ir import Value
from tracejit.record import conversions, ndarrays, recorder, views
from tracejit.record.deferring import PLAIN, answer, answers_number
from tracejit.record.derived import elements, is_derived, otherwise, stands_for_ndarray
from tracejit.record.guards import Decides
from tracejit.record.monitor import dispatches, is_asked_by_user, is_printing
from tracejit.record.number import Number
from tracejit.record.plain_numbers import PlainNumber, note, note_list
from tracejit.util import html
from tracejit.util.arguments import integers
from tracejit.util.compositions import DRAWS, advice
from tracejit.util.frames import SOLVERS, called_by, called_method, is_storing, scipy_call
from tracejit.util.text import brief

UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "divmod": np.divmod, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
"""NumPy's functions by the names of operators."""
BUFFERS = (
    "Fill an array that holds traced values: one that np.zeros, np.ones, np.empty, np.full or np.array, called by "
    "name, made in the function, tj.dlarray(y).copy() of an ndarray y, "
    "or an attribute that is a dlarray (self.y = tj.dlarray(y)); or join the values with np.stack."
)
"""The advice where traced values are to go into an ndarray."""
_new = object.__new__
apply: Callable[..., "dlarray"] = recorder.apply
"""The door, recorder.apply, for ops of one result."""
wrap: Callable[..., "dlarray"] = recorder.wrap
as_array: Callable[..., "dlarray"] = recorder.as_array
_Unary = Callable[["dlarray"], "dlarray"]
_Binary = Callable[["dlarray", Any], "dlarray"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _unary(name: str, op: str) -> _Unary:
    """Return the method ``__name__`` that applies an op."""

    def method(self: "dlarray") -> "dlarray":
        try:
            return apply(op, self)
        except TraceJitError as error:
            return otherwise(error, numpys, self)  # type: ignore[no-any-return]

    numpys = getattr(operator, f"__{name}__")
    return _named(method, f"__{name}__")


def _binary(name: str, op: str) -> tuple[_Binary, _Binary]:
    """Return the methods ``__name__`` and ``__rname__`` that apply an op to an array and another operand."""

    def reflected(self: "dlarray", other: Any) -> "dlarray":
        if type(other) not in PLAIN:
            answered = answer(ufunc, self, other, is_reflected=True)
            if answered is not None:
                return answered  # type: ignore[no-any-return]
        try:
            return apply(op, other, self)
        except TraceJitError as error:
            return refused(error, numpys, other, self)  # type: ignore[no-any-return]

    numpys, ufunc = getattr(operator, f"__{name}__"), UFUNCS[name]
    return _comparison(name, op), _named(reflected, f"__r{name}__")


def _comparison(name: str, op: str) -> _Binary:
    """Return the method ``__name__`` that applies an op; Python reflects comparisons by itself."""

    def method(self: "dlarray", other: Any) -> "dlarray":
        if type(other) not in PLAIN:
            answered = answer(ufunc, self, other)
            if answered is not None:
                return answered  # type: ignore[no-any-return]
        if name in ("eq", "ne") and (other is None or type(other) is str):  # which equals no number
            return dlarray._wrap(np.full(self._data.shape, name == "ne"), self._format, None)
        try:
            return apply(op, self, other)
        except TraceJitError as error:
            return refused(error, numpys, self, other)  # type: ignore[no-any-return]

    numpys, ufunc = getattr(operator, f"__{name}__"), UFUNCS[name]
    return _named(method, f"__{name}__")


def refused(error: Exception, operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Return what an operator gives for operands that are refused, or raise the error.

    What has no place in arrays (``__array_ufunc__ = None``), such as a Polynomial, answers the operator itself, also as
    the one element of an array of objects; an ndarray does the same. An object that no array can hold answers for a
    number.
    """
    for other in (x, y):
        if getattr(type(other), "__array_ufunc__", error) is None:
            return NotImplemented
        if other is y and type(x) is dlarray and answers_number(x, other):
            return NotImplemented
        if type(other) is np.ndarray and other.dtype == object and not other.ndim:
            return operation(other.item(), y) if other is x else operation(x, other.item())
    return otherwise(error, operation, x, y)


def _in_place(name: str, sign: str) -> _Binary:
    """Return the method ``__name__`` that writes the result of an operator into the array itself."""
    computed = f"__{name[1:]}__"

    def assigned(self: "dlarray", other: Any) -> "dlarray":
        if type(other) not in PLAIN:
            answered = answer(ufunc, self, other, is_in_place=True)
            if answered is not None:
                return answered  # type: ignore[no-any-return]
        try:
            result = getattr(self, computed)(other)
            if result is NotImplemented:
                if views.is_scalar(self):  # += of a number makes a new one
                    return result  # type: ignore[no-any-return]
                result = as_array(other, sign)  # which refuses it
            return views.assign(self, result if type(result) is dlarray else as_array(result, sign), sign)  # type: ignore[no-any-return]
        except TraceJitError as error:
            return otherwise(error, numpys, self, other)  # type: ignore[no-any-return]

    numpys, ufunc = getattr(operator, f"__{name}__"), UFUNCS[name[1:]]
    return _named(assigned, f"__{name}__")


def _named(method: _Method, name: str) -> _Method:
    method.__name__, method.__qualname__ = name, f"dlarray.{name}"
    method.__annotations__.pop("self")
    return method


def _converted(array: "dlarray") -> np.ndarray:
    """Return the elements of an array that becomes an ndarray."""
    what = "conversion to an ndarray"
    if is_derived(array):
        return elements(array, what)
    data = recorder.need_value(array, what)
    if array._value is None or data.dtype.kind not in "fc":
        return data
    _check_becomes_plain(array, "an ndarray")
    return data.copy()


def _check_becomes_plain(array: "dlarray", target: str) -> None:
    """Note that a solver of SciPy's makes plain numbers of a traced array; anything else is an error.

    Raises:
        TraceError: if the array would become `target` otherwise.
    """
    scipy = scipy_call()
    if scipy is not None:
        name, where = scipy
        if name.startswith(SOLVERS):
            value: Any = array._value
            value.owner.plain_numbers.setdefault(value, PlainNumber(name, where))
            return
        raise TraceError(
            f"{name}: not supported on traced dlarrays, whose derivative it would drop "
            f"({recorder.describe(array)} at {recorder.describe_location(where)}); {advice(name)}."
        )
    method = called_method()
    if method in DRAWS:
        raise TraceError(
            f"{method}: NumPy's random numbers take no traced dlarray ({recorder.describe(array)} at "
            f"{recorder.describe_location(recorder.user_location())}); write {DRAWS[method]}. If the value is meant "
            "to be a constant, use extractdata."
        )
    raise TraceError(
        f"conversion of a traced {recorder.describe(array)} to {target} at "
        f"{recorder.describe_location(recorder.user_location())} would silently drop its derivative. "
        f"{BUFFERS} If the value is meant to be a constant, use extractdata."
    )


# NumPy's functions of polynomials do not dispatch: they ask whether the points are an ndarray, whose size then counts.
# So do its methods of means and variances, which divide sums in place if they are ndarrays.
_ASKING = ("numpy.polynomial.", "numpy._core._methods")


def _class_of(array: "dlarray") -> type:
    """Return the class that isinstance() takes an array to be of, besides its own.

    While something is recorded, the user's code is told what NumPy's arrays and numbers tell, whose place a dlarray
    takes there: the branch that it goes on in is the one for arrays. The code of libraries is told the truth, because
    they hand arrays to C.
    """
    if recorder.thread.recorder is not None and is_asked_by_user(2):
        numpys = array._data.dtype.type if views.is_scalar(array) else np.ndarray
        return dlarray if dispatches(2, dlarray, numpys) else numpys
    if stands_for_ndarray(array) or called_by(_ASKING):
        return np.ndarray
    return dlarray


@final
class dlarray:
    """An array of numbers with a label for each axis, or with none.

    Labels are S (spatial), C (channel), B (batch), T (time) and U (unspecified); C, B and T occur once at
    most. The order of the axes stays as given. Slices, transposes and reshapes are views, and ``x[i] = y``
    and ``x += y`` write into the elements, wherever NumPy does so.

    Args:
        data: array-like of numbers, anything with ``__dlpack__``, or a dlarray, which is relabelled and
            stays on its trace. An ndarray is shared, not copied; Python numbers become float64, int64
            or bool.
        format: one label for each axis, such as "CB"; None for an unformatted array (a dlarray given as
            data then keeps its labels; stripdims removes them).

    Raises:
        ArgumentError: if `data` is no array of numbers.
        DTypeError: if the dtype is not float64, float32, complex128, complex64, bool or an integer type.
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

    Long because it declares all methods of an array.
    """

    __slots__ = ("__weakref__", "_data", "_format", "_value", "_view")

    _data: np.ndarray
    _format: str | None
    _value: Value | None
    # What the array shares elements with in a recording, or None: see record/memory.py.
    _view: Any

    def __init__(self, data: Any, format: str | None = None, **unknown: Never) -> None:
        if unknown:
            name = next(iter(unknown))
            remedy = GIVE_DTYPE if name == "dtype" else "; arguments are data, format"
            raise ArgumentError(f"dlarray: unknown argument {name!r}{remedy}.")
        source = recorder.as_array(data, "dlarray", "data")
        recorder.check_open(source)
        recorder.note_dlarray(data, source)
        # An ndarray without axes is written, a number is not: is_scalar in record/views.py.
        is_kept = source._data.ndim or source is data or isinstance(data, (int, float, np.generic))
        self._data = source._data if is_kept else source._data[...]
        self._format = (
            source._format if format is None else check_format("dlarray", format, source._data.ndim)
        )
        self._value = source._value
        self._view = None
        views.link(self, views.holder(source) if source is data else source)

    @classmethod
    def _wrap(cls, data: np.ndarray, format: str | None, value: Value | None) -> "dlarray":
        """Return an array around checked parts."""
        array = _new(cls)
        array._data = data
        array._format = format
        array._value = value
        array._view = None
        return array

    __class__ = property(_class_of, vars(object)["__class__"].__set__)

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

    def __len__(self) -> int:
        if not self._data.ndim:
            raise ArgumentError("len(): a scalar dlarray has no length; its size is 1.")
        return len(self._data)

    def __iter__(self) -> Iterator["dlarray"]:
        if not self._data.ndim:
            raise ArgumentError("iter(): a scalar dlarray cannot be iterated over; use item() for its value.")
        return (self[i] for i in range(len(self._data)))

    def __contains__(self, x: Any) -> bool:
        equal: Any = self == x
        if type(equal) is not dlarray:  # NumPy compared
            return bool(np.any(equal))
        return bool(recorder.need_value(equal.any(), "in", Decides.TRUTH))

    def __hash__(self) -> int:  # == is elementwise, as for ndarray
        if views.is_scalar(self):
            return hash(recorder.need_value(self, "hash()")[()])
        raise ArgumentError(
            f"hash(): {recorder.describe(self)} has none, because its elements can change; "
            + ("x.item() is a number that has one." if self._data.size == 1 else "bytes(x) has one.")
            + " Let a function under functools.lru_cache take numbers or bytes."
        )

    def __repr__(self) -> str:
        header = f"{describe_shape(self._data.shape, self._format)} dlarray {self._data.dtype}"
        if is_derived(self):  # NumPy's code has an ndarray here, whose text the function may return
            return repr(elements(self, "repr()"))
        # Printing must neither fail in a debugger nor freeze what a replay would compute afresh.
        if self._value is not None and self._value.owner.accelerating and not self._value.owner.closed:
            if not views.is_scalar(self) or is_printing():
                return f"{header} traced"
            recorder.need_value(self, "str()")
        return f"{header}\n{self._data}"

    def _repr_html_(self) -> str:
        header, _, rest = repr(self).partition("\n")
        return html.block(header, "", *([html.values(self._data)] if rest else []))

    def __dir__(self) -> list[str]:
        return [
            name for name in super().__dir__() if hasattr(dlarray, name)
        ]  # without those that say what works

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self._single("format()").item(), spec)

    # Values that leave the array

    def _single(self, what: str, decides: Decides = Decides.VALUE) -> np.ndarray:
        """Return the data of an array of one element, which `what` needs, without axes."""
        if self._data.size != 1:
            hint = "use any() or all()" if what == "bool()" else "reduce it or select an element first"
            # As NumPy, which raises a ValueError, or a TypeError.
            error = DimsError if what in ("bool()", "item()") else ArgumentError
            raise error(f"{what}: {recorder.describe(self)} has {self._data.size} elements, not one; {hint}.")
        return recorder.need_value(self, what, decides).reshape(())

    def _becomes_plain(self) -> bool:
        """Return whether a number made of the array would lack a derivative that the array has."""
        return self._value is not None and self._data.dtype.kind in "fc" and recorder.is_open(self)

    def __bool__(self) -> bool:
        return bool(self._single("bool()", Decides.TRUTH))

    def __float__(self) -> float:
        number = conversions.shown(self, float, sys._getframe(1)) if conversions.varies(self) else None
        if number is not None:
            return number  # type: ignore[no-any-return]
        if self._becomes_plain():
            if self._data.dtype.kind == "f" and is_storing() and not is_derived(self):
                _check_becomes_plain(self, "an element of an ndarray")
            note(self)
        return float(self._single("float()"))

    def __int__(self) -> int:
        number = conversions.shown(self, int, sys._getframe(1)) if conversions.varies(self) else None
        if number is not None:
            return number  # type: ignore[no-any-return]
        return int(self._single("int()", Decides.WHOLE if self._data.dtype.kind == "f" else Decides.VALUE))

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iu" or self._data.ndim:
            raise ArgumentError(
                f"index: an integer scalar is needed, not {recorder.describe(self)}; cast it, for example with "
                "int(x)."
            )
        return int(self._single("index"))

    def __complex__(self) -> complex:
        if self._becomes_plain():
            note(self)
        return complex(self._single("complex()"))

    def item(self, *index: int) -> Any:
        """Return one element as a Python number: the only one, or that at `index`.

        Raises:
            DimsError: without an index, if there is more than one element.
            BoundsError: (an IndexError) if there is no element at `index`.
        """
        if index:
            places = integers("item", "index", index[0] if len(index) == 1 else index)
            if recorder.steers(self) or recorder.is_captured(self) or self._becomes_plain():
                flat = len(places) == 1 and self._data.ndim > 1
                return (self.ravel() if flat else self)[places].item()
            try:
                return recorder.need_value(self, "item()").item(*places)
            except (IndexError, OverflowError, ValueError):
                raise BoundsError(
                    f"item: {brief(places)} is no place of x ({recorder.describe(self)}); give an element's number "
                    "in C order, or one index for each axis."
                ) from None
        number = conversions.element(self) if conversions.varies(self) else None
        if number is not None:
            return number
        if self._becomes_plain():
            note(self)
        return self._single("item()").item()

    def tolist(self) -> Any:
        """Return the values as (nested lists of) Python numbers."""
        listed = conversions.elements(self) if conversions.varies(self) else None
        if listed is not None:
            return listed
        if self._becomes_plain():
            note_list(self)
        return recorder.need_value(self, "tolist()").tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        memory = ndarrays.memory_of(self)
        data = _converted(self) if memory is None else memory
        if copy:
            return np.array(data, dtype)
        wanted = data.dtype if dtype is None else np.dtype(dtype)
        if wanted != data.dtype:
            if copy is False:
                raise ValueError(f"dlarray: {data.dtype} data cannot be seen as {wanted} without a copy.")
            return data.astype(wanted)
        if memory is not None:
            return memory
        view = data.view()
        view.flags.writeable = False  # the array, and a tape that holds it, must not change
        return view

    def __deepcopy__(self, memo: Any = None) -> "dlarray":
        return views.copy(self)  # type: ignore[no-any-return]

    __copy__ = __deepcopy__

    # Operators that are one op: each calls the door with the name of that op.

    __array_priority__ = 1000.0

    def __pos__(self) -> "dlarray":
        return views.number(views.copy(signed(self, "positive")))  # type: ignore[no-any-return]

    __neg__ = _unary("neg", "neg")
    __abs__ = _unary("abs", "abs")
    __invert__ = _unary("invert", "invert")
    __add__, __radd__ = _binary("add", "add")
    __sub__, __rsub__ = _binary("sub", "sub")
    __mul__, __rmul__ = _binary("mul", "mul")
    __truediv__, __rtruediv__ = _binary("truediv", "div")
    __floordiv__, __rfloordiv__ = _binary("floordiv", "floordiv")
    __mod__, __rmod__ = _binary("mod", "mod")
    __rpow__ = _binary("pow", "pow")[1]
    __and__, __rand__ = _binary("and", "bitwise_and")
    __or__, __ror__ = _binary("or", "bitwise_or")
    __xor__, __rxor__ = _binary("xor", "bitwise_xor")
    __lshift__, __rlshift__ = _binary("lshift", "left_shift")
    __rshift__, __rrshift__ = _binary("rshift", "right_shift")
    __iadd__ = _in_place("iadd", "+=")
    __isub__ = _in_place("isub", "-=")
    __imul__ = _in_place("imul", "*=")
    __itruediv__ = _in_place("itruediv", "/=")
    __ifloordiv__ = _in_place("ifloordiv", "//=")
    __imod__ = _in_place("imod", "%=")
    __ipow__ = _in_place("ipow", "**=")
    __imatmul__ = _in_place("imatmul", "@=")
    __iand__ = _in_place("iand", "&=")
    __ior__ = _in_place("ior", "|=")
    __ixor__ = _in_place("ixor", "^=")
    __ilshift__ = _in_place("ilshift", "<<=")
    __irshift__ = _in_place("irshift", ">>=")
    __eq__ = _comparison("eq", "equal")  # type: ignore[assignment]
    __ne__ = _comparison("ne", "not_equal")  # type: ignore[assignment]
    __lt__ = _comparison("lt", "less")
    __le__ = _comparison("le", "less_equal")
    __gt__ = _comparison("gt", "greater")
    __ge__ = _comparison("ge", "greater_equal")

    # Methods that are functions of the toolbox: functions/numpy_api/methods.py, above this file, installs them.

    if TYPE_CHECKING:

        @property
        def T(self) -> "dlarray": ...  # noqa: N802 - as ndarray has it
        @property
        def device(self) -> str: ...
        @property
        def __cuda_array_interface__(self) -> Any: ...
        @property
        def mT(self) -> "dlarray": ...  # noqa: N802 - as above
        @property
        def real(self) -> "dlarray": ...
        @property
        def imag(self) -> "dlarray": ...
        def conj(self) -> "dlarray": ...
        def conjugate(self) -> "dlarray": ...
        def __dlpack__(
            self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
        ) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...
        def to_device(self, device: Any, /, *, stream: Any = None) -> "dlarray": ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any: ...
        def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any: ...
        def __round__(self, decimals: int | None = None) -> Any: ...
        def __divmod__(self, other: Any) -> "tuple[dlarray, dlarray]": ...
        def __rdivmod__(self, other: Any) -> "tuple[dlarray, dlarray]": ...
        def fill(self, value: Any) -> None: ...
        def copy(self, order: str = "C") -> "dlarray": ...
        def __str__(self) -> str: ...
        def __reduce__(self) -> tuple[Any, ...]: ...
        def __bytes__(self) -> bytes: ...
        def nonzero(self) -> "tuple[dlarray, ...]": ...
        def __pow__(self, other: Any) -> "dlarray": ...
        def __matmul__(self, other: Any) -> "dlarray": ...
        def __rmatmul__(self, other: Any) -> "dlarray": ...
        def __getitem__(self, key: Any) -> Any: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def astype(
            self, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: Any = True, copy: Any = True
        ) -> "dlarray": ...
        def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> "dlarray": ...
        def round(self, decimals: int = 0, out: Any = None) -> "dlarray": ...
        def sum(
            self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def prod(
            self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def mean(
            self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def var(
            self,
            axis: Any = None,
            dtype: Any = None,
            out: Any = None,
            ddof: float = 0,
            keepdims: bool = False,
            **options: Any,
        ) -> "dlarray": ...
        def std(
            self,
            axis: Any = None,
            dtype: Any = None,
            out: Any = None,
            ddof: float = 0,
            keepdims: bool = False,
            **options: Any,
        ) -> "dlarray": ...
        def max(
            self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def min(
            self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def any(
            self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def all(
            self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
        ) -> "dlarray": ...
        def argmax(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> "dlarray": ...
        def argmin(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> "dlarray": ...
        def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> "dlarray": ...
        def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> "dlarray": ...
        def trace(
            self, offset: int = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
        ) -> "dlarray": ...
        def dot(self, other: Any, out: Any = None) -> "dlarray": ...
        def argsort(
            self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
        ) -> "dlarray": ...
        def sort(
            self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
        ) -> None: ...
        def partition(
            self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
        ) -> None: ...
        def argpartition(
            self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
        ) -> "dlarray": ...
        def put(self, indices: Any, values: Any, mode: Any = "raise") -> None: ...
        def diagonal(self, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> "dlarray": ...
        def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> "dlarray": ...
        def ravel(self, order: Any = "C") -> "dlarray": ...
        def flatten(self, order: Any = "C") -> "dlarray": ...
        def transpose(self, *axes: Any) -> "dlarray": ...
        def swapaxes(self, axis1: Any, axis2: Any) -> "dlarray": ...
        def squeeze(self, axis: Any = None) -> "dlarray": ...
        def repeat(self, repeats: int, axis: Any = None) -> "dlarray": ...
        def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> "dlarray": ...
        def choose(self, choices: Any, out: Any = None, mode: Any = "raise") -> "dlarray": ...
        def compress(self, condition: Any, axis: Any = None, out: Any = None) -> "dlarray": ...
        def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> "dlarray": ...
        def tobytes(self, order: Any = "C") -> bytes: ...
        def view(self, dtype: Any = None, type: Any = None) -> "dlarray": ...
        @property
        def flags(self) -> Any: ...
        @property
        def flat(self) -> Any: ...
        @property
        def strides(self) -> tuple[int, ...]: ...


recorder.register_array_class(dlarray)
PLAIN.update((dlarray, Number))


def signed(array: dlarray, function: str) -> dlarray:
    """Return an array, unless it consists of bools, which NumPy gives no sign and no places.

    Raises:
        DTypeError: if it does.
    """
    if array._data.dtype.kind == "b":
        raise DTypeError(f"{function}: not defined for bool; cast the operands first (x.astype(np.float64)).")
    return array
