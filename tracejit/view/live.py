# SPDX-License-Identifier: BSD-3-Clause
"""The page of a function that runs in this process: its traces and their programs, with measured times."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.call.explain import describe, leaf_names
from tracejit.call.signature import ArrayPart, Key, NumberPart
from tracejit.describe.profile import Profile
from tracejit.describe.roofline import Rates
from tracejit.traces.replay import Replay
from tracejit.traces.report import Explanation, KeyReport
from tracejit.traces.trace import Trace
from tracejit.traces.variants import Variants
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import size
from tracejit.view import data
from tracejit.view.about import about
from tracejit.view.program import Built, Input, LaunchedRow, Measured, program
from tracejit.view.sources import Sources

_MOST_PROGRAMS = 12  # that a page shows
_OUTCOMES = {
    "recorded": "a new trace",
    "unsettled": "no trace yet",
    "alone": "no trace",
    "needed": "no trace",
    "moved": "no trace",
    "raised": "an error",
    "forbidden": "not allowed",
    "refused": "runs uncompiled",
}


class Running(NamedTuple):
    """The state of an accelerated function that a page shows.

    variants    of each key, the most recently used key first
    latest      the most recently used trace
    history     calls that were not replayed, oldest first: the number of the call, its outcome, and an explanation
    facts       pairs of a name and a value
    """

    name: str
    function: Callable[..., Any]
    variants: Sequence[Variants]
    latest: Trace | None
    explanation: Explanation
    history: list[tuple[int, str, str]]
    facts: list[tuple[str, str]]


def page(running: Running) -> data.Page:
    """Return the page of a function; programs that have run are measured."""
    sources = Sources()
    traces = [(variants, trace) for variants in running.variants for trace in variants.traces]
    traces.sort(key=lambda pair: pair[1] is not running.latest)
    replays = [(variants, trace, replay) for variants, trace in traces for replay in trace.replays()]
    replays.sort(key=lambda row: row[2].launch is None)  # programs that have not run yet come last
    programs = [
        _program(running, variants, trace, replay, sources)
        for variants, trace, replay in replays[:_MOST_PROGRAMS]
    ]
    notes = []
    if not programs:
        notes.append(f"{running.name} has no trace to show. The table of traces below says what happened.")
    if len(replays) > _MOST_PROGRAMS:
        notes.append(f"{len(replays) - _MOST_PROGRAMS} more programs are left out.")
    return {
        "title": running.name,
        "notes": notes,
        "programs": programs,
        "files": sources.files(),
        "keys": [_key(report) for report in running.explanation.keys],
        "last": running.explanation.partition("\n")[0],
        "history": [_event(running.name, *event) for event in running.history],
        "facts": [*running.facts, *about()],
    }


def measured(
    profile: Profile | None, rates: Rates | None, in_parts: bool, on_device: bool = False
) -> Measured:
    """Return the times of launches and how they were measured, in words, which mention parts if there are some."""
    if profile is None or rates is None:
        return Measured((), None, ["Not measured: the program has not run compiled in this process."])
    alone = sum(profile.launch_ns)
    products = ", ".join(f"{rate / 1e9:.0f} Gflop/s in {dtype}" for dtype, rate in rates.flops_per_s.items())
    copies = ", ".join(f"{rate / 1e9:.0f} GB/s for {size(moved)}" for moved, rate in rates.copies)
    together = "Launches of a section, which threads run together, share its time. " if in_parts else ""
    return Measured(
        profile.launch_ns,
        rates,
        [
            "Width: the time of a launch that runs alone, on synthetic numbers. Filled part: the roofline, the least "
            "time on this machine to move the bytes or to compute, whichever takes longer.",
            f"{together}The fastest of {profile.replays} replays counts; the launches add up to {alone / 1e3:.1f} µs, "
            f"one call takes {profile.replay_ns / 1e3:.1f} µs.",
            f"The device: copies, as measured now, {copies}; arithmetic without tensor cores {products}."
            if on_device
            else f"The machine, measured now with NumPy: copies {copies}; matrix products {products}, or the rate of "
            "the best launch here if that is higher.",
        ],
    )


def _event(name: str, call: int, outcome: str, text: str) -> data.PageEvent:
    why = text.removeprefix(f"{name}: ").removeprefix("miss. ")
    return {"call": call, "outcome": _OUTCOMES.get(outcome, outcome), "why": why}


def _program(
    running: Running, variants: Variants, trace: Trace, replay: Replay, sources: Sources
) -> data.PageProgram:
    compiled = replay.program
    profile = replay.profile()
    in_parts = any(row.parts > 1 for row in compiled.rows)
    on_device = replay.capability is not None
    times = measured(profile, replay.rates() if profile else None, in_parts, on_device)
    guards: list[data.PageGuard] = [
        {"text": str(guard), "place": sources.place(guard.where)}
        for guard in (*trace.guards, *trace.state.guards())
    ]
    described = describe(running.function, variants.key, [variants.key for variants in running.variants])
    number = f", trace {variants.traces.index(trace) + 1}" if len(variants.traces) > 1 else ""
    part = "" if replay is trace.replay else ", " + replay.title.rpartition(", ")[2]  # forward or adjoint
    inputs = _inputs(running.function, variants.key, trace, replay)
    built = Built(
        f"{described}{number}{part}",
        inputs,
        [
            "whether the guards hold" if number == compiled.guard else f"result {number + 1}"
            for number in range(len(compiled.outputs))
        ],
        [f"{_shape(constant)} {constant.dtype}" for constant in compiled.constants],
        [
            LaunchedRow(row.kernel.name, row.note, row.part, row.parts, place, threads)
            for row, place, threads in zip(compiled.rows, compiled.places, compiled.threads, strict=True)
        ],
        replay.source().splitlines(),
        replay.describe(),
        compiled.arena_bytes,
        [
            ("arguments", described),
            ("results", ", ".join(str(aval) for aval in compiled.outputs) or "none"),
            *([("writes", _named(inputs, compiled.written))] if compiled.written else []),
            ("constants", _constants(compiled.constants)),
            ("built in", f"{replay.build_ns / 1e6:.1f} ms"),
            ("target", replay.target),
        ],
    )
    return program(built, sources.place, times, guards)


def _named(inputs: Sequence[Input], numbers: Sequence[int]) -> str:
    return ", ".join([inputs[number].name or f"input {number + 1}" for number in numbers])


def _constants(arrays: Sequence[np.ndarray]) -> str:
    return f"{len(arrays)}, {size(sum(array.nbytes for array in arrays))}" if arrays else "none"


def _shape(array: np.ndarray) -> str:
    return "x".join(map(str, array.shape)) or "scalar"


def _inputs(function: Callable[..., Any], key: Key, trace: Trace, replay: Replay) -> list[Input]:
    """Return the inputs of a program; only those of a whole trace have names of arguments."""
    inputs = replay.program.inputs
    if replay is not trace.replay:
        return [Input("", str(aval)) for aval in inputs]
    names = leaf_names(function, key.structure)
    named = [
        Input(name, str(part))
        for name, part in zip(names, key.parts, strict=True)
        if isinstance(part, ArrayPart | NumberPart)
    ]
    read = [
        Input(str(name), str(aval))
        for name, aval in zip(trace.state.names, inputs[len(named) :], strict=False)
    ]
    rest = inputs[len(named) + len(read) :]
    return [*named, *read, *[Input("", str(aval)) for aval in rest]]


def _key(report: KeyReport) -> data.PageKey:
    return {
        "arguments": report.arguments,
        "calls": report.calls,
        "traces": len(report.variants),
        "confirmations": report.confirmations,
        "audits": report.audits,
        "replaced": report.replaced,
        "state": report.state,
    }
