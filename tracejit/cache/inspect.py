# SPDX-License-Identifier: BSD-3-Clause
"""What is in the cache folder: counted, listed, checked and removed. Nothing of it is loaded or run here."""

import fnmatch
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracejit import config
from tracejit.cache.entry import Entry, decode
from tracejit.cache.folder import File, Folder, RefusedError
from tracejit.cache.programs import Described, Programs
from tracejit.cache.store import SUFFIX, Store, root
from tracejit.errors import CacheError

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Info:
    """The cache folder as a whole; `problem` says why it is not used, None if it is."""

    folder: str
    setting: str
    problem: str | None
    kernels: int
    kernel_bytes: int
    programs: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A program, as a line of the list; times are those of its first use and None if they were not written down."""

    key: str
    function: str
    where: str
    inputs: list[str]
    kernels: int
    rows: int
    arena_bytes: int
    uses: int
    build_ns: int | None
    compile_ns: int | None
    last_use_s: float | None


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
    programs: list[Described] = []
    problem = None
    try:
        kernels, programs = _store().entries(), _programs().all()
    except RefusedError as refused:
        problem = str(refused)
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
    return Info(
        root(), settings.cache, problem, len(kernels), sum(file.bytes for file in kernels), len(programs),
        settings.cache_mib * MIB,
    )  # fmt: skip


def listing(pattern: str = "*") -> list[Listed]:
    """Return the programs whose function or key fits a pattern, the one used last first.

    Raises:
        CacheError: if the folder cannot be read.
    """
    return [_listed(each) for each in _matching(pattern)]


def show(key: str) -> Shown:
    """Return the program of a key, of the beginning of one, or of a function's name.

    Raises:
        CacheError: if there is none or there are several, or the folder cannot be read.
    """
    found = [each for each in _all() if each.name.startswith(key)] or _matching(key)
    if not found:
        raise CacheError(f"no program has the key or the function {key!r}; `tracejit cache list` shows all")
    if len(found) > 1:
        keys = ", ".join(each.name[:12] for each in found[:5])
        raise CacheError(
            f"{len(found)} programs fit {key!r}: {keys}{', ...' if len(found) > 5 else ''}; name one by its key"
        )
    (program,) = found
    kernels: dict[str, Entry] = {}
    for kernel in program.program["kernels"]:
        entry = _entry(kernel["entry"])
        if isinstance(entry, Entry):
            kernels[kernel["name"]] = entry
    return Shown(program.name, program.program, kernels)


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
    left = {
        kernel["entry"] for each in _all() if each.name not in names for kernel in each.program["kernels"]
    }
    kernels = {kernel["entry"] for each in doomed for kernel in each.program["kernels"]} - left
    return _remove(names, kernels)


def purge() -> Removed:
    """Remove all programs and kernels.

    Raises:
        CacheError: if the folder cannot be read.
    """
    return _remove({each.name for each in _all()}, set(_kernel_names()))


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


def _all() -> list[Described]:
    try:
        return _programs().all()
    except (RefusedError, OSError) as error:
        raise CacheError(_unusable(error)) from error


def _kernel_names() -> list[str]:
    try:
        return sorted(file.name.removesuffix(SUFFIX) for file in _store().entries())
    except (RefusedError, OSError) as error:
        raise CacheError(_unusable(error)) from error


def _unusable(error: Exception) -> str:
    return f"the cache in {root()} cannot be used: {error}"


def _matching(pattern: str) -> list[Described]:
    return [
        each
        for each in _all()
        if fnmatch.fnmatchcase(str(each.program.get("function")), pattern) or each.name.startswith(pattern)
    ]


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


def _listed(each: Described) -> Listed:
    program = each.program
    places = [f"{Path(file).name}:{line}" for row in program["rows"] for file, line in row["where"][:1]]
    first = each.uses[0] if each.uses else {}
    return Listed(
        each.name, program["function"], places[0] if places else "", program["inputs"], len(program["kernels"]),
        program["row_count"], program["arena_bytes"], len(each.uses), first.get("build_ns"), first.get("compile_ns"),
        each.uses[-1].get("at") if each.uses else None,
    )  # fmt: skip
