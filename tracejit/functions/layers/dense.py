# SPDX-License-Identifier: BSD-3-Clause
"""fullyconnect: one weighted sum of all channels for each output."""

import math
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.formats import describe, labelled, need_labels
from tracejit.functions.halves import in_single
from tracejit.functions.movement import permuted, relabel, reshaped

_OBSERVED = "BT"  # the labels of axes that stay; all others are summed over


@in_single
def fullyconnect(x: Any, weights: Any, bias: Any = None, *, data_format: str | None = None) -> dlarray:
    """Return weights times the channels of `x`, plus bias, for every observation and time step.

    Args:
        x: dlarray with any labels, or an unformatted array with `data_format`. Its axes S, C and U together
            are the channels, flattened in C order as they stand ('BSSC' of sizes (8, 4, 4, 3) has 48).
        weights: (outputs, channels); labels are ignored.
        bias: (outputs,), or None for none.
        data_format: labels of an unformatted `x`, such as "BC".

    Returns:
        dlarray with the axes B and T of `x` and, where its C stood (or its first S or U, if it has no C), the
        outputs, labelled C. Unformatted if `x` was.

    Raises:
        DimsError: if `x` has no labels or no channels, or the sizes of weights or bias do not fit.

    With x as a matrix of one observation in each row: y = x weights' + bias; the cotangents are ct weights
    for x, ct' x for weights and the sum of ct over all rows for bias.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.ones((4, 3)), "BC")
        >>> tj.fullyconnect(x, np.ones((2, 3)), [0.0, 1.0]).shape
        (4, 2)
    """
    array, formatted = labelled("fullyconnect", x, data_format)
    format = need_labels("fullyconnect", array, "fullyconnect sums over channels and keeps B and T")
    channels = tuple(axis for axis, label in enumerate(format) if label not in _OBSERVED)
    others = tuple(axis for axis, label in enumerate(format) if label in _OBSERVED)
    if not channels:
        raise DimsError(
            f"fullyconnect: X ({format!r}, {_sizes(array)}) has no channels to sum over; expected a label "
            "C, S or U."
        )
    shape = array._data.shape
    count = math.prod([shape[axis] for axis in channels])
    matrix = _weights(weights, format, array, count)
    outputs = matrix._data.shape[0]
    column = _bias(bias, outputs)

    place = format.find("C") if "C" in format else channels[0]
    kept = [axis for axis in range(len(format)) if axis in others or axis == place]
    result_format = "".join("C" if axis == place else format[axis] for axis in kept)
    rows = math.prod([shape[axis] for axis in others])
    plain = relabel(array, None)
    if channels == tuple(range(len(channels))):  # channels first: weights x
        flat = reshaped(plain, (count, rows), None)
        y = apply("matmul", matrix, flat)
        if column is not None:
            y = apply("add", y, reshaped(column, (outputs, 1), None))
        y = reshaped(y, (outputs, *(shape[axis] for axis in others)), None)
        at = 0
    else:  # channels last, if need be after a permutation: x weights'
        flat = reshaped(permuted(plain, others + channels), (rows, count), None)
        y = apply("matmul", flat, apply("transpose", matrix, axes=(1, 0)))
        if column is not None:
            y = apply("add", y, column)
        y = reshaped(y, (*(shape[axis] for axis in others), outputs), None)
        at = len(others)
    order = list(range(at)) + list(range(at + 1, len(kept)))
    order.insert(kept.index(place), at)
    return relabel(permuted(y, tuple(order)), result_format if formatted else None)


def _sizes(array: Any) -> str:
    return "x".join(map(str, array._data.shape))


def _weights(weights: Any, format: str, x: Any, count: int) -> dlarray:
    matrix = relabel(as_array(weights, "fullyconnect", "weights"), None)
    shape = matrix._data.shape
    if len(shape) != 2 or shape[1] != count:
        description = f"have {shape[1]} columns" if len(shape) == 2 else f"are of {describe(matrix)}"
        advice = "Pass weights.T?" if len(shape) == 2 and shape[0] == count else "Check both sizes."
        raise DimsError(
            f"fullyconnect: weights {description} but X ({format!r}, {_sizes(x)}) has {count} channels; "
            f"weights must be (outputs, channels). {advice}"
        )
    return matrix


def _bias(bias: Any, outputs: int) -> dlarray | None:
    if bias is None:
        return None
    vector = relabel(as_array(bias, "fullyconnect", "bias"), None)
    if vector._data.size != outputs or max(vector._data.shape, default=1) != outputs:
        raise DimsError(
            f"fullyconnect: bias is of {describe(vector)}, but weights have {outputs} rows; bias must be "
            "(outputs,)."
        )
    return reshaped(vector, (outputs,), None)
