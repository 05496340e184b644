# SPDX-License-Identifier: BSD-3-Clause
"""A network of layers learns to read handwritten digits, in a custom training loop.

Convolution, batch normalisation, ReLU and a dense layer, as on the first pages of the toolbox. The model-loss
function takes the network, returns loss, gradients and the network's state, and is accelerated: two traces serve the
whole training, one for full mini-batches and one for the last of each epoch.

    python examples/digits_network.py [epochs]
"""

import sys
import time
from typing import Any

import numpy as np
from tqdm import tqdm
from tracejit.examples.digits import CLASSES, batches, load

import tracejit as tj
from tracejit import nn

SIDE = 8  # pixels
RATE, DECAY = 0.01, 0.01  # the learning rate at first, and how it falls


def network(seed: int = 0) -> tj.dlnetwork:
    """Return the network before training."""
    layers = [
        nn.ImageInput((SIDE, SIDE, 1)),
        nn.Convolution2d(5, 20, padding="same"),
        nn.BatchNormalization(),
        nn.Relu(),
        nn.Convolution2d(3, 20, padding="same"),
        nn.BatchNormalization(),
        nn.Relu(),
        nn.MaxPooling2d(2, stride=2),
        nn.FullyConnected(CLASSES),
        nn.Softmax(),
    ]
    return tj.dlnetwork(layers, seed=seed)


@tj.dlaccelerate
def model_loss(net: tj.dlnetwork, x: tj.dlarray, targets: tj.dlarray) -> tuple[tj.dlarray, Any, Any]:
    """Return the loss of a mini-batch, its gradients, and the state of the network after it."""
    y, state = net.forward(x)
    loss = tj.crossentropy(y, targets)
    return loss, tj.dlgradient(loss, net.learnables), state


def as_images(rows: Any) -> tj.dlarray:
    """Return rows of pixels as images."""
    return tj.dlarray(np.asarray(rows).reshape(-1, SIDE, SIDE, 1), "BSSC")


def accuracy(net: tj.dlnetwork, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images that the network reads correctly."""
    return float(np.mean(tj.onehotdecode(net.predict(as_images(images)), CLASSES) == labels))


def train(
    epochs: int = 10, seed: int = 0, most: int | None = None
) -> tuple[tj.dlnetwork, list[float], float]:
    """Return the trained network, the loss of each step and the fraction of test images that it reads.

    Args:
        epochs: passes over the data.
        seed: of initial values and of the order of the data.
        most: number of training images; None for all.
    """
    images, test_images, labels, test_labels = load(seed)
    images, labels = images[:most], labels[:most]
    net = network(seed)
    average = average_of_squares = tj.tree.map(tj.zeros_like, net.learnables)
    rng = np.random.default_rng(seed)
    losses: list[float] = []
    for _ in tqdm(range(epochs), desc="training", unit="epoch"):
        for rows, targets in batches(images, labels, rng):
            loss, gradients, state = model_loss(net, as_images(rows), targets)
            net = net.with_state(state)
            rate = RATE / (1 + DECAY * len(losses))
            net, average, average_of_squares = tj.adamupdate(
                net, gradients, average, average_of_squares, len(losses) + 1, rate
            )
            losses.append(loss.item())
    return net, losses, accuracy(net, test_images, test_labels)


if __name__ == "__main__":
    started = time.perf_counter()
    trained, losses, found = train(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    print(
        f"{len(losses)} steps in {time.perf_counter() - started:.1f} s, loss {losses[0]:.3f} to {losses[-1]:.3f}"
    )
    print(
        f"occupancy {model_loss.occupancy:g} %, hit rate {model_loss.hit_rate:.1f} %, test accuracy {found:.4f}"
    )
    print(trained.summary())
