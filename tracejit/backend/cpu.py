# SPDX-License-Identifier: BSD-3-Clause
"""The CPU backend: compiles kernels with Numba, one C function each, and runs programs by the executor.

Nothing here is imported before the first compilation, because Numba takes longer to import than most programs take to run.
"""

import ctypes
import importlib
import linecache
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import types

from tracejit.codegen.names import DTYPES
from tracejit.errors import CodegenError
from tracejit.kernels import blas, executor, pointers, scalar
from tracejit.program import Kernel, Number, Pointer, Program, Symbol

_KERNEL_SIGNATURE = types.void(types.CPointer(types.intp))  # type: ignore[no-untyped-call]
_HAND_WRITTEN = ("gather", "search", "gemm")
_DATA_OFFSET = 16  # of the data pointer in a NumPy array object: after the object header
_EXECUTOR_TYPE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p] * 2, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p,
    ctypes.c_ssize_t,
)  # fmt: skip


class Compiled:
    """All kernels compiled in this process, found by name, which ends in the hash of their text."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._callbacks: dict[str, Any] = {}
        self.compile_ns = 0

    def __len__(self) -> int:
        return len(self._callbacks)

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel, compiling it if it is new."""
        callback = self._callbacks.get(kernel.name)
        if callback is None:
            with self._lock:
                callback = self._callbacks.get(kernel.name)
                if callback is None:
                    callback = self._callbacks[kernel.name] = self._compile(kernel)
        return callback.address  # type: ignore[no-any-return]

    def _compile(self, kernel: Kernel) -> Any:
        started = time.perf_counter_ns()
        names = dict(namespace())
        file = f"<tracejit kernel {kernel.name}>"
        linecache.cache[file] = (len(kernel.text), None, kernel.text.splitlines(True), file)
        exec(compile(kernel.text, file, "exec"), names)
        try:
            callback = executor.compile_callback(_KERNEL_SIGNATURE, names[kernel.name])
        except Exception as error:
            raise CodegenError(
                f"the emitted kernel {kernel.name} could not be compiled; this is a defect of tracejit. "
                f"Please report it with this source:\n{kernel.text}"
            ) from error
        self.compile_ns += time.perf_counter_ns() - started
        return callback


compiled = Compiled()


@cache
def namespace() -> dict[str, Any]:
    """Return the names that emitted source may use, as Numba compiles them."""
    names: dict[str, Any] = {}
    for suffix, dtype in DTYPES.items():
        names[suffix] = bool if dtype.kind == "b" else dtype.type
    names.update(pointers.FUNCTIONS)
    names.update(scalar.FUNCTIONS)
    for file in _HAND_WRITTEN:
        module = importlib.import_module(f"tracejit.kernels.{file}")
        for name, function in vars(module).items():
            if callable(function) and getattr(function, "__module__", None) == module.__name__:
                names[name] = numba.njit(error_model="numpy")(function)
    names.update(blas.FUNCTIONS)
    return names


@cache
def _executor() -> tuple[Any, Callable[..., None]]:
    callback = executor.compile_executor()
    return callback, _EXECUTOR_TYPE(callback.address)


@cache
def _data_offset() -> int:
    """Return where an array object holds its data pointer, or -1 if that is not where it is expected."""
    probe = np.zeros(1)
    found = ctypes.c_ssize_t.from_address(id(probe) + _DATA_OFFSET).value
    return _DATA_OFFSET if found == probe.ctypes.data else -1


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
    """The table of a program with an arena of its own: one call at a time runs on it."""

    def __init__(self, template: np.ndarray, arena_slots: np.ndarray, arena_bytes: int) -> None:
        self.arguments = template.copy()
        self._arena = np.empty(arena_bytes + 63, np.uint8)
        start = -(-self._arena.ctypes.data // 64) * 64
        self.arguments[arena_slots] += start
        self.address = self.arguments.ctypes.data


class CpuExecutable:
    """A compiled program; may be called from several threads at once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._outputs = [(aval.shape, aval.dtype) for aval in program.outputs]
        arguments: list[int] = []
        rows: list[int] = []
        patches: list[int] = []
        arena_slots: list[int] = []
        for row in program.rows:
            rows += (compiled.address(row.kernel), len(arguments))
            for argument in row.arguments:
                if isinstance(argument, Pointer):
                    place = argument.place
                    offset = place.offset + argument.offset_bytes
                    if place.kind == "arena":
                        arena_slots.append(len(arguments))
                    elif place.kind == "constant":
                        offset += program.constants[place.number].ctypes.data
                    else:
                        base = place.number + (len(program.inputs) if place.kind == "output" else 0)
                        patches += (len(arguments), base, offset)
                    arguments.append(offset)
                elif isinstance(argument, Number):
                    arguments.append(_bits(argument))
                elif isinstance(argument, Symbol):
                    arguments.append(_symbol_address(argument.name))
                else:
                    arguments.append(argument)
        self._template = np.array(arguments, np.intp)
        self._rows = np.array(rows, np.intp)
        self._patches = np.array(patches, np.intp)
        self._arena_slots = np.array(arena_slots, np.intp)
        self._callback, self._run = _executor()
        self._bases = ctypes.c_ssize_t * (len(program.inputs) + len(program.outputs))
        self._fixed = (
            self._rows.ctypes.data, len(program.rows), self._patches.ctypes.data, len(patches) // 3,
        )  # fmt: skip
        self._free: list[_Instance] = []

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on arrays of the shapes, dtypes and layouts that the program was built for."""
        outputs = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        try:
            instance = self._free.pop()
        except IndexError:
            instance = _Instance(self._template, self._arena_slots, self.program.arena_bytes)
        offset = _data_offset()
        if offset >= 0:
            bases = self._bases(*map(id, inputs), *map(id, outputs))
        else:
            bases = self._bases(*[a.ctypes.data for a in (*inputs, *outputs)])
        self._run(instance.address, *self._fixed, bases, offset)
        self._free.append(instance)
        return outputs


def _bits(number: Number) -> int:
    """Return a number as the integer whose low bytes hold it."""
    data = np.zeros(8, np.uint8)
    raw = np.frombuffer(np.asarray(number.value, number.dtype).tobytes(), np.uint8)
    data[: raw.size] = raw
    return int(data.view(np.int64)[0])
