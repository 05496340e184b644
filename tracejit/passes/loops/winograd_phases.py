# SPDX-License-Identifier: BSD-3-Clause
"""The convolutions that move by two elements, and their gradients by the input, that Winograd's method computes.

Note [phases at points]
Windows of 4 by 4 taps that move by 2 see the elements of an image in four phases: the even and the odd ones of each
axis. Of a phase they see 2 by 2 elements, and move by one. So such a convolution is one of 2 by 2 taps over four times
as many channels, and takes 4 * 25 multiplications for 16 windows, of each channel and filter, instead of 256. Windows
of 3 by 3 have a zero as their last tap: phases of one tap along an axis have values of zero at infinity, which are left
out, 81 multiplications instead of 144. In `seen` phases lie one after the other, each for all tiles.

The gradient by the input, a transposed convolution, is the same the other way: what a tile of cotangents sees becomes
25 values, which are multiplied by those of four phases of the filters (`made`), and the products become results in four
phases, 8 by 8 elements. Results begin with the first element that any window sees, so that all phases see the same
tiles; what lies outside of the image is dropped. Filters are turned, so that the zero is their last tap again; a phase q
has the elements 2 t + 1 - q.
"""

from tracejit.passes.loops.winograd import (
    ENOUGH_TILES,
    MOST_TILES,
    VALUES,
    Triple,
    padded,
    padded_channels,
    side_of,
    values_of,
)
from tracejit.util.named_tuples import NamedTuple

PHASES = 4
TILE_TAPS = (1, 2, 2)
SPANNED = (1, 4, 4)  # taps of what a block spans
FEWEST_CHANNELS = 16  # and filters
SIDE = side_of(TILE_TAPS[2])  # windows of a tile along an axis
VALUES_BYTES = 1 << 20  # of the values and products of a block
PATCH_BYTES = 1 << 19  # of what a block spans
_STRIDES = (1, 2, 2)
_TAPS = ((1, 3, 3), (1, 4, 4))
_ONES = (1, 1, 1)


class Made(NamedTuple):
    """How a result of phases lies: its extents, whether it begins with the second phase, and the taps of all phases."""

    extents: Triple
    odd: tuple[int, int]
    taps: Triple

    @property
    def spanned(self) -> Triple:
        """The taps of what a block spans."""
        return 1, 2 + self.odd[0], 2 + self.odd[1]


def suits(
    channels: int, filters: int, taps: Triple, strides: Triple, dilation: Triple, itemsize: int, most: int
) -> bool:
    """Return whether Winograd's method computes a convolution that moves by two; this depends on no size of images.

    `most` is how many filters times channels are worth it, as in winograd.suits.
    """
    return (
        itemsize == 4
        and taps in _TAPS
        and strides == _STRIDES
        and dilation == _ONES
        and min(channels, filters) >= FEWEST_CHANNELS
        and PHASES * values_of(TILE_TAPS) * channels * padded(filters) <= most * VALUES
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
