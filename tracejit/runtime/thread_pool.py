# SPDX-License-Identifier: BSD-3-Clause
"""The pool of threads that run the parts of launches: made when the first program needs it, one for a process."""

import atexit
import ctypes
import os
import threading
from typing import Any

import numpy as np

from tracejit import config
from tracejit.compile.registry import Code, registry
from tracejit.kernels.executor import state

FUNCTIONS = ("run_parts", "work")
"""What a pool needs of the compiled functions."""
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Pool:
    """Workers, one thread less than `size`, and the words through which they get work (kernels/executor/threads.py)."""

    def __init__(self, size: int, code: Code = registry) -> None:
        self._code = code  # which may end with its last user
        self._memory = np.zeros(state.POOL_WORDS + 8, np.intp)
        lines = -(-self._memory.ctypes.data // 64) * 64
        self.words = self._memory[(lines - self._memory.ctypes.data) // 8 :][: state.POOL_WORDS]
        self.run_parts = code.function("run_parts")
        self._initialise()
        work = _WORK(code.function("work"))
        self._threads = [
            threading.Thread(target=work, args=(self.address,), name=f"tracejit worker {i}", daemon=True)
            for i in range(1, size)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def address(self) -> int:
        """The address of the words."""
        return self.words.ctypes.data

    def _initialise(self) -> None:
        """Make everything as in a pool without work: zeros, and the system's idea of a lock and a condition."""
        self.words[:] = 0
        system: Any = ctypes.CDLL(None)
        system.pthread_mutex_init(ctypes.c_void_p(self.address + 8 * state.MUTEX), None)
        system.pthread_cond_init(ctypes.c_void_p(self.address + 8 * state.CONDITION), None)

    def stop(self) -> None:
        """End the workers."""
        system: Any = ctypes.CDLL(None)
        lock, condition = (
            ctypes.c_void_p(self.address + 8 * word) for word in (state.MUTEX, state.CONDITION)
        )
        self.words[state.STOP] = 1
        system.pthread_mutex_lock(lock)
        system.pthread_cond_broadcast(condition)
        system.pthread_mutex_unlock(lock)
        for thread in self._threads:
            thread.join()

    def forget_workers(self) -> None:
        """Go on without the workers, which a forked process does not have: who calls runs all parts."""
        self._threads = []
        self._initialise()


def is_wanted() -> bool:
    """Return whether programs are to run on several threads, which this system has."""
    return state.HAS_THREADS and config.settings.threads > 1


_lock = threading.Lock()
_pool: Pool | None = None


def pool(code: Code = registry) -> Pool | None:
    """Return the pool of this process, made of `code` at first, or None if one thread is to do all the work."""
    global _pool
    with _lock:
        if _pool is None and is_wanted():
            _pool = Pool(config.settings.threads, code)
            atexit.register(_pool.stop)
            os.register_at_fork(after_in_child=_pool.forget_workers)
        return _pool
