# SPDX-License-Identifier: BSD-3-Clause
"""symmetric_products: of a matrix times its own transpose one half is computed, the other one is copied.

Note [symmetric products]
The product of x and its transpose is symmetric. It is cut into four parts, one of which is another one transposed.
Those on the diagonal are symmetric again, and cut where they are large; a small one is computed with the part beside
it. So of all elements 3/4 are multiplied, 5/8 or less where there are many. Us of one core with AVX-512, before and
after:

    (100, 100)  float32  20.9  18.6    float64   42.1   34.0
    (200, 200)          144.7 116.2             288.1  222.3
"""

from typing import Any

from tracejit.ir import Builder, Graph, Node, Value

LEAST = 64  # rows of a product that is cut
_LEAST_WORK = 1 << 19  # multiplications of a product that is cut
_FINEST = 8  # parts of the diagonal, about: more would save little, and each is a launch
_UNIT = 32  # rows; a part has a multiple of these


def symmetric_products(graph: Graph) -> Graph:
    """Return a graph that computes one half of each symmetric product (Note [symmetric products])."""
    if not any(map(_is_symmetric, graph.nodes)):
        return graph
    new = Graph()
    new.inputs, new.constants = list(graph.inputs), list(graph.constants)
    b: Any = Builder(new)
    values: dict[Value, Value] = {value: value for value in (*graph.inputs, *graph.constants)}
    for node in graph.nodes:
        b.location = node.where
        operands = tuple([values[value] for value in node.inputs])
        if _is_symmetric(node):
            least = max(LEAST, node.output.shape[0] // _FINEST)
            values[node.output] = _product(b, operands[0], operands[1], least)
            continue
        avals = [value.aval for value in node.outputs]
        made = b.node(node.op, operands, node.params, avals[0] if len(avals) == 1 else tuple(avals))
        values.update(zip(node.outputs, (made,) if isinstance(made, Value) else made, strict=True))
    new.outputs = [values[value] for value in graph.outputs]
    return new


def _is_symmetric(node: Node) -> bool:
    if node.op.name != "matmul" or node.output.ndim != 2 or node.output.dtype.kind != "f":
        return False
    x, y = node.inputs
    n, k = x.shape
    return _is_large(n, k) and (is_transposed(x, y) or is_transposed(y, x))


def is_transposed(x: Value, y: Value) -> bool:
    """Return whether a matrix is another one transposed."""
    return x.node is not None and x.node.op.name == "transpose" and x.node.inputs[0] is y and x.ndim == 2


def _is_large(n: int, k: int, least: int = LEAST) -> bool:
    return n >= least and n * n * k >= _LEAST_WORK


def _product(b: Any, x: Value, y: Value, least: int) -> Value:
    """Return x (n, k) times y (k, n), which is x transposed; what has `least` rows is cut."""
    n, k = x.shape
    if not _is_large(n, k, least):
        return b.matmul(x, y)  # type: ignore[no-any-return]
    cut = max(_UNIT, n // 2 // _UNIT * _UNIT)
    lower = _rows(b, x, cut, n)
    left, right = _columns(b, y, 0, cut), _columns(b, y, cut, n)
    above = _product(b, _rows(b, x, 0, cut), left, least)
    if _is_large(n - cut, k, least):
        corner = b.matmul(lower, left)
        below = [(corner, 0), (_product(b, lower, right, least), cut)]
    else:  # by one launch
        both = b.matmul(lower, y)
        corner, below = _columns(b, both, 0, cut), [(both, 0)]
    parts = [
        (above, (0, 0)),
        (b.transpose(corner, axes=(1, 0)), (0, cut)),
        *[(part, (cut, at)) for part, at in below],
    ]
    places = tuple([
        ((row, column), (row + part.shape[0], column + part.shape[1]), (1, 1)) for part, (row, column) in parts
    ])  # fmt: skip
    return b.assemble(*[part for part, _ in parts], shape=(n, n), places=places)  # type: ignore[no-any-return]


def _rows(b: Any, x: Value, start: int, stop: int) -> Value:
    return b.slice(x, starts=(start, 0), stops=(stop, x.shape[1]), steps=(1, 1))  # type: ignore[no-any-return]


def _columns(b: Any, x: Value, start: int, stop: int) -> Value:
    return b.slice(x, starts=(0, start), stops=(x.shape[0], stop), steps=(1, 1))  # type: ignore[no-any-return]
