# SPDX-License-Identifier: BSD-3-Clause
"""Splitting a joint graph: the parts agree with it, and save no more values than needed."""

import random

import numpy as np
import pytest
from effort import sweep
from graphs import FLOATS, INTEGERS, Maker, random_case
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tracejit import autodiff
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.split import split


def run(graph, arrays, cotangents, save=True):
    """Return outputs and cotangents by the two parts, which are verified, and the parts."""
    parts = split(graph, save)
    verify(parts.forward)
    verify(parts.adjoint)
    results = evaluate(parts.forward, arrays)
    count = len(parts.by_output)
    assert count == len(graph.outputs)
    assert set(range(count, len(results))) <= set(parts.saved)  # every further output is a saved value
    assert len(set(parts.saved)) == len(parts.saved)
    given = [ct for ct, has in zip(cotangents, parts.by_output, strict=True) if has]
    cotangents_of_inputs = evaluate(parts.adjoint, [*arrays, *(results[i] for i in parts.saved), *given])
    return results[:count], [None if i is None else cotangents_of_inputs[i] for i in parts.by_input], parts


def joint(graph, arrays, cotangents):
    """Return outputs and cotangents by one graph."""
    outputs = evaluate(graph, arrays)
    both = simplify(graph)
    b = Builder(both)
    pairs = [
        (v, b.constant(ct)) for v, ct in zip(both.outputs, cotangents, strict=True) if v.dtype.kind == "f"
    ]
    wrt = [v if v.dtype.kind == "f" else None for v in both.inputs]
    gradients = iter(
        autodiff.gradient(b, *([*zip(*pairs, strict=True)] or ([], [])), [v for v in wrt if v is not None])
    )
    values = [None if v is None else next(gradients) for v in wrt]
    both.outputs = [v for v in values if v is not None]
    results = iter(evaluate(both, arrays))
    return outputs, [None if v is None else next(results) for v in values]


@settings(max_examples=sweep(15, 150, sample=5))
@given(st.integers(0, 10**9), st.sampled_from([("float64",), (*FLOATS, *INTEGERS)]), st.booleans())
def test_the_parts_agree_with_the_joint_graph(seed, dtypes, save):
    rnd = random.Random(seed)
    maker: Maker | None = random_case(rnd, 12, dtypes)
    assume(maker is not None)
    graph, arrays = maker.graph, maker.arrays
    cotangents = [maker.numbers(v.shape, v.dtype) for v in graph.outputs]
    expected, expected_cts = joint(graph, arrays, cotangents)
    outputs, cts, parts = run(graph, arrays, cotangents, save)
    assert save or not parts.saved
    for have, want in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(have, want)
    for have, want, array in zip(cts, expected_cts, arrays, strict=True):
        assert (have is None) == (want is None)
        if have is not None:
            assert have.shape == array.shape and have.dtype == array.dtype
            np.testing.assert_allclose(have, want, rtol=1e-4 if "float32" in dtypes else 1e-11, atol=1e-6)


def graph_of(make, *avals):
    graph = Graph()
    b = Builder(graph)
    result = make(b, *[b.input(Aval(shape, None, np.dtype(dtype))) for shape, dtype in avals])
    graph.outputs = list(result) if isinstance(result, tuple) else [result]
    return graph


F = ((2, 3), "float64")


def ops(graph):
    return sorted(node.op.name for node in graph.nodes)


@pytest.mark.parametrize(
    ("make", "saved", "forward", "adjoint"),
    [
        # the adjoint needs the output itself, which is no second output
        (lambda b, x: b.exp(x), [0], ["exp"], ["mul"]),
        # only the adjoint needs it, and only the input is needed for it
        (lambda b, x: b.sin(x), [], ["sin"], ["cos", "mul"]),
        (lambda b, x: b.mul(x, 3.0), [], ["mul"], ["mul"]),
        (lambda b, x: b.mul(b.sin(x), 3.0), [], ["mul", "sin"], ["cos", "mul", "mul"]),
        # a view of the input is not saved
        (lambda b, x: b.square(b.transpose(x, axes=(1, 0))), [], None, None),
        # a mask that the output also needs
        (lambda b, x: b.where(b.greater(x, 0.0), x, 0.0), [1], ["greater", "where"], ["where"]),
        # no gradient flows through a comparison
        (lambda b, x: b.greater(x, 0.0), [], ["greater"], []),
        (lambda b, x: x, [], [], []),
    ],
)
def test_saved_values(make, saved, forward, adjoint):
    parts = split(graph_of(make, F))
    assert parts.saved == saved
    assert forward is None or ops(parts.forward) == forward
    assert adjoint is None or ops(parts.adjoint) == adjoint
    for again in (False, True):
        array = np.arange(6.0).reshape(2, 3) - 2
        graph = graph_of(make, F)
        run(graph, [array], [np.ones(v.shape, v.dtype) for v in graph.outputs], again)


def test_a_view_of_a_saved_value_is_not_saved():
    parts = split(graph_of(lambda b, x: b.square(b.transpose(b.exp(x), axes=(1, 0))), F))
    assert [v.shape for v in parts.forward.outputs] == [(3, 2), (2, 3)]
    assert parts.saved == [1] and "transpose" in ops(parts.adjoint)


def test_inputs_and_outputs_without_cotangents():
    def make(b, x, n, unused):
        return b.add(n, 1), b.mul(x, b.cast(n, dtype=np.dtype("float64"))), b.greater(x, 0.0)

    graph = graph_of(make, F, ((2, 3), "int64"), ((), "float64"))
    parts = split(graph)
    assert parts.by_output == [False, True, False] and parts.by_input == [0, None, None]
    assert [v.shape for v in parts.adjoint.outputs] == [(2, 3)]


def test_repeated_outputs_and_inputs_as_outputs():
    def make(b, x):
        y = b.square(x)
        return y, y, x

    array = np.arange(6.0).reshape(2, 3)
    outputs, [ct], _ = run(graph_of(make, F), [array], [np.full((2, 3), n) for n in (1.0, 10.0, 100.0)])
    np.testing.assert_array_equal(ct, 2 * array * 11 + 100)
    np.testing.assert_array_equal(outputs[2], array)


@pytest.mark.parametrize("save", [True, False])
def test_stop_gradient_stops_gradients_of_both_parts(save):
    array = np.arange(6.0).reshape(2, 3)
    graph = graph_of(lambda b, x: b.mul(x, b.stop_gradient(b.square(x))), F)
    _, [ct], parts = run(graph, [array], [np.ones((2, 3))], save)
    np.testing.assert_array_equal(ct, array**2)
    assert "stop_gradient" in ops(parts.forward) and (save or "stop_gradient" in ops(parts.adjoint))


def test_split_does_not_change_its_argument():
    graph = graph_of(lambda b, x: b.sum(b.tanh(b.mul(x, x)), axes=(0,), keepdims=False), F)
    before = str(graph)
    split(graph)
    assert str(graph) == before
    verify(graph)
