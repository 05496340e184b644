# SPDX-License-Identifier: BSD-3-Clause
"""What an exported folder depends on besides the CPU; importing this imports no LLVM."""

import platform
import sys
from pathlib import Path

from tracejit import kernels
from tracejit.export.files import hash_of

HOST = "host"
"""Stands for the CPU of the machine that exports, and nothing less."""
_EXECUTOR = ("entry.py", "executor.py", "machine.py", "state.py", "threads.py")


def system() -> str:
    """Return the kind of machine and system that object code is for."""
    return f"{platform.machine().lower()} {sys.platform}"


def executor_hash() -> str | None:
    """Return a hash of the sources of the executor, on which those who call it depend; None if there are none."""
    try:
        folder = Path(kernels.__path__[0], "executor")
        return hash_of(b"".join((folder / name).read_bytes() for name in _EXECUTOR))
    except OSError:
        return None
