# SPDX-License-Identifier: BSD-3-Clause
"""Files on different systems: opening them, and renaming them while somebody reads them."""

import os
import time

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
