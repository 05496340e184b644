# SPDX-License-Identifier: BSD-3-Clause
"""Programs for a device, run by the emulator of PTX."""

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from ptx_emulator import Kernel, Memory

import tracejit as tj
from tracejit.compile.capability import Capability
from tracejit.compile.device_target import lowered, ptx_of_lowered
from tracejit.compile.llvm import LlvmFunction
from tracejit.pipeline import build_for_device
from tracejit.program import Kernel as Source
from tracejit.program import Pointer, Program, Row, ScalarArgument
from tracejit.record.recorder import Recorder

CAPABILITY = Capability(8, 0)


@cache
def _lowered(kernel: Source) -> LlvmFunction:
    return lowered(kernel)


def ptx_of(kernel: Source, capability: Capability) -> str:
    """Return the PTX of a kernel, which Numba lowers once for tests of what it computes and of its machine code."""
    return ptx_of_lowered(_lowered(kernel), kernel, capability)


@cache
def compiled(kernel: Source, capability: Capability = CAPABILITY) -> Kernel:
    return Kernel(ptx_of(kernel, capability))


def program_of(
    function: Callable[..., tuple[Any, ...]], arrays: Sequence[np.ndarray]
) -> tuple[Program, tuple[Any, ...]]:
    """Return the program of a function for a device, and what the function returns."""
    with Recorder("function", accelerating=True) as recorder:
        results = function(*[recorder.input(tj.dlarray(array)) for array in arrays])
        recorder.graph.outputs = [recorder.value(result) for result in results]
    return build_for_device(recorder.graph), results


def in_any_order(rows: Sequence[Row], rng: random.Random) -> list[Row]:
    """Return rows in an order in which each comes after those that it needs."""
    done: list[int] = []
    while len(done) < len(rows):
        ready = [k for k, row in enumerate(rows) if k not in done and set(row.needs) <= set(done)]
        done.append(rng.choice(ready))
    return [rows[k] for k in done]


class EmulatedProgram:
    """Runs a program, launch after launch, on memory in which nothing is written but its inputs."""

    def __init__(
        self, program: Program, capability: Capability = CAPABILITY,
        order: Callable[[Sequence[Row]], Sequence[Row]] = list,
    ) -> None:  # fmt: skip
        self.program = program
        self.order = order
        self.capability = capability
        self.steps = 0

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        program = self.program
        memory = Memory()
        outputs = list(program.new_outputs())
        fault = np.zeros((), np.int64)
        places = {}
        for number, array in enumerate(inputs):
            whole = array if array.base is None else array.base
            start = whole.__array_interface__["data"][0]
            offset = array.__array_interface__["data"][0] - start
            places["input", number] = memory.add(np.ascontiguousarray(whole)) + offset
        for number, array in enumerate([*outputs, fault]):
            if array is not fault:
                array.reshape(-1).view(np.uint8)[:] = (
                    0xA5  # what is never written is not left over from another run
                )
            places["output", number] = memory.add(array.reshape(-1), is_written=array is fault)
        for number, array in enumerate(program.constants):
            places["constant", number] = memory.add(array.copy())
        places["arena", 0] = memory.add(np.full(program.arena_bytes, 0xFF, np.uint8), is_written=False)
        rows, at = program.rows, len(program.rows) - program.commits
        for row in self.order(rows[:at]):
            self.launch(row, memory, places)
        program.check(fault, outputs)
        for row in self.order(rows[at:]):
            self.launch(row, memory, places)
        return outputs

    def launch(self, row: Row, memory: Memory, places: dict[tuple[str, int], int]) -> None:
        words = []
        for argument in row.arguments:
            if isinstance(argument, Pointer):
                place = argument.place
                words.append(places[place.kind, place.number] + place.offset + argument.offset_bytes)
            elif isinstance(argument, ScalarArgument):
                raw = np.asarray(argument.value, argument.dtype).tobytes()
                words.append(int.from_bytes(raw.ljust(8, b"\0"), "little"))
            else:
                assert isinstance(argument, int)
                words.append(argument)
        assert row.grid is not None
        words += [0] * (max(1, row.kernel.words) - len(words))
        self.steps += compiled(row.kernel, self.capability).run(words, memory, *row.grid)
