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

_DIGITS = re.compile("[0-9a-f]{4,}")  # the beginning of a key; fewer are rather the name of a function


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
        raise CacheError(
            f"the cache in {root()} cannot be used: {reason_of(error)}; set TRACEJIT_CACHE_DIR to a folder of your own"
        ) from error


def reason_of(error: RefusedError | OSError) -> str:
    """Return why a folder cannot be used, without the number that Python gives to errors of the system."""
    return str(getattr(error, "strerror", None) or error)


def heads() -> list[ProgramSummary]:
    """Return the summaries of all programs, the last used first."""
    with collector_paused():  # nothing allocated here is garbage
        return reading(programs().heads)


def matching(pattern: str) -> list[ProgramSummary]:
    """Return the programs whose function or key matches a pattern, the last used first."""
    return fitting(heads(), pattern)


def fitting(heads: Sequence[ProgramSummary], pattern: str) -> list[ProgramSummary]:
    """Return the given programs whose function matches a pattern; if there are none, those whose key begins with it."""
    return _named(heads, pattern) or [head for head in heads if begins(head.name, pattern)]


def _named(heads: Sequence[ProgramSummary], pattern: str) -> list[ProgramSummary]:
    """Return the programs of the function of that name; if there are none, of the functions that match the pattern."""
    exact = [head for head in heads if head.head["function"] == pattern]
    fits = re.compile(fnmatch.translate(pattern)).match
    return exact or [head for head in heads if fits(str(head.head["function"]))]


def begins(name: str, digits: str) -> bool:
    """Return whether the key of an entry begins with digits, which have to be enough to be no name by accident."""
    return _DIGITS.fullmatch(digits) is not None and name.startswith(digits)


def meant(heads: Sequence[ProgramSummary], key: str) -> list[ProgramSummary]:
    """Return the program whose key begins with `key`, or those of the function of that name, the last used first.

    Raises:
        CacheError: if several keys begin so, or the pattern matches several functions.
    """
    named = _named(heads, key)
    fits = named or fitting(heads, key)
    if len(fits) > 1 and (not named or len({head.head["function"] for head in named}) > 1):
        raise several(key, [head.name for head in fits], "programs")
    return fits


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
