# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: the time of each launch of a program, run one launch after the other.

Note [profiles]
A replay runs all rows in one call, without reading the clock. Here each launch is a call of the executor, on separate
memory and synthetic inputs: no array of the user is read or written, and no result is filled again. Launches run in
order, so that each finds the CPU caches as the launch before left them. The time of a call without a launch is
subtracted, and of several replays the fastest counts, launch by launch. Launches of a section, which threads run
together, are measured together; each gets a share of that time in proportion to its time when it runs alone. Launches
in a loop are measured in its first step, and count with that time in each step.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.ops import Layout
from tracejit.program import Program
from tracejit.util.named_tuples import NamedTuple

_LEAST, _MOST = 3, 200  # replays
_EMPTY = 10  # calls without a launch in each replay
_LIMIT_NS = 300_000_000  # no replay starts later


class Steps(Protocol):
    """A function that runs some rows of a program, given the first, their number, and whether on several threads."""

    status: int

    def __call__(self, first: int, count: int, together: bool = True, /) -> int: ...


class Profile(NamedTuple):
    """The times of launches.

    launch_ns   of each launch alone, or its share of the time of its section
    replay_ns   of a whole replay
    replays     the number of replays that were measured; the fastest counts
    """

    launch_ns: list[float]
    replay_ns: float
    replays: int


def profile(
    program: Program,
    steps: Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], Steps],
    layouts: Sequence[Layout | None] = (),
) -> Profile:
    """Measure the launches of a program.

    Args:
        program: the program.
        steps: returns, for inputs and outputs, a function that runs some of its rows.
        layouts: of the inputs, None or absent for contiguous ones.

    Raises:
        CodegenError: if the executor does not take the inputs.
    """
    outputs = program.new_outputs()
    if program.checked:
        outputs = (*outputs, np.zeros((), np.int64))
    run = steps(synthetic_inputs(program.inputs, layouts), outputs)
    if run.status:
        raise CodegenError(
            f"a program does not take the synthetic input {run.status} that it is profiled with"
        )
    sections = list(_sections(program))
    long = [range(first, first + count) for first, count in sections if program.rows[first].length > 1]
    clock = time.perf_counter_ns

    def timed(first: int, count: int, together: bool = True) -> int:
        started = clock()
        run(first, count, together)
        return clock() - started

    rows = len(program.rows)
    timed(0, rows)  # touches the memory and the kernels for the first time
    section_ns = [float("inf")] * len(sections)
    row_ns = dict.fromkeys([number for numbers in long for number in numbers], float("inf"))
    whole = empty = float("inf")
    ends = clock() + _LIMIT_NS
    replays = 0
    while replays < _LEAST or (replays < _MOST and clock() < ends):
        section_ns = [min(ns, timed(*section)) for ns, section in zip(section_ns, sections, strict=True)]
        row_ns = {number: min(ns, timed(number, 1, False)) for number, ns in row_ns.items()}
        whole = min(whole, timed(0, rows))
        empty = min(empty, *[timed(0, 0) for _ in range(_EMPTY)])
        replays += 1
    launch_ns = [0.0] * program.launches
    launch_of_row = program.launch_of_row
    repeats = program.repeats
    for (first, count), ns in zip(sections, section_ns, strict=True):
        numbers = range(first, first + count)
        times = 1 if count == rows else repeats[first]  # all rows are run as the program runs them
        shares = [max(row_ns[number] - empty, 1.0) if number in row_ns else 1.0 for number in numbers]
        for number, share in zip(numbers, shares, strict=True):
            launch_ns[launch_of_row[number]] += times * max(ns - empty, 0.0) * share / sum(shares)
    return Profile(launch_ns, max(whole - empty, 0.0), replays)


def _sections(program: Program) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each section."""
    first = 0
    while first < len(program.rows):
        count = program.rows[first].parts * program.rows[first].length
        yield first, count
        first += count


def synthetic_inputs(avals: Sequence[Aval], layouts: Sequence[Layout | None] = ()) -> tuple[np.ndarray, ...]:
    """Return arrays for the inputs of a program: floating-point numbers between 0.5 and 1, zeros of other dtypes.

    Zero is a valid index of every axis that has elements. The floating-point numbers neither overflow nor soon become
    denormal.
    """
    rng = np.random.default_rng(0)
    return tuple([_array(aval, layout, rng) for aval, layout in zip_longest(avals, layouts)])


def _array(aval: Aval, layout: Layout | None, rng: Any) -> np.ndarray:
    if aval.dtype.kind == "f":
        values = np.asarray(rng.uniform(0.5, 1.0, aval.shape), aval.dtype)
    else:
        values = np.zeros(aval.shape, aval.dtype)
    if layout is None:
        return values
    reach = [(extent - 1) * stride for extent, stride in zip(layout.shape, layout.strides, strict=True)]
    first = -sum(min(step, 0) for step in reach)
    elements = np.ones(first + sum(max(step, 0) for step in reach) + 1, aval.dtype)
    strides = [stride * aval.dtype.itemsize for stride in layout.strides]
    strided = np.lib.stride_tricks.as_strided(elements[first:], aval.shape, strides)
    strided[...] = values
    return strided
