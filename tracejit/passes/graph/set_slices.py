# SPDX-License-Identifier: BSD-3-Clause
"""set_slices: an array whose elements are mostly replaced is put together from the new elements and those around them.

Note [set slices]
`u[1:-1] += change` is a copy of all of `u`, followed by a copy of the new elements over most of it. The adjoint of a
slice is the same, on zeros. As pieces that lie side by side (Note [pieces] in passes/loops/pieces.py), only the border
is copied, and the loop that computes the new elements writes them where they belong. If the rest of the array was
computed only for this, it is computed at the border only (Note [slices] in slices.py). Where less than half of an array
is set, the border would take as many copies, of more elements. An input that is written keeps its memory, and only the
new elements are copied (Note [written inputs] in passes/loops/inputs.py).
"""

from collections.abc import Iterable, Iterator
from math import prod

from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS
from tracejit.ops.movement import Place
from tracejit.passes.graph.sums import is_zero


def set_slices(graph: Graph, written: Iterable[Value] = ()) -> None:
    """Replace each assignment to most of an array by pieces, except assignments to inputs that are written."""
    found = [node for node in graph.nodes if _is_mostly_set(node)]
    if not found:
        return
    kept = {*written}
    for node in graph.nodes:
        if node.op.name == "setslice" and node.inputs[0] in kept:
            kept.add(node.output)
    replaced = {node for node in found if node.inputs[0] not in kept}
    graph.nodes = [
        new for node in graph.nodes for new in (_replacements(node) if node in replaced else (node,))
    ]


def _is_mostly_set(node: Node) -> bool:
    """Return whether a node sets one block of neighbours, at least half of an array but not all of it."""
    if node.op.name != "setslice" or any(step != 1 for step in node.params["steps"]):
        return False
    size, part = node.output.aval.size, prod(_extents(node))
    return size > part > 0 and 2 * part >= size and node.inputs[1].dtype == node.output.dtype


def _extents(node: Node) -> tuple[int, ...]:
    return tuple([
        stop - start for start, stop in zip(node.params["starts"], node.params["stops"], strict=True)
    ])  # fmt: skip


def _replacements(node: Node) -> Iterator[Node]:
    """Give the nodes that put together what a node sets, with what lies around it."""
    base, value = node.inputs
    extents = _extents(node)
    if value.shape != extents:
        spread = _made("broadcast_to", (value,), node, extents, shape=extents)
        yield spread
        value = spread.output
    shape = node.output.shape
    starts, stops = node.params["starts"], node.params["stops"]
    if is_zero(base):
        widths = tuple([
            (start, extent - stop) for start, stop, extent in zip(starts, stops, shape, strict=True)
        ])  # fmt: skip
        last = Node(OPS["pad"], (value,), {"widths": widths, "value": 0.0}, node.where)
    else:
        parts, places = [], []
        for place in _border(starts, stops, shape):
            sizes = tuple([stop - start for start, stop in zip(*place[:2], strict=True)])
            named = dict(zip(("starts", "stops", "steps"), place, strict=True))
            part = _made("slice", (base,), node, sizes, **named)
            yield part
            parts.append(part.output)
            places.append(place)
        places.append((starts, stops, (1,) * len(shape)))
        last = Node(OPS["assemble"], (*parts, value), {"shape": shape, "places": tuple(places)}, node.where)
    last.makes(node.outputs)
    node.output.node = last
    yield last


def _made(name: str, inputs: tuple[Value, ...], like: Node, sizes: tuple[int, ...], **params: object) -> Node:
    """Return a node whose result has another shape than that of the node it serves."""
    node = Node(OPS[name], inputs, params, like.where)
    node.makes((Value(like.output.aval._replace(shape=sizes, format=None), like.output.owner, node),))
    return node


def _border(starts: tuple[int, ...], stops: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[Place]:
    """Give the blocks around a block; those of an axis span the inside of the axes before it."""
    low, high = [0] * len(shape), [*shape]
    for axis, (start, stop, extent) in enumerate(zip(starts, stops, shape, strict=True)):
        for begin, end in ((0, start), (stop, extent)):
            if begin < end:
                low[axis], high[axis] = begin, end
                yield tuple(low), tuple(high), (1,) * len(shape)
        low[axis], high[axis] = start, stop
