# SPDX-License-Identifier: BSD-3-Clause
"""The hand-written kernels that are plain Python loops, which every backend takes from the same files."""

from collections.abc import Callable
from typing import Any

from . import gather, gemm, random, scan, search


def functions() -> dict[str, Callable[..., Any]]:
    """Return them by name."""
    return {
        name: function
        for module in (gather, gemm, random, scan, search)
        for name, function in vars(module).items()
        if callable(function) and getattr(function, "__module__", None) == module.__name__
    }
