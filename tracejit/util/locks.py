# SPDX-License-Identifier: BSD-3-Clause
"""Locks that a forked child can take: one that another thread held when the process forked is free there.

That thread does not exist in the child, so it would never be released. The child treats what it
guarded as any other thread would: nothing that such a lock guards is ever seen between two states.
"""

import os
import threading
import weakref
from typing import Any

_made: "weakref.WeakSet[Any]" = weakref.WeakSet()


def new_lock() -> Any:
    """Return a lock that a thread can take again while it holds it."""
    lock = threading.RLock()
    _made.add(lock)
    return lock


def _free() -> None:
    for lock in list(_made):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
