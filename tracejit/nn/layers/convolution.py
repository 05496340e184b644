# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions along one, two or three axes, and their transposes."""

import math
from typing import Any

from tracejit.array import dlarray
from tracejit.errors import DimsError
from tracejit.functions.layers.convolution import dlconv, dltranspconv
from tracejit.functions.movement import relabel
from tracejit.nn.fields import LearnableField
from tracejit.nn.initializers import check_initializer, initial
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import channels_of, number_of, set_factors, sizes_of
from tracejit.nn.layout import DataLayout
from tracejit.record import recorder as recorders


class ConvolutionLayer(BuiltInLayer):
    """The base class of convolutions: weights labelled 'UCS...' (filters, channels of a group, taps), and a bias."""

    weights = LearnableField()
    bias = LearnableField(l2_factor=0)
    default_name = "conv"
    _axes = 0
    _labels = "UC"  # of weights, before one S for each axis
    groups: Any = 1

    def __init__(
        self, filter_size: Any, num_filters: Any, stride: Any, dilation_factor: Any, weights_initializer: Any,
        bias_initializer: Any, weights: Any, bias: Any, learn_rate_factor: Any, l2_factor: Any, name: str,
    ) -> None:  # fmt: skip
        kind = type(self).__name__
        self.name = name
        self.filter_size = sizes_of(kind, "filter_size", filter_size, self._axes)
        self.num_filters = number_of(kind, "num_filters", num_filters)
        self.stride = sizes_of(kind, "stride", stride, self._axes)
        self.dilation_factor = sizes_of(kind, "dilation_factor", dilation_factor, self._axes)
        self.weights_initializer = check_initializer(kind, "weights_initializer", weights_initializer)
        self.bias_initializer = check_initializer(kind, "bias_initializer", bias_initializer)
        if weights is not None:
            self.weights = weights
        if bias is not None:
            self.bias = bias
        set_factors(self, learn_rate_factor, l2_factor)

    def initialize(self, layout: DataLayout) -> None:
        kind = type(self).__name__
        channels = channels_of(kind, layout)
        groups = channels if self.groups == "channel-wise" else self.groups
        if not groups or channels % groups:
            raise DimsError(
                f"{kind}: {channels} channels cannot be shared by {groups} groups; choose a divisor."
            )
        self._fill(channels, groups)

    def _fill(self, channels: int, groups: int) -> None:
        taps = math.prod(self.filter_size)
        own, filters = channels // groups, self.num_filters * (groups if self.groups != 1 else 1)
        self._set((filters, own), own * taps, self.num_filters * taps, filters)

    def _set(self, sizes: tuple[int, int], inputs: int, outputs: int, filters: int) -> None:
        """Set weights and bias that are not set, or label weights that have no labels."""
        format = self._labels + "S" * self._axes
        size = (*sizes, *self.filter_size)
        if self.weights is None:
            value = initial("weights", self.weights_initializer, size, inputs, outputs)
            self.weights = dlarray(value._data, format)
        elif recorders.as_array(self.weights)._format is None:
            self.weights = dlarray(recorders.as_array(self.weights)._data, format)
        if self.bias is None:
            self.bias = initial("bias", self.bias_initializer, (filters,), inputs, outputs)

    def _filters(self) -> dlarray:
        """Return the weights; a container of other arrays (tree.map) may have left out their labels."""
        weights: dlarray = recorders.as_array(self.weights)
        return relabel(weights, weights._format or self._labels + "S" * self._axes)


class _Convolution(ConvolutionLayer):
    def __init__(
        self, filter_size: Any, num_filters: Any, *, stride: Any = 1, padding: Any = 0, dilation_factor: Any = 1,
        weights_initializer: Any = "glorot", bias_initializer: Any = "zeros", weights: Any = None, bias: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        super().__init__(
            filter_size, num_filters, stride, dilation_factor, weights_initializer, bias_initializer, weights, bias,
            learn_rate_factor, l2_factor, name,
        )  # fmt: skip
        self.padding = padding

    def predict(self, x: Any) -> Any:
        groups, weights = self.groups, self._filters()
        if groups == "channel-wise":
            groups = weights._data.shape[(weights._format or "").index("U")] // self.num_filters
        return dlconv(
            x, weights, self.bias, stride=self.stride, padding=self.padding,
            dilation_factor=self.dilation_factor, groups=groups,
        )  # fmt: skip


class Convolution1d(_Convolution):
    """A convolution along the only spatial axis, or along time.

    Args:
        filter_size: taps.
        num_filters: number of filters, which are the channels of the output.
        stride, padding, dilation_factor: as in tj.dlconv: padding may be "same" or "causal".
        weights: (filters, channels, taps), or labelled 'UCS' in any order; None to initialise them.
        weights_initializer, bias_initializer, bias, learn_rate_factor, l2_factor, name: as in Convolution2d.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(3, min_length=5), nn.Convolution1d(5, 8)])
        >>> net.learnables["conv", "weights"].shape
        (8, 3, 5)
    """

    _axes = 1


class Convolution2d(_Convolution):
    """A convolution along two spatial axes.

    Args:
        filter_size: height and width, or one number for both.
        num_filters: number of filters, which are the channels of the output.
        stride, padding, dilation_factor: as in tj.dlconv: padding may be "same".
        weights_initializer, bias_initializer: "glorot", "he", "orthogonal", "narrow-normal", "zeros", "ones", or a
            function of the size.
        weights: (filters, channels, height, width), or labelled 'UCSS' in any order; None to initialise them.
        bias: (filters,); None to initialise it.
        learn_rate_factor, l2_factor: a number, or numbers by the names of the learnables.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((28, 28, 1)), nn.Convolution2d(5, 20)])
        >>> net.learnables["conv", "weights"].shape
        (20, 1, 5, 5)
    """

    _axes = 2


class Convolution3d(_Convolution):
    """A convolution along three spatial axes.

    Args:
        filter_size: height, width and depth, or one number for all.
        num_filters: number of filters, which are the channels of the output.
        stride, padding, dilation_factor: as in tj.dlconv.
        weights_initializer, bias_initializer, weights, bias, learn_rate_factor, l2_factor, name: as in Convolution2d.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.Image3dInput((8, 8, 8, 1)), nn.Convolution3d(3, 4)])
        >>> net.learnables["conv", "weights"].shape
        (4, 1, 3, 3, 3)
    """

    _axes = 3


class GroupedConvolution2d(_Convolution):
    """A convolution along two spatial axes, for each group of channels by itself.

    Args:
        filter_size: height and width, or one number for both.
        num_filters_per_group: number of filters of each group.
        num_groups: number of groups; "channel-wise" for one for each channel.
        options: stride, padding, dilation_factor, weights_initializer, bias_initializer, weights, bias,
            learn_rate_factor, l2_factor and name, as in Convolution2d.

    Raises:
        DimsError: if a size is not positive, or the channels cannot be shared.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((8, 8, 4)), nn.GroupedConvolution2d(3, 2, "channel-wise")])
        >>> net.learnables["groupedconv", "weights"].shape
        (8, 1, 3, 3)
    """

    _axes = 2
    default_name = "groupedconv"

    def __init__(self, filter_size: Any, num_filters_per_group: Any, num_groups: Any, **options: Any) -> None:
        super().__init__(filter_size, num_filters_per_group, **options)
        is_each = isinstance(num_groups, str) and num_groups == "channel-wise"
        self.groups = num_groups if is_each else number_of("GroupedConvolution2d", "num_groups", num_groups)


class _TransposedConvolution(ConvolutionLayer):
    default_name = "transposed-conv"
    _labels = "CU"

    def __init__(
        self, filter_size: Any, num_filters: Any, *, stride: Any = 1, cropping: Any = 0,
        weights_initializer: Any = "glorot", bias_initializer: Any = "zeros", weights: Any = None, bias: Any = None,
        learn_rate_factor: Any = None, l2_factor: Any = None, name: str = "",
    ) -> None:  # fmt: skip
        super().__init__(
            filter_size, num_filters, stride, 1, weights_initializer, bias_initializer, weights, bias,
            learn_rate_factor, l2_factor, name,
        )  # fmt: skip
        self.cropping = cropping

    def _fill(self, channels: int, groups: int) -> None:
        taps = math.prod(self.filter_size)
        self._set((channels, self.num_filters), channels * taps, self.num_filters * taps, self.num_filters)

    def predict(self, x: Any) -> Any:
        return dltranspconv(x, self._filters(), self.bias, stride=self.stride, cropping=self.cropping)


class TransposedConv1d(_TransposedConvolution):
    """The transpose of a convolution along one axis, which makes more elements of fewer.

    Args:
        filter_size: taps.
        num_filters: number of filters, which are the channels of the output.
        stride, cropping: as in tj.dltranspconv: cropping may be "same".
        weights: (channels, filters, taps), or labelled; None to initialise them.
        weights_initializer, bias_initializer, bias, learn_rate_factor, l2_factor, name: as in Convolution2d.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.SequenceInput(3), nn.TransposedConv1d(2, 8, stride=2)])
        >>> net.learnables["transposed-conv", "weights"].shape
        (3, 8, 2)
    """

    _axes = 1


class TransposedConv2d(_TransposedConvolution):
    """The transpose of a convolution along two axes, which makes larger images of smaller ones.

    Args:
        filter_size: height and width, or one number for both.
        num_filters: number of filters, which are the channels of the output.
        stride, cropping: as in tj.dltranspconv: cropping may be "same".
        weights: (channels, filters, height, width), or labelled; None to initialise them.
        weights_initializer, bias_initializer, bias, learn_rate_factor, l2_factor, name: as in Convolution2d.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((4, 4, 3)), nn.TransposedConv2d(2, 8, stride=2)])
        >>> net.predict(tj.dlarray(np.ones((1, 4, 4, 3), np.float32), "BSSC")).shape
        (1, 8, 8, 8)
    """

    _axes = 2


class TransposedConv3d(_TransposedConvolution):
    """The transpose of a convolution along three axes.

    Args:
        filter_size: height, width and depth, or one number for all.
        num_filters: number of filters, which are the channels of the output.
        stride, cropping: as in tj.dltranspconv.
        weights, weights_initializer, bias_initializer, bias, learn_rate_factor, l2_factor, name: as of
            TransposedConv2d.

    Raises:
        DimsError: if a size is not positive.
        ArgumentError: for an unknown initialiser or a negative factor.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.Image3dInput((2, 2, 2, 3)), nn.TransposedConv3d(2, 4)])
        >>> net.learnables["transposed-conv", "weights"].shape
        (3, 4, 2, 2, 2)
    """

    _axes = 3
