# SPDX-License-Identifier: BSD-3-Clause
"""tj.cache: tools that list, show, compare, check, remove and pack what the disk cache holds.

The functions are the commands ``tracejit cache ...``; their results are dataclasses, whose repr is what the command
prints. A CacheError says that the folder cannot be read, or has nothing that matches. Imports store, and compile.key.

The cache itself never fails a call: an entry that is missing, damaged or not trusted is compiled again.

Examples:
    >>> import numpy as np, tracejit as tj
    >>> @tj.dlaccelerate
    ... def power_of(x):
    ...     return (x**2).mean()
    >>> for _ in range(3):
    ...     _ = power_of(tj.dlarray(np.ones((4, 3)), "BC"))
    >>> (found,) = tj.cache.list("power_of")
    >>> found.signature
    (('x', '4(B) x 3(C) float64'),)
    >>> tj.cache.remove("power_of").programs
    1
"""

from typing import TYPE_CHECKING

from tracejit.errors import ArgumentError
from tracejit.util.arguments import flag, integer, path, real, text

# Imported late: these modules are not needed until a function is called.
if TYPE_CHECKING:
    from tracejit.cache.archive import Packed, Unpacked
    from tracejit.cache.diff import Why
    from tracejit.cache.inspect import Info, Listing, Removed, Shown, Verified

__all__ = ["dir", "info", "list", "pack", "purge", "remove", "show", "unpack", "verify", "why"]


def dir() -> str:
    """Return the path of the folder, which need not exist.

    Examples:
        >>> import os, tracejit as tj
        >>> os.path.isabs(tj.cache.dir())
        True
    """
    from tracejit.store import kernels

    return kernels.root()


def info() -> "Info":
    """Return the size and the settings of the folder, and the reason if it is not used.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.info().limit_bytes
        1073741824
    """
    from tracejit.cache import inspect

    return inspect.info()


def list(
    pattern: str = "*", *, file: str | None = None, target: str | None = None, since_s: float | None = None,
    sort: str = "used", reverse: bool = False, limit: int | None = None,
) -> "Listing":  # fmt: skip
    """Return programs, by default the last used first.

    Args:
        pattern: a pattern of the function's name, with ``*`` and ``?``, or the beginning of a key (4 digits or more).
        file: a pattern of the file that defines the function, with or without its folder.
        target: the target of the kernels, such as "cpu".
        since_s: only programs used since then, in seconds since 1970.
        sort: "key", "function", "where", "target", "kernels", "size", "hits", "build", "compile" or "used". Numbers
            and times are sorted from the largest on, names alphabetically.
        reverse: reverse the order.
        limit: the largest number of programs.

    Returns:
        A tuple of dataclasses, whose repr is a table.

    Raises:
        CacheError: if the folder cannot be read, or there is no such column.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.list("no_such_function", sort="size")
        ()
    """
    from tracejit.cache import inspect

    text("cache.list", "pattern", pattern)
    if limit is not None and integer("cache.list", "limit", limit) < 0:
        raise ArgumentError(
            f"cache.list: limit must be at least 0, not {limit}; leave it out for all programs."
        )
    for argument, value in (("file", file), ("target", target)):
        if value is not None:
            text("cache.list", argument, value)
    return inspect.listing(
        pattern,
        file=file,
        target=target,
        since_s=None if since_s is None else real("cache.list", "since_s", since_s),
        sort=text("cache.list", "sort", sort),
        reverse=flag("cache.list", "reverse", reverse),
        limit=limit,
    )


def show(key: str) -> "Shown":
    """Return a program and the source of its kernels.

    Args:
        key: the beginning of a key, or the name of a function: its program that was used last.

    Raises:
        CacheError: if no program matches, several keys or functions do, or the folder cannot be read.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.show("no_such_function")
        Traceback (most recent call last):
        tracejit.errors.CacheError: no program has the key or the function 'no_such_function'; `tracejit cache list` ...
    """
    from tracejit.cache import inspect

    return inspect.show(text("cache.show", "key", key))


def why(key: str, other: str | None = None) -> "Why":
    """Return the differences between the keys of two programs or two kernels: why the first was not found.

    Args:
        key: the beginning of a key, or the name of a function: its program that was used last.
        other: the same. By default the most similar program of the same function, or kernel of the same source; then
            the result also says whether this process finds the kernels.

    Raises:
        CacheError: if no entry or several match, or one is a program and the other a kernel, or the folder cannot be
            read.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> @tj.dlaccelerate
        ... def halved(x):
        ...     return x / 2
        >>> for rows in (2, 2, 2, 3, 3, 3):
        ...     _ = halved(tj.dlarray(np.ones(rows)))
        >>> tj.cache.why("halved").differences[0]
        argument x: 3 float64 here, 2 float64 there
        >>> tj.cache.remove("halved").programs
        2
    """
    from tracejit.cache import diff

    return diff.why(
        text("cache.why", "key", key), None if other is None else text("cache.why", "other", other)
    )


def verify() -> "Verified":
    """Check every kernel and program: who may write to it, its hash, and that it stands under its own key.

    Returns:
        Verified: the numbers of sound kernels and programs, and in `bad` the others, as pairs (key, problem).

    Raises:
        CacheError: if the folder cannot be read.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.verify().bad
        []
    """
    from tracejit.cache import inspect

    return inspect.verify()


def remove(pattern: str) -> "Removed":
    """Remove the programs whose function or key matches a pattern, and the kernels that only they use.

    Loaded kernels stay in use; the next process compiles them again.

    Args:
        pattern: a pattern as list() takes it; keys count only if no function matches.

    Returns:
        Removed: the numbers of programs and kernels, and their bytes.

    Raises:
        CacheError: if the folder cannot be read, or a file cannot be removed.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.remove("no_such_function")
        removed 0 programs and 0 kernels, 0 bytes
    """
    from tracejit.cache import inspect

    return inspect.remove(text("cache.remove", "pattern", pattern))


def purge() -> "Removed":
    """Remove all programs and kernels.

    Returns:
        Removed: the numbers of programs and kernels, and their bytes.

    Raises:
        CacheError: if the folder cannot be read, or a file cannot be removed.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.purge()  # doctest: +SKIP
        removed 3 programs and 12 kernels, 87.2 KiB
    """
    from tracejit.cache import inspect

    return inspect.purge()


def pack(file: str) -> "Packed":
    """Write all kernels and programs into one file, a tar, for machines of the same kind.

    Args:
        file: the path to write; an existing file is replaced.

    Returns:
        Packed: the file, its hash, its size, and the numbers of entries.

    Raises:
        CacheError: if the folder cannot be read, or the file cannot be written.

    Examples:
        >>> import tempfile, tracejit as tj
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     packed = tj.cache.pack(f"{folder}/cache.tar")
        ...     tj.cache.unpack(f"{folder}/cache.tar", packed.sha256).kernels
        0
    """
    from tracejit.cache import archive

    return archive.pack(path("cache.pack", "file", file))


def unpack(file: str, sha256: str | None = None) -> "Unpacked":
    """Check a file that pack() wrote and put its entries into the cache. They run as code.

    Args:
        file: the path of the file.
        sha256: the hash that the file has to have: `sha256` of pack()'s result.

    Returns:
        Unpacked: the numbers of new and of known entries, and of kernels for a different kind of machine.

    Raises:
        CacheError: if the file is not, bit for bit, a result of pack(), or too large for the cache, or the folder
            cannot be trusted; then nothing was written. Or if a file cannot be written.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.unpack("/no/such/file")
        Traceback (most recent call last):
        tracejit.errors.CacheError: /no/such/file cannot be read (No such file or directory)
    """
    from tracejit.cache import archive

    return archive.unpack(
        path("cache.unpack", "file", file), None if sha256 is None else text("cache.unpack", "sha256", sha256)
    )
