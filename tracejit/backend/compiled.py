# SPDX-License-Identifier: BSD-3-Clause
"""Kernels compiled in this process, found by name, which ends in the hash of their text."""

import threading
import time

from tracejit.backend.objects import load
from tracejit.program import Kernel


class Compiled:
    """All kernels that this process has, and the executor that runs them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._addresses: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self.compile_ns = 0

    def __len__(self) -> int:
        return len(self._addresses)

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel, compiling it if it is new."""
        address = self._addresses.get(kernel.name)
        if address is None:
            with self._lock:
                address = self._addresses.get(kernel.name)
                if address is None:
                    started = time.perf_counter_ns()
                    from tracejit.backend import compiler  # imports Numba

                    address = self._addresses[kernel.name] = load(
                        kernel.name, compiler.lower(kernel).object_code()
                    )
                    self.compile_ns += time.perf_counter_ns() - started
        return address

    def function(self, name: str) -> int:
        """Return the address of the executor ("run"), or of a function of its threads ("run_parts", "work")."""
        with self._lock:
            address = self._functions.get(name)
            if address is None:
                from tracejit.backend import compiler  # imports Numba

                lowered = compiler.lower_function(name)
                address = self._functions[name] = load(lowered.symbol, lowered.object_code())
        return address


compiled = Compiled()
