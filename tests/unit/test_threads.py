# SPDX-License-Identifier: BSD-3-Clause
"""Threads of tracejit's own do not count as threads of the user's."""

import threading

from tracejit.util.threads import OwnThread, is_alone


def test_own_threads_are_not_counted() -> None:
    before = is_alone()
    go_on, seen = threading.Event(), threading.Event()

    def wait() -> None:
        seen.set()
        go_on.wait(10)

    for kind, is_same in ((OwnThread, True), (threading.Thread, False)):
        go_on.clear()
        seen.clear()
        thread = kind(target=wait)
        thread.start()
        assert seen.wait(10)
        assert is_alone() is (before and is_same)
        go_on.set()
        thread.join()
        assert is_alone() is before
