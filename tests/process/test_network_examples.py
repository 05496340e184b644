# SPDX-License-Identifier: BSD-3-Clause
"""Examples that train run at a small size: they learn, and record nothing again after the second epoch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import config
from tracejit.examples import (
    digits,
    digits_convolution,
    digits_gan,
    digits_network,
    digits_vae,
    grad_cam,
    neural_ode,
    pendulum,
    pinn_burgers,
    sequence_lstm,
    srelu_layer,
)


def test_digits_are_read_by_a_network():
    digits_network.model_loss.clear_cache()
    net, losses, accuracy = digits_network.train(4, most=333)  # 10 full mini-batches and one of 13
    assert losses[-1] < 0.3 * losses[0] and accuracy > 0.8
    assert digits_network.model_loss.occupancy == 4
    assert net.learnables["conv", "weights"].shape == (20, 1, 5, 5)


@pytest.mark.slow
def test_a_layer_with_parameters_of_its_own():
    assert not tj.checklayer(srelu_layer.SReLU(), tj.nn.DataLayout((None, 5), "BC")).failed
    net, losses, accuracy = srelu_layer.train(3)
    assert losses[-1] < 0.3 * losses[0] and accuracy > 0.8
    assert np.ptp(np.asarray(net.learnables["srelu", "left_slope"])) > 0


def test_maps_of_what_speaks_for_a_class(tmp_path):
    net, images = digits_network.network(), digits.load(0)[1][:4]
    x = digits_network.as_images(images)
    found, cams = grad_cam.maps(net, images)
    features, scores = net.predict(x, outputs=["relu_1", "fc"])
    features, scores = np.asarray(features, float), np.asarray(scores)
    assert cams.shape == (4, 8, 8) and found.tolist() == scores.argmax(axis=1).tolist()
    # The score is linear in what maxpool leaves of the features: a difference along one channel gives its weight.
    rest = tj.dlnetwork(net.layers[7:9], tj.dlarray(features.astype(np.float32), "BSSC"))
    step = 1e-2
    moved = features.copy()
    moved[..., 3] += step  # everywhere, so that the largest element of each window stays the largest
    ends = [np.asarray(rest.predict(tj.dlarray(x.astype(np.float32), "BSSC"))) for x in (moved, features)]
    slopes = (ends[0] - ends[1])[np.arange(4), found] / step
    _, gradient = grad_cam.explain(net, x, tj.dlarray(np.eye(10, dtype=np.float32)[found], "BC"))
    np.testing.assert_allclose(np.asarray(gradient)[..., 3].sum(axis=(1, 2)), slopes, rtol=2e-2, atol=1e-3)
    grad_cam.draw(images, found, cams, tmp_path / "cam.png")
    assert (tmp_path / "cam.png").stat().st_size > 1000


@pytest.mark.slow
def test_sequences_are_told_apart():
    sequence_lstm.step.clear_cache()
    _, losses, accuracy = sequence_lstm.train(6, count=200)
    assert losses[-1] < 0.5 * losses[0] and accuracy > 0.8
    assert sequence_lstm.step.stats.keys <= 2 * len(sequence_lstm.BUCKETS)


def test_padding_makes_no_difference():
    net = sequence_lstm.network()
    x = np.random.default_rng(0).standard_normal((1, 15, 3)).astype(np.float32)
    mask = np.ones((1, 15), np.float32)
    mask[:, 9:] = 0
    padded = net.predict(tj.dlarray(x, "BTC"), tj.dlarray(mask, "BT"))
    short = net.predict(tj.dlarray(x[:, :9], "BTC"), tj.dlarray(mask[:, :9], "BT"))
    np.testing.assert_allclose(padded, short, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_an_autoencoder_learns(tmp_path):
    nets, losses = digits_vae.train(4)
    assert losses[-1] < 0.85 * losses[0]
    digits_vae.draw(nets, tmp_path / "digits.png")
    assert (tmp_path / "digits.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_differential_equation_is_learned(tmp_path, monkeypatch):
    net, losses = neural_ode.train(20, most=77)
    assert losses[-1] < 0.5 * losses[0]
    with monkeypatch.context() as patch:
        patch.setattr(config.settings, "backend", "python")  # its programs would be compiled for one call
        assert neural_ode.difference(net, 1e-8) < 1e-6
    assert neural_ode.draw(net, tmp_path / "path.png").shape == (neural_ode.POINTS - 1, 2)
    assert (tmp_path / "path.png").stat().st_size > 1000


def test_a_solution_of_burgers_equation_is_drawn(tmp_path):
    params, _ = pinn_burgers.train(3)
    pinn_burgers.draw(params, tmp_path / "burgers.png")
    assert (tmp_path / "burgers.png").stat().st_size > 1000


def test_a_generator_learns(tmp_path, monkeypatch):
    # The step has 54 kernels, which take 10 s to compile: emitted source computes two small mini-batches.
    monkeypatch.setattr(config.settings, "backend", "python")
    monkeypatch.setattr(digits, "BATCH", 4)
    monkeypatch.setattr(digits_gan, "CHANNELS", 8)
    step = digits_gan.step
    step.clear_cache()
    nets, losses = digits_gan.train(2, most=5)
    recorded = recordings(step)
    assert np.isfinite(losses).all() and losses[-1][1] < losses[0][1]
    images = digits_gan.draw(nets["generator"], tmp_path / "digits.png")
    assert images.shape == (40, 8, 8) and images.min() >= 0 and images.max() <= 1
    assert np.ptp(images, axis=0).max() > 0
    _, replayed = digits_gan.train(1, most=5)
    assert recordings(step) == recorded and step.stats.hits == 2 and step.occupancy == 4
    np.testing.assert_allclose(replayed[0], losses[0], rtol=1e-5)


def recordings(step: Any) -> dict[str, int]:
    """Return how often a function was recorded, and why; audits, which look for mistakes now and then, do not count."""
    return {why: times for why, times in step.stats.misses.items() if why != "audit"}


def train_digits(epochs: int) -> None:
    images, _, labels, _ = digits.load(0)
    digits.train(images[:77], labels[:77], epochs, 0)


def run_convolutions(epochs: int) -> None:
    images, _, labels, _ = digits.load(0)
    state = digits_convolution.init(np.random.default_rng(0))
    for _ in range(epochs):
        for rows, targets in digits.batches(images[:37], labels[:37], np.random.default_rng(0)):
            x = digits_convolution.as_images(rows)
            _, state = digits_convolution.train_step(state, x, targets, 100)


# Function, and how to train for some epochs; the data make no whole number of mini-batches.
TRAINED: list[tuple[str, Any, Callable[[int], Any]]] = [
    ("digits", digits.train_step, train_digits),
    ("digits_convolution", digits_convolution.train_step, run_convolutions),
    ("digits_network", digits_network.model_loss, lambda epochs: digits_network.train(epochs, most=77)),
    ("digits_vae", digits_vae.step, digits_vae.train),
    ("neural_ode", neural_ode.step, lambda epochs: neural_ode.train(epochs, most=77)),
    (
        "neural_ode, adjoint",
        neural_ode.step,
        lambda epochs: neural_ode.train(epochs, mode="adjoint", most=77),
    ),
    ("pendulum", pendulum.step, lambda epochs: pendulum.identify(2 * epochs, steps=4)),
    ("pinn_burgers", pinn_burgers.loss_and_gradients, lambda epochs: pinn_burgers.train(2 * epochs)),
    ("sequence_lstm", sequence_lstm.step, lambda epochs: sequence_lstm.train(epochs, count=200)),
    ("srelu_layer", srelu_layer.step, srelu_layer.train),
]


@pytest.mark.parametrize("step, train", [case[1:] for case in TRAINED], ids=[case[0] for case in TRAINED])
def test_nothing_is_recorded_after_the_second_epoch(step, train):
    step.clear_cache()
    train(2)
    recorded, hits = recordings(step), step.stats.hits
    train(2)  # the third and fourth with these sizes
    assert recordings(step) == recorded
    assert step.stats.hits > hits
