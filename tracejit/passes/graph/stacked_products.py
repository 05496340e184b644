# SPDX-License-Identifier: BSD-3-Clause
"""stacked_products: turns products of few rows in each step of a loop into one product beside the loop.

Two kinds of products in a step need not wait for earlier steps. The product of a part of an array with weights that do
not change is made before the loop, for all parts. And a sum over steps of products x' y, such as the gradient of
weights, is made after the loop: the rows of x and y of all steps are two matrices, and the sum is their product. A
product of many rows is as fast in a step; it stays there, and takes no memory for all steps.
"""

from collections.abc import Sequence

from tracejit.ir import Graph, Node, Value
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.simplify import live_nodes
from tracejit.passes.graph.tidy_loops import Copier

_MOST_ROWS = 8
_MOST_BYTES = 1 << 28  # of what is stacked for one product


def stacked_products(graph: Graph) -> Graph:
    """Return a graph whose loops leave products of few rows to one product of all steps."""
    if not any(node.op.name == "scan" for node in graph.nodes):
        return graph
    copier = Copier(graph)
    for node in graph.nodes:
        if node.op.name == "scan":
            _StackedLoop(copier, node).run()
        else:
            copier.append(node, node.inputs, node.params, node.outputs)
    return copier.finished()


class _StackedLoop:
    """A loop on its way into a copy of its graph.

    Attributes:
        inputs: the inputs of the new body: the carry, parts and constants, each with the Value around.
        outputs: the outputs of the new body: the carry and results.
        replaced: Values of the body that are inputs of the new one.
    """

    def __init__(self, copier: Copier, node: Node) -> None:
        self.copier, self.node = copier, node
        body = node.params["body"]
        self.body, self.graph, self.length = body, body.graph, node.params["length"]
        first, last = body.carries, body.carries + body.slices
        pairs = [*zip(self.graph.inputs, [copier.mapping[v] for v in node.inputs], strict=True)]
        self.carry, self.parts, self.constants = pairs[:first], pairs[first:last], pairs[last:]
        self.results = [*self.graph.outputs[first:]]
        self.uses: dict[Value, int] = {}
        for value in [v for inner in self.graph.nodes for v in inner.inputs] + self.graph.outputs:
            self.uses[value] = self.uses.get(value, 0) + 1

    def run(self) -> None:
        """Append the loop, and the products beside it."""
        sums = [number for number in range(self.body.carries) if self.is_sum(number)]
        before = self.products()
        copier, node, graph = self.copier, self.node, self.graph
        if not sums and not before:
            copier.append(node, node.inputs, node.params, node.outputs)
            return
        factors = [self.rows_of(number) for number in sums]
        parts = dict(self.parts)
        self.results += [
            value for value in dict.fromkeys(v for pair in factors for v in pair)
            if value not in parts and value not in self.results
        ]  # fmt: skip
        kept = [number for number in range(self.body.carries) if number not in sums]
        inputs = [*[self.carry[number] for number in kept], *self.parts, *before, *self.constants]
        part = Graph()
        part.inputs = [value for value, _ in inputs]
        part.constants = graph.constants
        part.outputs = [*[graph.outputs[number] for number in kept], *self.results]
        made = {value for value, _ in before}
        part.nodes = [inner for inner in graph.nodes if made.isdisjoint(inner.outputs)]
        part.nodes = live_nodes(part)
        copy = Copier(part)
        for inner in part.nodes:
            copy.append(inner, inner.inputs, inner.params, inner.outputs)
        body = Body(copy.finished(), len(kept), len(self.parts) + len(before))
        b = copier.b
        b.location = node.where
        found = b.apply(node.op, [value for _, value in inputs], {**node.params, "body": body})
        copier.mapping.update(zip([node.outputs[number] for number in kept], found, strict=False))
        stacked = dict(zip(self.results, found[len(kept) :], strict=True)) | parts
        count = len(graph.outputs) - self.body.carries
        copier.mapping.update(zip(node.outputs[self.body.carries :], found[len(kept) :][:count], strict=True))
        for number, (x, y) in zip(sums, factors, strict=True):
            left = b.transpose(self.flat(stacked[x]), axes=(1, 0))
            total = b.matmul_add(left, self.flat(stacked[y]), self.carry[number][1])
            copier.mapping[node.outputs[number]] = total

    def flat(self, stacked: Value) -> Value:
        """Return the rows of all steps as one matrix."""
        steps, rows, columns = stacked.shape
        flat: Value = self.copier.b.reshape(stacked, shape=(steps * rows, columns))
        return flat

    def is_small(self, values: Sequence[Value]) -> bool:
        """Return whether matrices of a step have few rows, and fit into memory for all steps."""
        size = sum(value.aval.size * value.dtype.itemsize for value in values)
        return (
            all(v.ndim == 2 and v.shape[0] <= _MOST_ROWS for v in values)
            and size * self.length <= _MOST_BYTES
        )

    def is_sum(self, number: int) -> bool:
        """Return whether a carry is a sum of products of the transpose of a few rows with as many."""
        total, out = self.graph.inputs[number], self.graph.outputs[number]
        node = out.node
        if node is None or node.op.name != "matmul_add" or node.inputs[2] is not total:
            return False
        if self.uses[total] != 1 or self.uses[out] != 1:
            return False
        left, right = node.inputs[:2]
        is_turned = left.node is not None and left.node.op.name == "transpose" and left.ndim == 2
        if not is_turned or left.node is None or left.node.params["axes"] != (1, 0):
            return False
        outside = {*[value for value, _ in (*self.carry, *self.constants)], *self.graph.constants}
        rows = (left.node.inputs[0], right)
        return self.is_small(rows) and outside.isdisjoint(rows)

    def rows_of(self, number: int) -> tuple[Value, Value]:
        """Return the two factors of a sum of products, with the rows of a step."""
        node = self.graph.outputs[number].node
        assert node is not None and node.inputs[0].node is not None
        return node.inputs[0].node.inputs[0], node.inputs[1]

    def products(self) -> list[tuple[Value, Value]]:
        """Append the products of parts with weights for all steps; return what they stand for in a step, and them."""
        b, parts, constants = self.copier.b, dict(self.parts), dict(self.constants)
        found = []
        for node in self.graph.nodes:
            if node.op.name != "matmul" or node.inputs[0] not in parts or node.inputs[1] not in constants:
                continue
            x, weights = node.inputs
            if weights.ndim != 2 or not self.is_small([x, node.output]):
                continue
            b.location = node.where
            product = b.matmul(self.flat(parts[x]), constants[weights])
            shape = (self.length, *node.output.shape)
            found.append((node.output, b.reshape(product, shape=shape)))
        return found
