# SPDX-License-Identifier: BSD-3-Clause
"""Memory: owners of arrays, pauses of the garbage collector, and the return of memory after a recording."""

import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

_pausing: set[int] = set()  # the threads that turned the collector off
_LONG = 2000  # the least operations of a recording after which memory is returned


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from scanning, again and again, the objects that passes and compilers create.

    It finds nothing to free there and takes a quarter of the time of a build, a tenth of that of a compilation.
    """
    was_enabled = gc.isenabled()
    thread = threading.get_ident()
    try:  # what follows is undone wherever an exception of a signal handler comes
        if was_enabled:
            _pausing.add(thread)
            gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
            _pausing.discard(thread)


def age() -> None:
    """Move all objects to the collector's oldest generation, which it scans when that has grown by a quarter.

    After an import while the collector is paused: a first scan of the new modules would take as long as those that were
    left out. Frozen objects, which are counted one by one, stay frozen.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def _in_child() -> None:
    """Turn on the collector in a forked child, if a thread that does not exist there turned it off."""
    if _pausing - {threading.get_ident()}:
        _pausing.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def give_back(operations: int) -> None:
    """Return unused memory to the system, after a recording of that many operations.

    While a function is recorded, the arrays of all its operations exist. Freed, they stay with the process as long as
    the C library hopes for use of them; then building and compiling would add to that peak.
    """
    trim = _trim()
    if trim is not None and operations > _LONG:
        trim(0)


@cache
def _trim() -> Any:
    """Return the function of the GNU C library that returns memory to the system, or None."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


def owner_of(array: np.ndarray) -> np.ndarray:
    """Return the array whose memory an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
