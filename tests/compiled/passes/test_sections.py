# SPDX-License-Identifier: BSD-3-Clause
"""Sections on several threads."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from pools import check_same_bits

from tracejit import pipeline
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, evaluate

F32 = np.dtype(np.float32)


Steps = Callable[..., Sequence[Value]]


def graph_of(steps: Steps, *shapes: tuple[int, ...]) -> Graph:
    b = Builder(Graph())
    b.graph.outputs = list(steps(b, *[b.input(Aval(shape, None, F32)) for shape in shapes]))
    return b.graph


def gradients(b: Builder, x: Value, *weights: Value) -> list[Value]:
    """Return a step of gradient descent on layers, with a hand-written adjoint."""
    rows = [x]
    for w in weights:
        rows.append(b.tanh(b.matmul(rows[-1], w)))
    ct, gradients = rows[-1], []
    for h, below, w in zip(reversed(rows[1:]), reversed(rows[:-1]), reversed(weights), strict=True):
        ct = b.mul(ct, b.sub(1.0, b.mul(h, h)))
        gradients.append(b.matmul(b.transpose(below, axes=(1, 0)), ct))
        ct = b.matmul(ct, b.transpose(w, axes=(1, 0)))
    return gradients


def test_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(gradients, (128, 128), *(((128, 128),) * 6))
    program = pipeline.build(graph)
    assert sum(row.length > 1 and row.part == 0 for row in program.rows) > 6
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(v.shape).astype(F32) / 8 for v in graph.inputs]
    results = check_same_bits(program, arrays, 40, monkeypatch)
    for got, want in zip(results, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
