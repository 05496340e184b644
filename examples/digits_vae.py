# SPDX-License-Identifier: BSD-3-Clause
"""A variational autoencoder of digits: an encoder gives mean and variance of a code, a decoder the image.

Codes are drawn on the trace, so that each step draws new ones. (D. P. Kingma and M. Welling, Auto-encoding
variational Bayes, ICLR 2014.)

    python examples/digits_vae.py [epochs] [picture.png]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm
from tracejit.examples.digits import batches, load

import tracejit as tj
from tracejit import nn

PIXELS, CODE, HIDDEN = 64, 8, 128


def networks(seed: int = 0) -> dict[str, tj.dlnetwork]:
    """Return encoder and decoder before training; the encoder gives means, and logarithms of variances."""
    encoder = [nn.FeatureInput(PIXELS), nn.FullyConnected(HIDDEN), nn.Relu(), nn.FullyConnected(2 * CODE)]
    decoder = [nn.FeatureInput(CODE), nn.FullyConnected(HIDDEN), nn.Relu(), nn.FullyConnected(PIXELS)]
    return {"encoder": tj.dlnetwork(encoder, seed=seed), "decoder": tj.dlnetwork(decoder, seed=seed + 1)}


@tj.dlaccelerate
def step(nets: Any, moments: Any, iteration: Any, x: tj.dlarray) -> tuple[Any, ...]:
    """Return the loss of a mini-batch, and networks, moments and iteration after a step of Adam."""
    encoded, _ = nets["encoder"].forward(x)
    mean, logarithm = encoded[:, :CODE], encoded[:, CODE:]
    code = mean + tj.exp(0.5 * logarithm) * tj.randn(mean.shape, like=mean)
    scores, _ = nets["decoder"].forward(code)
    # The pixels' cross-entropy, from scores before the sigmoid, and the divergence from a standard normal variable.
    reconstruction = (tj.softplus(scores) - x * scores).sum() / x.shape[0]
    divergence = -0.5 * (1 + logarithm - mean**2 - tj.exp(logarithm)).sum() / x.shape[0]
    loss = reconstruction + divergence
    nets, *moments = tj.adamupdate(nets, tj.dlgradient(loss, nets), *moments, iteration, 2e-3)
    return loss, nets, moments, iteration + 1


def train(epochs: int = 60, seed: int = 0) -> tuple[dict[str, Any], list[float]]:
    """Return the trained networks and the mean loss of each epoch."""
    images, _, labels, _ = load(seed)
    nets: Any = networks(seed)
    zeros = {name: tj.tree.map(tj.zeros_like, net.learnables) for name, net in nets.items()}
    moments: Any = [zeros, zeros]
    iteration: Any = tj.dlarray(np.float32(1))
    rng = np.random.default_rng(seed)
    losses = []
    with tj.rng(seed):
        for _ in tqdm(range(epochs), desc="training", unit="epoch"):
            found = []
            for x, _ in batches(images, labels, rng):
                loss, nets, moments, iteration = step(nets, moments, iteration, x)
                found.append(loss.item())
            losses.append(float(np.mean(found)))
    return nets, losses


def draw(nets: dict[str, Any], path: Path) -> None:
    """Write a picture: test images, what the networks make of them, and new digits."""
    from matplotlib.figure import Figure

    images = load(0)[1][:10]
    codes = nets["encoder"].predict(tj.dlarray(images, "BC"))[:, :CODE]
    with tj.rng(1):
        new = tj.randn((10, CODE), format="BC", dtype=np.float32)
    rows = [images, *[np.asarray(tj.sigmoid(nets["decoder"].predict(code))) for code in (codes, new)]]
    figure = Figure(figsize=(10, 3.2))
    for axes, image in zip(figure.subplots(3, 10).flat, np.concatenate(rows).reshape(-1, 8, 8), strict=True):
        axes.imshow(image, cmap="gray_r")
        axes.set_axis_off()
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    nets, losses = train(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    path = Path(sys.argv[2] if len(sys.argv) > 2 else "digits_vae.png")
    draw(nets, path)
    print(f"{len(losses)} epochs, loss {losses[0]:.2f} to {losses[-1]:.2f}; picture {path}")
