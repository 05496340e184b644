# SPDX-License-Identifier: BSD-3-Clause
"""split: a joint graph becomes a forward and an adjoint graph, and the values saved between them.

Liveness decides what is saved: every value that the outputs need and the adjoint reads. Values that only the adjoint
needs are computed there (cos(x) for the derivative of sin), and views of saved values are not saved.
"""

from collections.abc import Sequence

from tracejit import autodiff
from tracejit.aval import is_inexact
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops.op import Strided
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.tidy_loops import tidy_loops
from tracejit.util.named_tuples import NamedTuple


class Split(NamedTuple):
    """forward: inputs -> outputs and further values; adjoint: inputs, saved values, cotangents -> cotangents.

    `saved` has the numbers of the forward graph's outputs that are the saved values.

    `by_output[i]` is whether output i has a cotangent; `by_input[i]` is the number of the adjoint's output that is the
    cotangent of input i, None if it has none.
    """

    forward: Graph
    adjoint: Graph
    saved: list[int]
    by_output: list[bool]
    by_input: list[int | None]


def split(graph: Graph, save: bool = True, given: Sequence[bool] | None = None) -> Split:
    """Return the forward and adjoint graph of `graph`.

    Args:
        graph: the graph.
        save: whether values are saved; otherwise the adjoint computes all of them again.
        given: the outputs that have a cotangent; by default those of floating point.
    """
    joint = simplify(graph, keep_stops=True)
    inputs, outputs = list(joint.inputs), list(joint.outputs)
    b = Builder(joint)
    by_output = [is_inexact(v.dtype) for v in outputs] if given is None else [*given]
    roots = [v for v, has in zip(outputs, by_output, strict=True) if has]
    cotangents = [b.input(v.aval) for v in roots]
    variables = [v for v in inputs if is_inexact(v.dtype)]
    gradients = autodiff.gradient(b, roots, cotangents, variables)
    by_value = {v: ct for v, ct in zip(variables, gradients, strict=True) if ct is not None}
    by_input: list[int | None] = []
    results: list[Value] = []
    for value in inputs:
        if value in by_value:
            by_input.append(len(results))
            results.append(by_value[value])
        else:
            by_input.append(None)
    joint.outputs = outputs + results
    joint = simplify(tidy_loops(joint), keep_stops=True)
    return _cut(joint, len(inputs), len(outputs), by_output, by_input, save)


def _cut(
    joint: Graph, input_count: int, output_count: int, by_output: list[bool],
    by_input: list[int | None], save: bool,
) -> Split:  # fmt: skip
    inputs, cotangents = joint.inputs[:input_count], joint.inputs[input_count:]
    outputs, results = joint.outputs[:output_count], joint.outputs[output_count:]
    of_forward: set[Value] = set(outputs)
    for node in reversed(joint.nodes):
        if any(v in of_forward for v in node.outputs):
            of_forward.update(node.inputs)
    given = set(inputs) | set(joint.constants)
    needed: set[Value] = {v for v in results if v not in given}
    saved: dict[Value, None] = {}
    adjoint_nodes: list[Node] = []
    for node in reversed(joint.nodes):
        if not any(v in needed for v in node.outputs):
            continue
        if save and any(v in of_forward for v in node.outputs) and not isinstance(node.op.emit, Strided):
            saved.update(dict.fromkeys(v for v in node.outputs if v in needed))
            continue
        adjoint_nodes.append(node)
        needed.update(v for v in node.inputs if v not in given)
    adjoint_nodes.reverse()
    all_outputs = [*outputs, *(v for v in saved if v not in outputs)]
    forward = _graph(joint, inputs, joint.nodes, all_outputs)
    adjoint = _graph(joint, [*inputs, *saved, *cotangents], adjoint_nodes, results)
    return Split(forward, adjoint, [all_outputs.index(v) for v in saved], by_output, by_input)


def _graph(joint: Graph, inputs: list[Value], nodes: list[Node], outputs: list[Value]) -> Graph:
    """Return a graph of some nodes of the joint graph, with new values: both graphs share those of the joint one."""
    part = Graph()
    b = Builder(part)
    mapping = {v: b.input(v.aval) for v in inputs}
    mapping.update((v, b.constant(v.data)) for v in joint.constants)
    for node in nodes:
        if all(v in mapping for v in node.inputs):
            b.location = node.where
            results = b.append(
                node.op, [mapping[v] for v in node.inputs], node.params,
                node.outputs[0].aval if len(node.outputs) == 1 else tuple(v.aval for v in node.outputs),
            )  # fmt: skip
            results = results if isinstance(results, tuple) else (results,)
            mapping.update(zip(node.outputs, results, strict=True))
    part.outputs = [mapping[v] for v in outputs]
    return simplify(part, keep_stops=True)  # a part may be differentiated again
