# SPDX-License-Identifier: BSD-3-Clause
"""The compiled code of this process by name, loaded from the disk or compiled.

Note [compiling]
A kernel goes through two stages. Python finds types and writes LLVM IR; LLVM optimises that and writes object code,
without Python's lock. So if several kernels are missing, LLVM works in threads of its own, one for each CPU, on kernels
that are lowered already (compile/stages.py). Both, and the loading of object code, happen in threads in which no signal
handler runs (util/uninterrupted.py), and in which a fork waits (util/locks.py).
"""

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from tracejit.compile.key import key_of
from tracejit.compile.llvm import MOST_AT_A_TIME, LlvmFunction
from tracejit.compile.lower import lower, lowering
from tracejit.compile.objects import load
from tracejit.compile.stages import in_two_stages
from tracejit.config import cpus
from tracejit.errors import CodegenError
from tracejit.kernels.loops import functions as loop_functions
from tracejit.program import Kernel, Prepared
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import store
from tracejit.util import logs
from tracejit.util.locks import new_lock
from tracejit.util.memory import collector_paused
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.room import check_stack
from tracejit.util.uninterrupted import Stopping, uninterrupted


class Code(Protocol):
    """A source of code by name: the registry of this process, or an exported folder."""

    def prepare(self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = ()) -> Prepared:
        """Load or compile what is missing; return what was loaded and compiled, and how long that took."""

    def address(self, kernel: Kernel) -> int:
        """Return the address of a kernel."""

    def function(self, name: str) -> int:
        """Return the address of an int64 function."""


class _Request(NamedTuple):
    """A kernel, or an int64 function by its name, that this process needs."""

    name: str
    kernel: Kernel | None

    @property
    def key(self) -> KernelKey | None:
        return key_of("function", self.name) if self.kernel is None else key_of("kernel", self.kernel.text)

    def lower(self) -> LlvmFunction:
        """Return it as LLVM IR."""
        with lowering():
            return lower(self.name if self.kernel is None else self.kernel)


class KernelRegistry:
    """The addresses of all kernels of this process, and of the int64 functions that run them.

    compile_ns      time spent compiling
    compiled        number of kernels and functions compiled
    loaded          number of kernels and functions loaded from the disk
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
        """Return the address of a kernel, which is loaded or compiled if need be."""
        self.prepare([kernel])
        return self._kernels[kernel.name]

    def function(self, name: str) -> int:
        """Return the address of an int64 function: "run", "enter", "run_parts" or "work"."""
        self.prepare(functions=[name])
        return self._functions[name]

    def prepare(
        self, kernels: Iterable[Kernel] = (), functions: Iterable[str] = (), besides: Iterable[Kernel] = ()
    ) -> Prepared:
        """Load or compile what is missing; return what was loaded and compiled, and how long that took.

        Args:
            kernels: what is needed.
            functions: the int64 functions that are needed, by name.
            besides: kernels that a later call may need; they are compiled if one of the others is.
        """
        with self._lock:
            wanted = [_Request(k.name, k) for k in kernels if k.name not in self._kernels]
            wanted += [_Request(name, None) for name in functions if name not in self._functions]
            if not wanted:
                return Prepared((), (), 0, 0)
            check_stack([request.kernel.scratch_bytes for request in wanted if request.kernel is not None])
            further = [_Request(k.name, k) for k in besides if k.name not in self._kernels]
            return uninterrupted(
                lambda stopping: self._prepare(wanted, further, stopping), _tell, logs.SLOW_S
            )

    def _prepare(
        self, wanted: Sequence[_Request], further: Sequence[_Request], stopping: Stopping
    ) -> Prepared:
        started = time.perf_counter_ns()
        missing = [request for request in wanted if not self._load(request)]
        if any(request.kernel for request in missing):
            missing += [request for request in further if not self._load(request)]
        loaded = time.perf_counter_ns()
        if missing:
            with collector_paused():
                for request, kernel in _compile(missing, stopping):
                    self._add(request, kernel)
                    self.compiled += 1
                    _log("compile", request, f"compiled in {kernel.compile_ns / 1e6:.1f} ms")
            self.compile_ns += time.perf_counter_ns() - loaded
        names = {request.name for request in missing}
        return Prepared(
            tuple(names),
            tuple([request.name for request in wanted if request.name not in names]),
            time.perf_counter_ns() - loaded if missing else 0,
            loaded - started,
        )

    def _load(self, request: _Request) -> bool:
        """Load from the disk; return whether that was possible."""
        started = time.perf_counter_ns()
        cache, key = store(), request.key
        stored = None if cache is None or key is None else cache.load(key)
        if stored is None:
            return False
        try:
            self._add(request, stored)
        except CodegenError as error:  # it was compiled in a process with more libraries
            _log("load", request, f"is compiled again, because {error}")
            return False
        self.loaded += 1
        _log("load", request, f"loaded from disk in {(time.perf_counter_ns() - started) / 1e6:.1f} ms")
        return True

    def _add(self, request: _Request, kernel: StoredKernel) -> None:
        table = self._functions if request.kernel is None else self._kernels
        table[request.name] = load(kernel.symbol, kernel.code, kernel.needs)


def _tell() -> None:
    """Tell the user that compiling takes long."""
    cache = store()
    kept = "As TRACEJIT_CACHE is off, each run compiles them."
    if cache is not None:
        kept = f"They are kept in {cache.root}, from where later runs load them."
    logs.tell_of_slow_build(f"compiling the kernels of a function takes more than {logs.SLOW_S:g} s. {kept}")


def _log(event: str, request: _Request, what: str) -> None:
    if logs.enabled(logs.DEBUG):
        logs.write(
            logs.DEBUG, event, f"{'function' if request.kernel is None else 'kernel'} {request.name}: {what}."
        )


def _compile(missing: Sequence[_Request], stopping: Stopping) -> Iterator[tuple[_Request, StoredKernel]]:
    """Compile, and store on disk (Note [compiling]), until it is all done or has to stop."""

    def lower(request: _Request) -> tuple[LlvmFunction, int]:
        started = time.perf_counter_ns()
        return request.lower(), started

    # LLVM takes the int64 functions while Numba is imported; long kernels come before short ones, so that little is
    # left for it when all are lowered.
    threads = min(MOST_AT_A_TIME, cpus())
    missing = sorted(missing, key=lambda request: -_length(request.kernel) if request.kernel else -math.inf)
    return in_two_stages(
        missing, lower, lambda request, lowered: _finished(request, *lowered), stopping, threads
    )


def _length(kernel: Kernel) -> int:
    """Return the length of a kernel's source, with the code of the loops that it calls."""
    loops = loop_functions()
    called = [loops[name] for name in {*re.findall(r"\w+(?=\()", kernel.text)} & loops.keys()]
    return len(kernel.text) + sum([len(function.__code__.co_code) for function in called])


def _finished(request: _Request, lowered: Any, started: int) -> StoredKernel:
    code, needs = lowered.object_code()
    source = "" if request.kernel is None else request.kernel.text
    key = request.key
    kernel = StoredKernel(
        key or KernelKey(()), lowered.symbol, needs, time.perf_counter_ns() - started, source, code
    )
    cache = store()
    if cache is not None and key is not None:
        cache.save(kernel)
    return kernel


registry = KernelRegistry()
"""The kernels of this process."""
