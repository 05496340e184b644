# SPDX-License-Identifier: BSD-3-Clause
"""L-BFGS: directions against dense BFGS, convergence beside SciPy's, states, factors, dtypes, messages."""

import math
import pickle

import numpy as np
import pytest
from accelerated import dlaccelerate
from scipy import optimize

import tracejit as tj
from tracejit import nn
from tracejit.optim.lbfgs import Curvature, _inverse_hessian_times

METHODS = ("weak-wolfe", "strong-wolfe", "backtracking")


def rosenbrock(x):
    y = (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()
    return y, tj.dlgradient(y, x)


def iterate(loss, params, state=None, steps=400, tolerance=1e-8, **options):
    """Return parameters and state when gradients are small or nothing gets better, and the number of iterations."""
    number = 0
    while number < steps and (state is None or state.gradients_norm >= tolerance):
        params, state = tj.lbfgsupdate(params, loss, state, **options)
        number += 1
        if state.line_search_status == "failed":
            break
    return params, state, number


def test_directions_are_those_of_dense_bfgs() -> None:
    """The inverse Hessian by the update of Broyden, Fletcher, Goldfarb and Shanno, as a matrix."""
    rng = np.random.default_rng(0)
    hessian = np.cov(rng.standard_normal((6, 50)))
    for kept in (0, 1, 3, 9):
        steps = rng.standard_normal((kept, 6))
        history = tuple([Curvature.of(s, hessian @ s) for s in steps])
        inverse = 0.7 * np.eye(6)
        if history:
            s, y, _ = history[-1]
            inverse = (s @ y) / (y @ y) * np.eye(6)
        for s, y, _ in history:
            left = np.eye(6) - np.outer(s, y) / (s @ y)
            inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
        g = rng.standard_normal(6)
        np.testing.assert_allclose(_inverse_hessian_times(history, 0.7, g), inverse @ g, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [2, 10, 60])
def test_the_valley_of_rosenbrock(method, size) -> None:
    loss = dlaccelerate(rosenbrock)
    start = np.full(size, -1.2)
    x, state, number = iterate(loss, tj.dlarray(start), line_search_method=method)
    found = optimize.minimize(
        tj.numpy_function(loss), start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "ftol": 0.0}
    )
    np.testing.assert_allclose(x, np.ones(size), rtol=1e-6)
    assert number <= 1.5 * found.nit and state.gradients_norm < 1e-8
    assert x.dtype == np.float64 and len(state.history) == 10
    assert loss.hit_rate > 90


def test_a_call_evaluates_only_what_it_does_not_know() -> None:
    seen = []

    def loss(x):
        seen.append(np.array(x))
        return tj.dlfeval(rosenbrock, x)

    def step(x, state=None, **options):
        before = len(seen)
        x, state = tj.lbfgsupdate(x, loss, state, line_search_method="backtracking", **options)
        return x, state, seen[before:]

    x, state, places = step(tj.dlarray([0.9, 0.9]), initial_step_size=1e-3)
    assert len(places) == 2  # the start, and a step that is accepted
    assert state.loss == tj.dlfeval(rosenbrock, x)[0].item()
    x, state, places = step(x, state)
    np.testing.assert_array_equal(places[-1], x)  # the start was known
    np.testing.assert_array_equal(
        step(x + 1e-3, state)[2][0], x + 1e-3
    )  # other parameters than those of the state
    np.testing.assert_array_equal(step(x, state.without_loss())[2][0], x)


def test_the_size_of_the_first_step() -> None:
    def slope(x):
        y = (x * np.array([3.0, -6.0])).sum() + 0.01 * (x * x).sum()
        return y, tj.dlgradient(y, x)

    def first(**options):
        start = tj.dlarray([2.0, -4.0])
        x, state = tj.lbfgsupdate(
            start, lambda x: tj.dlfeval(slope, x), line_search_method="backtracking", **options
        )
        assert state.step_norm == pytest.approx(np.linalg.norm(x - start))
        return float(np.abs(x - start).max())

    assert first(initial_step_size=0.25) == pytest.approx(0.25)
    assert first(initial_step_size="auto") == pytest.approx(2.1)  # 4 / 2 + 0.1
    assert first() == pytest.approx(6.08)  # the gradient itself
    assert first(solver_state=tj.lbfgsstate(initial_inverse_hessian_factor=0.5)) == pytest.approx(3.04)


def test_containers_formats_and_dtypes_are_kept() -> None:
    params = {
        "w": [tj.dlarray(np.ones((2, 3), np.float32), "CU"), None],
        "b": tj.dlarray(np.zeros(()), None),
    }
    target = np.arange(6.0).reshape(2, 3)

    def loss(p):
        y = ((p["w"][0] - target.astype(np.float32)) ** 2).sum() + (p["b"] - 3.0) ** 2
        return y, tj.dlgradient(y, p), "more"

    found, state, _ = iterate(lambda p: tj.dlfeval(loss, p), params, tolerance=1e-6)
    assert found["w"][0].format == "CU" and found["w"][0].dtype == np.float32 and found["w"][1] is None
    np.testing.assert_allclose(found["w"][0], target, atol=1e-6)
    assert found["b"].shape == () and found["b"].item() == pytest.approx(3.0)
    assert state.additional_loss_function_outputs == ("more",)
    assert state.gradients["w"][0].format == "CU"
    again = pickle.loads(pickle.dumps(state))
    assert repr(again) == repr(state) and again.loss == state.loss


def net_and_loss(accelerate=dlaccelerate):
    x = tj.dlarray(np.linspace(-1, 1, 40).reshape(20, 2), "BC")
    targets = tj.dlarray(np.sin(3.0 * np.asarray(x)[:, :1]), "BC")
    net = tj.dlnetwork([nn.FeatureInput(2), nn.FullyConnected(5), nn.Tanh(), nn.FullyConnected(1)], seed=0)

    def loss(net):
        y, _ = net.forward(x)
        value = tj.l2loss(y, targets)
        return value, tj.dlgradient(value, net.learnables)

    return net, accelerate(loss)


def test_networks_keep_frozen_layers_and_learn_in_units_of_their_factors() -> None:
    net, loss = net_and_loss()
    _, state, _ = iterate(loss, net, steps=60)
    assert state.loss < 1e-2 * tj.dlfeval(loss, net)[0].item()
    frozen, _, _ = iterate(loss, net.freeze("fc"), steps=20)
    assert (frozen.learnables["fc", "weights"] == net.learnables["fc", "weights"]).all()
    assert not (frozen.learnables["fc_1", "weights"] == net.learnables["fc_1", "weights"]).all()
    _, gradients = tj.dlfeval(loss, net)
    stepped, state = tj.lbfgsupdate(
        net.with_learn_rate_factor("fc", "bias", 4.0),
        loss,
        tj.lbfgsstate(3, 1e-3),
        line_search_method="backtracking",
    )
    for row in net.learnables:
        rate = 1e-3 * (4.0 if (row.layer, row.parameter) == ("fc", "bias") else 1.0)
        expected = row.value - rate * gradients[row.layer, row.parameter]
        np.testing.assert_allclose(
            stepped.learnables[row.layer, row.parameter], expected, rtol=1e-5, atol=1e-9
        )


def test_nothing_moves_where_nothing_gets_better() -> None:
    def minimum(x):
        y = (x * x).sum()
        return y, tj.dlgradient(y, x)

    x = tj.dlarray(np.zeros(3))
    same, state = tj.lbfgsupdate(x, lambda x: tj.dlfeval(minimum, x))
    assert same is x and (state.line_search_status, state.gradients_norm, state.step_norm) == (
        "completed",
        0,
        0,
    )

    calls = []

    def wrong(x):  # the gradient of a loss that increases along its negative
        calls.append(x)
        y = -(x * x).sum()
        return y, -tj.dlgradient(y, x)

    x = tj.dlarray(np.ones(3))
    same, state = tj.lbfgsupdate(x, lambda x: tj.dlfeval(wrong, x), max_num_line_search_iterations=5)
    assert same is x and state.line_search_status == "failed" and len(calls) == 6

    for bad in (math.nan, math.inf):
        same, state = tj.lbfgsupdate(x, lambda x, bad=bad: (bad, x))
        assert same is x and state.line_search_status == "failed"


def test_a_direction_that_finds_nothing_gives_way_to_the_gradient() -> None:
    def loss(x):
        y = (x * x).sum()
        return y, tj.dlgradient(y, x)

    x = tj.dlarray([1.0, 1.0])
    misleading = (Curvature.of(np.array([1.0, 0.0]), np.array([-1.0, 0.0])),)  # directions that go up
    state = tj.lbfgsstate()._replace(history=misleading)
    _, state = tj.lbfgsupdate(x, lambda x: tj.dlfeval(loss, x), state)
    assert state.line_search_status == "completed" and state.loss < 2.0
    assert len(state.history) == 1 and state.history[0] is not misleading[0]


def test_no_parameters() -> None:
    found, state = tj.lbfgsupdate({}, lambda p: (1.0, {}))
    assert found == {} and state.gradients_norm == 0.0 and state.loss == 1.0
