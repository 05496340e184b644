# SPDX-License-Identifier: BSD-3-Clause
"""The gradient of a convolution by its weights on a device, in parts: each sums some of the positions.

In the first layers of a network there are few weights, and each is the sum of many positions. Without parts, a group of
threads for each tile of weights would use a small part of a device.
"""

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.ops.op import KernelCall
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import MOST_COPIED, combination

NAME = "convolution_weights"
TILES = (1, 2, 4, 8)  # filters, or channels, that a thread may take at once
_WORD = 4  # bytes of a register
GROUPS = 1 << 12  # of threads, which fill any device
POSITIONS = 16  # that a thread takes of each part, at least
BLOCK_TILES = (
    (64, 128),
    (32, 128),
    (32, 64),
)  # filters and columns of a block (codegen/device/convolution_tiles.py)
BLOCKS = 528  # four for each multiprocessor of a large device
_INNER = 16  # terms that a block multiplies at a time
_FULL = 0.4  # of a tile: emptier ones are slower than threads by themselves, by a count of instructions
_PLACES = 1 << 31


def tile_of(channels: int, filters: int, dtype: np.dtype) -> tuple[int, int]:
    """Return how many filters and how many channels of a tap a group of threads sums at once."""
    room = TILES if dtype.itemsize <= _WORD else TILES[:-1]
    filters, channels = (max(n for n in room if n <= max(1, count)) for count in (filters, channels))
    return filters, channels


def tiles_of(groups: int, channels: int, filters: int, taps: int, tile: tuple[int, int]) -> int:
    """Return how many tiles the weights have."""
    return groups * taps * -(-filters // tile[0]) * -(-channels // tile[1])


def block_tile(filters: int, columns: int) -> tuple[int, int]:
    """Return the tile of a block that is fullest; of several, the largest."""
    return min(BLOCK_TILES, key=lambda tile: _area(filters, columns, tile))


def _area(filters: int, columns: int, tile: tuple[int, int]) -> int:
    """Return how many elements the tiles of a product have."""
    return -(-filters // tile[0]) * tile[0] * -(-columns // tile[1]) * tile[1]


def fills_tiles(filters: int, columns: int, terms: int, dtype: np.dtype, *roots: Value) -> bool:
    """Return whether blocks compute a product by tiles.

    Args:
        filters: rows of the product.
        columns: of the product.
        terms: of each sum.
        dtype: of the result.
        roots: the memory of operands and result.
    """
    if dtype.itemsize > _WORD or not min(filters, columns, terms):
        return False
    if max(root.aval.size for root in roots) >= _PLACES:
        return False
    area = _area(filters, columns, block_tile(filters, columns)) * -(-terms // _INNER) * _INNER
    return filters * columns * terms >= _FULL * area


def sum_in_parts(builder: LaunchBuilder, node: Node) -> bool:
    """Launch a gradient by weights in parts, and their sum; return False if there is to be one part."""
    emit = node.op.emit
    assert isinstance(emit, KernelCall)
    x, y = node.inputs
    out = node.output
    numbers = tuple(emit.numbers(out.aval, x.aval, y.aval, **node.params))
    batch, groups, channels, filters, _, _, _, k0, k1, k2, o0, o1, o2 = numbers[:13]
    taps = k0 * k1 * k2
    positions = batch * o0 * o1 * o2
    if fills_tiles(filters, channels * taps, positions, out.dtype, x, y, out):
        tile = block_tile(filters, channels * taps)
        tiles = groups * -(-filters // tile[0]) * -(-channels * taps // tile[1])
        count = min(BLOCKS // tiles, positions // (_INNER * POSITIONS))
    else:
        tiles = tiles_of(groups, channels, filters, taps, tile_of(channels, filters, out.dtype))
        count = min(GROUPS // max(1, tiles), positions // (GROUP * POSITIONS))
    count = min(count, MOST_COPIED // max(1, out.aval.size))
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
