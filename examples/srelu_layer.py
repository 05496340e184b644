# SPDX-License-Identifier: BSD-3-Clause
"""A layer of one's own with four learnable parameters for each channel: SReLU, checked and trained on digits.

SReLU is linear in three pieces whose ends and outer slopes are learned. (X. Jin et al., Deep learning with S-shaped
rectified linear activation units, AAAI 2016.)

    python examples/srelu_layer.py [epochs]
"""

import sys
from typing import Any

import numpy as np
from tqdm import tqdm
from tracejit.examples.digits import CLASSES, batches, load

import tracejit as tj
from tracejit import nn


class SReLU(nn.Layer, nn.Formattable, nn.Acceleratable):
    """left_slope below left_threshold, right_slope above right_threshold, x between them."""

    left_threshold = nn.Learnable()
    left_slope = nn.Learnable()
    right_threshold = nn.Learnable()
    right_slope = nn.Learnable()

    def initialize(self, layout: nn.DataLayout) -> None:
        """Set parameters that are not set: one of each for each channel."""
        starts = {"left_threshold": -0.5, "left_slope": 0.1, "right_threshold": 1.0, "right_slope": 0.5}
        for name, value in starts.items():
            if getattr(self, name) is None:
                size = layout.size_of("C")
                setattr(self, name, tj.dlarray(np.full(size, value, np.float32), "C"))

    def predict(self, x: Any) -> Any:
        """Return the activation of labelled data."""
        left = self.left_threshold + self.left_slope * (x - self.left_threshold)
        right = self.right_threshold + self.right_slope * (x - self.right_threshold)
        return tj.where(x <= self.left_threshold, left, tj.where(x >= self.right_threshold, right, x))


@tj.dlaccelerate
def step(net: tj.dlnetwork, velocity: Any, x: tj.dlarray, targets: tj.dlarray) -> tuple[Any, Any, Any]:
    """Return the loss of a mini-batch, and network and velocity after a step of gradient descent with momentum."""
    y, _ = net.forward(x)
    loss = tj.crossentropy(y, targets, from_logits=True)
    return loss, *tj.sgdmupdate(net, tj.dlgradient(loss, net.learnables), velocity, 0.05)


def train(epochs: int = 10, seed: int = 0) -> tuple[tj.dlnetwork, list[float], float]:
    """Return the trained network, the loss of each step and the fraction of test images that it reads."""
    images, test_images, labels, test_labels = load(seed)
    net = tj.dlnetwork(
        [nn.FeatureInput(64), nn.FullyConnected(64), SReLU(name="srelu"), nn.FullyConnected(CLASSES)],
        seed=seed,
    )
    velocity = tj.tree.map(tj.zeros_like, net.learnables)
    rng = np.random.default_rng(seed)
    losses = []
    for _ in tqdm(range(epochs), desc="training", unit="epoch"):
        for x, targets in batches(images, labels, rng):
            loss, net, velocity = step(net, velocity, x, targets)
            losses.append(loss.item())
    scores = net.predict(tj.dlarray(test_images, "BC"))
    return net, losses, float(np.mean(tj.onehotdecode(scores, CLASSES) == test_labels))


if __name__ == "__main__":
    print(tj.checklayer(SReLU(), nn.DataLayout((None, 64), "BC")))
    trained, losses, found = train(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    print(f"{len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}, test accuracy {found:.4f}")
    for name, values in trained.learnables["srelu"].items():
        print(f"{name:<16} from {values.min().item():7.3f} to {values.max().item():7.3f}")
