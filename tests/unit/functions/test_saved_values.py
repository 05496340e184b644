# SPDX-License-Identifier: BSD-3-Clause
"""A function and its gradient in two recordings, of which the second reads what the first one saves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.functions.saved_values import gradients_from_saved, with_saved
from tracejit.passes.graph.simplify import simplify

RNG = np.random.default_rng(0)
X, W, CT = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2))


def layer(x: Any, w: Any, t: Any) -> tuple[Any, ...]:
    return tj.tanh(x @ w) * t, x.sum()


def branching(x: Any, w: Any, t: Any) -> tuple[Any, ...]:
    return layer(x, w, t) if x.sum() < 100 else (x, t)


def both(compute: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the accelerated function and its accelerated gradient by x and w."""

    @tj.dlaccelerate
    def forward(x: Any, w: Any, t: Any) -> Any:
        return with_saved(lambda: compute(x, w, t), (x, w))

    @tj.dlaccelerate
    def backward(x: Any, w: Any, t: Any, cts: Any, saved: Any) -> Any:
        return gradients_from_saved(lambda: compute(x, w, t), (x, w), cts, saved)

    return forward, backward


def expected(x: np.ndarray, w: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of sum(CT * y[0]) + 2 * y[1], by hand."""
    inner = CT * t * (1 - np.tanh(x @ w) ** 2)
    return inner @ w.T + 2.0, x.T @ inner


def names(accelerated: Any) -> list[str]:
    """Return the ops of the only trace."""
    return [node.op.name for node in simplify(accelerated.variants()[0].traces[0].graph).nodes]


class TestGradients:
    @pytest.mark.parametrize(("compute", "count"), [(layer, 1), (branching, 0)])
    def test_reads_what_was_saved(self, compute: Callable[..., Any], count: int) -> None:
        """Where values decide what is recorded nothing is saved, because they may decide otherwise."""
        forward, backward = both(compute)
        t = tj.dlarray(0.7)
        for number in range(4):  # two recordings, two replays
            x = X + number
            (y, _), saved = forward(tj.dlarray(x), tj.dlarray(W), t)
            np.testing.assert_allclose(y, np.tanh(x @ W) * 0.7, rtol=1e-12)
            assert len(saved) == count
            found = backward(tj.dlarray(x), tj.dlarray(W), t, (tj.dlarray(CT), tj.dlarray(2.0)), saved)
            for one, two in zip(found, expected(x, W, 0.7), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-14)
        assert backward.stats.hits == 2
        assert names(backward).count("tanh") == 1 - count
        assert names(backward).count("matmul") == 3 - count
        assert "matmul" in names(forward)

    def test_the_saved_values_count(self) -> None:
        """Other values give another gradient in a replay: the function is not computed again."""
        forward, backward = both(layer)
        arrays = tj.dlarray(X), tj.dlarray(W), tj.dlarray(1.0)
        cts = tj.dlarray(CT), tj.dlarray(0.0)
        for _ in range(3):
            _, (saved,) = forward(*arrays)
            _, by_w = backward(*arrays, cts, (saved * 0,))
        np.testing.assert_allclose(by_w, X.T @ CT, rtol=1e-12)

    def test_an_adjoint_leaves_nothing_in_the_forward_graph(self) -> None:
        forward, _ = both(layer)
        for _ in range(2):
            forward(tj.dlarray(X), tj.dlarray(W), tj.dlarray(1.0))
        graph = forward.variants()[0].traces[0].graph
        assert [node.op.name for node in graph.nodes].count("matmul") == 1

    def test_uncompiled_evaluations_save_nothing(self) -> None:
        x, w, t = tj.dlarray(X), tj.dlarray(W), tj.dlarray(1.0)
        found = tj.dlfeval(lambda x, w, t: with_saved(lambda: layer(x, w, t), (x, w))[1], x, w, t)
        assert found == ()

    def test_integers_have_no_gradient(self) -> None:
        def compute(x: Any, n: Any) -> tuple[Any, ...]:
            return tj.exp(x) * n, n + 1

        @tj.dlaccelerate
        def forward(x: Any, n: Any) -> Any:
            return with_saved(lambda: compute(x, n), (x, n))

        @tj.dlaccelerate
        def backward(x: Any, n: Any, cts: Any, saved: Any) -> Any:
            return gradients_from_saved(lambda: compute(x, n), (x,), cts, saved)

        n = np.arange(3)
        for _ in range(3):
            _, saved = forward(tj.dlarray(X[0]), n)
            (found,) = backward(tj.dlarray(X[0]), n, (tj.dlarray(X[1]), n), saved)
            np.testing.assert_allclose(found, np.exp(X[0]) * n * X[1], rtol=1e-12)
