# SPDX-License-Identifier: BSD-3-Clause
"""Stats: the counts and times of one accelerated function as data, imported when somebody asks for them."""

from dataclasses import dataclass

from tracejit.util.text import count, ms, size


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
    compiled        kernels that had to be compiled for this function; others were compiled already
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
