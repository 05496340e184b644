# SPDX-License-Identifier: BSD-3-Clause
"""Programs and kernels of the cache folder that is set, by key or by a function's name.

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
    """Return the store of the programs."""
    return Programs(root(), config.settings.cache == "shared")


def reading(read: Callable[[], T]) -> T:
    """Return the result of a function that reads the folder; its errors become a CacheError.

    Raises:
        CacheError: if the folder cannot be read.
    """
    try:
        return read()
    except (RefusedError, OSError) as error:
        raise CacheError(f"the cache in {root()} cannot be used: {error}") from error


def heads() -> list[ProgramSummary]:
    """Return the summaries of all programs, the last used first."""
    with collector_paused():  # nothing allocated here is garbage
        return reading(programs().heads)


def matching(pattern: str) -> list[ProgramSummary]:
    """Return the programs whose function or key matches a pattern, the last used first."""
    return fitting(heads(), pattern)


def fitting(heads: Sequence[ProgramSummary], pattern: str) -> list[ProgramSummary]:
    """Return the given programs whose function matches a pattern, or whose key begins with it."""
    fits = re.compile(fnmatch.translate(pattern)).match
    return [
        program
        for program in heads
        if fits(str(program.head["function"])) or (pattern and program.name.startswith(pattern))
    ]


def one(key: str) -> str:
    """Return the key of the only program whose key begins with `key` or whose function has that name.

    Raises:
        CacheError: if there is none or there are several.
    """
    programs = heads()
    fits = [program for program in programs if key and program.name.startswith(key)] or fitting(programs, key)
    if not fits:
        raise CacheError(f"no program has the key or the function {key!r}; `tracejit cache list` shows all")
    if len(fits) > 1:
        raise several(key, [program.name for program in fits], "programs")
    return fits[0].name


def several(key: str, names: Sequence[str], what: str) -> CacheError:
    """Return the error for a key that several entries match."""
    keys = ", ".join(name[:12] for name in names[:5])
    return CacheError(
        f"{len(names)} {what} match {key!r}: {keys}{', ...' if len(names) > 5 else ''}; name one by its key"
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
    """Return a kernel by its key; a damaged one as the text of what is wrong, None if there is none."""
    folder = Folder(root(), "kernels", config.settings.cache == "shared")
    try:
        content = folder.read(name + SUFFIX, use=False)
        return None if content is None else decode(content, name)
    except (CacheError, RefusedError) as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
