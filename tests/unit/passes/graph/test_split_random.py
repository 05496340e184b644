# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs, split: the parts agree with the joint graph."""

import random

import numpy as np
from graphs import Maker, assert_same, max_of, random_case
from hypothesis import assume, given
from hypothesis import strategies as st
from small_graphs import fuzz, graph_of, seeds

from tracejit.autodiff import gradient
from tracejit.ir import Builder, evaluate, verify
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.split import split


@fuzz
@given(seeds, st.booleans())
def test_a_split_graph_gives_the_same_values_and_cotangents(seed: int, save: bool) -> None:
    rnd = random.Random(seed)
    maker = random_case(rnd, 15, ("float64",), stops=True)
    assume(maker is not None)
    assert maker is not None
    check_split(maker, save)


def check_split(maker: Maker, save: bool) -> None:
    graph, arrays = maker.graph, maker.arrays
    parts = split(graph, save)
    verify(parts.forward)
    verify(parts.adjoint)
    outputs = list(graph.outputs)
    forward_values = evaluate(parts.forward, arrays)
    assert_same(maker, forward_values[: len(outputs)], evaluate(graph, arrays))
    assert set(range(len(outputs), len(forward_values))) <= set(parts.saved)
    assert save or not parts.saved
    floats = [v for v in outputs if v.dtype.kind == "f"]
    assert parts.by_output == [v in floats for v in outputs]
    cts = [np.linspace(0.5, 1.5, v.aval.size).reshape(v.shape) for v in floats]
    results = evaluate(parts.adjoint, [*arrays, *(forward_values[i] for i in parts.saved), *cts])
    # The same by the adjoint of the whole graph; an output that occurs twice has two cotangents.
    b = Builder(graph)
    expected = gradient(b, floats, [b.constant(ct) for ct in cts], graph.inputs)
    values = [value for value in expected if value is not None]
    assert [at is None for at in parts.by_input] == [value is None for value in expected]
    graph.outputs = values
    eps = 1e-5 if any(v.dtype == np.float32 for node in graph.nodes for v in node.outputs) else 1e-11
    scale = eps * max_of(graph, arrays)
    for have, want in zip(results, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=0, atol=scale, err_msg=str(graph))


def test_a_split_keeps_stop_gradient() -> None:
    graph = graph_of(lambda b, x: b.mul(x, b.stop_gradient(b.exp(x))), np.ones(3))
    parts = split(graph)
    (result,) = evaluate(parts.adjoint, [np.ones(3), *evaluate(parts.forward, [np.ones(3)])[1:], np.ones(3)])
    np.testing.assert_allclose(result, np.e)
    # The parts keep it, because they may be differentiated again; programs do not.
    names = [node.op.name for part in (parts.forward, parts.adjoint) for node in simplify(part).nodes]
    assert "stop_gradient" not in names
