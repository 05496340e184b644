# SPDX-License-Identifier: BSD-3-Clause
"""Compiled products that write to their place in a concatenation."""

from collections.abc import Sequence

import numpy as np
import pytest
from launched import F32, Make, agrees, graph_of, graph_of_gated_unit
from pools import check_same_bits

from tracejit import pipeline
from tracejit.ir import Builder, Value, evaluate
from tracejit.passes.loops import pieces
from tracejit.runtime.cpu import CpuExecutable


def beside(b: Builder, x: Value, *weights: Value) -> Value:
    return b.concatenate(*[b.matmul(x, w) for w in weights], axis=x.ndim - 1)


def below(b: Builder, x: Value, *weights: Value) -> Value:
    return b.concatenate(*[b.matmul(x, w) for w in weights], axis=0)


def by_columns(b: Builder, x: Value, *weights: Value) -> Value:
    return beside(b, b.transpose(x, axes=(1, 0)), *weights)


def stacked_rows(b: Builder, x: Value, *weights: Value) -> Value:
    """Products of one row each, whose batch gives the rows."""
    rows = [b.reshape(b.matmul(x, w), shape=(x.shape[0], 1, 1, w.shape[1])) for w in weights]
    return b.concatenate(*rows, axis=2)


@pytest.mark.parametrize(
    ("make", "shapes", "kernels"),
    [
        (beside, ((32, 16), (16, 64), (16, 40)), ["product", "product"]),
        (beside, ((128, 128), (128, 256), (128, 256)), ["panels", "panels"]),
        (beside, ((4, 32, 16), (16, 64), (16, 64)), ["product", "product"]),
        (beside, ((4, 32, 16), (4, 16, 64), (4, 16, 64)), ["product", "product"]),
        (by_columns, ((64, 200), (64, 7), (64, 8)), ["columns", "columns"]),
        (below, ((32, 16), (16, 64), (16, 64)), ["product", "product"]),
        (below, ((4, 32, 16), (4, 16, 64), (4, 16, 64)), ["product", "product"]),
        (stacked_rows, ((24, 1, 16), (16, 64), (16, 64)), ["product", "product"]),
    ],
)  # fmt: skip
def test_products_write_where_their_results_belong(
    make: Make, shapes: Sequence[tuple[int, ...]], kernels: list[str]
) -> None:
    graph = graph_of(make, *shapes)
    assert agrees(graph) == kernels
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, v.shape).astype(F32) for v in graph.inputs]
    (result,), (want,) = CpuExecutable(pipeline.build(graph))(arrays), evaluate(graph, arrays)
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)


def test_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of_gated_unit(20, 64)
    program = pipeline.build(graph)
    assert sum(row.length > 1 and row.part == 0 for row in program.rows) > 6
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(v.shape).astype(F32) / 8 for v in graph.inputs]
    results = check_same_bits(program, arrays, 40, monkeypatch)
    for got, want in zip(results, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-6)


def test_a_kernel_has_a_limited_number_of_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracejit.kernels.intrinsics import pointers

    assert pieces.MOST_WRITES == pointers._WRITE_SCOPES
    graph = graph_of(lambda b, x: b.concatenate(*[b.tanh(x)] * 5, axis=0), (4, 4))
    for most, copies in ((5, 0), (4, 5)):
        monkeypatch.setattr(pieces, "MOST_WRITES", most)
        assert agrees(graph).count("copy") == copies
