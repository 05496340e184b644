# SPDX-License-Identifier: BSD-3-Clause
"""Emission of the search for the first places of numbers in rows, by groups of threads, for a device.

Each row has several groups. The threads of all of them take its elements in turn, so that neighbours read neighbouring
memory, and each thread stops at its first hit. The least of the places of a group goes into memory; one more launch
finds the least of a row's groups (passes/loops/device_launches.py). So the result is the first place, whatever the
order in which groups run.
"""

from tracejit.codegen.device.text import emitted
from tracejit.codegen.nest import Emitted
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.spread import BLOCK, MOST_TURNS
from tracejit.program import Grid

_TEXT = f"""
team = group()
while team < teams:
    row = remainder(team, rows)
    piece = quotient(team, rows)
    wanted = best[row]
    place = i64(n)
    k = index(piece * {GROUP} + lane())
    while k < n:
        value = x[row * n + k]
        is_hit = value == wanted or value != value
        place = i64(k) if is_hit else place
        k = n if is_hit else index(k + apart)
    step = index({GROUP // 2})
    while step > 0:
        other = across_i64(place, step)
        place = other if other < place else place
        step = index(step >> 1)
    if lane() == 0:
        found[team] = place if place < n else i64(missing)
    team = index(team + groups())
"""


def emit_first_places(launch: KernelLaunch) -> tuple[Emitted, Grid]:
    """Return the kernel that finds the first places of the groups of each row, its arguments, and its threads."""
    rows, n, pieces = launch.numbers
    x, best, found = launch.pointers
    teams = rows * pieces
    numbers = {
        "rows": rows,
        "n": n,
        "apart": pieces * GROUP,
        "teams": teams,
        "missing": 0 if pieces == 1 else n,
    }
    kernel = emitted("first_places", _TEXT, x.dtype, numbers, {"x": x, "best": best}, {"found": found})
    return kernel, Grid(min(-(-teams * GROUP // BLOCK), MOST_TURNS), BLOCK)
