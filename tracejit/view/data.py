# SPDX-License-Identifier: BSD-3-Clause
"""What the page shows, as data: the script of the page reads it as JSON.

Numbers of ops, launches, kernels and files count from 0 and are places in the lists here. Lines of the user's files
count from 1, as editors do, and lines of emitted source from 0, as lists do.
"""

from typing import TypedDict

Place = tuple[int, int] | None  # (number of a file, its line)


class Op(TypedDict):
    """One op of the graph, or an argument or a constant of it, which come before all that use them.

    kind        "op", "argument" or "constant"
    result      shape and dtype
    detail      parameters
    inputs      ops whose results it uses
    launch      the launch that computes it, None if it needs none
    output      what of the function's result it is, "" if nothing
    """

    kind: str
    name: str
    result: str
    detail: str
    inputs: list[int]
    place: Place
    launch: int | None
    output: str


class Launch(TypedDict):
    """One launch of a kernel; its parts, which may run at the same time, count as one.

    note                    the names of its ops
    line                    of the emitted source, on which it is launched
    bytes, flops            that it has to move and to compute at least; None: not known
    ns, least_ns, bound     measured alone, what the machine needs at least, and for what; None: not measured
    apart                   others that make what it reads or read what it makes: the launch, the value, and why they
                            are not one
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


class Kernel(TypedDict):
    """A kernel, and where its text begins in the emitted source."""

    name: str
    line: int


class Held(TypedDict):
    """A value in the arena, from the launch that writes it to the last one that reads it."""

    what: str
    op: int | None
    offset: int
    bytes: int
    first: int
    last: int


class Arena(TypedDict):
    """The arena; `missing` says why there are no values if it holds some."""

    bytes: int
    values: list[Held]
    missing: str


class GuardLine(TypedDict):
    """A guard in words, and the line that it comes from."""

    text: str
    place: Place


class Program(TypedDict):
    """One program.

    signature   its arguments in words
    emitted     lines of the emitted source
    links       lists of a line of the emitted source and the ops that it computes
    repeats     runs of launches: the first, how many repeat together, and how many times
    guards      None where there is no running function
    timing      how the launches were measured, or why they were not, sentence by sentence
    is_timed    whether they were
    kept        how much of the program is here, in words; "" for all of it
    facts       pairs of a name and a value
    """

    title: str
    signature: list[str]
    ops: list[Op]
    launches: list[Launch]
    kernels: list[Kernel]
    emitted: list[str]
    links: list[list[int]]
    repeats: list[tuple[int, int, int]]
    arena: Arena
    timing: list[str]
    is_timed: bool
    kept: str
    guards: list[GuardLine] | None
    facts: list[tuple[str, str]]


class File(TypedDict):
    """Parts of one of the user's files: pairs of the first line's number and the lines; else why there are none."""

    name: str
    chunks: list[tuple[int, list[str]]]
    missing: str


class KeyLine(TypedDict):
    """What is known of one signature of the function's arguments."""

    arguments: str
    calls: int
    traces: int
    confirmations: int
    audits: int
    replaced: int
    state: str


class Event(TypedDict):
    """A call that was not replayed."""

    call: int
    outcome: str
    why: str


class Page(TypedDict):
    """Everything that the page shows; `keys` is None where there is no running function."""

    title: str
    notes: list[str]
    programs: list[Program]
    files: list[File]
    keys: list[KeyLine] | None
    last: str
    history: list[Event]
    facts: list[tuple[str, str]]
