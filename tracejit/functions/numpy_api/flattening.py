# SPDX-License-Identifier: BSD-3-Clause
"""Arrays without axes, for NumPy's functions that take all elements where no axis is named.

Labels: none, because elements of several axes have none in common.
"""

from typing import Any

from tracejit.array import as_array, dlarray
from tracejit.functions.axes import normalize_axis
from tracejit.functions.movement import ravel, relabel


def flattened(function: str, x: Any, argument: str = "x") -> dlarray:
    """Return the elements of an argument in C order, as an unformatted vector."""
    return relabel(ravel(as_array(x, function, argument)), None)


def line(function: str, x: Any, axis: Any) -> tuple[dlarray, int]:
    """Return an argument and the axis to work along: that of its elements in C order where `axis` is None."""
    if axis is None:
        return flattened(function, x), 0
    array = as_array(x, function)
    return array, normalize_axis(function, array, axis)
