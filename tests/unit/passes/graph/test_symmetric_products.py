# SPDX-License-Identifier: BSD-3-Clause
"""Of a matrix times its own transpose one half is computed."""

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.passes.graph.symmetric_products import LEAST, symmetric_products


def graph_of(shape: tuple[int, int], first: bool, dtype: str = "float64") -> Graph:
    """Return the graph of x times its transpose, or of its transpose times x."""
    graph = Graph()
    b = Builder(graph)
    x = b.input(Aval(shape, None, np.dtype(dtype)))
    turned = b.transpose(x, axes=(1, 0))
    graph.outputs = [b.matmul(turned, x) if first else b.matmul(x, turned)]
    return graph


def multiplications(graph: Graph) -> int:
    return sum(
        node.output.aval.size * node.inputs[0].shape[-1] for node in graph.nodes if node.op.name == "matmul"
    )


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("n", [100, 127, 200, 300])
def test_fewer_multiplications(n: int, first: bool) -> None:
    graph = graph_of((n, 130) if not first else (130, n), first)
    changed = symmetric_products(graph)
    verify(changed)
    # Sums of whole numbers are exact in any order: BLAS adds in another one for each number of threads.
    x = np.random.default_rng(0).integers(-9, 10, graph.inputs[0].shape).astype(np.float64)
    (found,), (want,) = evaluate(changed, [x]), evaluate(graph, [x])
    np.testing.assert_array_equal(found, want)
    share = multiplications(changed) / multiplications(graph)
    assert share < (0.8 if n < 200 else 0.66)


def test_small_ones_integers_and_other_factors_are_left() -> None:
    for graph in (
        graph_of((LEAST - 1, 500), False),
        graph_of((100, 3), False),
        graph_of((200, 200), False, "int64"),
    ):
        assert symmetric_products(graph) is graph
    graph = Graph()
    b = Builder(graph)
    x, y = [b.input(Aval((200, 200), None, np.dtype(np.float64))) for _ in range(2)]
    graph.outputs = [b.matmul(x, b.transpose(y, axes=(1, 0))), b.matmul(x, x)]
    assert symmetric_products(graph) is graph
