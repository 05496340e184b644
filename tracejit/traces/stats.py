# SPDX-License-Identifier: BSD-3-Clause
"""The counts and times of one accelerated function, and the log of the programs that it builds."""

import functools
import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.call.explain import describe, leaf_names
from tracejit.call.signature import Key
from tracejit.ir import Where
from tracejit.program import Prepared, Program
from tracejit.util import logs
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count, size

REASONS = ("signature", "evicted", "guard", "unconfirmed", "audit", "refused")
"""The reasons for which a call is a miss."""
OUTCOMES = ("confirmed", "audited", "replaced", "refused")
"""The outcomes of a recording besides a new trace."""


@dataclass(frozen=True, slots=True, repr=False)
class Stats:
    """Counts and times of an accelerated function since its cache was last cleared; dataclasses.asdict gives a dict.

    calls, hits     calls while enabled, and those served by a trace
    misses          the other calls, by reason: "signature" (no trace for such arguments), "evicted" (the trace had
                    been evicted), "guard" (something that the traces depend on has changed), "unconfirmed" (the trace
                    has to be confirmed first), "audit", "refused"
    uncompiled      calls that ran the underlying function because it cannot be accelerated for their arguments
    keys, evicted   signatures in the cache; signatures that were evicted
    traces          recordings of the underlying function
    confirmed, audited, replaced, refused   recordings that confirmed a trace, that agreed with one in an audit, that
                    replaced one, that led to a refusal
    kept, guards    traces in the cache; the conditions that they check at each call
    programs        programs of the traces that are kept
    launches        of these programs, in one replay of each
    kernels         that they launch, each counted once
    arena_bytes     the memory that they work in, together
    compiled        kernels that had to be compiled for this function; others had some already
    loaded          kernels that came from the disk
    record_ns       time that recordings took, in which the function computes with NumPy
    build_ns        time spent on building programs, without compiling them
    compile_ns      time spent on compiling, the executor included if this function was the first that needed it
    load_ns         time spent on looking for kernels on the disk, and on loading them
    """

    calls: int
    hits: int
    misses: dict[str, int]
    uncompiled: int
    keys: int
    evicted: int
    traces: int
    confirmed: int
    audited: int
    replaced: int
    refused: int
    kept: int
    guards: int
    programs: int
    launches: int
    kernels: int
    arena_bytes: int
    compiled: int
    loaded: int
    record_ns: int
    build_ns: int
    compile_ns: int
    load_ns: int

    def __repr__(self) -> str:
        share = f" ({100 * self.hits / self.calls:.1f} %)" if self.calls else ""
        misses = ", ".join(f"{number} {reason}" for reason, number in self.misses.items() if number)
        return (
            "Stats with properties:\n\n"
            f"      calls: {self.calls}\n"
            f"       hits: {self.hits}{share}\n"
            f"     misses: {sum(self.misses.values())}{f' ({misses})' if misses else ''}\n"
            f" uncompiled: {self.uncompiled}\n"
            f"       keys: {self.keys}, {self.evicted} evicted\n"
            f"     traces: {self.traces} recorded in {ms(self.record_ns)}; {self.confirmed} confirmed, "
            f"{self.audited} audited, {self.replaced} replaced, {self.refused} refused; {self.kept} kept with "
            f"{count(self.guards, 'guard')}\n"
            f"   programs: {self.programs} built in {ms(self.build_ns)}; {count(self.launches, 'launch')}, "
            f"arenas of {size(self.arena_bytes)}\n"
            f"    kernels: {self.kernels}; {self.compiled} compiled in {ms(self.compile_ns)}, {self.loaded} loaded in "
            f"{ms(self.load_ns)}"
        )


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

    def stats(self, programs: Sequence[Program], **counts: int) -> Stats:
        """Return all counts, given those that the function keeps itself and the programs in its cache."""
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


def ms(nanoseconds: int) -> str:
    """Return a time in words."""
    return f"{nanoseconds / 1e6:.1f} ms"
