# SPDX-License-Identifier: BSD-3-Clause
"""The operands of convolutions: how arrays of any order of axes lie in memory, and copies that kernels need.

Note [images last]
In the order "SSCB" neighbours in memory are the same element of all images: one image lies in as many cache lines as it
has elements. Such an operand or result is transposed as a whole. All other orders are read and written in place.
"""

from math import prod

from tracejit.aval import Aval
from tracejit.ir import Value
from tracejit.ops.convolution import in_order
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.products import Matrices
from tracejit.passes.loops.windows import Convolution, Operand, ReadyFilters, Triple
from tracejit.util.named_tuples import NamedTuple


class ImageArray(NamedTuple):
    """An operand in memory with the axes first, three spatial ones, last."""

    root: Value
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def operand(self) -> Operand:
        """Return the array as an operand of a kernel."""
        first, s0, s1, s2, last = self.strides
        return Operand(Access(self.root, self.offset, (), self.root.dtype), first, (s0, s1, s2), last)

    def apart(self) -> Operand:
        """Return the operand that `images_apart` will make of the array, without the copy."""
        array = self.images_first(self.root, self.offset) if self.is_images_last else self
        return array.operand()

    @property
    def spatial(self) -> Triple:
        return self.shape[1], self.shape[2], self.shape[3]

    @property
    def is_images_last(self) -> bool:
        """True if images are neighbours in memory and all else lies around them without gaps (Note [images last])."""
        count, *others = self.shape
        own, *strides = self.strides
        if count == 1 or own != 1 or prod(others) == 1 or any(step % count for step in strides):
            return False
        return _is_dense(tuple(others), tuple([step // count for step in strides]))

    def images_first(self, root: Value, offset: int) -> "ImageArray":
        """Return the array of the same images, one after the other, at an offset in `root`."""
        count, *others = self.shape
        _, *strides = self.strides
        return ImageArray(root, offset, self.shape, (prod(others), *[step // count for step in strides]))


def array_of(builder: LaunchBuilder, value: Value, operand: int, labels: str) -> ImageArray:
    """Return how an operand of an op lies in memory."""
    root, layout = builder.fused.view(value)
    order = in_order(operand, labels)
    shape = [layout.shape[axis] for axis in order]
    strides = [layout.strides[axis] for axis in order]
    added = 5 - len(order)
    shape[1:1], strides[1:1] = [1] * added, [0] * added
    return ImageArray(root, layout.offset, tuple(shape), tuple(strides))


def triple(numbers: tuple[int, ...], neutral: int) -> Triple:
    """Return numbers of the spatial axes with those of axes of size 1 before them."""
    first, second, third = (neutral,) * (3 - len(numbers)) + numbers
    return first, second, third


class FilterArray(NamedTuple):
    """ReadyFilters in memory with the axes group, three spatial ones, channel, filter."""

    root: Value
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def filters_of(array: ImageArray, groups: int) -> FilterArray:
    """Return weights with their filters by groups."""
    count, *taps, channels = array.shape
    first, *steps, last = array.strides
    filters = count // groups
    shape = (groups, *taps, channels, filters)
    return FilterArray(array.root, array.offset, shape, (first * filters, *steps, last, first))


def readable(builder: LaunchBuilder, w: FilterArray) -> ReadyFilters:
    """Return filters that are neighbours in memory, copied if they are not."""
    groups, *taps, channels, filters = w.shape
    group, s0, s1, s2, channel, own = w.strides
    if own == 1 or filters == 1:
        return ReadyFilters(Access(w.root, w.offset, (), w.root.dtype), group, (s0, s1, s2), channel)
    filter_size = prod(taps) * channels
    if (
        _is_dense((*taps, channels), (s0, s1, s2, channel))
        and own == filter_size
        and groups * group <= groups * own * filters
    ):
        matrices = Matrices(Access(w.root, w.offset, (), w.root.dtype), 1, filter_size, group)
        copied = builder.by_rows(matrices, groups, filter_size, filters)
        s0, s1, s2, channel = (step * filters for step in (s0, s1, s2, channel))
        return ReadyFilters(copied.access, copied.batch, (s0, s1, s2), channel)
    copy = Value(Aval(w.shape, None, w.root.dtype), None)
    dense = contiguous(w.shape)
    builder.copy((w.root, Layout(w.offset, w.shape, w.strides)), (copy, dense))
    group, s0, s1, s2, channel, _ = dense.strides
    return ReadyFilters(Access(copy, 0, (), copy.dtype), group, (s0, s1, s2), channel)


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether axes lie in memory without gaps, in any order."""
    expected = 1
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def images_apart(builder: LaunchBuilder, array: ImageArray) -> ImageArray:
    """Return an array whose images lie apart, copied if they do not (Note [images last])."""
    if not array.is_images_last:
        return array
    count, *others = array.shape
    access = Access(array.root, array.offset, (), array.root.dtype)
    copied = builder.by_rows(Matrices(access, 1, count, 0), 1, count, prod(others))
    return array.images_first(copied.access.root, copied.access.offset)


def result_apart(array: ImageArray) -> ImageArray:
    """Return memory for a result whose images lie apart, from which `settle` brings it to its place."""
    if not array.is_images_last:
        return array
    return array.images_first(Value(Aval(array.shape, None, array.root.dtype), None), 0)


def settle(builder: LaunchBuilder, computed: ImageArray, result: ImageArray) -> None:
    """Bring a result to its place if it was computed elsewhere."""
    if computed is result:
        return
    count, *others = result.shape
    size = prod(others)
    accesses = tuple([Access(array.root, array.offset, (), array.root.dtype) for array in (computed, result)])
    builder.add(KernelLaunch("transpose", (1, count, size, size, 0), accesses, 1, None))


def channelwise(convolution: Convolution, w: FilterArray) -> tuple[Convolution, FilterArray]:
    """Return a convolution whose filters have one channel each as one of a single group, and its filters."""
    groups, *taps, channels, filters = w.shape
    if groups == 1 or channels * filters != 1:
        return convolution, w
    group, s0, s1, s2, _, _ = w.strides
    convolution = convolution._replace(groups=1, channels=groups, filters=groups, channelwise=True)
    return convolution, FilterArray(w.root, w.offset, (1, *taps, 1, groups), (0, s0, s1, s2, 0, group))
