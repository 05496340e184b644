# SPDX-License-Identifier: BSD-3-Clause
"""Products of few rows in the steps of a loop become one product of all steps, with the results of the loop."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.ir import verify
from tracejit.passes.graph.stacked_products import stacked_products
from tracejit.passes.graph.tidy_loops import tidy_loops

RNG = np.random.default_rng(0)


def step(p: Any, c: Any, x: Any) -> tuple[Any, Any]:
    c = tj.tanh(x @ p["in"] + c @ p["again"] + p["bias"])
    return c, c.sum()


def loss(p: Any, xs: Any, kept: bool, reverse: bool) -> Any:
    c = tj.zeros((xs.shape[1], 3), dtype="float64")
    if kept:
        last, sums = tj.dlscan(lambda c, x: step(p, c, x), c, xs, reverse=reverse)
        return last.sum() + (sums**2).sum()
    total = 0.0
    for i in range(len(xs))[:: -1 if reverse else 1]:
        c, one = step(p, c, xs[i])
        total = total + one**2
    return c.sum() + total


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rows", [1, 8, 9])
def test_results_and_what_is_left_in_the_steps(rows: int, reverse: bool) -> None:
    """Sums of products and products of parts with weights leave the steps, unless there are more than eight rows."""
    p = {
        "in": tj.dlarray(RNG.standard_normal((4, 3))),
        "again": tj.dlarray(RNG.standard_normal((3, 3))),
        "bias": tj.dlarray(RNG.standard_normal(3)),
    }
    xs = tj.dlarray(RNG.standard_normal((5, rows, 4)))

    def fun(p: Any, xs: Any, kept: bool = True) -> Any:
        value = loss(p, xs, kept, reverse)
        return value, tj.dlgradient(value, (p, xs))

    accelerated = tj.dlaccelerate(fun)
    expected = tj.tree.flatten(tj.dlfeval(lambda p, xs: fun(p, xs, False), p, xs))[0]
    for _ in range(3):
        for one, other in zip(tj.tree.flatten(accelerated(p, xs))[0], expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-11, atol=1e-12)
    ((trace,),) = [variants.traces for variants in accelerated.variants()]
    graph = stacked_products(tidy_loops(trace.graph))
    verify(graph)
    bodies = [node.params["body"] for node in graph.nodes if node.op.name == "scan"]
    assert len(bodies) == 2
    names, of_parts = [], False
    for body in bodies:
        parts = body.graph.inputs[body.carries : body.carries + body.slices]
        weights = body.graph.inputs[body.carries + body.slices :]
        for node in body.graph.nodes:
            names.append(node.op.name)
            if node.op.name == "matmul":
                of_parts |= node.inputs[0] in parts and node.inputs[1] in weights
    assert names.count("tanh") == 1  # of the loop and of that with what the adjoint reads, which are one
    assert "matmul" in names
    assert ("matmul_add" in names, of_parts) == (rows > 8, rows > 8)


def test_a_sum_that_a_step_reads_stays() -> None:
    """What is carried is no mere sum there: the next step uses it."""

    def fun(w: Any, xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            return total + x.T @ x, (total * 2).sum()

        last, ys = tj.dlscan(step, w, xs)
        return last, ys

    w, xs = tj.dlarray(RNG.standard_normal((3, 3))), tj.dlarray(RNG.standard_normal((5, 1, 3)))
    accelerated = tj.dlaccelerate(fun)
    for _ in range(3):
        for one, other in zip(accelerated(w, xs), tj.dlfeval(fun, w, xs), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)
