# SPDX-License-Identifier: BSD-3-Clause
"""Arrays by where they lie in memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.util.devices import OnDevice


class Spans:
    """A list of things that belong to arrays, which finds those whose arrays may share memory with another one."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[bool, int, int, Any]] = []

    def __iter__(self) -> Iterator[Any]:
        return iter([thing for *_, thing in self._entries])

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, data: Any, thing: Any) -> None:
        """Add a thing that belongs to an array."""
        self._entries.append((*_span(data), thing))

    def near(self, data: Any) -> list[Any]:
        """Return the things whose arrays may share memory with an array, in their order."""
        if not self._entries:
            return []
        there, low, high = _span(data)
        return [
            thing
            for on_device, first, last, thing in self._entries
            if first < high and low < last and on_device is there
        ]


def _span(data: Any) -> tuple[bool, int, int]:
    """Return whether an array lies on a device, and the addresses of its first byte and of the one behind its last."""
    if isinstance(data, OnDevice):
        return (True, *data.span)
    if not data.size:
        return False, 0, 0
    return (False, *np.lib.array_utils.byte_bounds(data))
