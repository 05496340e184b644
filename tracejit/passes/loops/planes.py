# SPDX-License-Identifier: BSD-3-Clause
"""Launches of channelwise convolutions, and of their gradient by filters, plane by plane.

Where each filter has one channel, and elements of the last axis are neighbours, nothing has to be brought near: a
kernel goes through one channel of one image after another (codegen/templates/convolution_planes.py).
"""

from tracejit.ir import Node
from tracejit.passes import cost
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import Blocks, KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.windows import Convolution

MOST_ACROSS = 8  # taps of the last axis, which are written out
MOST_TAPS = 25  # of the last two axes, whose sums of a gradient lie in registers


def in_planes(convolution: Convolution) -> bool:
    """Return whether a convolution, or its gradient by filters, runs plane by plane; no size of images counts."""
    x, out = convolution.x, convolution.out
    _, down, across = convolution.taps
    return (
        convolution.channelwise
        and convolution.channels > 1
        and x.steps[2] == out.steps[2] == 1
        and 1 not in (x.last, out.last)
        and convolution.strides[2] == 1
        and across <= MOST_ACROSS
        and down * across <= MOST_TAPS
    )


def numbers_of(convolution: Convolution) -> tuple[int, ...]:
    """Return the integers that kernels take after the planes: how windows lie, and where x and the result lie."""
    return (
        convolution.channels, *convolution.taps, *convolution.size, *convolution.strides, *convolution.before,
        *convolution.dilation, *convolution.extents, *convolution.x.strides, *convolution.out.strides,
    )  # fmt: skip


def launch_planes(builder: LaunchBuilder, node: Node, convolution: Convolution, bias: list[Access]) -> None:
    """Launch a convolution whose filters can be read."""
    w = convolution.w
    assert w is not None
    total = convolution.images * convolution.channels
    numbers = (0, total, *numbers_of(convolution), *w.steps)
    pointers = (convolution.x.access, w.access, *bias, convolution.out.access)
    blocks = Blocks(total, cost.count_of_parts(convolution.ns, total))
    builder.add(KernelLaunch("planes", numbers, pointers, 1, node, whole=blocks))
