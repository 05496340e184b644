# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of two results, for checks."""

from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.record import recorder
from tracejit.util.devices import on_host
from tracejit.util.text import shown


def first_difference(actual: Any, expected: Any, tolerance: float, what: str = "output") -> str | None:
    """Return where and by how much a result first differs from the expected one, or None.

    Args:
        actual, expected: containers of arrays and other values.
        tolerance: largest accepted difference of two numbers, absolute or relative; NaN equals NaN.
        what: name of the result.
    """
    leaves, treedef = tree.flatten(actual)
    expected_leaves, expected_treedef = tree.flatten(expected)
    difference = tree.difference(treedef, expected_treedef, what)
    if difference is not None:
        return difference
    for name, leaf, wanted in zip(tree.paths(treedef, what), leaves, expected_leaves, strict=True):
        difference = difference_of_leaves(name, leaf, wanted, tolerance)
        if difference is not None:
            return difference
    return None


def difference_of_leaves(name: str, mine: Any, theirs: Any, tolerance: float) -> str | None:
    """Return how two leaves of an output, or two arrays that were written, differ by more than `tolerance`, or None."""
    # A value that is computed from numbers alone is a dlarray once they vary.
    if type(mine) is dlarray and isinstance(theirs, (np.ndarray, np.generic)):
        theirs = recorder.wrap(np.asarray(theirs))
    elif type(theirs) is dlarray and isinstance(mine, (np.ndarray, np.generic)):
        mine = recorder.wrap(np.asarray(mine))
    if type(mine) is dlarray and type(theirs) is dlarray:
        if mine.shape != theirs.shape or mine.format != theirs.format or mine.dtype != theirs.dtype:
            return f"{name} is {recorder.describe(mine)}, expected {recorder.describe(theirs)}"
        mine, theirs = on_host(mine._data), on_host(theirs._data)
    elif mine is theirs:
        return None
    a, b = np.asarray(mine), np.asarray(theirs)
    alike = type(mine) is type(theirs) and a.shape == b.shape
    if not alike or a.dtype.kind not in "fiub":
        return (
            None if alike and np.array_equal(a, b) else f"{name} is {shown(mine)}, expected {shown(theirs)}"
        )
    if a.dtype.kind != "f":
        a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        close = np.isfinite(gap) & ((gap <= tolerance) | (gap <= tolerance * np.abs(b)))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | close
    if same.all():
        return None
    worst = np.unravel_index(np.argmax(np.where(same, -1, np.nan_to_num(gap, nan=np.inf))), gap.shape)
    place = f"[{', '.join(map(str, worst))}]" if worst else ""
    return (
        f"{name}{place} is {np.asarray(mine)[worst]!s}, expected {np.asarray(theirs)[worst]!s} ({(~same).sum()} of "
        f"{same.size} elements differ by more than {tolerance:g})"
    )
