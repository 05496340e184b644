# SPDX-License-Identifier: BSD-3-Clause
"""The precision of the programs that a thread builds: the setting, or the option of an accelerated function."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tracejit import config


class _OfThread(threading.local):
    precision: str | None = None


_thread = _OfThread()


def precision() -> str:
    """Return "default", or "highest" where results of float32 are to be those of direct sums."""
    return _thread.precision or config.settings.precision


@contextmanager
def with_precision(value: str) -> Iterator[None]:
    """Make `value` the precision of this thread while the block runs."""
    before, _thread.precision = _thread.precision, value
    try:
        yield
    finally:
        _thread.precision = before
