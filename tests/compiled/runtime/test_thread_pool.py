# SPDX-License-Identifier: BSD-3-Clause
"""The lock and the condition of a pool, by the routines of each system."""

import ctypes
import threading
import types
from typing import Any

import pytest
from tracejit.kernels.executor import state

from tracejit import config
from tracejit.passes import cost
from tracejit.runtime import thread_pool
from tracejit.runtime.thread_pool import Pool


class Routines:
    """A library of the system that notes which routines are called, at which words of a pool."""

    def __init__(self) -> None:
        self.called: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda at, *rest: self.called.append((name, at.value))


class Code:
    """Object code that is never run."""

    def function(self, name: str) -> int:
        return 8


@pytest.mark.parametrize(
    ("is_windows", "library", "made", "stopped"),
    [
        (
            False, None, ["pthread_mutex_init", "pthread_cond_init"],
            ["pthread_mutex_lock", "pthread_cond_broadcast", "pthread_mutex_unlock"],
        ),
        (
            True, "kernel32", [],
            ["AcquireSRWLockExclusive", "WakeAllConditionVariable", "ReleaseSRWLockExclusive"],
        ),
    ],
)  # fmt: skip
def test_routines_of_a_system(
    is_windows: bool,
    library: str | None,
    made: list[str],
    stopped: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    routines, loaded = Routines(), []

    def load(name: str | None) -> Routines:
        loaded.append(name)
        return routines

    monkeypatch.setattr(thread_pool, "IS_WINDOWS", is_windows)
    monkeypatch.setattr(ctypes, "CDLL", load)
    pool = Pool(1, Code())  # type: ignore[arg-type]  # no worker
    assert not pool.words.any()
    lock, condition = (pool.address + 8 * word for word in (state.MUTEX, state.CONDITION))
    assert routines.called == list(zip(made, (lock, condition), strict=False))
    routines.called.clear()
    pool.stop()
    assert routines.called == list(zip(stopped, (lock, condition, lock), strict=True))
    assert pool.words[state.STOP] == 1
    assert set(loaded) == {library}


def test_workers_have_stacks_for_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels have scratch memory on the stack, and the size of stacks may be set for other threads."""
    sizes = []

    def start(thread: threading.Thread) -> None:
        sizes.append(size := threading.stack_size())
        threading.stack_size(size)  # which the call before has set to the default

    monkeypatch.setattr(threading.Thread, "start", start)
    usual = threading.stack_size(1 << 18)
    try:
        Pool(3, Code())
    finally:
        found = threading.stack_size(usual)
    assert (sizes, found) == ([thread_pool.STACK_BYTES] * 2, 1 << 18)


def test_no_more_threads_than_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def started(size: int, code: object) -> Any:
        sizes.append(size)
        return types.SimpleNamespace(stop=lambda: None, forget_workers=lambda: None)

    monkeypatch.setattr(thread_pool, "Pool", started)
    for threads in (3, 10**20):
        monkeypatch.setattr(config.settings, "threads", threads)
        thread_pool._started(Code())  # type: ignore[arg-type]
    assert sizes == [3, cost.MOST_PARTS]
