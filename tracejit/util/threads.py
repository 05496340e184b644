# SPDX-License-Identifier: BSD-3-Clause
"""Threads that tracejit starts itself. They run none of the user's code."""

import os
import threading

_own: set[int] = set()  # ids of those that run


class OwnThread(threading.Thread):
    """A thread that runs none of the user's code."""

    def run(self) -> None:
        _own.add(id(self))
        try:
            super().run()
        finally:
            _own.discard(id(self))


def is_alone() -> bool:
    """Return whether no other thread runs that can run the user's code; one that begins or ends counts as one."""
    # threading.active_count() without its lock, which takes a microsecond. A thread that begins leaves the second dict
    # when it is in the first, so that it is not missed in this order.
    beginning = len(threading._limbo)  # type: ignore[attr-defined]
    return beginning + len(threading._active) - len(_own) == 1  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.clear)  # which has no other threads
