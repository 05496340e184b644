# SPDX-License-Identifier: BSD-3-Clause
"""Examples with networks run at a small size: they learn, and record nothing again after the second epoch."""

import numpy as np

import tracejit as tj


def test_digits_are_read_by_a_network():
    from tracejit.examples import digits_network

    digits_network.model_loss.clear_cache()
    net, losses, accuracy = digits_network.train(4, most=333)  # 10 full mini-batches and one of 13
    assert losses[-1] < 0.3 * losses[0] and accuracy > 0.8
    assert digits_network.model_loss.occupancy == 4
    assert net.learnables["conv", "weights"].shape == (20, 1, 5, 5)


def test_a_layer_with_parameters_of_its_own():
    from tracejit.examples import srelu_layer

    assert not tj.checklayer(srelu_layer.SReLU(), tj.nn.DataLayout((None, 5), "BC")).failed
    net, losses, accuracy = srelu_layer.train(3)
    assert losses[-1] < 0.3 * losses[0] and accuracy > 0.8
    assert np.ptp(np.asarray(net.learnables["srelu", "left_slope"])) > 0


def test_maps_of_what_speaks_for_a_class(tmp_path):
    from tracejit.examples.digits import load
    from tracejit.examples.digits_network import as_images, network

    from tracejit.examples import grad_cam

    net, images = network(), load(0)[1][:4]
    found, cams = grad_cam.maps(net, images)
    features, scores = net.predict(as_images(images), outputs=["relu_1", "fc"])
    features, scores = np.asarray(features, float), np.asarray(scores)
    assert cams.shape == (4, 8, 8) and found.tolist() == scores.argmax(axis=1).tolist()
    # The score is linear in what maxpool leaves of the features: a difference along one channel gives its weight.
    rest = tj.dlnetwork(net.layers[7:9], tj.dlarray(features.astype(np.float32), "BSSC"))
    step = 1e-2
    moved = features.copy()
    moved[..., 3] += step  # everywhere, so that the largest element of each window stays the largest
    ends = [np.asarray(rest.predict(tj.dlarray(x.astype(np.float32), "BSSC"))) for x in (moved, features)]
    slopes = (ends[0] - ends[1])[np.arange(4), found] / step
    _, gradient = grad_cam.explain(
        net, as_images(images), tj.dlarray(np.eye(10, dtype=np.float32)[found], "BC")
    )
    np.testing.assert_allclose(np.asarray(gradient)[..., 3].sum(axis=(1, 2)), slopes, rtol=2e-2, atol=1e-3)
    grad_cam.draw(images, found, cams, tmp_path / "cam.png")
    assert (tmp_path / "cam.png").stat().st_size > 1000


def test_sequences_are_told_apart():
    from tracejit.examples import sequence_lstm

    sequence_lstm.step.clear_cache()
    _, losses, accuracy = sequence_lstm.train(6, count=200)
    assert losses[-1] < 0.5 * losses[0] and accuracy > 0.8
    assert sequence_lstm.step.stats.keys <= 2 * len(sequence_lstm.BUCKETS)


def test_padding_makes_no_difference():
    from tracejit.examples import sequence_lstm

    net = sequence_lstm.network()
    x = np.random.default_rng(0).standard_normal((1, 15, 3)).astype(np.float32)
    mask = np.ones((1, 15), np.float32)
    mask[:, 9:] = 0
    padded = net.predict(tj.dlarray(x, "BTC"), tj.dlarray(mask, "BT"))
    short = net.predict(tj.dlarray(x[:, :9], "BTC"), tj.dlarray(mask[:, :9], "BT"))
    np.testing.assert_allclose(padded, short, rtol=1e-5, atol=1e-6)


def test_a_generator_learns(tmp_path):
    from tracejit.examples import digits_gan

    nets, losses = digits_gan.train(3, most=77)
    assert np.isfinite(losses).all() and losses[-1][1] < losses[0][1]
    images = digits_gan.draw(nets["generator"], tmp_path / "digits.png")
    assert (
        images.shape == (40, 8, 8)
        and images.min() >= 0
        and images.max() <= 1
        and np.ptp(images, axis=0).max() > 0
    )


def test_an_autoencoder_learns(tmp_path):
    from tracejit.examples import digits_vae

    nets, losses = digits_vae.train(4)
    assert losses[-1] < 0.85 * losses[0]
    digits_vae.draw(nets, tmp_path / "digits.png")
    assert (tmp_path / "digits.png").stat().st_size > 1000
