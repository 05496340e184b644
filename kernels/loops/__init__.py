# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are plain Python loops: pointers and sizes go in, the last pointer is filled.

Every back end takes them from these files: Numba compiles them, the Python back end calls them. Imports math only.
"""

from collections.abc import Callable
from typing import Any

from . import (
    convolution,
    embedding,
    factor,
    fractions,
    gather,
    gemm,
    order,
    pooling,
    random,
    resampling,
    scan,
    search,
    spectral,
    user,
)


def functions() -> dict[str, Callable[..., Any]]:
    """Return the kernels by name."""
    return {
        name: function
        for module in (
            convolution,
            embedding,
            factor,
            fractions,
            gather,
            gemm,
            order,
            pooling,
            random,
            resampling,
            scan,
            search,
            spectral,
            user,
        )
        for name, function in vars(module).items()
        if callable(function) and getattr(function, "__module__", None) == module.__name__
    }
