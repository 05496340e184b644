# SPDX-License-Identifier: BSD-3-Clause
"""Further activations: exponential, smooth and piecewise linear variants of relu, and gates."""

import math
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import describe, floating, in_dtype, labelled, need_labels, operand
from tracejit.functions.halves import in_single
from tracejit.functions.movement import apart, relabel, reshaped, sliced
from tracejit.util.arguments import real
from tracejit.util.text import brief

# With these, numbers of mean 0 and variance 1 have that mean and variance again.
_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772


@in_single
def elu(x: Any, alpha: Any = 1.0) -> dlarray:
    """Return the exponential linear unit: x where x > 0, and alpha (exp(x) - 1) elsewhere.

    Args:
        x: dlarray of any format, ndarray or number.
        alpha: the limit of the unit for very negative x is -alpha; number or scalar dlarray.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.
        DimsError: if `alpha` is not one number.

    The derivative is 1 where x > 0 and alpha exp(x) elsewhere, at 0 too. Clevert, Unterthiner and Hochreiter, 2015.

    Examples:
        >>> import tracejit as tj
        >>> tj.elu([-1000.0, 0.5], 2.0)
        2 dlarray float64
        [-2.   0.5]
    """
    array = floating("elu", x)
    return _exponential(array, _parameter("elu", "alpha", alpha), None)


@in_single
def selu(x: Any) -> dlarray:
    """Return the scaled exponential linear unit: 1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks", 2017.

    Examples:
        >>> import tracejit as tj
        >>> round(tj.selu(1.0).item(), 4)
        1.0507
    """
    return apply("mul", _exponential(floating("selu", x), _SELU_ALPHA, None), _SELU_SCALE)


@in_single
def celu(x: Any, alpha: Any = 1.0) -> dlarray:
    """Return the continuously differentiable exponential unit: x where x > 0, alpha (exp(x / alpha) - 1) elsewhere.

    Args:
        x: dlarray of any format, ndarray or number.
        alpha: the limit of the unit for very negative x is -alpha; number other than 0, or scalar dlarray.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `alpha` is 0.

    Barron, "Continuously differentiable exponential linear units", 2017.

    Examples:
        >>> import tracejit as tj
        >>> tj.celu([-1000.0, 0.5], 2.0)
        2 dlarray float64
        [-2.   0.5]
    """
    array = floating("celu", x)
    factor = _parameter("celu", "alpha", alpha)
    if type(factor) in (int, float) and factor == 0:
        raise ArgumentError("celu: alpha must not be 0, because x is divided by it.")
    return _exponential(array, factor, factor)


@in_single
def swish(x: Any, beta: Any = 1.0) -> dlarray:
    """Return x sigmoid(beta x), for beta = 1 also called the sigmoid linear unit.

    Args:
        x: dlarray of any format, ndarray or number.
        beta: number or scalar dlarray.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.
        DimsError: if `beta` is not one number.

    Ramachandran, Zoph and Le, "Searching for activation functions", 2017.

    Examples:
        >>> import tracejit as tj
        >>> tj.swish([0.0, 1000.0])
        2 dlarray float64
        [   0. 1000.]
    """
    array = floating("swish", x)
    factor = _parameter("swish", "beta", beta)
    scaled = array if type(factor) in (int, float) and factor == 1 else apply("mul", array, factor)
    return apply("mul", array, apply("sigmoid", scaled))


@in_single
def mish(x: Any) -> dlarray:
    """Return x tanh(softplus(x)).

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Examples:
        >>> import tracejit as tj
        >>> tj.mish([0.0, 1000.0])
        2 dlarray float64
        [   0. 1000.]
    """
    array = floating("mish", x)
    return apply("mul", array, apply("tanh", apply("softplus", array)))


@in_single
def hardsigmoid(x: Any) -> dlarray:
    """Return x / 6 + 1/2, at least 0 and at most 1.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    The derivative at -3 and 3 is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.hardsigmoid([-4.0, 0.0, 4.0])
        3 dlarray float64
        [0.  0.5 1. ]
    """
    array = floating("hardsigmoid", x)
    return _between(apply("add", apply("mul", array, 1 / 6), 0.5), 0.0, 1.0)


@in_single
def hardswish(x: Any) -> dlarray:
    """Return x hardsigmoid(x): 0 up to -3, x from 3 on, and x (x + 3) / 6 between.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `x` is not an array, a number or a list of numbers.
        DTypeError: for complex numbers.

    The derivative at -3 is 0, and at 3 it is 1. Howard and others, "Searching for MobileNetV3", 2019.

    Examples:
        >>> import tracejit as tj
        >>> tj.hardswish([-4.0, 0.0, 4.0])
        3 dlarray float64
        [0. 0. 4.]
    """
    array = floating("hardswish", x)
    # Not the derivative of an infinite number: times 0 it would be NaN.
    near = _between(array, -3.0, 3.0)
    inside = apply("mul", apply("mul", near, apply("add", near, 3.0)), 1 / 6)
    below = apply("where", apply("less_equal", array, -3.0), 0.0, inside)
    return apply("where", apply("greater_equal", array, 3.0), array, below)


def hardtanh(x: Any, low: float = -1.0, high: float = 1.0) -> dlarray:
    """Return x, at least `low` and at most `high`.

    Args:
        x: dlarray of any format, ndarray or number.
        low, high: numbers, `low` below `high`.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `low` is not below `high`.

    The derivative at `low` and `high` is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.hardtanh([-4.0, 0.5, 4.0])
        3 dlarray float64
        [-1.   0.5  1. ]
    """
    least, most = float(real("hardtanh", "low", low)), float(real("hardtanh", "high", high))
    if not least < most:
        raise ArgumentError(
            f"hardtanh: low must be below high, found low={brief(low)} and high={brief(high)}."
        )
    array = floating("hardtanh", x)
    return apart(_between(array, least, most), array)


def clippedrelu(x: Any, ceiling: float) -> dlarray:
    """Return max(x, 0), at most `ceiling`.

    Args:
        x: dlarray of any format, ndarray or number.
        ceiling: a positive number.

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        ArgumentError: if `ceiling` is not positive.

    The derivative at 0 and at `ceiling` is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.clippedrelu([-4.0, 0.5, 8.0], 6)
        3 dlarray float64
        [0.  0.5 6. ]
    """
    most = float(real("clippedrelu", "ceiling", ceiling))
    if not most > 0:
        raise ArgumentError(f"clippedrelu: ceiling must be a positive number, not {brief(ceiling)}.")
    return _between(floating("clippedrelu", x), 0.0, most)


@in_single
def prelu(x: Any, alpha: Any, *, data_format: str | None = None) -> dlarray:
    """Return x where x > 0, and alpha x elsewhere, with a learnable alpha.

    Args:
        x: dlarray, ndarray or number; with a label C, or `data_format`, if `alpha` is more than one number.
        alpha: a number for each channel, or one for all.
        data_format: labels of an unformatted `x`, such as "BC".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `alpha` and the channels differ in number, or `x` has no channels for several.

    At 0 the cotangent is multiplied by alpha. He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015.

    Examples:
        >>> import tracejit as tj
        >>> tj.prelu(tj.dlarray([[-1.0, -1.0, 2.0]], "BC"), [0.1, 0.2, 0.3]).tolist()
        [[-0.1, -0.2, 2.0]]
    """
    array, formatted = labelled("prelu", x, data_format)
    slope = as_array(alpha, "prelu", "alpha")
    numbers = floating("prelu", array)
    shape = [1] * array._data.ndim
    if slope._data.size != 1:
        format = need_labels("prelu", array, "alpha has a number for each channel (C)")
        at = format.find("C")
        if (
            at < 0
            or (slope._data.size,) != array._data.shape[at : at + 1]
            or max(slope._data.shape) != slope._data.size
        ):
            raise DimsError(
                f"prelu: alpha is of {describe(slope)} and x of {describe(array)}; alpha must be a number for each "
                "channel (C), or one number."
            )
        shape[at] = slope._data.size
    factor = in_dtype(
        reshaped(relabel(slope, None), tuple(shape), None), numbers._data.dtype, "prelu: alpha of"
    )
    plain = relabel(numbers, None)
    y = apply("where", apply("greater", plain, 0.0), plain, apply("mul", plain, factor))
    return relabel(y, array._format if formatted else None)


@in_single
def glu(x: Any, *, axis: Any = None, data_format: str | None = None) -> dlarray:
    """Return the gated linear unit: the first half of the channels times the sigmoid of the second half.

    Args:
        x: dlarray with a label C; or, with `axis` or `data_format`, an unformatted array.
        axis: the axis to halve instead of C, an integer or a label.
        data_format: labels of an unformatted `x`, such as "BC".

    Returns:
        dlarray of the format of `x`, with half the channels; integers give float64.

    Raises:
        DimsError: if the channels cannot be found, or their number is odd.
        ArgumentError: if both `axis` and `data_format` are given.

    Dauphin, Fan, Auli and Grangier, "Language modeling with gated convolutional networks", 2016.

    Examples:
        >>> import tracejit as tj
        >>> tj.glu(tj.dlarray([[3.0, 4.0, 0.0, 1000.0]], "BC")).tolist()
        [[1.5, 4.0]]
    """
    if axis is not None and data_format is not None:
        raise ArgumentError(
            f"glu: axis={brief(axis)} and data_format={brief(data_format)} both say where the channels are; pass one "
            "of them."
        )
    array, formatted = labelled("glu", x, data_format)
    if axis is None:
        format = need_labels("glu", array, "glu halves the channels (C)", ", or pass axis")
        if "C" not in format:
            raise DimsError(
                f"glu: x of {describe(array)} has no channels (C) to halve; name the axis with axis=."
            )
        at = format.index("C")
    else:
        at = normalize_axis("glu", array, axis)
    extent = array._data.shape[at]
    if extent % 2:
        raise DimsError(
            f"glu: axis {at} of x of {describe(array)} has {extent} elements, which make no two halves."
        )
    own = array if formatted else relabel(array, None)
    numbers = floating("glu", own)
    first, second = (
        sliced(numbers, {at: part}) for part in (slice(0, extent // 2), slice(extent // 2, extent))
    )
    return apply("mul", first, apply("sigmoid", second))


def _parameter(function: str, argument: str, value: Any) -> Any:
    """Return a parameter that is a number, or an array of one."""
    found = operand(function, argument, value)
    if type(found) in (int, float):
        return float(real(function, argument, found))
    array = as_array(found, function, argument)
    if array._data.size != 1:
        raise DimsError(f"{function}: {argument} is of {describe(array)}; it must be one number.")
    return reshaped(relabel(array, None), (), None)


def _exponential(x: dlarray, alpha: Any, over: Any) -> dlarray:
    """Return x where x > 0, else alpha (exp(x / over) - 1)."""
    positive = apply("greater", x, 0.0)
    # Not the exponential of a large number: times 0 its infinity would be NaN.
    negative = apply("where", positive, 0.0, x)
    scaled = negative if over is None else apply("div", negative, over)
    falling = apply("expm1", scaled)
    if type(alpha) not in (int, float) or alpha != 1:
        falling = apply("mul", falling, alpha)
    return apply("where", positive, x, falling)


def _between(x: dlarray, low: float, high: float) -> dlarray:
    """Return x, at least `low` and at most `high`, NaN for NaN."""
    above = x if low == -math.inf else apply("where", apply("less_equal", x, low), low, x)
    return above if high == math.inf else apply("where", apply("greater_equal", x, high), high, above)
