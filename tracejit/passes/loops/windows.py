# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions as data: how their operands lie in memory, and the blocks in which windows are computed."""

from math import prod

from tracejit.passes import cost
from tracejit.passes.loops import winograd, winograd_phases
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spans import Inner, RowSpan, row_span
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.precision import precision

PATCH_BYTES = (
    1 << 18
)  # of the elements that the windows of a block span; with filters they fit the second cache
COTANGENT_BYTES = 1 << 17  # of the cotangents of a block, where they have to lie by channels
WINDOWS = 512  # of a block, at most
PATCH_REST = 64  # elements behind the windows that are laid out, which vectors of windows may load
LAID_OUT_TAPS = 2048  # times channels, at most, of convolutions that are laid out
LAID_OUT_WINDOWS = 1024  # of a block that is laid out (Note [windows laid out] in codegen/templates)

DOTTED_SUMS = (
    1 << 14
)  # of a gradient by filters whose lanes are windows, at most; tiles that are not full count in whole

# The choice of lanes. With filters in lanes a tile is two vectors wide, or one if that holds all filters of a group.
VECTOR_BYTES = 64
FILLED = 0.8  # of the lanes, at least, or windows are laid out
FILLED_TURNED = 0.7  # the same where filters are neighbours in the result, so that tiles have to be turned
FILLED_TURNED_TAPS = 0.5  # the same for taps of the last axis, in the gradient by filters
FEW_TAPS = 144  # times channels: of so few the result takes longest, which is better not turned

Triple = tuple[int, int, int]


class Operand(NamedTuple):
    """An array of images or filters in memory: the elements between images, along the spatial axes, and between
    channels."""

    access: Access
    first: int
    steps: Triple
    last: int

    @property
    def strides(self) -> tuple[int, ...]:
        return (self.first, *self.steps, self.last)


class ReadyFilters(NamedTuple):
    """ReadyFilters in memory: the elements between groups, along the taps, between channels; filters are neighbours."""

    access: Access
    group: int
    steps: Triple
    channel: int

    @property
    def strides(self) -> tuple[int, ...]:
        return (self.group, *self.steps, self.channel)


class Convolution(NamedTuple):
    """A convolution, or a part of one, as in ops/convolution.py.

    images      of x and of the result
    channels    of a group of x
    filters     of a group
    extents     of the spatial axes of x
    w           None while they cannot be read, and where they are the result
    channelwise whether each filter has one channel; channels and filters are those of all groups then
    laid_out    whether lanes are windows (Note [windows laid out] in codegen/templates/convolution_laid_out.py)
    at_points   whether Winograd's method computes it (codegen/templates/winograd.py)
    scattered   whether that takes tiles of x, and not of the result (Note [scattered tiles])
    summed      whether that is for the gradient by filters, whose sums are larger than filters
    phases      what that takes in phases: "seen", what windows that move by 2 see, "made", the result, or "" (Note
                [phases at points] in winograd_phases.py)
    made        where `phases` is "made", the result; `size` are then the windows of one of its phases
    dotted      whether lanes of its gradient by filters are windows (Note [dots of windows] in convolution_dots.py)
    """

    images: int
    groups: int
    channels: int
    filters: int
    taps: Triple
    size: Triple
    strides: Triple
    before: Triple
    dilation: Triple
    extents: Triple
    x: Operand
    w: ReadyFilters | None
    out: Operand
    channelwise: bool = False
    laid_out: bool = False
    dotted: bool = False
    at_points: bool = False
    scattered: bool = False
    summed: bool = False
    phases: str = ""
    made: winograd_phases.Made | None = None

    @property
    def itemsize(self) -> int:
        return self.out.access.dtype.itemsize

    @property
    def ns(self) -> float:
        """About how many nanoseconds the convolution takes."""
        if self.channelwise:
            touches = self.images * self.filters * prod(self.size) * (4 + prod(self.taps))
            return touches * cost.NS_PER_TOUCH * self.itemsize / 4
        multiplications = (
            self.groups * self.channels * self.filters * self.images * prod(self.taps) * prod(self.size)
        )
        return cost.product_ns(multiplications, self.itemsize) / (2 if self.at_points else 1)

    def with_fewest_multiplications(self, summed: bool = False) -> "Convolution":
        """Return the convolution with Winograd's method if that is faster; filters are `summed` in their gradient.

        This depends on no size of images or of the batch, so that other sizes need no other kernel.
        """
        if self.channelwise or not self._may_see_neighbours:
            return self
        sizes = self.channels, self.filters, self.taps, self.strides, self.dilation, self.itemsize
        phases = "seen" if winograd_phases.suits(*sizes, "summed" if summed else "seen") else ""
        most = winograd.MOST_SUMMED if summed else winograd.MOST_FILTERS
        at_points = bool(phases) or winograd.suits(*sizes, most, summed)
        found = self._replace(phases=phases, at_points=at_points, summed=summed)
        return found if found.at_points and found._winograd_block() is not None else self

    def with_phases_made(self, made: winograd_phases.Made) -> "Convolution":
        """Return the convolution of phases with the taps, strides and dilation of the whole one as one that makes the
        result of all phases, if Winograd's method is for it; itself otherwise."""
        sizes = self.channels, self.filters, self.taps, self.strides, self.dilation, self.itemsize
        what = "made apart" if self.out.steps[2] == 1 else "made"
        if not self._may_see_neighbours:
            return self
        if not winograd_phases.suits(*sizes, what):
            return self
        found = self._replace(
            taps=winograd_phases.TILE_TAPS, strides=(1, 1, 1), phases="made", made=made, at_points=True
        )
        return self if found._winograd_block() is None else found

    def with_fewest_tiles(self) -> "Convolution":
        """Return the convolution with tiles of x if these are fewer, which depends on no size either."""
        fits = self.at_points and winograd.scatters(
            self.channels, self.filters, self.taps, self.before, self.dilation
        )
        return self._replace(scattered=fits)

    @property
    def _may_see_neighbours(self) -> bool:
        """True if windows may be computed together, of numbers that are neighbours in memory."""
        return precision() != "highest" and self._has_neighbours(self.x) and self._has_neighbours(self.out)

    @staticmethod
    def _has_neighbours(operand: Operand) -> bool:
        """Return whether channels, or elements of the last axis, are neighbours."""
        return 1 in (operand.last, operand.steps[2])

    def _winograd_block(self) -> Triple | None:
        if self.phases:
            room = winograd_phases.PATCH_BYTES // self.itemsize - PATCH_REST
            return winograd_phases.block_of(self.channels, self.filters, self.phases, self.size, room)
        room = PATCH_BYTES // self.itemsize - PATCH_REST
        if self.scattered:
            return winograd.scattered_block_of(self.channels, self.filters, self.taps, self.size, room)
        return winograd.block_of(
            self.channels, self.filters, self.taps, self.dilation, self.size, room, self.summed
        )

    @property
    def tile_taps(self) -> Triple:
        """The taps of windows of a tile."""
        return winograd_phases.TILE_TAPS if self.phases else self.taps

    @property
    def all_taps(self) -> Triple:
        """The taps of windows, of all phases."""
        return self.taps if self.made is None else self.made.taps

    @property
    def halves(self) -> int:
        """1 if windows have 3 taps, and so phases of one tap; 0 otherwise."""
        return int(bool(self.phases) and self.all_taps[2] % 2)

    @property
    def result_size(self) -> Triple:
        """The spatial extents of the result."""
        return self.size if self.made is None else self.made.extents

    @property
    def images_apart(self) -> int:
        """The number of images that are computed apart, or of groups of as many as a block takes."""
        return 1 if self.images % self.together else self.images // self.together

    @property
    def result(self) -> tuple[Inner, ...]:
        """Extents and strides of the result: images, three spatial axes, filters."""
        extents = (self.images, *self.result_size, self.groups * self.filters)
        return tuple(zip(extents, self.out.strides, strict=True))

    @property
    def spans(self) -> tuple[RowSpan, ...]:
        """The memory of images, in x and in the result."""
        spans = []
        for side, extents, channels in (
            (self.x, self.extents, self.channels),
            (self.out, self.result_size, self.filters),
        ):
            inner = [(self.together, side.first), *zip(extents, side.steps, strict=True)]
            inner.append((self.groups * channels, side.last))
            first = self.together * side.first
            spans.append(row_span(side.access, self.images_apart, first, side is self.out, *inner))
        return tuple(spans)

    def with_full_lanes(self) -> "Convolution":
        """Return the convolution with windows in lanes if that is faster.

        This depends on no size of images or of the batch, so that other sizes need no other kernel.
        """
        if self.channelwise or self.at_points or self.strides[1:] != (1, 1):
            return self
        lanes = VECTOR_BYTES // self.itemsize
        width = lanes if self.filters <= lanes else 2 * lanes
        filled = self.filters / (width * -(-self.filters // width))
        taps = prod(self.taps) * self.channels
        pays = filled < FILLED_TURNED
        if self.out.steps[2] == 1:
            pays = filled < FILLED or taps <= FEW_TAPS
        fits = taps <= LAID_OUT_TAPS and self._laid_out_room(lanes) >= 1
        return self._replace(laid_out=pays and fits)

    def with_full_lanes_of_windows(self) -> "Convolution":
        """Return the convolution with windows in lanes of its gradient by filters if that is faster."""
        lanes = VECTOR_BYTES // self.itemsize
        run = self.taps[2] * self.channels
        most = FILLED if self.out.steps[2] == 1 else FILLED_TURNED_TAPS
        if self.channelwise or self.at_points or self.strides[1:] != (1, 1) or run >= most * lanes:
            return self
        taps = self.taps[0] * self.taps[1] * run
        sums = self.groups * (self.filters + 3) * (taps + 3 * self.taps[0])
        fits = taps <= LAID_OUT_TAPS and sums <= DOTTED_SUMS and self._laid_out_room(lanes) >= 1
        return self._replace(dotted=fits and self._most_cotangents >= lanes)

    @property
    def _most_cotangents(self) -> int:
        return COTANGENT_BYTES // self.itemsize // self.filters

    def _laid_out_room(self, width: int) -> int:
        """Return how many lines of `width` windows have room in the patch."""
        room = PATCH_BYTES // self.itemsize - PATCH_REST
        lines = room // (max(1, self.channels) * self.taps[0] * self.taps[2] * width)
        return lines - (self.taps[1] - 1) * self.dilation[1]

    def _laid_out_block(self) -> Triple:
        _, high, wide = self.size
        lanes = VECTOR_BYTES // self.itemsize
        most = min(LAID_OUT_WINDOWS, self._most_cotangents) if self.dotted else LAID_OUT_WINDOWS
        width = min(wide, most)
        while width > lanes and self._laid_out_room(width) < 1:
            width = -(-width // 2)
        width = -(-wide // -(-wide // width))  # blocks of about equal size
        lines = max(1, min(high, most // width, self._laid_out_room(width)))
        return 1, -(-high // -(-high // lines)), width

    def block(self) -> Triple | None:
        """Return the windows of a block along each axis, None if the patch has no room for one window."""
        if self.at_points:
            return self._winograd_block()
        if self.laid_out or self.dotted:
            return self._laid_out_block()
        most = PATCH_BYTES // self.itemsize // max(1, self.channels)
        counts = [1, 1, 1]
        spans = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilation, strict=True)]
        most_windows = WINDOWS
        if self.channelwise:
            most_windows = min(WINDOWS, COTANGENT_BYTES // self.itemsize // self.channels)
        if prod(spans) > most or not most_windows or (self.channelwise and prod(self.taps) > WINDOWS):
            return None
        for axis in (2, 1, 0):
            others = prod([(counts[a] - 1) * self.strides[a] + spans[a] for a in range(3) if a != axis])
            room = (most // others - spans[axis]) // self.strides[axis] + 1
            fit = max(1, min(self.size[axis], room, most_windows // prod(counts)))
            number = -(-self.size[axis] // fit)
            counts[axis] = -(-self.size[axis] // number)  # blocks of about equal size
            if counts[axis] < self.size[axis]:
                break
        return counts[0], counts[1], counts[2]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The integers that kernels take first: how windows lie, their blocks, and where x lies."""
        block = self.block()
        assert block is not None
        taps = self.taps if self.made is None else self.made.spanned
        taps = winograd_phases.SPANNED if self.phases == "seen" else taps
        return (
            self.groups, self.channels, self.filters, *taps, *self.size, *self.strides, *self.before,
            *self.dilation, *self.extents, *block, *self.runs, *self.x.strides,
        )  # fmt: skip

    @property
    def runs(self) -> tuple[int, int]:
        """The number of runs of taps and channels along the last axis that lie without gaps, and the length of one."""
        is_dense = self.dilation[2] == 1
        if self.w is not None:
            is_dense = is_dense and self.w.steps[2] == self.channels * self.w.channel
        return (1, self.taps[2] * self.channels) if is_dense else (self.taps[2], self.channels)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        block = self.block()
        assert block is not None
        return -(-self.images // self.together) * prod(
            [-(-size // n) for size, n in zip(self.size, block, strict=True)]
        )

    @property
    def together(self) -> int:
        """The number of images that a block takes."""
        block = self.block()
        if not self.at_points or block is None:
            return 1
        if self.phases:
            sizes = self.channels, self.filters, self.phases, self.size
            return winograd_phases.images_together(*sizes, block)
        if self.scattered:
            is_whole = block[1:] == self.size[1:]
            return winograd.scattered_together(self.channels, self.filters, self.taps, self.extents, is_whole)
        return winograd.images_together(self.channels, self.filters, self.taps, self.size, block, self.summed)
