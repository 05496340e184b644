# SPDX-License-Identifier: BSD-3-Clause
"""The log of tracejit: the logger "tracejit" of the standard library.

TRACEJIT_LOG=info prints it to standard error; otherwise the program's own configuration of `logging` applies.

    WARNING     what is also a Python warning: a function runs uncompiled, a trace was wrong, the folder is not used
    INFO        what happens once for each trace: recorded, confirmed, audited, built, compiled, first replayed, evicted
    DEBUG       each kernel; and each replay and each call that runs uncompiled, if this logger itself is set to DEBUG:
                a program that sets the root logger so, for its own lines, is not slowed down

Each record has an attribute `event`, one of EVENTS.

Note [hits]
Lines that nobody reads must not slow a replay down, and even asking whether somebody reads them takes a thirtieth of a
small one. So the code that is generated for a trace never logs. While a line for each call is asked for, no call path
is kept, and all calls go the general way, which logs. A function that already has call paths stays silent until its
next audit, or until clear_cache().
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging import DEBUG, INFO, WARNING

from tracejit import config

__all__ = ["DEBUG", "EVENTS", "INFO", "WARNING", "each_call", "enabled", "silent", "write"]

EVENTS = (
    "miss", "hit", "evict", "warning",  # calls
    "build", "kernels", "compile", "load",  # programs and their kernels
    "cache",  # on disk
)  # fmt: skip
"""The kinds of events that lines report."""
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_logger = logging.getLogger("tracejit")
_logger.addHandler(logging.NullHandler())  # what nobody asked for is not printed


def set_up(level: str) -> None:
    """Print log records of a level and above to standard error; nothing happens for "off"."""
    if level != "off":
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        _logger.addHandler(handler)
        _logger.setLevel(level.upper())


def enabled(level: int) -> bool:
    """Return whether anybody reads records of a level."""
    return _logger.isEnabledFor(level)


def each_call() -> bool:
    """Return whether anybody reads a line for each call."""
    return 0 < _logger.level <= DEBUG and enabled(DEBUG)


def write(level: int, event: str, text: str) -> None:
    """Log a line."""
    _logger.log(level, "%s", text, extra={"event": event})


@contextmanager
def silent() -> Iterator[None]:
    """Log nothing within the block."""
    before, _logger.disabled = _logger.disabled, True
    try:
        yield
    finally:
        _logger.disabled = before


set_up(config.settings.log)
