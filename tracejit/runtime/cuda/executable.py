# SPDX-License-Identifier: BSD-3-Clause
"""DeviceExecutable: a program on the device, one graph that each call launches.

Note [graphs]
A graph has the addresses of its arrays in it. Replacing them takes the driver a microsecond for each launch, and making
a graph takes longer. A loop comes back to the same addresses (Note [memory is used again] in driver.py). So a program
has a graph for each of the latest few calls whose addresses came twice; other addresses replace those of the graph that
was made or moved longest ago.
"""

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from tracejit.aval import Aval
from tracejit.call.recycle import EntryPoint
from tracejit.call.tables import Pattern, Recipe
from tracejit.compile.capability import count_of_words
from tracejit.errors import CodegenError
from tracejit.kernels.executor.state import MOST_GRAPHS, WIDEST_ACCESS
from tracejit.ops import Layout
from tracejit.program import Program
from tracejit.runtime.cuda.arrays import ArrayKind, DeviceArray, DeviceMemory, empty_of, uploaded
from tracejit.runtime.cuda.driver import Driver, driver
from tracejit.runtime.cuda.functions import functions_of
from tracejit.runtime.cuda.graph import GraphPlan, plans
from tracejit.runtime.cuda.launches import DeviceGraph, NodeParameters
from tracejit.util.locks import new_lock

_ALIGNMENT = WIDEST_ACCESS
_MOST_GRAPHS = MOST_GRAPHS
_MOST_SEEN = 256  # addresses of calls that are remembered

_Place = tuple[str, int]  # what lies there, such as "input", and its number


class _Launches:
    """Launches on the device as graphs, of which some addresses are those of a call's arrays (Note [graphs]).

    Args:
        on: the device.
        plan: the launches.
        functions: of the device, by the names of kernels.
        fixed: addresses that are the same in each call, by what lies there.
        moving: the numbers of the others in a call's addresses.
    """

    def __init__(
        self, on: Driver, plan: GraphPlan, functions: dict[str, int], fixed: Mapping[_Place, int],
        moving: Mapping[_Place, int],
    ) -> None:  # fmt: skip
        self._on, self._plan = on, plan
        self._parameters: list[NodeParameters] = []
        self._moving: list[tuple[int, int, int, int]] = []  # node, slot, number of the address, offset
        for number, node in enumerate(plan.nodes):
            words = np.zeros(max(1, count_of_words(node.kernel)), np.int64)
            words[: len(node.words)] = node.words
            for patch in node.patches:
                place = patch.kind, patch.number
                if place in fixed:
                    words[patch.slot] = fixed[place] + patch.offset
                else:
                    self._moving.append((number, patch.slot, moving[place], patch.offset))
            function = functions[node.kernel.name]
            self._parameters.append(NodeParameters(function, node.grid.blocks, node.grid.threads, words))
        self._graphs: dict[tuple[int, ...], DeviceGraph] = {}  # the one made or moved longest ago is first
        self._seen: set[tuple[int, ...]] = set()

    def another(self) -> "_Launches":
        """Return the same launches with graphs of their own."""
        other = copy.copy(self)
        other._graphs, other._seen = {}, set()
        return other

    def place(self, addresses: tuple[int, ...]) -> dict[tuple[int, ...], DeviceGraph]:
        """Make or move a graph to addresses that there is no graph of; return all graphs by their addresses."""
        self._placed(addresses)
        return self._graphs

    def launch(self, addresses: tuple[int, ...]) -> None:
        """Launch the graph of the addresses of a call."""
        graph = self._graphs.get(addresses)
        if graph is None:
            if not self._parameters:
                return
            graph = self._placed(addresses)
        graph.launch()

    def _placed(self, addresses: tuple[int, ...]) -> DeviceGraph:
        """Return the graph of addresses that there is no graph of."""
        graphs = self._graphs
        if not graphs or (addresses in self._seen and len(graphs) < _MOST_GRAPHS):
            parameters = [part._replace(words=part.words.copy()) for part in self._parameters]
            self._move(parameters, addresses)
            graph = DeviceGraph(self._on, parameters, self._plan.dependencies)
        else:
            graph = graphs.pop(next(iter(graphs)))
            for number in self._move(graph.parameters, addresses):
                graph.update(number)
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(addresses)
        graphs[addresses] = graph
        return graph

    def _move(self, parameters: Sequence[NodeParameters], addresses: tuple[int, ...]) -> list[int]:
        """Put the addresses into the words of launches; return the numbers of those that change."""
        changed = set()
        for number, slot, place, offset in self._moving:
            words, address = parameters[number].words, addresses[place] + offset
            if words[slot] != address:
                words[slot] = address
                changed.add(number)
        return sorted(changed)


class DeviceExecutable:
    """A program on the device; may be called from several threads, which take turns.

    prepared        the kernels that were loaded or compiled, and how long that took

    Raises:
        DeviceError: if there is no device.
        CodegenError: if the program cannot run on one.
    """

    def __init__(self, program: Program, layouts: Sequence[Layout | None] = ()) -> None:
        self.program = program
        self._on = on = driver()
        self._lock = new_lock()
        self._inputs = [
            _kind_of(aval, layout)
            for aval, layout in zip(
                program.inputs, [*layouts, *[None] * (len(program.inputs) - len(layouts))], strict=True
            )
        ]
        self._outputs = [_kind_of(aval) for aval in program.outputs]
        plan, commits = plans(program)
        functions, self.prepared = functions_of(on, program.kernels)
        self._constants = [uploaded(on, constant) for constant in program.constants]
        self._arena = DeviceMemory(on, program.arena_bytes)
        self._fault = DeviceMemory(on, 8 if program.checked else 0)
        self._own = (self._arena, self._fault, *self._constants)
        fixed = {("constant", number): array.address for number, array in enumerate(self._constants)}
        fixed["arena", 0] = self._arena.address
        fixed["output", len(self._outputs)] = self._fault.address
        moving = {("input", number): number for number in range(len(self._inputs))}
        moving |= {("output", number): len(moving) + number for number in range(len(self._outputs))}
        self._graph = _Launches(on, plan, functions, fixed, moving)
        self._commits = _Launches(on, commits, functions, fixed, moving)
        self._is_checked = program.guard is not None or bool(program.checked)

    def __call__(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for.

        Raises:
            CodegenError: if an array has a different shape, dtype or layout.
            GuardFailed: if the guard says that the program does not apply.
            BoundsError: if an index was out of range.
            DeviceError: if the device fails.
        """
        on = self._on
        if not self.fits(inputs):
            self._refuse(inputs)
        outputs = [empty_of(on, kind) for kind in self._outputs]
        with self._lock:
            with on.lanes.order:
                on.lanes.take_over((*self._own, *inputs))
                copies = {i: _Aligned(on, x) for i, x in enumerate(inputs) if x.address % _ALIGNMENT}
                addresses = (
                    *[copies.get(i, array).address for i, array in enumerate(inputs)],
                    *[array.address for array in outputs],
                )
                if self.program.checked:
                    on.clear(self._fault.address, 8)
                self._graph.launch(addresses)
            if self._is_checked:
                self._check(outputs)
            written = [number for number in copies if number in self.program.written]
            if self.program.commits or written:
                with on.lanes.order:
                    on.lanes.take_over((*self._own, *inputs))
                    self._commits.launch(addresses)
                    for number in written:
                        copies[number].write_back()
        return outputs

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint | None:
        """Return the compiled entry point of the program (Note [entries of a device] in entry.py).

        None where Python has to look at each call: for numbers among the inputs, guards, indices that are checked,
        and inputs that are written.
        """
        program = self.program
        if guarded or self._is_checked or program.written or not program.rows or program.commits:
            return None
        if pattern is None or pattern.numbers or len(self._inputs) != pattern.inputs:
            return None
        from tracejit.runtime.cuda.entry import DeviceEntry  # compiles

        return DeviceEntry(self._on, self._inputs, self._outputs, lambda: self._graph.another().place).point(
            formats, pattern, recipe
        )

    def fits(self, inputs: Sequence[DeviceArray]) -> bool:
        """Return whether arrays have the shapes, dtypes and layouts that the program was built for."""
        return [array.kind for array in inputs] == self._inputs

    def _refuse(self, inputs: Sequence[DeviceArray]) -> None:
        """Raise the error for an input that does not fit."""
        for number, (array, kind) in enumerate(zip(inputs, self._inputs, strict=True)):
            if array.kind is not kind:
                raise CodegenError(
                    f"input {number} of a program is {array.dtype} {array.shape} with strides {array.strides}, "
                    f"expected {kind.dtype} {kind.shape} with strides {kind.strides}"
                )

    def _check(self, outputs: Sequence[DeviceArray]) -> None:
        """Read the guard and the fault of a replay, and raise the error that they stand for."""
        program, on = self.program, self._on
        fault, holds = np.zeros((), np.int64), np.ones((), np.bool_)
        reads: list[tuple[np.ndarray, int]] = [(fault, self._fault.address)] if program.checked else []
        if program.guard is not None:
            reads.append((holds, outputs[program.guard].address))
        on.read(reads)
        program.check(fault, {} if program.guard is None else {program.guard: holds})  # type: ignore[arg-type]


def _kind_of(aval: Aval, layout: Layout | None = None) -> ArrayKind:
    strides = None if layout is None else tuple([stride * aval.dtype.itemsize for stride in layout.strides])
    return ArrayKind.of(aval.shape, aval.dtype, strides)


class _Aligned:
    """A copy of an array's memory whose first element lies where wide accesses can begin."""

    def __init__(self, on: Driver, array: DeviceArray) -> None:
        low, high = array.span
        lead = array.address - low
        pad = -lead % _ALIGNMENT
        self._on, self._low, self._size = on, low, high - low
        self._memory = DeviceMemory(on, pad + self._size)
        self._start = self._memory.address + pad
        self.address = self._start + lead
        on.copy(self._start, low, self._size)

    def write_back(self) -> None:
        """Copy what a program wrote to the array."""
        self._on.copy(self._low, self._start, self._size)
