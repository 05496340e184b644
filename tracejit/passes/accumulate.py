# SPDX-License-Identifier: BSD-3-Clause
"""accumulate: sums of matrix products become products that add to what is there.

The gradient of a weight that is used in every step of a loop is a sum of as many products. Stored one by one and then
added, they take as much memory as the loop has steps; as a chain of products, each of which adds to the one before,
they share one array, and nothing is left to add. The order of a sum changes by this, as that of any reduction may.
"""

from collections import Counter

from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS


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
            made = [v for v in terms if uses[v] == 1 and v.node is not None and v.node.op.name == "matmul"]
            if len(made) > 1:
                made.sort(key=lambda v: depth[v])
                instead[node] = _chain(node, made, [v for v in terms if v not in made])
                gone.update(sums, [v.node for v in made[1:] if v.node])
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


def _chain(root: Node, products: list[Value], others: list[Value]) -> list[Node]:
    """Return nodes that compute `root` with a chain of the products; the first of them stays where it is."""
    nodes: list[Node] = []
    total = products[0]

    def append(name: str, inputs: tuple[Value, ...], like: Node) -> Value:
        node = Node(OPS[name], inputs, {}, like.where)
        node.outputs = (Value(root.output.aval, root.output.owner, node),)
        nodes.append(node)
        return node.output

    for value in products[1:]:
        assert value.node is not None
        total = append("matmul_add", (*value.node.inputs, total), value.node)
    if others:
        rest = others[0]
        for value in others[1:]:
            rest = append("add", (rest, value), root)
        append("add", (rest, total), root)
    nodes[-1].outputs = root.outputs
    root.output.node = nodes[-1]
    return nodes
