# SPDX-License-Identifier: BSD-3-Clause
"""Tangents of every op: against an independent derivative, against its adjoint, and of its adjoint."""

import dataclasses
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from op_cases import draw
from op_derivatives import (
    DIFFERENTIABLE,
    STEP,
    assert_derivative,
    ct_shape,
    derivative,
    directions,
    dot,
    graph_of,
    joined,
    moved,
    name_of,
    smooth,
    spread,
    zeros_like,
)

from tracejit.autodiff import gradient, tangents
from tracejit.errors import GradientError
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.ops import OPS, Op
from tracejit.ops.op import OnlyOnce, Sample
from tracejit.passes.graph.simplify import simplify
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable


def outputs_of(op: Op, graph: Graph) -> list[Value]:
    return smooth(graph.outputs[: len(graph.outputs) - op.saved])


def pushed(op: Op, params: Any, arrays: Sequence[np.ndarray]) -> tuple[Graph, list[int]]:
    """Return a graph of the inputs, and a direction for each that is floating-point, that gives the tangents."""
    graph = graph_of(op, params, arrays)
    b = Builder(graph)
    wrt = [i for i, value in enumerate(graph.inputs) if value.dtype.kind == "f"]
    variables = [graph.inputs[i] for i in wrt]
    outputs = outputs_of(op, graph)
    found = tangents(b, outputs, variables, [b.input(value.aval) for value in variables])
    graph.outputs = [zeros_like(b, v) if t is None else t for v, t in zip(outputs, found, strict=True)]
    verify(graph)
    for value, tangent in zip(outputs, graph.outputs, strict=True):
        assert value.aval == tangent.aval
    return graph, wrt


def pulled(op: Op, params: Any, arrays: Sequence[np.ndarray], ct: np.ndarray) -> tuple[Graph, list[int]]:
    """Return a graph that gives the cotangent of each floating-point input for a constant cotangent of the outputs."""
    graph = graph_of(op, params, arrays)
    b = Builder(graph)
    wrt = [i for i, value in enumerate(graph.inputs) if value.dtype.kind == "f"]
    outputs = outputs_of(op, graph)
    found = gradient(b, outputs, spread(b, b.constant(ct), outputs), [graph.inputs[i] for i in wrt])
    graph.outputs = [
        zeros_like(b, graph.inputs[i]) if g is None else g for i, g in zip(wrt, found, strict=True)
    ]
    return graph, wrt


def cotangent(op: Op, params: Any, arrays: Sequence[np.ndarray]) -> np.ndarray:
    shape = ct_shape(outputs_of(op, graph_of(op, params, arrays)))
    return np.random.default_rng(1).uniform(0.5, 1.5, shape)


@cache
def backward_only(op: Op) -> str:
    """Return the function that an op belongs to whose adjoint has no derivative, or ""."""
    sample = next(sample for of, sample in DIFFERENTIABLE if of is op)
    arrays = draw(op, sample, "float64")
    graph, _ = pulled(op, sample.params, arrays, cotangent(op, sample.params, arrays))
    return next((node.op.vjp.function for node in graph.nodes if isinstance(node.op.vjp, OnlyOnce)), "")


forward_ops = pytest.mark.parametrize(
    "case", [case for case in DIFFERENTIABLE if not backward_only(case[0])], ids=name_of
)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@forward_ops
def test_tangent_is_the_derivative_and_the_transpose_of_the_adjoint(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "float64")
    graph, wrt = pushed(op, sample.params, arrays)
    by = directions(arrays, wrt, 2)
    ct = cotangent(op, sample.params, arrays)
    found = evaluate(graph, [*arrays, *by.values()])
    expected, tolerance = derivative(op, sample.params, arrays, by, ct)
    assert_derivative(dot([joined(found)], [ct]), expected, tolerance)
    adjoint, _ = pulled(op, sample.params, arrays, ct)
    transposed = dot(evaluate(adjoint, arrays), list(by.values()))
    assert_derivative(dot([joined(found)], [ct]), transposed, 1e-12)


@pytest.mark.sampled
@forward_ops
def test_tangent_is_the_transpose_of_the_adjoint_at_kinks_and_ties(case: tuple[Op, Sample]) -> None:
    op, sample = case
    rng = np.random.default_rng(0)
    drawn = draw(op, sample, "float64")
    for values in ((-1.0, 0.0, 1.0), (1.0,), (0.0,)):
        arrays = [rng.choice(values, array.shape) if array.dtype.kind == "f" else array for array in drawn]
        graph, wrt = pushed(op, sample.params, arrays)
        by = directions(arrays, wrt, 2)
        ct = cotangent(op, sample.params, arrays)
        found = dot([joined(evaluate(graph, [*arrays, *by.values()]))], [ct])
        transposed = dot(evaluate(pulled(op, sample.params, arrays, ct)[0], arrays), list(by.values()))
        if np.isfinite(found) and np.isfinite(transposed):
            assert_derivative(found, transposed, 1e-12)
        else:  # outside of the domain, both must say so
            assert not np.isfinite(found) and not np.isfinite(transposed)


@pytest.mark.sampled
@forward_ops
def test_tangent_of_the_adjoint_is_the_second_derivative(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "float64")
    ct = cotangent(op, sample.params, arrays)
    graph, wrt = pulled(op, sample.params, arrays, ct)
    first = list(graph.outputs)
    by = directions(arrays, wrt, 3)
    weights = list(directions(arrays, wrt, 4).values())
    b = Builder(graph)
    found = tangents(b, first, [graph.inputs[i] for i in wrt], [b.constant(by[i]) for i in wrt])
    graph.outputs = [zeros_like(b, v) if t is None else t for v, t in zip(first, found, strict=True)]
    verify(graph)
    second = dot(evaluate(graph, arrays), weights)
    graph.outputs = first

    def value(step: float) -> Any:
        return dot(evaluate(graph, moved(arrays, by, step)), weights)

    assert_derivative(second, (value(STEP) - value(-STEP)) / (2 * STEP), 2e-7)


@pytest.mark.sampled(by=lambda case: case["dtype"])
@forward_ops
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_emitted_tangent_is_the_tangent(case: tuple[Op, Sample], dtype: str) -> None:
    op, sample = case
    arrays = draw(op, sample, dtype)
    graph, wrt = pushed(op, sample.params, arrays)
    given = [*arrays, *[v.astype(dtype) for v in directions(arrays, wrt, 2).values()]]
    eps = np.finfo(dtype).eps
    for have, want in zip(PythonExecutable(build(graph))(given), evaluate(graph, given), strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(
            have, want, rtol=64 * eps, atol=16 * eps * max(1.0, np.abs(want).max(initial=0))
        )


def test_ops_whose_adjoints_have_no_derivatives_say_so() -> None:
    named = set()
    for op, sample in DIFFERENTIABLE:
        function = backward_only(op)
        if function:
            named.add(function)
            with pytest.raises(
                GradientError, match=rf"^{function}: there are no derivatives in forward mode"
            ):
                pushed(op, sample.params, draw(op, sample, "float64"))
    assert {"gru", "lstm", "rnn"} <= named


def test_an_adjoint_that_is_no_operation_of_the_cotangent_is_not_taken_for_zero() -> None:
    backward = dataclasses.replace(OPS["sin"], name="backward", vjp=None)
    op = dataclasses.replace(
        OPS["cumsum"], name="custom", vjp=lambda b, node, ct: (b.apply(backward, (ct,), {}),), linear=()
    )
    with pytest.raises(GradientError, match=r"^custom: there are no derivatives in forward mode"):
        pushed(op, op.samples[0].params, [np.ones(op.samples[0].shapes[0])])


# What one writes by hand, with the op itself where its result is read; views are left out.
BY_HAND = {
    "sin": "cos mul",
    "tanh": "tanh square sub mul",
    "exp": "exp mul",
    "mul": "mul mul add",
    "add": "add",
    "relu": "relu less_equal where",
    "sum": "sum",
    "concatenate": "concatenate",
    "setslice": "setslice",
    "matmul": "matmul matmul add",
    "convolution": "convolution convolution add",
    "take": "take",
    "scatter_add": "scatter_add",
    "put": "put",
    "cumsum": "cumsum",
    "maxpool": "maxpool maxpool_pick",
    "avgpool": "avgpool",
    "embed": "embed",
    "solve_triangular": "solve_triangular mul matmul neg add solve_triangular",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_tangents_are_the_ops_that_one_writes_by_hand(name: str) -> None:
    op = OPS[name]
    sample = op.samples[0]
    graph, _ = pushed(op, sample.params, draw(op, sample, "float64"))
    names = [node.op.name for node in simplify(graph).nodes if node.op.name not in ("transpose", "reshape")]
    assert sorted(names) == sorted(BY_HAND[name].split())
