# SPDX-License-Identifier: BSD-3-Clause
"""Elements that a run has appended to lists and deques that were there before it.

Note [growth]
``self.losses.append(loss)`` reads nothing of the list, so that a replay can append as much. That is certain only where
each method that was called of the list appends, nothing compares its elements, and no other code can have put some
there: the elements that it had are still there, in their order, before the new ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tracejit.capture.observed import Contents, Observed, Slot
from tracejit.capture.values import SEQUENCES

APPENDING = frozenset({"append", "extend"})


class GrowthSlot(Slot):
    """The place behind the last element of a list or a deque."""

    __slots__ = ()

    def path(self, owner: str) -> str:
        return f"{owner}.append()"


class ElementsSlot(Slot):
    """All that a list or a dict among the arguments holds."""

    __slots__ = ()


class Held:
    """The elements that append() has a list or a deque hold again."""

    __slots__ = ("elements",)

    def __init__(self, elements: Iterable[Any]) -> None:
        self.elements = (*elements,)


def append(container: Any, values: Sequence[Any] | Held) -> None:
    """Append values to a container; or have it be what it was."""
    if type(values) is not Held:
        container.extend(values)
        return
    container.clear()
    container.extend(values.elements)


def elements_in(value: Any) -> Any:
    """Return what was at a place as something that can be compared."""
    return [*value.elements] if type(value) is Held else value


def is_appended(observed: Observed, methods: Sequence[str]) -> bool:
    """Return whether nothing but elements at the end was put into a list or a deque; a full deque moves the others."""
    return (
        type(observed.value) in SEQUENCES
        and observed.held is None
        and bool(methods)
        and APPENDING.issuperset(methods)
        and not any(slot.is_assigned or slot.additions for slot in observed.slots.values())
    )


def appended(observed: Observed, was: Contents, now: Contents, methods: Sequence[str]) -> list[Any] | None:
    """Return the values that a run has appended to a container; None if that is not certain.

    Args:
        observed: the container.
        was: its elements before.
        now: its elements.
        methods: the names of the methods that were called of it and may change it, for each call.
    """
    container = observed.value
    if type(container) not in SEQUENCES:
        return None
    if not methods or not APPENDING.issuperset(methods):
        return None
    before, after = tuple(was), tuple(now)
    limit = getattr(container, "maxlen", None)
    count = len(methods) if {*methods} == {"append"} else None  # of new elements
    if limit is None:
        dropped = 0
    elif count is not None:
        dropped = min(max(len(before) + count - limit, 0), len(before))
    elif len(after) < limit or len({*map(id, before)}) == len(before):
        dropped = next((n for n in range(len(before)) if _begins(after, before[n:])), len(before))
    else:  # equal elements do not tell which are new
        return None
    kept = before[dropped:]
    values = [*after[len(kept) :]]
    if not _begins(after, kept) or (count is not None and len(values) != min(count, limit or count)):
        return None
    return values


def _begins(elements: Sequence[Any], first: Sequence[Any]) -> bool:
    """Return whether some elements begin with others."""
    return len(elements) >= len(first) and all(x is y for x, y in zip(first, elements, strict=False))
