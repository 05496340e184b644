# SPDX-License-Identifier: BSD-3-Clause
"""The convolutions that Winograd's method computes, and the blocks of tiles that it takes at a time.

The method is in kernels/winograd.py, its kernels in codegen/templates/winograd.py, and its error in
docs/decisions/0036-winograds-method.md.
"""

Triple = tuple[int, int, int]

VALUES = 36  # that are multiplied for a tile of 4 by 4 windows
SIDE = 4  # windows of a tile along an axis
VALUES_BYTES = (
    1 << 20
)  # of the values and products of a block; with patch and filters they fit the second cache
MOST_TILES = 64  # of a block
FEWEST_TILES = 4  # of the largest block, or filters would be read too often
FEWEST_CHANNELS = 16  # and filters; of fewer, transforms would take as long as what they save
MOST_FILTERS = 1 << 16  # times channels, which each block reads
MOST_SUMMED = 1 << 14  # the same in a gradient by filters, which each block reads and writes
ENOUGH_TILES = 32  # of several images, so that tiles of registers are filled
MOST_SUMS = 1 << 21  # elements of the sums of all parts of a gradient by filters, if that allows FEWEST_PARTS
FEWEST_PARTS = 4
TRANSFORM_NS = 1.5  # of the nine taps of a filter, for each channel
_LANES = 16  # of the widest vector


def panel_of(filters: int) -> int:
    """Return how many filters lie side by side in memory, as wide as a tile of registers."""
    return _LANES if filters <= _LANES else 2 * _LANES


def padded(filters: int) -> int:
    """Return the filters of whole panels."""
    panel = panel_of(filters)
    return -(-filters // panel) * panel


def suits(
    channels: int, filters: int, taps: Triple, strides: Triple, dilation: Triple, itemsize: int, most: int
) -> bool:
    """Return whether Winograd's method computes a convolution of a group; this depends on no size of images.

    `most` is how many filters times channels are worth it.
    """
    return (
        itemsize == 4
        and taps == (1, 3, 3)
        and strides == dilation == (1, 1, 1)
        and min(channels, filters) >= FEWEST_CHANNELS
        and channels * padded(filters) <= most
        and _most_tiles(channels, filters) >= FEWEST_TILES
    )


def _most_tiles(channels: int, filters: int) -> int:
    """Return how many tiles of a block have room for their values and products."""
    each = -(-channels // _LANES) * _LANES + padded(filters)
    return min(MOST_TILES, (VALUES_BYTES // 4 // VALUES - 2 * _LANES) // each)


def block_of(channels: int, filters: int, size: Triple, room: int) -> Triple | None:
    """Return the windows of a block along each axis, whole tiles of them; None if a tile has no room.

    Args:
        channels: of a group.
        filters: of a group.
        size: windows along each axis.
        room: elements that a block may span.
    """
    most = _most_tiles(channels, filters)
    down, across = (-(-windows // SIDE) for windows in size[1:])
    room //= channels
    if room < (SIDE + 2) ** 2:
        return None
    wide = min(across, most, (room // (SIDE + 2) - 2) // SIDE)
    wide = -(-across // -(-across // wide))  # blocks of about equal size
    high = min(down, most // wide, (room // (SIDE * wide + 2) - 2) // SIDE)
    high = -(-down // -(-down // high))
    return 1, SIDE * high, SIDE * wide


def images_together(channels: int, filters: int, size: Triple, block: Triple) -> int:
    """Return how many images a block takes: several if they are small."""
    if block[1] < size[1] or block[2] < size[2]:
        return 1
    tiles = block[1] * block[2] // SIDE**2
    return max(1, min(ENOUGH_TILES, _most_tiles(channels, filters)) // tiles)
