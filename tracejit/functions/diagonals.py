# SPDX-License-Identifier: BSD-3-Clause
"""Diagonals of arrays: views, as in NumPy."""

from typing import Any

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.functions.movement import permuted, reshaped
from tracejit.record import views
from tracejit.util.devices import OnDevice, may_share_memory


def diagonal_view(array: dlarray, first: int, second: int, offset: int) -> dlarray:
    """Return the diagonal of two axes as the last axis of an unformatted array, as a strided view."""
    part = Diagonal(array._data.shape, first, second, offset)
    found = part.of(array)
    if not found._data.size or isinstance(array._data, OnDevice):
        return found
    if may_share_memory(found._data, array._data):
        return found
    # The two axes do not lie as one in memory, so that what was sliced is a copy of the array.
    return views.seen(array, part, found)  # type: ignore[no-any-return]


class Diagonal:
    """The diagonal of two axes, which comes last: a view that goes by no op.

    Args:
        shape: the sizes of the array.
        first, second: the axes.
        offset: how far the diagonal lies above the main one, or below it if negative.
    """

    name = "diagonal"

    __slots__ = ("_axes", "_matrices", "_offset", "_order", "_rows", "_slice")

    def __init__(self, shape: tuple[int, ...], first: int, second: int, offset: int) -> None:
        self._axes = first, second
        self._offset = offset
        others = tuple(axis for axis in range(len(shape)) if axis not in (first, second))
        rows, columns = shape[first], shape[second]
        lead = tuple(shape[axis] for axis in others)
        length = max(min(rows - max(-offset, 0), columns - max(offset, 0)), 0)
        start, step = (offset if offset > 0 else -offset * columns) if length else 0, columns + 1
        self._order = (*others, first, second)
        self._matrices = (*lead, rows, columns)
        self._rows = (*lead, rows * columns)
        self._slice = {
            "starts": (0,) * len(lead) + (start,),
            "stops": (*lead, start + (length - 1) * step + 1 if length else 0),
            "steps": (1,) * len(lead) + (step,),
        }

    def of(self, array: dlarray) -> dlarray:
        """Return the diagonal of an array, by recorded operations."""
        return apply("slice", self._flat(array), **self._slice)

    def numpy(self, data: np.ndarray) -> np.ndarray:
        """Return NumPy's view of an ndarray, which can be written where the ndarray can."""
        first, second = self._axes
        diagonal = data.diagonal(self._offset, first, second)
        diagonal.flags.writeable = data.flags.writeable
        return diagonal

    def view(self, _: Any, array: dlarray, new: dlarray) -> dlarray:
        """Return an array with other elements on the diagonal."""
        flat = apply("setslice", self._flat(array), new, **self._slice)
        back = tuple(int(axis) for axis in np.argsort(self._order))
        return permuted(reshaped(flat, self._matrices, None), back)

    def _flat(self, array: dlarray) -> dlarray:
        return reshaped(permuted(array, self._order), self._rows, None)
