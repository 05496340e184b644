# SPDX-License-Identifier: BSD-3-Clause
"""DeviceExecutable: a program on the device, one graph that each call launches."""

from collections.abc import Callable, Sequence

import numpy as np

from tracejit.aval import Aval
from tracejit.call.recycle import EntryPoint
from tracejit.call.tables import Pattern, Recipe
from tracejit.errors import CodegenError
from tracejit.kernels.executor.state import WIDEST_ACCESS
from tracejit.ops import Layout
from tracejit.program import Kernel, Prepared, Program
from tracejit.runtime.cuda.arrays import ArrayKind, DeviceArray, DeviceMemory, empty_of, uploaded
from tracejit.runtime.cuda.cublas_products import Routines
from tracejit.runtime.cuda.driver import Driver, driver
from tracejit.runtime.cuda.functions import functions_of
from tracejit.runtime.cuda.graph import Patch, rows_in_turn
from tracejit.runtime.cuda.launches import NodeParameters
from tracejit.runtime.cuda.replays import WORKSPACE, PlacedLaunches
from tracejit.runtime.cuda.steps import HostLoop, Steps, nodes_of, steps_of
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple

_ALIGNMENT = WIDEST_ACCESS
_WORKSPACE_ALIGNMENT = 256


FunctionsOf = Callable[[Driver, Sequence[Kernel]], tuple[dict[str, int], Prepared]]
"""Returns the device's functions by the names of kernels, and what was done for that."""


class DeviceExecutable:
    """A program on the device; may be called from several threads, which take turns.

    Args:
        program: the program.
        layouts: of the inputs, None or absent for contiguous ones.
        functions_of: returns the functions of kernels.

    Attributes:
        program, on: the program and its device.
        prepared: the kernels that were loaded or compiled, and how long that took.

    Raises:
        DeviceError: if there is no device.
        CodegenError: if the program cannot run on one.
    """

    def __init__(
        self,
        program: Program,
        layouts: Sequence[Layout | None] = (),
        functions_of: FunctionsOf = functions_of,
    ) -> None:
        self.program = program
        self.on = on = driver()
        self._lock = new_lock()
        self._inputs = [
            _kind_of(aval, layout)
            for aval, layout in zip(
                program.inputs, [*layouts, *[None] * (len(program.inputs) - len(layouts))], strict=True
            )
        ]
        self._outputs = [_kind_of(aval) for aval in program.outputs]
        self._decided = decided = _decided(program)
        steps, commits = steps_of(decided)
        routines = Routines(on, [*nodes_of(steps), *nodes_of(commits)])
        own = dict.fromkeys([row.kernel for row in decided.rows if row.product is None])
        functions, self.prepared = functions_of(on, [*own])
        self._constants = [uploaded(on, constant) for constant in program.constants]
        behind = -(-program.arena_bytes // _WORKSPACE_ALIGNMENT) * _WORKSPACE_ALIGNMENT
        needed = routines.workspace_bytes
        self._arena = DeviceMemory(on, behind + needed if needed else program.arena_bytes)
        self._fault = DeviceMemory(on, 8 if program.checked else 0)
        self._own = (self._arena, self._fault, *self._constants)
        fixed = {("constant", number): array.address for number, array in enumerate(self._constants)}
        fixed["arena", 0], fixed[WORKSPACE] = self._arena.address, self._arena.address + behind
        fixed["output", len(self._outputs)] = self._fault.address
        moving = {("input", number): number for number in range(len(self._inputs))}
        moving |= {("output", number): len(moving) + number for number in range(len(self._outputs))}
        self._where = functions, fixed, moving, routines
        self._steps, self._commits = self._placed(steps), self._placed(commits)
        self._is_checked = program.guard is not None or bool(program.checked)

    def __call__(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for.

        Raises:
            CodegenError: if an array has a different shape, dtype or layout.
            GuardFailed: if the guard says that the program does not apply.
            BoundsError: if an index was out of range.
            DeviceError: if the device fails.
        """
        on = self.on
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
                self._run(self._steps, addresses)
            if self._is_checked:
                self._check(outputs)
            written = [number for number in copies if number in self.program.written]
            if self.program.commits or written:
                with on.lanes.order:
                    on.lanes.take_over((*self._own, *inputs))
                    self._run(self._commits, addresses)
                    for number in written:
                        copies[number].write_back()
        return outputs

    def _placed(self, steps: Steps) -> list["_Step"]:
        return [
            _PlacedLoop(step, self._placed(step.body))
            if isinstance(step, HostLoop)
            else PlacedLaunches(self.on, step, *self._where)
            for step in steps
        ]

    def _run(self, steps: "Sequence[_Step]", addresses: tuple[int, ...]) -> None:
        """Launch graphs, and loops of graphs, given the addresses of arrays and the turns of loops around."""
        for step in steps:
            if isinstance(step, PlacedLaunches):
                step.launch(addresses)
                continue
            loop, body = step
            for turn in range(loop.most):
                self._run(body, (*addresses, turn) if loop.is_moving else addresses)
                if loop.flags and not self._hold(loop.flags, addresses):
                    break

    def _hold(self, flags: Sequence[Patch], addresses: tuple[int, ...]) -> bool:
        """Wait for bools, and return whether all are true."""
        _, fixed, moving, _ = self._where
        turns = addresses[len(moving) :]
        reads: list[tuple[np.ndarray, int]] = []
        for flag in flags:
            place = flag.kind, flag.number
            start = fixed[place] if place in fixed else addresses[moving[place]]
            moved = sum(step * turn for step, turn in zip(flag.steps, turns, strict=False))
            reads.append((np.zeros((), np.bool_), start + flag.offset + moved))
        self.on.read(reads)
        return all(bool(value) for value, _ in reads)

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint | None:
        """Return the compiled entry point of the program (Note [entries of a device] in entry.py).

        None where Python has to look at each call: for numbers among the inputs, guards, indices that are checked,
        inputs that are written, and loops that the host runs.
        """
        program = self.program
        if guarded or self._is_checked or program.written or program.commits or len(self._steps) != 1:
            return None
        (graph,) = self._steps
        if not isinstance(graph, PlacedLaunches):
            return None
        if pattern is None or pattern.numbers or len(self._inputs) != pattern.inputs:
            return None
        from tracejit.runtime.cuda.entry import DeviceEntry  # compiles

        return DeviceEntry(self.on, self._inputs, self._outputs, lambda: graph.another().place).point(
            formats, pattern, recipe
        )

    def in_turn(self, inputs: Sequence[DeviceArray]) -> list[NodeParameters]:
        """Return the launches of all rows, one after the other, on given inputs and on outputs of their own."""
        launches = PlacedLaunches(self.on, rows_in_turn(self._decided), *self._where)
        outputs = [empty_of(self.on, kind) for kind in self._outputs]
        parameters = launches.at(tuple([array.address for array in (*inputs, *outputs)]))
        return [part._replace(kept=outputs) for part in parameters]

    def synthetic_inputs(self) -> list[DeviceArray]:
        """Return inputs of numbers that fit, as a profile has them."""
        return [_synthetic(self.on, kind) for kind in self._inputs]

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
        program, on = self.program, self.on
        fault, holds = np.zeros((), np.int64), np.ones((), np.bool_)
        reads: list[tuple[np.ndarray, int]] = [(fault, self._fault.address)] if program.checked else []
        if program.guard is not None:
            reads.append((holds, outputs[program.guard].address))
        on.read(reads)
        program.check(fault, {} if program.guard is None else {program.guard: holds})  # type: ignore[arg-type]


class _PlacedLoop(NamedTuple):
    """A loop that the host runs, and the graphs in it."""

    loop: HostLoop
    body: "list[_Step]"


_Step = PlacedLaunches | _PlacedLoop


def _decided(program: Program) -> Program:
    """Return a program of whose rows those have a product that the library computes, by the settings of now."""
    rows = [
        row if row.product is None or row.product.is_by_library else row._replace(product=None)
        for row in program.rows
    ]
    return program._replace(rows=rows)


def _kind_of(aval: Aval, layout: Layout | None = None) -> ArrayKind:
    strides = None if layout is None else tuple([stride * aval.dtype.itemsize for stride in layout.strides])
    return ArrayKind.of(aval.shape, aval.dtype, strides)


def _synthetic(on: Driver, kind: ArrayKind) -> DeviceArray:
    """Return an array of a kind whose elements are neither large nor indices out of range."""
    low = sum((n - 1) * min(stride, 0) for n, stride in zip(kind.shape, kind.strides, strict=True) if n)
    high = sum((n - 1) * max(stride, 0) for n, stride in zip(kind.shape, kind.strides, strict=True) if n)
    count = (high - low) // kind.itemsize + 1 if kind.size else 0
    values = np.full(count, 0.75 if kind.dtype.kind == "f" else 0, kind.dtype)
    memory = uploaded(on, values)
    return DeviceArray(on, kind, memory.address - low, memory)


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
