# SPDX-License-Identifier: BSD-3-Clause
"""LoopOrder: the loops of an emitted nest: neighbouring axes joined, the best axis innermost, rows in lanes."""

import math

from tracejit.codegen import lanes
from tracejit.passes.loops.nest import Access, Nest
from tracejit.util.named_tuples import NamedTuple

SHORT = 8  # elements of an innermost loop whose extent is in the text


class LoopOrder(NamedTuple):
    """The loops of a nest, outermost first.

    extents     of each loop
    split       how many loops run over rows; None if there are no rows
    groups      for each loop, the axes of the nest that it runs over, outermost first
    lanes       how many rows run side by side (Note [short rows]); 0 if they run one after the other
    repeats     whether the inner one of two loops stores one element again and again, reading its neighbours, or
                walks through pairs
    """

    extents: tuple[int, ...]
    split: int | None
    groups: tuple[tuple[int, ...], ...]
    lanes: int = 0
    repeats: bool = False

    @property
    def depth(self) -> int:
        """The number of loops."""
        return len(self.extents)

    @property
    def row_depth(self) -> int:
        """The number of loops around the lines of a row; all of them if there are no rows."""
        return self.depth if self.split is None else self.split

    @property
    def short(self) -> int:
        """The extent of the innermost loop if it is in the text (Note [short inner loops]), otherwise 0."""
        is_short = not self.lanes and (self.depth > 2 or self.repeats) and 1 < self.extents[-1] <= SHORT
        return self.extents[-1] if is_short else 0

    def strides(self, access: Access) -> tuple[int, ...]:
        """Return the strides of an access along the loops."""
        return tuple([access.strides[group[-1]] for group in self.groups])

    def is_unit(self, axis: int) -> bool:
        """Return whether the text says of a stride along a loop that it is 1."""
        return axis == self.depth - 1 or (self.lanes > 0 and axis == 0)


def loop_order(nest: Nest) -> LoopOrder:
    """Return the loops that a nest is emitted as."""
    order = joined(nest)
    if lanes.suits(nest, order.extents, order.split):
        return _lanes_first(order)
    return order


def joined(nest: Nest) -> LoopOrder:
    """Return one loop for each group of neighbouring axes that lie in all memory as one axis."""
    accesses = [*nest.reads, *nest.writes]
    extents = nest.extents
    axes = list(range(len(extents)))
    if nest.split is None:
        axes = _innermost_last(axes, extents, accesses)
    groups: list[list[int]] = []
    for position, axis in enumerate(axes):
        if groups and position != nest.split:
            before = groups[-1][-1]
            if all(a.strides[before] == a.strides[axis] * extents[axis] for a in accesses):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    split = None
    if nest.split is not None:
        split = sum(1 for group in groups if group[-1] < nest.split)
    sizes = tuple([math.prod([extents[axis] for axis in group]) for group in groups])
    order = LoopOrder(sizes, split, tuple(tuple(group) for group in groups))
    repeats = split is None and any(order.strides(access) == (1, 0) for access in nest.reads)
    if split is None and sizes[1:] == (2,) and all(order.strides(access)[1] == 1 for access in accesses):
        repeats = True  # pairs, such as complex numbers that are moved
    return order._replace(repeats=True) if repeats else order


_MANY_TIMES = 8  # at 4 a Gaussian mixture (16 of 4) is slower; batches of images have hundreds


def _innermost_last(axes: list[int], extents: tuple[int, ...], accesses: list[Access]) -> list[int]:
    """Return the axes with the one last that most accesses walk with stride 1.

    Another axis is last if many times as many elements are walked so along it: a scale for each channel weighs little
    beside an image.
    """
    if len(axes) < 2:
        return axes
    sizes = [math.prod([extents[axis] for axis in axes if a.strides[axis]]) for a in accesses]
    units = [sum(n for a, n in zip(accesses, sizes, strict=True) if a.strides[axis] == 1) for axis in axes]
    counts = [sum(1 for a in accesses if a.strides[axis] == 1) for axis in axes]
    best = max(axes, key=lambda axis: (counts[axis], axis))
    largest = max(axes, key=lambda axis: (units[axis], axis))
    if units[largest] > _MANY_TIMES * units[best]:
        best = largest
    return [axis for axis in axes if axis != best] + [best]


def _lanes_first(order: LoopOrder) -> LoopOrder:
    """Return the loops with that over the rows in lanes as the outermost."""
    assert order.split is not None
    first = lanes.lane_axis(order.extents, order.split)
    axes = [first, *(axis for axis in range(order.depth) if axis != first)]
    extents = tuple([order.extents[axis] for axis in axes])
    groups = tuple([order.groups[axis] for axis in axes])
    return LoopOrder(extents, order.split, groups, lanes.count())
