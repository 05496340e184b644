# SPDX-License-Identifier: BSD-3-Clause
"""DeviceExecutable: a program on the device, one graph that each call launches."""

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.compile.capability import count_of_words
from tracejit.compile.device_code import code_of
from tracejit.errors import CodegenError
from tracejit.ops import Layout
from tracejit.program import Kernel, Prepared, Program
from tracejit.runtime.cuda.arrays import DeviceArray, DeviceMemory, empty, uploaded
from tracejit.runtime.cuda.driver import Driver, NodeParameters, driver
from tracejit.runtime.cuda.graph import GraphPlan, plans
from tracejit.util.locks import new_lock

_ALIGNMENT = 32  # bytes: four neighbours of float64, the widest access of kernels

_functions: "weakref.WeakKeyDictionary[Driver, dict[str, int]]" = weakref.WeakKeyDictionary()


def function_of(on: Driver, kernel: Kernel) -> tuple[int, bool, int]:
    """Return the device's function for a kernel, whether it was compiled, and the nanoseconds that this took."""
    loaded = _functions.setdefault(on, {})
    if kernel.name in loaded:
        return loaded[kernel.name], False, 0
    code, compiled, took_ns = code_of(kernel, on.capability)
    loaded[kernel.name] = on.load(code, kernel.name)
    return loaded[kernel.name], compiled, took_ns


class _Launches:
    """A graph on the device whose addresses follow those of the arrays of a call."""

    def __init__(self, on: Driver, plan: GraphPlan, functions: dict[str, int]) -> None:
        self._plan = plan
        self._parameters = []
        for node in plan.nodes:
            words = np.zeros(max(1, count_of_words(node.kernel)), np.int64)
            words[: len(node.words)] = node.words
            self._parameters.append(
                NodeParameters(functions[node.kernel.name], node.grid.blocks, node.grid.threads, words)
            )
        self._on = on
        self._graph: Any = None  # made at the first launch, when the addresses are known
        self._moving = [
            (number, patch) for number, node in enumerate(plan.nodes) for patch in node.patches
        ]  # fmt: skip

    def launch(self, places: dict[tuple[str, int], int]) -> None:
        """Launch the graph with the addresses of inputs, outputs, constants and the arena."""
        if not self._parameters:
            return
        changed = set()
        for number, patch in self._moving:
            address = places[patch.kind, patch.number] + patch.offset
            words = self._parameters[number].words
            if words[patch.slot] != address:
                words[patch.slot] = address
                changed.add(number)
        if self._graph is None:
            self._graph = self._on.graph(self._parameters, self._plan.dependencies)
        else:
            for number in sorted(changed):
                self._graph.update(number, self._parameters[number])
        self._graph.launch()


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
        self._layouts = [*layouts, *[None] * (len(program.inputs) - len(layouts))]
        graph, commits = plans(program)
        functions: dict[str, int] = {}
        compiled: list[str] = []
        loaded: list[str] = []
        took_ns = 0
        for kernel in program.kernels:
            functions[kernel.name], was_compiled, ns = function_of(on, kernel)
            (compiled if was_compiled else loaded).append(kernel.name)
            took_ns += ns
        self.prepared = Prepared(tuple(compiled), tuple(loaded), took_ns, 0)
        self._graph, self._commits = _Launches(on, graph, functions), _Launches(on, commits, functions)
        self._constants = [uploaded(on, constant) for constant in program.constants]
        self._arena = DeviceMemory(on, program.arena_bytes)
        self._fault = DeviceMemory(on, 8 if program.checked else 0)
        self._stream = on.stream

    def __call__(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for.

        Raises:
            CodegenError: if an array has a different shape, dtype or layout.
            GuardFailed: if the guard says that the program does not apply.
            BoundsError: if an index was out of range.
            DeviceError: if the device fails.
        """
        program, on = self.program, self._on
        for number, (array, aval, layout) in enumerate(
            zip(inputs, program.inputs, self._layouts, strict=True)
        ):
            strides = None if layout is None else tuple([s * array.itemsize for s in layout.strides])
            is_laid_out = array.flags.c_contiguous if strides is None else array.strides == strides
            if (array.shape, array.dtype) != (aval.shape, aval.dtype) or not is_laid_out:
                raise CodegenError(
                    f"input {number} of a program is {array.dtype} {array.shape} with strides {array.strides}, "
                    f"expected {aval}"
                )
        with self._lock:
            if self._stream != on.stream:  # the arena is used by one call at a time
                on.wait(self._stream, on=on.stream)
                self._stream = on.stream
            return self._run(inputs)

    def _run(self, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        program, on = self.program, self._on
        copies = [None if array.address % _ALIGNMENT == 0 else _Aligned(on, array) for array in inputs]
        outputs = [empty(on, aval.shape, aval.dtype) for aval in program.outputs]
        places = {("arena", 0): self._arena.address}
        for number, array in enumerate(self._constants):
            places["constant", number] = array.address
        for number, (array, copy) in enumerate(zip(inputs, copies, strict=True)):
            places["input", number] = array.address if copy is None else copy.address
        for number, array in enumerate(outputs):
            places["output", number] = array.address
        places["output", len(outputs)] = self._fault.address
        if program.checked:
            on.clear(self._fault.address, 8)
        self._graph.launch(places)
        if program.guard is not None or program.checked:
            self._check(outputs)
        self._commits.launch(places)
        for number in program.written:
            aligned = copies[number]
            if aligned is not None:
                aligned.write_back()
        return outputs

    def _check(self, outputs: Sequence[DeviceArray]) -> None:
        """Read the guard and the fault of a replay, and raise the error that they stand for."""
        program, on = self.program, self._on
        fault, holds = np.zeros((), np.int64), np.ones((), np.bool_)
        reads: list[tuple[np.ndarray, int]] = [(fault, self._fault.address)] if program.checked else []
        if program.guard is not None:
            reads.append((holds, outputs[program.guard].address))
        on.read(reads)
        program.check(fault, {} if program.guard is None else {program.guard: holds})  # type: ignore[arg-type]


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
