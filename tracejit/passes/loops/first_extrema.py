# SPDX-License-Identifier: BSD-3-Clause
"""first extrema: finds the largest or smallest element of each row and its first place by one launch.

Note [first extrema]
The place of an extremum is found where a row is equal to it, so a row is read twice. The second time it comes from a
far cache, if the row, or all rows together, left the near one meanwhile. The two launches become one that goes through
a row in blocks. It looks for the place while a block is near, and only in blocks whose extremum is beyond those of
earlier blocks. It also reads elements that lie two apart or backwards in place; otherwise they are copied for the
search. Rows of a million elements are cut into pieces, for threads; the extrema of the pieces are compared at the end.
Times in us of an argmax of float32, on one thread:

    rows x columns            100 x 100    1 x 1000000    1000 x 1000    1000 x 1000, every second
    two launches                    2.7             86            137                          707
    one                             1.9             48             81                          147
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops.op import RangeCut
from tracejit.passes import cost
from tracejit.passes.loops.launches import KernelLaunch, NestLaunch, Single
from tracejit.passes.loops.nest import Access, Load, Nest, RowFold, Store
from tracejit.passes.loops.strided_reads import NEAR

_LEAST_ROW = 64  # elements: shorter rows run in lanes
_LEAST_BYTES = 4  # of an element that vectors are made of
_ENOUGH_ROWS = 8  # for all threads; fewer long rows are cut into as many pieces each
_KINDS: list[list[type]] = [[], [Store], [Load, RowFold]]


def with_first_extrema(launches: Sequence[Single], kept: Collection[Value]) -> list[Single]:
    """Return launches in which extrema and their first places are found together (Note [first extrema]).

    Args:
        launches: in order.
        kept: the memory that something else reads.
    """
    if not any(isinstance(launch, KernelLaunch) and launch.name == "first_place" for launch in launches):
        return list(launches)
    result = list(launches)
    for search in launches:
        if isinstance(search, KernelLaunch) and search.name == "first_place":
            _join(result, search, kept)
    return result


def _join(launches: list[Single], search: KernelLaunch, kept: Collection[Value]) -> None:
    """Replace the search for an extremum, and what finds this extremum, if one launch can do both."""
    node, at = search.node, launches.index(search)
    assert node is not None
    x, best, out = search.pointers
    fold = next((i for i in range(at) if _folds(launches[i], node, best.root)), None)
    if fold is None:
        return
    nest = launches[fold].nest  # type: ignore[union-attr]
    source = nest.reads[0]
    copy = None
    if x.root is not source.root:
        copy = next((i for i in range(at) if _copies(launches[i], source.root, x.root)), None)
        uses = Counter([root for launch in launches for root in launch.touched])
        if copy is None or x.root in kept or uses[x.root] != 2:
            return
    between = launches[fold + 1 : at]
    if any(best.root in launch.touched or source.root in launch.writes for launch in between):
        return
    made = _found_together(nest, node, out)
    if made:
        launches[at : at + 1] = made
        for number in sorted({fold, *([] if copy is None else [copy])}, reverse=True):
            del launches[number]


def _folds(launch: Single, node: Node, best: Value) -> bool:
    """Return whether a launch computes nothing but the extrema that a node searches for, and how they are read."""
    if not isinstance(launch, NestLaunch) or best.node is None or launch.nodes != [best.node]:
        return False
    nest, extremum = launch.nest, best.node
    kinds = [[type(line) for line in lines] for lines in (*nest.row, *nest.full)]
    is_same = extremum.inputs[0] is node.inputs[0] and extremum.op.name in ("max", "min")
    return is_same and kinds == _KINDS and nest.writes[0].root is best and len(nest.reads) == 1


def _copies(launch: Single, source: Value, target: Value) -> bool:
    """Return whether a launch copies a view of `source` to `target`."""
    return (
        isinstance(launch, NestLaunch)
        and not launch.nodes
        and launch.reads == [source]
        and launch.writes == [target]
    )


def _found_together(nest: Nest, node: Node, out: Access) -> list[Single]:
    """Return the launches that find extrema and their places; none if there is no kernel for such rows."""
    (source,), (best,) = nest.reads, nest.writes
    split = nest.split or 0
    rows = _as_one_axis(nest.extents[:split], source.strides[:split])
    row = _as_one_axis(nest.extents[split:], source.strides[split:])
    places = _as_one_axis(nest.extents[:split], best.strides[:split])
    if rows is None or row is None or places is None or best.offset or places[1] != 1:
        return []
    (outer, apart), (n, step) = rows, row
    dtype = source.dtype
    if n < _LEAST_ROW or step not in NEAR or step == 0 or not outer:
        return []
    if dtype.kind != "f" or dtype.itemsize < _LEAST_BYTES:
        return []
    pieces = 1
    is_long = n >= _ENOUGH_ROWS * _LEAST_ROW  # each piece is to have as much as the kernel takes at once
    if outer < _ENOUGH_ROWS and is_long and outer * n * cost.NS_PER_TOUCH >= cost.LEAST_SPLIT_NS:
        pieces = _ENOUGH_ROWS
    fold = nest.nodes[0].op.name
    name = f"first_{fold}" if step == 1 else f"first_{fold}_by_{step}".replace("-", "minus_")
    cut = RangeCut(lambda numbers: numbers[1] * numbers[2] / numbers[3] * cost.NS_PER_TOUCH,
                   lambda numbers: numbers[1])  # fmt: skip
    numbers = (0, outer * pieces, n, pieces, apart)
    if pieces == 1:
        return [KernelLaunch(name, numbers, (source, best, out), 2, node, whole=cut)]
    found = Value(Aval((outer, pieces), None, dtype), None)
    at = Value(Aval((outer, pieces), None, np.dtype(np.int64)), None)
    some, many = Access(found, 0, (), dtype), Access(at, 0, (), at.dtype)
    return [
        KernelLaunch(name, numbers, (source, some, many), 2, node, whole=cut),
        KernelLaunch(
            "first_of_pieces", (outer, pieces, int(fold == "max")), (some, many, best, out), 2, node
        ),
    ]


def _as_one_axis(extents: Sequence[int], strides: Sequence[int]) -> tuple[int, int] | None:
    """Return the extent and stride of the one axis that some axes are in memory, None if they are not one."""
    axes = [(extent, stride) for extent, stride in zip(extents, strides, strict=True) if extent != 1]
    if not axes:
        return math.prod(extents), 1
    for (_, outer), (extent, inner) in pairwise(axes):
        if outer != extent * inner:
            return None
    return math.prod(extents), axes[-1][1]
