# SPDX-License-Identifier: BSD-3-Clause
"""The objects that a recording observes, one class for each kind.

A kind says what is noted when such an object is first observed, what is noted when all of it is read, which attributes
can be read without running the user's code, and whether a replay may meet another object of the same class.
"""

import contextvars
import itertools
import types
import weakref
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit import containers, tree
from tracejit.array import dlarray
from tracejit.call.signature import runs_functions
from tracejit.capture import library
from tracejit.capture.callables import (
    PARTS,
    ObservedAccelerated,
    ObservedComposite,
    ObservedFunction,
    ObservedWrapper,
)
from tracejit.capture.generators import LOOKING_AT_STATES, state_of
from tracejit.capture.named import (
    FIELD,
    ObservedClass,
    ObservedInstance,
    ObservedMember,
    ObservedModule,
    ObservedNames,
    ObservedPart,
    ObservedSource,
    ObservedSubarray,
    note_attributes,
    note_descriptor,
    note_state,
)
from tracejit.capture.observed import Contents, Notes, Observed
from tracejit.capture.slots import DrawsSlot, FixedSlot, HeldSlot, LeavesSlot
from tracejit.capture.values import (
    MAPPINGS,
    MISSING,
    SEQUENCES,
    UNKNOWN,
    arrays_inside,
    data_of,
    elements,
    held_by,
    instance_attribute,
    is_atom,
    is_container,
    is_member,
    static,
)
from tracejit.record import monitor
from tracejit.record.ended import check_open
from tracejit.record.generator_states import is_generator
from tracejit.record.monitor import is_user_class
from tracejit.record.side_effects import MEMORIES

TOLD_BY_SHAPE = frozenset(
    {"shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "format"}
)
_VIEWS = frozenset({"T", "reshape", "transpose", "swapaxes", "squeeze", "view", "ravel"})
CHANGING = MAPPINGS | {*SEQUENCES, set}
"""Containers that are looked at again when the call is over, unless they have more items than:"""
_MOST_KEPT = 1 << 20
_CONTENT_LIMIT = 1 << 16  # bytes of an array that are compared at each call

_HOLDERS = frozenset({
    contextvars.ContextVar, weakref.ref, weakref.KeyedRef, weakref.WeakMethod, types.MappingProxyType, types.CellType,
    type({}.keys()), type({}.values()), type({}.items()),
})  # fmt: skip

_DISPATCHER = type(np.sum)
_LIBRARY_CODE = (types.BuiltinFunctionType, np.ufunc, _DISPATCHER)


class ObservedAtom(Observed):
    """A value without attributes that change."""

    __slots__ = ()


class ObservedLibrary(Observed):
    """A function or a class of Python or NumPy, whose code stays as it is."""

    is_fixed = True

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        snapshot.generators.note(self.value, snapshot.where)
        if library.reads_attributes(self.value):
            snapshot.read_dynamically()
        own = getattr(self.value, "__self__", None)
        if getattr(self.value, "__name__", "") in LOOKING_AT_STATES and state_of(own) is not None:
            snapshot.add_root(own)
            snapshot.read(snapshot.observe(own), DrawsSlot, "")


class ObservedNamespace(Observed):
    """The globals of a module, or sys.modules."""

    __slots__ = ()


class ObservedArray(Observed):
    """A dlarray or an ndarray of numbers.

    Attributes:
        data: what a dlarray held when it was observed, and `tape` its Value.
        content: the bytes of an array whose elements plain NumPy can read, none of a large one.
        checksum: of the elements of such a large array.
        computed: places where plain NumPy reads its elements, unless an operation of the trace does there.
        passed: places where it is an argument of a function that is not watched.
        is_given: whether one of these functions may want an ndarray.
        selected: places where a slice, or something that is no constant, selects elements, and whether it is no slice;
            the result may enter the trace as a view.
        is_computed_with: whether plain NumPy reads its elements, whatever else does.
        written: places where plain NumPy may write its elements, unless the trace does there.
        names: attributes that are read.
        is_variable: whether a variable of a function that runs holds it.
        is_exchanged: whether all places hold an array of the recording instead (exchanges.py).
    """

    __slots__ = (
        "checksum", "computed", "content", "data", "is_computed_with",
        "is_exchanged", "is_given", "is_variable", "names", "passed", "selected", "tape",
        "written",
    )  # fmt: skip

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        if type(value) is dlarray:
            check_open(value)
        self.data = data_of(value)
        self.tape = value._value if type(value) is dlarray else None
        self.content: bytes | None = None
        self.computed: list[Any] = []
        self.passed: list[Any] = []
        self.selected: list[tuple[Any, bool]] = []
        self.is_computed_with = False
        self.written: list[Any] = []
        self.names: set[str] = set()
        self.is_exchanged = self.is_given = self.is_variable = False

    @property
    def is_large(self) -> bool:
        """True if the array is too large to be compared at each call."""
        return data_of(self.value).nbytes > _CONTENT_LIMIT

    def keep_content(self, where: tuple[str, int]) -> None:
        """Keep the elements, which plain NumPy can read."""
        if self.content is None:
            self.where = where
            self.content = b"" if self.is_large else self.value.tobytes()
            self.checksum = self._checksum() if self.is_large else 0

    def _checksum(self) -> int:
        return zlib.crc32(np.ascontiguousarray(self.value).reshape(-1).view(np.uint8).data)

    @property
    def has_changed(self) -> bool:
        """True if the elements were kept, and differ now."""
        if self.is_large:
            return self.content is not None and self._checksum() != self.checksum
        return self.content is not None and data_of(self.value).tobytes() != self.content

    def follow(self, steps: Sequence[tuple[str, Any]], where: tuple[str, int]) -> None:
        """Note that attributes and items of the array are read."""
        kind, name = steps[0]
        if kind == "attr":
            self.names.add(name)
        if (kind == "attr" and name in TOLD_BY_SHAPE) or type(self.value) is not np.ndarray:
            return
        self.is_loose = True
        self.keep_content(where)
        items = [index for step, index in itertools.takewhile(lambda step: step[0] == "item", steps)]
        indexed = sum(len(index) if type(index) is tuple else 1 for index in items)
        if (kind == "attr" and name not in _VIEWS) or (items and indexed >= self.value.ndim):
            self.is_computed_with = True

    def note_written(self, where: tuple[str, int], place: Any = None) -> None:
        """Note that plain NumPy may write elements of an ndarray, by the code at a place."""
        if type(self.value) is np.ndarray:
            self.written.append(place)
            self.keep_content(where)

    def note_contents(self, snapshot: Notes) -> None:
        if type(self.value) is np.ndarray:
            self.keep_content(snapshot.where)


class ForeignArray(Observed):
    """An array of another library, which gives NumPy its memory through DLPack."""

    __slots__ = ()

    def note_contents(self, snapshot: Notes) -> None:
        self.where = snapshot.where


class ObservedContainer(Observed):
    """A builtin container, a named tuple or an ndarray of objects."""

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        is_kept = name in ("maxlen", "default_factory")
        return getattr(self.value, name, MISSING) if is_kept else UNKNOWN

    def contents(self) -> Contents | None:
        value = self.value
        if type(value) not in CHANGING or len(value) > _MOST_KEPT:
            return None
        return dict(value) if type(value) in MAPPINGS else tuple(value)

    def note_contents(self, snapshot: Notes) -> None:
        if self.held is None and type(self.value) in (*MAPPINGS, *SEQUENCES) and not self.is_copy:
            snapshot.meet_items(self)
        self.hold(snapshot)
        for part in elements(self.value):
            snapshot.read_whole(part)


class ObservedNamedTuple(ObservedContainer, ObservedNames):
    """A named tuple of a user's class, which can have methods and other attributes."""

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        return instance_attribute(self.value, name)

    def note(self, snapshot: Notes) -> None:
        snapshot.watch_class(type(self.value))

    def note_contents(self, snapshot: Notes) -> None:
        super().note_contents(snapshot)
        snapshot.read_names(self)

    def note_computed(self, snapshot: Notes, name: str) -> None:
        note_descriptor(self, snapshot, name)


class ObservedNode(Observed):
    """A network, or a table of its arrays: another one with the same fixed part will do, and has other arrays."""

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        snapshot.read(self, FixedSlot, "_fixed")
        snapshot.hold(snapshot.read(self, LeavesSlot, "_leaves"))

    def note_contents(self, snapshot: Notes) -> None:
        snapshot.read_whole(self.value._leaves)


class ObservedFixed(Observed):
    """The fixed part of a network or a table, or a field of a class of named tuples, which compare by identity."""

    is_fixed = True

    __slots__ = ()


class ObservedHolder(Observed):
    """A context variable, a weak reference or a view of a dict."""

    is_fixed = True

    __slots__ = ()

    def attribute(self, name: str) -> Any:
        return held_by(self.value) if name == "cell_contents" else UNKNOWN

    def note(self, snapshot: Notes) -> None:
        snapshot.read_whole(snapshot.read(self, HeldSlot, ""))

    def note_contents(self, snapshot: Notes) -> None:
        for slot in [*self.slots.values()]:
            snapshot.read_whole(slot.value)


class ObservedOpaque(Observed):
    """An object of a class in C, or of a library, that nothing is known of.

    Attributes:
        inside: arrays that it holds where no name leads to, kept until the recording ends.
    """

    is_fixed = True
    is_told = True
    has_attributes = True
    may_share_memory = True

    __slots__ = ("inside",)

    def __init__(self, value: Any, where: tuple[str, int]) -> None:
        super().__init__(value, where)
        self.inside: list[Any] = []

    def attribute(self, name: str) -> Any:
        if isinstance(self.value, type):
            return UNKNOWN
        is_in_slot = type(static(type(self.value), name)) is types.MemberDescriptorType
        has_own = is_in_slot or hasattr(self.value, "__dict__")
        return instance_attribute(self.value, name) if has_own else UNKNOWN

    def note_state(self, snapshot: Notes) -> None:
        note_state(self, snapshot, is_asked=True)

    def note_contents(self, snapshot: Notes) -> None:
        if any(self.value is kind for kind in library.GETTERS):
            snapshot.read_dynamically()
        note_state(self, snapshot, is_asked=False)

    def note_used(self, snapshot: Notes) -> None:
        note_attributes(self, snapshot)

    def note(self, snapshot: Notes) -> None:
        if type(self.value) in library.GETTERS:
            names = [name for name in self.value.__reduce__()[1] if isinstance(name, str)]
            snapshot.add_names({part for name in names for part in name.split(".")}, may_lack=True)
        snapshot.generators.note(self.value, snapshot.where)
        if library.reads_attributes(self.value):
            snapshot.read_dynamically()
        self.inside = arrays_inside(self.value)


class ObservedGenerator(Observed):
    """A generator of random numbers: what it holds is its state."""

    is_fixed = True
    is_told = True

    __slots__ = ()

    def note(self, snapshot: Notes) -> None:
        snapshot.generators.note(self.value, snapshot.where)


class ObservedMemory(ObservedOpaque):
    """Numbers in a builtin object."""

    __slots__ = ()

    def contents(self) -> Contents | None:
        return {"bytes": bytes(self.value)} if len(self.value) <= _MOST_KEPT else None


def kind_in_library(value: Any) -> type[Observed]:
    """Return the class that observes a value which a module of Python or NumPy holds under a name."""
    if isinstance(value, types.FunctionType):
        is_code = monitor.is_library(value.__code__.co_filename)
    elif isinstance(value, type):
        is_code = not is_user_class(value)
    else:
        is_code = isinstance(value, _LIBRARY_CODE)
    return ObservedLibrary if is_code else kind_of(value)


def kind_of(value: Any) -> type[Observed]:
    """Return the class that observes a value."""
    kind = type(value)
    if is_atom(value):
        return ObservedMember if is_member(value) else ObservedAtom
    if kind is dlarray or isinstance(value, np.ndarray):
        if kind is np.ndarray and value.dtype == object:
            return ObservedContainer
        return ObservedArray if kind is dlarray or kind is np.ndarray else ObservedSubarray
    if hasattr(kind, "__dlpack__"):
        return ForeignArray
    if is_container(value):
        return ObservedNamedTuple if is_user_class(kind) else ObservedContainer
    if kind in MEMORIES:
        return ObservedMemory
    if kind is types.FunctionType:
        return ObservedFunction
    if kind is types.ModuleType:
        return ObservedModule
    if isinstance(value, tree.TreeNode):
        return ObservedNode
    if isinstance(value, (containers.Fixed, FIELD)):
        return ObservedFixed
    if isinstance(value, type):
        return ObservedClass if is_user_class(value) else ObservedOpaque
    if kind in PARTS:
        return ObservedComposite
    if kind in _HOLDERS:
        return ObservedHolder
    if runs_functions(kind):
        return ObservedAccelerated
    if hasattr(kind, "moved_by_replays"):
        return ObservedSource
    if getattr(kind, "is_part_of_programs", False):
        return ObservedPart
    if is_user_class(kind):
        return ObservedInstance
    if is_generator(value):
        return ObservedGenerator
    if kind is _DISPATCHER:  # which has the function that it dispatches to
        return ObservedLibrary
    if hasattr(value, "__wrapped__"):
        return ObservedWrapper
    return ObservedInstance if hasattr(value, "__dict__") and not callable(value) else ObservedOpaque
