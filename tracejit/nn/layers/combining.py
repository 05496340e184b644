# SPDX-License-Identifier: BSD-3-Clause
"""Layers of several inputs, layers that only move elements, and networks as layers."""

import math
from collections.abc import Sequence
from typing import Any

from tracejit.array import as_array
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.joining import concatenate
from tracejit.functions.layers.blocks import crop, depthtospace, spacetodepth
from tracejit.functions.layers.resizing import dlresize
from tracejit.functions.movement import in_order_of, permuted, relabel, reshaped
from tracejit.nn.layer import BuiltInLayer, Formattable, Layer
from tracejit.nn.layers.dense import channels_first
from tracejit.nn.layers.options import MOST_PORTS, number_of
from tracejit.record import recorder as recorders
from tracejit.util.arguments import as_index, listed, text
from tracejit.util.text import brief, count


class _Several(BuiltInLayer):
    """A layer of several inputs, in1, in2, ..."""

    def __init__(self, num_inputs: Any, *, name: str = "") -> None:
        self.name = name
        self.num_inputs = number_of(type(self).__name__, "num_inputs", num_inputs, 2, MOST_PORTS)


class Addition(_Several):
    """The sum of the inputs.

    Args:
        num_inputs: number of inputs, in1, in2, ...
        name: of the layer.

    Raises:
        DimsError: if there are fewer than two inputs.

    Examples:
        >>> from tracejit import nn
        >>> nn.Addition(2).input_names
        ('in1', 'in2')
    """

    default_name = "addition"

    def predict(self, *inputs: Any) -> Any:
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return total


class Multiplication(_Several):
    """The product of the inputs, element by element.

    Args:
        num_inputs: number of inputs, in1, in2, ...
        name: of the layer.

    Raises:
        DimsError: if there are fewer than two inputs.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Multiplication(2).predict(tj.dlarray([2.0]), tj.dlarray([3.0])).tolist()
        [6.0]
    """

    default_name = "multiplication"

    def predict(self, *inputs: Any) -> Any:
        total = inputs[0]
        for x in inputs[1:]:
            total = total * x
        return total


class Concatenation(_Several):
    """The inputs side by side along one axis.

    Args:
        dimension: label of the axis: "C", "T", ..., or its number.
        num_inputs: number of inputs, in1, in2, ...
        name: of the layer.

    Raises:
        DimsError: if there are fewer than two inputs.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> x = tj.dlarray([[1.0, 2.0]], "BC")
        >>> nn.Concatenation("C", 2).predict(x, x).tolist()
        [[1.0, 2.0, 1.0, 2.0]]
    """

    default_name = "concat"

    def __init__(self, dimension: Any, num_inputs: Any, *, name: str = "") -> None:
        super().__init__(num_inputs, name=name)
        self.dimension = dimension

    def predict(self, *inputs: Any) -> Any:
        arrays = [in_order_of(as_array(inputs[0])._format, x) for x in inputs]
        axis = self.dimension
        if isinstance(axis, str):
            found = [number for number, label in enumerate(arrays[0]._format or "") if label == axis]
            if not found:
                raise DimsError(
                    f"Concatenation: the input of {recorders.describe(arrays[0])} has no axis {axis!r}; name one "
                    "that it has."
                )
            axis = found[0]
        return concatenate(arrays, axis)


class DepthConcatenation(Concatenation):
    """The channels of the inputs side by side.

    Args:
        num_inputs: number of inputs, in1, in2, ...
        name: of the layer.

    Raises:
        DimsError: if there are fewer than two inputs.

    Examples:
        >>> from tracejit import nn
        >>> nn.DepthConcatenation(2).dimension
        'C'
    """

    default_name = "depthconcat"

    def __init__(self, num_inputs: Any, *, name: str = "") -> None:
        super().__init__("C", num_inputs, name=name)


class Identity(BuiltInLayer):
    """The input as it is.

    Args:
        name: of the layer.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> nn.Identity().predict(tj.dlarray([2.0])).tolist()
        [2.0]
    """

    default_name = "identity"

    def predict(self, x: Any) -> Any:
        return x


class Flatten(BuiltInLayer):
    """All spatial elements of all channels as channels, channel by channel, whatever the order of the data.

    Args:
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Flatten().predict(tj.dlarray(np.ones((2, 4, 4, 3)), "BSSC")).shape
        (2, 48)
    """

    default_name = "flatten"

    def predict(self, x: Any) -> Any:
        array = channels_first(x)
        format = array._format or ""
        merged = [axis for axis, label in enumerate(format) if label not in "BT"]
        if len(merged) < 2:
            return array
        if merged != [*range(merged[0], merged[-1] + 1)]:  # observations or steps stand between
            kept = [axis for axis, label in enumerate(format) if label in "BT"]
            order = (*kept, *merged)
            array = relabel(permuted(relabel(array, None), order), "".join(format[axis] for axis in order))
            format, merged = array._format or "", [*range(len(kept), len(format))]
        first, sizes = merged[0], array._data.shape
        shape = (*sizes[:first], math.prod(sizes[first : merged[-1] + 1]), *sizes[merged[-1] + 1 :])
        return reshaped(relabel(array, None), shape, format[:first] + "C" + format[merged[-1] + 1 :])


class Permute(BuiltInLayer):
    """The input with its axes in another order.

    Args:
        order: labels of the input in the order of the output, such as "BCSS".
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Permute("BCSS").predict(tj.dlarray(np.ones((2, 4, 5, 3)), "BSSC")).shape
        (2, 3, 4, 5)
    """

    default_name = "permute"

    def __init__(self, order: str, *, name: str = "") -> None:
        self.name = name
        self.order = text("Permute", "order", order)

    def predict(self, x: Any) -> Any:
        array = as_array(x)
        if sorted(array._format or "") != sorted(self.order):
            raise DimsError(
                f"Permute: order={brief(self.order)} does not have the labels of the input, "
                f"{recorders.describe(array)}; give "
                "each label once for each of its axes."
            )
        return in_order_of(self.order, array)


class Reshape(BuiltInLayer):
    """The elements of each observation in other sizes.

    Args:
        output_size: sizes of the axes other than B; one of them may be -1.
        format: labels of these axes, such as "CSS"; observations (B) stand first.
        name: of the layer.

    Raises:
        DimsError: if there are not as many labels as sizes.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Reshape((3, 2, 2), "CSS").predict(tj.dlarray(np.ones((5, 12)), "BC")).shape
        (5, 3, 2, 2)
    """

    default_name = "reshape"

    def __init__(self, output_size: int | Sequence[int], format: str, *, name: str = "") -> None:
        self.name = name
        given = output_size if as_index(output_size) is None else (output_size,)
        self.output_size = listed("Reshape", "output_size", given)
        self.format = text("Reshape", "format", format)
        if len(self.format) != len(self.output_size):
            raise DimsError(
                f"Reshape: format={self.format!r} has {count(len(self.format), 'label')}, but output_size has "
                f"{count(len(self.output_size), 'size')}: {self.output_size}; give one label for each."
            )

    def predict(self, x: Any) -> Any:
        array = as_array(x)
        format = array._format
        if format is None or "B" not in format:
            raise DimsError(
                f"Reshape: the input of {recorders.describe(array)} has no observations (B), which it keeps; label "
                "them."
            )
        order = sorted(range(len(format)), key=lambda axis: "BTUCS".index(format[axis]))
        moved = permuted(relabel(array, None), tuple(order))
        return relabel(moved.reshape((moved._data.shape[0], *self.output_size)), "B" + self.format)


class Crop2d(BuiltInLayer):
    """Images without elements at their edges.

    Args:
        cropping: what is removed from the spatial axes, as in tj.crop.
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Crop2d(1).predict(tj.dlarray(np.ones((1, 4, 5, 3)), "BSSC")).shape
        (1, 2, 3, 3)
    """

    default_name = "crop"

    def __init__(self, cropping: Any, *, name: str = "") -> None:
        self.name = name
        self.cropping = cropping

    def predict(self, x: Any) -> Any:
        return crop(x, self.cropping)


class _Resize(BuiltInLayer):
    def __init__(
        self, *, scale: Any = None, output_size: Any = None, method: str = "nearest",
        geometric_transform_mode: str = "half-pixel", nearest_rounding_mode: str = "round", name: str = "",
    ) -> None:  # fmt: skip
        self.name = name
        self.scale, self.output_size, self.method = scale, output_size, method
        self.geometric_transform_mode, self.nearest_rounding_mode = (
            geometric_transform_mode,
            nearest_rounding_mode,
        )

    def predict(self, x: Any) -> Any:
        return dlresize(
            x, scale=self.scale, output_size=self.output_size, method=self.method,
            geometric_transform_mode=self.geometric_transform_mode,
            nearest_rounding_mode=self.nearest_rounding_mode,
        )  # fmt: skip


class Resize2d(_Resize):
    """Images, resized.

    Args:
        scale, output_size, method, geometric_transform_mode, nearest_rounding_mode: as in tj.dlresize.
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Resize2d(scale=2).predict(tj.dlarray(np.ones((1, 4, 5, 3)), "BSSC")).shape
        (1, 8, 10, 3)
    """

    default_name = "resize"


class Resize3d(_Resize):
    """Images with three spatial axes, resized.

    Args:
        scale, output_size, method, geometric_transform_mode, nearest_rounding_mode: as in tj.dlresize.
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.Resize3d(scale=2).predict(tj.dlarray(np.ones((1, 2, 2, 2, 3)), "BSSSC")).shape
        (1, 4, 4, 4, 3)
    """

    default_name = "resize"


class DepthToSpace2d(BuiltInLayer):
    """Channels as blocks of larger images.

    Args:
        block_size: height and width of a block, or one number for both.
        mode: "dcr" or "crd", as in tj.depthtospace.
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.DepthToSpace2d(2).predict(tj.dlarray(np.ones((1, 2, 2, 4)), "BSSC")).shape
        (1, 4, 4, 1)
    """

    default_name = "depthToSpace"

    def __init__(self, block_size: Any, *, mode: str = "dcr", name: str = "") -> None:
        self.name = name
        self.block_size, self.mode = block_size, mode

    def predict(self, x: Any) -> Any:
        return depthtospace(x, self.block_size, mode=self.mode)


class SpaceToDepth(DepthToSpace2d):
    """Blocks of images as channels of smaller ones.

    Args:
        block_size: height and width of a block, or one number for both.
        mode: "dcr" or "crd", as in tj.spacetodepth.
        name: of the layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> nn.SpaceToDepth(2).predict(tj.dlarray(np.ones((1, 4, 4, 1)), "BSSC")).shape
        (1, 2, 2, 4)
    """

    default_name = "spaceToDepth"

    def predict(self, x: Any) -> Any:
        return spacetodepth(x, self.block_size, mode=self.mode)


class Network(Layer, Formattable):
    """A network as a layer of another one.

    Its learnables are rows of the other's table, with parameters such as "conv/weights".

    Args:
        network: a dlnetwork; its inputs and outputs are those of the layer.
        name: of the layer.

    Raises:
        ArgumentError: if `network` is none.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> block = tj.dlnetwork([nn.FullyConnected(8), nn.Relu()], initialize=False)
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.Network(block), nn.FullyConnected(2)])
        >>> net.learnables.parameter
        ('fc/weights', 'fc/bias', 'weights', 'bias')
    """

    default_name = "net"

    def __init__(self, network: Any, *, name: str = "") -> None:
        if not hasattr(network, "learnables"):
            raise ArgumentError(f"Network: network must be a dlnetwork, not {brief(network)}.")
        self.name = name
        self.network = network
        self.acceleratable = network.is_acceleratable
        self.input_names = _ports(network.input_names)
        self.output_names = _ports(network.output_names)

    def initialize(self, *layouts: Any) -> None:
        if not self.network.initialized:
            self.network = self.network.initialize(*layouts)

    def predict(self, *inputs: Any) -> Any:
        return self.network.predict(*inputs, return_state=True)

    def forward(self, *inputs: Any) -> Any:
        return self.network.forward(*inputs)

    def reset_state(self) -> None:
        """Reset the state of the network."""
        self.network = self.network.reset_state()


def _ports(names: Sequence[str]) -> tuple[str, ...]:
    return tuple([name.replace("/", ".") for name in names])
