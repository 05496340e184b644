# SPDX-License-Identifier: BSD-3-Clause
"""Input layers: sizes of the data, and their normalisation."""

from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.aval import is_inexact
from tracejit.errors import ArgumentError, DimsError
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import number_of, sizes_of
from tracejit.nn.layout import DataLayout
from tracejit.record import recorder as recorders
from tracejit.util.arguments import is_option
from tracejit.util.text import brief

_STATISTICS = {
    "none": (),
    "zerocenter": ("mean",),
    "zscore": ("mean", "standard_deviation"),
    "rescale-zero-one": ("min", "max"),
    "rescale-symmetric": ("min", "max"),
}


class InputLayer(BuiltInLayer):
    """The base class of input layers, which tell the layout of an input and normalise it.

    Normalisation: "none"; "zerocenter" x - mean; "zscore" (x - mean) / standard_deviation; "rescale-zero-one"
    (x - min) / (max - min); "rescale-symmetric" the same to -1 to 1; or a function of x. Statistics are numbers, or
    arrays of one element for each channel, or of the size of one observation with axes as the layer gives them.
    """

    _observed = ""  # labels of the axes of one observation

    def __init__(
        self, size: tuple[int, ...], format: str, name: str, normalization: Any, statistics: dict[str, Any]
    ) -> None:
        self.name = name
        kind = type(self).__name__
        if not callable(normalization) and not is_option(normalization, _STATISTICS):
            raise ArgumentError(
                f"{kind}: normalization must be one of {', '.join(_STATISTICS)}, or a function, not "
                f"{brief(normalization)}."
            )
        self.layout = DataLayout((*size, *[None] * (len(format) - len(size))), format)
        self.input_size = size
        self.normalization = normalization
        wanted = () if callable(normalization) else _STATISTICS[normalization]
        for statistic, value in statistics.items():
            if statistic not in wanted:
                if value is not None:
                    raise ArgumentError(
                        f"{kind}: {statistic} is given, but normalization={normalization!r} does not use it; leave "
                        "it out."
                    )
                continue
            if value is None:
                raise ArgumentError(
                    f"{kind}: normalization={normalization!r} needs {' and '.join(wanted)}; pass them, computed over "
                    "the "
                    "training data."
                )
            setattr(self, statistic, self._labelled(statistic, value))

    def _labelled(self, name: str, value: Any) -> dlarray:
        array = as_array(value, type(self).__name__, name)
        channels = self.layout.size_of("C")
        observed = (self.layout.format or "")[: len(self.input_size)]
        if array._format is not None or array._data.size == 1:
            return array if array._format is not None else dlarray(array._data.astype(np.float32).reshape(()))
        if array._data.ndim == 1 and array._data.size == channels:
            return dlarray(array._data.astype(np.float32), "C")
        if array._data.shape == self.input_size:
            return dlarray(array._data.astype(np.float32), observed)
        raise DimsError(
            f"{type(self).__name__}: {name} is of {recorders.describe(array)}; expected a number, one for each of "
            f"{channels} channels, or the size of an observation, {self.input_size}."
        )

    def predict(self, x: Any) -> Any:
        array = self._checked(x)
        kind: Any = self.normalization
        own: Any = self
        if callable(kind):
            return kind(array)
        if kind == "zerocenter":
            return _as(array, array - own.mean)
        if kind == "zscore":
            return _as(array, (array - own.mean) / own.standard_deviation)
        if kind == "none":
            return array
        scaled = (array - own.min) / (own.max - own.min)
        return _as(array, scaled if kind == "rescale-zero-one" else 2 * scaled - 1)

    def _checked(self, x: Any) -> dlarray:
        array = as_array(x)
        wanted = DataLayout(self.input_size, (self.layout.format or "")[: len(self.input_size)])
        if array._format is None:
            labels = "".join(sorted(self.layout.format or "", key="BTSC".index))
            raise DimsError(
                f"the input of {recorders.describe(array)} has no labels; expected {wanted!r} and "
                f'observations (B): pass dlarray(x, "{labels}"), with the label of each axis.'
            )
        for label in "SC":
            sizes = tuple(
                [s for s, own in zip(array._data.shape, array._format, strict=True) if own == label]
            )
            expected = self.layout.sizes_of(label)
            if sizes != expected:
                raise DimsError(
                    f"the input of size {recorders.describe(array)} does not fit the layer, which expects {wanted!r} "
                    "and any "
                    "number of observations (B), in any order of the axes."
                )
        return array


def _as(x: dlarray, y: dlarray) -> dlarray:
    """Return what was computed of an array in its dtype, if that is of floating point."""
    return y.astype(x.dtype) if is_inexact(x.dtype) and y.dtype != x.dtype else y


class ImageInput(InputLayer):
    """The input of images.

    Args:
        input_size: height, width and channels.
        normalization: "none", "zerocenter", "zscore", "rescale-zero-one", "rescale-symmetric" or a function.
        mean, standard_deviation, min, max: what the normalisation needs, computed over the training data: numbers, one
            for each channel, or arrays of the size of an image.
        name: of the layer.

    Raises:
        ArgumentError: if the normalisation is unknown, or lacks what it needs.
        DimsError: if a size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.ImageInput((28, 28, 1)).layout
        28(S) x 28(S) x 1(C) x ?(B)
    """

    default_name = "imageinput"

    def __init__(
        self, input_size: Any, *, normalization: Any = "none", mean: Any = None, standard_deviation: Any = None,
        min: Any = None, max: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        size = sizes_of("ImageInput", "input_size", input_size, 3)
        statistics = {"mean": mean, "standard_deviation": standard_deviation, "min": min, "max": max}
        super().__init__(size, "SSCB", name, normalization, statistics)


class Image3dInput(InputLayer):
    """The input of images with three spatial axes.

    Args:
        input_size: height, width, depth and channels.
        normalization, mean, standard_deviation, min, max, name: as in ImageInput.

    Raises:
        ArgumentError: if the normalisation is unknown, or lacks what it needs.
        DimsError: if a size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.Image3dInput((8, 8, 8, 1)).layout
        8(S) x 8(S) x 8(S) x 1(C) x ?(B)
    """

    default_name = "image3dinput"

    def __init__(
        self, input_size: Any, *, normalization: Any = "none", mean: Any = None, standard_deviation: Any = None,
        min: Any = None, max: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        size = sizes_of("Image3dInput", "input_size", input_size, 4)
        statistics = {"mean": mean, "standard_deviation": standard_deviation, "min": min, "max": max}
        super().__init__(size, "SSSCB", name, normalization, statistics)


class FeatureInput(InputLayer):
    """The input of vectors of features.

    Args:
        input_size: number of features.
        normalization, mean, standard_deviation, min, max, name: as in ImageInput.

    Raises:
        ArgumentError: if the normalisation is unknown, or lacks what it needs.
        DimsError: if the size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.FeatureInput(64).layout
        64(C) x ?(B)
    """

    default_name = "input"

    def __init__(
        self, input_size: Any, *, normalization: Any = "none", mean: Any = None, standard_deviation: Any = None,
        min: Any = None, max: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        size = (number_of("FeatureInput", "input_size", input_size),)
        statistics = {"mean": mean, "standard_deviation": standard_deviation, "min": min, "max": max}
        super().__init__(size, "CB", name, normalization, statistics)


class SequenceInput(InputLayer):
    """The input of sequences of vectors, or of images.

    Args:
        input_size: number of features; or height, width and channels of the images of a sequence.
        min_length: shortest sequence that the network can take.
        normalization, mean, standard_deviation, min, max, name: as in ImageInput.

    Raises:
        ArgumentError: if the normalisation is unknown, or lacks what it needs.
        DimsError: if a size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.SequenceInput(12).layout
        12(C) x ?(B) x ?(T)
    """

    default_name = "sequenceinput"

    def __init__(
        self, input_size: Any, *, min_length: int = 1, normalization: Any = "none", mean: Any = None,
        standard_deviation: Any = None, min: Any = None, max: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        size = sizes_of("SequenceInput", "input_size", input_size)
        statistics = {"mean": mean, "standard_deviation": standard_deviation, "min": min, "max": max}
        super().__init__(size, "S" * (len(size) - 1) + "CBT", name, normalization, statistics)
        self.min_length = number_of("SequenceInput", "min_length", min_length)


class AnyInput(BuiltInLayer):
    """The input of arrays of any layout.

    Args:
        input_size: one size for each axis, None where it is unknown.
        format: labels of the axes; None for arrays without labels.
        name: of the layer.

    Raises:
        DimsError: if sizes and labels do not fit.

    Examples:
        >>> from tracejit import nn
        >>> nn.Input((None, 5, 3), "BSC").layout
        ?(B) x 5(S) x 3(C)
    """

    default_name = "input"

    def __init__(self, input_size: Any, format: str | None = None, *, name: str = "") -> None:
        self.name = name
        self.layout = DataLayout(input_size, format)

    def predict(self, x: Any) -> Any:
        return as_array(x)
