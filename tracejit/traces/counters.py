# SPDX-License-Identifier: BSD-3-Clause
"""The counts and times of one accelerated function, and the log of the programs that it builds."""

import functools
import inspect
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracejit.call.explain import describe, leaf_names
from tracejit.call.signature import Key
from tracejit.ir import Where
from tracejit.program import Prepared, Program
from tracejit.util import logs
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count, ms, size

if TYPE_CHECKING:
    from tracejit.traces.stats import Stats

REASONS = ("signature", "evicted", "guard", "unconfirmed", "audit", "refused")
"""The reasons for which a call is a miss."""
OUTCOMES = ("confirmed", "audited", "replaced", "refused")
"""The outcomes of a recording besides a new trace."""


class Counters:
    """The counts of one accelerated function.

    Attributes:
        name: of the function.
        label: its name, file and line.
        defined: its file and line, None if it has none.
        misses: by reason.
        outcomes: of recordings.
    """

    def __init__(self, name: str, function: Any) -> None:
        where = self.defined = defined_at(function)
        self._function = function
        self.name = name
        self.label = f"{name} ({where[0]}:{where[1]})" if where else name
        self._lock = new_lock()
        self.clear()

    def clear(self) -> None:
        """Set all counts and times to zero."""
        self.misses: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.recorded = self.uncompiled = self.evicted = 0
        self.compiled = self.loaded = 0
        self.record_ns = self.build_ns = self.compile_ns = self.load_ns = 0

    def of_programs(self, key: Key) -> "ProgramCounters":
        """Return the listener that counts the programs of a key."""
        return ProgramCounters(self, key)

    def describe(self, key: Key) -> str:
        """Return the arguments of a key in words."""
        return describe(self._function, key)

    def arguments(self, key: Key) -> list[tuple[str, str]]:
        """Return the name and the description of each argument of a key."""
        names = leaf_names(self._function, key.structure)
        return [(name, str(part)) for name, part in zip(names, key.parts, strict=True)]

    def stats(self, programs: Sequence[Program], **counts: int) -> "Stats":
        """Return all counts, given those that the function keeps itself and the programs in its cache."""
        from tracejit.traces.stats import Stats

        with self._lock:
            return Stats(
                **counts,
                misses={reason: self.misses[reason] for reason in REASONS},
                **{outcome: self.outcomes[outcome] for outcome in OUTCOMES},
                uncompiled=self.uncompiled,
                evicted=self.evicted,
                traces=self.recorded,
                programs=len(programs),
                launches=sum(program.launches for program in programs),
                kernels=len({kernel for program in programs for kernel in program.kernels}),
                arena_bytes=sum(program.arena_bytes for program in programs),
                compiled=self.compiled,
                loaded=self.loaded,
                record_ns=self.record_ns,
                build_ns=self.build_ns,
                compile_ns=self.compile_ns,
                load_ns=self.load_ns,
            )

    def add(
        self, build_ns: int = 0, compiled: int = 0, loaded: int = 0, compile_ns: int = 0, load_ns: int = 0
    ) -> None:
        """Add to the counts and times of programs."""
        with self._lock:
            self.build_ns += build_ns
            self.compiled += compiled
            self.loaded += loaded
            self.compile_ns += compile_ns
            self.load_ns += load_ns


class ProgramCounters(NamedTuple):
    """Listens to the programs of one key: adds to the function's counts, and writes to the log."""

    counters: Counters
    key: Key

    @property
    def defined(self) -> Where:
        """The file and line of the function's definition."""
        return self.counters.defined

    @property
    def signature(self) -> list[tuple[str, str]]:
        """The name and the description of each argument."""
        return self.counters.arguments(self.key)

    def on_built(self, program: Program, part: str, build_ns: int) -> None:
        """Count the time that building a program took, and log it."""
        self.counters.add(build_ns=build_ns)
        if logs.enabled(logs.INFO):
            launches, kernels = count(program.launches, "launch"), count(len(program.kernels), "kernel")
            self._write(
                "build",
                f"built the {_program(part)} for {{}} in {ms(build_ns)}: {launches} of {kernels}, an arena of "
                f"{size(program.arena_bytes)}.",
            )

    def on_prepared(self, program: Program, part: str, prepared: Prepared) -> None:
        """Count the kernels of a program that were compiled or loaded, and log them."""
        names = {kernel.name for kernel in program.kernels}
        compiled = len(names.intersection(prepared.compiled))
        loaded = len(names.intersection(prepared.loaded))
        self.counters.add(
            compiled=compiled, loaded=loaded, compile_ns=prepared.compile_ns, load_ns=prepared.load_ns
        )
        if logs.enabled(logs.INFO):
            sources = [
                f"{compiled} compiled in {ms(prepared.compile_ns)}" if prepared.compiled else "",
                f"{loaded} loaded from disk in {ms(prepared.load_ns)}" if prepared.loaded else "",
                f"{len(names) - compiled - loaded} at hand" if len(names) > compiled + loaded else "",
            ]
            kernels = count(len(names), "kernel")
            self._write(
                "kernels", f"{kernels} of the {_program(part)} for {{}}: {', '.join(filter(None, sources))}."
            )

    def _write(self, event: str, text: str) -> None:
        counters = self.counters
        logs.write(logs.INFO, event, f"{counters.label}: {text.format(counters.describe(self.key))}")


def _program(part: str) -> str:
    return f"{part} program" if part else "program"


def defined_at(function: Any) -> Where:
    """Return the file and line where a function begins, or None if it has none."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)
