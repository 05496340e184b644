# SPDX-License-Identifier: BSD-3-Clause
"""Copies of what objects hold: their parts by key or index, and whether they are the same."""

import operator
from collections.abc import Collection
from typing import Any

from tracejit.capture.named import ObservedInstance
from tracejit.capture.observed import Contents, Observed, Slot
from tracejit.capture.slots import AttributeSlot, ItemSlot


def kind_of_slots(observed: Observed) -> type[Slot]:
    """Return the kind of the slots that the contents of an object stand for."""
    return AttributeSlot if isinstance(observed, ObservedInstance) else ItemSlot


def parts_of(contents: Contents) -> Collection[Any]:
    """Return what contents hold."""
    return contents.values() if type(contents) is dict else contents


def by_key(contents: Contents) -> dict[Any, Any]:
    """Return contents by key or index: a dict is returned itself."""
    return contents if type(contents) is dict else dict(enumerate(contents))


def are_same(before: Contents, now: Contents) -> bool:
    """Return whether an object held the same objects, in the same order."""
    if len(before) != len(now) or not all(map(operator.is_, parts_of(before), parts_of(now))):
        return False
    return type(before) is not dict or all(map(operator.is_, before, now))
