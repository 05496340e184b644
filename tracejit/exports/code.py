# SPDX-License-Identifier: BSD-3-Clause
"""The object code of an exported folder, for the CPU of this process."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from tracejit.compile import objects
from tracejit.errors import CodegenError, ExportError
from tracejit.program import Kernel, Prepared
from tracejit.util.locks import check_compiler, new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.uninterrupted import uninterrupted

_AGAIN = "Export the function on the machine that is to run it."


class ObjectFile(NamedTuple):
    """An object file: the function in it, the symbols that it takes from the process, its content."""

    symbol: str
    needs: tuple[str, ...]
    code: bytes


class ExportedCode:
    """Kernels and functions by name, each loaded at its first use, into memory of this folder's own."""

    def __init__(self, files: Mapping[str, ObjectFile]) -> None:
        self._files = files
        self._addresses: dict[str, int] = {}
        self._engine: Any = None
        self._lock = new_lock()

    def prepare(self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = ()) -> Prepared:
        """Load kernels and functions, and return what was done."""
        started = time.perf_counter_ns()
        names = [*[kernel.name for kernel in kernels], *functions]
        missing = [name for name in names if name not in self._addresses]
        if missing:
            check_compiler()
            uninterrupted(lambda stopping: [self._address(name) for name in missing])
        return Prepared((), tuple(missing), 0, time.perf_counter_ns() - started)

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel."""
        return self._address(kernel.name)

    def function(self, name: str) -> int:
        """Return the address of the executor, or of a function of its threads."""
        return self._address(name)

    def _address(self, name: str) -> int:
        with self._lock:
            address = self._addresses.get(name)
            if address is None:
                if self._engine is None:
                    self._engine = objects.new_engine()
                file = self._files.get(name)
                if file is None:
                    raise ExportError(f"load: the folder has no object code of {name}. {_AGAIN}")
                try:
                    address = objects.load(file.symbol, file.code, file.needs, self._engine)
                except CodegenError as error:
                    raise ExportError(f"load: {error}. {_AGAIN}") from None
                self._addresses[name] = address
            return address
