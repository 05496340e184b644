# SPDX-License-Identifier: BSD-3-Clause
"""Losses of classes besides crossentropy: indexcrossentropy, focalcrossentropy, and dice, a similarity of regions."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import axes_in, describe_shape
from tracejit.errors import ArgumentError, BoundsError, DimsError, DTypeError
from tracejit.functions.formats import describe, floating, in_dtype, labelled, need_labels
from tracejit.functions.halves import in_single
from tracejit.functions.layers.activations import logsoftmax_over
from tracejit.functions.layers.losses import (
    NORMALIZATIONS,
    Compared,
    at_least,
    compare,
    floor_of,
    masked_targets,
    reduced,
)
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.util.arguments import flag, integer, is_option, real
from tracejit.util.text import brief


@in_single
def indexcrossentropy(
    y: Any,
    targets: Any,
    weights: Any = None,
    *,
    from_logits: bool = False,
    mask_index: Any = None,
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
) -> dlarray:
    """Return the cross-entropy of predicted probabilities `y` and classes given by number, -1/N sum(w[t] log y[t]).

    It is crossentropy without the zeros: targets are the numbers of the classes, from 0 on, along the axis C of `y`.

    Args:
        y: dlarray with a label C, or an unformatted array with `data_format`.
        targets: integers, of the sizes of `y` without C, or with a C of size 1; labels in any order.
        weights: one number for each class.
        from_logits: `y` holds what goes into softmax, not probabilities; exact where probabilities round to 0 or 1.
        mask_index: a class that does not count: targets with this number, which may be any, have the loss 0.
        mask: targets to include, where it is not 0; of the sizes of targets.
        reduction: "sum" for a scalar, "none" for the loss of each target.
        normalization_factor: what the sum is divided by: "batch-size" for the size of the axis B (1 if there is none),
            "all-elements" for the number of targets, "mask-included" for the batch size and, in each observation, the
            number of its targets that count, "weights-included" for the sum of the weights of the targets that count
            (PyTorch's mean), or "none".
        data_format: labels of an unformatted `y`, such as "BC".

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes of `y` without C.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        DTypeError: if targets are no integers.
        BoundsError: if a target that counts is no class.
        ArgumentError: for an unknown option.

    Probabilities are kept in the range where the logarithm is finite, as in crossentropy.

    Examples:
        >>> import tracejit as tj
        >>> z = tj.dlarray([[0.0, 1000.0], [0.0, 0.0]], "BC")
        >>> tj.indexcrossentropy(z, [0, -1], from_logits=True, mask_index=-1).item()
        500.0
    """
    from_logits = flag("indexcrossentropy", "from_logits", from_logits)
    array, formatted = labelled("indexcrossentropy", y, data_format, "y")
    format = need_labels("indexcrossentropy", array, "indexcrossentropy finds the classes along C")
    if "C" not in format:
        raise DimsError(f"indexcrossentropy: y of {describe(array)} has no classes (C); label them.")
    axis, count = format.index("C"), array._data.shape[format.index("C")]
    predictions = floating("indexcrossentropy", relabel(array, None))
    numbers = _numbers(array, axis, targets)
    shape = numbers._data.shape
    others = format[:axis] + format[axis + 1 :]
    pair = Compared("indexcrossentropy", numbers, numbers, None, others, formatted)
    pair = masked_targets(pair, mask)
    if mask_index is not None:
        ignored = integer("indexcrossentropy", "mask_index", mask_index)
        counted = apply("not_equal", numbers, ignored)
        included = counted if pair.included is None else apply("logical_and", pair.included, counted)
        pair = pair._replace(targets=apply("where", counted, pair.targets, 0), included=included)
    _check_classes(array, pair, count)
    likelihood = logsoftmax_over(predictions, (axis,)) if from_logits else _log(predictions)
    wide = (*shape[:axis], 1, *shape[axis:])
    classes = np.arange(count, dtype=np.int32)
    # Each number is taken from a table of itself, because the op checks it in replays, too; it counts negative numbers
    # from the end.
    places = apply("where", apply("less", pair.targets, 0), count, pair.targets)
    checked = reshaped(apply("take", classes, places, axis=0), wide, None)
    chosen = apply("equal", checked, classes.reshape(-1, *(1,) * (len(shape) - axis)))
    loss = apply("sum", apply("where", chosen, likelihood, 0.0), axes=(axis,), keepdims=False)
    own = _class_weights(array, weights, count, predictions._data.dtype)
    share = None if own is None else apply("take", own, places, axis=0)
    loss = loss if share is None else apply("mul", loss, share)
    if not is_option(normalization_factor, ("weights-included",)):
        return reduced(
            pair, loss, -1.0, reduction, normalization_factor, (*NORMALIZATIONS, "weights-included")
        )
    share = (
        apply("broadcast_to", np.ones((), predictions._data.dtype), shape=shape) if share is None else share
    )
    if pair.included is not None:
        share = apply("where", pair.included, share, 0.0)
    total = reduced(pair, loss, -1.0, reduction, "none")
    if reduction == "none":
        return total
    return apply("div", total, apply("sum", share, axes=tuple(range(len(shape))), keepdims=False))


@in_single
def focalcrossentropy(
    y: Any,
    targets: Any,
    *,
    gamma: float = 2.0,
    alpha: float = 0.25,
    classification_mode: str = "single-label",
    mask: Any = None,
    reduction: str = "sum",
    normalization_factor: str = "batch-size",
    data_format: str | None = None,
) -> dlarray:
    """Return the focal cross-entropy of predicted probabilities `y` and `targets`, over N observations.

    single-label:  -1/N sum(alpha t (1 - y)**gamma log y)
    multilabel:    -1/N sum(alpha t (1 - y)**gamma log y + (1 - alpha) (1 - t) y**gamma log(1 - y))

    Elements that are predicted well count less than in crossentropy: Lin, Goyal, Girshick, He and Dollar, "Focal loss
    for dense object detection", 2017.

    Args:
        y: dlarray with a label C (multilabel: any), or an unformatted array with `data_format`.
        targets: probabilities of the classes, of the sizes of `y`; onehotencode makes them of labels.
        gamma: the exponent, a number >= 0; 0 for crossentropy times alpha.
        alpha: the weight of targets, a number.
        classification_mode: "single-label" or "multilabel".
        mask, reduction, normalization_factor, data_format: as for crossentropy.

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" an array of the sizes and format of `y`.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an unknown option or an invalid number.

    Probabilities are kept in the range where the logarithm is finite, as in crossentropy.

    Examples:
        >>> import tracejit as tj
        >>> y = tj.dlarray([[0.5, 0.5]], "BC")
        >>> round(tj.focalcrossentropy(y, [[1, 0]], gamma=1, alpha=2).item(), 6)
        0.693147
    """
    power, weight = (float(real("focalcrossentropy", n, v)) for n, v in (("gamma", gamma), ("alpha", alpha)))
    if not power >= 0:
        raise ArgumentError(f"focalcrossentropy: gamma must be a number >= 0, not {brief(gamma)}.")
    if not is_option(classification_mode, ("single-label", "multilabel", "multi-label")):
        raise ArgumentError(
            'focalcrossentropy: classification_mode must be "single-label" or "multilabel", '
            f"not {brief(classification_mode)}."
        )
    pair = compare("focalcrossentropy", y, targets, mask, data_format)
    if classification_mode == "single-label":
        format = need_labels("focalcrossentropy", relabel(pair.y, pair.format), "the classes are along C")
        if "C" not in format:
            raise DimsError(
                f"focalcrossentropy: y is of {pair.describe()}, without classes (C); label them, or use "
                'classification_mode="multilabel" for elements that are independent probabilities.'
            )
    y, targets = pair.y, pair.targets
    of_one = apply("mul", _focus(apply("sub", 1.0, y), power), _log(y))
    loss = apply("mul", apply("mul", targets, weight), of_one)
    if classification_mode != "single-label":
        of_zero = apply("mul", _focus(y, power), _log_of_rest(y))
        rest = apply("mul", apply("sub", 1.0, targets), 1.0 - weight)
        loss = apply("add", loss, apply("mul", rest, of_zero))
    return reduced(pair, loss, -1.0, reduction, normalization_factor)


@in_single
def dice(
    y: Any,
    targets: Any,
    *,
    generalized: bool = False,
    epsilon: float = 1e-8,
    mask: Any = None,
    data_format: str | None = None,
) -> dlarray:
    """Return the Sorensen-Dice similarity of regions, from 0 for disjoint to 1 for equal ones; 1 - it is a loss.

    For each class and observation, sums over all other axes: (2 sum(y t) + epsilon) / (sum(y) + sum(t) + epsilon).
    Generalised, for each observation, with sums over classes k too, weighted by w[k] = 1 / (sum(t) + epsilon)**2:
    (2 sum(w[k] y t) + epsilon) / (sum(w[k] (y + t)) + epsilon).

    Args:
        y: probabilities of classes at each place: dlarray with axes S, T or U, or an unformatted array with
            `data_format`.
        targets: probabilities of the classes, of the sizes of `y`; onehotencode makes them of labels.
        generalized: one similarity for all classes, in which small regions weigh as much as large ones.
        epsilon: a positive number, so that empty regions are equal.
        mask: elements to include, where it is not 0; sizes of `y` or, with labels, those or 1.
        data_format: labels of an unformatted `y`, such as "BCSS".

    Returns:
        dlarray with the axes B and C of `y` (generalised: B), of its dtype; formatted if `y` is.

    Raises:
        DimsError: if sizes or labels do not fit, or a label that is needed is missing.
        ArgumentError: for an epsilon that is no positive number.

    Sudre, Li, Vercauteren, Ourselin and Cardoso, "Generalised Dice overlap as a deep learning loss function", 2017.

    Examples:
        >>> import tracejit as tj
        >>> y = tj.dlarray([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], "CS")
        >>> tj.dice(y, [[1, 0, 0, 0], [0, 1, 1, 1]]).tolist()
        [0.6666666677777777, 0.8000000004]
    """
    wanted = flag("dice", "generalized", generalized)
    small = real("dice", "epsilon", epsilon)
    if not small > 0:
        raise ArgumentError(f"dice: epsilon must be a positive number, not {brief(epsilon)}.")
    pair = compare("dice", y, targets, mask, data_format)
    format = need_labels("dice", relabel(pair.y, pair.format), "dice sums over S, T and U")
    y, targets = pair.y, pair.targets
    if pair.included is not None:
        y = apply("where", pair.included, y, 0.0)
    axes = tuple([axis for axis, label in enumerate(format) if label not in "BC"])
    both = apply("sum", apply("mul", y, targets), axes=axes, keepdims=False)
    of_targets = apply("sum", targets, axes=axes, keepdims=False)
    total = apply("add", apply("sum", y, axes=axes, keepdims=False), of_targets)
    kept = "".join([label for label in format if label in "BC"])
    if wanted:
        weights = apply("reciprocal", apply("square", apply("add", of_targets, small)))
        both, total = apply("mul", both, weights), apply("mul", total, weights)
        if "C" in kept:
            over = (kept.index("C"),)
            both, total = (apply("sum", part, axes=over, keepdims=False) for part in (both, total))
            kept = kept.replace("C", "")
    similarity = apply("div", apply("add", apply("mul", both, 2.0), small), apply("add", total, small))
    return relabel(similarity, kept if pair.formatted else None)


def _log(y: dlarray) -> dlarray:
    return apply("log", at_least(y, floor_of(y)))


def _log_of_rest(y: dlarray) -> dlarray:
    """Return log(1 - y), finite where y is 1."""
    below_one = 1.0 - float(np.finfo(y._data.dtype).epsneg)
    return apply("log1p", apply("neg", apply("where", apply("greater", y, below_one), below_one, y)))


def _focus(x: dlarray, power: float) -> Any:
    """Return x**power, and for x <= 0, which is rounding, the power of 0 without a derivative."""
    if power in (0, 1):
        return x if power else 1.0
    if power == 2:
        return apply("square", x)
    positive = apply("greater", x, 0.0)
    return apply("where", positive, apply("pow", apply("where", positive, x, 1.0), power), 0.0)


def _numbers(array: dlarray, axis: int, targets: Any) -> dlarray:
    """Return the numbers of the classes, with the axes of `array` without the classes' own, and without labels."""
    numbers = as_array(targets, "indexcrossentropy", "targets")
    if numbers._data.dtype.kind not in "iu":
        raise DTypeError(
            f"indexcrossentropy: targets have dtype {numbers._data.dtype}, expected integers, the numbers of the "
            "classes; cast them (targets.astype(np.int64)), or use crossentropy for probabilities."
        )
    shape, format = array._data.shape, array._format or ""
    rest, others = (*shape[:axis], *shape[axis + 1 :]), format[:axis] + format[axis + 1 :]
    found, own = numbers._data.shape, numbers._format
    if own is not None and "C" in own and found[own.index("C")] == 1:
        at = own.index("C")
        found, own = (*found[:at], *found[at + 1 :]), own[:at] + own[at + 1 :]
    elif own is None and len(found) == len(shape) and found[axis] == 1:
        found = (*found[:axis], *found[axis + 1 :])
    order: tuple[int | None, ...] = tuple(range(len(found)))
    if own is not None and sorted(own) == sorted(others):
        order = axes_in(own, others)
    elif own is not None:
        order = (None,)
    if None in order or tuple([found[i] for i in order if i is not None]) != rest:
        raise DimsError(
            f"indexcrossentropy: targets are of {describe(numbers)}, but y is of {describe(array)}; expected a number "
            f"for each place without the classes, {describe_shape(rest, others or None)}."
        )
    return permuted(reshaped(relabel(numbers, None), found, None), tuple([i for i in order if i is not None]))


def _check_classes(array: dlarray, pair: Compared, count: int) -> None:
    """Raise an error for a number that is no class, as the op `take` does in a replay."""
    numbers = pair.targets._data
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        raise BoundsError(
            f"indexcrossentropy: target {numbers[outside][0]} is no class of y of {describe(array)}; classes are 0 to "
            f"{count - 1}. mask_index= names a number that does not count."
        )


def _class_weights(array: dlarray, weights: Any, count: int, dtype: np.dtype) -> dlarray | None:
    if weights is None:
        return None
    vector = relabel(as_array(weights, "indexcrossentropy", "weights"), None)
    if vector._data.size != count or max(vector._data.shape, default=1) != count:
        raise DimsError(
            f"indexcrossentropy: weights are of {describe(vector)}, but y of {describe(array)} has {count} classes; "
            "expected one number for each."
        )
    return in_dtype(reshaped(vector, (count,), None), dtype, "indexcrossentropy: weights of")
