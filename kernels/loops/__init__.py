# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are plain Python loops: pointers and sizes go in, the last pointer is filled.

Every back end takes them from these files: Numba compiles them, the Python back end calls them. A new file is found
automatically. It imports math only.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FILES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def functions() -> dict[str, Callable[..., Any]]:
    """Return the kernels of all files of this folder, by name."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in _FILES]
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if callable(function) and getattr(function, "__module__", None) == module.__name__
    }
