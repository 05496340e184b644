# SPDX-License-Identifier: BSD-3-Clause
"""The public promise in one file: run at every commit."""

import numpy as np
import pytest

import tracejit as tj


def rosenbrock(x):
    y = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    return y, tj.dlgradient(y, x)


def train_step(params, velocity, x, targets):
    loss = tj.mse(np.tanh(tj.fullyconnect(x, **params)), targets)
    params, velocity = tj.sgdmupdate(params, tj.dlgradient(loss, params), velocity, 0.5)
    return loss, params, velocity


def train(step, batch, steps):
    """Return the losses of a few steps from a fixed start."""
    rng = np.random.default_rng(0)
    params = {"weights": tj.dlarray(rng.standard_normal((2, 3))), "bias": tj.dlarray(np.zeros(2))}
    velocity = tj.tree.map(tj.zeros_like, params)
    x = tj.dlarray(rng.standard_normal((batch, 3)), "BC")
    targets = tj.dlarray(0.5 * np.sin(tj.extractdata(x)[:, :2]), "BC")
    losses = []
    for _ in range(steps):
        loss, params, velocity = step(params, velocity, x, targets)
        losses.append(loss.item())
    return losses


def test_gradient():
    y, gradient = tj.dlfeval(rosenbrock, tj.dlarray([-1.0, 2.0]))
    assert y.item() == 104
    assert gradient.tolist() == [396, 200]


def test_gradient_needs_an_evaluation():
    with pytest.raises(tj.GradientError, match="call it inside a function that dlfeval evaluates"):
        rosenbrock(tj.dlarray([-1.0, 2.0]))


def test_gradients_agree_with_derivatives_found_without_them():
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    tj.testing.check_gradients(lambda x: tj.softmax(x, axis=1) * np.tanh(x), x, order=2)


def test_an_accelerated_loop_trains_as_the_plain_one():
    accelerated = tj.dlaccelerate(train_step)
    losses = train(accelerated, 8, 20)
    np.testing.assert_allclose(losses, train(lambda *a: tj.dlfeval(train_step, *a), 8, 20), rtol=1e-12)
    assert losses[-1] < losses[0] / 4
    assert accelerated.hit_rate == 85  # recorded, confirmed, and audited at the 8th call
    assert accelerated.occupancy == 2
    tj.clear_cache(accelerated)
    assert accelerated.occupancy == 0


def test_another_batch_size_compiles_nothing():
    accelerated = tj.dlaccelerate(train_step)
    train(accelerated, 8, 3)
    kernels = accelerated.stats.kernels
    train(accelerated, 5, 3)  # two of the calls run uncompiled
    assert (accelerated.stats.traces, accelerated.stats.kernels) == (4, kernels)
    assert kernels > 0


def test_a_branch_on_a_value_is_followed():
    size = tj.dlaccelerate(lambda x: x if x.sum() > 0 else -x)
    for number in (1.0, 1.0, -1.0, -1.0, 2.0, -2.0):
        assert size(tj.dlarray([number])).item() == abs(number)
    assert size.stats.hits == 2


def test_labels_find_the_axes():
    x = tj.dlarray(np.zeros((4, 3)), "BC")
    assert (x + tj.dlarray(np.ones((3, 4, 5)), "CBT")).format == "CBT"
    assert tj.fullyconnect(x, np.ones((2, 3))).shape == (4, 2)
