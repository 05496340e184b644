# SPDX-License-Identifier: BSD-3-Clause
"""slices: what is read only through slices is computed slice by slice, where it is read.

Note [slices]
A loop that reads a slice of what another one makes begins when all of that is in memory. The gates of a recurrent unit
are slices of a product with a bias added: that addition would be a loop of its own. If the slices together are no
more than the whole, the operation is done to slices of its operands instead. Those are views of memory, and what is
done to them joins the loops that read the slices, so that the result is neither stored nor loaded.
"""

from collections.abc import Iterator

from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS, Kind
from tracejit.ops.op import Strided
from tracejit.passes.cost import is_dear, makes_vectors

MOST_SLICES = 8  # of one array: there are as many operations then, in the place of one
DEEPEST = 4  # operations of a chain that are moved, and looked at
_PARAMS = ("starts", "stops", "steps")


def through_slices(graph: Graph) -> None:
    """Do elementwise operations to slices of their operands where only slices of their results are read."""
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
        self.instead: dict[Node, list[Node]] = {}  # what stands in the place of a node that is gone
        self.moved: dict[Node, int] = {}  # by slice: how many operations have moved behind it

    def run(self) -> None:
        for node in reversed(self.graph.nodes):
            if node.op.kind is Kind.ELEMENTWISE and self.is_read_in_slices(node):
                self.move(node)
        if self.instead:
            self.graph.nodes = [each for node in self.graph.nodes for each in self.standing(node)]

    def standing(self, node: Node) -> Iterator[Node]:
        """Give the nodes that stand in the place of a node: mostly that node."""
        found = self.instead.get(node)
        if found is None:
            yield node
            return
        for each in found:
            yield from self.standing(each)

    def is_read_in_slices(self, node: Node) -> bool:
        """Return whether loops read some slices of the result of a node, and nobody reads anything else of it."""
        out = node.output
        slices = self.uses.get(out, ())
        if not slices or len(slices) > MOST_SLICES or out in self.outputs:
            return False
        if any(each.op is not self.slice_op for each in slices):
            return False
        if sum(each.output.aval.size for each in slices) > out.aval.size:
            return False
        if not all(self.may_be_moved(node, each) for each in slices):
            return False
        is_long = all(makes_vectors(_run(each)) for each in slices)
        return sum(self.stored_for(value, node, is_long, DEEPEST) for value in node.inputs) <= 1

    def may_be_moved(self, node: Node, taken: Node) -> bool:
        """Return whether a node may be done to a slice that is taken of its result."""
        if self.moved.get(taken, 0) == DEEPEST or (is_dear(node) and not makes_vectors(_run(taken))):
            return False
        size = taken.output.aval.size
        return size > 0 and self.is_read_by_loops(taken.output, size)

    def is_read_by_loops(self, value: Value, size: int) -> bool:
        """Return whether all who read a value are loops over as many elements."""
        if value in self.outputs:
            return False
        for use in self.uses.get(value, ()):
            kind = use.op.kind
            if kind is Kind.MOVE:
                # A slice would be a view of memory that is not there.
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
        """Return how many arrays that are in no memory yet would have to be, if a node reads slices of `value`."""
        node = value.node
        while node is not None and isinstance(node.op.emit, Strided):
            reader, value = node, node.inputs[0]
            node = value.node
        if node is None or value.aval.size == 1 or node.op.kind not in (Kind.ELEMENTWISE, Kind.REDUCE):
            return 0
        may_move = node.op.kind is not Kind.REDUCE and self.uses[value] == [reader] and depth > 0
        if not may_move or (is_dear(node) and not is_long):
            return 1
        return sum(self.stored_for(each, node, is_long, depth - 1) for each in node.inputs)

    def move(self, node: Node) -> None:
        """Do a node to slices of its operands, in the place of the slices of its result."""
        for value in node.inputs:
            self.uses[value] = [use for use in self.uses[value] if use is not node]
        self.instead[node] = []
        for taken in self.uses.pop(node.output):
            made: list[Node] = []
            moved = Node(
                node.op,
                tuple([self.taken_of(value, taken, made) for value in node.inputs]),
                node.params,
                node.where,
            )
            moved.makes(taken.outputs)
            moved.output.node = moved
            for value in moved.inputs:
                self.uses.setdefault(value, []).append(moved)
            self.instead[taken] = [*made, moved]

    def taken_of(self, value: Value, taken: Node, made: list[Node]) -> Value:
        """Return what of an operand gives a slice that was taken of the result; append the node that makes it."""
        extra = taken.inputs[0].ndim - value.ndim
        shape = taken.inputs[0].shape[extra:]
        places = list(zip(*[taken.params[name][extra:] for name in _PARAMS], strict=True))
        for axis, extent in enumerate(value.shape):
            if extent != shape[axis]:
                places[axis] = (0, 1, 1)  # it broadcasts
        if all(range(*place) == range(extent) for extent, place in zip(value.shape, places, strict=True)):
            return value
        params = dict(zip(_PARAMS, zip(*places, strict=True), strict=True))
        node = Node(self.slice_op, (value,), params, taken.where)
        found = tuple([len(range(*place)) for place in places])
        node.makes((Value(value.aval._replace(shape=found), value.owner, node),))
        self.moved[node] = self.moved.get(taken, 0) + 1
        self.uses[value].append(node)
        made.append(node)
        return node.output


def _run(taken: Node) -> int:
    """Return how many elements of a slice follow each other in what it is taken of."""
    whole, part = taken.inputs[0].shape, taken.output.shape
    run = 1
    for axis in reversed(range(len(whole))):
        if part[axis] > 1 and taken.params["steps"][axis] != 1:
            break
        run *= part[axis]
        if part[axis] != whole[axis]:
            break
    return run
