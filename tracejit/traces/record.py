# SPDX-License-Identifier: BSD-3-Clause
"""One run of a function: records a trace and returns the result."""

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.autodiff import forward
from tracejit.call.explain import container_names, leaf_names
from tracejit.call.result import ArrayLeaf, NumberLeaf, ResultLayout, is_output, with_containers
from tracejit.call.signature import ArrayPart, Call, NumberPart, is_packed
from tracejit.capture.state import CapturedState
from tracejit.capture.values import data_of
from tracejit.errors import ArgumentError, WriteError
from tracejit.functions import rng
from tracejit.ir import Graph, Value, Where
from tracejit.record import crossings, generator_draws, guards, patches, views
from tracejit.record import recorder as recorders
from tracejit.record.argument_containers import ContainerCopies, PassedContainer
from tracejit.record.memory import Change, check_same, is_ndarray
from tracejit.record.number import Number, settled_by_errors
from tracejit.record.number import end as end_numbers
from tracejit.record.plain_numbers import PlainNumber
from tracejit.record.side_effects import SideEffect
from tracejit.record.state import Exchange, OwnChange, State
from tracejit.record.subscripts import Subscripts
from tracejit.traces import drawn_elements, loops, refusals
from tracejit.traces.collect_stores import Collector
from tracejit.traces.effects import NO_EFFECTS, Effects, aliases_of
from tracejit.traces.places import guard_places
from tracejit.traces.recorded_results import returned_arrays
from tracejit.traces.stores import Stores
from tracejit.traces.trace import Trace
from tracejit.util.devices import OnDevice
from tracejit.util.devices import write as write_all
from tracejit.util.frames import global_names
from tracejit.util.named_tuples import NamedTuple

loops.install()
_EXCHANGE = Exchange()


class NotTakenError(Exception):
    """The sign that a function may not take what places hold while it is recorded; its cause is what was raised.

    Attributes:
        before: ndarrays that it has written, and the elements that they had.
        is_undone: whether nothing else of what it has done is left, so that it can run again.
    """

    def __init__(self, before: Sequence[tuple[np.ndarray, np.ndarray]], is_undone: bool) -> None:
        super().__init__()
        self.before = before
        self.is_undone = is_undone


def _nothing(call: Call) -> None:
    """Do nothing."""


class Met(NamedTuple):
    """The arrays that a function writes, and those on a device that it met besides its arguments.

    read        the latter
    written     the arrays besides its arguments that it writes
    arguments   the numbers of the arguments that it writes
    """

    read: Sequence[OnDevice] = ()
    written: Sequence[Any] = ()
    arguments: Sequence[int] = ()


NOTHING_MET = Met()


def _same(result: Any, met: Met) -> Any:
    return result


class Recording(NamedTuple):
    """The outcome of one recorded run.

    trace       None where what was recorded is right for this call only
    result      of the function
    needed      for number arguments that should be inputs of the trace but are needed as Python numbers: by the number
                of the leaf, what needs the number, and where
    commit      puts what the function has stored into the objects around it, given the caller's call; called once
    met         what it writes, and what it met on a device
    """

    trace: Trace | None
    result: Any
    needed: dict[int, tuple[str, Where]]
    commit: Callable[[Call], None] = _nothing
    met: Met = NOTHING_MET


def record(
    name: str,
    function: Callable[..., Any],
    call: Call,
    outer: recorders.Recorder | None = None,
    write: bool = True,
    place: Callable[[Any, Met], Any] = _same,
    exchange: Exchange = _EXCHANGE,
) -> Recording:
    """Run a function once, on a trace of its own.

    Args:
        name: of the function, for messages and emitted modules.
        function: the function to run.
        call: its arguments.
        outer: the recorder of the evaluation around the call, if there is one; the recorded operations are then
            appended to that tape too, and the arrays of the result are on it.
        write: whether what the function writes into its arguments reaches the caller's arrays.
        place: returns the result, and what is stored, with arrays where they belong, given what the function met on
            a device. It may fail, so it is called before anything is written or stored.
        exchange: what places hold while the function runs.

    Raises:
        NotTakenError: if the function raised an error that may be due to that; nothing was written or stored.
    """
    name_of = partial(_leaf_name, function, call.key.structure)
    reads = CapturedState(function, call.leaves, name_of, outer is not None, exchange)
    recorder = recorders.Recorder(name, accelerating=True, state=reads)
    recorder.names = global_names(function)
    recorder.replaces = exchange.of_made
    recorder.around = None if outer is None else weakref.ref(outer)
    with settled_by_errors(recorder), recorder:
        recorder.memories.place = partial(_place, function, call)
        recorder.memories.writes_sources = write
        inputs = _inputs(recorder, call)
        returned, stores, containers = _run(function, call, inputs, recorder, reads, write)
        # What is stored is the second part of the result.
        leaves, treedef = tree.flatten((returned, stores.outputs) if stores.returns else returned)
        del returned
        results, values = _results(name, recorder, leaves)
        del leaves  # an ndarray among them was made in the call if only they refer to it
        writes = _writes(recorder, reads, inputs, call)
        drawn_elements.check(recorder, stores.outputs, any(write.change is None for write in writes))
        met = _met(recorder, writes)
        written = [(recorder.value(write.result), write.result) for write in writes]
        everything = [*values, *written]
        handles_errors = guard_places(recorder, reads, [value for value, _ in everything])
        length = len(recorder.graph.nodes)  # reading the Value of a view may record it
        on_tape: dict[Value, Value] = {}
        arrays = returned_arrays(recorder, everything, call, outer, on_tape)
        found = generator_draws.found_by(recorder.generator_draws)
        side_effect = _tell(reads, values, results, stores, found)
        graph = recorder.graph
        holds = guards.conjunction(recorder.builder, recorder.guards)
    del inputs
    stores.outputs = []
    _enter(outer, reads, on_tape)
    end_numbers(recorder, _defined(function))
    _refuse(recorder, reads, stores)
    state = _state(reads, recorder, found, len(call.arrays), writes)
    result = ResultLayout(results, treedef)
    effects, outputs = _effects(graph, writes, written, call, state, recorder.memories.met_numbers)
    graph.outputs = [*[value for value, _ in values], *outputs, *([] if holds is None else [holds])]
    trace = Trace(
        graph, result, name, call.key, recorder.guards, state, recorder.refusal, length, effects, stores
    )
    # A generator has to be left as the function leaves it that raises an error.
    trace.side_effect, trace.handles_errors = side_effect, handles_errors or bool(recorder.generator_draws)
    trace.plain_inputs = _plain_inputs(recorder)
    trace.in_vain = recorder.attempts.in_vain
    trace.shared = None if stores.shared is None else stores.shared[0]
    placed = with_containers(place(result.assemble(arrays), met), containers)
    kept = trace if _is_kept(recorder) else None
    recorded = _committing(Recording(kept, placed, recorder.needed, met=met), stores, containers)
    _write(writes, arrays[len(values) :], call)
    return recorded


def _run(
    function: Callable[..., Any], call: Call, inputs: list[Any], recorder: recorders.Recorder, reads: CapturedState,
    write: bool,
) -> tuple[Any, Stores, list[Any]]:  # fmt: skip
    """Run a function; return its result, what it stores, and the caller's containers among the arguments."""
    args, kwargs = arguments = tree.unflatten(call.treedef, inputs)
    copies = ContainerCopies(call.treedef, call.arguments, arguments)
    if copies.extra is not None:
        recorder.refuse(*refusals.no_field(copies.extra))
    names = partial(container_names, function, call.key.structure)
    error: Exception | None = None
    try:
        with crossings.Calls(recorder), Subscripts(recorder):
            crossings.cross(recorder, function, [args, kwargs])
            returned = patches.standing_for(function)(*args, **kwargs)
        if write:
            copies.check(recorder.name, names)
        returned = copies.with_passed(returned, PassedContainer) if write else returned
        # In containers of its own: what is assigned in those of the user's is undone below.
        parts, structure = tree.flatten(returned)
        returned = tree.unflatten(structure, parts)
        del parts
    except Exception as raised:
        error = raised if reads.is_of_exchange(raised, recorder.has_replaced) else None
        if error is None:
            drawn_elements.end(recorder)
        raise
    finally:  # after an error nothing is stored
        can_repeat = error is not None and reads.can_repeat()
        reads.ran()
        collector = Collector(recorder, reads, len(call.arrays), copies if write else None, names)
        drawn_elements.note_kept(recorder, collector.assigned)
        stores = collector.collect()
        if error is not None:
            is_undone = collector.undoes_all and reads.side_effect() is None and can_repeat
            if is_undone and reads.generators is not None:
                reads.generators.give_back()
            raise NotTakenError([*recorder.memories.ndarrays.values()], is_undone) from error
    if stores.shared is not None and stores.shared[-1]:
        place, kind, _ = stores.shared
        raise WriteError(
            f"{recorder.name}: it puts something into {place}, a {kind} that it also reads by another name than that "
            "of the argument, which does not show this before the call has ended. Use one of the two names."
        )
    for token in recorder.tokens.values():  # which holds, and keeps the draws of the program
        recorder.guard(recorder.value(token), guards.Decides.TRUTH, "what a generator draws")
    return returned, stores, copies.originals


def _enter(outer: recorders.Recorder | None, reads: CapturedState, on_tape: dict[Value, Value]) -> None:
    """Tell the evaluation around the call of the captured arrays that were met inside."""
    if outer is not None:
        for value, elements in reads.take_entered().items():
            outer.captured(elements, on_tape[value])


def _committing(recorded: Recording, stores: Stores, containers: Sequence[Any]) -> Recording:
    """Return a recording whose result is without what is stored, which its commit stores."""
    if not stores.stores and not stores.orders:
        return recorded
    result, stored = recorded.result if stores.returns else (recorded.result, ())
    return recorded._replace(result=result, commit=partial(stores.commit_recorded, stored, containers))


def _plain_inputs(recorder: recorders.Recorder) -> dict[int, PlainNumber]:
    """Return the numbers of the inputs that plain numbers without a derivative depend on, and who made these."""
    found: dict[int, PlainNumber] = {}
    for number, read in enumerate(recorder.graph.inputs if recorder.plain_numbers else ()):
        computed = forward.computed_from(recorder.graph.nodes, read)
        for value, plain in recorder.plain_numbers.items():
            if value in computed:
                found[number] = plain
    return found


def _is_kept(recorder: recorders.Recorder) -> bool:
    """Return whether a recording is right for other calls, too."""
    return recorder.replayable and not recorder.needed


def _tell(
    reads: CapturedState, values: list[tuple[Value, dlarray]], results: list[Any], stores: Stores,
    generators: Sequence[Any],
) -> SideEffect | None:  # fmt: skip
    """Tell the captured state what the function gives back and stores, and what it draws from, before it ends.

    Returns:
        An effect that a replay does not repeat.
    """
    arrays = [data_of(array) for array in stores.arrays]
    reads.results = {id(data) for data in (*[leaf._data for _, leaf in values], *arrays)}
    reads.given_back = [*[leaf for leaf in results if not is_output(leaf)], *stores.constants]
    reads.located = [*stores.objects, *generators]
    return reads.side_effect()


def _refuse(recorder: recorders.Recorder, reads: CapturedState, stores: Stores) -> None:
    """Refuse a recording whose reads cannot be checked, or whose stores cannot be made again."""
    if stores.impossible is not None:
        recorder.refuse(*refusals.not_stored(stores.impossible))
    if stores.impossible_view is not None:
        recorder.refuse(*refusals.view_not_stored(stores.impossible_view))
    if reads.unguarded is not None:
        recorder.refuse(*refusals.unguarded(reads.unguarded))
    if stores.unmade is not None and reads.changed is None:
        name, where = stores.unmade
        reads.changed = OwnChange(name, where if where and where[0] else None, False, is_made=True)


def _defined(function: Any) -> Where:
    code = getattr(function, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


class _Write(NamedTuple):
    """A write of the function: an array with the new elements, and where they go.

    input       the Value that stands for the old elements
    result      the array with the new ones
    number      of the array among those of the call
    change      of a captured array, which has no number
    """

    input: Value
    result: dlarray
    number: int
    change: Change | None


def _writes(
    recorder: recorders.Recorder, reads: CapturedState, inputs: list[Any], call: Call
) -> list[_Write]:
    """Return the writes of a function that has ended.

    Raises:
        WriteError: if an argument shares memory with one that is written, and shows it in another way.
    """
    writes = []
    values = iter(recorder.graph.inputs)
    number = 0
    for leaf, part in zip(inputs, call.key.parts, strict=True):
        if type(leaf) is dlarray or type(part) is NumberPart:  # a Number may be a true number by now
            value = next(values)
            if type(leaf) is dlarray and leaf._value is not value and recorder.memories.writes_sources:
                writes.append(_Write(value, leaf, number, None))
            number += 1
    memory = call.memory if writes else []
    shared = [
        write.number
        for write in writes
        if reads.shares_memory(memory[write.number]) or drawn_elements.share(recorder, memory[write.number])
    ]
    if shared:
        place = recorder.memories.place(shared[0])
        raise WriteError(
            f"{recorder.name}: it writes {place}, whose memory it also reads by another name than that of the "
            "argument, which does not show the write before the call has ended. Use one of the two names."
        )
    if call.originals:  # the function saw copies, which do not share memory as these do
        memory = call.memory
        for write in writes:
            for number, other in enumerate(memory):
                check_same(memory[write.number], other, recorder.memories.place(number), recorder.name)
    changes = recorder.restored()
    if any(not is_packed(change.data) for change in changes):
        recorder.refuse(*refusals.copied_at_each_call(recorders.user_location()))
    return writes + [_Write(c.input, c.result, -1, c) for c in changes]


def _state(
    reads: CapturedState,
    recorder: recorders.Recorder,
    found: Sequence[Any],
    arguments: int,
    writes: Sequence[_Write],
) -> State:
    """Return the captured state of a recording that has ended, with its draws."""
    written = {write.input for write in writes}
    draws = recorder.generator_draws
    return generator_draws.joined(
        rng.joined(reads, recorder), draws, found, recorder.graph, arguments, written
    )


def _effects(
    graph: Graph,
    writes: list[_Write],
    written: list[tuple[Value, dlarray]],
    call: Call,
    state: State,
    met_numbers: bool,
) -> tuple[Effects, list[Value]]:
    """Return the effects of a trace, and the values that they write."""
    if not writes:
        return Effects(numbers=True) if met_numbers else NO_EFFECTS, []
    numbers = {value: number for number, value in enumerate(graph.inputs)}
    # A captured array that is no input was made in the call.
    kept = [
        (numbers[write.input], value)
        for write, (value, _) in zip(writes, written, strict=True)
        if write.input in numbers
    ]
    targets = tuple([number for number, _ in kept])
    replayable = state.changed is None and state.unguarded is None
    read = state.looked_at(within=True) if replayable else None
    memory = [*call.memory, *[x._data if type(x) is dlarray else x for x in read or ()]]
    aliases = aliases_of(targets, memory) if read is not None else frozenset()
    return Effects(targets, aliases, met_numbers), [value for _, value in kept]


def _met(recorder: recorders.Recorder, writes: list[_Write]) -> Met:
    read = [data for data in recorder.memories.read.values() if isinstance(data, OnDevice)]
    changed = [write.change.data for write in writes if write.change is not None]
    return Met(read, changed, [write.number for write in writes if write.change is None])


def _write(writes: list[_Write], arrays: list[dlarray], call: Call) -> None:
    """Write what a function wrote into the memory of the arrays that the caller has."""
    memory = call.memory if writes else []
    targets, contents = [], []
    for write, array in zip(writes, arrays, strict=True):
        if array._value is not None:  # on the tape of the evaluation around the call
            views.store(call.arrays[write.number] if write.change is None else write.change.array, array)
        else:
            targets.append(memory[write.number] if write.change is None else write.change.data)
            contents.append(array._data)
    write_all(targets, contents)


def _leaf_name(function: Callable[..., Any], structure: Any, number: int) -> str:
    """Return the name of a leaf of the arguments, given its number."""
    return leaf_names(function, structure)[number]


def _place(function: Callable[..., Any], call: Call, number: int) -> str:
    """Return the name of an array among the arguments, given its number among them."""
    names = leaf_names(function, call.key.structure)
    arrays = [i for i, part in enumerate(call.key.parts) if isinstance(part, (ArrayPart, NumberPart))]
    return names[arrays[number]]


def _results(
    name: str, recorder: recorders.Recorder, leaves: list[Any]
) -> tuple[list[Any], list[tuple[Value, dlarray]]]:
    """Return the leaves of a result as a ResultLayout has them, and the recorded arrays among them."""
    results: list[Any] = []
    values: list[tuple[Value, dlarray]] = []
    for leaf in leaves:
        leaf = recorder.given_back(leaf)
        if type(leaf) is dlarray and is_ndarray(leaf):
            results.append(leaf._data.copy())
        elif type(leaf) is dlarray:
            recorders.check_open(leaf)
            value = recorder.value(leaf)
            if id(leaf) in recorder.memories.written:  # a captured array, which gets its own elements back
                leaf = dlarray._wrap(leaf._data, leaf._format, value)
            values.append((value, leaf))
            results.append(ArrayLeaf(leaf._format))
        elif type(leaf) is Number:
            recorders.check_open(leaf._array)
            values.append((recorder.value(leaf._array), leaf._array))
            results.append(NumberLeaf(leaf._kind))
        elif isinstance(leaf, Iterator):
            raise ArgumentError(
                f"{name}: the result contains a {type(leaf).__name__}, which can be iterated over only once, so that "
                "a replay cannot return it; return a list."
            )
        elif isinstance(leaf, np.ndarray):
            recorder.state.gives(leaf)
            results.append(leaf.copy())
        else:
            has_equals = getattr(type(leaf), "__eq__", None) is not object.__eq__
            if has_equals and _holds_recorded(leaf):  # two recordings may agree, although each made an object
                recorder.refuse(*refusals.unknown_container(type(leaf)))
            results.append(leaf)
    return results, values


def _holds_recorded(leaf: Any, depth: int = 3) -> bool:
    """Return whether there are recorded arrays, or numbers that vary, in an object that replays do not make."""
    if type(leaf) is dlarray:
        return leaf._value is not None
    if type(leaf) is Number:
        return True
    parts = [*vars(leaf).values()] if hasattr(leaf, "__dict__") else []
    if isinstance(leaf, dict):
        parts += leaf.values()
    elif isinstance(leaf, (tuple, list, set, frozenset, deque)):
        parts += leaf
    return depth > 0 and any(_holds_recorded(part, depth - 1) for part in parts)


def _inputs(recorder: recorders.Recorder, call: Call) -> list[Any]:
    """Return the leaves of the arguments; arrays and numbers that vary are inputs of the trace."""
    arrays = iter(call.arrays)
    leaves: list[Any] = []
    for i, (leaf, part) in enumerate(zip(call.leaves, call.key.parts, strict=True)):
        if type(leaf) is dlarray:
            next(arrays)
            leaves.append(recorder.input(leaf))
        elif type(part) is NumberPart:
            leaves.append(Number(leaf, recorder.input(next(arrays)), frozenset((i,))))
        else:
            leaves.append(leaf)
    return leaves
