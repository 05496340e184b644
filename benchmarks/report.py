# SPDX-License-Identifier: BSD-3-Clause
"""Measured rows as tables, and as JSON."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from math import exp, isnan, log
from pathlib import Path
from typing import Any

from benchmarks.cost import Rates, roofline_us
from benchmarks.run import OURS, Measured, Row, Settings

PEERS = ("jax", "torch", "torch compile")
WRONG = "wrong"
Versions = dict[str, dict[str, str]]  # of each library: its packages and its Python


def text(rows: Sequence[Row], rates: Rates, settings: Settings, versions: Versions) -> str:
    """Return the tables that are printed."""
    parts = [
        table(
            ["workload", OURS, "min", *PEERS, "ratio", "of min", "roofline", "over it", "target"],
            [_times(row, rates) for row in rows],
        ),
        "Microseconds for one step, median and minimum of parts of 10 ms or one step. ratio: the fastest peer's "
        "median over ours; of min: the same of the minima. roofline: what the step's floating-point operations or "
        "its bytes, whichever takes longer, need at the rates of a large product and a large copy. The fastest "
        "variant of a peer stands in its column; wrong: its results are not NumPy's, so it has no time.",
    ]
    for which, label in (("median_us", "medians"), ("min_us", "minima")):
        mean = geometric_mean(rows, which)
        if mean is not None:
            parts.append(f"geometric mean of the ratios over training steps, of {label}: {mean:.2f}")
    parts += [
        table(
            [
                "workload",
                *(f"{name} s" for name in (OURS, *PEERS)),
                *(f"{name} MB" for name in (OURS, *PEERS)),
            ],
            [_first_calls(row) for row in rows],
        ),
        "s: start of the first call until one step has run compiled. MB: peak memory of the process, the library and "
        "for tracejit the compiler included.",
    ]
    notes = [
        f"{row.workload.name}, {name}: {found.note}"
        for row in rows
        for name, found in row.runs.items()
        if found.note
    ]
    parts += [" ".join(note.split())[:300] for note in notes]
    flops = ", ".join(f"{rate / 1e9:.0f} GFLOP/s {dtype}" for dtype, rate in rates.flops_per_s.items())
    parts.append(f"rates: {flops}, copy {rates.bytes_per_s / 1e9:.1f} GB/s; {settings.threads} threads")
    parts.append("\n".join(installed(library, found) for library, found in versions.items()))
    parts.append("  ".join(f"{key} {value}" for key, value in environment().items()))
    return "\n\n".join(parts)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns, the first to the left."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )


def geometric_mean(rows: Sequence[Row], which: str) -> float | None:
    """Return the geometric mean of the ratios over training steps, or None without peers."""
    ratios = [row.ratio(which) for row in rows if row.workload.kind == "train"]
    logs = [log(ratio) for ratio in ratios if ratio is not None]
    return exp(sum(logs) / len(logs)) if logs else None


def installed(library: str, versions: dict[str, str]) -> str:
    """Return what a library was run with.

    >>> installed("jax", {"Python": "3.13.0", "jax": "0.12.0", "numpy": "2.5.0"})
    'jax 0.12.0, Python 3.13.0, numpy 2.5.0'
    >>> installed("torch", {"error": "not installed: No package metadata was found for torch"})
    'torch: not installed: No package metadata was found for torch'
    """
    if "error" in versions:
        return f"{library}: {versions['error']}"
    others = [f"{name} {version}" for name, version in versions.items() if name != library]
    return ", ".join([f"{library} {versions[library]}", *others])


def environment() -> dict[str, str]:
    """Return what the machine is called, and how busy it was in the last minute."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": names[0].partition(": ")[2] if names else platform.processor(),
        "processors": str(len(names)),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def as_json(rows: Sequence[Row], rates: Rates, settings: Settings, versions: Versions) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "versions": versions,
        "environment": environment(),
        "settings": asdict(settings),
        "rates": asdict(rates),
        "geometric_mean": {which: geometric_mean(rows, which) for which in ("median_us", "min_us")},
        "rows": [
            {
                "name": row.workload.name,
                "title": row.workload.title,
                "kind": row.workload.kind,
                "target_us": row.workload.target_us,
                "roofline_us": roofline_us(row.cost, rates),
                "ratio": row.ratio(),
                "ratio_of_min": row.ratio("min_us"),
                "cost": asdict(row.cost),
                "runs": {
                    name: asdict(found) | {"median_us": found.median_us, "min_us": found.min_us}
                    for name, found in row.runs.items()
                    if found.parts_us
                },
                "wrong": [name for name, found in row.runs.items() if found.is_wrong],
                "notes": {name: found.note for name, found in row.runs.items() if found.note},
            }
            for row in rows
        ],
    }


def _of(row: Row, peer: str) -> Measured | None:
    """Return the fastest variant of a peer, or None if none ran."""
    variants = [found for name, found in row.runs.items() if found.parts_us and is_variant(name, peer)]
    return min(variants, key=lambda found: found.median_us, default=None)


def without_time(row: Row, peer: str) -> str:
    """Return what stands in the column of a peer without a time."""
    return WRONG if any(found.is_wrong for name, found in row.runs.items() if is_variant(name, peer)) else "-"


def is_variant(name: str, peer: str) -> bool:
    """Return whether a way to run a workload belongs into the column of a peer."""
    return name == peer or (peer == "jax" and name.startswith("jax "))


def _times(row: Row, rates: Rates) -> list[str]:
    ours = row.runs[OURS]
    peers = [_of(row, peer) for peer in PEERS]
    at_least = roofline_us(row.cost, rates)
    target = row.workload.target_us
    once = row.workload.kind == "sizes"  # the graph of one step says nothing of a new size
    return [
        row.workload.title,
        _number(ours.median_us),
        _number(ours.min_us),
        *(
            _number(found.median_us) if found else without_time(row, peer)
            for peer, found in zip(PEERS, peers, strict=True)
        ),
        _number(row.ratio()),
        _number(row.ratio("min_us")),
        "-" if once else _number(at_least),
        "-" if once else _number(ours.min_us / at_least),
        "-" if target is None else f"{'<' if ours.min_us <= target else '>'} {target:g}",
    ]


def _first_calls(row: Row) -> list[str]:
    runs = [_of(row, name) for name in (OURS, *PEERS)]
    seconds = [f"{found.first_s:.2f}" if found else "-" for found in runs]
    return [
        row.workload.title,
        *seconds,
        *(f"{found.memory_bytes / 1e6:.0f}" if found else "-" for found in runs),
    ]


def _number(value: float | None) -> str:
    if value is None or isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
