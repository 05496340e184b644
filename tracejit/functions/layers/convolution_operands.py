# SPDX-License-Identifier: BSD-3-Clause
"""The operands of convolutions by label: images, filters and bias."""

from math import prod
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions.formats import describe, labelled, need_labels
from tracejit.functions.layers.spatial import MOST_AXES
from tracejit.functions.movement import permuted, relabel, reshaped
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief


class Images(NamedTuple):
    """The input of a convolution as an array with one axis of images.

    array       without a format
    labels      of its axes: B, C, and S for axes that windows move along
    given       the input as it was given, with labels
    order       its axes in the order of `array`, where those of images follow each other
    """

    array: dlarray
    labels: str
    given: dlarray
    order: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes of the axes that windows move along."""
        shape = self.array._data.shape
        return tuple([shape[axis] for axis, label in enumerate(self.labels) if label == "S"])

    @property
    def channels(self) -> int:
        extent: int = self.array._data.shape[self.labels.index("C")]
        return extent

    @property
    def format(self) -> str:
        format = self.given._format
        assert format is not None
        return format

    @property
    def _added(self) -> int:
        """The number of axes of images beyond the first; -1 if there are none."""
        return len(self.order) - len(self.labels)

    def name(self, number: int) -> str:
        """Return how a message names the spatial axis `number`: by its size and label."""
        place = [place for place, label in enumerate(self.labels) if label == "S"][number]
        axis = self.order[place + self._added if place > self.labels.index("B") else place]
        return f"{self.given._data.shape[axis]}({self.format[axis]})"

    def restored(self, result: dlarray) -> dlarray:
        """Return a result with such axes as one with the axes of the input as it was given."""
        shape, at = result._data.shape, self.labels.index("B")
        own = [self.given._data.shape[axis] for axis in self.order[at : at + self._added + 1]]
        result = reshaped(result, (*shape[:at], *own, *shape[at + 1 :]), None)
        return permuted(result, tuple(np.argsort(self.order).tolist()))


class Filters(NamedTuple):
    """The weights of a convolution: an array without a format, its labels S, C and U, and how a message shows them."""

    array: dlarray
    labels: str
    text: str

    def extent(self, label: str) -> int:
        extent: int = self.array._data.shape[self.labels.index(label)]
        return extent

    @property
    def taps(self) -> tuple[int, ...]:
        shape = self.array._data.shape
        return tuple([shape[axis] for axis, label in enumerate(self.labels) if label == "S"])


def images_of(function: str, x: Any, data_format: Any, taps: int) -> tuple[Images, bool]:
    """Return the input of a convolution, and whether it was formatted.

    Args:
        function: in whose name errors are raised.
        x: the input.
        data_format: labels of an unformatted one.
        taps: the number of spatial axes of the weights.
    """
    array, formatted = labelled(function, x, data_format)
    format = need_labels(function, array, "windows move along axes S, or T where there is no S")
    if "C" not in format:
        raise DimsError(
            f"{function}: x of {describe(array)} has no axis C, over which a convolution sums; add one of size 1 with "
            'expand_dims(x, axis, "C").'
        )
    moving = "S" if "S" in format else "T"
    if "T" in format and taps == format.count("S") + 1:
        moving = "ST"
    spatial = [axis for axis, label in enumerate(format) if label in moving]
    if not 1 <= len(spatial) <= MOST_AXES:
        raise DimsError(
            f"{function}: x of {describe(array)} has {len(spatial)} axes for windows to move along; expected 1 to "
            f"{MOST_AXES} axes S, or T where there is no S."
        )
    return _merged(array, format, spatial), formatted


def _merged(array: dlarray, format: str, spatial: list[int]) -> Images:
    """Return images whose axes besides C and those in `spatial` are one."""
    images = [axis for axis, label in enumerate(format) if label != "C" and axis not in spatial]
    others = [axis for axis in range(len(format)) if axis not in images]
    is_joined = bool(images) and images[-1] - images[0] + 1 == len(images)
    place = images[0] if is_joined else 0  # what does not lie side by side is moved to the front
    order = (*others[:place], *images, *others[place:])
    shape = array._data.shape
    sizes = [shape[axis] for axis in others]
    sizes.insert(place, prod([shape[axis] for axis in images]))
    labels = ["C" if format[axis] == "C" else "S" for axis in others]
    labels.insert(place, "B")
    moved = permuted(relabel(array, None), order)
    return Images(reshaped(moved, tuple(sizes), None), "".join(labels), array, order)


def weights_of(function: str, weights: Any, weights_format: Any) -> dlarray:
    """Return weights with their labels, if they have some or `weights_format` gives them."""
    array = as_array(weights, function, "weights")
    if weights_format is not None:
        if array._format is not None:
            raise DimsError(
                f"{function}: weights_format={brief(weights_format)} is given for weights of {describe(array)}, which "
                "have labels of their own; leave weights_format out, or remove the labels with stripdims(weights)."
            )
        array, _ = labelled(function, array, weights_format, "weights", "weights_format")
    return array


def filters_of(function: str, weights: dlarray, images: Images, orders: tuple[str, str]) -> Filters:
    """Return the weights of a convolution.

    Args:
        function: in whose name errors are raised.
        weights: the weights.
        images: the input.
        orders: labels of weights without any, with one S for all: for an input whose channels stand before its
            spatial axes as in "BCSS", and for others.
    """
    count = images.labels.count("S")
    shape, format = weights._data.shape, weights._format
    wanted = orders[0 if images.labels.startswith("BC") else 1].replace("S", "S" * count)
    labels = wanted if format is None else format.replace("T", "S")
    text = describe(weights)
    if len(labels) != len(shape) or sorted(labels) != sorted("CU" + "S" * count):
        lacking = (
            "" if format is not None else f", and no labels (an input {images.format!r} takes {wanted!r})"
        )
        raise DimsError(
            f"{function}: weights of {text} have {weights._data.ndim} axes{lacking}, but x of "
            f"{describe(images.given)} takes weights with one axis C, one axis U and {count} spatial axes S; give "
            "their labels by weights_format."
        )
    if format is None:
        text = describe(relabel(weights, labels))
    return Filters(relabel(weights, None), labels, text)


def bias_of(function: str, bias: Any, count: int, filters: Filters) -> dlarray | None:
    """Return the bias of a convolution as a vector of `count` numbers or of one, None if there is none."""
    if bias is None or (type(bias) in (int, float) and bias == 0):
        return None
    array = relabel(as_array(bias, function, "bias"), None)
    size = array._data.size
    if size not in (1, count) or max(array._data.shape, default=1) != size:
        raise DimsError(
            f"{function}: bias is of {describe(array)}, but the result has {count} channels, with weights of "
            f"{filters.text}; bias must be ({count},) or one number."
        )
    return reshaped(array, (size,), None)


def with_bias(y: dlarray, bias: dlarray | None, axis: int) -> dlarray:
    """Return a result with a bias added along the axis of its channels."""
    if bias is None:
        return y
    shape = [1] * y._data.ndim
    shape[axis] = bias._data.size
    return apply("add", y, reshaped(bias, tuple(shape), None))
