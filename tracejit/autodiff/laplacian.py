# SPDX-License-Identifier: BSD-3-Clause
"""The Laplacian in one forward pass: values, their derivatives along directions, and the sum of second derivatives.

Note [forward Laplacian]
With y = f(x), the second derivative of y along a direction is f'(x) applied to that of x, plus the second derivative of
f along the tangent of x. The first part is linear, so the sum over directions can be taken before it is applied. Beside
the value, each step therefore carries one tangent for each direction, and a single sum of second derivatives. (R. Li,
H. Ye, D. Jiang et al., "A computational framework for neural network-based variational Monte Carlo with forward
Laplacian", Nature Machine Intelligence 6, 2024.) The second part is the tangent of the ops that compute the tangent.
"""

from collections.abc import Sequence

from tracejit.autodiff.forward import is_smooth, of_node, path, propagate
from tracejit.batching import batch
from tracejit.ir import Builder, Graph, Node, Value


def laplacian(b: Builder, output: Value, wrt: Value, directions: Value, function: str) -> Value | None:
    """Append the sum, over directions, of the second derivatives of a value.

    Args:
        b: builder of the graph that holds the values.
        output: the value to differentiate.
        wrt: the value to differentiate by.
        directions: along an axis in front of those of `wrt`.
        function: the public function, in whose name errors are raised.

    Returns:
        The sum, of the shape and dtype of `output`, or None where it is zero because `output` is linear in `wrt`.
    """
    firsts: dict[Value, Value] = {wrt: directions}
    seconds: dict[Value, Value] = {}
    nodes = path(b.graph.nodes, [wrt], [output])
    needed = {value for node in nodes for value in node.inputs} | {output}
    location = b.location
    for node in nodes:
        b.location = node.where
        wanted = [value in needed and is_smooth(value) and value is not wrt for value in node.outputs]
        linear = of_node(b, node, seconds, wanted)
        own = _own_part(b, node, firsts, wanted, function)
        for value, first, second in zip(node.outputs, linear, own, strict=True):
            if first is None and second is None:
                continue
            seconds[value] = second if first is None else first if second is None else b.add(first, second)  # type: ignore[assignment]
    b.location = location
    return seconds.get(output)


def _own_part(
    b: Builder, node: Node, firsts: dict[Value, Value], wanted: Sequence[bool], function: str
) -> list[Value | None]:
    """Append the tangents of a node's outputs, and return the sums of second derivatives of its op along them."""
    apart = Builder(Graph())
    apart.location = node.where
    along = {value: apart.input(value.aval) for value in dict.fromkeys(node.inputs) if value in firsts}
    tangents = of_node(apart, node, along, wanted)
    moved = dict(along)
    moved.update({value: t for value, t in zip(node.outputs, tangents, strict=True) if t is not None})
    results = [value for value in tangents if value is not None]
    of_tangents = dict(moved)
    propagate(apart, path(apart.graph.nodes, list(moved), results), results, of_tangents)
    seconds = [None if value is None else of_tangents.get(value) for value in tangents]
    first_of = {along[value]: firsts[value] for value in along}
    count = next(iter(first_of.values())).shape[0]
    both = [*results, *[value for value in seconds if value is not None]]
    result_of = dict(zip(both, batch(b, apart.graph.nodes, both, first_of, count, function, {}), strict=True))
    for value, tangent in zip(node.outputs, tangents, strict=True):
        own = None if tangent is None else result_of[tangent]
        if own is not None:
            firsts[value] = own
    parts = [None if value is None else result_of[value] for value in seconds]
    return [None if part is None else b.sum(part, axes=(0,), keepdims=False) for part in parts]
