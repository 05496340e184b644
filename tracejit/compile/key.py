# SPDX-License-Identifier: BSD-3-Clause
"""What compiled code depends on, and so what it is found by on disk."""

import hashlib
import importlib.util
import os
import re
import sys
from functools import cache
from pathlib import Path

import llvmlite
import numpy as np

from tracejit import kernels
from tracejit.compile import objects
from tracejit.store.entry import FORMAT, KernelKey

_VERSION = re.compile(r'"version": "([^"]+)"')  # as Numba's releases say it


def key_of(kind: str, text: str, cpu: objects.Cpu | None = None) -> KernelKey | None:
    """Return the key of what is compiled from a text: a kernel's source, or the name of a function of kernels/.

    It is compiled for the CPU of this process, or for another `cpu`. None if it cannot be known what the code depends
    on, as where no source files are installed.
    """
    try:
        surroundings = _surroundings()
    except (OSError, ImportError):
        return None
    if cpu is not None:
        changed = {"cpu": cpu.name, "cpu features": cpu.features}
        surroundings = tuple([(name, changed.get(name, value)) for name, value in surroundings])
    return KernelKey((("kind", kind), ("source", hashlib.sha256(text.encode()).hexdigest()), *surroundings))


@cache
def _surroundings() -> tuple[tuple[str, str], ...]:
    triple, cpu, features = objects.host()
    return (
        ("format", str(FORMAT)),
        ("tracejit", _own_sources()),
        ("numba", _numba_version()),
        ("llvmlite", llvmlite.__version__),
        ("numpy", np.__version__),
        ("python", sys.implementation.cache_tag or sys.version),  # the executor reads its objects
        ("system", f"{triple} {_c_library()}"),
        ("cpu", cpu),
        ("cpu features", features),
    )


def _own_sources() -> str:
    """Return a hash of all sources that decide what becomes of a text."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, *map(Path, kernels.__path__)):
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _numba_version() -> str:
    """Return the version of Numba, which is not imported for that."""
    module = sys.modules.get("numba")
    if module is not None:
        return str(module.__version__)
    spec = importlib.util.find_spec("numba")
    for folder in (spec and spec.submodule_search_locations) or ():
        found = _VERSION.search(Path(folder, "_version.py").read_text())
        if found:
            return found[1]
    # This takes ten times as long.
    from importlib.metadata import version

    return version("numba")


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # not on this system
        return ""
