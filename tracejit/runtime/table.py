# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a program, which the compiled executor walks (kernels/executor/state.py has their layout)."""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

import numpy as np

from tracejit.compile.registry import Code
from tracejit.kernels.executor import state as words
from tracejit.program import Argument, Kernel, Pointer, Program, ScalarArgument, Symbol
from tracejit.util.uninterrupted import uninterrupted


class ProgramTable:
    """The tables of a program, without what differs between calls, and the code that they point to.

    The table of rows begins with the rows outside loops, and one row for each outermost loop; the rows of each loop
    follow. `positions` has the place of each row of the program; rows that are not commits are `row_count`.
    """

    def __init__(self, program: Program, code: Code) -> None:
        self.code = code
        self.calls_python = program.calls_python
        self.functions: dict[Kernel, Callable[..., Any]] = {}  # of Python, whose addresses the rows have
        self._program = program
        self._arguments: list[int] = []
        self._rows: list[int] = []
        self._patches: list[int] = []
        self._arena_slots: list[int] = []
        self._moves: list[list[int]] = [[] for _ in program.loops]  # by loop
        self._places: dict[int, int] = {}  # of the arguments of each loop
        self.positions = [0] * len(program.rows)
        rows, first_commit = len(program.rows), len(program.rows) - program.commits
        self.row_count = self._add_rows(0, first_commit)
        self.commit_count = self._add_rows(first_commit, rows)
        blocks = []
        for number, loop in enumerate(program.loops):
            start = len(self._rows)
            blocks.append((start, self._add_rows(loop.first, loop.end, number + 1)))
        self.rows = np.array(self._rows, np.intp)
        self.patches = np.array(self._patches, np.intp)
        self.moves = [np.array(moves, np.intp) for moves in self._moves]
        for number, (start, count) in enumerate(blocks):
            self._finish(number, start, count)
        self.arguments = np.array(self._arguments, np.intp)
        self.arena_slots = np.array(self._arena_slots, np.intp)
        self.state_slots = np.array([at + words.LOOP_STATE for at in self._places.values()], np.intp)

    def _add_rows(self, first: int, end: int, loop: int = 0) -> int:
        """Append rows, with one row in place of each outermost loop from number `loop` on; return their number."""
        loops = self._program.loops
        count, number = 0, first
        while number < end:
            while loop < len(loops) and loops[loop].first < number:
                loop += 1
            if loop < len(loops) and loops[loop].first == number and loops[loop].end <= end:
                self._add_loop(loop)
                number = loops[loop].end
            else:
                self._add_row(number)
                number += 1
            count += 1
        return count

    def _add_row(self, number: int) -> None:
        row = self._program.rows[number]
        self.positions[number] = len(self._rows) // words.ROW_WORDS
        kernel, parts, length = row.kernel, row.parts, row.length
        if kernel.host is None:
            address = self.code.address(kernel)
        else:
            from tracejit.runtime.host import row_function

            address = id(self.functions.setdefault(kernel, row_function(kernel.host)))
            parts, length = words.OF_PYTHON, 1
        self._rows += (address, len(self._arguments), parts, length)
        around = [i for i, loop in enumerate(self._program.loops) if loop.first <= number < loop.end]
        for argument in row.arguments:
            slot = len(self._arguments)
            self._arguments.append(self._word(argument, slot))
            if isinstance(argument, Pointer):
                self._move(argument, slot, around)

    def _add_loop(self, number: int) -> None:
        at = self._places[number] = len(self._arguments)
        self._rows += (self.code.function("loop"), at, words.OF_WORDS, 1)
        self._arguments += [0] * words.LOOP_WORDS
        condition = self._program.loops[number].condition
        if condition is not None:
            slot = at + words.LOOP_CONDITION
            self._arguments[slot] = self._word(condition, slot)
            own = self._program.loops[number]
            loops = enumerate(self._program.loops[:number])
            self._move(condition, slot, [i for i, loop in loops if own.first < loop.end])

    def _move(self, pointer: Pointer, slot: int, around: Sequence[int]) -> None:
        """Note that loops around move the address in a slot on."""
        for loop, step in zip(around, pointer.steps, strict=False):
            if step:
                self._moves[loop] += (slot, step)

    def _word(self, argument: Argument, slot: int) -> int:
        """Return the word of an argument in a slot, without what differs between calls."""
        if isinstance(argument, ScalarArgument):
            return _bits(argument)
        if isinstance(argument, Symbol):
            return _symbol_address(argument.name)
        if not isinstance(argument, Pointer):
            return argument
        place = argument.place
        word = place.offset + argument.offset_bytes
        if place.kind == "arena":
            self._arena_slots.append(slot)
        elif place.kind == "constant":
            word += self._program.constants[place.number].ctypes.data
        else:
            first = len(self._program.inputs) if place.kind == "output" else 0
            self._patches += (slot, first + place.number, word)
        return word

    def _finish(self, number: int, start: int, count: int) -> None:
        """Fill in the arguments of a loop, which point into the tables."""
        at, arguments, moves = self._places[number], self._arguments, self.moves[number]
        arguments[at + words.LOOP_COUNT] = self._program.loops[number].most
        arguments[at + words.LOOP_ROWS] = self.rows.ctypes.data + start * self.rows.itemsize
        arguments[at + words.LOOP_ROW_COUNT] = count
        arguments[at + words.LOOP_MOVES] = moves.ctypes.data
        arguments[at + words.LOOP_MOVE_COUNT] = len(moves) // words.MOVE_WORDS


@cache
def _symbol_address(name: str) -> int:
    """Return the address of a BLAS routine, from SciPy's table of C functions, or of a loop of one of its ufuncs."""
    if "/" in name:
        from tracejit.runtime import ufunc_loops

        return uninterrupted(lambda stopping: ufunc_loops.address(name))
    capsule = uninterrupted(lambda stopping: _cython_blas()).__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _cython_blas() -> Any:
    """Return the module scipy.linalg.cython_blas, without the rest of scipy.linalg, which takes 0.15 s to import."""
    import scipy

    name = "scipy.linalg.cython_blas"
    spec = PathFinder.find_spec(name, [os.path.join(folder, "linalg") for folder in scipy.__path__])
    if name in sys.modules or spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bits(number: ScalarArgument) -> int:
    """Return an integer whose low bytes are those of a number."""
    data = np.zeros(8, np.uint8)
    raw = np.frombuffer(np.asarray(number.value, number.dtype).tobytes(), np.uint8)
    data[: raw.size] = raw
    return int(data.view(np.int64)[0])
