# SPDX-License-Identifier: BSD-3-Clause
"""Losses: crossentropy, mse, l1loss, l2loss, huber.

All compare predictions `y` with `targets` of the same sizes and reduce to an unformatted scalar in the
dtype of `y`. Targets, weights and masks align with `y` by label if they have labels, and by position if not.
"""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import axes_in, check_format, describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe, floating, in_dtype, labelled, need_labels
from tracejit.functions.halves import in_single
from tracejit.functions.layers.activations import logsoftmax_over
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.record import recorder
from tracejit.util.arguments import flag, is_option, real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

NORMALIZATIONS = ("batch-size", "all-elements", "mask-included", "none")


class Compared(NamedTuple):
    """Operands of a loss, of equal sizes and without labels, and the labels of their axes."""

    function: str
    y: dlarray
    targets: dlarray
    included: dlarray | None  # bool, of sizes equal or 1; None without a mask
    format: str | None
    formatted: bool  # y came with labels, so that an unreduced loss has them too

    @property
    def shape(self) -> tuple[int, ...]:
        return self.y._data.shape

    def describe(self) -> str:
        return describe_shape(self.shape, self.format)


@in_single
def crossentropy(
    y: Any,
    targets: Any,
    weights: Any = None,
    *,
    from_logits: bool = False,
    classification_mode: str = "single-label",
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the cross-entropy of predicted probabilities `y` and `targets`, over N observations.

    single-label:  -1/N sum(w t log y), with classes along C, probabilities that sum to 1
    multilabel:    -1/N sum(w (t log y + (1 - t) log(1 - y))), every element a probability of its own

    Probabilities are kept in the range where the logarithm and its derivative are finite: y below 1e-31 in
    float32, or 1e-292 in float64, counts as that number, and in the second sum y above 1 - eps/2 as that.
    The derivative there is 0. With `from_logits` nothing is clipped: prefer that to softmax or
    sigmoid before the loss, because it stays exact where probabilities round to 0 or 1.

    Args:
        y: dlarray with a label C (multilabel: any), or an unformatted array with `data_format`.
        targets: probabilities of the classes, of the sizes of `y`; onehotencode makes them of labels.
        weights: weights of the classes: a vector of one number for each class, or an array with labels,
            of its own or from `weights_format`, whose sizes are those of `y` or 1.
        from_logits: `y` holds what goes into softmax (multilabel: sigmoid), not probabilities.
        classification_mode: "single-label" or "multilabel".
        mask: elements to include, where it is not 0; sizes of `y` or, with labels, those or 1.
        reduction: "sum" for a scalar, "none" for the loss of each element.
        normalization_factor: what the sum is divided by: "batch-size" for the size of the axis B (1 if there
            is none), "all-elements" for the number of elements, "mask-included" for the batch size and, in
            each observation, the number of elements included by `mask`, or "none".
        data_format: labels of an unformatted `y`, such as "BC".
        weights_format: labels of unformatted `weights`.

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes and format of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an unknown option, or "mask-included" without a mask.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> y = tj.dlarray([[0.5, 0.5], [0.25, 0.75]], "BC")
        >>> loss = tj.crossentropy(y, [[1, 0], [0, 1]])
        >>> round(loss.item(), 6), round(-(np.log(0.5) + np.log(0.75)).item() / 2, 6)
        (0.490415, 0.490415)
        >>> z = tj.dlarray([[0.0, 1000.0]], "BC")
        >>> tj.crossentropy(z, [[1, 0]], from_logits=True).item()
        1000.0
    """
    from_logits = flag("crossentropy", "from_logits", from_logits)
    if not is_option(classification_mode, ("single-label", "multilabel", "multi-label")):
        raise ArgumentError(
            'crossentropy: classification_mode must be "single-label" or "multilabel", '
            f"not {brief(classification_mode)}."
        )
    pair = compare("crossentropy", y, targets, mask, data_format)
    if classification_mode == "single-label":
        format = need_labels(
            "crossentropy", relabel(pair.y, pair.format), "crossentropy finds the classes along C"
        )
        if "C" not in format:
            raise DimsError(
                f"crossentropy: y is of {pair.describe()}, without classes (C); label them, or use "
                'classification_mode="multilabel" for elements that are independent probabilities.'
            )
        likelihood = _single_label(pair, format.index("C"), from_logits)
    else:
        likelihood = _multilabel_logits(pair) if from_logits else _multilabel(pair)
    likelihood = weighted(pair, likelihood, weights, weights_format)
    return reduced(pair, likelihood, -1.0, reduction, normalization_factor)


@in_single
def mse(y: Any, targets: Any, *, data_format: str | None = None) -> dlarray:
    """Return HALF the mean squared error over N observations, 1/(2 N) sum((y - t)**2).

    N is the size of the axis B, not the number of elements: this is the loss whose gradient is
    (y - t) / N. l2loss has no factor 1/2 and more options.

    Args:
        y: dlarray, or an unformatted array with `data_format`. Without a label B there is one observation.
        targets: array of the sizes of `y`.
        data_format: labels of an unformatted `y`, such as "BC".

    Returns:
        Unformatted scalar of the dtype of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or `y` has no labels.

    Examples:
        >>> import tracejit as tj
        >>> tj.mse(tj.dlarray([[1.0, 2.0], [3.0, 4.0]], "BC"), [[0.0, 2.0], [3.0, 1.0]]).item()
        2.5
    """
    pair = compare("mse", y, targets, None, data_format)
    squares = apply("square", apply("sub", pair.y, pair.targets))
    return reduced(pair, squares, 0.5, "sum", "batch-size")


@in_single
def l1loss(
    y: Any,
    targets: Any,
    weights: Any = None,
    *,
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the sum of absolute errors over N observations, 1/N sum(w |y - t|).

    Args:
        y: dlarray, or an unformatted array with `data_format`.
        targets: array of the sizes of `y`.
        weights: a vector of one number for each channel, an array of the sizes of `y`, or one with labels,
            of its own or from `weights_format`, whose sizes are those of `y` or 1.
        mask: elements to include, where it is not 0; sizes of `y` or, with labels, those or 1.
        reduction: "sum" for a scalar, "none" for the loss of each element.
        normalization_factor: "batch-size", "all-elements", "mask-included" or "none", as for crossentropy.
        data_format: labels of an unformatted `y`, such as "BC".
        weights_format: labels of unformatted `weights`.

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes and format of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an unknown option, or "mask-included" without a mask.

    The derivative at y = t is 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.l1loss(tj.dlarray([[1.0, 2.0], [3.0, 4.0]], "BC"), [[0.0, 2.0], [3.0, 1.0]]).item()
        2.0
    """
    pair = compare("l1loss", y, targets, mask, data_format)
    loss = apply("abs", apply("sub", pair.y, pair.targets))
    loss = weighted(pair, loss, weights, weights_format)
    return reduced(pair, loss, 1.0, reduction, normalization_factor)


@in_single
def l2loss(
    y: Any,
    targets: Any,
    weights: Any = None,
    *,
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the sum of squared errors over N observations, 1/N sum(w (y - t)**2); twice mse.

    Args:
        y: dlarray, or an unformatted array with `data_format`.
        targets: array of the sizes of `y`.
        weights: as for l1loss.
        mask: elements to include, where it is not 0; sizes of `y` or, with labels, those or 1.
        reduction: "sum" for a scalar, "none" for the loss of each element.
        normalization_factor: "batch-size", "all-elements", "mask-included" or "none", as for crossentropy.
        data_format: labels of an unformatted `y`, such as "BC".
        weights_format: labels of unformatted `weights`.

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes and format of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an unknown option, or "mask-included" without a mask.

    Examples:
        >>> import tracejit as tj
        >>> y = tj.dlarray([[1.0, 2.0], [3.0, 4.0]], "BC")
        >>> tj.l2loss(y, [[0.0, 2.0], [3.0, 1.0]], normalization_factor="all-elements").item()
        2.5
    """
    pair = compare("l2loss", y, targets, mask, data_format)
    loss = apply("square", apply("sub", pair.y, pair.targets))
    loss = weighted(pair, loss, weights, weights_format)
    return reduced(pair, loss, 1.0, reduction, normalization_factor)


@in_single
def huber(
    y: Any,
    targets: Any,
    weights: Any = None,
    *,
    transition_point: float = 1.0,
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
    weights_format: str | None = None,
) -> dlarray:
    """Return the sum of Huber losses h(y - t) over N observations, 1/N sum(w h).

    h(e) = e**2 / 2 where |e| <= d, and d |e| - d**2 / 2 beyond; d is the transition point.

    Args:
        y: dlarray, or an unformatted array with `data_format`.
        targets: array of the sizes of `y`.
        weights: as for l1loss.
        transition_point: the positive number d.
        mask: elements to include, where it is not 0; sizes of `y` or, with labels, those or 1.
        reduction: "sum" for a scalar, "none" for the loss of each element.
        normalization_factor: "batch-size", "all-elements", "mask-included" or "none", as for crossentropy.
        data_format: labels of an unformatted `y`, such as "BC".
        weights_format: labels of unformatted `weights`.

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes and format of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an unknown option, "mask-included" without a mask, or a transition point <= 0.

    Examples:
        >>> import tracejit as tj
        >>> tj.huber(tj.dlarray([[1.0, 5.0]], "BC"), [[0.5, 2.0]]).item()
        2.625
    """
    if not recorder.is_array(transition_point):
        transition_point = real("huber", "transition_point", transition_point)
        is_valid = 0 < transition_point < math.inf
    else:
        is_valid = not np.ndim(transition_point) and np.result_type(transition_point).kind in "fiu"
    if not is_valid:
        found = brief(transition_point)
        raise ArgumentError(f"huber: transition_point must be one positive, finite number, not {found}.")
    pair = compare("huber", y, targets, mask, data_format)
    error = apply("sub", pair.y, pair.targets)
    size = apply("abs", error)
    is_near = apply("less_equal", size, transition_point)
    # The square of what is near only: that of an infinite error would make its derivative 0 times infinity.
    near = apply("mul", apply("square", apply("where", is_near, error, 0.0)), 0.5)
    far = apply("mul", apply("sub", size, transition_point * 0.5), transition_point)
    loss = apply("where", is_near, near, far)
    loss = weighted(pair, loss, weights, weights_format)
    return reduced(pair, loss, 1.0, reduction, normalization_factor)


def _single_label(pair: Compared, axis: int, from_logits: bool) -> dlarray:
    """Return t log y for each element."""
    if from_logits:
        return apply("mul", logsoftmax_over(pair.y, (axis,)), pair.targets)
    return apply("mul", apply("log", at_least(pair.y, floor_of(pair.y))), pair.targets)


def _multilabel(pair: Compared) -> dlarray:
    """Return t log y + (1 - t) log(1 - y) for each element."""
    y, targets = pair.y, pair.targets
    below_one = 1.0 - float(np.finfo(y._data.dtype).epsneg)
    of_one = apply("log", at_least(y, floor_of(y)))
    capped = apply("where", apply("greater", y, below_one), below_one, y)
    of_zero = apply("log1p", apply("neg", capped))
    return apply("add", apply("mul", targets, of_one), apply("mul", apply("sub", 1.0, targets), of_zero))


def _multilabel_logits(pair: Compared) -> dlarray:
    """Return t log s(z) + (1 - t) log(1 - s(z)) for each element z, s the logistic function.

    That is t z - max(z, 0) - log(1 + exp(-|z|)), in which nothing cancels for t = 0 and t = 1. max and
    the absolute value are written as choices that take the same side at z = 0, so that the derivative there
    is t - 1/2, not the sum of two conventions.
    """
    z, targets = pair.y, pair.targets
    positive = apply("greater", z, 0.0)
    largest = apply("where", positive, z, 0.0)
    rest = apply("log1p", apply("exp", apply("where", positive, apply("neg", z), z)))
    return apply("sub", apply("sub", apply("mul", targets, z), largest), rest)


def floor_of(y: Any) -> float:
    """Return a number whose inverse, times weights of ordinary size, is finite in the dtype of `y`."""
    info = np.finfo(y._data.dtype)
    return float(info.tiny) / float(info.eps)


def at_least(y: Any, bound: float) -> dlarray:
    # A choice, not maximum(), whose adjoint would look for ties.
    return apply("where", apply("less", y, bound), bound, y)


def _broadcast_differences(shape: tuple[int, ...], other: tuple[int, ...]) -> str:
    """Return how many differences arrays of two sizes would have, if they were broadcast; "" if they could not be."""
    try:
        number = math.prod(np.broadcast_shapes(shape, other))
    except (ValueError, RuntimeError):  # the latter of more axes than NumPy broadcasts
        return ""
    if shape == other:  # labels differ
        return ""
    return f" Sizes are not broadcast: {shape} against {other} would give {number} differences."


def compare(function: str, y: Any, targets: Any, mask: Any, data_format: str | None) -> Compared:
    array, formatted = labelled(function, y, data_format, "y")
    other = as_array(targets, function, "targets")
    format, other_format = array._format, other._format
    if format is None:
        format = other_format
    if format is not None and other_format is not None and sorted(format) == sorted(other_format):
        axes = tuple(axis for axis in axes_in(other_format, format) if axis is not None)
        other = permuted(other, axes)
        other_format = format
    if array._data.shape != other._data.shape or other_format not in (None, format):
        advice = (
            " For classes as numbers use indexcrossentropy, or onehotencode."
            if function == "crossentropy"
            else _broadcast_differences(array._data.shape, other._data.shape)
        )
        raise DimsError(
            f"{function}: y is of size {describe_shape(array._data.shape, format)}, but targets are of "
            f"{describe(other)}; they must have the same sizes and labels.{advice}"
        )
    predictions = floating(function, relabel(array, None))
    # The loss has the dtype of the predictions: float64 targets do not make a float32 network compute in
    # float64.
    pair = Compared(
        function,
        predictions,
        in_dtype(relabel(other, None), predictions._data.dtype, f"{function}: targets of"),
        None,
        format,
        formatted,
    )
    return masked_targets(pair, mask)


def masked_targets(pair: Compared, mask: Any) -> Compared:
    """Return operands that count only where a mask, if there is one, is not 0."""
    if mask is None:
        return pair
    fitted = fitted_to(pair, "mask", mask, None)
    included = fitted if fitted._data.dtype == bool else apply("not_equal", fitted, 0)
    # The loss is masked later; targets are masked here because NaN in their padding would reach gradients.
    zero = 0.0 if pair.targets._data.dtype.kind == "f" else 0
    return pair._replace(targets=apply("where", included, pair.targets, zero), included=included)


def fitted_to(pair: Compared, argument: str, x: Any, format: str | None) -> dlarray:
    """Return weights or a mask with as many axes as y has, sizes equal or 1, without labels."""
    array = as_array(x, pair.function, argument)
    shape = array._data.shape
    have = array._format
    if format is not None:
        if have is not None:
            raise DimsError(
                f"{pair.function}: {argument}_format={brief(format)} is given for {argument} of "
                f"{describe(array)}, which have labels of their own; leave {argument}_format out."
            )
        have = check_format(pair.function, format, len(shape), f"{argument}_format")
    if have is None and shape == pair.shape:
        return array
    if have is None and argument == "weights" and len(shape) == 1 and pair.format and "C" in pair.format:
        have = "C"
    if have is not None and pair.format is not None:
        axes = axes_in(have, pair.format)
        order = tuple(axis for axis in axes if axis is not None)
        sizes = tuple(1 if axis is None else shape[axis] for axis in axes)
        if len(order) == len(shape) and all(s in (1, n) for s, n in zip(sizes, pair.shape, strict=True)):
            return reshaped(permuted(relabel(array, None), order), sizes, None)
    raise DimsError(
        f"{pair.function}: {argument} of {describe_shape(shape, have)} cannot be applied to y of "
        f"{pair.describe()}; expected the sizes of y, or labels of y (as a dlarray) and its sizes or 1."
    )


def weighted(pair: Compared, loss: dlarray, weights: Any, weights_format: str | None) -> dlarray:
    if weights is None:
        if weights_format is not None:
            raise ArgumentError(
                f"{pair.function}: weights_format={brief(weights_format)} is given without weights; pass both."
            )
        return loss
    fitted = fitted_to(pair, "weights", weights, weights_format)
    return apply("mul", loss, in_dtype(fitted, loss._data.dtype, f"{pair.function}: weights of"))


def reduced(
    pair: Compared,
    loss: dlarray,
    factor: float,
    reduction: str,
    normalization_factor: str,
    normalizations: tuple[str, ...] = NORMALIZATIONS,
) -> dlarray:
    """Return the reduced loss, `factor` times the sum over what the mask includes, normalised."""
    function = pair.function
    if not is_option(reduction, ("sum", "none")):
        raise ArgumentError(f'{function}: reduction must be "sum" or "none", not {brief(reduction)}.')
    if not is_option(normalization_factor, normalizations):
        raise ArgumentError(
            f"{function}: normalization_factor must be one of {', '.join(normalizations)}, "
            f"not {brief(normalization_factor)}."
        )
    if pair.included is not None:
        # A choice, not a product: what padding holds may be NaN.
        loss = apply("where", pair.included, loss, 0.0)
    if reduction == "none":
        scaled = loss if factor == 1.0 else apply("mul", loss, factor)
        return relabel(scaled, pair.format if pair.formatted else None)
    axes = tuple(range(len(pair.shape)))
    if normalization_factor == "mask-included":
        if pair.included is None:
            raise ArgumentError(
                f'{function}: normalization_factor="mask-included" needs mask, which says what is included.'
            )
        loss = _divided_by_included(pair, pair.included, loss)
        axes = tuple(range(loss._data.ndim))
    total = apply("sum", loss, axes=axes, keepdims=False)
    divisor = _divisor(pair, normalization_factor)
    factor = factor / divisor if divisor else math.nan  # the mean of nothing
    return total if factor == 1.0 else apply("mul", total, factor)


def _divisor(pair: Compared, normalization_factor: str) -> int:
    if normalization_factor == "none":
        return 1
    if normalization_factor == "all-elements":
        return math.prod(pair.shape)
    if not pair.shape:
        return 1
    format = need_labels(
        pair.function,
        relabel(pair.y, pair.format),
        "the result is divided by the number of observations (B)",
    )
    return pair.shape[format.index("B")] if "B" in format else 1


def _divided_by_included(pair: Compared, included: dlarray, loss: dlarray) -> dlarray:
    """Return, for each observation, its loss over the number of its elements that the mask includes."""
    format = pair.format or ""
    axes = tuple(axis for axis in range(len(pair.shape)) if format[axis : axis + 1] != "B")
    counts = apply("sum", included, axes=axes, keepdims=True)
    # An element of a mask of size 1 along an axis stands for all elements there.
    spread = math.prod(pair.shape[axis] for axis in axes if included.shape[axis] == 1)
    sizes = in_dtype(counts, loss._data.dtype)
    if spread != 1:
        sizes = apply("mul", sizes, float(spread))
    return apply("div", apply("sum", loss, axes=axes, keepdims=True), apply("maximum", sizes, 1.0))
