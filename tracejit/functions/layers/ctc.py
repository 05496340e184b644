# SPDX-License-Identifier: BSD-3-Clause
"""ctc: the loss of labels that come in order, but at unknown steps."""

from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import ArgumentError, ArgumentValueError, DimsError
from tracejit.functions import elementwise, reductions
from tracejit.functions.formats import describe
from tracejit.functions.halves import in_single
from tracejit.functions.layers.activations import logsoftmax_over
from tracejit.functions.layers.sequences import observed, sequence
from tracejit.functions.movement import expanded, permuted, relabel, reshaped
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, integer, is_option
from tracejit.util.text import brief


@in_single
def ctc(
    y: Any,
    targets: Any,
    y_mask: Any = None,
    target_mask: Any = None,
    *,
    blank_index: Any = "first",
    from_logits: bool = False,
    zero_infinity: bool = False,
    reduction: str = "mean",
    data_format: str | None = None,
) -> dlarray:
    """Return the loss of connectionist temporal classification: minus the log of the probability of the targets.

    An alignment gives each step a label or the blank; without repetitions and blanks, in this order, it is the
    target. The probability of a target is the sum over all its alignments of the products of y at all steps.

    Args:
        y: probabilities of the classes, the blank one of them: a dlarray with the labels C, T (or one S) and perhaps
            B in any order, or an unformatted array with `data_format`.
        targets: integers, numbers of classes along C: (batch, labels), or labelled B and T; a vector for one
            observation. What is beyond the length of a target is not read.
        y_mask: steps of `y` that count, which are the first ones: booleans or numbers (batch, steps), or labelled B
            and T; or integers (batch,), their numbers. None for all.
        target_mask: labels of `targets` that count, likewise.
        blank_index: class of the blank: "first", "last", or an integer from 0.
        from_logits: `y` holds what goes into softmax, not probabilities: prefer that, which is exact where
            probabilities round to 0.
        zero_infinity: whether the loss of a target that has no alignment (more labels than steps) is 0, not infinity.
            Its gradient is 0 in both cases.
        reduction: "mean" for the sum over the batch, divided by its size; "none" for the loss of each observation.
        data_format: labels of an unformatted `y`, such as "CBT".

    Returns:
        Unformatted scalar of the dtype of `y`; for reduction="none" a vector (batch,), labelled B if `y` was
        labelled and had several observations.

    Raises:
        DimsError: if labels or sizes do not fit.
        ArgumentError: for an unknown option.
        BoundsError: if a target is no class or the blank one, or a length is longer than its axis.

    A. Graves et al., "Connectionist temporal classification", 2006, with all sums in logarithms. Probabilities below
    1e-31 in float32, or 1e-292 in float64, count as that number. There are no second derivatives: dlgradient raises
    a GradientError.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> y = tj.dlarray(np.full((2, 3), 0.5), "CT")  # blank and one label, in three steps
        >>> round(float(np.exp(-tj.ctc(y, [1]).item())), 6)  # 6 of 8 alignments
        0.75
    """
    found = sequence("ctc", "y", y, data_format, needs_length=True)
    batch, steps, classes = found.sizes
    from_logits = flag("ctc", "from_logits", from_logits)
    zero_infinity = flag("ctc", "zero_infinity", zero_infinity)
    if not is_option(reduction, ("mean", "none")):
        raise ArgumentError(f'ctc: reduction must be "mean" or "none", not {brief(reduction)}.')
    blank = _blank(blank_index, classes)
    labels = _targets(targets, batch)
    lengths = _lengths("y_mask", y_mask, batch, steps, "steps")
    label_lengths = _lengths("target_mask", target_mask, batch, labels._data.shape[1], "labels")
    if from_logits:
        logs = logsoftmax_over(found.data, (2,))
    else:
        info = np.finfo(found.data.dtype)
        least = found.data.dtype.type(float(info.tiny) / float(info.eps))
        logs = apply("log", apply("maximum", found.data, least))
    loss, _ = apply("ctc_forward", logs, labels, lengths, label_lengths, blank=blank)
    if zero_infinity:
        loss = apply("where", apply("isinf", loss), loss.dtype.type(0), loss)
    if reduction == "none":
        return relabel(loss, "B" if found.formatted and "B" in found.format else None)
    return apply("mul", apply("sum", loss, axes=(0,), keepdims=False), 1 / batch if batch else np.nan)


def _blank(blank_index: Any, classes: int) -> int:
    """Return the number of the blank class."""
    if is_option(blank_index, ("first", "last")):
        return 0 if blank_index == "first" else classes - 1
    if isinstance(blank_index, (str, bytes)):
        raise ArgumentError(
            f'ctc: blank_index must be "first", "last" or an integer, not {brief(blank_index)}.'
        )
    blank = integer("ctc", "blank_index", blank_index)
    if not 0 <= blank < classes:
        raise ArgumentError(f"ctc: blank_index is {blank}, but y has {classes} classes, 0 to {classes - 1}.")
    return blank


def _targets(targets: Any, batch: int) -> dlarray:
    """Return the targets as integers (batch, labels)."""
    given = array = as_array(targets, "ctc", "targets")
    format = array._format
    if format is not None:
        plain = format.replace("S", "T")
        order = [plain.index(label) for label in "BT" if label in plain]
        rest = [axis for axis in range(len(format)) if axis not in order]
        array = relabel(array, None)
        if all(array._data.shape[axis] == 1 for axis in rest) and "T" in plain:
            shape = tuple(array._data.shape[axis] for axis in order)
            array = reshaped(permuted(array, (*order, *rest)), shape, None)
    if array._data.ndim == 1 and batch == 1:
        array = reshaped(array, (1, array._data.shape[0]), None)
    if array._data.ndim != 2 or array._data.shape[0] != batch:
        raise DimsError(
            f"ctc: targets are of {describe(given)}, but must be (batch, labels) for {batch} observations, or have the "
            "labels B and T."
        )
    if array._data.dtype.kind not in "iuf":
        raise ArgumentError(f"ctc: targets are {array._data.dtype}, but must be numbers of classes.")
    if array._data.dtype.kind == "f":
        whole = reductions.all(elementwise.floor(array) == array)
        if not bool(recorder.need_value(whole, "the targets of ctc", Decides.TRUTH)):
            raise ArgumentValueError("ctc: targets have fractions, but must be numbers of classes.")
    return array


def _lengths(argument: str, mask: Any, batch: int, most: int, steps: str) -> dlarray:
    """Return how many steps, or labels, each observation has."""
    if mask is None:
        return as_array(np.full(batch, most, np.int64), "ctc", argument)
    array = as_array(mask, "ctc", argument)
    counts = array._data.ndim == 1 and array._data.dtype.kind in "iu" and array._format in (None, "B")
    if counts and array._data.shape[0] in (1, batch):
        return expanded(relabel(array, None), (batch,))
    return apply("sum", observed("ctc", argument, mask, batch, most, steps), axes=(1,), keepdims=False)
