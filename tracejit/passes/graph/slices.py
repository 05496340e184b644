# SPDX-License-Identifier: BSD-3-Clause
"""slices: values that are read only through slices are computed slice by slice, where they are read.

Note [slices]
A loop that reads a slice of a value begins when all of the value is in memory. The gates of a recurrent unit are slices
of a product with a bias added: that addition would be a loop of its own. If the slices together are no larger than the
whole, the operation is applied to slices of its operands instead. Those are views of memory, and the operation joins
the loops that read the slices, so that its result is neither stored nor loaded.
"""

from collections.abc import Iterator

from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS, Kind
from tracejit.ops.op import Strided
from tracejit.passes.cost import is_dear, makes_vectors

MOST_SLICES = 8  # of one array; an operation on each of them replaces one operation
DEEPEST = 4  # operations of a chain that are moved, and examined
_PARAMS = ("starts", "stops", "steps")


def through_slices(graph: Graph) -> None:
    """Apply elementwise operations to slices of their operands where only slices of their results are read."""
    slice_op = OPS["slice"]
    sliced = {node.inputs[0] for node in graph.nodes if node.op is slice_op}
    if any(value.node is not None and value.node.op.kind is Kind.ELEMENTWISE for value in sliced):
        _Mover(graph).run()


class _Mover:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.slice_op = OPS["slice"]
        self.outputs = set(graph.outputs)
        self.uses: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self.uses.setdefault(value, []).append(node)
        self.replacements: dict[Node, list[Node]] = {}
        self.moved: dict[Node, int] = {}  # by slice: how many operations now come after it

    def run(self) -> None:
        for node in reversed(self.graph.nodes):
            if node.op.kind is Kind.ELEMENTWISE and self.is_read_in_slices(node):
                self.move(node)
        if self.replacements:
            self.graph.nodes = [new for node in self.graph.nodes for new in self.replaced(node)]

    def replaced(self, node: Node) -> Iterator[Node]:
        """Give the nodes that replace a node: the node itself if nothing does."""
        replacements = self.replacements.get(node)
        if replacements is None:
            yield node
            return
        for replacement in replacements:
            yield from self.replaced(replacement)

    def is_read_in_slices(self, node: Node) -> bool:
        """Return whether the result of a node is read by loops, through slices only."""
        out = node.output
        slices = self.uses.get(out, ())
        if not slices or len(slices) > MOST_SLICES or out in self.outputs:
            return False
        if any(use.op is not self.slice_op for use in slices):
            return False
        if sum(use.output.aval.size for use in slices) > out.aval.size:
            return False
        if not all(self.may_be_moved(node, use) for use in slices):
            return False
        is_long = all(makes_vectors(_run(use)) for use in slices)
        return sum(self.stored_for(value, node, is_long, DEEPEST) for value in node.inputs) <= 1

    def may_be_moved(self, node: Node, slice_node: Node) -> bool:
        """Return whether a node may be computed after a slice of its result."""
        if self.moved.get(slice_node, 0) == DEEPEST or (
            is_dear(node) and not makes_vectors(_run(slice_node))
        ):
            return False
        size = slice_node.output.aval.size
        return size > 0 and self.is_read_by_loops(slice_node.output, size)

    def is_read_by_loops(self, value: Value, size: int) -> bool:
        """Return whether a value is read only by loops over `size` elements."""
        if value in self.outputs:
            return False
        for use in self.uses.get(value, ()):
            kind = use.op.kind
            if use.op.name == "assemble":
                continue  # as a piece it is written where it belongs, or copied
            if kind is Kind.MOVE:
                # A slice would be a view of memory that does not exist.
                if not isinstance(use.op.emit, Strided) or use.op.emit.axes is None:
                    return False
                if use.output.aval.size != size or not self.is_read_by_loops(use.output, size):
                    return False
            elif kind is Kind.ELEMENTWISE:
                if use.output.aval.size != size:
                    return False
            elif kind is not Kind.REDUCE or value is not use.inputs[0]:
                return False
        return True

    def stored_for(self, value: Value, reader: Node, is_long: bool, depth: int) -> int:
        """Return how many further arrays need memory if a node reads slices of `value`."""
        node = value.node
        while node is not None and isinstance(node.op.emit, Strided):
            reader, value = node, node.inputs[0]
            node = value.node
        if node is None or value.aval.size == 1 or node.op.kind not in (Kind.ELEMENTWISE, Kind.REDUCE):
            return 0
        may_move = node.op.kind is not Kind.REDUCE and self.uses[value] == [reader] and depth > 0
        if not may_move or (is_dear(node) and not is_long):
            return 1
        return sum(self.stored_for(operand, node, is_long, depth - 1) for operand in node.inputs)

    def move(self, node: Node) -> None:
        """Replace the slices of a node's result by the node applied to slices of its operands."""
        for value in node.inputs:
            self.uses[value] = [use for use in self.uses[value] if use is not node]
        self.replacements[node] = []
        for slice_node in self.uses.pop(node.output):
            new_slices: list[Node] = []
            inputs = tuple([self.sliced(value, slice_node, new_slices) for value in node.inputs])
            moved = Node(node.op, inputs, node.params, node.where)
            moved.makes(slice_node.outputs)
            moved.output.node = moved
            for value in moved.inputs:
                self.uses.setdefault(value, []).append(moved)
            self.replacements[slice_node] = [*new_slices, moved]

    def sliced(self, value: Value, slice_node: Node, new_slices: list[Node]) -> Value:
        """Return the slice of an operand that gives a slice of the result; append the node that computes it."""
        added = slice_node.inputs[0].ndim - value.ndim
        shape = slice_node.inputs[0].shape[added:]
        places = list(zip(*[slice_node.params[name][added:] for name in _PARAMS], strict=True))
        for axis, extent in enumerate(value.shape):
            if extent != shape[axis]:
                places[axis] = (0, 1, 1)  # this axis is broadcast
        if all(range(*place) == range(extent) for extent, place in zip(value.shape, places, strict=True)):
            return value
        params = dict(zip(_PARAMS, zip(*places, strict=True), strict=True))
        node = Node(self.slice_op, (value,), params, slice_node.where)
        part = tuple([len(range(*place)) for place in places])
        node.makes((Value(value.aval._replace(shape=part), value.owner, node),))
        self.moved[node] = self.moved.get(slice_node, 0) + 1
        self.uses[value].append(node)
        new_slices.append(node)
        return node.output


def _run(slice_node: Node) -> int:
    """Return how many elements of a slice are neighbours in the whole."""
    whole, part = slice_node.inputs[0].shape, slice_node.output.shape
    run = 1
    for axis in reversed(range(len(whole))):
        if part[axis] > 1 and slice_node.params["steps"][axis] != 1:
            break
        run *= part[axis]
        if part[axis] != whole[axis]:
            break
    return run
