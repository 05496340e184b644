# SPDX-License-Identifier: BSD-3-Clause
"""Files on different systems: opening them, renaming them while somebody reads them, and writing them whole."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

IS_WINDOWS = os.name == "nt"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(
    os, "O_BINARY", 0
)  # without O_BINARY Windows changes ends of lines
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # for the other end of a pipe

READ = os.O_RDONLY | _PLAIN | _NO_WAIT
WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN | NO_LINK
APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _PLAIN | _NO_WAIT
"""Flags of os.open; those that a system lacks are left out."""

_PATIENCE_S, _LOOK_S = 1.0, 0.01


def hash_of(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def rename(source: str, target: str, replace: bool = False) -> None:
    """Rename a file or folder. Windows refuses that while somebody has it open: there it is tried for a second.

    Raises:
        OSError: if it cannot be renamed.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            (os.replace if replace else os.rename)(source, target)
            return
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() >= deadline:
                raise
        time.sleep(_LOOK_S)


@contextmanager
def written_whole(path: str) -> Iterator[BufferedRandom]:
    """Yield a stream whose content becomes the file when the block ends without an error.

    Otherwise, as on a full disk, the file is what it was, or there is none.

    Raises:
        OSError: if it cannot be written.
    """
    temporary = f"{path}.new-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(temporary, "x+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        rename(temporary, path, replace=True)
    except OSError as error:
        if error.filename == temporary:  # users know nothing of it
            error.filename, error.filename2 = path, None
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def write_text(file: Path, text: str) -> None:
    """Write a file that a user named, whole or not at all. A link stays one; devices and pipes are written as they are.

    Raises:
        OSError: if it cannot be written.
    """
    content = text.encode()
    if file.exists() and not file.is_file():
        file.write_bytes(content)
        return
    with written_whole(os.path.realpath(file)) as stream:
        stream.write(content)
