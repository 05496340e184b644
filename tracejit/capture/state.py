# SPDX-License-Identifier: BSD-3-Clause
"""The state that a recording captures: arrays that it read besides its arguments, as inputs, and the rest as guards.

Long because one class answers each question of State.
"""

import io
import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.call import signature
from tracejit.capture import emit
from tracejit.capture.array_guards import ArrayGuards, TraceWrites
from tracejit.capture.arrays import SeenArray
from tracejit.capture.asked import AskedByName
from tracejit.capture.captured_functions import CapturedFunctions
from tracejit.capture.captured_numbers import CapturedNumbers
from tracejit.capture.captured_places import places_of_arrays
from tracejit.capture.changes import Assignment, changes
from tracejit.capture.differentiated import Differentiated
from tracejit.capture.exchanges import Exchanges
from tracejit.capture.generators import Generators
from tracejit.capture.guards import UNNAMED, ContentGuard, GuardList, NameGuard
from tracejit.capture.lengths import Lengths
from tracejit.capture.objects import ObservedArray
from tracejit.capture.observed import Observed, Slot
from tracejit.capture.paths import PathReader
from tracejit.capture.repeated import held_now, leave_out
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.undone import put_back
from tracejit.capture.writer import NAMES, GuardWriter
from tracejit.errors import GradientError, TraceJitError
from tracejit.ir import Builder, Value, Where
from tracejit.ops import Layout
from tracejit.record import monitor, recorder
from tracejit.record.side_effects import SideEffect, SideEffects
from tracejit.record.state import CapturedPlace, Exchange, Keeper, OwnChange, State
from tracejit.util import generated
from tracejit.util.frames import place_of, user_place
from tracejit.util.memory import owner_of
from tracejit.util.spans import Spans
from tracejit.util.text import module_of

_TAKING = frozenset(
    {"add", "discard", "next", "pop", "popitem", "popleft", "read", "readline", "remove", "send", "update"}
)
_OF_OTHER_CLASSES = (TypeError, AttributeError, BufferError, TraceJitError)


class CapturedState(State):
    """The captured arrays and the guards of one recording of a function.

    Long because it answers each question of State, in a method of some lines.

    Args:
        function: the function that is recorded.
        arguments: leaves of its arguments. A function among them reads more than its part of the key says.
        name_of: returns the name of a leaf by its number.
        keeps_entered: whether take_entered() will be called.
        exchange: what places hold while the function runs.

    Attributes:
        results: ids of data that the function returned, to be set before the recording ends.
        given_back: constants that it returned.
        lengths: of lists that vary.
        located: objects that a replay has to find, to be set likewise.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        name_of: Callable[[int], str],
        keeps_entered: bool,
        exchange: Exchange,
    ) -> None:
        self._function: Any = function
        self._arguments = arguments
        self._name_of = name_of
        self._snapshot: Snapshot | None = None
        self._watch: Any = None
        self._seen: list[SeenArray] = []
        self._by_data: dict[int, SeenArray] = {}
        self._by_value: dict[int, Value] = {}  # by the id of the Value on the outer tape
        self._taken: dict[int, tuple[np.ndarray, bytes]] = {}
        self._selected: set[tuple[CodeType, int]] = set()
        self._writes = TraceWrites()
        self._derivatives = Differentiated()
        self._exchanges: Exchanges | None = None
        self._observed, self._known = Spans(), 0  # ndarrays, of how many objects
        self._exchange = exchange
        self.looks_at_calls = bool(exchange.tried)
        self.lengths = Lengths(exchange.places, self._methods_of)
        self._captured_numbers: CapturedNumbers | None = CapturedNumbers(
            self, exchange.places, self._seen, self.lengths
        )
        self._captured_functions = CapturedFunctions()
        self._builder: Builder | None = None
        self._guards: list[NameGuard] = []
        self._contents: dict[int, ContentGuard] = {}
        self._numbers: list[Any] = []  # operands
        self._given: list[weakref.ref[np.ndarray]] = []
        self._sources: dict[str, str] = {}
        self._names: dict[str, Any] = {}
        self.of_outer: dict[Value, Any] = {}
        self.results: set[int] = set()
        self._keeps_entered = keeps_entered
        self._entered: dict[Value, np.ndarray] = {}
        self.given_back: list[Any] = []
        self.located: list[Any] = []
        self.changed: OwnChange | None = None
        self.unguarded: tuple[str, Where] | None = None
        self.drew: tuple[str, Where] | None = None
        self._effects = SideEffects()
        self._acts = False  # whether it has effects
        self.keepers: Sequence[Keeper] = ()
        self._reachable: set[int] = set()  # ids of the objects that a replay can find
        self._has_files = False  # whether any of them is a file
        self._assignments: list[Assignment] = []
        self._orders: list[tuple[dict[Any, Any], list[Any]]] = []

    def open(self) -> None:
        """Start watching the functions that run in this thread."""
        assert self._captured_numbers is not None
        varying = self._exchange.places
        self._snapshot = Snapshot(self._function, self._arguments, self._name_of, self._met, varying)
        self._exchanges = Exchanges(self._snapshot, self._exchange, self._captured_numbers.tuples)
        reader = PathReader(
            self._snapshot, self._exchanges.started, self._captured_functions.started, self.lengths.asked
        )
        asked = AskedByName(self._snapshot, self._exchanges.started).asked
        self._watch = monitor.Watch(reader.started, self._effects, reader.used, asked)
        self._watch.__enter__()

    def _met(self, observed: Observed, slot: Slot) -> None:
        """Have something else stand in a slot that is looked at for the first time, if it is to."""
        if self._captured_numbers is not None:
            self._captured_numbers.met(self._snapshot, observed, slot)
        self._captured_functions.met(observed, slot)

    def value(self, builder: Builder, data: np.ndarray) -> Value | None:
        """Return the input that stands for an untraced array, which may turn out to be a constant."""
        self._builder = builder
        seen = self._by_data.get(id(data))
        if seen is None or not seen.is_same:
            copy = data.copy()  # the user may write to the array during the recording
            value = builder.input(Aval(data.shape, None, data.dtype), copy)
            seen = self._by_data[id(data)] = SeenArray(data, value, copy)
            self._seen.append(seen)
        seen.places.add(user_place())
        return seen.value

    def outer(self, builder: Builder, array: Any) -> Value:
        """Return the input that stands for an array of the evaluation around the recording."""
        value: Value | None = self._by_value.get(id(array._value))
        if value is None:
            data = array._data
            value = builder.input(Aval(data.shape, None, data.dtype), data)
            self._by_value[id(array._value)] = value
            self.of_outer[value] = array
            self._seen.append(SeenArray(data, value, data, array))
        return value

    def differentiates(self, target: Value) -> None:
        """Note that a derivative of a value is taken."""
        self._derivatives.targets.add(target)

    def differentiates_by(self, value: Value) -> None:
        """Note that a derivative is taken by the captured array that an input stands for."""
        self._derivatives.variables.add(value)

    def elements(self, value: Value) -> np.ndarray | None:
        """Return the elements of the captured array that an input of the graph stands for."""
        return next((seen.data for seen in self._seen if seen.value is value), None)

    def is_left(self, value: Value, noted: Mapping[int, np.ndarray]) -> bool:
        """Return whether nothing but the recorder's notes refers to the array of an input any more."""
        seen = next((seen for seen in self._seen if seen.value is value), None)
        return seen is not None and seen.array is None and seen.is_left(noted)

    def holder(self, array: np.ndarray) -> np.ndarray | None:
        """Return the ndarray that a path leads to, and that is an array or has its elements; None if there is none."""
        if self._snapshot is None:
            return None
        objects = self._snapshot.objects
        if len(objects) > self._known:
            for observed in itertools.islice(objects.values(), self._known, None):
                if type(observed.value) is np.ndarray:
                    self._observed.add(observed.value, observed.value)
            self._known = len(objects)
        holders = self._observed.near(array)
        largest: np.ndarray | None = max(holders, key=lambda x: (x.size, x is array), default=None)
        return largest

    def stored(self, array: np.ndarray) -> None:
        """Note that plain NumPy will write elements of an ndarray, by the code that the user is at."""
        if self._snapshot is not None and (holder := self.holder(array)) is not None:
            self._snapshot.change(holder, user_place())

    def gives(self, array: np.ndarray) -> None:
        """Note that the function returns an ndarray, whose elements are constants of the trace."""
        # A view ends with the call, and a reference would count as one that the function keeps.
        self._given.append(weakref.ref(owner_of(array)))

    def shows(self, array: np.ndarray) -> None:
        """Note that the recording may have views of an ndarray, and write it through them."""
        self._writes.through.append(array)

    def writes(self, array: np.ndarray) -> None:
        """Note that the recording writes an ndarray, by the code that the user is at."""
        self._writes.note(array, self.holder(array) is not None, user_place())

    def take_entered(self) -> dict[Value, np.ndarray]:
        """Return the elements of the captured arrays of a recording that has ended, by the inputs for them."""
        entered, self._entered = self._entered, {}
        return entered

    def is_pool(self, container: Any) -> bool:
        """Return whether a list or a deque is not compared, because the code takes drawn elements of it only."""
        return self._snapshot is not None and self._snapshot.is_pool(container)

    def is_apart(self, array: np.ndarray) -> bool:
        """Return whether an array in a pool can be written, and shares no memory with what the code reads otherwise."""
        return array.flags.writeable and self.holder(array) is None

    def read_pool(self, container: Any) -> None:
        """Note that elements of a list or a deque are read otherwise, so that it is compared."""
        if self._snapshot is not None:
            self._snapshot.read_whole(container)

    def _methods_of(self, ident: int) -> Sequence[str] | None:
        """Return the methods that were called of a container and change it; None if code can change it otherwise."""
        snapshot = self._snapshot
        if snapshot is None or ident in snapshot.changing or ident in snapshot.extended:
            return None
        return tuple(self._effects.methods().get(ident, ()))

    def number(self, number: Any) -> None:
        """Note a number that is a constant of the trace."""
        self._numbers.append(number)

    def taken(self, data: np.ndarray) -> None:
        """Note that the elements of an untraced dlarray were read by Python or by NumPy."""
        if id(data) not in self._taken:
            self._taken[id(data)] = (data, data.tobytes())

    def taken_count(self) -> int:
        """Return the number of untraced arrays whose elements were read by Python or by NumPy."""
        return len(self._taken)

    def forget_taken(self, count: int) -> None:
        """Forget what was read of such arrays after the first `count`."""
        for ident in [*self._taken][count:]:
            del self._taken[ident]

    def selected(self, code: CodeType, at: int) -> None:
        """Note that plain NumPy selects elements of an ndarray, at an instruction of the user's code."""
        self._selected.add((code, at))

    def side_effect(self) -> SideEffect | None:
        """Return an effect of the function that a replay does not repeat, as long as the recording goes on."""
        effect = self._effects.first(self._reachable.__contains__, _is_traced, self._has_files)
        self._acts = effect is not None
        return effect

    def handles_errors(self) -> bool:
        """Return whether the function may handle an error, as long as the recording goes on."""
        return self._snapshot is not None and any(code.co_exceptiontable for code in self._snapshot.ran)

    @property
    def generators(self) -> Generators | None:
        """The generators of random numbers that were met, as long as the recording goes on."""
        return None if self._snapshot is None else self._snapshot.generators

    def called(self, function: Any, arguments: Sequence[Any] | None) -> None:
        """Note a call, which may hand on an ndarray that is to be exchanged."""
        if self._exchanges is not None:
            self._exchanges.called(function, arguments)

    def is_of_exchange(self, error: Exception, has_replaced: bool) -> bool:
        """Return whether an error may be due to what places held.

        Functions in C and those of Numba refuse arrays that are no ndarrays.

        Args:
            error: that the function raised.
            has_replaced: whether arrays took the places of ndarrays that the function made.
        """
        is_alike = isinstance(error, _OF_OTHER_CLASSES) and not isinstance(error, GradientError)
        is_alike |= module_of(type(error)).startswith("numba")
        if not is_alike or self._snapshot is None:
            return False
        exchanges, numbers = self._exchanges, self._captured_numbers
        has_places = exchanges is not None and exchanges.has_places
        return has_places or has_replaced or (numbers is not None and numbers.has_places)

    def can_repeat(self) -> bool:
        """Return whether the function can run again: it has drawn no random numbers, and taken nothing from iterators.

        What it has done to sets, iterators and the like cannot be undone.
        """
        if self._snapshot is None or self._snapshot.generators.drawn_from() is not None:
            return False
        return all(_TAKING.isdisjoint(code.co_names) for code in self._snapshot.ran)

    def abandon(self) -> None:
        """Stop watching a function that raised an error, and undo what it has changed."""
        snapshot = self._stop()
        if snapshot is not None:
            put_back(snapshot, self._assignments, self._orders, self._reachable)
        self._forget()

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Run user's code that replays run too: they repeat what it changes."""
        before = None if self._snapshot is None else held_now(self._snapshot)
        yield
        if self._snapshot is not None and before is not None:
            leave_out(self._snapshot, before)

    def changes(self) -> tuple[list[Assignment], set[int], list[tuple[dict[Any, Any], list[Any]]]]:
        """Return what the function has put into objects that a replay can find, their ids, and the order of keys."""
        if self._snapshot is None:
            return [], set(), []
        try:
            found = changes(self._snapshot, self._effects.methods())
            self._reachable = found.reachable
            self._assignments, self._orders = found.assignments, found.orders
            self._has_files = any(
                isinstance(self._snapshot.objects[ident].value, io.IOBase) for ident in self._reachable
            )
            self.keepers = [
                Keeper(
                    observed.value,
                    name,
                    self._effects.put_at(observed.value),
                    observed.held_at if is_read else None,
                )
                for observed, name, is_read in found.unrepeated
            ]
            for observed in found.resized:
                self._effects.resized(observed.value, observed.where)
            return found.assignments, found.reachable, found.orders
        except Exception as error:
            self._snapshot.refuse(error)
            return [], set(), []

    def reached_arrays(self) -> list[np.ndarray]:
        """Return the ndarrays among the objects that a replay can find."""
        if self._snapshot is None:
            return []
        values = [self._snapshot.objects[ident].value for ident in self._reachable]
        return [value for value in values if type(value) is np.ndarray]

    def has_noted(self, value: Any) -> bool:
        """Return whether an object was met that a replay finds besides the arguments."""
        return id(value) in self._reachable

    def shares_memory(self, memory: Any) -> bool:
        """Return whether an array that a replay finds besides the arguments has elements in some memory."""
        if self._snapshot is None or not isinstance(memory, np.ndarray):
            return False
        observed = [self._snapshot.objects[ident] for ident in self._reachable]
        arrays = [each.data for each in observed if isinstance(each, ObservedArray) and each.tape is None]
        return any(isinstance(data, np.ndarray) and np.may_share_memory(data, memory) for data in arrays)

    def noted_arrays(self) -> list[np.ndarray]:
        """Return the ndarrays that are noted because they entered the recording, as often as they are."""
        return [*[entry.data for entry in self._seen], *[data for data, _ in self._taken.values()]]

    def noted_objects(self) -> Counter[int]:
        """Return how often the notes of the recording refer to objects, by the ids of these."""
        return Counter() if self._snapshot is None else self._snapshot.references()

    def close(self) -> None:
        """Stop watching, and turn what was observed into inputs and guards."""
        snapshot = self._stop()
        if snapshot is None:
            return
        snapshot.ended()
        guards = GuardList({**NAMES}, snapshot.unseen)
        has_computed = partial(self._has_computed, snapshot)
        selected = [place_of(code, at) for code, at in self._selected]
        arrays = ArrayGuards(
            guards,
            snapshot,
            self._seen,
            has_computed,
            self._taken,
            self.results,
            selected,
            self._writes,
            self._given,
        )
        writer = GuardWriter(snapshot, guards, arrays, self.located, self._acts)
        writer.write()
        arrays.differentiated(self._derivatives)
        self._locate(guards, writer)
        for entry in self._seen:
            if not entry.is_input and self._builder is not None:
                self._builder.graph.make_constant(entry.value)
            elif not entry.is_input:  # a number in what the function has put elsewhere
                guards.refuse(f"a number {UNNAMED}", None)
        inputs = [entry for entry in self._seen if entry.is_input]
        if self._keeps_entered:
            self._entered = {entry.value: entry.data for entry in inputs if entry.array is None}
        self.names = tuple([entry.name for entry in inputs])
        self.layouts = tuple([_layout(entry.data) for entry in inputs])
        self.drew = snapshot.generators.drawn_from()
        self.compared = arrays.compared
        self.changed, self.unguarded, self._guards = guards.changed, guards.unguarded, guards.guards
        places = places_of_arrays(snapshot) if guards.changed_arrays else {}
        changed = [place for array in guards.changed_arrays for place in places.get(id(array), ())]
        self.changed_places = (*guards.changed_places, *changed)
        if self.changed_places and all(place in self._exchange.places for place in self.changed_places):
            # It puts what NumPy computed where an array of the recording was: of an ndarray that may vary, too.
            self.changed_places += tuple(_read_by_numpy(snapshot))
        self.fetches = True
        self._names, self._contents = guards.names, guards.contents
        if self.changed is None and self.unguarded is None:  # otherwise it is never replayed
            self._emit(guards, arrays, snapshot.generators.are_drawn_from)
        self._forget()

    def _locate(self, guards: GuardList, writer: GuardWriter) -> None:
        """Note how a replay finds the objects that the function stores to."""
        variables = [writer.variable_of(value) for value in self.located]
        for value, variable in zip(self.located, variables, strict=True):
            if variable is None:
                guards.refuse(f"a {type(value).__name__} {UNNAMED}", None)
        self.objects = tuple(filter(None, variables))
        self.located = []

    def _emit(self, guards: GuardList, arrays: ArrayGuards, draws: bool) -> None:
        """Write the functions that a replay calls."""
        every = [*guards.tests, *guards.checks]
        fetched, within = arrays.inputs.expressions(), arrays.inputs.expressions(within=True)
        self.inlined = (emit.tested(guards.tests, "return MISS"), guards.names, fetched)
        self.inlined_with_sizes = (emit.tested(every, "return MISS"), *self.inlined[1:]) if draws else None
        self._sources = {
            "fetch": emit.fetching(guards.tests, fetched),
            "_checked": emit.fetching(every, fetched),
            "_failed": emit.failing(every),
            "_within": emit.fetching(every, within, emit.WITHIN),
            "_located": emit.locating(every, fetched, self.objects),
            "_located_within": emit.locating(every, within, self.objects, emit.WITHIN),
        }

    def _has_computed(self, snapshot: Snapshot) -> bool:
        """Return whether a constant of the trace, or a result, does not stand in the user's code."""
        literals = snapshot.literals(self._arguments)
        return any(
            isinstance(value, (np.ndarray, np.generic, str))
            or (type(value) is float and value not in literals)
            for value in (*self._numbers, *self.given_back)
        )

    def ran(self) -> None:
        """Stop watching, because watched code takes longer, by far on Python 3.11."""
        if self._watch is not None:
            self._watch.__exit__()
            self._watch = None  # not before: an exception of a signal handler may come in the line above
        self._captured_functions.end(self._snapshot)
        self.lengths.end()
        if self._exchanges is not None:
            self.has_exchanged = self._exchanges.has_places
            self.given = frozenset(self._exchanges.given)
            self._exchanges.end()
            self._exchanges = None
        if self._captured_numbers is not None:
            self.has_numbers = self._captured_numbers.has_places
            if self._snapshot is not None:
                self._captured_numbers.end(self._snapshot, self._effects.methods())
            self._captured_numbers = None

    def _stop(self) -> Snapshot | None:
        self.ran()
        self._observed = Spans()  # references to arrays count from now on
        snapshot, self._snapshot = self._snapshot, None
        return snapshot

    def _forget(self) -> None:
        """Release everything that belongs to the recording."""
        self._effects, self._reachable = SideEffects(), set()
        self._assignments, self._orders = [], []
        self._function, self._arguments, self._builder = None, (), None
        self._seen, self._numbers, self.given_back, self.located = [], [], [], []
        self._given = []
        self._writes = TraceWrites()
        self._derivatives = Differentiated()
        self._by_data, self._by_value, self._taken = {}, {}, {}
        self.of_outer = {}

    def _compiled(self, name: str) -> Callable[[], Any]:
        """Return one of the generated functions, compiled when it is first called."""
        function: Callable[[], Any] | None = self.__dict__.get(f"{name}()")
        if function is None:
            function = generated.function(self._sources[name], f"<tracejit guards {name}>", self._names)
            self.__dict__[f"{name}()"] = function
        return function

    def source(self) -> str:
        """Return the source of fetch()."""
        return self._sources["fetch"]

    def fetch(self) -> tuple[np.ndarray, ...] | None:
        """Return the current arrays, or None if a guard does not hold; the executor checks sizes."""
        return self._compiled("fetch")()  # type: ignore[no-any-return]

    def fetcher(self) -> Callable[[], Any]:
        """Return the function that fetch() calls."""
        return self._compiled("fetch")

    def fetch_checked(self) -> tuple[np.ndarray, ...] | None:
        """Return what fetch() does, with sizes, dtypes and layouts compared too."""
        return self._compiled("_checked")()  # type: ignore[no-any-return]

    def fetch_within(self) -> tuple[Any, ...] | None:
        """Return what fetch_checked() does, with dlarrays unchanged: they may be on the tape around the call."""
        return self._compiled("_within")()  # type: ignore[no-any-return]

    def fetch_located(self, within: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return what fetch_checked() or fetch_within() does, and the objects that the function stores to."""
        return self._compiled("_located_within" if within else "_located")()  # type: ignore[no-any-return]

    def applies(self) -> bool:
        """Return whether all guards hold; an array may be on the tape of the evaluation around a call."""
        return self.failed() is None

    def failed(self) -> NameGuard | None:
        """Return the first guard that does not hold now, or None if all do."""
        number = self._compiled("_failed")()
        return self._guards[number] if number >= 0 else None

    def loosen(self, is_same: Callable[[], bool]) -> bool:
        """Stop comparing loose arrays that have changed while a new recording is the same: see State."""
        changed: list[ContentGuard] = []
        number = self._compiled("_failed")()
        while number in self._contents:
            changed.append(self._contents[number])
            changed[-1].is_asked = False
            number = self._compiled("_failed")()
        is_unused = bool(changed) and number < 0 and is_same()
        moved = is_unused and Counter(loose.before for loose in changed) == Counter(
            loose.after for loose in changed
        )
        for loose in changed:
            loose.is_asked = True
            if is_unused:
                loose.note_harmless_change(moved)
        return is_unused

    def guards(self) -> list[NameGuard]:
        """Return the guards that explain() lists and a replay still compares."""
        return [
            guard
            for number, guard in enumerate(self._guards)
            if guard.is_told and (number not in self._contents or self._contents[number].is_compared)
        ]


def _read_by_numpy(snapshot: Snapshot) -> list[CapturedPlace]:
    """Return the places of the ndarrays whose elements plain NumPy can have read."""
    places = places_of_arrays(snapshot)
    return [
        place
        for observed in snapshot.objects.values()
        if isinstance(observed, ObservedArray) and observed.content is not None and not observed.is_exchanged
        for place in places.get(id(observed.value), ())
    ]


def _layout(data: np.ndarray) -> Layout | None:
    part = signature.array_part(data)
    return Layout(0, part.shape, part.strides) if part.strides else None


def _is_traced(value: Any) -> bool:
    return recorder.is_number(value) or (recorder.is_array(value) and value._value is not None)
