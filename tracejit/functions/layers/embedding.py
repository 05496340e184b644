# SPDX-License-Identifier: BSD-3-Clause
"""embed: a vector of channels for each integer."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import check_format
from tracejit.errors import BoundsError, DimsError, DTypeError
from tracejit.functions.formats import describe, floating, labelled
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.util.text import brief


def embed(
    x: Any, weights: Any, *, data_format: str | None = None, weights_format: str | None = None
) -> dlarray:
    """Return the vectors of a table that the integers in `x` name.

    Args:
        x: integers from 0 to vocabulary - 1; a dlarray of any format without C, or with a C of size 1, or an
            unformatted array.
        weights: the table, (vocabulary, channels) or a dlarray with the labels U (vocabulary) and C (channels).
        data_format: labels of an unformatted `x`, such as "BT".
        weights_format: labels of an unformatted table, "UC" (the default, and faster) or "CU".

    Returns:
        dlarray with the axes of `x` and the channels, labelled C: in place of a C of `x`, otherwise last. Unformatted
        if `x` was.

    Raises:
        DTypeError: if `x` holds no integers.
        BoundsError: if an integer is no row of the table.
        DimsError: if labels or sizes do not fit.

    The cotangent of a row of the table is the sum of ct over all places that name it, in their order.

    Examples:
        >>> import tracejit as tj
        >>> tj.embed(tj.dlarray([1, 0, 1], "T"), [[0.0, 0.5], [1.0, 1.5]])
        3(T) x 2(C) dlarray float64
        [[1.  1.5]
         [0.  0.5]
         [1.  1.5]]
    """
    array, formatted = labelled("embed", x, data_format)
    if array._data.dtype.kind not in "iu":
        raise DTypeError(
            f"embed: x has dtype {array._data.dtype}, expected integers, the numbers of rows; cast them "
            "(x.astype(np.int64))."
        )
    table = _table(weights, weights_format)
    format, shape = array._format, array._data.shape
    at = -1 if format is None else format.find("C")
    if at >= 0 and shape[at] != 1:
        raise DimsError(
            f"embed: x of {describe(array)} has {shape[at]} channels; the channels of the result take their place, so "
            "there must be 1, or none."
        )
    numbers = relabel(array, None)
    _check(numbers, table)
    flat = reshaped(numbers, (numbers._data.size,), None)
    rows = apply("embed", table, flat)
    kept = [n for axis, n in enumerate(shape) if axis != at] if at >= 0 else list(shape)
    y = reshaped(rows, (*kept, table._data.shape[1]), None)
    if at >= 0:
        last = len(kept)
        y = permuted(y, (*range(at), last, *range(at, last)))
    labels = format if at >= 0 or format is None else f"{format}C"
    return relabel(y, labels if formatted else None)


def _table(weights: Any, weights_format: str | None) -> dlarray:
    """Return the table as (vocabulary, channels), without labels."""
    table = as_array(weights, "embed", "weights")
    labels = table._format
    if weights_format is not None:
        if labels is not None:
            raise DimsError(
                f"embed: weights_format={brief(weights_format)} is given for weights of {describe(table)}, which have "
                "labels of their own; leave weights_format out."
            )
        labels = check_format("embed", weights_format, table._data.ndim, "weights_format")
    if table._data.ndim != 2 or labels not in (None, "UC", "CU"):
        raise DimsError(
            f"embed: weights are of {describe(table)}; expected a table (vocabulary, channels), or the labels U and C."
        )
    plain = floating("embed", relabel(table, None))
    return permuted(plain, (1, 0)) if labels == "CU" else plain


def _check(numbers: dlarray, table: dlarray) -> None:
    """Raise an error for a number that is no row, as the op does in a replay."""
    count = table._data.shape[0]
    outside = (numbers._data < 0) | (numbers._data >= count)
    if np.any(outside):
        raise BoundsError(
            f"embed: {numbers._data[outside][0]} is no row of weights, which have {count}; valid numbers are 0 to "
            f"{count - 1}."
        )
