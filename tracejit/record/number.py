# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of Python and NumPy as inputs of a trace: arguments whose values change from call to call.

A Number stands for a number while a function is recorded. Arithmetic with a Python number is recorded in the precision
that Python has (float64, int64), and where it meets an array it takes the array's dtype as a Python number does; a
number of NumPy has its own dtype. The outcome of a comparison is a guard. Anything that needs the number itself
(a format, a key of a dict) gets it; the number is then *needed*, and its value selects the trace again (Note [numbers
that vary] in arithmetic.py).

Note [numbers of arrays]
math.sin(x[0]) is a number of Python's, too, but no argument: it is computed from the elements of an array. Its value
cannot select a trace, so it is a guard where it is needed. And it has a derivative, which a true number lacks. So the
object stays a Number when its value has been asked for, and becomes a true one only where C code insists on the type
(crossings.py), or when the recording has ended. Who makes it a true number is noted, as for arrays (Note [plain
numbers] in plain_numbers.py).

Long because one class has all methods of numbers.
"""

import gc
import math
import operator
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tracejit.aval import NUMPY_SCALARS
from tracejit.errors import TraceError
from tracejit.record import arithmetic, become, conversions, made_arrays, recorder
from tracejit.record.arithmetic import SUM, compared, computed, holds
from tracejit.record.guards import Decides
from tracejit.record.places import at_location
from tracejit.record.plain_numbers import computes, note, note_use
from tracejit.util.devices import on_host
from tracejit.util.frames import is_storing

_INT64_MAX = np.iinfo(np.int64).max
_OF_SCALARS = {"shape": (), "ndim": 0, "size": 1}  # attributes that the numbers of NumPy have


class Number:
    """A number that is an input of a trace, or was computed from one.

    It says that it is an instance of the type that it stands for. Long because it has all methods of numbers.
    """

    __slots__ = ("_array", "_bounds", "_is_asked_for", "_kind", "_number", "_sources")

    def __init__(
        self, number: Any, array: Any, sources: frozenset[int] | None, is_asked_for: bool = False
    ) -> None:
        self._number = number
        self._kind = type(number)
        self._array = array  # a traced scalar of float64, int64 or complex128
        # The arguments, by the number of their leaf, that it comes from; None if it comes from an array, too.
        self._sources = sources
        self._bounds: set[int] = set()  # that the size is below, and negative ones that it is not
        self._is_asked_for = is_asked_for  # by float(x) or x.item(), and may go where numbers only go
        owner = array._value.owner
        owner.varying.append(self)
        if sources is None:
            owner.calls.begin()
        elif array._value.node is None:
            owner.sources.setdefault(array._value, sources)

    @property
    def __class__(self) -> Any:
        return self._kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the class of a number cannot be set")

    @property
    def is_complex(self) -> bool:
        """True if it is a complex number."""
        return issubclass(self._kind, (complex, np.complexfloating))

    def needed(self, what: str, drops: bool = True) -> Any:
        """Return the number itself, for `what`; from now on this object is that number (Note [true numbers]).

        One of an array stays what it is (Note [numbers of arrays]).

        Args:
            what: needs it.
            drops: whether something is computed of the number, which then lacks a derivative.
        """
        if self._sources is None:
            recorder.need_value(self._array, what)
            if drops:
                note_use(self._array, what)
            return self._number
        recorder.check_open(self._array)
        number, owner = self._number, self._array._value.owner
        for source in self._sources:
            owner.need(source, what, recorder.user_location())
        settle_needed(owner)
        return number

    def become_true(self, what: str, by: str) -> None:
        """Become the true number, which `what` insists on, a call of the function `by`."""
        if self._sources is not None:
            self.needed(what)
            return
        self.needed(what, drops=False)
        if not self._is_asked_for or computes(by):
            note_use(self._array, by)
        settle(self._array._value.owner, [self])

    def weak(self, dtypes: list[np.dtype], is_compared: bool = False) -> Any:
        """Return the array that stands for the number where it meets arrays of some dtypes, maybe to be compared."""
        return arithmetic.weak(self, dtypes, is_compared)

    def below(self, bound: int) -> bool:
        """Return whether the number's size is below a bound, which is a guard of either outcome."""
        if self._kind is bool:
            return True
        is_so = bool(self._number.__abs__() < bound)
        if not any(0 < guarded <= bound if is_so else guarded <= -bound for guarded in self._bounds):
            guarded = bound if is_so else -bound
            self._bounds.add(guarded)
            self._array._value.owner.attempts.changed(partial(self._bounds.discard, guarded))
            # Not by the absolute value, which the least integer does not have.
            is_below, is_above = (
                recorder.apply("less", self._array, bound), recorder.apply("greater", self._array, -bound)
            )  # fmt: skip
            holds(recorder.apply("logical_and", is_below, is_above), "the size of an integer")
        return is_so

    def fits(self, dtype: np.dtype) -> bool:
        """Return whether the number may be cast to a dtype as NumPy does in an assignment, which is then a guard."""
        if self.is_complex:
            return dtype.kind == "c"
        if dtype.kind in "iu" and self._kind is float:
            least, beyond = np.iinfo(dtype).min, int(np.iinfo(dtype).max) + 1  # a power of two: a float
            # There is no float between the least integer of 64 bits and the one below.
            is_above = self >= float(least) if dtype == arithmetic.INT else self > least - 1.0
            return bool(is_above and self < float(beyond))
        if self._kind is not int or dtype.kind not in "iu":
            return True
        info = np.iinfo(dtype)
        return bool((info.min < 0 or self >= 0) and (info.max >= _INT64_MAX or self.below(info.max + 1)))

    # What Python and NumPy ask of a number

    def __bool__(self) -> bool:
        return holds(self._array, "bool()")

    def __int__(self) -> int:
        number: int | None = conversions.shown(self, int, sys._getframe(1))
        if number is not None:
            return number
        is_special = self._sources is not None and not math.isfinite(self._number)
        if self._kind is int or self.is_complex or is_special:
            return int(self.needed("int()", drops=False))
        return int(recorder.need_value(self._array, "int()", Decides.WHOLE))

    def __index__(self) -> int:
        if not issubclass(self._kind, (int, np.integer)):
            raise TypeError(f"'{self._kind.__name__}' object cannot be interpreted as an integer")
        return int(self.needed("index", drops=False))

    def __float__(self) -> float:
        number = conversions.shown(self, float, sys._getframe(1))
        return float(self._asked("float()")) if number is None else number

    def __complex__(self) -> complex:
        return complex(self._asked("complex()"))

    def _asked(self, what: str) -> Any:
        """Return the number for a conversion; it is noted who asks (Note [plain numbers] in plain_numbers.py)."""
        if self._sources is None and recorder.is_open(self._array):
            if is_storing() and not self._is_asked_for:
                note_use(self._array, "ndarray.__setitem__")
            note(self._array)
        return self.needed(what, drops=False)

    def __hash__(self) -> int:
        number = self._number
        self.become_true("hash()", "hash")  # tables compare types
        return hash(number) if type(self) is Number else hash(self)  # a NaN has that of its identity

    def __repr__(self) -> str:
        return repr(self.needed("repr()", drops=False))

    def __str__(self) -> str:
        return str(self.needed("str()", drops=False))

    def __format__(self, spec: str) -> str:
        return format(self.needed("format()", drops=False), spec)

    def __round__(self, *digits: Any) -> Any:
        if digits in ((), (None,)) and not self.is_complex:
            number = conversions.whole(self, "rint")
            if number is not None:
                return number
        return round(self.needed("round()", drops=False), *digits)

    def __trunc__(self) -> int:
        return int(self)

    __iter__ = None  # a class with __getitem__ would be taken for a sequence

    def __getitem__(self, key: Any) -> Any:
        if self._kind not in NUMPY_SCALARS:
            raise TypeError(f"'{self._kind.__name__}' object is not subscriptable")
        return self if type(key) is tuple and not key else self.needed("an index of it")[key]

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._number, name):
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute '{name}'")
        if self._kind in NUMPY_SCALARS and name in _OF_SCALARS:
            return _OF_SCALARS[name]
        if name in ("real", "imag", "conjugate") and issubclass(self._kind, (float, complex, np.inexact)):
            return self._conjugate if name == "conjugate" else self._part(name)
        if self._kind in NUMPY_SCALARS and name in ("item", "astype"):
            return self._item if name == "item" else self._astype
        return getattr(self.needed(name), name)

    def _part(self, name: str) -> Any:
        """Return the real or the imaginary part."""
        number = getattr(self._number, name)
        if not self.is_complex:
            return self if name == "real" else number
        return Number(number, recorder.apply(name, self._array), self._sources)

    def _conjugate(self) -> Any:
        if not self.is_complex:
            return self
        return Number(self._number.conjugate(), recorder.apply("conj", self._array), self._sources)

    def _item(self, *index: Any) -> Any:
        """Return a number of NumPy as one of Python."""
        if self._kind is np.uint64:  # it need not fit the int64 that Python's integers are recorded in
            return self.needed("item()").item(*index)
        number = self._number.item(*index)
        array, dtype = self._array, np.dtype(type(number))
        return Number(
            number,
            array if array._data.dtype == dtype else recorder.apply("cast", array, dtype=dtype),
            self._sources,
        )

    def _astype(self, dtype: Any, **options: Any) -> Any:
        """Return a number of NumPy in another dtype, by the cast of arrays; truths and complex numbers do not vary."""
        wanted = np.dtype(dtype)
        if options or wanted.kind not in "fiu" or wanted.type not in NUMPY_SCALARS or self.is_complex:
            return self.needed("astype").astype(dtype, **options)
        array = (
            self._array
            if self._array._data.dtype == wanted
            else recorder.apply("cast", self._array, dtype=wanted)
        )
        return Number(on_host(array._data)[()], array, self._sources)

    def __copy__(self) -> "Number":
        return self

    def __deepcopy__(self, memo: Any) -> "Number":
        return self

    def __reduce__(self) -> Any:
        return (self._kind, (self.needed("pickle"),))

    @property
    def dtype(self) -> np.dtype:
        """The dtype, which only numbers of NumPy have."""
        if self._kind not in NUMPY_SCALARS:
            raise AttributeError(f"'{self._kind.__name__}' object has no attribute 'dtype'")
        return np.dtype(self._kind)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.needed("conversion to an ndarray"), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(recorder.is_array(x) for x in inputs):
            first = next(x for x in inputs if recorder.is_array(x))
            return first.__array_ufunc__(ufunc, method, *inputs, **options)
        if len(options.get("out", ())) == 1:
            (array,) = options["out"]
            through = made_arrays.replaced_in_place(array)
            if through is not None:
                return ufunc(*[through if x is array else x for x in inputs], out=through)
        if method == "__call__" and not options:
            result = arithmetic.by_ufunc(ufunc, inputs)
            if result is not None:
                return result
            result = arithmetic.by_ufunc_of_arrays(ufunc, inputs)
            if result is not None:
                return result
        what = f"np.{ufunc.__name__}"
        plain = [x.needed(what) if type(x) is Number else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    # Arithmetic

    def __pos__(self) -> "Number":
        return self if self._kind is not bool else self + 0

    def __neg__(self) -> Any:
        if self._kind is bool:
            return 0 - self
        if self._kind is int and not self.below(SUM):
            return -self.needed("- of a large integer")
        return Number(-self._number, recorder.apply("neg", self._array), self._sources)

    def __abs__(self) -> Any:
        if self._kind is bool:
            return self + 0
        if self._kind is int and not self.below(SUM):
            return abs(self.needed("abs() of a large integer"))
        if self._kind is complex:  # which may overflow
            return abs(self.needed("abs() of a complex number"))
        return Number(abs(self._number), recorder.apply("abs", self._array), self._sources)

    def __add__(self, other: Any) -> Any:
        return computed("add", operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return computed("add", operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return computed("sub", operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return computed("sub", operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return computed("mul", operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return computed("mul", operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return computed("div", operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return computed("div", operator.truediv, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return computed("floordiv", operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return computed("floordiv", operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return computed("mod", operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return computed("mod", operator.mod, other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.needed("pow()"), other, modulus)
        return computed("pow", operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return computed("pow", operator.pow, other, self)

    def __and__(self, other: Any) -> Any:
        return computed("bitwise_and", operator.and_, self, other)

    def __rand__(self, other: Any) -> Any:
        return computed("bitwise_and", operator.and_, other, self)

    def __or__(self, other: Any) -> Any:
        return computed("bitwise_or", operator.or_, self, other)

    def __ror__(self, other: Any) -> Any:
        return computed("bitwise_or", operator.or_, other, self)

    def __xor__(self, other: Any) -> Any:
        return computed("bitwise_xor", operator.xor, self, other)

    def __rxor__(self, other: Any) -> Any:
        return computed("bitwise_xor", operator.xor, other, self)

    def __lshift__(self, other: Any) -> Any:
        return computed("left_shift", operator.lshift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return computed("left_shift", operator.lshift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return computed("right_shift", operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return computed("right_shift", operator.rshift, other, self)

    def __invert__(self) -> Any:
        if not issubclass(self._kind, (int, np.integer)) or self._kind is bool:
            return ~self.needed("~")
        return Number(~self._number, recorder.apply("invert", self._array), self._sources)

    # Comparisons

    def __eq__(self, other: Any) -> Any:
        return compared("equal", operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return compared("not_equal", operator.ne, self, other)

    def __lt__(self, other: Any) -> Any:
        return compared("less", operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return compared("less_equal", operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return compared("greater", operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return compared("greater_equal", operator.ge, self, other)


def as_result(kind: type, array: Any) -> Any:
    """Return a number that a function gives, which is `array`: a true one, or that of an array that is traced."""
    number = kind(on_host(array._data).item())
    value = array._value
    return (
        number
        if value is None or value.is_constant or not recorder.is_open(array)
        else Number(number, array, None)
    )


def settle_needed(owner: Any) -> None:
    """Have those Numbers of a recording become true ones whose arguments are all needed."""
    needed = owner.needed.keys()
    settle(owner, [x for x in owner.varying if x._sources is not None and x._sources <= needed])


def settle(owner: Any, numbers: list[Number]) -> None:
    """Have some Numbers of a recording become the numbers that they stand for."""
    conversions.restore(owner)
    settled = set(map(id, numbers))
    owner.varying = [x for x in owner.varying if id(x) not in settled]
    for x in numbers:
        shape = become.shape_of(x, x._number) if owner.attempts else None
        if shape is None:
            become.become(x, x._number, Number.__slots__)
        else:  # Note [what a failed attempt leaves] in attempts.py
            owner.attempts.changed(partial(_varies_again, owner, x, shape), partial(_settle_tried, x, shape))
            become.take_shape(x, x._number)


def _varies_again(owner: Any, x: Number, shape: bytes) -> None:
    become.restore(x, shape)
    owner.varying.append(x)


def _settle_tried(x: Number, shape: bytes) -> None:
    become.restore(x, shape)
    become.become(x, x._number, Number.__slots__)


@contextmanager
def settled_by_errors(owner: Any) -> Iterator[None]:
    """Have the Numbers of a recording that an error's traceback refers to become true ones."""
    try:
        yield
    except BaseException:
        settle(owner, owner.varying)
        raise


@contextmanager
def true_numbers_after(owner: Any) -> Iterator[None]:
    """Have all Numbers of a recording become true ones when it ends."""
    try:
        yield
    finally:
        settle(owner, _referenced(owner) if owner.varying else [])
        owner.varying = []


def end(owner: Any, where: Any) -> None:
    """End the Numbers of a recording whose function has returned; those that somebody still has become true numbers.

    The arguments that these come from are needed then. A number of an array would have to be kept by replays, too.

    Args:
        owner: the recorder.
        where: the file and line of the function.
    """
    kept = _referenced(owner)
    for generation in range(3):  # a cycle of functions is no reason
        if kept:
            del kept
            gc.collect(generation)
            kept = _referenced(owner)
    for x in kept:
        if x._sources is None:
            owner.refuse(*_kept_in(owner.state.keepers, x, where))
        for source in x._sources or ():
            owner.need(source, OUTLIVES, where)
    settle(owner, kept)
    for x in kept:
        if type(x) is Number:  # where objects are laid out in another way
            x._array = _Ended()
    owner.varying = []
    owner.state.keepers = ()


def _kept_in(keepers: Sequence[Any], number: Number, where: Any) -> tuple[str, Any, str]:
    """Return the refusal of a function that keeps a number, as Recorder.refuse takes it.

    Args:
        keepers: containers that no replay fills.
        number: the number.
        where: the file and line of the function.
    """
    for container, name, put, read in keepers:
        if not _holds(container, number):
            continue
        kind, limit = type(container).__name__, getattr(container, "maxlen", None)
        if read is None:
            why = "a replay repeats append() and extend() only"
        elif limit is not None and len(container) < limit:
            why = f"the {kind} is read{at_location(read)}, which a replay follows once it has its {limit} elements"
        else:
            why = f"the {kind} is read{at_location(read)}, so that a replay could not add to it"
        return f"{KEPT} in {name}", put or where, f"{why}. Return the number, and keep it outside"
    return KEPT, where, "return it, and keep it outside"


def _holds(container: Any, number: Number) -> bool:
    """Return whether a container holds a number, in tuples, lists and dicts, too."""
    parts = container.values() if isinstance(container, dict) else container
    return any(
        part is number
        or (isinstance(part, (tuple, list, dict)) and part is not container and _holds(part, number))
        for part in parts
    )


KEPT = "a number that varies outlives the call"
OUTLIVES = "something that outlives the call"


class _Ended:
    """A stand-in for the array of a Number whose recording has ended."""

    def __getattr__(self, name: str) -> Any:
        raise TraceError(
            "a number that an accelerated function was called with is used after that call; on this Python it cannot "
            "be kept. Keep float(x) or int(x)."
        )


def _referenced(owner: Any) -> list[Number]:
    """Return the Numbers of a recording that more than the recorder refers to."""
    mark = object()
    every = owner.varying
    every.append(mark)
    counts = [sys.getrefcount(x) for x in every]
    every.pop()
    least = counts.pop() - 1  # of the mark, which has a name here
    return [x for x, count in zip(every, counts, strict=True) if count > least]


recorder.register_number_class(Number)
