# SPDX-License-Identifier: BSD-3-Clause
"""Pooling: means and largest elements of windows."""

from typing import Any

from tracejit.functions.layers.pooling import adaptiveavgpool, avgpool, maxpool, maxunpool
from tracejit.nn.layer import BuiltInLayer
from tracejit.nn.layers.options import sizes_of


class PoolingLayer(BuiltInLayer):
    """The base class of pooling in windows."""

    _axes = 0

    def __init__(self, pool_size: Any, *, stride: Any = 1, padding: Any = 0, name: str = "") -> None:
        kind = type(self).__name__
        self.name = name
        self.pool_size = sizes_of(kind, "pool_size", pool_size, self._axes)
        self.stride = sizes_of(kind, "stride", stride, self._axes)
        self.padding = padding


class _Max(PoolingLayer):
    default_name = "maxpool"

    def predict(self, x: Any) -> Any:
        return maxpool(x, self.pool_size, stride=self.stride, padding=self.padding)


class _Average(PoolingLayer):
    default_name = "avgpool"

    def __init__(
        self, pool_size: Any, *, stride: Any = 1, padding: Any = 0, padding_value: Any = 0, name: str = ""
    ) -> None:
        super().__init__(pool_size, stride=stride, padding=padding, name=name)
        self.padding_value = padding_value

    def predict(self, x: Any) -> Any:
        return avgpool(
            x, self.pool_size, stride=self.stride, padding=self.padding, padding_value=self.padding_value
        )


class _GlobalMax(BuiltInLayer):
    default_name = "gmp"

    def predict(self, x: Any) -> Any:
        return maxpool(x, "global")


class _GlobalAverage(BuiltInLayer):
    default_name = "gap"

    def predict(self, x: Any) -> Any:
        return avgpool(x, "global")


class MaxPooling1d(_Max):
    """The largest element of each window along one axis, or time.

    Args:
        pool_size: one number.
        stride: how many elements windows move.
        padding: around the input, as in tj.maxpool; "same" for a window for each stride.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.MaxPooling1d(2, stride=2).predict(tj.dlarray([[1.0, 3.0, 2.0, 0.0]], "CT")).tolist()
        [[3.0, 2.0]]
    """

    _axes = 1


class MaxPooling2d(_Max):
    """The largest element of each window along two axes.

    Args:
        pool_size: height and width, or one number for both.
        stride, padding, name: as in MaxPooling1d.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4, 1), "SSC")
        >>> nn.MaxPooling2d(2, stride=2).predict(x).ravel().tolist()
        [5.0, 7.0, 13.0, 15.0]
    """

    _axes = 2


class MaxPooling3d(_Max):
    """The largest element of each window along three axes.

    Args:
        pool_size: height, width and depth, or one number for all.
        stride, padding, name: as in MaxPooling1d.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.MaxPooling3d(2).predict(tj.dlarray(np.arange(8.0).reshape(2, 2, 2, 1), "SSSC")).item()
        7.0
    """

    _axes = 3


class AveragePooling1d(_Average):
    """The mean of each window along one axis, or time.

    Args:
        pool_size: one number.
        stride: how many elements windows move.
        padding: around the input, as in tj.avgpool; "same" for a window for each stride.
        padding_value: what stands in the padding: a number, or "mean" to leave it out.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.AveragePooling1d(2, stride=2).predict(tj.dlarray([[1.0, 3.0, 2.0, 0.0]], "CT")).tolist()
        [[2.0, 1.0]]
    """

    _axes = 1


class AveragePooling2d(_Average):
    """The mean of each window along two axes.

    Args:
        pool_size: height and width, or one number for both.
        stride, padding, padding_value, name: as in AveragePooling1d.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4, 1), "SSC")
        >>> nn.AveragePooling2d(2, stride=2).predict(x).ravel().tolist()
        [2.5, 4.5, 10.5, 12.5]
    """

    _axes = 2


class AveragePooling3d(_Average):
    """The mean of each window along three axes.

    Args:
        pool_size: height, width and depth, or one number for all.
        stride, padding, padding_value, name: as in AveragePooling1d.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.AveragePooling3d(2).predict(tj.dlarray(np.arange(8.0).reshape(2, 2, 2, 1), "SSSC")).item()
        3.5
    """

    _axes = 3


class GlobalMaxPooling1d(_GlobalMax):
    """The largest element of each channel along one axis, or time.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.GlobalMaxPooling1d().predict(tj.dlarray([[1.0, 3.0, 2.0, 0.0]], "CT")).tolist()
        [[3.0]]
    """


class GlobalMaxPooling2d(_GlobalMax):
    """The largest element of each channel along two axes.

    Args:
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4, 1), "SSC")
        >>> nn.GlobalMaxPooling2d().predict(x).ravel().tolist()
        [15.0]
    """


class GlobalMaxPooling3d(_GlobalMax):
    """The largest element of each channel along three axes.

    Args:
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.GlobalMaxPooling3d().predict(tj.dlarray(np.arange(8.0).reshape(2, 2, 2, 1), "SSSC")).item()
        7.0
    """


class GlobalAveragePooling1d(_GlobalAverage):
    """The mean of each channel along one axis, or time.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.GlobalAveragePooling1d().predict(tj.dlarray([[1.0, 3.0, 2.0, 0.0]], "CT")).tolist()
        [[1.5]]
    """


class GlobalAveragePooling2d(_GlobalAverage):
    """The mean of each channel along two axes.

    Args:
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray(np.arange(16.0).reshape(4, 4, 1), "SSC")
        >>> nn.GlobalAveragePooling2d().predict(x).ravel().tolist()
        [7.5]
    """


class GlobalAveragePooling3d(_GlobalAverage):
    """The mean of each channel along three axes.

    Args:
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.GlobalAveragePooling3d().predict(tj.dlarray(np.arange(8.0).reshape(2, 2, 2, 1), "SSSC")).item()
        3.5
    """


class AdaptiveAveragePooling2d(BuiltInLayer):
    """Means of about equal parts of images, one for each element of the output.

    Args:
        output_size: height and width of the output, or one number for both.
        name: of the layer.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.ImageInput((4, 6, 1)), nn.AdaptiveAveragePooling2d(2, name="pool")])
        >>> net.output_names
        ('pool',)
    """

    default_name = "adaptiveavgpool"

    def __init__(self, output_size: Any, *, name: str = "") -> None:
        self.name = name
        self.output_size = sizes_of("AdaptiveAveragePooling2d", "output_size", output_size, 2)

    def predict(self, x: Any) -> Any:
        return adaptiveavgpool(x, self.output_size)


class MaxPoolingWithIndices2d(_Max):
    """The largest element of each window along two axes, and its place, for MaxUnpooling2d.

    Args:
        pool_size: height and width, or one number for both.
        stride: how many elements windows move.
        padding: around the input, as in tj.maxpool.
        name: of the layer, whose outputs are out and indices.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.MaxPoolingWithIndices2d(2, stride=2).output_names
        ('out', 'indices')
    """

    _axes = 2
    num_outputs = 2
    _output_names = ("out", "indices")

    def predict(self, x: Any) -> Any:
        y, indices, _ = maxpool(
            x, self.pool_size, stride=self.stride, padding=self.padding, return_indices=True
        )
        return y, indices


class MaxUnpooling2d(BuiltInLayer):
    """Zeros, with elements where the largest of a window was found.

    Args:
        output_size: height and width of the output, or one number for both.
        name: of the layer, whose inputs are in and indices.

    Raises:
        DimsError: if a size is not positive.

    Examples:
        >>> from tracejit import nn
        >>> nn.MaxUnpooling2d(4).input_names
        ('in', 'indices')
    """

    default_name = "maxunpool"
    num_inputs = 2
    _input_names = ("in", "indices")

    def __init__(self, output_size: Any, *, name: str = "") -> None:
        self.name = name
        self.output_size = sizes_of("MaxUnpooling2d", "output_size", output_size, 2)

    def predict(self, y: Any, indices: Any) -> Any:
        return maxunpool(y, indices, self.output_size)
