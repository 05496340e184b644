# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of observed objects and their slots, and the interface by which they note what is read."""

import types
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tracejit.capture.generators import Generators
from tracejit.capture.values import MISSING, UNKNOWN, differs, elements, is_atom, same_elements, values_in

Contents = dict[Any, Any] | tuple[Any, ...]
Source = Callable[[Any], str]  # the text by which generated source refers to a value


class Slot:
    """A place in an observed object, and what it held when it was first observed.

    Attributes:
        is_read: whether what it held matters.
        is_assigned: whether it can have been assigned to, other than by ``+=`` and the like.
        additions: what code reads it for an assignment to it only, as ``+=`` does: the operator and the operand,
            UNKNOWN where it is not known. What the slot held matters only if a replay repeats that assignment.
        is_counted: whether a replay adds a number to what it holds.
        is_deleted: whether code can have deleted what it held.
        number: the input that stands for the number that it held, if that varies.
        is_late: whether only what the function did tells that it is read: what other slots lead to has their names.
    """

    __slots__ = (
        "additions", "is_assigned", "is_counted", "is_deleted", "is_late", "is_read", "name", "number", "value",
        "where",
    )  # fmt: skip

    def __init__(self, name: Any, value: Any, where: tuple[str, int]) -> None:
        self.name = name
        self.value = value
        self.is_read = False
        self.is_assigned = False
        self.is_counted = False
        self.is_deleted = False
        self.additions: list[tuple[str, Any]] = []
        self.number: Any = None
        self.is_late = False
        self.where = where

    @property
    def decides(self) -> bool:
        """True if what it held decides what is recorded."""
        return self.is_read and self.number is None

    @property
    def is_replaced(self) -> bool:
        """True if something was put there in place of the input, even if that is equal to what it held."""
        return self.number is not None and self.number.is_replaced

    @staticmethod
    def look(owner: "Observed", name: Any) -> Any:
        """Return what the slot of an object holds now, without running the user's code."""
        raise NotImplementedError

    def expression(self, owner: str, source: Source) -> str:
        """Return the expression that reads the slot of a variable."""
        raise NotImplementedError

    def presence(self, owner: str, source: Source) -> str:
        """Return the expression for whether the slot of a variable exists."""
        raise NotImplementedError

    def path(self, owner: str) -> str:
        """Return the slot as the user's code writes it, given its owner in the same way."""
        raise NotImplementedError

    def absence(self, owner: str, source: Source) -> tuple[str, str] | None:
        """Return "not there" and the condition under which it is there after all; None if the slot holds a value."""
        return ("not there", self.presence(owner, source)) if self.value is MISSING else None

    def has_changed(self, owner: "Observed") -> bool:
        """Return whether the slot has changed since it was first observed."""
        now = self.look(owner, self.name)
        if now is self.value:
            return False
        if is_atom(self.value) or is_atom(now):
            return differs(now, self.value)
        if type(now) is tuple and type(self.value) is tuple and all(map(is_atom, now)):  # compared by value
            return not same_elements(self.value, now)
        if type(now) is types.MethodType and type(self.value) is types.MethodType:  # a new one at each access
            return now.__func__ is not self.value.__func__
        return True


class Notes(Protocol):
    """The methods of a snapshot by which an object notes what using it reads."""

    where: tuple[str, int]
    caches: list[Any]
    generators: Generators

    def observe(self, value: Any) -> "Observed":
        """Return what is observed of a value."""

    def add_root(self, value: Any) -> None:
        """Observe an object that a replay finds again without a name."""

    def slot(self, owner: "Observed", kind: type[Slot], name: Any) -> Slot | None:
        """Return a slot, or None if the user's code would have to run to look at it."""

    def read(self, owner: "Observed", kind: type[Slot], name: Any) -> Any:
        """Note that a slot is read, and return its value."""

    def assign(self, owner: "Observed", kind: type[Slot], name: Any) -> None:
        """Note that a slot can be assigned to."""

    def update(self, owner: "Observed", kind: type[Slot], name: Any, addition: tuple[str, Any]) -> None:
        """Note that a slot is read for an assignment to it only."""

    def hold(self, container: Any) -> None:
        """Note which elements a container has."""

    def meet_items(self, owner: Any) -> None:
        """Look at those elements of a container, which code is about to read as a whole, that vary."""

    def read_whole(self, value: Any) -> None:
        """Note that everything in a value can be read."""

    def read_names(self, owner: Any) -> None:
        """Read the attributes of an object whose names the code that runs has."""

    def read_named(self, owner: Any, names: Iterable[str]) -> None:
        """Read those attributes of an object that it has of the given names."""

    def add_names(self, names: set[str], may_lack: bool = False) -> None:
        """Note that code which runs reads attributes of these names of untracked values, which may lack them."""

    def read_namespace(self, function: "Observed") -> None:
        """Note which dict has the global names of a function."""

    def read_dynamically(self) -> None:
        """Note that attributes are read by names that the code computes."""

    def when_run(self, code: types.CodeType, action: Callable[[], object]) -> None:
        """Act when code has run, which may be now."""

    def watch_class(self, kind: type) -> None:
        """Note the methods of a class that run."""

    def read_specials(self, kind: type) -> None:
        """Note which special methods a class has."""

    def root_of(self, kind: type) -> "Observed":
        """Return what is observed of a class, which a replay finds again without a name."""


class Observed:
    """An object, the slots of it that were met, and for a container that is read as a whole its elements.

    Attributes:
        is_code: whether calling it reads more than the key of a trace says of it.
        is_fixed: whether a replay must meet the same object; otherwise another of the same class will do.
        is_told: whether the guard of a fixed object is shown to users.
        has_attributes: whether attributes of it can be set.
        may_share_memory: whether it can be a buffer over memory that others write to.
        held: the elements of a container that was read as a whole.
        held_at: the file and line that was looked at then.
        is_loose: whether its contents can be read in ways that are not followed.
        is_whole: whether all of it was read.
        is_copy: whether it is a copy of what the user's object holds.
    """

    is_code = False
    is_fixed = False
    is_told = False
    has_attributes = False
    may_share_memory = False

    __slots__ = ("held", "held_at", "is_copy", "is_loose", "is_whole", "slots", "value", "where")

    def __init__(self, value: Any, where: tuple[str, int] = ("", 0)) -> None:
        self.value = value
        self.where = where
        self.slots: dict[tuple[type[Slot], Any], Slot] = {}
        self.held: tuple[Any, ...] | None = None
        self.held_at = where
        self.is_loose = False
        self.is_whole = False
        self.is_copy = False

    def attribute(self, name: str) -> Any:
        """Return an attribute without running the user's code, MISSING, or UNKNOWN."""
        return UNKNOWN

    def contents(self) -> Contents | None:
        """Return a copy of what the object holds, by attribute or key, or of its elements, if it holds anything."""
        return None

    def note(self, snapshot: Notes) -> None:
        """Note what using the object reads, when it is first observed."""

    def note_contents(self, snapshot: Notes) -> None:
        """Note that all of the object is read."""

    def note_state(self, snapshot: Notes) -> None:
        """Note the state of an object of the standard library, which code that is not watched reads."""

    def note_used(self, snapshot: Notes) -> None:
        """Note what code of a library may read of the object, which was called, indexed or asked for a method."""

    def note_computed(self, snapshot: Notes, name: str) -> None:
        """Note how an attribute is found that is UNKNOWN."""

    def hold(self, snapshot: Notes) -> None:
        """Note which elements a container has."""
        if self.held is None:
            self.held, self.held_at = tuple(elements(self.value)), snapshot.where
            for value in values_in(self.value):
                if not is_atom(value):
                    snapshot.observe(value)
