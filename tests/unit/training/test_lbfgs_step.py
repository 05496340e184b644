# SPDX-License-Identifier: BSD-3-Clause
"""The solver "lbfgs" of trainnet does what a loop over lbfgsupdate does, and goes on from checkpoints."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import nn

pytestmark = pytest.mark.usefixtures("python_backend")
X = tj.dlarray(np.linspace(-1, 1, 24, dtype=np.float32).reshape(24, 1), "BC")
T = tj.dlarray(np.sin(4 * np.asarray(X)), "BC")
EXACT = {"gradient_tolerance": 0.0, "step_tolerance": 0.0}


def network(*more: nn.Layer) -> tj.dlnetwork:
    layers = [nn.FeatureInput(1), nn.FullyConnected(6), *more, nn.Tanh(), nn.FullyConnected(1)]
    return tj.dlnetwork(layers, seed=2)


def wide(net: tj.dlnetwork) -> tj.dlnetwork:
    """Return a network of float64, whose line searches rounding does not decide."""
    return net.with_learnables(tj.dlupdate(lambda w: w.astype(np.float64), net.learnables))


def train(net: tj.dlnetwork, resume: Any = None, **options: Any) -> tuple[tj.dlnetwork, Any]:
    given = tj.trainingoptions("lbfgs", **({"verbose": False} | EXACT | options))
    return tj.trainnet((X, T), net, "mse", given, resume=resume)


def arrays_of(net: tj.dlnetwork) -> list[np.ndarray]:
    return [np.asarray(row.value) for row in (*net.learnables, *net.state)]


@pytest.mark.slow
@pytest.mark.parametrize("acceleration", ["auto", "none"])
@pytest.mark.parametrize("method", ["weak-wolfe", "strong-wolfe"])
def test_a_training_is_a_loop_over_the_update(acceleration: str, method: str) -> None:
    net = wide(network()).freeze("fc_1").with_l2_factor("fc", "bias", 2)
    factors = net.l2_factors.to_dict()

    def loss(net: Any) -> Any:
        y, _ = net.forward(X, acceleration="none")
        value = tj.mse(y, T)
        for row in net.learnables:
            value = value + 0.5 * 0.01 * factors[row.layer][row.parameter] * (row.value * row.value).sum()
        return value, tj.dlgradient(value, net.learnables)

    expected, state = net, tj.lbfgsstate(4, 0.5)
    norms = []
    for _ in range(10):
        expected, state = tj.lbfgsupdate(
            expected,
            lambda net: tj.dlfeval(loss, net),
            state,
            line_search_method=method,
            initial_step_size=0.1,
        )
        norms.append((state.gradients_norm, state.step_norm))
    trained, info = train(
        net, max_iterations=10, history_size=4, initial_inverse_hessian_factor=0.5, initial_step_size=0.1,
        line_search_method=method, l2_regularization=0.01, acceleration=acceleration,
    )  # fmt: skip
    for have, want in zip(arrays_of(trained), arrays_of(expected), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-7, atol=1e-8)
    history = info.training_history
    assert list(history) == ["iteration", "epoch", "loss", "gradient_norm", "step_norm"]
    np.testing.assert_allclose(history["gradient_norm"], [g for g, _ in norms], rtol=1e-6)
    np.testing.assert_allclose(history["step_norm"], [s for _, s in norms], rtol=1e-6)
    assert history["iteration"].tolist() == history["epoch"].tolist() == [*range(1, 11)]
    assert history["loss"][-1] == pytest.approx(tj.mse(trained.predict(X), T).item())
    assert (info.stop_reason, info.output_iteration) == ("max_iterations completed", 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [(), (nn.BatchNormalization(),), (nn.Dropout(0.2),)], ids=["", "norm", "dropout"]
)
def test_it_goes_on_from_any_iteration(tmp_path: Path, more: Any) -> None:
    options: dict[str, Any] = {
        "max_iterations": 7, "history_size": 3, "validation_data": (X, T), "validation_frequency": 2,
        "checkpoint_frequency_unit": "iteration", "output_network": "best-validation",
    }  # fmt: skip
    with tj.rng(5):
        want, told = train(network(*more), checkpoint_path=tmp_path / "all", **options)
        after = tj.rng()
    for iteration in (1, 2, 5):
        with tj.rng(77):
            found, info = train(network(*more), tmp_path / "all" / f"checkpoint_{iteration}.npz", **options)
            assert tj.rng() == after
        for have, expected in zip(arrays_of(found), arrays_of(want), strict=True):
            np.testing.assert_array_equal(have, expected)
        for name, column in info.training_history.items():
            np.testing.assert_array_equal(column, told.training_history[name], err_msg=name)
        assert info[2:] == told[2:]


def test_an_iteration_has_one_dropout_and_the_next_one_another() -> None:
    seen: list[tuple[int, bytes]] = []

    class Seen(nn.Layer):
        def predict(self, x: Any) -> Any:
            seen.append((len(rows), np.asarray(x).tobytes()))
            return x

    rows: list[Any] = []
    ones = tj.dlarray(np.ones((24, 1), np.float32), "BC")
    net = tj.dlnetwork([nn.FeatureInput(1), nn.Dropout(0.5), Seen(), nn.FullyConnected(1)], seed=0)
    seen.clear()  # the layers were tried out
    options = tj.trainingoptions(
        "lbfgs", max_iterations=3, acceleration="none", output_fcn=rows.append, verbose=False, **EXACT
    )
    tj.trainnet((ones, T), net, "mse", options)
    masks = [{mask for number, mask in seen if number == iteration} for iteration in range(3)]
    assert [len(each) for each in masks] == [1, 1, 1]
    assert len(set.union(*masks)) == 3
    assert len(seen) > 5  # the start and a step, or more, in each iteration


def test_what_ends_it() -> None:
    _, info = train(network(), gradient_tolerance=1e-2, max_iterations=500)
    assert info.stop_reason == "gradient_tolerance reached"
    assert info.training_history["gradient_norm"][-1] <= 1e-2 * math.sqrt(40)
    _, info = train(network(), step_tolerance=10.0)
    assert info.stop_reason == "step_tolerance reached" and info.output_iteration == 1
    _, info = train(network(), max_num_line_search_iterations=1, initial_step_size=1e6)
    assert info.stop_reason == "the line search found no smaller loss"
    given = tj.trainingoptions("lbfgs", verbose=False)
    _, info = tj.trainnet((X, T), network(), lambda y, t: (y * np.nan).sum(), given)
    assert info.stop_reason == "the loss is nan"


def test_a_queue_gives_all_of_the_data() -> None:
    given = tj.trainingoptions("lbfgs", max_iterations=3, verbose=False, **EXACT)
    queue = tj.minibatchqueue(X, T, mini_batch_size=24)
    found, _ = tj.trainnet(queue, network(), "mse", given)
    want, _ = train(network(), max_iterations=3)
    for have, expected in zip(arrays_of(found), arrays_of(want), strict=True):
        np.testing.assert_array_equal(have, expected)
