# SPDX-License-Identifier: BSD-3-Clause
"""What there is in the cache folder that is set: programs and kernels, by key or by a function's name.

All functions raise a CacheError if the folder cannot be read.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from tracejit import config
from tracejit.errors import CacheError
from tracejit.store.entry import StoredKernel, decode
from tracejit.store.folder import CacheFile, Folder, RefusedError
from tracejit.store.kernels import SUFFIX, KernelStore, root
from tracejit.store.programs import Programs, ProgramSummary, StoredProgram
from tracejit.util.memory import collector_paused

T = TypeVar("T")


def store() -> KernelStore:
    """Return the store of the kernels."""
    return KernelStore(root(), config.settings.cache_mib << 20, config.settings.cache == "shared")


def programs() -> Programs:
    """Return what holds the programs."""
    return Programs(root(), config.settings.cache == "shared")


def reading(what: Callable[[], T]) -> T:
    """Return what a function returns that reads the folder; its errors are those of a command.

    Raises:
        CacheError: if the folder cannot be read.
    """
    try:
        return what()
    except (RefusedError, OSError) as error:
        raise CacheError(f"the cache in {root()} cannot be used: {error}") from error


def heads() -> list[ProgramSummary]:
    """Return what a list shows of all programs, the one used last first."""
    with collector_paused():  # nothing here is garbage
        return reading(programs().heads)


def matching(pattern: str) -> list[ProgramSummary]:
    """Return the programs whose function or key fits a pattern, the one used last first."""
    return fitting(heads(), pattern)


def fitting(heads: Sequence[ProgramSummary], pattern: str) -> list[ProgramSummary]:
    """Return those of some programs whose function fits a pattern, or whose key begins with it."""
    fits = re.compile(fnmatch.translate(pattern)).match
    return [
        each
        for each in heads
        if fits(str(each.head["function"])) or (pattern and each.name.startswith(pattern))
    ]


def one(key: str) -> str:
    """Return the whole key of the one program that has a key, the beginning of one, or a function's name.

    Raises:
        CacheError: if there is none or there are several.
    """
    known = heads()
    found = [each for each in known if key and each.name.startswith(key)] or fitting(known, key)
    if not found:
        raise CacheError(f"no program has the key or the function {key!r}; `tracejit cache list` shows all")
    if len(found) > 1:
        raise several(key, [each.name for each in found], "programs")
    return found[0].name


def several(key: str, names: Sequence[str], what: str) -> CacheError:
    """Return the error that several entries fit where one is wanted."""
    keys = ", ".join(name[:12] for name in names[:5])
    return CacheError(
        f"{len(names)} {what} fit {key!r}: {keys}{', ...' if len(names) > 5 else ''}; name one by its key"
    )


def described(name: str) -> StoredProgram:
    """Return a program by its key.

    Raises:
        CacheError: if it cannot be read.
    """
    program = reading(lambda: programs().read(name))
    if program is None:
        raise CacheError(f"the description of the program {name[:12]} cannot be read")
    return program


def kernel_files() -> list[CacheFile]:
    """Return the files of the kernels."""
    return reading(store().entries)


def kernel_names() -> list[str]:
    """Return the keys of all kernels, in order."""
    return sorted(file.name.removesuffix(SUFFIX) for file in kernel_files())


def entry(name: str) -> StoredKernel | str | None:
    """Return a kernel by its key; or what is wrong with it, None if there is none."""
    folder = Folder(root(), "kernels", config.settings.cache == "shared")
    try:
        content = folder.read(name + SUFFIX, use=False)
        return None if content is None else decode(content, name)
    except (CacheError, RefusedError) as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
