# SPDX-License-Identifier: BSD-3-Clause
"""The function that users' loops call."""

from typing import Any


def checked_index(index: int, size: int, fault: Any) -> int:
    """Return an index into an axis, counted from the end if it is negative; one out of range sets fault[0] and is 0."""
    if index < 0:
        index += size
    if index < 0 or index >= size:
        fault[0] = 1
        return 0
    return index
