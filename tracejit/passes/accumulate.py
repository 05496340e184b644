# SPDX-License-Identifier: BSD-3-Clause
"""accumulate: sums of matrix products, and of sums over axes, become products and sums that add to what is there.

The gradient of a weight that is used in every step of a loop is a sum of as many products, that of a bias a sum of as
many sums over the batch. Stored one by one and then added, they take as much memory as the loop has steps, and a kernel
that adds so many, which is another one for each number of steps. As a chain, each of which adds to the one before,
products share one array, and nothing is left to add. The order of a sum changes by this, as that of any reduction may.
"""

from collections import Counter
from typing import Any

from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS

_ADDING = {"matmul": "matmul_add", "sum": "sum_add"}


def accumulate(graph: Graph) -> None:
    """Turn the products in each sum of several into a chain; each is read by the next one only."""
    uses = Counter(v for node in graph.nodes for v in node.inputs) + Counter(graph.outputs)
    depth: dict[Value, int] = {}
    gone: set[Node] = set()
    instead: dict[Node, list[Node]] = {}
    inner: set[Value] = set()  # sums that are part of a larger one
    for node in graph.nodes:
        deepest = 1 + max([depth.get(v, 0) for v in node.inputs], default=0)
        depth.update(dict.fromkeys(node.outputs, deepest))
        if _is_sum(node):
            inner.update(v for v in node.inputs if uses[v] == 1)
    for node in graph.nodes:
        if _is_sum(node) and node.output not in inner:
            sums, terms = _terms(node, inner)
            chains = []
            for name in _ADDING:
                made = [v for v in terms if uses[v] == 1 and v.node is not None and v.node.op.name == name]
                if len(made) > 1:
                    chains.append(sorted(made, key=lambda v: depth[v]))
            if chains:
                chained = {v for made in chains for v in made}
                instead[node] = _chain(node, chains, [v for v in terms if v not in chained])
                gone.update(sums, [v.node for made in chains for v in made[1:] if v.node])
    nodes: list[Node] = []
    for node in graph.nodes:
        if node in instead:
            nodes += instead[node]
        elif node not in gone:
            nodes.append(node)
    graph.nodes = nodes


def _is_sum(node: Node) -> bool:
    if node.op.name != "add":
        return False
    aval = node.output.aval
    return aval.dtype.kind == "f" and all(v.aval == aval for v in node.inputs)


def _terms(root: Node, inner: set[Value]) -> tuple[list[Node], list[Value]]:
    """Return the additions of a sum, and what they add, from left to right."""
    sums: list[Node] = []
    terms: list[Value] = []
    waiting: list[Value] = [root.output]
    while waiting:
        value = waiting.pop()
        node = value.node
        if node is not None and (node is root or (value in inner and _is_sum(node))):
            sums.append(node)
            waiting += reversed(node.inputs)
        else:
            terms.append(value)
    return sums, terms


def _chain(root: Node, chains: list[list[Value]], others: list[Value]) -> list[Node]:
    """Return nodes that compute `root` with chains of values; the first one of each stays where it is."""
    nodes: list[Node] = []

    def append(name: str, inputs: tuple[Value, ...], like: Node, params: dict[str, Any]) -> Value:
        node = Node(OPS[name], inputs, params, like.where)
        node.outputs = (Value(root.output.aval, root.output.owner, node),)
        nodes.append(node)
        return node.output

    totals = []
    for made in chains:
        total = made[0]
        for value in made[1:]:
            assert value.node is not None
            name = _ADDING[value.node.op.name]
            total = append(name, (*value.node.inputs, total), value.node, value.node.params)
        totals.append(total)
    rest, *more = [*others, *totals]
    for value in more:
        rest = append("add", (rest, value), root, {})
    nodes[-1].outputs = root.outputs
    root.output.node = nodes[-1]
    return nodes
