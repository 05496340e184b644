# SPDX-License-Identifier: BSD-3-Clause
"""The convolutions that Winograd's method computes, and the blocks of tiles that it takes at a time.

The method is in kernels/winograd.py, its kernels in codegen/templates/winograd.py, and its error in
docs/decisions/0036-winograds-method.md.
"""

from math import isqrt, prod

from tracejit.kernels.winograd import TAPS, points_of

Triple = tuple[int, int, int]

VALUES = 36  # that are multiplied for a tile of two axes, of windows of 3
VALUES_BYTES = (
    1 << 20
)  # of the values and products of a block; with patch and filters they fit the second cache
MOST_TILES = 64  # of a block
FEWEST_TILES = 4  # of the largest block, or filters would be read too often
FEWEST_CHANNELS = 16  # and filters; of fewer, transforms would take as long as what they save
FEWEST_OF_LINES = 24  # the same for tiles of one axis, which save half of the multiplications
MOST_DILATION = 16  # or images would often have fewer windows than a unit of tiles
MOST_FILTERS = 1 << 16  # times channels, which each block reads
MOST_SUMMED = 1 << 14  # the same in a gradient by filters, which each block reads and writes
ENOUGH_TILES = 32  # of several images, so that tiles of registers are filled
MOST_SUMS = 1 << 21  # elements of the sums of all parts of a gradient by filters, if that allows FEWEST_PARTS
FEWEST_PARTS = 4
MOST_OF_MANY_POINTS = (
    56  # channels that are summed at eight points along an axis: of more the error would be large
)
FEWEST_SCATTERED = 16  # tiles of the largest block: a line of fewer would be too short a block
MOST_SCATTERED = 32  # filters whose results are summed in scratch memory: of more, blocks would be small
TRANSFORM_NS = 1.5  # of the taps of a filter in a plane, for each channel
_LANES = 16  # of the widest vector


def panel_of(filters: int) -> int:
    """Return how many filters lie side by side in memory, as wide as a tile of registers."""
    return _LANES if filters <= _LANES else 2 * _LANES


def padded(filters: int) -> int:
    """Return the filters of whole panels."""
    panel = panel_of(filters)
    return -(-filters // panel) * panel


def padded_channels(channels: int) -> int:
    """Return the channels of whole vectors."""
    return -(-channels // _LANES) * _LANES


def has_few_points(channels: int, summed: bool = False) -> bool:
    """Return whether tiles have as many points along the last axis as along the other: for a gradient by filters, which
    is `summed`, and sums over many channels, because of the error."""
    return summed or channels > MOST_OF_MANY_POINTS


def points_along(taps: tuple[int, ...], few: bool = False) -> tuple[int, int]:
    """Return how many values a tile has along the last two axes."""
    before, last = taps[-2:]
    return points_of(before, False) if before > 1 else 1, points_of(last, not few)


def sides_of(taps: tuple[int, ...], few: bool = False) -> tuple[int, int]:
    """Return how many windows a tile has along the last two axes."""
    before, last = (points + 1 - k for points, k in zip(points_along(taps, few), taps[-2:], strict=True))
    return before, last


def values_of(taps: Triple, few: bool = False) -> int:
    """Return how many values are multiplied for a tile: 36 of windows of 3 by 3, 6 of 3 along the last axis alone."""
    return prod(points_along(taps, few))


def suits(
    channels: int, filters: int, taps: Triple, strides: Triple, dilation: Triple, itemsize: int, most: int,
    summed: bool = False,
) -> bool:  # fmt: skip
    """Return whether Winograd's method computes a convolution of a group, or its gradient by filters if it is `summed`;
    this depends on no size of images.

    `most` is how many filters times channels are worth it, where tiles have two axes.
    """
    fewest = FEWEST_CHANNELS if taps[1] > 1 else FEWEST_OF_LINES
    return (
        itemsize == 4
        and taps[2] in TAPS
        and taps[1] in ((2,) if taps[2] == 2 else (1, taps[2]))
        and strides == (1, 1, 1)
        and dilation[0] == 1
        and (taps[1] > 1 or dilation[1] == 1)
        and max(dilation) <= MOST_DILATION
        and min(channels, filters) >= fewest
        and taps[0] * channels * padded(filters) * values_of(taps, True) <= most * VALUES
        and most_tiles(channels, filters, taps, summed) >= max(FEWEST_TILES, prod(dilation))
    )


def most_tiles(channels: int, filters: int, taps: Triple, summed: bool = False) -> int:
    """Return how many tiles of a plane have room for their values, of all planes that they see, and products."""
    each = taps[0] * padded_channels(channels) + padded(filters)
    values = values_of(taps, has_few_points(channels, summed))
    return min(MOST_TILES, (VALUES_BYTES // 4 // values - 2 * _LANES) // each)


def block_of(
    channels: int, filters: int, taps: Triple, dilation: Triple, size: Triple, room: int, summed: bool = False
) -> Triple | None:
    """Return the windows of a block along each axis, whole units of tiles; None if a unit has no room.

    Args:
        channels: of a group.
        filters: of a group.
        taps: of a window.
        dilation: elements between taps, and so between windows of a tile; as many tiles are a unit.
        size: windows along each axis.
        room: elements that a block may span.
        summed: whether this is for a gradient by filters.
    """
    few = has_few_points(channels, summed)
    (unit1, unit2), (border1, border2) = zip(
        *[
            (side * d, (k - 1) * d)
            for side, k, d in zip(sides_of(taps, few), taps[1:], dilation[1:], strict=True)
        ],
        strict=True,
    )
    tiles = prod(dilation)
    most = most_tiles(channels, filters, taps, summed) // tiles
    down, across = (-(-windows // unit) for windows, unit in zip(size[1:], (unit1, unit2), strict=True))
    room //= channels
    of_plane = room // taps[0]
    if of_plane < (unit1 + border1) * (unit2 + border2):
        return None
    wide = min(across, most, (of_plane // (unit1 + border1) - border2) // unit2)
    wide = -(-across // -(-across // wide))  # blocks of about equal size
    high = min(down, most // wide, (of_plane // (unit2 * wide + border2) - border1) // unit1)
    high = -(-down // -(-down // high))
    planes = 1
    if high == down and wide == across:
        area = (unit1 * high + border1) * (unit2 * wide + border2)
        more = (VALUES_BYTES // 4 // values_of(taps, few) - 2 * _LANES) // (high * wide * tiles)
        more -= (taps[0] - 1) * padded_channels(channels)
        more //= padded_channels(channels) + padded(filters)
        planes = max(1, min(size[0], more, most // (high * wide), room // area - taps[0] + 1))
        planes = -(-size[0] // -(-size[0] // planes))
    return planes, unit1 * high, unit2 * wide


def images_together(
    channels: int, filters: int, taps: Triple, size: Triple, block: Triple, summed: bool = False
) -> int:
    """Return how many images a block takes: several if they are small and windows see one plane."""
    if taps[0] > 1 or any(n < all_of_it for n, all_of_it in zip(block, size, strict=True)):
        return 1
    tiles = prod(block) // prod(sides_of(taps, has_few_points(channels, summed)))
    return max(1, min(ENOUGH_TILES, most_tiles(channels, filters, taps, summed)) // tiles)


def scatters(channels: int, filters: int, taps: Triple, before: Triple, dilation: Triple) -> bool:
    """Return whether tiles of what comes in are fewer than those of windows (Note [scattered tiles]).

    That is so where there are more zeros around an image than half of the taps. For windows of 3, two zeros seldom make
    one more tile. As `suits` this depends on no size of images.
    """
    return (
        taps == (1, 5, 5)
        and dilation == (1, 1, 1)
        and all((k - 1) // 2 < zeros < k for k, zeros in zip(taps[1:], before[1:], strict=True))
        and padded(filters) <= MOST_SCATTERED
        and most_tiles(channels, filters, taps) >= FEWEST_SCATTERED
    )


def scattered_block_of(channels: int, filters: int, taps: Triple, size: Triple, room: int) -> Triple:
    """Return the block of a result to which tiles are added, of one plane; a line of them is computed as one.

    Args:
        channels: of a group.
        filters: of a group.
        taps: of a window.
        size: of the result along each axis.
        room: elements that the block may take with what tiles span around it.
    """
    few = has_few_points(channels)
    points = points_along(taps, few)
    around1, around2 = (2 * count for count in points)
    of_plane = room // (-(-filters // _LANES) * _LANES)
    high = min(size[1], max(isqrt(of_plane), of_plane // (size[2] + around2)) - around1)
    side = sides_of(taps, few)[1]
    line = side * (
        most_tiles(channels, filters, taps) - points[1] // side
    )  # others reach into it from outside
    wide = min(size[2], of_plane // (high + around1) - around2, line)
    return 1, -(-size[1] // -(-size[1] // high)), -(-size[2] // -(-size[2] // wide))


def scattered_together(channels: int, filters: int, taps: Triple, inside: Triple, is_whole: bool) -> int:
    """Return how many images of `inside` elements a block takes, which is an image if it `is_whole`."""
    sides = sides_of(taps, has_few_points(channels))
    tiles = prod([-(-n // side) for n, side in zip(inside[1:], sides, strict=True)])
    if not is_whole or inside[0] > 1:
        return 1
    return max(1, min(ENOUGH_TILES, most_tiles(channels, filters, taps)) // max(1, tiles))
