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
    return threading.active_count() - len(_own) == 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own.clear)  # which has no other threads
