# SPDX-License-Identifier: BSD-3-Clause
"""Two networks against each other: a generator learns to draw digits that a discriminator takes for real ones.

One accelerated step updates both. The generator makes images from random numbers by transposed convolutions.
(I. Goodfellow et al., Generative adversarial nets, NeurIPS 2014.)

    python examples/digits_gan.py [epochs] [picture.png]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm
from tracejit.examples.digits import batches, load
from tracejit.examples.digits_network import SIDE, as_images

import tracejit as tj
from tracejit import nn

LATENT = 32
CHANNELS = 32  # of the inner images of both networks, and twice as many of the smallest
RATE, DECAY = 5e-4, 0.5  # of Adam


def networks(seed: int = 0) -> dict[str, tj.dlnetwork]:
    """Return generator and discriminator before training."""
    generator = [
        nn.FeatureInput(LATENT),
        nn.FullyConnected(2 * CHANNELS * 4),
        nn.Reshape((2 * CHANNELS, 2, 2), "CSS"),
        nn.BatchNormalization(),
        nn.Relu(),
        nn.TransposedConv2d(4, CHANNELS, stride=2, cropping=1),
        nn.BatchNormalization(),
        nn.Relu(),
        nn.TransposedConv2d(4, 1, stride=2, cropping=1),
        nn.Sigmoid(),
    ]
    discriminator = [
        nn.ImageInput((SIDE, SIDE, 1)),
        nn.Dropout(0.3),
        nn.Convolution2d(4, CHANNELS, stride=2, padding=1),
        nn.LeakyRelu(0.2),
        nn.Convolution2d(4, 2 * CHANNELS, stride=2, padding=1),
        nn.LeakyRelu(0.2),
        nn.FullyConnected(1),
    ]
    return {
        "generator": tj.dlnetwork(generator, seed=seed),
        "discriminator": tj.dlnetwork(discriminator, seed=seed + 1),
    }


@tj.dlaccelerate
def step(nets: Any, moments: Any, iteration: Any, images: tj.dlarray) -> tuple[Any, ...]:
    """Return both losses, and networks, moments and iteration after a step of each network."""
    noise = tj.randn((images.shape[0], LATENT), format="BC", dtype=np.float32)
    generated, state = nets["generator"].forward(noise)
    real, _ = nets["discriminator"].forward(images)
    fake, _ = nets["discriminator"].forward(generated)
    # -log(sigmoid(x)) is softplus(-x); of the generator as it was proposed, -log of the fake's probability
    loss = {
        "discriminator": tj.softplus(-real).mean() + tj.softplus(fake).mean(),
        "generator": tj.softplus(-fake).mean(),
    }
    nets = {**nets, "generator": nets["generator"].with_state(state)}
    updated, new = {}, {}
    for name in ("generator", "discriminator"):
        gradients = tj.dlgradient(loss[name], nets[name].learnables)
        updated[name], *new[name] = tj.adamupdate(
            nets[name], gradients, *moments[name], iteration, RATE, DECAY
        )
    return loss["generator"], loss["discriminator"], updated, new, iteration + 1


def train(
    epochs: int = 60, seed: int = 0, most: int | None = None
) -> tuple[dict[str, Any], list[tuple[float, float]]]:
    """Return the trained networks, and the mean losses of generator and discriminator in each epoch."""
    images, _, labels, _ = load(seed)
    images, labels = images[:most], labels[:most]
    nets = networks(seed)
    moments: Any = {
        name: [tj.tree.map(tj.zeros_like, net.learnables), tj.tree.map(tj.zeros_like, net.learnables)]
        for name, net in nets.items()
    }
    iteration: Any = tj.dlarray(np.float32(1))
    rng = np.random.default_rng(seed)
    losses = []
    with tj.rng(seed):
        for _ in tqdm(range(epochs), desc="training", unit="epoch"):
            found = []
            for rows, _ in batches(images, labels, rng):
                first, second, nets, moments, iteration = step(nets, moments, iteration, as_images(rows))
                found.append((first.item(), second.item()))
            losses.append(tuple(np.mean(found, axis=0).tolist()))
    return nets, losses


def draw(generator: tj.dlnetwork, path: Path, seed: int = 1) -> np.ndarray:
    """Write a picture of generated digits, and return them."""
    with tj.rng(seed):
        noise = tj.randn((40, LATENT), format="BC", dtype=np.float32)
    images = np.asarray(generator.predict(noise)).reshape(40, SIDE, SIDE)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4))
    for axes, image in zip(figure.subplots(4, 10).flat, images, strict=True):
        axes.imshow(image, cmap="gray_r")
        axes.set_axis_off()
    figure.savefig(path, dpi=100)
    return images


if __name__ == "__main__":
    nets, losses = train(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    path = Path(sys.argv[2] if len(sys.argv) > 2 else "digits_gan.png")
    draw(nets["generator"], path)
    print(
        f"{len(losses)} epochs, losses of generator and discriminator {losses[-1][0]:.3f}, {losses[-1][1]:.3f}"
    )
    print(f"picture {path}; {step.stats.kept} traces, hit rate {step.hit_rate:.1f} %")
