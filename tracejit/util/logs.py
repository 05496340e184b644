# SPDX-License-Identifier: BSD-3-Clause
"""The log of tracejit: the logger "tracejit" of the standard library.

TRACEJIT_LOG=info prints it to standard error; otherwise the program's own configuration of `logging` applies.

    WARNING     what is also a Python warning: a function runs uncompiled, a trace was wrong, the folder is not used
    INFO        what happens once for each trace: recorded, confirmed, audited, built, compiled, first replayed, evicted
    DEBUG       each kernel; and each replay and each call that runs uncompiled, if this logger itself is set to DEBUG:
                a program that sets the root logger so, for its own lines, is not slowed down

Each record has an attribute `event`, one of EVENTS.

One line shows on a terminal although nobody asked for it, once in a process: that a build takes more than SLOW_S
seconds. logging.getLogger("tracejit").setLevel("WARNING") turns it off.

Note [hits]
Lines that nobody reads must not slow a replay down, and even asking whether somebody reads them takes a thirtieth of a
small one. So the code that is generated for a trace never logs. While a line for each call is wanted, no call path is
kept, and all calls go the general way, which logs. A function that already has call paths stays silent until its next
audit, or until clear_cache().

Note [late logging]
Importing the module `logging` takes a thirtieth of the time of importing this package and NumPy. While nobody has
imported it, nobody reads what is logged, so nothing is logged.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tracejit import config

if TYPE_CHECKING:
    import logging

__all__ = [
    "DEBUG", "EVENTS", "INFO", "SLOW_S", "WARNING", "each_call", "enabled", "silent", "tell_of_slow_build", "write",
]  # fmt: skip

DEBUG: Final = 10  # as in logging
INFO: Final = 20
WARNING: Final = 30
EVENTS = (
    "miss", "hit", "evict", "warning",  # calls
    "build", "kernels", "compile", "load",  # programs and their kernels
    "cache",  # on disk
)  # fmt: skip
"""The kinds of events that lines report."""
SLOW_S = 2.0
"""A build that takes longer is reported."""
_told = False
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_logger: "logging.Logger | None" = None


def _made() -> "logging.Logger":
    """Return the logger; this imports `logging`."""
    global _logger
    if _logger is None:
        import logging

        logger = logging.getLogger("tracejit")
        logger.addHandler(logging.NullHandler())  # what nobody asked for is not printed
        _logger = logger
    return _logger


def _found() -> "logging.Logger | None":
    """Return the logger, None while nobody has imported `logging` (Note [late logging])."""
    return _made() if _logger is not None or "logging" in sys.modules else None


def set_up(level: str) -> None:
    """Print log records of a level and above to standard error; nothing happens for "off"."""
    if level != "off":
        import logging

        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        _made().addHandler(handler)
        _made().setLevel(level.upper())


def enabled(level: int) -> bool:
    """Return whether anybody reads records of a level."""
    logger = _found()
    return logger is not None and logger.isEnabledFor(level)


def each_call() -> bool:
    """Return whether anybody reads a line for each call."""
    logger = _found()
    return logger is not None and 0 < logger.level <= DEBUG and logger.isEnabledFor(DEBUG)


def write(level: int, event: str, text: str) -> None:
    """Log a line."""
    logger = _found()
    if logger is not None:
        logger.log(level, "%s", text, extra={"event": event})


def tell_of_slow_build(text: str) -> None:
    """Log, at the first call in a process, a line that shows on a terminal even if no log is set up."""
    import logging

    global _told
    logger = _made()
    if _told or logger.disabled:
        return
    _told = True
    write(INFO, "build", text)
    if logger.level > INFO or _is_shown() or not (sys.stderr is not None and sys.stderr.isatty()):
        return
    record = logger.makeRecord(logger.name, INFO, "", 0, "%s", (text,), None, extra={"event": "build"})
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    handler.handle(record)


def _is_shown() -> bool:
    """Return whether a handler takes records of level INFO."""
    import logging

    logger: logging.Logger | None = _made()
    while logger is not None and enabled(INFO):
        if any(
            handler.level <= INFO for handler in logger.handlers if type(handler) is not logging.NullHandler
        ):
            return True
        logger = logger.parent if logger.propagate else None
    return False


@contextmanager
def silent() -> Iterator[None]:
    """Log nothing within the block."""
    logger = _made()
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


_found()  # a handler of a user that imported `logging` before this package comes behind ours
set_up(config.settings.log)
