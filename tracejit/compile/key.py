# SPDX-License-Identifier: BSD-3-Clause
"""The key of compiled code: everything that the code depends on."""

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

_VERSION = re.compile(r'"version": "([^"]+)"')  # in the _version.py of Numba's releases


def key_of(kind: str, text: str, cpu: objects.Cpu | None = None) -> KernelKey | None:
    """Return the key of compiled code, None if its dependencies cannot be read, as without installed source files.

    Args:
        kind: "kernel" or "function".
        text: the source of the kernel, or the name of the int64 function.
        cpu: the CPU to compile for; by default that of this process.
    """
    try:
        environment = _environment()
    except (OSError, ImportError):
        return None
    if cpu is not None:
        changed = {"cpu": cpu.name, "cpu features": cpu.features}
        environment = tuple([(name, changed.get(name, value)) for name, value in environment])
    return KernelKey((("kind", kind), ("source", hashlib.sha256(text.encode()).hexdigest()), *environment))


@cache
def _environment() -> tuple[tuple[str, str], ...]:
    triple, cpu, features = objects.host()
    return (
        ("format", str(FORMAT)),
        ("tracejit", _own_sources()),
        ("numba", _numba_version()),
        ("llvmlite", llvmlite.__version__),
        ("numpy", np.__version__),
        (
            "python",
            sys.implementation.cache_tag or sys.version,
        ),  # the executor reads the fields of its objects
        ("system", f"{triple} {_c_library()}"),
        ("cpu", cpu),
        ("cpu features", features),
    )


def _own_sources() -> str:
    """Return a hash of the sources that compile a text: this folder and kernels/."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, *map(Path, kernels.__path__)):
        for name in _sources_in(folder):
            content = Path(folder, name).read_bytes()
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _sources_in(folder: Path) -> list[str]:
    """Return the names of the sources in a folder and in those in it, in order."""
    root = os.fspath(folder)
    return sorted(
        os.path.join(inner, name)[len(root) + 1 :].replace(os.sep, "/")  # a tenth of the time that paths take
        for inner, _, names in os.walk(root)
        for name in names
        if name.endswith(".py")
    )


def _numba_version() -> str:
    """Return the version of Numba without importing it."""
    module = sys.modules.get("numba")
    if module is not None:
        return str(module.__version__)
    spec = importlib.util.find_spec("numba")
    for folder in (spec and spec.submodule_search_locations) or ():
        release = _VERSION.search(Path(folder, "_version.py").read_text())
        if release:
            return release[1]
    # Takes ten times as long.
    from importlib.metadata import version

    return version("numba")


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # not on this system
        return ""
