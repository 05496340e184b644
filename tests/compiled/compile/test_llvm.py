# SPDX-License-Identifier: BSD-3-Clause
"""LLVM works on several kernels at a time (Note [several kernels at a time])."""

import threading
from typing import Any

import pytest
from llvmlite.binding import ffi

from tracejit.compile import llvm, numba_target
from tracejit.compile.llvm import LlvmFunction
from tracejit.compile.registry import KernelRegistry
from tracejit.program import Kernel
from tracejit.util import locks


def kernel(number: int) -> Kernel:
    """Return a kernel whose loops LLVM turns into vectors."""
    lines = "".join(f"        s = s + x[i] * f64({k}.5)\n" for k in range(number + 3))
    text = (
        f"def sums_{number}(args):\n    x = read_f64(args[0])\n    o = write_f64(args[1], 0)\n"
        f"    for i in range(args[2]):\n        s = f64(0)\n{lines}        o[i] = s\n"
    )
    return Kernel(f"sums_{number}", text)


def test_object_code_is_the_same_in_several_threads() -> None:
    lowered = [numba_target.lower(kernel(number)) for number in range(6)]
    alone = [function.object_code() for function in lowered]
    together: dict[int, Any] = {}

    def compile_all(first: int) -> None:
        for number in range(first, len(lowered), 3):
            together[number] = lowered[number].object_code()

    threads = [threading.Thread(target=compile_all, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(len(lowered))] == alone


def test_kernels_are_compiled_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two second stages waits until the other one has begun."""
    both = threading.Barrier(2, timeout=60)
    object_code = LlvmFunction.object_code

    def wait_for_the_other(self: LlvmFunction, *arguments: Any) -> Any:
        both.wait()
        return object_code(self, *arguments)

    monkeypatch.setattr(LlvmFunction, "object_code", wait_for_the_other)
    monkeypatch.setattr("tracejit.compile.registry.cpus", lambda: 2)
    monkeypatch.setattr("tracejit.compile.registry.store", lambda: None)
    found = KernelRegistry().prepare([kernel(20), kernel(21)])
    assert sorted(found.compiled) == ["sums_20", "sums_21"]


def test_forks_wait_for_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """While LLVM runs passes, a lock is held that a fork takes first; llvmlite's own is free."""
    lowered = numba_target.lower(kernel(30))
    held: list[bool] = []

    def look(*arguments: Any) -> Any:
        def try_all() -> None:
            waited_for = [lock for find in locks._waited_for if (lock := find()) is not None]
            free = [lock.acquire(blocking=False) for lock in waited_for]
            for lock, is_free in zip(waited_for, free, strict=True):
                if is_free:
                    lock.release()
            held.append(not all(free))
            held.append(ffi.lib._lock._lock in [lock for lock, f in zip(waited_for, free, strict=True) if f])

        other = threading.Thread(target=try_all)
        other.start()
        other.join()
        return function(*arguments)

    wrapped = ffi.lib.LLVMPY_RunNewModulePassManager
    function = wrapped._cfn
    monkeypatch.setattr(wrapped, "_cfn", look)
    lowered.object_code()
    assert held == [True, True]


def test_more_threads_than_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "_locks", llvm._locks[:1])
    lowered = [numba_target.lower(kernel(number)) for number in range(40, 43)]
    together: list[Any] = []
    threads = [
        threading.Thread(target=lambda function=function: together.append(function.object_code()[0]))
        for function in lowered
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(together) == sorted(function.object_code()[0] for function in lowered)
