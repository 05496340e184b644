# SPDX-License-Identifier: BSD-3-Clause
"""Views that NumPy made of arrays which a replay finds: ``self.columns = self.w.reshape(8, -1).T`` of an ndarray.

A replay makes such a view again, of the array that is there at that time. It must not take an older view for that
array: where ``self.columns`` was read, two arrays show the memory of ``self.w``. An array that an
assignment replaces does not count where there is another one. If two arrays count, a replay could find either in
other memory, so the function is not replayed.
"""

import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tracejit.capture.arrays import is_within
from tracejit.capture.changes import Assignment
from tracejit.capture.state import CapturedState
from tracejit.capture.values import arrays_inside
from tracejit.util.devices import address
from tracejit.util.memory import owner_of
from tracejit.util.named_tuples import NamedTuple


class ViewedPart(NamedTuple):
    """The part of an array that a view shows; offset and strides count bytes."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    writeable: bool


def part_of(base: np.ndarray, view: np.ndarray) -> ViewedPart:
    """Return which elements of an array a view shows."""
    return ViewedPart(
        address(view) - address(base), view.shape, view.strides, view.dtype, view.flags.writeable
    )


def shown(base: np.ndarray, part: ViewedPart) -> np.ndarray:
    """Return the view of an array that shows a part of it; it has the size and the layout of the array in part_of()."""
    memory = _memory(owner_of(base))
    assert memory is not None
    view = np.ndarray(
        part.shape, part.dtype, memory, address(base) + part.offset - address(memory), part.strides
    )
    view.flags.writeable = part.writeable and base.flags.writeable
    return view


def _memory(owner: np.ndarray) -> np.ndarray | None:
    """Return an array as one whose bytes lie in its order, None if there are gaps."""
    return owner if owner.flags.c_contiguous else owner.T if owner.flags.f_contiguous else None


class Bases:
    """The arrays that views can be views of.

    Args:
        reads: the state of a function that has ended.
        changes: what it has assigned.
    """

    def __init__(self, reads: CapturedState, changes: Sequence[Assignment]) -> None:
        self._reads = reads
        self._changes = changes
        self._found: dict[int, np.ndarray | None] = {}

    def of(self, view: np.ndarray) -> np.ndarray | None:
        """Return the array that a view shows a part of, or None if there is none, or more than one."""
        if id(view) not in self._found:
            self._found[id(view)] = self._search(view)
        return self._found[id(view)]

    def _search(self, view: np.ndarray) -> np.ndarray | None:
        owner = owner_of(view)
        if not view.size or _memory(owner) is None:
            return None
        bases = [
            array
            for array in self._reads.reached_arrays()
            if array is not view and owner_of(array) is owner and is_within(view, array)
        ]
        if len(bases) > 1:
            replaced = {
                id(x) for change in self._changes for x in (change.before, *arrays_inside(change.before))
            }
            bases = [array for array in bases if id(array) not in replaced]
        return bases[0] if len(bases) == 1 else None

    def is_made(self, view: np.ndarray) -> bool:
        """Return whether nothing but notes of the recording, and views that are assigned, refers to a view's memory."""
        if not view.size:
            return True
        owner = owner_of(view)
        if not owner.flags.owndata:
            return False
        assigned = [x for change in self._changes for x in (change.after, *arrays_inside(change.after))]
        noted = self._reads.noted_arrays()
        views = {id(x): x for x in (*assigned, *noted) if type(x) is np.ndarray}
        known = sum(x.base is owner for x in views.values()) + Counter(map(id, noted))[id(owner)]
        owners = sum(x is owner for x in views.values())
        del assigned, noted, views
        # The variable, and the argument of getrefcount.
        return sys.getrefcount(owner) <= known + owners + 2
