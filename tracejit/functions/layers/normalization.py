# SPDX-License-Identifier: BSD-3-Clause
"""Normalisation: elements minus their mean, divided by their standard deviation, by channel, observation or group."""

from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, floating, in_dtype, labelled, need_labels
from tracejit.functions.halves import in_single
from tracejit.functions.layers.statistics import (
    Moved,
    Statistics,
    mean_over,
    rows_by_mean,
    rows_by_middle,
    statistics_of,
)
from tracejit.functions.movement import apart, relabel, reshaped
from tracejit.record import recorder
from tracejit.util.arguments import integer, is_option, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_OPERATIONS = ("auto", "channel-only", "spatial-channel", "batch-excluded")


class _Input(NamedTuple):
    """The array to normalise, in floating point and without labels.

    format      its labels
    formatted   whether the result has them
    channel     the axis labelled C
    """

    function: str
    array: dlarray
    format: str
    formatted: bool
    channel: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array._data.shape

    @property
    def channels(self) -> int:
        return self.shape[self.channel]

    def axes(self, kept: str) -> tuple[int, ...]:
        """Return the axes without those of some labels."""
        return tuple([axis for axis, label in enumerate(self.format) if label not in kept])

    def result(self, array: dlarray) -> dlarray:
        return relabel(array, self.format if self.formatted else None)

    def by_channel(self, argument: str, value: Any) -> dlarray:
        """Return a number for each channel, or for all, that broadcasts with the array."""
        array = as_array(value, self.function, argument)
        size = array._data.size
        if size not in (1, self.channels) or max(array._data.shape, default=1) != size:
            raise DimsError(
                f"{self.function}: {argument} is of {describe(array)}, but x has {self.channels} channels; {argument} "
                "must be a number for each channel, or one number."
            )
        shape = [1] * len(self.shape)
        shape[self.channel] = size
        numbers = reshaped(relabel(array, None), tuple(shape), None)
        return in_dtype(numbers, self.array._data.dtype, f"{self.function}: {argument} of")


@in_single
def batchnorm(
    x: Any,
    offset: Any,
    scale: Any,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-5,
    mean_decay: Any = None,
    variance_decay: Any = None,
    data_format: str | None = None,
) -> Any:
    """Return scale (x - mean) / sqrt(variance + epsilon) + offset for each channel.

    In training, mean and variance are those of the batch: over all axes but C, the variance over N, not N - 1.

    Args:
        x: dlarray with a label C, or an unformatted array with `data_format`.
        offset, scale: a number for each channel, or one number.
        mean, variance: statistics of the data so far, a number for each channel; None for those of the batch alone.
        epsilon: a number >= 0 that is added to the variance.
        mean_decay, variance_decay: the weight of the batch in the updated statistics; 0.1 if the other is given.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        Without `mean` and `variance`: the result, and the mean and the variance of the batch, vectors of C numbers.
        With them and without decays, which is inference: the result. With them and a decay: the result, normalised by
        the batch, and the updated statistics, decay times those of the batch plus (1 - decay) times those so far.
        Results have the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels, sizes do not fit, or the batch is empty.
        ArgumentError: if mean or variance is given alone, or a decay without them, or an option is no number.

    Ioffe and Szegedy, "Batch normalization", 2015.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = tj.dlarray(np.array([[1.0, 2.0], [3.0, 6.0]]), "BC")
        >>> y, mean, variance = tj.batchnorm(x, 0, 1, epsilon=0)
        >>> y.tolist(), mean.tolist(), variance.tolist()
        ([[-1.0, -1.0], [1.0, 1.0]], [2.0, 4.0], [1.0, 4.0])
        >>> tj.batchnorm(x, 0, 1, mean, variance, epsilon=0).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
    """
    given = _input("batchnorm", x, data_format)
    small = _epsilon("batchnorm", epsilon)
    if (mean is None) != (variance is None):
        raise ArgumentError("batchnorm: mean and variance must be given both, or neither.")
    decays = _decays(mean_decay, variance_decay)
    if mean is None:
        if decays:
            raise ArgumentError(
                "batchnorm: a decay is given without mean and variance, the statistics so far; pass those, zeros and "
                "ones at first."
            )
        found = _of_batch(given)
        y = _normalized(given, given.array, found, small, offset, scale)
        return given.result(y), _vector(given, found.mean), _vector(given, found.variance)
    so_far = Statistics(given.by_channel("mean", mean), None, given.by_channel("variance", variance))
    if not decays:
        return given.result(_normalized(given, given.array, so_far, small, offset, scale))
    found = _of_batch(given)
    y = _normalized(given, given.array, found, small, offset, scale)
    updated = [
        _vector(given, apply("add", apply("mul", new, decay), apply("mul", old, 1.0 - decay)))
        for new, old, decay in zip(
            (found.mean, found.variance), (so_far.mean, so_far.variance), decays, strict=True
        )
    ]
    return given.result(y), *updated


@in_single
def layernorm(
    x: Any,
    offset: Any,
    scale: Any,
    *,
    epsilon: float = 1e-5,
    operation_dimension: str = "auto",
    data_format: str | None = None,
) -> dlarray:
    """Return scale (x - mean) / sqrt(variance + epsilon) + offset, with statistics of each observation.

    Args:
        x: dlarray with a label C, or an unformatted array with `data_format`.
        offset, scale: a number for each channel, or one number.
        epsilon: a number >= 0 that is added to the variance.
        operation_dimension: the axes of the statistics: "channel-only" for C, "spatial-channel" for S and C,
            "batch-excluded" for all but B, "auto" for "spatial-channel" where there are axes S and no T, and otherwise
            "channel-only".
        data_format: labels of an unformatted `x`, such as "BTC".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels, or sizes do not fit.
        ArgumentError: for an unknown operation dimension, or an epsilon that is no number.

    Ba, Kiros and Hinton, "Layer normalization", 2016.

    Examples:
        >>> import tracejit as tj
        >>> tj.layernorm(tj.dlarray([[1.0, 3.0], [4.0, 4.0]], "BC"), 0, 1, epsilon=0.25).tolist()
        [[-0.8944271909999159, 0.8944271909999159], [0.0, 0.0]]
    """
    given = _input("layernorm", x, data_format)
    axes = _operation_axes(given, operation_dimension)
    small = _epsilon("layernorm", epsilon)
    moved = rows_by_mean(given.array, axes)
    if moved is None:
        found = statistics_of(given.array, axes)
        return given.result(_normalized(given, given.array, found, small, offset, scale))
    offsets, scales = given.by_channel("offset", offset), given.by_channel("scale", scale)
    return given.result(_scaled_rows(moved, small, offsets, scales, given.channel))


@in_single
def rmsnorm(
    x: Any,
    scale: Any,
    *,
    epsilon: float = 1e-5,
    operation_dimension: str = "auto",
    data_format: str | None = None,
) -> dlarray:
    """Return scale x / sqrt(mean(x**2) + epsilon), with the mean of each observation.

    Args:
        x: dlarray with a label C, or an unformatted array with `data_format`.
        scale: a number for each channel, or one number.
        epsilon: a number >= 0 that is added to the mean of squares.
        operation_dimension: the axes of the mean, as for layernorm.
        data_format: labels of an unformatted `x`, such as "BTC".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels, or sizes do not fit.
        ArgumentError: for an unknown operation dimension, or an epsilon that is no number.

    Zhang and Sennrich, "Root mean square layer normalization", 2019.

    Examples:
        >>> import tracejit as tj
        >>> tj.rmsnorm(tj.dlarray([[3.0, 4.0]], "BC"), 1, epsilon=3.5).tolist()
        [[0.75, 1.0]]
    """
    given = _input("rmsnorm", x, data_format)
    axes = _operation_axes(given, operation_dimension)
    small = _epsilon("rmsnorm", epsilon)
    squares = mean_over(apply("square", given.array), axes)
    root = apply("reciprocal", apply("sqrt", apply("add", squares, small)))
    return given.result(apply("mul", apply("mul", given.array, root), given.by_channel("scale", scale)))


@in_single
def groupnorm(
    x: Any,
    num_groups: Any,
    offset: Any,
    scale: Any,
    *,
    epsilon: float = 1e-5,
    data_format: str | None = None,
) -> dlarray:
    """Return scale (x - mean) / sqrt(variance + epsilon) + offset, with statistics of groups of channels.

    Args:
        x: dlarray with a label C, or an unformatted array with `data_format`.
        num_groups: the number of groups of neighbouring channels, all of one size; "all-channels" for 1, "channel-wise"
            for groups of one channel.
        offset, scale: a number for each channel, or one number.
        epsilon: a number >= 0 that is added to the variance.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels, or the groups do not divide them, or sizes do not fit.
        ArgumentError: if the groups are no integer, or epsilon no number.

    The statistics of an observation are over its channels in a group, and over all axes but B and C.
    Wu and He, "Group normalization", 2018.

    Examples:
        >>> import tracejit as tj
        >>> x = tj.dlarray([[1.0, 3.0, 5.0, 9.0]], "BC")
        >>> tj.groupnorm(x, 2, 0, 1, epsilon=0).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """
    given = _input("groupnorm", x, data_format)
    if is_option(num_groups, ("all-channels", "channel-wise")):
        groups = 1 if num_groups == "all-channels" else max(given.channels, 1)
    else:
        groups = integer("groupnorm", "num_groups", num_groups)
    if groups < 1 or given.channels % groups:
        raise DimsError(
            f"groupnorm: x of {describe(relabel(given.array, given.format))} has {given.channels} channels, which do "
            f"not make {brief(num_groups)} groups; the number of groups must divide the number of channels."
        )
    return _by_groups(given, groups, _epsilon("groupnorm", epsilon), offset, scale)


@in_single
def instancenorm(
    x: Any,
    offset: Any,
    scale: Any,
    *,
    epsilon: float = 1e-5,
    data_format: str | None = None,
) -> dlarray:
    """Return scale (x - mean) / sqrt(variance + epsilon) + offset, with statistics of each channel and observation.

    Args:
        x: dlarray with a label C and another one than B, or an unformatted array with `data_format`.
        offset, scale: a number for each channel, or one number.
        epsilon: a number >= 0 that is added to the variance.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels, or nothing but channels and observations, or sizes do not fit.
        ArgumentError: for an epsilon that is no number.

    Ulyanov, Vedaldi and Lempitsky, "Instance normalization", 2016.

    Examples:
        >>> import tracejit as tj
        >>> tj.instancenorm(tj.dlarray([[1.0, 3.0], [5.0, 9.0]], "CS"), 0, 1, epsilon=0).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """
    given = _input("instancenorm", x, data_format)
    if not given.axes("CB"):
        raise DimsError(
            f"instancenorm: x with the labels {given.format!r} has one element for each channel and observation, "
            "and so no deviation; expected axes S, T or U as well."
        )
    return _by_groups(given, max(given.channels, 1), _epsilon("instancenorm", epsilon), offset, scale)


@in_single
def crosschannelnorm(
    x: Any,
    window: Any,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 2.0,
    data_format: str | None = None,
) -> dlarray:
    """Return x / (k + alpha / window times the sum of squares of the channels near it)**beta.

    Args:
        x: dlarray with a label C, or an unformatted array with `data_format`.
        window: how many channels are summed: the channel itself, floor((window - 1) / 2) before it and
            floor(window / 2) after it, as far as these exist.
        alpha, beta, k: numbers; k at least 1e-5.
        data_format: labels of an unformatted `x`, such as "BCSS".

    Returns:
        dlarray of the sizes and the format of `x`; integers give float64.

    Raises:
        DimsError: if `x` has no channels.
        ArgumentError: if the window is no positive integer, or an option is no number.

    The local response normalisation of Krizhevsky, Sutskever and Hinton, 2012.

    Examples:
        >>> import tracejit as tj
        >>> tj.crosschannelnorm(tj.dlarray([[1.0, 2.0]], "BC"), 3, alpha=3, beta=1, k=5).tolist()
        [[0.1, 0.2]]
    """
    given = _input("crosschannelnorm", x, data_format)
    width = integer("crosschannelnorm", "window", window)
    if not 0 < width < 2**31:
        raise ArgumentError(f"crosschannelnorm: window must be a positive integer, not {brief(window)}.")
    numbers = [float(real("crosschannelnorm", n, v)) for n, v in (("alpha", alpha), ("beta", beta), ("k", k))]
    if not numbers[2] >= 1e-5:
        raise ArgumentError(f"crosschannelnorm: k must be at least 1e-5, not {brief(k)}.")
    if not given.array._data.size:
        return given.result(given.array)
    # No more padding than there are channels: further windows would hold nothing.
    before, after = (min(n, given.channels) for n in ((width - 1) // 2, width // 2))
    size = min(before + 1 + after, 2 * given.channels + 1)
    means = apply(
        "avgpool", apply("square", given.array), axis=given.channel, size=(size,), stride=(1,),
        padding=((before, after),), count_padding=True,
    )  # fmt: skip
    base = apply("add", apply("mul", means, numbers[0] * size / width), numbers[2])
    return given.result(apply("mul", given.array, apply("pow", base, -numbers[1])))


def _input(function: str, x: Any, data_format: str | None) -> _Input:
    array, formatted = labelled(function, x, data_format)
    format = need_labels(function, array, f"{function} scales channels (C)")
    if "C" not in format:
        raise DimsError(f"{function}: x of {describe(array)} has no channels (C) to scale; label them.")
    return _Input(function, relabel(floating(function, array), None), format, formatted, format.index("C"))


def _epsilon(function: str, epsilon: Any) -> Any:
    if recorder.is_array(epsilon) and epsilon._data.size == 1 and epsilon._data.dtype.kind == "f":
        return reshaped(relabel(epsilon, None), (), None)
    number = real(function, "epsilon", epsilon)
    if not number >= 0:
        raise ArgumentError(f"{function}: epsilon must be a number >= 0, not {brief(epsilon)}.")
    return number


def _decays(*decays: Any) -> tuple[Any, ...]:
    """Return the decays as numbers, () if none is given."""
    if all(decay is None for decay in decays):
        return ()
    return tuple([
        0.1 if decay is None else real("batchnorm", name, decay)
        for name, decay in zip(("mean_decay", "variance_decay"), decays, strict=True)
    ])  # fmt: skip


def _operation_axes(given: _Input, operation: Any) -> tuple[int, ...]:
    """Return the axes that layernorm and rmsnorm take statistics over."""
    if not is_option(operation, _OPERATIONS):
        raise ArgumentError(
            f"{given.function}: operation_dimension must be one of {', '.join(_OPERATIONS)}, not {brief(operation)}."
        )
    if operation == "auto":
        operation = "spatial-channel" if "S" in given.format and "T" not in given.format else "channel-only"
    if operation == "batch-excluded":
        return given.axes("B")
    summed = "SC" if operation == "spatial-channel" else "C"
    return tuple([axis for axis, label in enumerate(given.format) if label in summed])


def _of_batch(given: _Input) -> Statistics:
    axes = given.axes("C")
    if 0 in [given.shape[axis] for axis in axes]:
        raise DimsError(
            f"batchnorm: x of {describe(relabel(given.array, given.format))} is empty, so that it has no mean; pass "
            "mean and variance, or a batch with observations."
        )
    return statistics_of(given.array, axes)


def _by_groups(given: _Input, groups: int, epsilon: Any, offset: Any, scale: Any) -> dlarray:
    """Return the array normalised by the statistics of each observation and group of channels."""
    at, shape = given.channel, given.shape
    if at == len(shape) - 1 and len(given.axes("BC")) and given.array._data.size:
        found = statistics_of(given.array, given.axes("BC"), groups)
        return given.result(_normalized(given, given.array, found, epsilon, offset, scale))
    # The channels as two axes, groups and their members, in all that is computed: so it is one loop.
    split = (*shape[:at], groups, given.channels // groups, *shape[at + 1 :])
    members = reshaped(given.array, split, None)
    axes = tuple(sorted([at + 1, *(axis + (axis > at) for axis in given.axes("BC"))]))

    def by_member(argument: str, value: Any) -> dlarray:
        numbers = given.by_channel(argument, value)
        ones = [1] * len(split)
        if numbers._data.size > 1:
            ones[at : at + 2] = split[at : at + 2]
        return reshaped(numbers, tuple(ones), None)

    offsets, scales = by_member("offset", offset), by_member("scale", scale)
    moved = rows_by_middle(members, axes) or rows_by_mean(members, axes)
    if moved is None:
        y = _scaled(members, statistics_of(members, axes), epsilon, offsets, scales, at + 1)
    else:
        y = _scaled_rows(moved, epsilon, offsets, scales, at + 1)
    return given.result(reshaped(y, shape, None))


def _normalized(
    given: _Input, array: dlarray, statistics: Statistics, epsilon: Any, offset: Any, scale: Any
) -> dlarray:
    offsets, scales = given.by_channel("offset", offset), given.by_channel("scale", scale)
    return _scaled(array, statistics, epsilon, offsets, scales, given.channel)


def _scaled(
    array: dlarray, statistics: Statistics, epsilon: Any, offsets: dlarray, scales: dlarray, channel: int
) -> dlarray:
    """Return the normalised array times `scales`, plus `offsets`, which differ along the axis `channel`."""
    mean, rest, variance = statistics
    factor = _factor(variance, epsilon)
    moved = apply("sub", array, mean)
    if rest is not None:
        moved = apply("add", moved, rest)
    if factor._data.ndim and factor._data.shape[channel] == 1:  # numbers for rows, and others for columns
        return apply("add", apply("mul", apply("mul", moved, factor), scales), offsets)
    return apply("add", apply("mul", moved, apply("mul", factor, scales)), offsets)


def _scaled_rows(moved: Moved, epsilon: Any, offsets: dlarray, scales: dlarray, channel: int) -> dlarray:
    """Return the normalised rows times `scales`, plus `offsets`, which differ along the axis `channel`."""
    rows, mean, variance = moved
    factor = _factor(variance, epsilon)
    if channel == len(rows._data.shape) - 1:  # neighbours have scales of their own
        normalized = apply("add", apply("mul", rows, factor), apply("mul", apply("neg", mean), factor))
        return apply("add", apply("mul", normalized, scales), offsets)
    factor = apply("mul", factor, scales)
    start = apply("add", offsets, apply("mul", apply("neg", mean), factor))
    return apply("add", apply("mul", rows, factor), start)


def _factor(variance: dlarray, epsilon: Any) -> dlarray:
    """Return the reciprocal of the standard deviation."""
    return apply("reciprocal", apply("sqrt", apply("add", variance, epsilon)))


def _vector(given: _Input, x: dlarray) -> dlarray:
    return apart(reshaped(x, (given.channels,), None), given.array)  # a single observation is its own mean
