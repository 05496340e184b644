# SPDX-License-Identifier: BSD-3-Clause
"""The convolutions that move by two elements, and their gradients by the input, that Winograd's method computes.

Note [phases at points]
Windows of 4 by 4 taps that move by 2 see the elements of an image in four phases: the even and the odd ones of each
axis. In each phase they see 2 by 2 elements, and move by one. So such a convolution is one of 2 by 2 taps over four
times as many channels, and takes 4 * 25 multiplications for 16 windows, for each channel and filter, instead of 256.
Windows of 3 by 3 have a zero as their last tap. Phases of one tap along an axis then have the value zero at infinity,
which is left out: 81 multiplications instead of 144. Phases that are `seen` lie one after the other, each for all
tiles.

The gradient by the input, a transposed convolution, is the same the other way: what a tile of cotangents sees becomes
25 values, which are multiplied by those of four phases of the filters, and the products become results in four phases
that are `made`, 8 by 8 elements. Filters are turned, so their last tap is the zero again. If a result begins with the
second phase along an axis (`odd`), the windows of the first one are one further on. Tiles of phases that differ in that
respect each see elements of their own, because tiles that they could share would need one more line.
"""

from tracejit.passes.loops.winograd import (
    MOST_TILES,
    Triple,
    padded,
    padded_channels,
    sides_of,
    values_of,
)
from tracejit.util.named_tuples import NamedTuple

PHASES = 4
TILE_TAPS = (1, 2, 2)
SPANNED = (1, 4, 4)  # taps of what a block spans
SIDE = sides_of(TILE_TAPS)[1]  # windows of a tile along an axis
VALUES_BYTES = (
    1 << 21
)  # of the values and products of a block; of many tiles, or filters would be read too often
PATCH_BYTES = 1 << 19  # of what a block spans
ENOUGH_TILES = 32  # of several images
FEWEST_CHANNELS = 16  # and filters
_STRIDES = (1, 2, 2)
_ONES = (1, 1, 1)

# Channels times filters for which the method is faster, from the first number to the second, by what is computed and
# the taps along an axis. Direct kernels store phases of a result element by element where channels come first.
_WORTH = {
    ("seen", 3): (1 << 11, 1 << 13), ("seen", 4): (1 << 8, 1 << 14),
    ("made", 3): (1 << 12, 1 << 13), ("made", 4): (1 << 8, 1 << 14),
    ("made apart", 3): (1 << 8, 1 << 13), ("made apart", 4): (1 << 8, 1 << 14),
    ("summed", 3): (3 << 11, 1 << 13), ("summed", 4): (1 << 8, 1 << 13),
}  # fmt: skip


class Made(NamedTuple):
    """A result of phases: its extents, whether it begins with the second phase, and the taps of all phases."""

    extents: Triple
    odd: tuple[int, int]
    taps: Triple

    @property
    def spanned(self) -> Triple:
        """The taps of what a block spans."""
        return 1, 2 + self.odd[0], 2 + self.odd[1]


def suits(
    channels: int, filters: int, taps: Triple, strides: Triple, dilation: Triple, itemsize: int, what: str
) -> bool:
    """Return whether Winograd's method computes a convolution that moves by two; this depends on no size of images.

    Args:
        channels: of a group.
        filters: of a group.
        taps: of a window.
        strides: of windows.
        dilation: elements between taps.
        itemsize: bytes of a number.
        what: "seen" for a convolution, "made" for its gradient by the input, "made apart" where its last axis are
            neighbours, and "summed" for that by the filters.
    """
    fewest, most = _WORTH.get((what, taps[2]), (1, 0))
    return (
        itemsize == 4
        and taps == (1, taps[2], taps[2])
        and strides == _STRIDES
        and dilation == _ONES
        and min(channels, filters) >= FEWEST_CHANNELS
        and fewest <= channels * filters
        and channels * padded(filters) <= most
    )


def made_of(extents: Triple, taps: Triple, before: Triple) -> tuple[Made, Triple]:
    """Return how the gradient by an input of these extents is made, and the zeros before what its windows see."""
    skipped = [zeros + 4 - k for zeros, k in zip(before[1:], taps[1:], strict=True)]
    first, second = (n % 2 for n in skipped)
    return Made(extents, (first, second), taps), (before[0], 1 - skipped[0] // 2, 1 - skipped[1] // 2)


def most_tiles(channels: int, filters: int, phases: str) -> int:
    """Return how many tiles have room for what they see and make."""
    seen, made = PHASES, PHASES if phases == "made" else 1
    each = seen * padded_channels(channels) + made * padded(filters)
    return min(MOST_TILES, (VALUES_BYTES // 4 // values_of(TILE_TAPS) - 64) // each)


def block_of(channels: int, filters: int, phases: str, size: Triple, room: int) -> Triple | None:
    """Return the windows of a block along each axis, whole tiles; None if a tile has no room.

    Args:
        channels: of a group.
        filters: of a group.
        phases: "seen" or "made".
        size: windows along each axis.
        room: elements that a block may span.
    """
    stride = 2 if phases == "seen" else 1
    most, room = most_tiles(channels, filters, phases), room // channels
    down, across = (-(-windows // SIDE) for windows in size[1:])
    border = 2  # taps
    one = stride * SIDE + border
    if most < 1 or room < one * one:
        return None
    wide = min(across, most, (room // one - border) // (stride * SIDE))
    wide = -(-across // -(-across // wide))  # blocks of about equal size
    high = min(down, most // wide, (room // (stride * SIDE * wide + border) - border) // (stride * SIDE))
    high = -(-down // -(-down // high))
    return 1, SIDE * high, SIDE * wide


def images_together(channels: int, filters: int, phases: str, size: Triple, block: Triple) -> int:
    """Return how many images a block takes: several if they are small."""
    if any(n < all_of_it for n, all_of_it in zip(block, size, strict=True)):
        return 1
    tiles = block[1] * block[2] // SIDE**2
    return max(1, min(ENOUGH_TILES, most_tiles(channels, filters, phases)) // tiles)
