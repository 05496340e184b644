# SPDX-License-Identifier: BSD-3-Clause
"""Functions that join arrays, and those that split one, with NumPy's names and arguments.

An axis may be named by number or, in a formatted array, by label.
"""

from collections.abc import Mapping, Set
from itertools import islice, pairwise
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError, TraceError
from tracejit.functions.axes import normalize_axis
from tracejit.functions.movement import atleast_1d, atleast_2d, ravel, sliced, with_axes
from tracejit.util.arguments import as_numbers, integer, integers
from tracejit.util.text import brief

_MOST_PARTS = 1 << 20  # arrays to join or to split into; an iterator may have no end


def _listed(function: str, arrays: Any) -> list[dlarray]:
    parts = arrays
    if not isinstance(arrays, (list, tuple)):
        try:
            parts = [] if isinstance(arrays, (Mapping, Set)) else list(islice(arrays, _MOST_PARTS + 1))
        except TraceError:
            raise
        except Exception:
            parts = []
    if not 0 < len(parts) <= _MOST_PARTS:
        raise ArgumentError(
            f"{function}: arrays must be a list or tuple of at least one array, not {brief(arrays)}."
        )
    return [as_array(array, function, f"arrays[{number}]") for number, array in enumerate(parts)]


def concatenate(arrays: Any, axis: Any = 0) -> dlarray:
    """Return arrays joined along an axis that they have.

    Args:
        arrays: list or tuple of dlarrays, ndarrays or lists; formatted ones must have the same format.
        axis: the axis, by number or label; None joins all elements along one axis.

    Returns:
        dlarray of their common dtype, formatted if one of them is.

    Raises:
        DimsError: if formats or the sizes of other axes differ, or there is no such axis.
        ArgumentError: if there is no array.

    Adjoint: the parts of ct.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.concatenate([np.zeros((2, 3)), np.zeros((4, 3))]).shape
        (6, 3)
    """
    parts = _listed("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    if len(parts) == 1:
        normalize_axis("concatenate", parts[0], axis)
        return parts[0].copy()
    leader = next((part for part in parts if part._format is not None), parts[0])
    return apply("concatenate", *parts, axis=normalize_axis("concatenate", leader, axis))


def stack(arrays: Any, axis: int = 0) -> dlarray:
    """Return arrays of the same size joined along a new axis, labelled U if they are formatted.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists; formatted ones must have one format.
        axis: the place of the new axis in the result.

    Returns:
        dlarray of their common dtype.

    Raises:
        DimsError: if sizes or formats differ, or the place is out of range.
        ArgumentError: if there is no array.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.stack([np.zeros(3), np.ones(3)], axis=1).shape
        (3, 2)
    """
    parts = _listed("stack", arrays)
    for part in parts:
        if part._data.shape != parts[0]._data.shape:
            raise DimsError(
                f"stack: arrays of sizes {describe_shape(parts[0]._data.shape, parts[0]._format)} and "
                f"{describe_shape(part._data.shape, part._format)} are given; all must have the same sizes."
            )
    place = integer("stack", "axis", axis)
    expanded_parts = [with_axes("stack", part, place) for part in parts]
    return concatenate(expanded_parts, place)


def vstack(arrays: Any) -> dlarray:
    """Return arrays joined along the first of at least two axes.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists; 1-D arrays are rows.

    Returns:
        dlarray in the common dtype of the arrays.

    Raises:
        ArgumentError: if `arrays` is not a list or tuple of at least one array.
        DimsError: if sizes differ along another axis than the one that is joined.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.vstack([np.zeros(3), np.ones((2, 3))]).shape
        (3, 3)
    """
    return concatenate([atleast_2d(part) for part in _listed("vstack", arrays)], 0)


def hstack(arrays: Any) -> dlarray:
    """Return arrays joined along the second axis, 1-D arrays along the first.

    Args:
        arrays: list or tuple of dlarrays, ndarrays, numbers or lists.

    Returns:
        dlarray in the common dtype of the arrays.

    Raises:
        ArgumentError: if `arrays` is not a list or tuple of at least one array.
        DimsError: if sizes differ along another axis than the one that is joined.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.hstack([np.zeros((2, 3)), np.ones((2, 1))]).shape
        (2, 4)
    """
    parts = [atleast_1d(part) for part in _listed("hstack", arrays)]
    return concatenate(parts, 0 if parts[0]._data.ndim == 1 else 1)


def split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[dlarray]:
    """Return the parts of `x` along an axis: equal parts, or those between the given places.

    Args:
        x: dlarray of any format, ndarray or list.
        indices_or_sections: the number of equal parts, or the sorted places at which to cut.
        axis: the axis, by number or label.

    Returns:
        List of dlarrays of the format and dtype of `x`.

    Raises:
        DimsError: if the axis does not divide into equal parts.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> [part.shape for part in tj.split(np.zeros(6), [1, 4])]
        [(1,), (3,), (2,)]
    """
    array = as_array(x, "split")
    axis = normalize_axis("split", array, axis)
    extent = array._data.shape[axis]
    indices_or_sections = as_numbers(indices_or_sections)
    places = integers("split", "indices_or_sections", indices_or_sections)
    if not _is_listed(indices_or_sections):
        (sections,) = places
        if sections < 1 or extent % sections:
            raise DimsError(
                f"split: axis {axis} of x ({describe_shape(array._data.shape, array._format)}) does not "
                f"divide into {brief(sections)} equal parts; use array_split, or give the places to cut at."
            )
    return _cut("split", array, indices_or_sections, axis)


def array_split(x: Any, indices_or_sections: Any, axis: Any = 0) -> list[dlarray]:
    """Return the parts of `x` along an axis as split does; the first parts are longer by 1 where needed.

    Args:
        x: dlarray of any format, ndarray or list.
        indices_or_sections: the number of parts, or the sorted places at which to cut.
        axis: the axis, by number or label.

    Raises:
        DimsError: if the number of parts is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> [part.shape for part in tj.array_split(np.zeros(5), 2)]
        [(3,), (2,)]
    """
    array = as_array(x, "array_split")
    return _cut("array_split", array, indices_or_sections, normalize_axis("array_split", array, axis))


def _is_listed(value: Any) -> bool:
    """Return whether integers() takes a value for several integers."""
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _cut(function: str, array: Any, indices_or_sections: Any, axis: int) -> list[dlarray]:
    extent = array._data.shape[axis]
    indices_or_sections = as_numbers(indices_or_sections)
    places = integers(function, "indices_or_sections", indices_or_sections)
    if not _is_listed(indices_or_sections):
        (sections,) = places
        if sections < 1:
            raise DimsError(f"{function}: the number of parts must be at least 1, not {brief(sections)}.")
        if sections > max(extent, _MOST_PARTS):
            raise DimsError(
                f"{function}: the number of parts must be at most {max(extent, _MOST_PARTS)} for {extent} elements "
                f"along axis {axis}, not {brief(sections)}."
            )
        extent_of_part, longer = divmod(extent, sections)
        places = tuple(part * extent_of_part + min(part, longer) for part in range(1, sections))
    edges = (0, *places, extent)
    return [sliced(array, {axis: slice(start, stop)}) for start, stop in pairwise(edges)]
