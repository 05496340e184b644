# SPDX-License-Identifier: BSD-3-Clause
"""The object code of an exported folder, for the CPU of this process."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracejit.compile import objects
from tracejit.errors import CodegenError, ExportError
from tracejit.program import Kernel, Prepared
from tracejit.util.locks import new_lock

_AGAIN = "Export the function where it is to run."


class Object(NamedTuple):
    """An object file: the function in it, what it takes from the process, its content."""

    symbol: str
    needs: tuple[str, ...]
    code: bytes


class ExportedCode:
    """Kernels and functions by name; each is loaded when it is first asked for, into memory of this folder's own."""

    def __init__(self, found: Mapping[str, Object]) -> None:
        self._objects = found
        self._addresses: dict[str, int] = {}
        self._engine: Any = None
        self._lock = new_lock()

    def prepare(self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = ()) -> Prepared:
        """See to it that kernels and functions are at hand; return what had to be done for that."""
        started = time.perf_counter_ns()
        known = set(self._addresses)
        names = [*[kernel.name for kernel in kernels], *functions]
        for name in names:
            self._address(name)
        loaded = tuple([name for name in names if name not in known])
        return Prepared((), loaded, 0, time.perf_counter_ns() - started)

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel."""
        return self._address(kernel.name)

    def function(self, name: str) -> int:
        """Return the address of the executor, or of a function of its threads."""
        return self._address(name)

    def _address(self, name: str) -> int:
        with self._lock:
            found = self._addresses.get(name)
            if found is None:
                if self._engine is None:
                    self._engine = objects.new_engine()
                file = self._objects.get(name)
                if file is None:
                    raise ExportError(f"load: there is no object code of {name}. {_AGAIN}")
                try:
                    found = objects.load(file.symbol, file.code, file.needs, self._engine)
                except CodegenError as error:
                    raise ExportError(f"load: {error}. {_AGAIN}") from None
                self._addresses[name] = found
            return found
