# SPDX-License-Identifier: BSD-3-Clause
"""accumulate: makes the sums that differentiation leaves behind take one array instead of many.

Note [chains]
The gradient of a weight that a loop uses in every step is a sum of one product for each step; the gradient of a bias is
a sum of one sum over the batch for each step. Stored one by one and added at the end, they take one array for each
step, and a kernel that depends on the number of steps. As a chain, in which each product adds to the one before,
products share one array, and nothing is left to add. This changes the order of the sum, as any reduction may.

Note [sums of slices]
The adjoint of a slice is the slice amid zeros. An array that is read through n slices has a sum of n such arrays as its
gradient. Disjoint slices become one array, assembled from the slices; zeros are written only between them. Nothing is
added, so that -0.0 stays -0.0. Overlapping slices become several arrays, each of disjoint slices; slices at the same
places are added first.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Graph, Node, Value
from tracejit.ops import OPS
from tracejit.ops.movement import Place, index_of
from tracejit.passes.graph.simplify import live_nodes

_ADDING = {"matmul": "matmul_add", "sum": "sum_add"}
_LAYERS = 4  # the last ones, which are tried for a slice


def accumulate(graph: Graph) -> None:
    """Turn the products and sums in each sum of several into chains, and the slices amid zeros into one array."""
    uses = Counter([v for node in graph.nodes for v in node.inputs])
    uses.update(graph.outputs)
    sums: list[Node] = []
    inner: set[Value] = set()  # sums that are part of a larger one
    amid_zeros: set[Value] = set()  # slices amid zeros, and their sums, which several sums may share
    for node in graph.nodes:
        if _is_sum(node):
            sums.append(node)
            inner.update([v for v in node.inputs if uses[v] == 1])
            if amid_zeros.issuperset(node.inputs):
                amid_zeros.add(node.output)
        elif node.op.name == "setslice" and is_zero(node.inputs[0]):
            amid_zeros.add(node.output)
    roots = [node for node in sums if node.output not in inner]
    if not roots:
        return
    # All terms are collected before any sum is changed: sums may share some.
    all_terms = [_terms(node, inner, amid_zeros) for node in roots]
    depth = _depths(graph)
    rewriter = _Rewriter(graph)
    for node, terms in zip(roots, all_terms, strict=True):
        chains = [[v for v in terms if _made_by(v, name) and uses[v] == 1] for name in _ADDING]
        chains = [sorted(chain, key=depth.__getitem__) for chain in chains if len(chain) > 1]
        layers = _layers([v for v in terms if v in amid_zeros])
        if chains or layers:
            rest = Counter(terms)  # a term may occur twice
            for group in (*chains, *[group for layer in layers for group in layer]):
                rest -= Counter(group)
            rewriter.rewrite(node, chains, layers, list(rest.elements()))
    graph.nodes = rewriter.nodes()
    graph.nodes = live_nodes(graph)


def _depths(graph: Graph) -> dict[Value, int]:
    """Return the length of the longest chain of nodes up to each value."""
    depth: dict[Value, int] = {}
    for node in graph.nodes:
        deepest = 0
        for value in node.inputs:
            deepest = max(deepest, depth.get(value, 0))
        for value in node.outputs:
            depth[value] = deepest + 1
    return depth


def _node(value: Value) -> Node:
    assert value.node is not None
    return value.node


def _made_by(value: Value, name: str) -> bool:
    return value.node is not None and value.node.op.name == name


def _is_sum(node: Node) -> bool:
    if node.op.name != "add":
        return False
    aval = node.output.aval
    return aval.dtype.kind == "f" and all(v.aval == aval for v in node.inputs)


def is_zero(value: Value) -> bool:
    """Return whether a value is a constant of zeros."""
    if _made_by(value, "broadcast_to"):
        value = _node(value).inputs[0]
    return value.node is None and value.data is not None and not value.data.any()


def _terms(root: Node, *inner: set[Value]) -> list[Value]:
    """Return the terms of a sum, from left to right; sums in one of `inner` are part of it."""
    terms: list[Value] = []
    waiting: list[Value] = [root.output]
    while waiting:
        value = waiting.pop()
        node = value.node
        if node is not None and (node is root or (_is_sum(node) and any(value in sums for sums in inner))):
            waiting += reversed(node.inputs)
        else:
            terms.append(value)
    return terms


def _layers(slices: list[Value]) -> list[list[list[Value]]]:
    """Return slices amid zeros in layers: groups at disjoint places; the slices of a group are at the same places."""
    if len(slices) < 2:
        return []
    groups: dict[Place, list[Value]] = {}
    for value in slices:
        groups.setdefault(_place(value), []).append(value)
    shape = slices[0].shape
    varying = [
        axis
        for axis, extent in enumerate(shape)
        if any(
            range(starts[axis], stops[axis], steps[axis]) != range(extent) for starts, stops, steps in groups
        )
    ]
    layers: list[tuple[np.ndarray, list[list[Value]]]] = []  # a mask of the places in use, and groups
    for place, group in groups.items():
        index = index_of(*[tuple([part[axis] for axis in varying]) for part in place])
        free = [layer for layer in layers[-_LAYERS:] if not layer[0][index].any()]
        if not free:
            free = [(np.zeros([shape[axis] for axis in varying], bool), [])]
            layers += free
        free[0][0][index] = True
        free[0][1].append(group)
    return [layer for _, layer in layers if len(layer) > 1 or len(layer[0]) > 1]


def _place(value: Value) -> Place:
    params = _node(value).params
    return params["starts"], params["stops"], params["steps"]


class _Rewriter:
    """Adds nodes, each right behind the last node that it reads.

    There a sum joins the loop that computes its terms, and an unrolled loop stays periodic (Note [cutting by content]).
    """

    def __init__(self, graph: Graph) -> None:
        self.old = graph.nodes
        self.positions = {node: i for i, node in enumerate(graph.nodes)}
        self.numbers: dict[Node, int] = {}  # of new nodes, from 1 on
        self.added: dict[int, list[Node]] = {}  # by the position of the node that they follow
        self.removed: set[Node] = set()

    def nodes(self) -> list[Node]:
        nodes: list[Node] = [*self.added.get(-1, ())]
        for i, node in enumerate(self.old):
            if node not in self.removed:
                nodes.append(node)
            nodes += self.added.get(i, ())
        return nodes

    def position(self, value: Value) -> int:
        return -1 if value.node is None else self.positions[value.node]

    def append(self, name: str, inputs: Sequence[Value], aval: Aval, like: Node, **params: Any) -> Value:
        node = Node(OPS[name], tuple(inputs), params, like.where)
        node.makes((Value(aval, like.output.owner, node),))
        self.positions[node] = behind = max(map(self.position, inputs))
        self.numbers[node] = len(self.numbers) + 1
        self.added.setdefault(behind, []).append(node)
        return node.output

    def order(self, value: Value) -> tuple[int, int]:
        number = 0 if value.node is None else self.numbers.get(value.node, 0)
        return self.position(value), number

    def sum_of(self, values: list[Value], like: Node) -> Value:
        first, *others = sorted(values, key=self.order)
        for value in others:
            first = self.append("add", [first, value], first.aval, like)
        return first

    def rewrite(
        self, root: Node, chains: list[list[Value]], layers: list[list[list[Value]]], rest: list[Value]
    ) -> None:
        """Replace the node `root` by nodes with the same result; the first of each chain stays where it is."""
        aval = root.output.aval
        terms = list(rest)
        for layer in layers:
            parts = [self.sum_of(list(map(self.part, group)), root) for group in layer]
            places = tuple([_place(group[0]) for group in layer])
            terms.append(self.append("assemble", parts, aval, root, shape=aval.shape, places=places))
        for first, *others in chains:
            total = first
            for value in others:
                node = _node(value)
                total = self.append(_ADDING[node.op.name], [*node.inputs, total], aval, node, **node.params)
            terms.append(total)
        last = _node(self.sum_of(terms, root))
        self.removed.add(root)
        last.makes(root.outputs)
        root.output.node = last

    def part(self, value: Value) -> Value:
        """Return the value that is set amid zeros, broadcast to the size of its places."""
        node = _node(value)
        part, shape = node.inputs[1], tuple(map(len, map(range, *_place(value))))
        if part.shape == shape:
            return part
        return self.append("broadcast_to", [part], part.aval._replace(shape=shape), node, shape=shape)
