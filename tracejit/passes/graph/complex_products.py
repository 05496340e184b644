# SPDX-License-Identifier: BSD-3-Clause
"""complex_products: large products of complex matrices are left to NumPy's own loop.

Note [products of pairs]
A product of complex matrices can be made of real products of their parts, but the parts are copied first, and what is
multiplied has twice as many rows and columns as the matrices. NumPy's loop calls OpenBLAS, which takes complex numbers
apart on the way into registers, and computes one half of a matrix times its own transpose. The loop reads and writes
pairs: arrays of real numbers whose last axis has both parts. A small product, and one of a real and a complex matrix,
stays with its parts, which fuse with what is around. Us of one core with AVX-512, real products and NumPy's loop:

    complex128  (100, 100) (100, 100)  186  171    of 10 at once  2402  1755    x x'  127  101
    complex64                          103   85                   1063   862           68   54
"""

from math import prod
from typing import Any

from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.symmetric_products import is_transposed
from tracejit.passes.graph.tidy_loops import Copier

LEAST = 1 << 11  # multiplications of one product


def complex_products(graph: Graph) -> Graph:
    """Return a graph in which large complex products are those of pairs (Note [products of pairs])."""
    if not any(_is_large(node) or _bodies(node) for node in graph.nodes):
        return graph
    copier = Copier(graph)
    for node in graph.nodes:
        if _is_large(node):
            copier.b.location = node.where
            copier.mapping[node.output] = _product(copier.b, node, copier.mapping)
        else:
            copier.append(node, node.inputs, {**node.params, **_bodies(node)}, node.outputs)
    return copier.finished()


def _bodies(node: Node) -> dict[str, Body]:
    """Return the bodies of a loop that have such products, with them replaced."""
    if node.op.kind is not Kind.LOOP:
        return {}
    found = {}
    for name, body in node.params.items():
        if isinstance(body, Body):
            graph = complex_products(body.graph)
            if graph is not body.graph:
                found[name] = Body(graph, body.carries, body.slices)
    return found


def _is_large(node: Node) -> bool:
    if node.op.name not in ("matmul", "matmul_add"):
        return False
    x, y = node.inputs[:2]
    return x.dtype.kind == y.dtype.kind == "c" and prod(x.shape[-2:]) * y.shape[-1] >= LEAST


def _product(b: Any, node: Node, values: dict[Value, Value]) -> Value:
    x, y, *added = node.inputs
    if is_transposed(x, y) or is_transposed(y, x):
        product = b.gram_of_pairs(_pairs(b, x, values))
    else:
        lead = node.output.shape[:-2]
        product = b.matmul_of_pairs(*[_broadcast(b, _pairs(b, value, values), lead) for value in (x, y)])
    last = product.ndim - 1
    parts = []
    for number in (0, 1):
        starts, stops = (*(0,) * last, number), (*product.shape[:-1], number + 1)
        part = b.slice(product, starts=starts, stops=stops, steps=(1,) * product.ndim)
        parts.append(b.reshape(part, shape=product.shape[:-1]))
    result: Value = b.complex_of(*parts)
    for value in added:
        result = b.add(result, values[value])
    return result


def _pairs(b: Any, x: Value, values: dict[Value, Value]) -> Value:
    """Return the pairs of a matrix; those of a transposed one are moved as pairs."""
    if x.node is not None and x.node.op.name == "transpose":
        axes = x.node.params["axes"]
        return b.transpose(_pairs(b, x.node.inputs[0], values), axes=(*axes, len(axes)))  # type: ignore[no-any-return]
    return b.pairs(values[x])  # type: ignore[no-any-return]


def _broadcast(b: Any, pairs: Value, lead: tuple[int, ...]) -> Value:
    shape = (*lead, *pairs.shape[-3:])
    return pairs if pairs.shape == shape else b.broadcast_to(pairs, shape=shape)
