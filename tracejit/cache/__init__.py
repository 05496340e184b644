# SPDX-License-Identifier: BSD-3-Clause
"""The cache on disk: compiled kernels, found by the hash of all that they depend on.

Nothing raises an error because of what is on the disk: what is missing, damaged or not to be trusted is compiled anew.

The functions look into it and tidy it up, as the commands ``tracejit cache ...`` do. Results are dataclasses, which
show themselves as the command prints them. A CacheError says that the folder cannot be read, or that it does not hold
what was asked for.

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

# What is imported at once is imported with tracejit, whether anybody looks or not.
if TYPE_CHECKING:
    from tracejit.cache.archive import Packed, Unpacked
    from tracejit.cache.diff import Why
    from tracejit.cache.inspect import Info, Listing, Removed, Shown, Verified

__all__ = ["dir", "info", "list", "pack", "purge", "remove", "show", "unpack", "verify", "why"]


def dir() -> str:
    """Return the folder, whether it exists or not.

    Examples:
        >>> import os, tracejit as tj
        >>> os.path.isabs(tj.cache.dir())
        True
    """
    from tracejit.store import kernels

    return kernels.root()


def info() -> "Info":
    """Return what the folder is and holds, and if it is not used, why.

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
    """Return programs, by default the one used last first.

    Args:
        pattern: of the function's name, with ``*`` and ``?``, or the beginning of a key.
        file: a pattern of the file that the function is defined in, with or without its folder.
        target: what the kernels are compiled for, such as "cpu".
        since_s: leaves out what was not used since then, in seconds since 1970.
        sort: "key", "function", "where", "target", "kernels", "size", "hits", "build", "compile" or "used". Numbers
            and times are sorted from the largest on, names by the alphabet.
        reverse: the other way round.
        limit: how many at most.

    Returns:
        A tuple of dataclasses, which shows itself as a table.

    Raises:
        CacheError: if the folder cannot be read, or there is no such column.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.list("no_such_function", sort="size")
        ()
    """
    from tracejit.cache import inspect

    return inspect.listing(
        pattern, file=file, target=target, since_s=since_s, sort=sort, reverse=reverse, limit=limit
    )


def show(key: str) -> "Shown":
    """Return a program and the source of its kernels.

    Args:
        key: the beginning of a key, or a function's name.

    Raises:
        CacheError: if there is no such program or there are several, or the folder cannot be read.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.show("no_such_function")
        Traceback (most recent call last):
        tracejit.errors.CacheError: no program has the key or the function 'no_such_function'; `tracejit cache list` ...
    """
    from tracejit.cache import inspect

    return inspect.show(key)


def why(key: str, other: str | None = None) -> "Why":
    """Return the differences between the keys of two programs or two kernels: why the first was not found.

    Args:
        key: the beginning of a key, or the name of a function: its program that was used last.
        other: the same. By default the most similar program of the same function, or kernel of the same source; then
            the result also says whether this process finds the kernels.

    Raises:
        CacheError: if there is no such entry or there are several, or one is a program and the other a kernel, or the
            folder cannot be read.

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

    return diff.why(key, other)


def verify() -> "Verified":
    """Check every kernel and program: who may write to it, its hash, and that it stands under its own key.

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
    """Remove the programs whose function or key fits a pattern, and the kernels that no other program uses.

    Kernels that are loaded stay in use; the next process compiles them anew.

    Raises:
        CacheError: if the folder cannot be read.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.remove("no_such_function")
        removed 0 programs and 0 kernels, 0 bytes
    """
    from tracejit.cache import inspect

    return inspect.remove(pattern)


def purge() -> "Removed":
    """Remove all programs and kernels.

    Raises:
        CacheError: if the folder cannot be read.

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
        file: what is written; a file that is there is replaced.

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

    return archive.pack(file)


def unpack(file: str, sha256: str | None = None) -> "Unpacked":
    """Put what pack() wrote into the cache, after all of it was checked. What is in it runs as code.

    Args:
        file: what pack() wrote.
        sha256: what `sha256` of pack()'s result was; another one is an error.

    Raises:
        CacheError: if the file is not, to the bit, what pack() writes, or too large for the cache, or the folder is not
            to be used; then nothing was written. Or if a file cannot be written.

    Examples:
        >>> import tracejit as tj
        >>> tj.cache.unpack("/no/such/file")
        Traceback (most recent call last):
        tracejit.errors.CacheError: /no/such/file cannot be read (No such file or directory)
    """
    from tracejit.cache import archive

    return archive.unpack(file, sha256)
