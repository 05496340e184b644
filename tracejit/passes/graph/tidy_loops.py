# SPDX-License-Identifier: BSD-3-Clause
"""tidy_loops: joins loops that differ in their further results only, and removes what nothing reads.

Differentiation appends a loop again, with the values that its adjoint reads as further results. It also appends an
adjoint for all operands, even for those whose cotangent nobody needs. And steps may compute a value that is the same in
each step, such as a transpose of the weights. Such a value is moved before the loop, unless it takes more memory than
its operands. If an adjoint reads it, it would still be stacked, once for each step; instead, it is handed to the
adjoint as it is.
"""

from collections.abc import Sequence
from typing import Any

from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import OPS, Kind
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.simplify import live_nodes, simplify
from tracejit.util.named_tuples import NamedTuple


def tidy_loops(graph: Graph) -> Graph:
    """Return a graph with the same inputs and outputs, in which equal loops are one, without what nobody reads."""
    if not any(node.op.kind is Kind.LOOP for node in graph.nodes):
        return graph
    graph = _hoisted(_trimmed(_joined(graph)))
    alike = _without_stacks(graph)
    return graph if alike is graph else _hoisted(_trimmed(alike))


def _joined(graph: Graph) -> Graph:
    """Return a graph in which scans of one body on the same operands, with other further results, are one."""
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        if node.op.name == "scan":
            key = (node.params["body"].origin, node.params["length"], node.params["reverse"], *node.inputs)
            groups.setdefault(key, []).append(node)
    first = {nodes[0]: nodes for nodes in groups.values() if len(nodes) > 1}
    if not first:
        return graph
    others = {node for nodes in first.values() for node in nodes[1:]}
    copier = Copier(graph)
    for node in graph.nodes:
        if node in first:
            copier.join(first[node])
        elif node not in others:
            copier.append(node, node.inputs, node.params, node.outputs)
    return copier.finished()


class Copier:
    """Copies a graph, node by node."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.b = Builder(Graph())
        self.mapping = {value: self.b.input(value.aval) for value in graph.inputs}
        self.mapping |= {value: self.b.constant(value.data) for value in graph.constants}

    def append(
        self, node: Node, inputs: Sequence[Value], params: dict[str, Any], outputs: Sequence[Value]
    ) -> None:
        """Append a node like another one, for some of its inputs and outputs."""
        self.b.location = node.where
        avals = tuple([value.aval for value in outputs])
        copied = self.b.node(node.op, tuple([self.mapping[v] for v in inputs]), params, avals)
        self.mapping.update(zip(outputs, copied, strict=True))

    def join(self, nodes: Sequence[Node]) -> None:
        """Append one scan for several that differ in their further results, if at all."""
        by_body: dict[Graph, list[Node]] = {}
        for loop in nodes:
            by_body.setdefault(loop.params["body"].graph, []).append(loop)
        nodes = [equal[0] for equal in by_body.values()]
        node = nodes[0]
        body = node.params["body"]
        common = len(body.origin.graph.outputs)
        joint = Graph()
        joint.inputs = body.graph.inputs
        # Bodies that were joined before have nodes in common, so that all but one are copied.
        graphs = [body.graph, *[_on_inputs(loop.params["body"].graph, joint.inputs) for loop in nodes[1:]]]
        joint.nodes = [inner for graph in graphs for inner in graph.nodes]
        joint.constants = [value for graph in graphs for value in graph.constants]
        joint.outputs = [*graphs[0].outputs[:common]]
        outputs = [*node.outputs[:common]]
        for graph, loop in zip(graphs, nodes, strict=True):
            joint.outputs += graph.outputs[common:]
            outputs += loop.outputs[common:]
        # The bodies compute the same. What is moved out of a loop later must not be there twice.
        joint = simplify(joint, keep_stops=True)
        params = {**node.params, "body": Body(joint, body.carries, body.slices, body.origin)}
        self.append(node, node.inputs, params, outputs)
        for loop in nodes[1:]:
            self.mapping |= {
                value: self.mapping[same]
                for value, same in zip(loop.outputs[:common], node.outputs, strict=False)
            }
        for first, *others in by_body.values():
            for loop in others:
                pairs = zip(loop.outputs, first.outputs, strict=True)
                self.mapping |= {value: self.mapping[same] for value, same in pairs}

    def finished(self) -> Graph:
        """Return the copy."""
        graph = self.b.graph
        graph.outputs = [self.mapping[value] for value in self.old.outputs]
        return graph


def _on_inputs(graph: Graph, inputs: Sequence[Value]) -> Graph:
    """Return a graph with the same nodes that reads other inputs of the same sizes."""
    copier = Copier(graph)
    copier.mapping.update(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        copier.append(node, node.inputs, node.params, node.outputs)
    return copier.finished()


class _Kept(NamedTuple):
    """The numbers of the inputs and outputs of a body that something needs, and the body with these alone."""

    inputs: list[int]
    outputs: list[int]
    body: Body


def _trimmed(graph: Graph) -> Graph:
    """Return a graph without nodes that nobody needs, whose loops compute only what something needs."""
    needed: set[Value] = set(graph.outputs)
    kept: list[tuple[Node, _Kept | None]] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        if node.op.name == "scan":
            part = _needed_part(node.params["body"], [value in needed for value in node.outputs])
            needed.update([node.inputs[i] for i in part.inputs])
            kept.append((node, part))
        else:
            needed.update(node.inputs)
            kept.append((node, None))
    copier = Copier(graph)
    for node, some in reversed(kept):
        if some is None:
            copier.append(node, node.inputs, node.params, node.outputs)
        else:
            inputs, outputs = [node.inputs[i] for i in some.inputs], [node.outputs[i] for i in some.outputs]
            copier.append(node, inputs, {**node.params, "body": some.body}, outputs)
    return copier.finished()


def _needed_part(body: Body, needed: Sequence[bool]) -> _Kept:
    """Return what of a body is needed, given which of the results of its loop are needed."""
    graph, first = body.graph, body.carries
    outputs = [i for i, is_needed in enumerate(needed) if is_needed]
    while True:
        part = Graph()
        part.outputs = [graph.outputs[i] for i in outputs]
        part.nodes = graph.nodes
        part.nodes = live_nodes(part)
        read = {value for node in part.nodes for value in node.inputs} | set(part.outputs)
        carried = [i for i in range(first) if i in outputs or graph.inputs[i] in read]
        if all(i in outputs for i in carried):
            break
        outputs = sorted({*outputs, *carried})
    inputs = [i for i, value in enumerate(graph.inputs) if value in read or i in carried]
    if len(inputs) == len(graph.inputs) and len(outputs) == len(graph.outputs):
        return _Kept(inputs, outputs, body)
    part.inputs = [graph.inputs[i] for i in inputs]
    part.constants = [value for value in graph.constants if value in read]
    slices = sum(first <= i < first + body.slices for i in inputs)
    return _Kept(inputs, outputs, Body(part, len(carried), slices))


def _hoisted(graph: Graph) -> Graph:
    """Return a graph in which loops do not compute what is the same in each step."""
    copier = Copier(graph)
    for node in graph.nodes:
        if node.op.name == "scan":
            _hoist(copier, node)
        else:
            copier.append(node, node.inputs, node.params, node.outputs)
    return copier.finished()


def _hoist(copier: Copier, node: Node) -> None:
    """Append a loop, and before it what is the same in each of its steps."""
    body = node.params["body"]
    graph, first = body.graph, body.carries + body.slices
    outside = dict(zip(graph.inputs[first:], node.inputs[first:], strict=True))
    moved: list[Node] = []
    same = {*outside}
    numbers = {*graph.constants}
    for inner in graph.nodes:
        if _is_invariant(inner, same, numbers):
            moved.append(inner)
            same.update(inner.outputs)
    read = {value for inner in graph.nodes if inner not in moved for value in inner.inputs} | {*graph.outputs}
    if not moved:
        copier.append(node, node.inputs, node.params, node.outputs)
        return
    around = copier.mapping
    copier.mapping = {**around, **{value: around[other] for value, other in outside.items()}}
    copier.mapping |= {value: copier.b.constant(value.data) for value in graph.constants}
    for inner in moved:
        copier.append(inner, inner.inputs, inner.params, inner.outputs)
    hoisted = [value for inner in moved for value in inner.outputs if value in read]
    kept = [value for value in outside if value in read]
    operands = [around[value] for value in node.inputs[:first]]
    operands += [copier.mapping[value] for value in (*kept, *hoisted)]
    part = Graph()
    part.inputs = [*graph.inputs[:first], *kept, *hoisted]
    part.nodes = [inner for inner in graph.nodes if inner not in moved]
    part.constants, part.outputs = graph.constants, graph.outputs
    copy = Copier(part)
    for inner in part.nodes:
        copy.append(inner, inner.inputs, inner.params, inner.outputs)
    copier.mapping = around
    copier.b.location = node.where
    params = {**node.params, "body": Body(copy.finished(), body.carries, body.slices)}
    avals = tuple([value.aval for value in node.outputs])
    outputs = copier.b.node(node.op, tuple(operands), params, avals)
    copier.mapping.update(zip(node.outputs, outputs, strict=True))


def _is_invariant(node: Node, same: set[Value], numbers: set[Value]) -> bool:
    """Return whether a node computes the same in each step, and takes no more memory than what it reads."""
    if not all(value in same or value in numbers for value in node.inputs) or node.op.kind is Kind.LOOP:
        return False
    read = [value.aval.size for value in node.inputs if value in same]
    return bool(read) and all(value.aval.size <= max(read) for value in node.outputs)


def _without_stacks(graph: Graph) -> Graph:
    """Return a graph whose loops stack no constants, and take none apart; the graph itself if there are none."""
    copier = Copier(graph)
    is_changed = False
    for node in graph.nodes:
        stacked, apart = ([], []) if node.op.name != "scan" else (_stacked(node), _alike(node, copier))
        is_changed = is_changed or bool(stacked or apart)
        if apart:
            _take_whole(copier, node, apart)
        else:
            copier.append(node, node.inputs, node.params, node.outputs)
        for value, operand in stacked:
            spread = {"shape": value.shape}
            copies = copier.b.node(OPS["broadcast_to"], (copier.mapping[operand],), spread, (value.aval,))
            copier.mapping[value] = copies[0]
    return copier.finished() if is_changed else graph


def _stacked(node: Node) -> list[tuple[Value, Value]]:
    """Return the results of a scan that consist of copies of an operand, each with that operand."""
    body = node.params["body"]
    first = body.carries + body.slices
    operands = dict(zip(body.graph.inputs[first:], node.inputs[first:], strict=True))
    results = zip(node.outputs[body.carries :], body.graph.outputs[body.carries :], strict=True)
    return [(value, operands[inner]) for value, inner in results if inner in operands]


def _alike(node: Node, copier: Copier) -> list[int]:
    """Return the numbers of the operands of a scan whose parts are all the same, as they are copied."""
    body = node.params["body"]
    numbers = []
    for number in range(body.carries, body.carries + body.slices):
        made = copier.mapping[node.inputs[number]].node
        if made is None or made.op.name != "broadcast_to":
            continue
        if made.inputs[0].shape == body.graph.inputs[number].shape:
            numbers.append(number)
    return numbers


def _take_whole(copier: Copier, node: Node, apart: Sequence[int]) -> None:
    """Append a scan that takes some of its operands as they are, and not in parts."""
    body = node.params["body"]
    order = [*[i for i in range(len(node.inputs)) if i not in apart], *apart]
    part = Graph()
    part.inputs = [body.graph.inputs[i] for i in order]
    part.nodes, part.constants, part.outputs = body.graph.nodes, body.graph.constants, body.graph.outputs
    copy = Copier(part)
    for inner in part.nodes:
        copy.append(inner, inner.inputs, inner.params, inner.outputs)
    own = Body(copy.finished(), body.carries, body.slices - len(apart))
    operands = [copier.mapping[node.inputs[i]] for i in order]
    for position in range(len(order) - len(apart), len(order)):
        made = operands[position].node
        assert made is not None
        operands[position] = made.inputs[0]
    copier.b.location = node.where
    avals = tuple([value.aval for value in node.outputs])
    outputs = copier.b.node(node.op, tuple(operands), {**node.params, "body": own}, avals)
    copier.mapping.update(zip(node.outputs, outputs, strict=True))
