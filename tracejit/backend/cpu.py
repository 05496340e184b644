# SPDX-License-Identifier: BSD-3-Clause
"""The CPU backend: runs programs of compiled kernels by the executor."""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import PathFinder
from itertools import zip_longest
from typing import Any

import numpy as np

from tracejit import config
from tracejit.array import dlarray
from tracejit.aval import SUPPORTED_DTYPES, Aval
from tracejit.backend import memory
from tracejit.backend.compiled import Code, compiled
from tracejit.backend.pool import FUNCTIONS, is_wanted, pool
from tracejit.errors import CodegenError
from tracejit.kernels import state as words
from tracejit.ops import Layout
from tracejit.passes.plan import ALIGNMENT
from tracejit.program import Number, Pointer, Program, Symbol

_EXECUTOR_TYPE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_void_p] * 4)

Launch = Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], int]
Refill = Callable[[tuple[np.ndarray, ...], list[np.ndarray], list[dlarray]], int]


def _executor(code: Code) -> Callable[..., int]:
    """Return the compiled executor as a C function."""
    memory.check_layout()
    return _EXECUTOR_TYPE(code.function("run"))


@cache
def _symbol_address(name: str) -> int:
    """Return the address of a BLAS routine, from SciPy's table of C functions."""
    capsule = _cython_blas().__pyx_capi__[name]
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


class _Instance:
    """The arguments of a program with an arena of its own: one call at a time runs on it."""

    __slots__ = ("_arena", "_arguments", "address", "state")

    def __init__(
        self, state: np.ndarray, template: np.ndarray, arena_slots: np.ndarray, arena_bytes: int
    ) -> None:
        self._arguments = template.copy()
        self._arena = np.empty(arena_bytes + ALIGNMENT, np.uint8)
        self._arguments[arena_slots] += -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.state = state.copy()
        self.state[words.ARGUMENTS] = self._arguments.ctypes.data
        self.address = self.state.ctypes.data


def _launch(state: np.ndarray, table: "_Table", arena_bytes: int) -> Callable[..., int]:
    """Return what runs a program, on (inputs, outputs) or, where it looks after results, (inputs, outputs, results)."""
    run = _executor(table.code)
    free: list[_Instance] = []

    def launch(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], results: Any = None) -> int:
        try:
            instance = free.pop()
        except IndexError:
            instance = _Instance(state, table.arguments, table.arena_slots, arena_bytes)
        status = run(instance.address, id(inputs), id(outputs), 0 if results is None else id(results))
        free.append(instance)
        return status

    return launch


class CpuExecutable:
    """A compiled program; may be called from several threads at once.

    prepared        what had to be done until its kernels were at hand
    """

    def __init__(
        self, program: Program, layouts: Sequence[Layout | None] = (), code: Code = compiled
    ) -> None:
        self.program = program
        in_parts = program.launches < len(program.rows) and is_wanted()
        self.prepared = code.prepare(program.kernels, ["run", *(FUNCTIONS if in_parts else ())])
        table = _Table(program, code)
        checks = _checks(program.inputs, layouts)
        state = np.zeros(words.STATE_WORDS, np.intp)
        state[words.ROWS] = table.rows.ctypes.data
        state[words.ROW_COUNT] = len(program.rows)
        state[words.PATCHES] = table.patches.ctypes.data
        state[words.PATCH_COUNT] = len(table.patches) // 4
        state[words.CHECKS] = checks.ctypes.data
        state[words.CHECK_COUNT] = len(program.inputs)
        state[words.ARRAY_TYPE] = id(np.ndarray)
        state[words.FLUSH] = config.settings.flush_denormals
        workers = pool(code) if in_parts else None
        if workers is not None:
            state[words.POOL] = workers.address
            state[words.RUN_PARTS] = workers.run_parts
        self._table = table
        self._checks = checks
        self._kept = [table, checks]  # what states point to
        self._state = state
        launch = _launch(state, table, program.arena_bytes)

        def launch_checked(inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> int:
            fault = np.zeros((), np.int64)
            status = launch(inputs, (*outputs, fault))
            if not status:
                program.check(fault, outputs)
            return status

        # A function rather than a method: this is the innermost call of a replay.
        self.launch: Launch = launch_checked if program.checked else launch

    def refill(self, formats: Sequence[str | None]) -> Refill | None:
        """Return what runs the program on outputs of an earlier call that nobody uses any more.

        It takes the inputs, the list of the outputs, and the list of the labelled arrays of these `formats` that
        hold the first of them. It returns 0 if it has run, the number of an input as `launch` does, or the negative
        number of an output, counted from 1, that somebody uses or has changed, and that must be replaced by a new one.
        None if the program checks indices: then a call needs an output that no other one has.
        """
        program = self.program
        if program.checked:
            return None
        state = self._state.copy()
        checks = np.concatenate([self._checks, _checks(program.outputs[: len(formats)], ())])
        addresses = np.array([id(format) for format in formats], np.intp)
        self._kept += [checks, addresses, list(formats)]
        state[words.CHECKS] = checks.ctypes.data
        state[words.RESULT_COUNT] = len(formats)
        state[words.RESULT_TYPE] = id(dlarray)
        state[words.RESULT_FORMATS] = addresses.ctypes.data
        state[words.NONE] = id(None)
        slots = memory.slots()
        state[words.SLOT_DATA], state[words.SLOT_FORMAT], state[words.SLOT_VALUE], state[words.SLOT_WEAK] = (
            slots
        )
        return _launch(state, self._table, program.arena_bytes)

    def stepwise(self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> "Steps":
        """Return what runs some rows of the program on these arrays, for who measures them."""
        instance = _Instance(
            self._state, self._table.arguments, self._table.arena_slots, self.program.arena_bytes
        )
        return Steps(instance, self._table, self._checks, inputs, outputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for.

        Raises:
            CodegenError: if an array is of another kind.
        """
        outputs = self.program.new_outputs()
        status = self.launch(tuple(inputs), outputs)
        if status:
            # Equal dtypes can be several objects; the executor knows the one that NumPy makes by name.
            inputs = [array.view(SUPPORTED_DTYPES[array.dtype]) for array in inputs]
            status = self.launch(tuple(inputs), outputs)
        if status:
            given = inputs[status - 1]
            raise CodegenError(
                f"input {status - 1} of a program is {given.dtype} {given.shape} with strides {given.strides}, "
                f"expected {self.program.inputs[status - 1]}"
            )
        return list(outputs)


class Steps:
    """Runs some rows of a program, on arrays that are looked at once, and on an arena that all calls share.

    status      0, or the number of an input that is not as the program wants it; then nothing may be run
    """

    def __init__(
        self, instance: _Instance, table: "_Table", checks: np.ndarray, inputs: tuple[np.ndarray, ...],
        outputs: tuple[np.ndarray, ...],
    ) -> None:  # fmt: skip
        self._executor = _executor(table.code)
        self._instance = instance
        self._kept = table, checks, inputs, outputs  # what the state and the arguments point to
        self._rows = table.rows.ctypes.data
        self._arrays = id(inputs), id(outputs)
        self._pool = int(instance.state[words.POOL])
        self.status = self(0, 0)
        instance.state[words.CHECK_COUNT] = instance.state[words.PATCH_COUNT] = 0

    def __call__(self, first: int, count: int, together: bool = True) -> int:
        """Run `count` rows from the first on: all of their parts, if these are to run `together` on several threads."""
        state = self._instance.state
        state[words.POOL] = self._pool if together else 0
        state[words.ROWS] = self._rows + first * words.ROW_WORDS * state.itemsize
        state[words.ROW_COUNT] = count
        return self._executor(self._instance.address, *self._arrays, 0)


class _Table:
    """A program as tables of words, apart from what differs between calls, and the code that they point to."""

    def __init__(self, program: Program, code: Code) -> None:
        self.code = code
        arguments: list[int] = []
        rows: list[int] = []
        patches: list[int] = []
        arena_slots: list[int] = []
        for row in program.rows:
            rows += (code.address(row.kernel), len(arguments), row.parts, row.length)
            for argument in row.arguments:
                word = 0
                if isinstance(argument, Pointer):
                    place = argument.place
                    word = place.offset + argument.offset_bytes
                    if place.kind == "arena":
                        arena_slots.append(len(arguments))
                    elif place.kind == "constant":
                        word += program.constants[place.number].ctypes.data
                    else:
                        patches += (len(arguments), int(place.kind == "output"), place.number, word)
                elif isinstance(argument, Number):
                    word = _bits(argument)
                elif isinstance(argument, Symbol):
                    word = _symbol_address(argument.name)
                else:
                    word = argument
                arguments.append(word)
        self.arguments = np.array(arguments, np.intp)
        self.rows = np.array(rows, np.intp)
        self.patches = np.array(patches, np.intp)
        self.arena_slots = np.array(arena_slots, np.intp)


def _checks(avals: Sequence[Aval], layouts: Sequence[Layout | None]) -> np.ndarray:
    """Return what the executor checks of each array."""
    words: list[int] = []
    for aval, layout in zip_longest(avals, layouts):
        strides = (0,) * aval.ndim if layout is None else layout.strides
        words += (id(SUPPORTED_DTYPES[aval.dtype]), aval.ndim, int(layout is None), *aval.shape)
        words += [stride * aval.dtype.itemsize for stride in strides]
    return np.array(words, np.intp)


def _bits(number: Number) -> int:
    """Return a number as the integer whose low bytes hold it."""
    data = np.zeros(8, np.uint8)
    raw = np.frombuffer(np.asarray(number.value, number.dtype).tobytes(), np.uint8)
    data[: raw.size] = raw
    return int(data.view(np.int64)[0])
