# SPDX-License-Identifier: BSD-3-Clause
"""The dependencies of an exported folder besides the CPU. (Importing this imports no LLVM.)"""

import platform
import sys
from pathlib import Path

from tracejit import kernels
from tracejit.exports.files import hash_of

HOST = "host"
"""Stands for the CPU of the exporting machine, with all its features."""


def system() -> str:
    """Return the kind of machine and system that object code is for."""
    return f"{platform.machine().lower()} {sys.platform}"


def executor_hash() -> str | None:
    """Return a hash of the executor's sources, which define its calling convention; None if there are none."""
    sources = sorted(Path(kernels.__path__[0], "executor").glob("*.py"))
    try:
        return hash_of(b"".join(source.read_bytes() for source in sources)) if sources else None
    except OSError:
        return None
