# SPDX-License-Identifier: BSD-3-Clause
"""Activations: functions of each element (relu, sigmoid, gelu, ...) and of each channel vector (softmax)."""

import math
from typing import Any

from tracejit.array import apply, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.axes import normalize_axes
from tracejit.functions.formats import describe, floating, labelled, need_labels, operand
from tracejit.functions.halves import in_single
from tracejit.functions.movement import relabel
from tracejit.util.arguments import is_option
from tracejit.util.text import brief


def relu(x: Any) -> dlarray:
    """Return max(x, 0), NaN where x is NaN.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    The cotangent passes where x > 0; the derivative at 0 is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.relu([-1.0, 0.5])
        2 dlarray float64
        [0.  0.5]
    """
    return apply("relu", x)


def leakyrelu(x: Any, scale: Any = 0.01) -> dlarray:
    """Return x where x > 0, and scale x elsewhere.

    Args:
        x: dlarray of any format, ndarray or number.
        scale: factor of what is not positive; number or scalar dlarray.

    Returns:
        dlarray of the sizes and the format of `x`.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.
        DimsError: if `scale` is not a scalar and does not broadcast with `x`.

    The cotangent is multiplied by 1 where x > 0 and by `scale` elsewhere, at 0 too.

    Examples:
        >>> import tracejit as tj
        >>> tj.leakyrelu([-1.0, 0.5], 0.1)
        2 dlarray float64
        [-0.1  0.5]
    """
    array = floating("leakyrelu", x)
    scaled = apply("mul", array, operand("leakyrelu", "scale", scale))
    return apply("where", apply("greater", array, 0.0), array, scaled)


@in_single
def sigmoid(x: Any) -> dlarray:
    """Return y = 1 / (1 + exp(-x)), without overflow for any x.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    The cotangent is multiplied by y (1 - y).

    Examples:
        >>> import tracejit as tj
        >>> tj.sigmoid([-1000.0, 0.0, 1000.0])
        3 dlarray float64
        [0.  0.5 1. ]
    """
    return apply("sigmoid", x)


@in_single
def softplus(x: Any) -> dlarray:
    """Return log(1 + exp(x)), without overflow for any x and exact for very negative x.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    The cotangent is multiplied by sigmoid(x).

    Examples:
        >>> import tracejit as tj
        >>> tj.softplus([-1000.0, 0.0, 1000.0]).tolist()
        [0.0, 0.6931471805599453, 1000.0]
    """
    return apply("softplus", x)


@in_single
def gelu(x: Any, *, approximation: str = "none") -> dlarray:
    """Return the Gaussian error linear unit, x times the probability that a standard normal is below x.

    Args:
        x: dlarray of any format, ndarray or number.
        approximation: "none" for x (1 + erf(x / sqrt 2)) / 2, or "tanh" for
            x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2, which differs by 5e-4 at most.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: for any other `approximation`.

    Examples:
        >>> import tracejit as tj
        >>> round(tj.gelu(1.0).item(), 6)
        0.841345
    """
    array = floating("gelu", x)
    if not is_option(approximation, ("none", "tanh")):
        raise ArgumentError(f'gelu: approximation must be "none" or "tanh", not {brief(approximation)}.')
    if approximation == "none":
        twice = apply("add", apply("erf", apply("mul", array, math.sqrt(0.5))), 1.0)
    else:
        root = math.sqrt(2 / math.pi)
        factor = apply("add", apply("mul", apply("square", array), 0.044715 * root), root)
        twice = apply("add", apply("tanh", apply("mul", array, factor)), 1.0)
    return apply("mul", apply("mul", array, 0.5), twice)


@in_single
def softmax(x: Any, *, axis: Any = None, data_format: str | None = None) -> dlarray:
    """Return y = exp(x) / sum(exp(x)), the sum over the channels, without overflow.

    Args:
        x: dlarray with a label C; or, with `axis` or `data_format`, an unformatted array.
        axis: axes to sum over instead of C: an integer, a tuple of integers, or a string of labels.
        data_format: labels of an unformatted `x`, such as "BC".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if the channels cannot be found: no format, no label C, or an axis out of range; or if
            `data_format` is given for a formatted `x`.
        ArgumentError: if both `axis` and `data_format` are given.

    The cotangent becomes y (ct - sum(ct y)).

    Examples:
        >>> import tracejit as tj
        >>> tj.softmax(tj.dlarray([[1000.0, 1000.0]], "BC"))
        1(B) x 2(C) dlarray float64
        [[0.5 0.5]]
    """
    return softmax_over(*_channels("softmax", x, axis, data_format))


@in_single
def softmax_over(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return softmax of a floating-point array over axes by number."""
    if not array._data.size:
        return array
    powers = apply("exp", _shifted(array, axes))
    # One division for each sum: products are several times faster.
    return apply("mul", powers, apply("reciprocal", apply("sum", powers, axes=axes, keepdims=True)))


@in_single
def logsoftmax(x: Any, *, axis: Any = None, data_format: str | None = None) -> dlarray:
    """Return log(softmax(x)) = x - log(sum(exp(x))), exact where softmax is 0.

    Args:
        x: dlarray with a label C; or, with `axis` or `data_format`, an unformatted array.
        axis: axes to sum over instead of C: an integer, a tuple of integers, or a string of labels.
        data_format: labels of an unformatted `x`, such as "BC".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if the channels cannot be found: no format, no label C, or an axis out of range; or if
            `data_format` is given for a formatted `x`.
        ArgumentError: if both `axis` and `data_format` are given.

    The cotangent becomes ct - softmax(x) sum(ct).

    Examples:
        >>> import tracejit as tj
        >>> tj.logsoftmax(tj.dlarray([[0.0, 1000.0]], "BC")).tolist()
        [[-1000.0, 0.0]]
    """
    return logsoftmax_over(*_channels("logsoftmax", x, axis, data_format))


@in_single
def logsoftmax_over(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return logsoftmax of a floating-point array over axes by number."""
    if not array._data.size:
        return array
    shifted = _shifted(array, axes)
    total = apply("sum", apply("exp", shifted), axes=axes, keepdims=True)
    return apply("sub", shifted, apply("log", total))


def _channels(function: str, x: Any, axis: Any, data_format: str | None) -> tuple[dlarray, tuple[int, ...]]:
    """Return `x` as a floating-point array with the format of the result, and the axes of its channels."""
    if axis is not None:
        if data_format is not None:
            raise ArgumentError(
                f"{function}: axis={brief(axis)} and data_format={brief(data_format)} both say where the channels are; "
                "pass one of them."
            )
        array = floating(function, x)
        return array, normalize_axes(function, array, axis)
    array, formatted = labelled(function, x, data_format)
    format = need_labels(function, array, f"{function} sums over the channels (C)", ", or pass axis")
    place = format.find("C")
    if place < 0:
        raise DimsError(
            f"{function}: an array of {describe(array)} has no channels (C) to sum over; "
            "name the axis instead, with axis=."
        )
    return floating(function, array if formatted else relabel(array, None)), (place,)


def _shifted(array: dlarray, axes: tuple[int, ...]) -> dlarray:
    """Return `array` less its largest element over `axes`, so that exp does not overflow."""
    # The results do not depend on the shift, so that no derivative is taken through it.
    largest = apply("stop_gradient", apply("max", array, axes=axes, keepdims=True))
    return apply("sub", array, largest)
