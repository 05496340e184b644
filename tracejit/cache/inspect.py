# SPDX-License-Identifier: BSD-3-Clause
"""The cache folder, counted, listed, checked and emptied. Nothing in it is loaded or run here."""

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tracejit import config
from tracejit.cache.contents import (
    described,
    entry,
    heads,
    kernel_files,
    kernel_names,
    matching,
    meant,
    programs,
    reading,
    reason_of,
    store,
)
from tracejit.cache.program_text import UNREADABLE, ProgramText
from tracejit.errors import CacheError
from tracejit.store.entry import StoredKernel
from tracejit.store.folder import CacheFile, Folder, RefusedError, cannot_be_made
from tracejit.store.kernels import SUFFIX, root
from tracejit.store.programs import PROGRAM, USES, ProgramSummary
from tracejit.util.memory import collector_paused
from tracejit.util.text import count, differing_first, milliseconds, moment, size, table

SHOWN = 12  # characters of a key that are shown
_ROOM = 72  # characters for a signature
_HEADER = (
    "key", "function", "where", "signature", "target", "kernels", "size", "hits", "build ms", "compile ms", "used",
)  # fmt: skip
_NUMBERS = ("kernels", "size", "hits", "build ms", "compile ms")


@dataclass(frozen=True, slots=True)
class Info:
    """The cache folder as a whole; `problem` says why it is not used, None if it is used."""

    folder: str
    setting: str
    problem: str | None
    kernels: int
    kernel_bytes: int
    programs: int
    program_bytes: int
    limit_bytes: int

    def __repr__(self) -> str:
        reason = "TRACEJIT_CACHE=off" if self.setting == "off" else self.problem
        lines = [
            ("folder", self.folder),
            ("used", "yes" if reason is None else f"no: {reason}"),
            ("setting", self.setting),
            ("kernels", f"{self.kernels}, {size(self.kernel_bytes)} of {size(self.limit_bytes)}"),
            ("programs", f"{self.programs}, {size(self.program_bytes)}"),
        ]
        return "\n".join(f"{name:<10}{value}" for name, value in lines)


@dataclass(frozen=True, slots=True)
class Listed:
    """A program, as a line of the list.

    key             the hash of its description
    function        the name of the accelerated function
    file, line      the place of its definition
    signature       pairs of the name and the type of each argument; the first 128
    arguments       the number of arguments
    target          the target of the kernels
    kernels, launches   the number of different kernels, and of launches (a loop repeats some kernels)
    size_bytes      the size of its description and its kernels on disk; several programs may share a kernel
    arena_bytes     the size of its arena
    hits            the number of processes that used it, besides the first
    build_ns, compile_ns    the times that the first process took to build it and compile its kernels; None if unknown
    used_s          the time of the last use, in seconds since 1970
    """

    key: str
    function: str
    file: str | None
    line: int | None
    signature: tuple[tuple[str, str], ...]
    arguments: int
    target: str
    kernels: int
    launches: int
    size_bytes: int
    arena_bytes: int
    hits: int
    build_ns: int | None
    compile_ns: int | None
    used_s: float

    def arguments_text(self, order: Sequence[int]) -> str:
        """Return the arguments in words; of many, those that fit into the line, in the given order."""
        parts = self._arguments(range(len(self.signature)))
        if len(parts) < self.arguments:
            parts = self._arguments(order)
        more = self.arguments - len(parts)
        return ", ".join([*parts, *([f"{more} more"] if more else [])])

    def _arguments(self, order: Sequence[int]) -> list[str]:
        parts: list[str] = []
        room = _ROOM
        for name, text in [self.signature[i] for i in order]:
            part = f"{name}: {text}" if name else text
            room -= len(part) + 2
            if parts and room < 0:
                break
            parts.append(part)
        return parts

    def row(self, order: Sequence[int]) -> tuple[str, ...]:
        """Return a row of the table; `order` is the order of arguments if the line has no room for all."""
        where = "" if self.file is None else f"{os.path.basename(self.file)}:{self.line}"
        return (
            self.key[:SHOWN], self.function, where, self.arguments_text(order), self.target, str(self.kernels),
            size(self.size_bytes), str(self.hits), milliseconds(self.build_ns), milliseconds(self.compile_ns),
            moment(self.used_s),
        )  # fmt: skip


class Listing(tuple[Listed, ...]):
    """Programs; shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        groups: dict[Any, list[Listed]] = {}
        for program in self:
            groups.setdefault(_group(program), []).append(program)
        orders = {key: differing_first([p.signature for p in group]) for key, group in groups.items()}
        return table(_HEADER, [program.row(orders[_group(program)]) for program in self], _NUMBERS) or "()"


def _group(program: Listed) -> tuple[Any, ...]:
    """Return the properties shared by programs whose lines show the arguments that differ first."""
    return program.function, program.file, program.line, len(program.signature)


@dataclass(frozen=True, slots=True)
class Shown:
    """The description of a program, those of its kernels that are on disk, by name, and the keys of others.

    others      the programs of the same function, if it was asked for by the name of the function
    """

    key: str
    program: dict[str, Any]
    kernels: dict[str, StoredKernel]
    others: tuple[str, ...] = ()

    def __repr__(self) -> str:
        try:
            return "\n".join(ProgramText(self.key, self.program, self.kernels).all())
        except UNREADABLE:
            return f"{self.key}: a damaged description"


@dataclass(frozen=True, slots=True)
class Verified:
    """The numbers of sound kernels and programs, and the keys of the other entries with what is wrong."""

    kernels: int
    programs: int
    bad: list[tuple[str, str]]

    @property
    def good(self) -> int:
        """The number of sound entries."""
        return self.kernels + self.programs

    def __repr__(self) -> str:
        lines = [f"{name[:SHOWN]}  {reason}" for name, reason in self.bad]
        wrong = "1 entry is" if len(self.bad) == 1 else f"{len(self.bad)} entries are"
        good = f"{count(self.kernels, 'kernel')} and {count(self.programs, 'program')} are good"
        return "\n".join([*lines, f"{good}, {wrong} not" if self.bad else good])


@dataclass(frozen=True, slots=True)
class Removed:
    """The number of removed programs and kernels, and their size."""

    programs: int
    kernels: int
    bytes: int

    def __repr__(self) -> str:
        what = f"{count(self.programs, 'program')} and {count(self.kernels, 'kernel')}"
        return f"removed {what}, {size(self.bytes)}"


def info() -> Info:
    """Return the properties of the folder."""
    settings = config.settings
    kernels: list[CacheFile] = []
    kept: list[CacheFile] = []
    problem = None
    try:
        kernels, kept = store().entries(), programs().files()
    except RefusedError as refused:
        problem = str(refused)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
    if problem is None and settings.cache != "off":
        problem = cannot_be_made(root())
    return Info(
        root(), settings.cache, problem, len(kernels), sum(file.bytes for file in kernels), len(kept),
        sum(file.bytes for file in kept), settings.cache_mib << 20,
    )  # fmt: skip


def listing(
    pattern: str = "*", *, file: str | None = None, target: str | None = None, since_s: float | None = None,
    sort: str = "used", reverse: bool = False, limit: int | None = None,
) -> Listing:  # fmt: skip
    """Return programs, by default the last used first.

    Args:
        pattern: a pattern of the function's name, with ``*`` and ``?``, or the beginning of a key (4 digits or more).
        file: a pattern of the file that defines the function, with or without its folder.
        target: the target of the kernels, such as "cpu".
        since_s: only programs used since then, in seconds since 1970.
        sort: one of COLUMNS. Sizes, counts and times are sorted from the largest on, names alphabetically.
        reverse: reverse the order.
        limit: the largest number of programs.

    Raises:
        CacheError: if the folder cannot be read, or there is no such column.
    """
    if sort not in COLUMNS:
        raise CacheError(f"there is no column {sort!r} to sort by; the columns are {', '.join(COLUMNS)}")
    programs = []
    with collector_paused():  # nothing allocated here is garbage
        sizes = {kernel.name.removesuffix(SUFFIX): kernel.bytes for kernel in kernel_files()}
        for head in matching(pattern):
            with suppress(KeyError, TypeError, ValueError):  # a shared folder has what others wrote
                programs.append(_listed(head, sizes))
    programs = [
        program
        for program in programs
        if (file is None or _fits_file(program.file, file))
        and (target is None or program.target == target)
        and (since_s is None or program.used_s >= since_s)
    ]
    by, largest_first = COLUMNS[sort]
    programs.sort(key=by, reverse=largest_first != reverse)
    return Listing(programs[:limit])


# The columns that a list can be sorted by: the value to compare, and whether the largest comes first.
COLUMNS: dict[str, tuple[Callable[[Listed], Any], bool]] = {
    "key": (lambda program: program.key, False),
    "function": (lambda program: program.function, False),
    "where": (lambda program: (program.file or "", program.line or 0), False),
    "target": (lambda program: program.target, False),
    "kernels": (lambda program: program.kernels, True),
    "size": (lambda program: program.size_bytes, True),
    "hits": (lambda program: program.hits, True),
    "build": (lambda program: program.build_ns or 0, True),
    "compile": (lambda program: program.compile_ns or 0, True),
    "used": (lambda program: program.used_s, True),
}


def show(key: str) -> Shown:
    """Return the program whose key begins with `key`, or the one used last of the function of that name.

    Raises:
        CacheError: if there is none, several keys or functions match, or the folder cannot be read.
    """
    fits = meant(heads(), key)
    if not fits:
        raise CacheError(f"no program has the key or the function {key!r}; `tracejit cache list` shows all")
    program = described(fits[0].name)
    kernels: dict[str, StoredKernel] = {}
    for kernel in program.program["kernels"]:
        stored = entry(kernel["entry"])
        if isinstance(stored, StoredKernel):
            kernels[kernel["name"]] = stored
    return Shown(program.name, program.program, kernels, tuple([head.name for head in fits[1:]]))


def verify() -> Verified:
    """Check every kernel and program: who may write to it, its hash, and that it stands under its own key.

    Raises:
        CacheError: if the folder cannot be read.
    """
    kernels = {name: entry(name) for name in kernel_names()}
    bad = [(name, kernel) for name, kernel in kernels.items() if isinstance(kernel, str)]
    kept = len(reading(programs().files))
    bad_programs = reading(lambda: list(programs().bad()))
    bad += [(name, f"a program: {reason}") for name, reason in bad_programs]
    good = sum(isinstance(kernel, StoredKernel) for kernel in kernels.values())
    return Verified(good, kept - len(bad_programs), bad)


def remove(pattern: str) -> Removed:
    """Remove the programs whose function or key matches a pattern, and the kernels that only they use.

    Raises:
        CacheError: if the folder cannot be read, or a file cannot be removed.
    """
    doomed = matching(pattern)
    names = {program.name for program in doomed}
    used = {kernel for program in heads() if program.name not in names for kernel in program.head["kernels"]}
    return _remove(names, {kernel for program in doomed for kernel in program.head["kernels"]} - used)


def purge() -> Removed:
    """Remove all programs and kernels.

    Raises:
        CacheError: if the folder cannot be read, or a file cannot be removed.
    """
    kept = {file.name.removesuffix(PROGRAM) for file in reading(programs().files)}
    removed = _remove(kept, set(kernel_names()))
    for name in ("kernels", "programs"):
        folder = _folder(name)
        for file in reading(folder.files):  # left by processes that were killed
            if file.is_temporary or file.name.endswith(USES):
                with _removing():
                    folder.remove(file.name, must=True)
    return removed


def _remove(names: set[str], kernels: set[str]) -> Removed:
    folder = _folder("kernels")
    sizes = {file.name: file.bytes for file in kernel_files()}
    kept = programs()
    sizes |= {file.name: file.bytes for file in reading(kept.files)}
    with _removing():
        gone = [
            name + SUFFIX
            for name in kernels
            if name + SUFFIX in sizes and folder.remove(name + SUFFIX, must=True)
        ]
        programs_gone = [name + PROGRAM for name in names if kept.remove(name, must=True)]
    total = sum(sizes.get(name, 0) for name in (*gone, *programs_gone))
    return Removed(len(programs_gone), len(gone), total)


@contextmanager
def _removing() -> Iterator[None]:
    """Turn the error of a file that cannot be removed, as in a read-only folder, into a CacheError."""
    try:
        yield
    except (RefusedError, OSError) as error:
        raise CacheError(
            f"files of the cache in {root()} cannot be removed: {reason_of(error)}; some may have been"
        ) from error


def _folder(name: str) -> Folder:
    return Folder(root(), name, config.settings.cache == "shared")


def _fits_file(file: str | None, pattern: str) -> bool:
    return file is not None and any(
        fnmatch.fnmatchcase(name, pattern) for name in (file, os.path.basename(file))
    )


def _listed(each: ProgramSummary, sizes: Mapping[str, int]) -> Listed:
    head, first = each.head, each.first
    file, line = head["defined"] or (None, None)
    kernels = set(head["kernels"])
    return Listed(
        each.name, head["function"], file, line, tuple([(name, text) for name, text in head["signature"]]),
        head["arguments"], head["target"], len(head["kernels"]), head["row_count"],
        each.bytes + sum(sizes.get(kernel, 0) for kernel in kernels), head["arena_bytes"], max(0, each.uses - 1),
        first.get("build_ns"), first.get("compile_ns"), each.used_s,
    )  # fmt: skip
