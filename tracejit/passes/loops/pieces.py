# SPDX-License-Identifier: BSD-3-Clause
"""pieces: has loops and products write straight into the arrays that are assembled from their results.

Note [pieces]
A concatenation is assembled in memory, piece by piece. The same is true of the gradient of an array that is read
through slices (the gates of a recurrent unit). A piece that a loop computes need not be copied: the loop stores the
value where it belongs, once for each piece, and in memory of its own only if something else reads it. Nothing changes
for the readers.

The loop keeps memory of its own, and the piece is copied, where storing elsewhere would cost more than the copy: where
elements would no longer be neighbours; where outer axes could no longer be joined to give enough rows for all threads;
and where rows that run as one, or several at a time, would run by themselves and leave elements over from vectors for
functions such as exp. A piece that begins within a row of others ends a section (Note [sections]), as its copy would.
Three kinds of pieces are copied always: a sum that is complete only after its loop, because parts and bands accumulate
it in memory of their own; a small product that bands would sum up; and a product that BLAS multiplies or that has other
readers.

Times in us of two pieces of 1000 rows, float32, AVX-512, with copies and without:

    columns                 8          16         20         24         32         48         60         84
    tanh(x)            7.1 10.7   13.2  9.8  17.1 15.5  18.4 21.6  23.7 19.0  40.3 29.7  44.9 43.7  71.4 54.5
    tanh(x + bias)     7.7 11.5   14.5  9.8  18.6 15.9  19.5 23.4  25.5 19.3  37.0 29.8  46.5 50.8
    2 * x, x * y       4.8  2.9    7.7  4.9  10.1  6.6  10.3  8.0  12.6  5.9  17.9 13.0  23.0 19.4  43.9 22.1
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from tracejit.aval import part_dtype
from tracejit.ir import Graph, Node, Value
from tracejit.ops.complex import layout_of_part
from tracejit.ops.op import Layout, Piece, Pieces, contiguous
from tracejit.passes import cost
from tracejit.passes.fusion.fuse import Fused, Loop
from tracejit.passes.loops import bands, parts, products, tiles
from tracejit.passes.loops.nest import MOST_WRITES, Access, Nest, storing_also
from tracejit.passes.loops.products import Matrices, Product
from tracejit.passes.loops.spans import row_span
from tracejit.util.named_tuples import NamedTuple

_STRIDED = frozenset({"product", "panels", "columns"})  # kernels that write rows at any distance


class Destination(NamedTuple):
    """A place where a loop may write a value: it is piece `number` of the array of `node`, with this layout there."""

    node: Node
    number: int
    value: Value
    layout: Layout


class Assemblies:
    """The nodes that assemble arrays from pieces, and the pieces that loops and products may write themselves.

    pieces          of each node, in order, and where they lie in its memory
    of_loops        destinations of the values of a loop
    of_products     destinations of products that are nothing but a piece
    direct_inputs   for each node, the numbers of the inputs that have a destination
    in_place        the pieces, as (node, number), that launches so far have written where they belong
    """

    def __init__(self, graph: Graph, fused: Fused) -> None:
        self.pieces: dict[Node, list[tuple[Piece, Layout]]] = {}
        self.of_loops: dict[Loop, list[Destination]] = {}
        self.of_products: dict[Value, Destination] = {}
        self.direct_inputs: dict[Node, set[int]] = {}
        self.in_place: set[tuple[Node, int]] = set()
        nodes = [step.node for step in fused.steps if not isinstance(step, Loop)]
        nodes = [node for node in nodes if isinstance(node.op.emit, Pieces)]
        if nodes:
            self._uses = Counter([v for node in graph.nodes for v in node.inputs])
            self._outputs = frozenset(graph.outputs)
        for node in nodes:
            self._add(node, fused)

    def _add(self, node: Node, fused: Fused) -> None:
        pieces = self.pieces[node] = pieces_of(node)
        destinations = destinations_of(node, pieces, fused)
        self.direct_inputs[node] = set()
        for destination in destinations:
            source = int(pieces[destination.number][0].source)
            self.direct_inputs[node].add(source)
            value = destination.value
            home = fused.home[value]
            if isinstance(home, Loop):
                self.of_loops.setdefault(home, []).append(destination)
            elif self._is_only_use(node.inputs[source], value):
                self.of_products[value] = destination

    def _is_only_use(self, piece: Value, value: Value) -> bool:
        """Return whether a value is read as this piece only, itself or a view of it."""
        while piece is not value:
            if self._uses[piece] > 1 or piece in self._outputs or piece.node is None:
                return False
            piece = piece.node.inputs[0]
        return self._uses[value] == 1 and value not in self._outputs


def pieces_of(node: Node) -> list[tuple[Piece, Layout]]:
    """Return the pieces of a node, in order, and where they lie in its memory."""
    emit, out = node.op.emit, node.output
    assert isinstance(emit, Pieces)
    strides = contiguous(out.shape).strides
    pieces = []
    if out.dtype.kind == "c":  # the parts of all numbers, one beside the other
        layout = contiguous(out.shape)
        pair = emit.pieces(out.aval, *[v.aval for v in node.inputs], **node.params)
        return [(piece, layout_of_part(layout, number)) for number, piece in enumerate(pair)]
    for piece in emit.pieces(out.aval, *[v.aval for v in node.inputs], **node.params):
        offset = sum(start * stride for start, stride in zip(piece.start, strides, strict=True))
        steps = tuple([step * stride for step, stride in zip(piece.step, strides, strict=True)])
        pieces.append((piece, Layout(offset, piece.shape, steps)))
    return pieces


def destinations_of(node: Node, pieces: Sequence[tuple[Piece, Layout]], fused: Fused) -> list[Destination]:
    """Return where loops and matrix products may write the pieces of a node."""
    # Pieces cover the whole array. If they have more elements than the array, they overlap.
    dense = 2 if node.output.dtype.kind == "c" else 1
    if sum(math.prod(piece.shape) for piece, _ in pieces) != dense * node.output.aval.size:
        return []
    destinations = []
    for number, (piece, target) in enumerate(pieces):
        if not piece.fill:
            value, layout = _in_place(node.inputs[int(piece.source)], target, fused, dense)
            if layout is not None and value.dtype == part_dtype(node.output.dtype):
                destinations.append(Destination(node, number, value, layout))
    return destinations


def _in_place(operand: Value, target: Layout, fused: Fused, dense: int) -> tuple[Value, Layout | None]:
    """Return the value that an operand rearranges, and its layout if the operand is to lie at `target`.

    Neighbours lie `dense` places apart: 2 where they are parts of complex numbers.
    """
    base, axes = fused.source(operand)
    step = fused.home.get(base)
    if isinstance(step, Loop):
        may_move = base not in step.accumulates and (step.split != 0 or base not in step.reduced_from)
    else:
        may_move = step is not None and step.node.op.name == "matmul"
    if not may_move or not base.aval.size == math.prod(target.shape) > 0:
        return base, None
    extra = len(target.shape) - operand.ndim
    moving = [target.strides[axis + extra] for axis in axes if axis >= 0]
    is_in_order = all(before < after for before, after in pairwise([axis for axis in axes if axis >= 0]))
    if not is_in_order or any(stride < 1 for stride in moving) or moving[-1:] not in ([], [dense]):
        return base, None
    strides = tuple([0 if axis < 0 else target.strides[axis + extra] for axis in axes])
    return base, Layout(target.offset, base.shape, strides)


def nest_in_place(
    nest: Nest, loop: Loop, destinations: Sequence[Destination], kept: Collection[Value]
) -> Nest | None:
    """Return a nest that writes values to their places, or None if that would cost more than copies.

    Args:
        nest: the nest of `loop`, which has memory for the values.
        loop: the loop that the nest was lowered from.
        destinations: where values go; a value may go to several.
        kept: values that are also read in memory of their own.
    """
    writes = list(nest.writes)
    number_of = {access.root: k for k, access in enumerate(writes)}
    further: dict[int, list[int]] = {}
    moved: dict[int, int] = {}  # by the number of a new write, the write of `nest` that stores the same value
    for destination in destinations:
        value, layout = destination.value, destination.layout
        strides = [0] * len(nest.extents)
        for axis, stride in zip(loop.maps[value], layout.strides, strict=True):
            if axis >= 0:
                strides[axis] = stride
        access = Access(destination.node.output, layout.offset, tuple(strides), value.dtype)
        own = number_of[value]
        if value not in kept and writes[own].root is value:
            writes[own] = access
            moved[own] = own
        else:
            moved[len(writes)] = own
            further.setdefault(own, []).append(len(writes))
            writes.append(access)
    if len(writes) > MOST_WRITES:
        return None
    placed = nest._replace(writes=writes)
    if further:
        placed = storing_also(placed, further)
    return placed if _runs_alike(nest, placed, moved) else None


def result_in_place(product: Product, destination: Destination, kernel: str) -> Matrices | None:
    """Return where a product writes its result, or None if that would cost more than a copy.

    Args:
        product: the product, with a result in memory of its own.
        destination: where the result goes.
        kernel: the one that multiplies.
    """
    count, m, n, k, *_ = product
    shape, layout = destination.value.shape, destination.layout
    strides = products.strides(layout, shape[:-2])
    # Small sums over rows are summed by bands, each in memory of its own.
    if (
        kernel not in _STRIDED
        or strides is None
        or shape[-1] == 1
        or 2 * bands.MOST_BANDS * m * n <= k * (m + n)
    ):
        return None
    row, column, batch = strides
    if m != shape[-2]:  # all the rows are those of one matrix
        if shape[-2] > 1 and batch != shape[-2] * row:
            return None
        row = batch if shape[-2] == 1 else row
    access = Access(destination.node.output, layout.offset, (), product.out.access.dtype)
    extent, stride, *inner = (count, batch, (m, row)) if count > 1 else (m, row)
    if extent > 1 and row_span(access, extent, stride, True, *inner, (n, column)).period is None:
        return None
    return Matrices(access, row, column, batch)


def _runs_alike(nest: Nest, placed: Nest, moved: dict[int, int]) -> bool:
    """Return whether a nest that writes elsewhere runs as it would with memory of its own (Note [pieces])."""
    rows = parts.outer_joined(placed, bands.MOST_BANDS)
    is_short = math.prod(nest.extents) < tiles.LEAST
    if is_short or all(placed.writes[new].strides == nest.writes[old].strides for new, old in moved.items()):
        return True
    if rows.extents[0] != parts.outer_joined(nest, bands.MOST_BANDS).extents[0]:
        return False
    run = _run(placed)
    if cost.makes_vectors(run) or (run == _run(nest) and tiles.tile(nest) is None):
        return True
    return not any(map(cost.is_dear, nest.nodes))


def _run(nest: Nest) -> int:
    """Return how many elements the innermost loop has, together with the axes that can be joined to it."""
    accesses = [*nest.reads, *nest.writes]
    run = 1
    for axis in reversed(range(nest.split or 0, len(nest.extents))):
        extent = nest.extents[axis]
        if run > 1 and any(a.strides[axis] != a.strides[axis + 1] * nest.extents[axis + 1] for a in accesses):
            break
        run *= extent
    return run
