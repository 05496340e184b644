# SPDX-License-Identifier: BSD-3-Clause
"""numpy_products: leaves large products of complex matrices, and of a matrix and its transpose, to NumPy.

Note [NumPy's products]
NumPy's loop over matrices calls OpenBLAS. Two kinds of products are left to it. A product of complex matrices can be
made of real products of their parts, but the parts are copied first; OpenBLAS takes them apart on the way into
registers. And of a matrix times its own transpose, OpenBLAS computes only one half. Small products, and products of a
real and a complex matrix, stay with our kernels, which fuse with their neighbours. Times in us on one core with
AVX-512, with our kernels and with NumPy's loop:

    complex128  (100, 100) (100, 100)  186  167    of 10 at once  2402  1690    x x'  127   98
    complex64                          103   85                   1063   842           68   54
    float64                                                                        42   33
    float32     (200, 200) (200, 200)                                             145  126
"""

from math import prod
from typing import Any

from tracejit.ir import Graph, Node, Value
from tracejit.ops import Kind
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.tidy_loops import Copier

LEAST = 1 << 11  # multiplications of a product of complex matrices
_LEAST_OF_MANY = 1 << 8  # of one that is made for several matrices at once
_MANY = 4
_LEAST_REAL = 1 << 19  # multiplications of a real matrix and its transpose
_LEAST_ROWS = {"d": 64, "f": 128}


def numpy_products(graph: Graph) -> Graph:
    """Return a graph in which some products call NumPy's loop (Note [NumPy's products])."""
    if not any(_is_numpys(node) or _bodies(node) for node in graph.nodes):
        return graph
    copier = Copier(graph)
    for node in graph.nodes:
        if _is_numpys(node):
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
            graph = numpy_products(body.graph)
            if graph is not body.graph:
                found[name] = Body(graph, body.carries, body.slices)
    return found


def _is_numpys(node: Node) -> bool:
    if node.op.name not in ("matmul", "matmul_add"):
        return False
    x, y = node.inputs[:2]
    work, rows = prod(x.shape[-2:]) * y.shape[-1], x.shape[-2]
    if x.dtype.kind == y.dtype.kind == "c":
        many = prod(node.output.shape[:-2]) >= _MANY
        return work >= (_LEAST_OF_MANY if many else LEAST)
    least = _LEAST_ROWS.get(x.dtype.char)
    if node.op.name != "matmul" or least is None or x.dtype != y.dtype:
        return False
    return rows >= least and work >= _LEAST_REAL and x.ndim == 2 and _is_gram(x, y)


def _is_gram(x: Value, y: Value) -> bool:
    return _turned(x) is y or _turned(y) is x


def _turned(x: Value) -> Value | None:
    """Return the value whose matrices are those of `x` transposed, if it is there."""
    if x.node is None or x.node.op.name != "transpose" or x.ndim < 2:
        return None
    last = x.ndim - 1
    swapped = (*range(last - 1), last, last - 1)
    return x.node.inputs[0] if x.node.params["axes"] == swapped else None


def _product(b: Any, node: Node, values: dict[Value, Value]) -> Value:
    x, y, *added = node.inputs
    turned_x, turned_y = _turned(x), _turned(y)
    result: Value
    if turned_x is y:
        result = b.gram(values[y], turned=True)
    elif turned_y is x:
        result = b.gram(values[x], turned=False)
    else:
        lead = node.output.shape[:-2]
        factors = [
            _broadcast(b, values[whole if turned is None else turned], lead)
            for whole, turned in ((x, turned_x), (y, turned_y))
        ]
        result = b.complex_product(*factors, turned_x=turned_x is not None, turned_y=turned_y is not None)
    for value in added:
        result = b.add(result, values[value])
    return result


def _broadcast(b: Any, x: Value, lead: tuple[int, ...]) -> Value:
    shape = (*lead, *x.shape[-2:])
    return x if x.shape == shape else b.broadcast_to(x, shape=shape)
