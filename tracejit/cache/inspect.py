# SPDX-License-Identifier: BSD-3-Clause
"""What is in the cache folder: counted, listed, checked and removed. Nothing of it is loaded or run here."""

import fnmatch
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from tracejit import config
from tracejit.cache.entry import Entry, decode
from tracejit.cache.folder import File, Folder, RefusedError
from tracejit.cache.programs import PROGRAM, Head, Programs
from tracejit.cache.store import SUFFIX, Store, root
from tracejit.errors import CacheError
from tracejit.upkeep import collector_paused

MIB = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Info:
    """The cache folder as a whole; `problem` says why it is not used, None if it is."""

    folder: str
    setting: str
    problem: str | None
    kernels: int
    kernel_bytes: int
    programs: int
    program_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A program, as a line of the list.

    key             the hash of its description
    function        what was accelerated
    file, line      where that is defined
    signature       of the call: the name of each array or value, and what it is; the first twelve
    arguments       how many there are
    target          what the kernels are compiled for
    kernels         how many kernels it launches, and in how many launches (a loop repeats some)
    launches
    size_bytes      of its description and its kernels on disk; kernels may belong to other programs too
    arena_bytes     the memory that it works in
    hits            how often a process came to use it after the first one
    build_ns, compile_ns    what building it and compiling its kernels took the first one; None if that is not known
    used_s          when it was used last, in seconds since 1970
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


@dataclass(frozen=True, slots=True)
class Shown:
    """A program with its description, and its kernels that are on disk by name."""

    key: str
    program: dict[str, Any]
    kernels: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Verified:
    """How many entries are as they should be, and the others with what is wrong."""

    good: int
    bad: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed."""

    programs: int
    kernels: int
    bytes: int


def info() -> Info:
    """Return what the folder is and holds."""
    settings = config.settings
    kernels: list[File] = []
    programs: list[File] = []
    problem = None
    try:
        kernels, programs = _store().entries(), _programs().files()
    except RefusedError as refused:
        problem = str(refused)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
    return Info(
        root(), settings.cache, problem, len(kernels), sum(file.bytes for file in kernels), len(programs),
        sum(file.bytes for file in programs), settings.cache_mib * MIB,
    )  # fmt: skip


def listing(
    pattern: str = "*", *, file: str | None = None, target: str | None = None, since_s: float | None = None,
    sort: str = "used", reverse: bool = False, limit: int | None = None,
) -> list[Listed]:  # fmt: skip
    """Return programs, by default the one used last first.

    Args:
        pattern: of the function's name, with ``*`` and ``?``, or the beginning of a key.
        file: the same of the file that the function is defined in, with or without its folder.
        target: what the kernels are compiled for, such as "cpu".
        since_s: leaves out what was not used since then, in seconds since 1970.
        sort: one of COLUMNS. Sizes, counts and times are sorted from the largest on, names by the alphabet.
        reverse: the other way round.
        limit: how many at most.

    Raises:
        CacheError: if the folder cannot be read, or there is no such column.
    """
    if sort not in COLUMNS:
        raise CacheError(f"there is no column {sort!r} to sort by; there are {', '.join(COLUMNS)}")
    found = []
    with collector_paused():  # nothing here is garbage
        sizes = {each.name.removesuffix(SUFFIX): each.bytes for each in _kernel_files()}
        for head in _matching(pattern):
            with suppress(KeyError, TypeError, ValueError):  # a shared folder has what others wrote
                found.append(_listed(head, sizes))
    found = [
        each
        for each in found
        if (file is None or _fits_file(each.file, file))
        and (target is None or each.target == target)
        and (since_s is None or each.used_s >= since_s)
    ]
    by, largest_first = COLUMNS[sort]
    found.sort(key=by, reverse=largest_first != reverse)
    return found[:limit]


COLUMNS: dict[
    str, tuple[Callable[[Listed], Any], bool]
] = {  # what a list is sorted by, and whether downwards
    "key": (lambda each: each.key, False),
    "function": (lambda each: each.function, False),
    "where": (lambda each: (each.file or "", each.line or 0), False),
    "target": (lambda each: each.target, False),
    "kernels": (lambda each: each.kernels, True),
    "size": (lambda each: each.size_bytes, True),
    "hits": (lambda each: each.hits, True),
    "build": (lambda each: each.build_ns or 0, True),
    "compile": (lambda each: each.compile_ns or 0, True),
    "used": (lambda each: each.used_s, True),
}


def show(key: str) -> Shown:
    """Return the program of a key, of the beginning of one, or of a function's name.

    Raises:
        CacheError: if there is none or there are several, or the folder cannot be read.
    """
    name = one(key)
    program = _programs().read(name)
    if program is None:
        raise CacheError(f"the description of the program {name[:12]} cannot be read")
    kernels: dict[str, Entry] = {}
    for kernel in program.program["kernels"]:
        entry = _entry(kernel["entry"])
        if isinstance(entry, Entry):
            kernels[kernel["name"]] = entry
    return Shown(program.name, program.program, kernels)


def one(key: str) -> str:
    """Return the whole key of the one program that has a key, the beginning of one, or a function's name.

    Raises:
        CacheError: if there is none or there are several, or the folder cannot be read.
    """
    heads = _heads()
    found = [each for each in heads if key and each.name.startswith(key)] or _fitting(heads, key)
    if not found:
        raise CacheError(f"no program has the key or the function {key!r}; `tracejit cache list` shows all")
    if len(found) > 1:
        keys = ", ".join(each.name[:12] for each in found[:5])
        raise CacheError(
            f"{len(found)} programs fit {key!r}: {keys}{', ...' if len(found) > 5 else ''}; name one by its key"
        )
    return found[0].name


def verify() -> Verified:
    """Check every entry: who may write to it, its hash, and that it stands under its own key.

    Raises:
        CacheError: if the folder cannot be read.
    """
    good, bad = 0, []
    for name in _kernel_names():
        entry = _entry(name)
        if isinstance(entry, Entry):
            good += 1
        elif entry is not None:
            bad.append((name, entry))
    return Verified(good, bad)


def remove(pattern: str) -> Removed:
    """Remove the programs whose function or key fits a pattern, and the kernels that no other program uses.

    Raises:
        CacheError: if the folder cannot be read.
    """
    doomed = _matching(pattern)
    names = {each.name for each in doomed}
    left = {entry for each in _heads() if each.name not in names for entry in each.head["kernels"]}
    return _remove(names, {entry for each in doomed for entry in each.head["kernels"]} - left)


def purge() -> Removed:
    """Remove all programs and kernels.

    Raises:
        CacheError: if the folder cannot be read.
    """
    programs = {file.name.removesuffix(PROGRAM) for file in _read(_programs().files)}
    return _remove(programs, set(_kernel_names()))


def _remove(programs: set[str], kernels: set[str]) -> Removed:
    folder = Folder(root(), "kernels", config.settings.cache == "shared")
    sizes = {file.name: file.bytes for file in _store().entries()}
    gone = [name + SUFFIX for name in kernels if name + SUFFIX in sizes and folder.remove(name + SUFFIX)]
    kept = _programs()
    return Removed(sum(kept.remove(name) for name in programs), len(gone), sum(sizes[name] for name in gone))


def _store() -> Store:
    return Store(root(), config.settings.cache_mib * MIB, config.settings.cache == "shared")


def _programs() -> Programs:
    return Programs(root(), config.settings.cache == "shared")


def _heads() -> list[Head]:
    return _read(_programs().heads)


def _kernel_files() -> list[File]:
    return _read(_store().entries)


def _kernel_names() -> list[str]:
    return sorted(file.name.removesuffix(SUFFIX) for file in _kernel_files())


def _read(what: Callable[[], T]) -> T:
    try:
        return what()
    except (RefusedError, OSError) as error:
        raise CacheError(_unusable(error)) from error


def _unusable(error: Exception) -> str:
    return f"the cache in {root()} cannot be used: {error}"


def _matching(pattern: str) -> list[Head]:
    return _fitting(_heads(), pattern)


def _fitting(heads: Sequence[Head], pattern: str) -> list[Head]:
    fits = re.compile(fnmatch.translate(pattern)).match
    return [
        each
        for each in heads
        if fits(str(each.head["function"])) or (pattern and each.name.startswith(pattern))
    ]


def _fits_file(file: str | None, pattern: str) -> bool:
    return file is not None and any(
        fnmatch.fnmatchcase(name, pattern) for name in (file, os.path.basename(file))
    )


def _entry(name: str) -> Entry | str | None:
    """Return an entry, what is wrong with it, or None if there is none."""
    folder = Folder(root(), "kernels", config.settings.cache == "shared")
    try:
        content = folder.read(name + SUFFIX, use=False)
        return None if content is None else decode(content, name)
    except (CacheError, RefusedError) as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"


def _listed(each: Head, sizes: Mapping[str, int]) -> Listed:
    head, first = each.head, each.first
    file, line = head["defined"] or (None, None)
    kernels = set(head["kernels"])
    return Listed(
        each.name, head["function"], file, line, tuple([(name, text) for name, text in head["signature"]]),
        head["arguments"], head["target"], len(head["kernels"]), head["row_count"],
        each.bytes + sum(sizes.get(kernel, 0) for kernel in kernels), head["arena_bytes"], max(0, each.uses - 1),
        first.get("build_ns"), first.get("compile_ns"), each.used_s,
    )  # fmt: skip
