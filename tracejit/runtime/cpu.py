# SPDX-License-Identifier: BSD-3-Clause
"""The CPU back end: the compiled executor runs a program's kernels."""

import ctypes
from collections.abc import Callable, Container, Sequence
from itertools import accumulate, zip_longest
from math import prod
from typing import Any

import numpy as np

from tracejit import config
from tracejit.array import dlarray
from tracejit.aval import Aval, native_dtype
from tracejit.call.recycle import EntryPoint
from tracejit.call.result import MISS
from tracejit.call.tables import Pattern, Recipe
from tracejit.compile.registry import Code, registry
from tracejit.errors import CodegenError
from tracejit.kernels.executor import state as words
from tracejit.ops import Layout
from tracejit.ops.op import contiguous
from tracejit.program import ALIGNMENT, Program
from tracejit.record.guards import GuardFailed
from tracejit.runtime import object_layout
from tracejit.runtime.c_function import python_function
from tracejit.runtime.table import ProgramTable
from tracejit.runtime.thread_pool import FUNCTIONS, is_wanted, pool

_BRIEF_STEPS = (
    1 << 15
)  # of all kernels of a program that runs with Python's lock, which takes 0.03 us to let go
_EXECUTOR_TYPE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_void_p] * 3)
_EXECUTOR_WITH_PYTHON = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_void_p] * 3)  # keeps Python's lock

Launch = Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], int]


def _executor(code: Code, calls_python: bool) -> Callable[..., int]:
    """Return the compiled executor as a C function."""
    object_layout.check_layout()
    if calls_python:
        return _EXECUTOR_WITH_PYTHON(code.function("run_with_python"))
    return _EXECUTOR_TYPE(code.function("run"))


class _StateFactory:
    """Makes states of a program: blocks of memory with arguments and an arena, each for one call at a time.

    Args:
        template: the words that all states have in common.
        table: the program.
        arena_bytes: the size of the arena.
        objects: the number of objects that the program's entry takes from the arguments.
    """

    def __init__(
        self, template: np.ndarray, table: "ProgramTable", arena_bytes: int, objects: int = 0
    ) -> None:
        self._template = template
        self._table = table
        self._arena_bytes = arena_bytes
        self._data = int(template[words.INPUT_COUNT] + template[words.OUTPUT_COUNT])
        self._objects = int(template[words.INPUT_COUNT]) + objects

    def new(self) -> np.ndarray:
        """Return a state, with everything that changes during a call in the same array."""
        # What the program writes is compared with the inputs of the call before.
        seen_words = int(self._template[words.INPUT_COUNT]) if self._template[words.WRITTEN_COUNT] else 0
        parts = (words.STATE_WORDS, seen_words, self._data, self._objects, len(self._table.arguments))
        _, seen, data, objects, arguments, arena = (8 * at for at in accumulate(parts, initial=0))
        block = np.empty(-(-(arena + self._arena_bytes + ALIGNMENT) // 8), np.intp)
        start = block.ctypes.data
        block[: words.STATE_WORDS] = self._template
        block[words.SEEN] = start + seen
        block[seen // 8 : data // 8] = 0
        block[words.DATA] = start + data
        block[words.OBJECTS] = start + objects
        block[words.ARGUMENTS] = start + arguments
        filled = block[arguments // 8 : arena // 8]
        filled[:] = self._table.arguments
        filled[self._table.arena_slots] += -(-(start + arena) // ALIGNMENT) * ALIGNMENT
        filled[self._table.state_slots] = start
        return block


def _launch(states: _StateFactory, code: Code, calls_python: bool) -> Launch:
    """Return a function that runs a program on inputs and outputs."""
    run = _executor(code, calls_python)
    free: list[tuple[int, np.ndarray]] = []

    def launch(inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> int:
        try:
            state = free.pop()
        except IndexError:
            block = states.new()
            state = block.ctypes.data, block
        status = run(state[0], id(inputs), id(outputs))
        free.append(state)
        return status

    return launch


class CpuExecutable:
    """A compiled program; may be called from several threads at once.

    prepared        the kernels that were loaded or compiled, and how long that took
    """

    def __init__(
        self, program: Program, layouts: Sequence[Layout | None] = (), code: Code = registry
    ) -> None:
        self.program = program
        in_parts = program.launches < len(program.rows) and is_wanted()
        executors = ["run", "enter", *(["run_with_python"] if program.calls_python else ())]
        executors += ["loop"] if program.loops else ()
        executors += ["called"] if code is registry else ()  # beside others, as a later call will need it
        compiled = [kernel for kernel in program.kernels if kernel.host is None]
        executors += FUNCTIONS if in_parts else ()
        if code is registry:
            self.prepared = registry.prepare(compiled, executors, program.of_other_sizes)
        else:
            self.prepared = code.prepare(compiled, executors)
        table = ProgramTable(program, code)
        checks = _checks(program.inputs, layouts, written=program.written)
        state = np.zeros(words.STATE_WORDS, np.intp)
        state[words.ROWS] = table.rows.ctypes.data
        state[words.ROW_COUNT] = table.row_count
        state[words.COMMIT_COUNT] = table.commit_count
        state[words.PATCHES] = table.patches.ctypes.data
        state[words.PATCH_COUNT] = len(table.patches) // words.PATCH_WORDS
        state[words.CHECKS] = checks.ctypes.data
        api = object_layout.api()
        state[words.API] = api.ctypes.data
        state[words.INPUT_COUNT] = len(program.inputs)
        state[words.OUTPUT_COUNT] = len(program.outputs) + bool(program.checked)
        state[words.ARRAY_TYPE] = id(np.ndarray)
        state[words.TUPLE_HEAD] = tuple.__basicsize__
        state[words.FLUSH] = config.settings.flush_denormals
        if program.guard is not None:
            state[words.GUARD] = len(program.inputs) + program.guard
        if program.checked:
            state[words.FAULT] = len(program.inputs) + len(program.outputs)
        written, spans = np.array(program.written, np.intp), _spans(program.inputs, layouts)
        state[words.WRITTEN], state[words.WRITTEN_COUNT] = written.ctypes.data, len(written)
        state[words.SPANS] = spans.ctypes.data
        workers = pool(code) if in_parts else None
        if workers is not None:
            state[words.POOL] = workers.address
            state[words.RUN_PARTS] = workers.run_parts
        self._table = table
        self._layouts = layouts
        self._kept = [table, checks, written, spans, api, workers]  # states point into them
        self._state = state
        self._states = _StateFactory(state, table, program.arena_bytes)
        launch = _launch(self._states, code, program.calls_python)

        def launch_checked(inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> int:
            fault = np.zeros((), np.int64)
            status = launch(inputs, (*outputs, fault))
            if not status:
                program.check(fault, outputs)
            return status

        # A function rather than a method: this is the innermost call of a replay.
        self.launch: Launch = launch_checked if program.checked else launch

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint:
        """Return the entry point that runs the program on recycled results of earlier calls.

        It flattens the arguments of a call by a pattern, or takes a tuple of the inputs; it returns the result that a
        recipe builds, or the list of results.

        Args:
            formats: the formats of the outputs that are results.
            guarded: whether the last output says whether the others are valid.
            pattern: the table that the arguments have to match; None takes a tuple of the inputs.
            recipe: the table that builds the result; None returns the list of results.
        """
        program = self.program
        state = self._state.copy()
        state[words.BRIEF] = _is_brief(program)
        state[words.MISS] = id(MISS)
        numbers = pattern.numbers if pattern is not None else ()
        checks = _checks(program.inputs, self._layouts, numbers, program.written)
        orders = [_by_columns(aval.shape) if program.order(number) == "F" else None
                  for number, aval in enumerate(program.outputs[: len(formats)])]  # fmt: skip
        results = _checks(program.outputs[: len(formats)], orders, own=True)
        checks = np.concatenate([checks, results])
        spans = _spans(program.inputs, self._layouts, numbers)
        addresses = np.array([id(format) for format in formats], np.intp)
        kept: list[Any] = [self._kept, checks, spans, addresses, list(formats), pattern, recipe]
        state[words.CHECKS] = checks.ctypes.data
        state[words.SPANS] = spans.ctypes.data
        state[words.RESULT_COUNT] = len(formats)
        state[words.RESULT_FORMATS] = addresses.ctypes.data
        state[words.LABELLED_TYPE] = id(dlarray)
        slots = object_layout.slots()
        state[words.SLOT_DATA], state[words.SLOT_FORMAT], state[words.SLOT_VALUE], state[words.SLOT_WEAK] = (
            slots
        )
        state[words.SLOT_FIXED], state[words.SLOT_LEAVES] = object_layout.node_slots()
        state[words.GUARDED] = len(program.inputs) + len(program.outputs) - 1 if guarded else 0
        objects = 0
        if pattern is not None:
            table = np.array(pattern.words, np.intp)
            kept.append(table)
            state[words.PATTERN] = table.ctypes.data
            state[words.PATTERN_END] = table.ctypes.data + table.nbytes
            state[words.TAKEN] = pattern.inputs
            objects = pattern.objects
            if pattern.direct is not None:
                first, count, start, end = pattern.direct
                state[words.DIRECT_FIRST], state[words.DIRECT_COUNT] = first, count
                state[words.DIRECT_PATTERN] = table.ctypes.data + start * table.itemsize
                state[words.DIRECT_END] = table.ctypes.data + end * table.itemsize
        if recipe is not None:
            table = np.array(recipe.words, np.intp)
            kept.append(table)
            state[words.RECIPE] = table.ctypes.data
            state[words.RECIPE_END] = table.ctypes.data + table.nbytes
            objects = max(objects, recipe.objects)
        enter = python_function(self._table.code.function("enter"))
        states = _StateFactory(state, self._table, program.arena_bytes, objects)

        def new_state() -> np.ndarray:
            assert kept  # which has to live as long as this
            return states.new()

        return EntryPoint(
            enter, new_state, lambda block: int(block[words.STATUS]), lambda block: int(block[words.TURN])
        )

    def stepwise(self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> "RowRunner":
        """Return a runner of single rows on these arrays, for a profile."""
        state = self._states.new()
        checks = self._kept[1]
        return RowRunner(state, self._table, checks, inputs, outputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for.

        Raises:
            CodegenError: if an array has a different shape, dtype or layout, or shares memory that is written.
            GuardFailed: if a function of Python that the program calls says that the program does not apply.
        """
        outputs = self.program.new_outputs()
        status = self.launch(tuple(inputs), outputs)
        if status and status != words.HALTED:
            # Equal dtypes may be different objects; the executor compares with the object that NumPy gives by name.
            inputs = [array.view(native_dtype(array.dtype)) for array in inputs]
            status = self.launch(tuple(inputs), outputs)
        if status == words.HALTED:
            raise GuardFailed
        if status == words.MISSED:
            raise CodegenError("an input that a program writes shares memory with another input")
        if status:
            given = inputs[status - 1]
            raise CodegenError(
                f"input {status - 1} of a program is {given.dtype} {given.shape} with strides {given.strides}, "
                f"expected {self.program.inputs[status - 1]}"
            )
        return list(outputs)


class RowRunner:
    """Runs single rows of a program for a measurement; the arrays are checked once, and all calls share an arena.

    status      0, or the number of the first input that fails its check; then no row may be run
    """

    def __init__(
        self, state: np.ndarray, table: "ProgramTable", checks: Any, inputs: tuple[np.ndarray, ...],
        outputs: tuple[np.ndarray, ...],
    ) -> None:  # fmt: skip
        self._executor = _executor(table.code, table.calls_python)
        self._state = state
        self._table = table
        self._kept = table, checks, inputs, outputs  # what the state and the arguments point to
        self._rows = table.rows.ctypes.data
        self._arrays = id(inputs), id(outputs)
        self._pool = int(state[words.POOL])
        self.status = self(0, 0)
        for count in (words.INPUT_COUNT, words.OUTPUT_COUNT, words.PATCH_COUNT):
            state[count] = 0
        state[words.WRITTEN_COUNT] = state[words.COMMIT_COUNT] = 0

    def __call__(self, first: int, count: int, together: bool = True) -> int:
        """Run `count` rows from `first` on; `together` runs the parts of a row on several threads."""
        state = self._state
        state[words.POOL] = self._pool if together else 0
        if first == 0 and count == len(self._table.positions):
            count = self._table.row_count + self._table.commit_count
        elif count:
            first = self._table.positions[first]
        state[words.ROWS] = self._rows + first * words.ROW_WORDS * state.itemsize
        state[words.ROW_COUNT] = count
        return self._executor(state.ctypes.data, *self._arrays)


def _is_brief(program: Program) -> bool:
    """Return whether a program takes less time than other threads wait for Python's lock anyway.

    A kernel takes fewer steps than the product of the numbers among its arguments, which are sizes and strides.
    """
    if program.calls_python or program.loops or program.launches < len(program.rows):
        return False
    steps = 0
    for row in program.rows:
        numbers = [abs(argument) for argument in row.arguments if isinstance(argument, int)]
        steps += prod([number for number in numbers if number])
    return steps <= _BRIEF_STEPS


def _by_columns(shape: tuple[int, ...]) -> Layout:
    """Return the layout of an array in NumPy's order "F"."""
    strides = accumulate(shape[:-1], lambda stride, extent: stride * max(extent, 1), initial=1)
    return Layout(0, shape, tuple(strides))


def _checks(
    avals: Sequence[Aval], layouts: Sequence[Layout | None], numbers: Container[int] = (),
    written: Container[int] = (), own: bool = False,
) -> np.ndarray:  # fmt: skip
    """Return the table of checks of arrays.

    Args:
        avals: of the arrays.
        layouts: None for contiguous arrays.
        numbers: those of arguments that are no arrays.
        written: those of arrays that have to be writeable.
        own: whether all have to own their memory, and to be writeable.
    """
    table: list[int] = []
    for place, (aval, layout) in enumerate(zip_longest(avals, layouts)):
        if place in numbers:
            table += (0, 0, 0)
            continue
        flags = words.ALIGNED
        if layout is None:
            flags |= words.CONTIGUOUS
        if place in written or own:
            flags |= words.WRITEABLE
        if own:
            flags |= words.OWNED
        strides = (0,) * aval.ndim if layout is None else layout.strides
        table += (id(native_dtype(aval.dtype)), aval.ndim, flags, *aval.shape)
        table += [stride * aval.dtype.itemsize for stride in strides]
    return np.array(table, np.intp)


def _spans(
    avals: Sequence[Aval], layouts: Sequence[Layout | None], numbers: Container[int] = ()
) -> np.ndarray:
    """Return the table of the spans of inputs; `numbers` are those of arguments that are no arrays."""
    table: list[int] = []
    for place, (aval, layout) in enumerate(zip_longest(avals, layouts)):
        if place in numbers or aval.size == 0:
            table += (0, 0)
            continue
        layout = contiguous(aval.shape) if layout is None else layout
        steps = [(size - 1) * stride for size, stride in zip(aval.shape, layout.strides, strict=True)]
        low, high = sum(min(0, step) for step in steps), sum(max(0, step) for step in steps)
        table += (low * aval.dtype.itemsize, (high + 1) * aval.dtype.itemsize)
    return np.array(table, np.intp)
