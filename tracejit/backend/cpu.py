# SPDX-License-Identifier: BSD-3-Clause
"""The CPU backend: runs programs of compiled kernels by the executor."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import zip_longest

import numpy as np

from tracejit import config
from tracejit.aval import SUPPORTED_DTYPES
from tracejit.backend.compiled import compiled
from tracejit.backend.pool import pool
from tracejit.errors import CodegenError
from tracejit.kernels import state as words
from tracejit.ops import Layout
from tracejit.passes.plan import ALIGNMENT
from tracejit.program import Number, Pointer, Program, Symbol

_EXECUTOR_TYPE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_void_p] * 3)

Launch = Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], int]


@cache
def _executor() -> Callable[..., int]:
    """Return the compiled executor as a C function."""
    _check_object_layout()
    return _EXECUTOR_TYPE(compiled.function("run"))


def _check_object_layout() -> None:
    """Check on an example that objects are laid out as the executor reads them.

    Raises:
        CodegenError: if they are not.
    """
    probe = np.zeros((2, 3), np.float32)
    holder = (probe,)

    def word(address: int) -> int:
        return ctypes.c_ssize_t.from_address(address).value

    def half(address: int) -> int:
        return ctypes.c_int32.from_address(address).value

    at = id(probe)
    found = (
        word(id(holder) + words.TUPLE_ITEMS), word(at + words.OBJECT_TYPE), word(at + words.ARRAY_DATA),
        half(at + words.ARRAY_NDIM), word(at + words.ARRAY_DTYPE),
        half(at + words.ARRAY_FLAGS) & words.CONTIGUOUS_AND_ALIGNED,
        word(word(at + words.ARRAY_SHAPE) + 8), word(word(at + words.ARRAY_STRIDES)),
    )  # fmt: skip
    expected = (
        at, id(np.ndarray), probe.ctypes.data, 2, id(probe.dtype), words.CONTIGUOUS_AND_ALIGNED, 3, 12
    )  # fmt: skip
    if found != expected:
        raise CodegenError(
            "this build of Python or NumPy lays out its objects in another way than the CPU backend reads them; "
            "set TRACEJIT_BACKEND=python, and please report the versions of both."
        )


@cache
def _symbol_address(name: str) -> int:
    """Return the address of a BLAS routine, from SciPy's table of C functions."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


class _Instance:
    """The arguments of a program with an arena of its own: one call at a time runs on it."""

    __slots__ = ("_arena", "_arguments", "_state", "address")

    def __init__(
        self, state: np.ndarray, template: np.ndarray, arena_slots: np.ndarray, arena_bytes: int
    ) -> None:
        self._arguments = template.copy()
        self._arena = np.empty(arena_bytes + ALIGNMENT, np.uint8)
        self._arguments[arena_slots] += -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        self._state = state.copy()
        self._state[words.ARGUMENTS] = self._arguments.ctypes.data
        self.address = self._state.ctypes.data


class CpuExecutable:
    """A compiled program; may be called from several threads at once."""

    def __init__(self, program: Program, layouts: Sequence[Layout | None] = ()) -> None:
        self.program = program
        table = _Table(program)
        run = _executor()
        checks = _checks(program, layouts)
        state = np.zeros(words.STATE_WORDS, np.intp)
        state[words.ROWS] = table.rows.ctypes.data
        state[words.ROW_COUNT] = len(program.rows)
        state[words.PATCHES] = table.patches.ctypes.data
        state[words.PATCH_COUNT] = len(table.patches) // 4
        state[words.CHECKS] = checks.ctypes.data
        state[words.CHECK_COUNT] = len(program.inputs)
        state[words.ARRAY_TYPE] = id(np.ndarray)
        state[words.FLUSH] = config.settings.flush_denormals
        workers = pool() if program.launches < len(program.rows) else None
        if workers is not None:
            state[words.POOL] = workers.address
            state[words.RUN_PARTS] = workers.run_parts
        self._kept = (table, checks)  # what the state points to
        free: list[_Instance] = []

        def launch(inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> int:
            try:
                instance = free.pop()
            except IndexError:
                instance = _Instance(state, table.arguments, table.arena_slots, program.arena_bytes)
            status = run(instance.address, id(inputs), id(outputs))
            free.append(instance)
            return status

        def launch_checked(inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> int:
            fault = np.zeros((), np.int64)
            status = launch(inputs, (*outputs, fault))
            if not status:
                program.check(fault, outputs)
            return status

        # A function rather than a method: this is the innermost call of a replay.
        self.launch: Launch = launch_checked if program.checked else launch

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


class _Table:
    """A program as tables of words, apart from what differs between calls."""

    def __init__(self, program: Program) -> None:
        arguments: list[int] = []
        rows: list[int] = []
        patches: list[int] = []
        arena_slots: list[int] = []
        for row in program.rows:
            together = row.parts if row.part == 0 else 1
            rows += (compiled.address(row.kernel), len(arguments), together)
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


def _checks(program: Program, layouts: Sequence[Layout | None]) -> np.ndarray:
    """Return what the executor checks of each input."""
    words: list[int] = []
    for aval, layout in zip_longest(program.inputs, layouts):
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
