# SPDX-License-Identifier: BSD-3-Clause
"""Grad-CAM: what in an image of a digit speaks for the class that a network finds in it.

The channels of the last ReLU are weighted by the mean gradient of the class's score and added up. (R. Selvaraju et
al., Grad-CAM: visual explanations from deep networks, ICCV 2017.)

    python examples/grad_cam.py [epochs] [picture.png]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tracejit.examples.digits import load
from tracejit.examples.digits_network import as_images, train

import tracejit as tj

FEATURES, SCORES = "relu_1", "fc"  # the last maps with places, and the scores before softmax


@tj.dlaccelerate
def explain(net: tj.dlnetwork, x: tj.dlarray, classes: Any) -> tuple[tj.dlarray, tj.dlarray]:
    """Return the maps of FEATURES, and the gradient of the scores of some classes by them.

    Args:
        net: the network.
        x: images.
        classes: for each image a row with 1 for its class and 0 elsewhere.
    """
    features, scores = net.predict(x, outputs=[FEATURES, SCORES])
    return features, tj.dlgradient((scores * classes).sum(), features)


def maps(net: tj.dlnetwork, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class that the network finds in each image, and a map from 0 to 1 of what speaks for it."""
    x = as_images(images)
    found = np.argmax(np.asarray(net.predict(x)), axis=1)
    features, gradient = explain(net, x, tj.dlarray(np.eye(10, dtype=np.float32)[found], "BC"))
    weights = np.asarray(gradient).mean(axis=(1, 2), keepdims=True)
    cam = np.maximum((np.asarray(features) * weights).sum(axis=3), 0)
    return found, cam / np.maximum(cam.max(axis=(1, 2), keepdims=True), 1e-12)


def draw(images: np.ndarray, found: np.ndarray, cams: np.ndarray, path: Path) -> None:
    """Write a picture: each image, and below it with its map over it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.2 * len(images), 2.6))
    rows = figure.subplots(2, len(images))
    for column, image in enumerate(images.reshape(-1, 8, 8)):
        rows[0, column].imshow(image, cmap="gray_r")
        rows[1, column].imshow(image, cmap="gray_r")
        rows[1, column].imshow(cams[column], cmap="jet", alpha=0.5)
        rows[0, column].set_title(str(found[column]))
    for axes in rows.flat:
        axes.set_axis_off()
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    net, _, accuracy = train(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    images = load(0)[1][:10]
    found, cams = maps(net, images)
    path = Path(sys.argv[2] if len(sys.argv) > 2 else "grad_cam.png")
    draw(images, found, cams, path)
    print(f"test accuracy {accuracy:.4f}; classes {found.tolist()}; picture {path}")
