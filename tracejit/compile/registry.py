# SPDX-License-Identifier: BSD-3-Clause
"""Compiled code of this process, by name: taken from the disk, or compiled.

Note [compiling]
A kernel goes through two stages: Numba, which is Python, infers types and writes LLVM's source; LLVM optimises that
and writes object code, while Python may run. So if several kernels are missing, LLVM works in a thread of its own, one
kernel behind.
"""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from tracejit.compile.key import key_of
from tracejit.compile.llvm import LlvmFunction
from tracejit.compile.lower import lower
from tracejit.compile.objects import load
from tracejit.errors import CodegenError
from tracejit.program import Kernel, Prepared
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import store
from tracejit.util import logs
from tracejit.util.locks import new_lock
from tracejit.util.memory import collector_paused

_SWITCH_S = 2e-4


class Code(Protocol):
    """Code by name: of this process (KernelRegistry), or of an exported folder."""

    def prepare(self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = ()) -> Prepared:
        """See to it that kernels and functions are at hand; return what had to be done for that."""

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel."""

    def function(self, name: str) -> int:
        """Return the address of the executor, or of a function of its threads."""


class _Wanted(NamedTuple):
    """Something to compile: a kernel, or a function of kernels/ by its name."""

    name: str
    kernel: Kernel | None

    @property
    def key(self) -> KernelKey | None:
        return key_of("function", self.name) if self.kernel is None else key_of("kernel", self.kernel.text)

    def lower(self) -> LlvmFunction:
        """Return it as LLVM's source."""
        return lower(self.name if self.kernel is None else self.kernel)


class KernelRegistry:
    """All kernels that this process has, and the functions that run them.

    compile_ns      what compiling took
    compiled        how many kernels and functions were compiled in this process
    loaded          how many came from the disk
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._kernels: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self.compile_ns = 0
        self.compiled = 0
        self.loaded = 0

    def __len__(self) -> int:
        return len(self._kernels)

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel, which is compiled if nobody has it."""
        self.prepare([kernel])
        return self._kernels[kernel.name]

    def function(self, name: str) -> int:
        """Return the address of the executor ("run"), or of a function of its threads ("run_parts", "work")."""
        self.prepare(functions=[name])
        return self._functions[name]

    def prepare(self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = ()) -> Prepared:
        """See to it that kernels and functions are at hand; return what had to be done for that."""
        with self._lock:
            wanted = [_Wanted(k.name, k) for k in kernels if k.name not in self._kernels]
            wanted += [_Wanted(name, None) for name in functions if name not in self._functions]
            started = time.perf_counter_ns()
            missing = [each for each in wanted if not self._from_disk(each)]
            loaded = time.perf_counter_ns()
            if missing:
                with collector_paused():
                    for each, entry in _compile(missing):
                        self._add(each, entry)
                        self.compiled += 1
                        _tell("compile", each, f"compiled in {entry.compile_ns / 1e6:.1f} ms")
                self.compile_ns += time.perf_counter_ns() - loaded
            names = {each.name for each in missing}
            return Prepared(
                tuple(names),
                tuple([each.name for each in wanted if each.name not in names]),
                time.perf_counter_ns() - loaded if missing else 0,
                loaded - started if wanted else 0,
            )

    def _from_disk(self, wanted: _Wanted) -> bool:
        started = time.perf_counter_ns()
        cache, key = store(), wanted.key
        entry = None if cache is None or key is None else cache.load(key)
        if entry is None:
            return False
        try:
            self._add(wanted, entry)
        except CodegenError as error:  # it was compiled where the process has other libraries
            _tell("load", wanted, f"is compiled again, because {error}")
            return False
        self.loaded += 1
        _tell("load", wanted, f"loaded from disk in {(time.perf_counter_ns() - started) / 1e6:.1f} ms")
        return True

    def _add(self, wanted: _Wanted, entry: StoredKernel) -> None:
        table = self._functions if wanted.kernel is None else self._kernels
        table[wanted.name] = load(entry.symbol, entry.code, entry.needs)


def _tell(event: str, wanted: _Wanted, what: str) -> None:
    if logs.enabled(logs.DEBUG):
        logs.write(
            logs.DEBUG, event, f"{'function' if wanted.kernel is None else 'kernel'} {wanted.name}: {what}."
        )


def _compile(missing: Sequence[_Wanted]) -> Iterator[tuple[_Wanted, StoredKernel]]:
    """Compile, and keep on disk (Note [compiling])."""
    if len(missing) == 1:
        started = time.perf_counter_ns()
        yield missing[0], _finished(missing[0], missing[0].lower(), started)
        return
    lowered: SimpleQueue[tuple[_Wanted, Any, int] | None] = SimpleQueue()
    done: list[tuple[_Wanted, StoredKernel]] = []
    failures: list[Exception] = []

    def finish() -> None:
        for each, source, started in iter(lowered.get, None):
            try:
                done.append((each, _finished(each, source, started)))
            except Exception as failure:
                failures.append(failure)

    thread = threading.Thread(target=finish, name="tracejit compiler")
    thread.start()
    interval = sys.getswitchinterval()
    # Each call of LLVM has to get back to Python, which else it gets every 5 ms: as long as a small kernel takes.
    sys.setswitchinterval(_SWITCH_S)
    try:
        for each in missing:
            started = time.perf_counter_ns()
            lowered.put((each, each.lower(), started))
    finally:
        lowered.put(None)
        thread.join()
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]
    yield from done


def _finished(wanted: _Wanted, lowered: Any, started: int) -> StoredKernel:
    code, needs = lowered.object_code()
    source = "" if wanted.kernel is None else wanted.kernel.text
    key = wanted.key
    entry = StoredKernel(
        key or KernelKey(()), lowered.symbol, needs, time.perf_counter_ns() - started, source, code
    )
    cache = store()
    if cache is not None and key is not None:
        cache.save(entry)
    return entry


registry = KernelRegistry()
"""The kernels of this process."""
