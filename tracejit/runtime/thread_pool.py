# SPDX-License-Identifier: BSD-3-Clause
"""The pool of threads that run the parts of launches: one for a process, started by the first program that needs it."""

import atexit
import ctypes
import os
import threading
from typing import Any

import numpy as np

from tracejit import config
from tracejit.compile.registry import Code, registry
from tracejit.kernels.executor import state
from tracejit.util.files import IS_WINDOWS
from tracejit.util.locks import new_lock
from tracejit.util.threads import OwnThread
from tracejit.util.uninterrupted import uninterrupted, warn_of_threads

FUNCTIONS = ("run_parts", "work")
"""The int64 functions that a pool needs."""
MOST_THREADS = 32  # as many as a launch has parts (MOST_PARTS in passes/cost.py): others would find no work
STACK_BYTES = 8 << 20  # of each worker, which the default of some systems does not give
_POSIX = "pthread_mutex_lock", "pthread_cond_broadcast", "pthread_mutex_unlock"
_WINDOWS = "AcquireSRWLockExclusive", "WakeAllConditionVariable", "ReleaseSRWLockExclusive"
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Pool:
    """`size` - 1 worker threads, and the words through which they get work (kernels/executor/threads.py)."""

    def __init__(self, size: int, code: Code = registry) -> None:
        self._code = code  # code is unloaded with its last user
        self._memory = np.zeros(state.POOL_WORDS + 8, np.intp)
        lines = -(-self._memory.ctypes.data // 64) * 64
        self.words = self._memory[(lines - self._memory.ctypes.data) // 8 :][: state.POOL_WORDS]
        self.run_parts = code.function("run_parts")
        self._initialise()
        work = _WORK(code.function("work"))
        self._threads = [
            OwnThread(target=work, args=(self.address,), name=f"tracejit worker {i}", daemon=True)
            for i in range(1, size)
        ]
        usual = threading.stack_size(STACK_BYTES)
        try:
            self._start()
        finally:
            threading.stack_size(usual)

    def _start(self) -> None:
        for started, thread in enumerate(self._threads):
            try:
                thread.start()
            except RuntimeError as error:
                warn_of_threads(error)
                del self._threads[started:]  # those that were started do all parts, with the caller
                break

    @property
    def address(self) -> int:
        """The address of the words."""
        return self.words.ctypes.data

    def _initialise(self) -> None:
        """Set the words of a pool without work: zeros, a lock and a condition of the system."""
        self.words[:] = 0  # which are a lock and a condition of Windows
        if not IS_WINDOWS:
            system: Any = ctypes.CDLL(None)
            system.pthread_mutex_init(self._at(state.MUTEX), None)
            system.pthread_cond_init(self._at(state.CONDITION), None)

    def _at(self, word: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.address + state.WORD_BYTES * word)

    def stop(self) -> None:
        """End the workers."""
        system: Any = ctypes.CDLL("kernel32" if IS_WINDOWS else None)
        lock, wake_all, unlock = (getattr(system, name) for name in (_WINDOWS if IS_WINDOWS else _POSIX))
        self.words[state.STOP] = 1
        lock(self._at(state.MUTEX))
        wake_all(self._at(state.CONDITION))
        unlock(self._at(state.MUTEX))
        for thread in self._threads:
            thread.join()

    def forget_workers(self) -> None:
        """Go on without workers, which a forked process does not have: the caller runs all parts."""
        self._threads = []
        self._initialise()


def is_wanted() -> bool:
    """Return whether the system has threads and programs should use several."""
    return state.HAS_THREADS and config.settings.threads > 1


_lock = new_lock()
_pool: Pool | None = None


def _started(code: Code) -> Pool:
    started = Pool(min(config.settings.threads, MOST_THREADS), code)
    atexit.register(started.stop)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=started.forget_workers)
    return started


def pool(code: Code = registry) -> Pool | None:
    """Return the pool of this process, or None if programs should use one thread; the first call starts it."""
    global _pool
    with _lock:
        if _pool is None and is_wanted():
            _pool = uninterrupted(lambda stopping: _started(code))
        return _pool
