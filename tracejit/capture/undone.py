# SPDX-License-Identifier: BSD-3-Clause
"""The end of a recording whose function has raised an error: the user's objects hold again what they held before.

Of the places that have changed, the assignments tell (changes.py). Containers get back what they held as a whole, where
other changes are undone that no replay can repeat, as those of list.insert(). What objects of libraries keep (the
elements of a queue, memory of a file) stays as it is: other threads, or the code of the library, may rely on it.
"""

import sys
import types
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from threading import local
from typing import Any

from tracejit.capture.changes import Assignment
from tracejit.capture.contents import are_same
from tracejit.capture.objects import CHANGING
from tracejit.capture.observed import Contents, Observed
from tracejit.capture.places import put, reorder
from tracejit.capture.slots import ItemSlot
from tracejit.capture.snapshot import Snapshot
from tracejit.capture.values import MAPPINGS, SEQUENCES
from tracejit.record.monitor import is_user_class
from tracejit.record.side_effects import MEMORIES

_CONTAINERS = CHANGING | MEMORIES
_NAMESPACES = (types.FunctionType, types.ModuleType, types.SimpleNamespace, partial, local)


def is_of_user(owner: Any) -> bool:
    """Return whether an object is one that only the user's code assigns to."""
    kind = owner if isinstance(owner, type) else type(owner)
    return (
        kind in MAPPINGS
        or kind in SEQUENCES
        or is_user_class(kind)
        or isinstance(owner, (*_NAMESPACES, getattr(sys.modules.get("argparse"), "Namespace", type(None))))
    )


def put_back(
    snapshot: Snapshot, assignments: Sequence[Assignment], orders: Sequence[tuple[dict[Any, Any], list[Any]]],
    reachable: Collection[int],
) -> None:  # fmt: skip
    """Have the user's objects hold what they held before a run.

    Args:
        snapshot: what was observed.
        assignments: what the run has put into places, which may be undone already.
        orders: dicts that got or lost keys, and the keys that they had.
        reachable: ids of the objects that a replay can find.
    """
    observed = [snapshot.objects[ident] for ident in reachable]
    kept = _kept_by_libraries(observed)
    for change in reversed(assignments):
        if is_of_user(change.owner) and id(change.owner) not in kept:
            change.undo()
    for space, keys in orders:
        reorder(space, keys)
    for each in observed:
        before = snapshot.contents.get(id(each.value))
        now = each.contents() if type(each.value) in _CONTAINERS and id(each.value) not in kept else None
        if before is None or now is None:
            continue
        if before != now if type(each.value) in MEMORIES else not are_same(before, now):
            _fill(each.value, before)


def _kept_by_libraries(observed: Sequence[Observed]) -> set[int]:
    """Return the ids of what objects of libraries hold."""
    others = [each for each in observed if type(each.value) not in _CONTAINERS and not is_of_user(each.value)]
    return {id(slot.value) for each in others for slot in each.slots.values()}


def _fill(container: Any, contents: Contents) -> None:
    """Have a container hold the given contents."""
    if type(contents) is dict and type(container) in MEMORIES:
        with suppress(BufferError):  # a memory that has views cannot get its old size back
            _fill_memory(container, contents["bytes"])
        return
    container.clear()
    if type(contents) is dict:
        for key, value in contents.items():
            put(container, ItemSlot, key, value)
    elif type(container) in SEQUENCES:
        container.extend(contents)
    else:
        container.update(contents)


def _fill_memory(memory: Any, contents: bytes) -> None:
    with memoryview(memory) as view:
        is_same_size = view.nbytes == len(contents)
        if is_same_size:
            view.cast("B")[:] = contents
    if not is_same_size:
        del memory[:]
        memory.extend(contents) if isinstance(memory, bytearray) else memory.frombytes(contents)
