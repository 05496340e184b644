# SPDX-License-Identifier: BSD-3-Clause
"""Operands of functions of sequences: labelled in any order, and as (batch, length, channels) within."""

from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.formats import describe, floating, labelled, need_labels
from tracejit.functions.movement import expanded, permuted, relabel, reshaped
from tracejit.util.named_tuples import NamedTuple


class LabelledSequence(NamedTuple):
    """An operand as an unformatted array (batch, length, channels).

    data        the array; without an axis B or T its extent is 1
    format      the labels that the operand came with, or that data_format gave
    formatted   whether they were its own
    """

    data: dlarray
    format: str
    formatted: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The batch, the length and the channels."""
        batch, length, channels = self.data._data.shape
        return batch, length, channels

    def restored(self, result: dlarray) -> dlarray:
        """Return a result (batch, length, channels) with the labels and the order of axes of this operand."""
        wanted = [label for label in "BTC" if label in self.format.replace("S", "T")]
        shape = tuple(
            extent for label, extent in zip("BTC", result._data.shape, strict=True) if label in wanted
        )
        plain = reshaped(result, shape, None)
        order = tuple(wanted.index("T" if label == "S" else label) for label in self.format)
        return relabel(permuted(plain, order), self.format if self.formatted else None)

    def restored_state(self, state: dlarray) -> dlarray:
        """Return a state (batch, channels) with the labels and the order of this operand, without its length."""
        format = "".join(label for label in self.format if label in "BC")
        if format == "C":
            state = reshaped(state, state._data.shape[1:], None)
        elif format == "CB":
            state = permuted(state, (1, 0))
        return relabel(state, format if self.formatted else None)


def sequence(
    function: str, argument: str, x: Any, data_format: str | None, *, needs_length: bool
) -> LabelledSequence:
    """Return an operand whose labels are C, T (or one S) and perhaps B, in any order.

    Raises:
        DimsError: if it has other labels or lacks one that is needed, or has no labels and there is no data_format.
        ArgumentError: if it is no array.
    """
    array, formatted = labelled(function, x, data_format, argument)
    format = need_labels(function, array, f"{function} goes along the time (T)")
    plain = format.replace("S", "T")
    allowed = ("BCT", "CT") if needs_length else ("BCT", "CT", "BC", "C")
    if "".join(sorted(plain)) not in allowed:
        raise DimsError(
            f"{function}: {argument} is of {describe(array)}, but its labels must be C (channels), "
            f"T (time; or one S){'' if needs_length else ' if it has several steps'} and B if it has several "
            "observations, each once; relabel it with dlarray(x, format)."
        )
    data = floating(function, relabel(array, None))
    order = [plain.index(label) for label in "BTC" if label in plain]
    shape = tuple(array._data.shape[plain.index(label)] if label in plain else 1 for label in "BTC")
    return LabelledSequence(reshaped(permuted(data, tuple(order)), shape, None), format, formatted)


def observed(function: str, argument: str, mask: Any, batch: int, length: int, steps: str) -> dlarray:
    """Return a mask of the steps that count as booleans (batch, length). `steps` is a word for messages.

    Raises:
        DimsError: if it is not (batch, length), of the labels B and T, or those with axes of size 1.
    """
    given = array = as_array(mask, function, argument)
    format = array._format
    if format is not None:
        plain = format.replace("S", "T")
        order = [plain.index(label) for label in "BT" if label in plain]
        rest = [axis for axis in range(len(format)) if axis not in order]
        if all(array._data.shape[axis] == 1 for axis in rest) and "T" in plain:
            shape = tuple(array._data.shape[axis] for axis in order)
            array = permuted(relabel(array, None), (*order, *rest))
            array = reshaped(array, (1,) * (2 - len(shape)) + shape, None)
    if "B" in (array._format or "")[1:] or array._data.shape not in ((batch, length), (1, length)):
        raise DimsError(
            f"{function}: {argument} is of {describe(given)}, but must be (batch, {steps}) = {(batch, length)}, or "
            "have the labels B and T."
        )
    array = relabel(array, None)
    if array._data.dtype != bool:
        array = apply("not_equal", array, 0)
    return expanded(array, (batch, length))
