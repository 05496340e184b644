# SPDX-License-Identifier: BSD-3-Clause
"""Warnings and log lines of an accelerated function; each warning is given once."""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.accelerate.cache import TraceCache
from tracejit.accelerate.messages import PendingWarning
from tracejit.call.explain import describe
from tracejit.call.signature import Key
from tracejit.errors import NotAcceleratedWarning
from tracejit.ir import Where
from tracejit.record.recorder import user_location
from tracejit.traces.report import Miss, explain_hit, explain_miss
from tracejit.traces.trace import Trace
from tracejit.util import logs


class _Uncompiled(threading.local):
    """The lines because of which functions of this thread are running uncompiled now, innermost last."""

    lines: tuple[Where, ...] = ()


_uncompiled = _Uncompiled()


@contextmanager
def running_uncompiled(where: Where) -> Iterator[None]:
    """Suppress, in the block, the warning that an inner function runs uncompiled because of the same line."""
    around = _uncompiled.lines
    _uncompiled.lines = (*around, where)
    try:
        yield
    finally:
        _uncompiled.lines = around


class Reporter:
    """Tells users and the log what an accelerated function does.

    Args:
        name: of the function, for warnings.
        label: its name, file and line, for the log.
        function: the underlying function.
        cache: of the function.

    Attributes:
        warned: categories and causes of the warnings that were given.
    """

    def __init__(self, name: str, label: str, function: Callable[..., Any], cache: TraceCache) -> None:
        self._name = name
        self._label = label
        self._function = function
        self._cache = cache
        self.warned: set[Any] = set()

    def warn(self, pending: PendingWarning) -> None:
        """Give a warning, unless one of its category and cause was given before."""
        if (pending.category, pending.cause) in self.warned:
            return
        logs.write(logs.WARNING, "warning", self._label + pending.text.removeprefix(self._name))
        if pending.category is NotAcceleratedWarning and pending.where and pending.where in _uncompiled.lines:
            return
        self.warned.add((pending.category, pending.cause))
        _give(pending)

    def warn_each_time(self, pending: PendingWarning) -> None:
        """Give a warning, even if it was given before."""
        logs.write(logs.WARNING, "warning", f"{self._label}: {pending.text}")
        _give(pending)

    def explain(self, miss: Miss, cache_size: int, name: str | None = None) -> str:
        """Return in words why a call was no hit."""
        variants = self._cache.variants.get(miss.key)
        needed = self._cache.numbers.needed_in(miss.key)
        return explain_miss(name or self._name, self._function, miss, variants, cache_size, needed)

    def log_hit(self, trace: Trace) -> None:
        """Log a replay: the first one of a trace, or each one if the log is that detailed."""
        is_first, trace.replayed = not trace.replayed, True
        if logs.enabled(logs.INFO) if is_first else logs.each_call():
            level = logs.INFO if is_first else logs.DEBUG
            logs.write(level, "hit", explain_hit(self._label, self._function, trace.key))

    def log_miss(self, miss: Miss, cache_size: int, more: str = "", level: int = logs.INFO) -> None:
        """Log a call that was no hit."""
        if logs.enabled(level):
            logs.write(level, "miss", f"{self.explain(miss, cache_size, self._label)}{more}")

    def log_eviction(self, key: Key, cache_size: int) -> None:
        """Log that the traces of a key were dropped."""
        if logs.enabled(logs.INFO):
            described = describe(self._function, key)
            full = f"more than cache_size ({cache_size}) signatures are in use"
            logs.write(logs.INFO, "evict", f"{self._label}: evicted the traces for {described}: {full}.")


def _give(pending: PendingWarning) -> None:
    file, line = pending.where or user_location() or ("<unknown>", 0)
    warnings.warn_explicit(pending.text, pending.category, file, line)
