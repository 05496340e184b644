# SPDX-License-Identifier: BSD-3-Clause
"""The objects that a call reads besides its arguments, with what they held before the call could change them.

Each slot is noted before the function that can read it starts. Its value then is what a later call must find again,
and a slot that holds something else at the end was changed by the call itself.

Long because each kind of read has a method, of some lines, in one class.
"""

import abc
import functools
import os
import sys
import types
from collections import Counter
from collections.abc import Callable, Container, Iterable
from operator import is_
from typing import Any

from tracejit.capture import bytecode
from tracejit.capture.callables import ObservedFunction, ObservedWrapper
from tracejit.capture.contents import kind_of_slots
from tracejit.capture.generators import Generators
from tracejit.capture.made_classes import MadeClasses
from tracejit.capture.named import (
    ObservedClass,
    ObservedInstance,
    ObservedMember,
    ObservedNames,
    ObservedSubarray,
)
from tracejit.capture.objects import (
    ObservedArray,
    ObservedContainer,
    ObservedHolder,
    ObservedNamedTuple,
    ObservedNamespace,
    kind_in_library,
    kind_of,
)
from tracejit.capture.observed import Contents, Observed, Slot
from tracejit.capture.reads import Reads
from tracejit.capture.slots import (
    AttributeSlot,
    DrawsSlot,
    ExtentSlot,
    HasItemSlot,
    ItemSlot,
    LengthSlot,
    LibrarySlot,
    ModuleSlot,
    MroSlot,
    NamesSlot,
    OwnSlot,
    RegisteredSlot,
    SpecialsSlot,
    SuperSlot,
    TruthSlot,
    holder_of,
    presence_of,
)
from tracejit.capture.values import (
    MAPPINGS,
    MISSING,
    SEQUENCES,
    UNKNOWN,
    is_atom,
    is_closed,
    is_container,
    is_hashed_by_python,
    is_written_in_place,
    static,
    user_classes,
)
from tracejit.record import patches
from tracejit.record.generator_states import is_generator
from tracejit.record.monitor import is_library_module, is_user_class
from tracejit.record.side_effects import MEMORIES
from tracejit.record.state import CapturedPlace
from tracejit.util.uninterrupted import is_of_handler

_MOST_OBJECTS = 20_000
_MOST_CHOICES = 16  # arrays or numbers of a list of which code takes one
_OF_BASES = frozenset({"isinstance", "issubclass", "mro", "__mro__", "__bases__", "__base__"})
_WITH_ATTRIBUTES = (ObservedInstance, ObservedMember, ObservedHolder)  # arguments that can change
_OF_MODULES = frozenset({"import_module", "__import__", "modules"})
_IMPORTING = _OF_MODULES - {"modules"}
_OF_TEXTS = _OF_MODULES | {"getLogger"}
_OF_CLASSES = frozenset({"type", "__class__"})


class Snapshot:
    """The objects that were observed during one call of a function.

    Long because each kind of read has a method, of some lines, and all share the notes below.

    Attributes:
        objects: by id.
        roots: ids of the objects that a replay starts from, with their names in words.
        contents: what objects held when they were first observed, by id.
        unseen: what cannot be noted, in words, and where it is read.
        where: the file and line that is looked at.
        caches: functions with a cache.
        generators: of random numbers.
        apart: pairs of objects that ``is`` told from each other, and where.
        ran: the code that has run.
        changing: ids of containers whose elements code that ran can assign to.
        extended: ids of lists and deques to which code that ran can add elements by ``+=``.
        firsts: cells and namespaces, and what they held at first, by their ids and the names of slots.
        owned: ids of classes with names of attributes that they had themselves when these were first looked at.
        standing: what places held, by the ids of what stands there meanwhile in its place (captured_numbers.py).
        stored: attributes and items that code that ran assigns to, of values that no path leads to.
        inherited: instances, slots of them whose values their classes have, and the classes.
        made: the classes that the call makes.
        pools: ids of lists and deques of which code takes drawn elements (Note [pools] in record/pools.py).

    Args:
        function: the function that is called.
        arguments: leaves of its arguments.
        name_of: returns the name of a leaf by its number.
        met: is told of each slot when it is first looked at.
        varying: the places of numbers that vary.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Iterable[Any], name_of: Callable[[int], str],
        met: Callable[[Observed, Slot], None], varying: Container[CapturedPlace],
    ) -> None:  # fmt: skip
        self._met = met
        self._varying = varying
        self.objects: dict[int, Observed] = {}
        self.standing: dict[int, Any] = {}
        self.roots: dict[int, str] = {}
        self.contents: dict[int, Contents] = {}
        self.unseen: tuple[str, tuple[str, int]] | None = None
        self.where = ("", 0)
        self.caches: list[ObservedWrapper] = []
        self.generators = Generators()
        self.ran: set[types.CodeType] = set()
        self.changing: set[int] = set()
        self.extended: set[int] = set()
        self._waiting: dict[types.CodeType, list[Callable[[], object]]] = {}
        self.firsts: dict[tuple[int, str], tuple[Any, Any]] = {}
        self.owned: set[tuple[int, Any]] = set()
        self.stored: set[Any] = set()
        self._names: set[str] = set()
        self._probes: set[str] = set()  # those of the names that an object may lack
        self._texts: set[str] = set()
        self._marks: set[str] = set()
        self.names_of_modules: set[str] = set()  # that were looked for by names
        self.apart: list[tuple[Any, Any, tuple[str, int]]] = []
        self.inherited: list[tuple[Observed, Slot, Observed]] = []
        self.made = MadeClasses()
        self.pools: set[int] = set()
        self._is_dynamic = False  # whether code that ran reads attributes by computed names
        self._read_by_names: list[ObservedNames] = []
        self._function = function
        self.observe(function)
        self.roots[id(function)] = ""
        for number, argument in enumerate(arguments):
            self.add_argument(argument, functools.partial(name_of, number))

    def ended(self) -> None:
        """Note what is known once the function has returned: what caches remember, which names were looked for."""
        try:
            self._read_by_texts()
            self._note_imports()
            if any(bytecode.reads_of(code).catches for code in self.ran):
                for observed in [*self.objects.values()]:
                    if isinstance(observed, ObservedFunction) and observed.value.__code__ not in self.ran:
                        observed.note_defaults(self)
            for cached in self.caches:
                cached.note_results(self)
        except Exception as error:
            self.refuse(error)

    def refuse(self, error: Exception) -> None:
        """Note that looking at an object raised an error."""
        if is_of_handler(error):
            raise error
        what = f"what cannot be looked at ({type(error).__name__}: {error})"
        self.unseen = self.unseen or (what, self.where)

    def note_code(self, code: types.CodeType) -> None:
        """Note what follows from code that runs for the first time."""
        self.ran.add(code)
        self._add_names_of(bytecode.reads_of(code))
        for action in self._waiting.pop(code, ()):
            action()

    def keep_only(self, idents: Container[int]) -> None:
        """Release all objects except those of the given ids, once nothing runs any more."""
        self.objects = {ident: observed for ident, observed in self.objects.items() if ident in idents}
        for notes in (self.contents, self.caches, self.apart, self.inherited, self.firsts):
            notes.clear()
        self._read_by_names.clear()
        self.made = MadeClasses()
        self._waiting.clear()

    def references(self) -> Counter[int]:
        """Return how many references to objects the notes are, by the ids of these."""
        found = Counter([id(first) for pair in self.firsts.values() for first in pair])
        noted: dict[int, Contents] = {id(contents): contents for contents in self.contents.values()}
        for observed in self.objects.values():
            found[id(observed.value)] += 1
            if isinstance(observed, ObservedArray):
                found[id(observed.data)] += 1
            found.update([id(slot.value) for slot in observed.slots.values()])
            if observed.held is not None:
                noted[id(observed.held)] = observed.held
        for contents in noted.values():
            found.update(map(id, contents.values() if type(contents) is dict else contents))
        return found

    @property
    def branches_on_untracked(self) -> bool:
        """True if any code that ran branches on, or truncates, a value that is not tracked."""
        return any(bytecode.reads_of(code).branches_on_untracked for code in self.ran)

    @property
    def extracts_untracked(self) -> bool:
        """True if any code that ran makes a Python number out of a value that is not tracked."""
        return any(bytecode.reads_of(code).extracts_untracked for code in self.ran)

    def literals(self, arguments: Iterable[Any]) -> set[float]:
        """Return the floating point numbers in the code that ran, in what it read and in its arguments."""
        values: list[Any] = [*arguments]
        for code in self.ran:
            values += code.co_consts
        for observed in self.objects.values():
            values += [slot.value for slot in observed.slots.values()]
            values += observed.held or ()
        return {value for value in values if type(value) is float}

    # Objects and their slots

    def observe(self, value: Any) -> Observed:
        """Return what is observed of a value, which begins with this call if nothing is."""
        return self._observe(value, kind_of)

    def _observe(self, value: Any, kind: Callable[[Any], type[Observed]]) -> Observed:
        observed = self.objects.get(id(value))
        if observed is not None:
            return observed
        if id(value) in self.standing:
            return self._observe(self.standing[id(value)], kind)
        observed = self.objects[id(value)] = kind(value)(value, self.where)
        contents = observed.contents()
        if contents is not None:
            self.contents[id(value)] = self._first_contents(value, contents)
        if value is os.getenv:
            self.add_root(os.environ)
        if len(self.objects) > _MOST_OBJECTS:
            self.unseen = self.unseen or ("more objects than can be compared at each call", self.where)
        else:
            observed.note(self)
        return observed

    def _first_contents(self, value: Any, contents: Contents) -> Contents:
        """Return what an object held, which holds the given contents now, or a dict of attributes (``vars(a)``)."""
        own = value if type(value) is dict else getattr(value, "__dict__", None)
        if type(own) is not dict or type(contents) is not dict:
            return contents
        first = self.firsts.setdefault((id(own), ""), (own, contents))[1]
        return contents if first is contents else {**contents, **first}

    def add_argument(self, value: Any, name: Callable[[], str] = lambda: "an argument") -> None:
        """Observe what reads more than the key of a trace says of it; `name` returns its name in words."""
        kind = kind_of(value)
        holds_objects = issubclass(kind, ObservedContainer) and not all(map(is_atom, value))
        if kind.is_code or kind in _WITH_ATTRIBUTES or holds_objects or is_generator(value):
            self.add_root(value, name)

    def add_root(self, value: Any, name: Callable[[], str] = lambda: "an argument") -> None:
        """Observe an object that a replay finds again without a name."""
        self.observe(value)
        if id(value) not in self.roots:
            self.roots[id(value)] = str(getattr(value, "__name__", None) or name())

    def read_namespace(self, function: Observed) -> None:
        """Note which dict has the global names of a function, unless a replay starts from the function."""
        if function.value is not self._function:
            self.root(function.value.__globals__, "global")
            self.read(function, AttributeSlot, "__globals__")

    def root(self, value: Any, name: str) -> Observed:
        """Return what is observed of a class or a namespace that a replay starts from, with its name in words."""
        observed = self.objects.get(id(value))
        if observed is None:
            kind = ObservedClass if isinstance(value, type) else ObservedNamespace
            observed = self.objects[id(value)] = kind(value)
        if id(value) not in self.roots and value not in self.made:
            self.roots[id(value)] = name
            if isinstance(observed, ObservedClass):
                self._read_marked(observed, self._marks)
                self._look_at_stored(observed, self.stored)
        return observed

    def root_of(self, kind: type) -> Observed:
        """Return what is observed of a class, which a replay finds again without a name."""
        return self.root(kind, kind.__name__)

    def _look_at_stored(self, observed: Observed, names: Iterable[Any]) -> None:
        """Keep what a class has under names that code assigns to, as in ``type(self).last = x``, before it does."""
        if isinstance(observed, ObservedClass):
            for name in names:
                if isinstance(name, str):
                    self.slot(observed, AttributeSlot, name)

    def _read_marked(self, kind: ObservedClass, marks: set[str]) -> None:
        """Note what the functions and attributes of some names can tell of a class."""
        if marks & _OF_BASES and len(kind.value.__mro__) > 2:  # others cannot get other bases
            self.read(kind, MroSlot, "")
        if marks & _OF_BASES and isinstance(kind.value, abc.ABCMeta):
            self.read(kind, RegisteredSlot, "")
        if marks & _OF_CLASSES:
            self.read_names(kind)

    def slot(self, owner: Observed, kind: type[Slot], name: Any) -> Slot | None:
        """Return a slot, or None if the user's code would have to run to look at it."""
        slot = owner.slots.get((kind, name))
        if slot is None:
            value = kind.look(owner, name)
            if value is UNKNOWN:
                return None
            value = patches.original(self._first(owner, kind, name, value))
            if isinstance(owner.value, type) and name in vars(owner.value):
                self.owned.add((id(owner.value), name))
            slot = owner.slots[kind, name] = kind(name, value, self.where)
            if kind is DrawsSlot:
                self.generators.note_state(owner.value)
            self._met(owner, slot)
        return slot

    def _first(self, owner: Observed, kind: type[Slot], name: Any, value: Any) -> Any:
        """Return what a slot held that holds a value now: what ran may have changed it since its owner was observed."""
        place = holder_of(owner, kind, name)
        if place is not None:
            holder, key = place
            return self.firsts.setdefault((id(holder), key), (holder, value))[1]
        contents = self.contents.get(id(owner.value))
        if contents is not None and kind in (LengthSlot, TruthSlot):
            return len(contents) if kind is LengthSlot else bool(contents)
        if contents is not None and kind is ExtentSlot:
            return len(contents) if type(contents) is tuple else (*contents,)
        if type(contents) is dict and kind in (OwnSlot, HasItemSlot):
            return True if name in contents else MISSING
        if contents is None or kind is not kind_of_slots(owner):  # the maxlen of a deque is no element
            return value
        if kind is AttributeSlot and name not in contents:
            is_new = (
                name in getattr(owner.value, "__dict__", ()) and static(type(owner.value), name) is MISSING
            )
            return MISSING if is_new else value
        if type(contents) is dict:
            return contents.get(name, MISSING if type(owner.value) in MAPPINGS else value)
        return contents[name] if type(name) is int and -len(contents) <= name < len(contents) else MISSING

    def read(self, owner: Observed, kind: type[Slot], name: Any) -> Any:
        """Note that a slot is read, and return what it held when it was first observed."""
        if isinstance(owner, ObservedClass) and owner.value in self.made:
            is_super = kind is SuperSlot
            for base in self.made.outer_bases(owner.value):
                self.read(
                    self.root_of(base), AttributeSlot if is_super else kind, name[1] if is_super else name
                )
        slot = self.slot(owner, kind, name)
        if slot is None:
            if kind is AttributeSlot:
                owner.note_computed(self, name)
            return UNKNOWN
        if not slot.is_read:
            slot.is_read = True
            slot.where = self.where
            if kind is AttributeSlot and isinstance(owner, (ObservedInstance, ObservedNamedTuple)):
                self._note_inherited(owner, slot)
            if not is_closed(slot.value):
                self._observe(slot.value, kind_in_library if kind is LibrarySlot else kind_of)
        return slot.value

    def assign(self, owner: Observed, kind: type[Slot], name: Any) -> None:
        """Note that a slot can be assigned to."""
        slot = self.slot(owner, kind, name)
        if slot is not None:
            slot.is_assigned = True

    def update(
        self, owner: Observed, kind: type[Slot], name: Any, addition: tuple[str, Any], place: Any = None
    ) -> None:
        """Note that a slot is read for an assignment to it only, as ``+=`` does at a place of the code."""
        slot = self.slot(owner, kind, name)
        if slot is not None:
            slot.additions.append(addition)
            if is_written_in_place(slot.value):
                container = self.read(owner, kind, name)
                if type(container) in SEQUENCES and addition[0] == "+=":
                    self.extended.add(id(container))
                else:
                    self.change(container, place)
            elif type(slot.value) is set and addition[0] == "^=":
                # Done again, the other operators change nothing more.
                self.read_whole(self.read(owner, kind, name))

    def delete(self, owner: Observed, kind: type[Slot], name: Any) -> None:
        """Note that what is in a slot can be deleted, which asks whether there is anything."""
        slot = self.slot(owner, kind, name)
        if slot is not None:
            slot.is_deleted = True
        if kind is not ItemSlot or type(owner.value) in MAPPINGS:
            self.read(owner, presence_of(owner, kind, name), name)
        elif isinstance(owner, ObservedInstance):
            self.read_whole(owner.value)
        else:
            self.move(owner.value)

    def move(self, container: Any) -> None:
        """Note that code may move elements of a list or a deque, so that they go from one place to another."""
        if type(container) in SEQUENCES:
            self.read_whole(container)

    def change(self, value: Any, place: Any = None) -> None:
        """Note that the code at a place can assign elements of a value: the trace does, or they are what they were."""
        observed = self.observe(value)
        if isinstance(observed, ObservedArray):
            observed.note_written(self.where, place)
        elif isinstance(observed, ObservedSubarray):  # whose own code writes it
            self.unseen = self.unseen or (f"a {type(value).__name__} that is written", self.where)
        elif type(value) in MEMORIES:
            self.read_whole(value)
        elif isinstance(observed, ObservedContainer):
            self.changing.add(id(value))

    def _read_by_texts(self) -> None:
        """Read the modules, and the loggers, whose names the code has or reads."""
        if not (self._marks & _OF_TEXTS or self.names_of_modules):
            return
        names = {
            name for code in self.ran for name in bytecode.reads_of(code).modules
        } | self.names_of_modules
        values = [slot.value for observed in self.objects.values() for slot in observed.slots.values()]
        texts = {value for value in values if type(value) is str}
        names |= texts
        if self._marks & _IMPORTING or self.names_of_modules or any(value is sys.modules for value in values):
            root = self.root(sys.modules, "")
            # Of modules that may only happen to be named, not all names are read: the user's own is among them.
            attributes = self._names | texts if self._is_dynamic else {*self._names}
            for name in sorted(names):
                module = self.read(root, ModuleSlot, name)
                is_certain = name in self.names_of_modules
                if type(module) is types.ModuleType and not is_library_module(module) and not is_certain:
                    self.read_named(self.observe(module), attributes)
                else:
                    self.read_whole(module)
        if "getLogger" in self._marks:
            for name in names & _loggers().keys():
                logger = _loggers()[name]
                self.add_root(logger)
                self.observe(logger).note_state(self)

    def _note_imports(self) -> None:
        """Note the modules of Python that the call imported first: a replay must find them.

        What it read of a module of a user was not there when it began, so the call has changed what it reads.
        """
        modules = self.objects.get(id(sys.modules))
        for slot in [*modules.slots.values()] if modules else ():
            module = sys.modules.get(slot.name, MISSING)
            if slot.value is MISSING and type(module) is types.ModuleType and is_library_module(module):
                slot.value = module
                self.observe(module)

    def _note_inherited(self, owner: Observed, slot: Slot) -> None:
        """Note where the attribute of an instance that the call makes is found in a replay."""
        kind = type(owner.value)
        if is_user_class(kind) and slot.name not in getattr(owner.value, "__dict__", ()):
            root = self.root_of(kind)
            if kind in self.made:
                self.read(root, AttributeSlot, slot.name)
            elif self.slot(root, AttributeSlot, slot.name) is not None:
                self.inherited.append((owner, slot, root))

    def hold(self, container: Any) -> None:
        """Note which elements a container has."""
        self.observe(container).hold(self)

    def meet_items(self, owner: Observed) -> None:
        """Look at those elements of a container, which code is about to read as a whole, that are exchanged.

        These are numbers that vary, and functions of NumPy and SciPy.
        """
        kind, value = type(owner.value), owner.value
        for key, part in [*enumerate(value)] if kind in SEQUENCES else [*value.items()]:
            if not is_hashed_by_python(key):
                continue
            if CapturedPlace(kind, ItemSlot, key) in self._varying or patches.is_patched(part):
                self.slot(owner, ItemSlot, key)

    def take(self, container: Any) -> bool:
        """Note that code draws elements out of a list or a deque; return whether it is a pool, which is not compared.

        From a few arrays or numbers each choice has a trace, so that the function can write what it has chosen.
        """
        elements = () if self.observe(container).is_whole else self.contents.get(id(container), ())
        if len(elements) > _MOST_CHOICES or (elements and is_container(next(iter(elements)))):
            self.pools.add(id(container))
        return id(container) in self.pools

    def is_pool(self, container: Any) -> bool:
        """Return whether a list or a deque is a pool that the call has not changed so far."""
        if id(container) not in self.pools or any(bytecode.reads_of(code).tells_apart for code in self.ran):
            return False
        observed, elements = self.observe(container), self.contents[id(container)]
        has_read = observed.is_whole or any(kind is ItemSlot for kind, _ in observed.slots)
        try:
            return not has_read and len(elements) == len(container) and all(map(is_, elements, container))
        except RuntimeError:  # another thread has changed it meanwhile
            return False

    def read_whole(self, value: Any) -> None:
        """Note that everything in a value can be read."""
        if is_closed(value) or self.unseen is not None or value is sys.modules:
            return
        observed = self.observe(value)
        observed.is_loose = True
        if not observed.is_whole:
            observed.is_whole = True
            observed.note_contents(self)

    def read_names(self, owner: ObservedNames) -> None:
        """Read the attributes of an object whose names the code that runs has."""
        if all(owner is not other for other in self._read_by_names):
            self._read_by_names.append(owner)
            if self._is_dynamic:
                owner.note_names(self)
            self.read_named(owner, {*self._names, *owner.own_names(self._is_dynamic)})

    def read_named(self, owner: Observed, names: Iterable[str]) -> None:
        """Read those attributes of an object that it has of the given names."""
        for name in sorted(names):
            value = owner.attribute(name)
            if value is UNKNOWN:
                self.read(owner, AttributeSlot, name)
            elif value is not MISSING or (name in self._probes and (NamesSlot, "") not in owner.slots):
                self.read_whole(self.read(owner, AttributeSlot, name))

    def _add_names_of(self, reads: Reads) -> None:
        self._texts |= reads.texts
        new = reads.stored - self.stored
        self.stored |= new
        for ident in [*self.roots] if new else ():
            self._look_at_stored(self.objects[ident], new)
        if reads.is_dynamic:
            self.read_dynamically()
        self.add_names({*reads.names, *(self._texts if self._is_dynamic else ())})
        self.add_names(set(reads.probes), may_lack=True)
        marks = reads.marks - self._marks
        self._marks |= marks
        for ident in [*self.roots] if marks else ():
            observed = self.objects[ident]
            if isinstance(observed, ObservedClass):
                self._read_marked(observed, set(marks))

    def read_dynamically(self) -> None:
        """Note that attributes are read by names that the code computes."""
        if not self._is_dynamic:
            self._is_dynamic = True
            for owner in [*self._read_by_names]:
                owner.note_names(self)
                self.read_named(owner, owner.own_names(True))
            self.add_names(set(self._texts), may_lack=True)

    def add_names(self, names: set[str], may_lack: bool = False) -> None:
        """Note that code which runs reads attributes of these names of untracked values, which may lack them."""
        new = names - (self._probes if may_lack else self._names)
        if new:
            self._names |= new
            if may_lack:
                self._probes |= new
            for owner in [*self._read_by_names]:
                self.read_named(owner, new)

    # Code that may run later

    def when_run(self, code: types.CodeType, action: Callable[[], object]) -> None:
        """Act when code has run, which may be now."""
        if code in self.ran:
            action()
        else:
            self._waiting.setdefault(code, []).append(action)

    def watch_class(self, kind: type) -> None:
        """Note the methods of a class that run."""
        if id(kind) in self.roots or not is_user_class(kind):
            return
        if kind in self.made:
            for base in self.made.outer_bases(kind):
                self.watch_class(base)
            return
        observed = self.root(kind, kind.__name__)
        for base in kind.__mro__:
            if not is_user_class(base):
                continue
            for name, raw in vars(base).items():
                function = _function_in(raw)
                if function is not None:
                    action = functools.partial(self._method_ran, observed, base, name)
                    self.when_run(function.__code__, action)

    def read_specials(self, kind: type) -> None:
        """Note which special methods a class has: Python looks for them in the class of an operand."""
        for base in user_classes(kind):
            self.read(self.root_of(base), SpecialsSlot, "")

    def _method_ran(self, observed: Observed, base: type, name: str) -> None:
        self.read(observed, AttributeSlot, name)
        if base is not observed.value:  # where super() finds it
            self.read(self.root(base, base.__name__), AttributeSlot, name)


def _function_in(raw: Any) -> types.FunctionType | None:
    """Return the Python function behind an entry of a class, or None."""
    for name in ("__func__", "fget", "func", "_function", "__wrapped__"):
        if type(raw) is not types.FunctionType and hasattr(raw, name) and not isinstance(raw, type):
            raw = getattr(raw, name)
    return raw if type(raw) is types.FunctionType else None


def _loggers() -> dict[str, Any]:
    """Return the loggers of the process by their names."""
    import logging

    return logging.root.manager.loggerDict
