# SPDX-License-Identifier: BSD-3-Clause
"""Collections of observations: arrays along an axis, lists, and data sets whose items are observations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.formats import describe
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, count

_FUNCTION = "minibatchqueue"


class Array(NamedTuple):
    """Observations along an axis of an array.

    elements    the array
    axis        along which its observations lie
    format      its labels, or None
    """

    elements: np.ndarray
    axis: int
    format: str | None

    @property
    def length(self) -> int:
        """The number of observations."""
        return int(self.elements.shape[self.axis])

    @property
    def what(self) -> str:
        """The size and dtype of an observation."""
        shape = self.elements.shape
        one = shape[: self.axis] + shape[self.axis + 1 :]
        labels = None if self.format is None else self.format.replace("B", "")
        return f"{describe_shape(one, labels)} {self.elements.dtype}" if one else str(self.elements.dtype)

    def take(self, numbers: np.ndarray) -> tuple[Any, ...]:
        """Return the observations with some numbers."""
        taken = np.take(self.elements, numbers, self.axis)
        return (taken if self.format is None else dlarray(taken, self.format),)


class Items(NamedTuple):
    """Observations that are the items of a list or a data set."""

    data: Any

    @property
    def length(self) -> int:
        """The number of observations."""
        return len(self.data)

    @property
    def what(self) -> str:
        """The class of the collection."""
        return f"{type(self.data).__name__} of items"

    def take(self, numbers: np.ndarray) -> tuple[Any, ...]:
        """Return the observations with some numbers: a list of them, or a list for each part of their tuples."""
        items = [self.data[number] for number in numbers.tolist()]
        if not items or not all(isinstance(item, tuple) for item in items):
            return (items,)
        for number, item in zip(numbers.tolist(), items, strict=True):
            if len(item) != len(items[0]):
                raise DimsError(
                    f"{_FUNCTION}: observations {numbers[0]} and {number} have {count(len(items[0]), 'part')} and "
                    f"{len(item)}; the tuples of a list or data set must have the same parts."
                )
        return tuple([list(part) for part in zip(*items, strict=True)])


Observations = Array | Items
"""One of the collections that a queue takes its mini-batches from."""


def observations(data: Any, name: str) -> Observations:
    """Return an argument of a queue as a collection of observations.

    Args:
        data: an array, whose observations lie along the axis labelled B, else along the first one; a list or tuple of
            observations; or an object with a length whose items are observations, or tuples of their parts.
        name: of the argument.

    Raises:
        ArgumentError: `data` is none of these.
        DimsError: an array has no axis of observations.
    """
    if isinstance(data, (dlarray, np.ndarray)) or hasattr(type(data), "__dlpack__"):
        return _of_array(as_array(data, _FUNCTION, name), name)
    if isinstance(data, (str, bytes, dict)) or not _has_items(data):
        raise ArgumentError(
            f"{_FUNCTION}: {name} must be an array, a list of observations, or an object with a length whose items are "
            f"observations, not {brief(data)}."
        )
    return Items(data)


def _has_items(data: Any) -> bool:
    try:
        return len(data) >= 0 and hasattr(type(data), "__getitem__")
    except Exception:  # of its own code; a sparse matrix raises a TypeError that says why it has no length
        return False


def _of_array(array: dlarray, name: str) -> Array:
    if not array.ndim:
        raise DimsError(f"{_FUNCTION}: {name} is a {describe(array)} without an axis of observations.")
    format = array.format
    if format is not None and "B" not in format:
        raise DimsError(
            f"{_FUNCTION}: {name} of {describe(array)} has no axis of observations (B); label one, or pass an array "
            "without labels, whose observations lie along the first axis."
        )
    return Array(np.asarray(array), 0 if format is None else format.index("B"), format)


def stacked(observations: Sequence[Any], place: str) -> np.ndarray:
    """Return observations of one size as an array, along its first axis.

    Raises:
        DimsError: they have several sizes.
        ArgumentError: one is no array.
        DTypeError: one is an array of something else than numbers.
    """
    arrays = [np.asarray(as_array(item, _FUNCTION, place)) for item in observations]
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise DimsError(
                f"{_FUNCTION}: observations of {place} have sizes {describe_shape(arrays[0].shape, None)} and "
                f"{describe_shape(array.shape, None)}; pad them to one size in mini_batch_fcn, which gets a list."
            )
    return np.stack(arrays)
