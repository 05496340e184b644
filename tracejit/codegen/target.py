# SPDX-License-Identifier: BSD-3-Clause
"""The CPU that kernels are written for: the size of its vectors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np


class _ThreadTarget(threading.local):
    written_for: int | None = None


_thread = _ThreadTarget()


def vector_bytes() -> int:
    """Return the size of the vectors in kernels: 64, 32 or 16 bytes."""
    return _thread.written_for or of_this_machine()


@cache
def of_this_machine() -> int:
    """Return the size of the vectors of this machine."""
    # NumPy knows, and unlike Numba it is loaded already. Its names for groups of features changed with 2.4.
    extensions = np.show_config(mode="dicts").get("SIMD Extensions", {})
    # Where it found none beyond its baseline, there is no list of them.
    features = {*extensions.get("baseline", ()), *extensions.get("found", ())}
    if features & {"X86_V4", "AVX512_SKX"}:
        return 64
    return 32 if "X86_V3" in features or {"AVX2", "FMA3"} <= features else 16


@contextmanager
def written_for(vector_bytes: int) -> Iterator[None]:
    """Write kernels for vectors of `vector_bytes` in this thread while the block runs."""
    before, _thread.written_for = _thread.written_for, vector_bytes
    try:
        yield
    finally:
        _thread.written_for = before
