# SPDX-License-Identifier: BSD-3-Clause
"""The dependencies of an exported folder on a machine, besides the CPU. (Importing this imports no LLVM.)"""

import sys
from pathlib import Path
from typing import Any

from tracejit import kernels
from tracejit.errors import ArgumentError, ExportError
from tracejit.kernels.executor.state import CPU
from tracejit.util.arguments import is_option, listed
from tracejit.util.files import hash_of
from tracejit.util.text import brief

HOST = "host"
"""The name of the CPU of the exporting machine, with all its features."""


def system() -> str:
    """Return the kind of machine and system that object code is for."""
    return f"{CPU} {sys.platform}"


def executor_hash() -> str | None:
    """Return a hash of the executor's sources, which define its calling convention; None if there are none."""
    sources = sorted(Path(kernels.__path__[0], "executor").glob("*.py"))
    try:
        return hash_of(b"".join(source.read_bytes() for source in sources)) if sources else None
    except OSError:
        return None


def checked_targets(cpus: Any) -> tuple[str, ...]:
    """Return the names of the targets that export() was asked for.

    Raises:
        ArgumentError: if there is no such target.
        ExportError: if there is no object code of it to be made here.
    """
    from tracejit.compile.ahead import LEVELS

    names = (cpus,) if isinstance(cpus, str) else listed("export", "cpus", cpus)
    for name in names:
        if not is_option(name, (HOST, *LEVELS)):
            valid = ", ".join(map(repr, (HOST, *reversed(LEVELS))))
            raise ArgumentError(f"export: cpus: expected one of {valid}, not {brief(name)}.")
        if name != HOST and not system().startswith("x86_64 "):
            raise ExportError(
                f'export: object code for {name} cannot be compiled on {system()}; use cpus="{HOST}".'
            )
    if not names or len(set(names)) != len(names):
        raise ArgumentError(f"export: cpus: expected one or more names, each once, not {brief(names)}.")
    if executor_hash() is None:
        raise ExportError(
            "export: the source files of tracejit's kernels are missing, so load() could not tell whether the folder "
            "fits its executor. Install tracejit with its .py files."
        )
    return names
