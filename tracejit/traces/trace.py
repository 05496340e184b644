# SPDX-License-Identifier: BSD-3-Clause
"""A trace: the graph of one recording of a function, its replays, and the structure of its result."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from tracejit.array import dlarray
from tracejit.call.argument_places import argument_places, container_places
from tracejit.call.path import Stored, generate
from tracejit.call.path_text import GeneratedPath
from tracejit.call.recycle import MOST_BYTES, Recycler
from tracejit.call.result import MISS, ResultArray, ResultLayout
from tracejit.call.signature import ArrayPart, Call, Key, NumberPart, layouts
from tracejit.call.tables import Tables, pattern, recipe
from tracejit.ir import Graph, Node
from tracejit.ops import Op
from tracejit.program import NO_WRITES, Writes
from tracejit.record import recorder, views
from tracejit.record.guards import GuardFailed, ValueGuard
from tracejit.record.plain_numbers import PlainNumber
from tracejit.record.side_effects import SideEffect
from tracejit.record.state import NOTHING, State
from tracejit.traces.effects import NO_EFFECTS, Effects
from tracejit.traces.replay import Listener, Replay, call_op
from tracejit.traces.stores import Stores
from tracejit.util.devices import any_on_device
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.precision import with_precision


class Direct(NamedTuple):
    """The needs of direct calls (Note [direct calls] in kernels/executor/direct.py).

    recycler    of the results
    fetch       the function that fetches the captured arrays, or None if nothing is captured
    """

    recycler: Recycler
    fetch: Callable[[], Any] | None


class Replayable:
    """The part of a trace that replays need: checks of the arguments, and the structure of the result.

    Args:
        result: the structure of the result.
        key: of the call.
        state: the values that are read besides the arguments.
        guard: the number of the output that says whether all guards hold, or None.
        effects: what is written into the inputs.
        stores: what is put into objects; the arrays for it, if there are any, are the second part of the result.

    Attributes:
        direct: what direct calls of the program need; None as long as there is no call path, or where it needs Python.
        has_entry: whether the call path runs the program by compiled code.
    """

    replay: Any  # a Replay, or what an exported folder has in its place

    def __init__(
        self, result: ResultLayout, key: Key, state: State, guard: int | None, effects: Effects = NO_EFFECTS,
        stores: Stores | None = None,
    ) -> None:  # fmt: skip
        self.effects = effects
        self.stores = stores if stores is not None and stores.stores else None
        # Whether the program itself writes the inputs.
        self.writes_inputs = bool(effects.targets) and effects.by_program([*layouts(key), *state.layouts])
        self.result = result
        self.key = key
        self.state = state
        self._guard = guard
        self._path: GeneratedPath | None = None
        self._is_generated = False
        self.direct: Direct | None = None
        self.has_entry = False

    def run(self, call: Call) -> Any:
        """Return the result of a replay, or MISS if the trace does not apply: a guard does not hold."""
        containers = () if self.stores is None else self.stores.containers(call)
        state = None if containers is None else self._fetched()
        if state is None or containers is None:
            return MISS
        read, objects = state
        effects = self.effects
        if self.key.device is not None:
            return self._run_on_device(call, read, objects, containers)
        memory = [*call.memory, *read] if effects.targets else []
        if effects.targets and not effects.fit(memory):
            return self._missed()
        inputs = [*[a._data for a in call.arrays], *read]
        try:
            outputs = self.replay(inputs)
        except GuardFailed:
            return self._missed()
        self.state.accepted()
        effects.write(memory, self._written(inputs, outputs))
        # Outputs of guards and of checks come last.
        arrays = [
            dlarray._wrap(data, format, None)
            for data, format in zip(outputs, self.result.formats, strict=False)
        ]
        return self._stored(self.result.assemble(arrays, containers), call, objects, containers)

    def _missed(self) -> Any:
        """Give back what was taken for the replay of a trace that does not apply; return MISS."""
        self.state.rejected()
        return MISS

    def _run_on_device(
        self, call: Call, read: Sequence[Any], objects: Sequence[Any], containers: Sequence[Any]
    ) -> Any:
        """Return the result as run() does, given the captured arrays and what is stored to."""
        from tracejit.traces import device_arrays

        inputs = device_arrays.inputs_of([*[a._data for a in call.arrays], *read], len(call.arrays))
        outputs = self._launched([*call.memory, *read], inputs)
        if outputs is None:
            return self._missed()
        self.state.accepted()
        arrays = [
            dlarray._wrap(data, format, None)
            for data, format in zip(outputs, self.result.formats, strict=False)
        ]
        return self._stored(self.result.assemble(arrays, containers), call, objects, containers)

    def _launched(self, memory: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any] | None:
        """Return the outputs of the program on the device, or None if the trace does not apply.

        Args:
            memory: of the caller, for each input.
            inputs: of the program, on the device.
        """
        effects = self.effects
        if effects.targets and not effects.fit(memory):
            return None
        try:
            outputs: list[Any] = self.replay(inputs)
        except GuardFailed:
            return None
        effects.write(memory, self._written(inputs, outputs))
        return outputs

    def _written(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
        """Return the new elements of the targets, given the inputs and the outputs of the program."""
        targets = self.effects.targets
        if (
            self.writes_inputs
        ):  # copies of unaligned memory, or in foreign byte order, and of the host on a device
            return [inputs[number] for number in targets]
        first = len(self.result.formats)
        return outputs[first : first + len(targets)]

    def _fetched(self, within: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return the captured arrays and the objects that are stored to, or None if the trace does not apply."""
        if self.stores is not None:
            return self.state.fetch_located(within)
        read = self.state.fetch_within() if within else self.state.fetch_checked()
        return None if read is None else (read, ())

    def _stored(self, result: Any, call: Call, objects: Sequence[Any], containers: Sequence[Any]) -> Any:
        """Put what is stored into its place, and return what the function returns."""
        if self.stores is None:
            return result
        result, outputs = result if self.stores.returns else (result, ())
        self.stores.commit(outputs, call, objects, containers)
        return result

    @property
    def may_raise(self) -> bool:
        """True if the program may raise an error: for an index, or in code of Python that it calls."""
        program = self.replay.program
        return bool(program.checked or program.calls_python)

    def call_path(self) -> GeneratedPath | None:
        """Return the generated call path, or None where there can be none."""
        if not self._is_generated:
            launch = self.replay.launch
            is_compiled = self.writes_inputs or not self.effects.targets
            if self.stores is not None and self.state.inlined is None:
                return None
            if launch is not None and is_compiled and not self._depends_on_numbers:
                self._is_generated = True  # or there can be none, now and later
                on_device = self.key.device is not None
                self._path = self._generate_for_device(launch) if on_device else self._generate(launch)
        return self._path

    @property
    def _depends_on_numbers(self) -> bool:
        """True if arrays without axes and numbers differ, in ways that call paths do not see."""
        arguments, inputs = len(layouts(self.key)), self.replay.program.inputs
        captured = [inputs[number] for number in self.effects.targets if number >= arguments]
        return self.effects.numbers or any(not aval.ndim for aval in captured)

    def _generate_for_device(self, launch: Any) -> GeneratedPath | None:
        from tracejit.call.device_path import generate_for_device
        from tracejit.runtime.cuda.arrays import ArrayKind, DeviceArray
        from tracejit.traces import device_arrays

        parts = [part for part in self.key.parts if isinstance(part, (ArrayPart, NumberPart))]
        has_numbers = any(isinstance(part, NumberPart) for part in parts)
        is_plain = not (has_numbers or self.effects.targets or self.state.layouts)

        def launched(data: tuple[Any, ...]) -> Sequence[Any] | None:
            if self.key.runs_on is not None and not any_on_device(data):
                return None  # the function may run on the CPU by now
            inputs = device_arrays.inputs_of(data, len(parts))
            return self._launched(data, inputs) if launch.fits(inputs) else None

        def kind_of(part: ArrayPart) -> ArrayKind:
            strides = part.strides and tuple([stride * part.dtype.itemsize for stride in part.strides])
            return ArrayKind.of(part.shape, part.dtype, strides)

        stores = self._emitted_stores()
        if stores is None and self.stores is not None:
            return None
        outputs = self.result.outputs(self.replay.program)
        if is_plain and self._is_small(outputs):
            tables = Tables(pattern(self.key), recipe(self.result))
            entry = self.replay.entry(self.result.formats, self._guard is not None, *tables)
            if entry is not None:
                recycler = Recycler(outputs, False, entry)
                return generate(
                    self.key, self.result, outputs, launch, self.state, False, recycler, tables, (), stores
                )
        return generate_for_device(
            self.key, self.result, outputs, launch if is_plain else launched, DeviceArray, kind_of, self.state, stores
        )  # fmt: skip

    def _emitted_stores(self) -> Stored | None:
        return (
            None
            if self.stores is None
            else self.stores.emitted(
                self.state.objects, argument_places(self.key), container_places(self.key)
            )
        )

    @staticmethod
    def _is_small(outputs: Sequence[ResultArray]) -> bool:
        """Return whether results are filled again (Note [recycling] in call/recycle.py)."""
        return bool(sum(output.aval.size * output.aval.dtype.itemsize for output in outputs) <= MOST_BYTES)

    def _generate(self, launch: Any) -> GeneratedPath | None:
        program = self.replay.program
        stores = self._emitted_stores()
        if stores is None and self.stores is not None:
            return None
        outputs, written = self.result.outputs(program), program.written
        guarded = self._guard is not None
        recycler, tables = None, Tables()
        # Such a path draws without noting the states of generators (Note [draws of generators]).
        may_drop = guarded or bool(program.checked) or program.calls_python or bool(self.effects.targets)
        draws = bool(self.state.generator_draws)
        if draws and self.state.inlined is None:
            return None  # it could not compare the arguments first
        is_certain = draws and not may_drop
        if self._is_small(outputs):
            tables = Tables(None if draws else pattern(self.key, written), recipe(self.result))
            entry = self.replay.entry(self.result.formats, guarded, *tables)
            recycler = None if entry is None else Recycler(outputs, guarded, entry, bool(program.checked))
        self.has_entry = recycler is not None
        is_whole = (
            tables.recipe is not None and tables.pattern is not None and tables.pattern.direct is not None
        )
        needs_python = stores is not None or self.state.accepts or program.calls_python
        if recycler is not None and is_whole and not needs_python:
            self.direct = Direct(recycler, self.state.fetcher() if self.state.fetches else None)
        return generate(
            self.key,
            self.result,
            outputs,
            launch,
            self.state,
            guarded,
            recycler,
            tables,
            written,
            stores,
            is_certain,
        )


class Trace(Replayable):
    """One recording: its graph, and the structure of its result.

    Args:
        graph: the recorded graph; if there are guards, its last output says whether all of them hold.
        result: the structure of the result.
        title: heads emitted modules: the name of the function.
        key: of the call.
        guards: the decisions that values of arrays made.
        state: the values that were read besides the arguments.
        refusal: why this cannot be replayed, or None.
        length: nodes of the graph that were recorded; the rest computes the guards.
        effects: what is written into the inputs.
        stores: what is put into objects.
    """

    def __init__(
        self, graph: Graph, result: ResultLayout, title: str, key: Key,
        guards: Sequence[ValueGuard] = (), state: State = NOTHING, refusal: recorder.Refusal | None = None,
        length: int | None = None, effects: Effects = NO_EFFECTS, stores: Stores | None = None,
    ) -> None:  # fmt: skip
        # Whether the function may handle an error, so that it has to see that an index is out of range.
        self.handles_errors = False
        self.side_effect: SideEffect | None = None
        # An argument that the function changes by another name.
        self.shared: str | None = None
        # By the inputs that they depend on: plain numbers without a derivative (record/plain_numbers.py).
        self.plain_inputs: Mapping[int, PlainNumber] = {}
        self.in_vain: Set[Node] = frozenset()  # recorded by attempts that failed
        super().__init__(result, key, state, len(graph.outputs) - 1 if guards else None, effects, stores)
        self.graph = graph
        self.guards = guards
        self.refusal = refusal
        self.length = len(graph.nodes) if length is None else length
        self.agreed = 0  # number of later recordings that agreed with this one
        self.replayed = False
        self._title = title
        writes, guard = NO_WRITES, self._guard
        if self.writes_inputs:
            first = len(result.formats)
            writes = Writes(dict(enumerate(effects.targets, first)), bool(guards))
            guard = first if guards else None
        if key.device is None:
            self.replay: Replay = Replay(
                graph, title, [*layouts(key), *state.layouts], guard=guard, writes=writes
            )
        else:  # captured arrays are copied to the device, or lie there one after the other
            from tracejit.traces.device_replay import DeviceReplay

            self.replay = DeviceReplay(graph, title, layouts(key), guard=guard, writes=writes)
        self._op: tuple[Op, list[Replay]] | None = None
        self._lock = new_lock()

    def listen(self, listener: Listener) -> None:
        """Have `listener` told of the programs that this trace is run by."""
        self.replay.listener = listener

    def fits(self, call: Call) -> bool:
        """Return whether what is read besides the arguments is as it was, and what is written shares memory so."""
        if not self.effects.targets or self.key.device is not None:
            return self.state.applies()
        read = self.state.looked_at(within=True)
        if read is None:
            return False
        return self.effects.fit([*call.memory, *[x._data if type(x) is dlarray else x for x in read]])

    def run_within(self, call: Call) -> Any:
        """Return the result as run() does, computed by one op of the evaluation around the call."""
        containers = () if self.stores is None else self.stores.containers(call)
        state = None if containers is None else self._fetched(within=True)
        if state is None or containers is None:
            return MISS
        read, objects = state
        effects = self.effects
        targets = [*call.arrays, *[x if type(x) is dlarray else recorder.wrap(x) for x in read]]
        if effects.targets and not effects.fit([x._data for x in targets]):
            return self._missed()
        with self._lock:
            if self._op is None:
                more = len(self.graph.outputs) - len(self.result.formats)
                formats = [*self.result.formats, *[None] * more]
                with with_precision(self.replay.precision):
                    self._op = call_op(self._title, self.graph, formats, self._guard)
                for replay in self._op[1]:
                    replay.listener = self.replay.listener
        try:
            outputs = recorder.apply_op(self._op[0], targets, {})
        except GuardFailed:
            return self._missed()
        self.state.accepted()
        for number, plain in self.plain_inputs.items():
            if (value := targets[number]._value) is not None:
                value.owner.plain_numbers.setdefault(value, plain)
        for target, content in zip(effects.targets, outputs[len(self.result.formats) :], strict=False):
            views.store(targets[target], content)
        return self._stored(self.result.assemble(outputs, containers), call, objects, containers)

    def replays(self) -> list[Replay]:
        """Return the programs that this trace has been run by, or its own if it has not been run yet."""
        if self._op is None:
            return [self.replay]
        return [*self._op[1], *([self.replay] if self.replay.is_built else [])]
