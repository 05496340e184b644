# SPDX-License-Identifier: BSD-3-Clause
"""The gradient of a convolution by its weights on a device, in parts of the positions that are summed up apart.

Few weights are the sums of many positions in the first layers of a network. Without parts, a group of threads for a
tile of weights would be a small part of what a device can run.
"""

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import KernelCall
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import GROUP, MOST_COPIED, combination

NAME = "convolution_weights"
TILES = (1, 2, 4, 8)  # filters, or channels, that a thread may take at once
_WORD = 4  # bytes of a register
GROUPS = 1 << 12  # of threads, which fill any device
POSITIONS = 16  # that a thread takes of each part, at least


def tile_of(channels: int, filters: int, dtype: np.dtype) -> tuple[int, int]:
    """Return how many filters and how many channels of a tap a group of threads sums at once."""
    room = TILES if dtype.itemsize <= _WORD else TILES[:-1]
    filters, channels = (max(n for n in room if n <= max(1, count)) for count in (filters, channels))
    return filters, channels


def tiles_of(groups: int, channels: int, filters: int, taps: int, tile: tuple[int, int]) -> int:
    """Return how many tiles the weights have."""
    return groups * taps * -(-filters // tile[0]) * -(-channels // tile[1])


def sum_in_parts(builder: LaunchBuilder, node: Node) -> bool:
    """Launch a gradient by weights in parts, and their sum; return False if there is to be one part."""
    emit = node.op.emit
    assert isinstance(emit, KernelCall)
    x, y = node.inputs
    out = node.output
    numbers = tuple(emit.numbers(out.aval, x.aval, y.aval, **node.params))
    batch, groups, channels, filters, _, _, _, k0, k1, k2, o0, o1, o2 = numbers[:13]
    taps = k0 * k1 * k2
    tiles = tiles_of(groups, channels, filters, taps, tile_of(channels, filters, out.dtype))
    positions = batch * o0 * o1 * o2
    count = min(
        GROUPS // max(1, tiles), positions // (GROUP * POSITIONS), MOST_COPIED // max(1, out.aval.size)
    )
    if count < 2:
        return False
    memory = Value(Aval((count, *out.shape), None, out.dtype), None)
    pointers = (builder.contiguous(x), builder.contiguous(y), Access(memory, 0, (), out.dtype))
    builder.add(KernelLaunch(NAME, numbers, pointers, 1, node))
    element, total = (Value(Aval((), None, out.dtype), None) for _ in range(2))
    adding = Node(OPS["sum"], (element,), {}, None)
    adding.makes((total,))
    builder.add_nest(combination(adding, memory, out, None)._replace(nodes=[node]))
    return True
