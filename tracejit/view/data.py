# SPDX-License-Identifier: BSD-3-Clause
"""The data that a page shows; the script of the page reads them as JSON.

Numbers of ops, launches, kernels and files are indices into the lists here. Lines of the user's files are counted from
1, as editors do, and lines of emitted source from 0.
"""

from typing import TypedDict

Place = tuple[int, int] | None  # (number of a file, its line)


class PageOp(TypedDict):
    """An op of the graph, or an argument or constant of it, which come before the ops that use them.

    kind        "op", "argument" or "constant"
    result      shape and dtype
    detail      parameters
    inputs      the ops whose results it uses
    launch      the launch that computes it, None if no launch does
    output      the name of the result that it is, "" if it is none
    """

    kind: str
    name: str
    result: str
    detail: str
    inputs: list[int]
    place: Place
    launch: int | None
    output: str


class PageLaunch(TypedDict):
    """A launch of a kernel; its parts, which may run at the same time, count as one.

    note                    the names of its ops
    line                    of the emitted source that launches it
    bytes, flops            the least that it moves and computes; None if that is not known
    ns, least_ns, bound     its time alone, the least time on this machine, and what limits it; None if not measured
    threads                 of a device, and the launches that they wait for, in words; "" on the CPU
    apart                   launches that it exchanges a value with: the launch, the value, and why they are not one
    """

    kernel: int
    note: str
    parts: int
    line: int
    bytes: int | None
    flops: int | None
    ns: float | None
    least_ns: float | None
    bound: str
    apart: list[tuple[int, str, str]]
    threads: str


class PageKernel(TypedDict):
    """A kernel, and the line of the emitted source where it begins."""

    name: str
    line: int


class PageValue(TypedDict):
    """A value in the arena, from the launch that writes it to the last one that reads it."""

    what: str
    op: int | None
    offset: int
    bytes: int
    first: int
    last: int


class PageArena(TypedDict):
    """The arena; `missing` says which values are not listed."""

    bytes: int
    values: list[PageValue]
    missing: str


class PageGuard(TypedDict):
    """A guard in words, and its line."""

    text: str
    place: Place


class PageProgram(TypedDict):
    """A program.

    signature   its arguments in words
    emitted     lines of the emitted source
    links       lists of a line of the emitted source and the ops that it computes
    repeats     repeated runs of launches: the first launch, the length of the run, and the number of repetitions
    guards      None if the function does not run in this process
    timing      how the launches were measured, or why they were not, sentence by sentence
    is_timed    whether they were measured
    kept        the part of the program that is described, in words; "" for all of it
    facts       pairs of a name and a value
    """

    title: str
    signature: list[str]
    ops: list[PageOp]
    launches: list[PageLaunch]
    kernels: list[PageKernel]
    emitted: list[str]
    links: list[list[int]]
    repeats: list[tuple[int, int, int]]
    arena: PageArena
    timing: list[str]
    is_timed: bool
    kept: str
    guards: list[PageGuard] | None
    facts: list[tuple[str, str]]


class PageFile(TypedDict):
    """Parts of a file of the user: pairs of the first line's number and the lines; or why there are none."""

    name: str
    chunks: list[tuple[int, list[str]]]
    missing: str


class PageKey(TypedDict):
    """A key of the function, and what became of its calls."""

    arguments: str
    calls: int
    traces: int
    confirmations: int
    audits: int
    replaced: int
    state: str


class PageEvent(TypedDict):
    """A call that was not replayed."""

    call: int
    outcome: str
    why: str


class Page(TypedDict):
    """The whole page; `keys` is None if the function does not run in this process."""

    title: str
    notes: list[str]
    programs: list[PageProgram]
    files: list[PageFile]
    keys: list[PageKey] | None
    last: str
    history: list[PageEvent]
    facts: list[tuple[str, str]]
