# SPDX-License-Identifier: BSD-3-Clause
"""A convolutional network with batch normalisation learns to read handwritten digits.

The data are those of digits.py, as images of 8 x 8 pixels and one channel. Two blocks of convolution, batch
normalisation, ReLU and pooling, each with half the pixels of the one before, are followed by a dense layer. Statistics
for inference are updated by each step, beside the parameters. `tracejit demo` runs this file after digits.py.
"""

import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import median

import numpy as np
from tqdm import tqdm
from tracejit.examples.digits import BATCH, CLASSES, batches, load

import tracejit as tj

SIDE = 8  # pixels
CHANNELS = (1, 32, 64)  # of the images, and of what the blocks make
DECAY = 0.1  # the weight of a batch in the statistics for inference
RATE = 2e-3  # of the first step; it falls to 0 along half a wave

Params = dict[str, dict[str, tj.dlarray]]
Statistics = dict[str, tuple[tj.dlarray, tj.dlarray]]
State = tuple[Params, Statistics, Params, Params, tj.dlarray]  # and Adam's two moments, iteration


def init(rng: np.random.Generator) -> State:
    """Return the state before the first step: He normal weights, statistics of mean 0 and variance 1."""

    def weights(*sizes: int) -> tj.dlarray:
        deviation = (2 / np.prod(sizes[1:])) ** 0.5
        return tj.dlarray(rng.normal(0, deviation, sizes).astype(np.float32))

    def numbers(value: float, count: int) -> tj.dlarray:
        return tj.dlarray(np.full(count, value, np.float32))

    params: Params = {}
    statistics: Statistics = {}
    for block, (inputs, outputs) in enumerate(pairwise(CHANNELS)):
        params[f"convolution {block}"] = {
            "weights": weights(outputs, inputs, 3, 3),
            "bias": numbers(0, outputs),
        }
        params[f"normalization {block}"] = {"offset": numbers(0, outputs), "scale": numbers(1, outputs)}
        statistics[f"normalization {block}"] = numbers(0, outputs), numbers(1, outputs)
    pixels = (SIDE // 2 ** len(statistics)) ** 2
    params["output"] = {"weights": weights(CLASSES, CHANNELS[-1] * pixels), "bias": numbers(0, CLASSES)}
    zeros = tj.tree.map(tj.zeros_like, params)
    return params, statistics, zeros, zeros, tj.dlarray(np.float32(1))


def model(
    params: Params, statistics: Statistics, x: tj.dlarray, *, training: bool
) -> tuple[tj.dlarray, Statistics]:
    """Return a score for each class of images x, which are 'BCSS', and the statistics."""
    updated = {}
    decay = {"mean_decay": DECAY, "variance_decay": DECAY} if training else {}
    for block, (mean, variance) in statistics.items():
        x = tj.dlconv(x, **params[block.replace("normalization", "convolution")], padding="same")
        found = tj.batchnorm(x, **params[block], mean=mean, variance=variance, **decay)
        x, *updated[block] = found if training else (found, mean, variance)
        x = tj.maxpool(tj.relu(x), 2, stride=2)
    return tj.fullyconnect(x, **params["output"]), {block: tuple(pair) for block, pair in updated.items()}


@tj.dlaccelerate
def train_step(state: State, x: tj.dlarray, targets: tj.dlarray, steps: int) -> tuple[tj.dlarray, State]:
    """Return the loss of a mini-batch and the state after one step of Adam, of `steps` in all."""
    params, statistics, avg_g, avg_sq_g, iteration = state
    scores, statistics = model(params, statistics, x, training=True)
    loss = tj.crossentropy(scores, targets, from_logits=True)
    gradients = tj.dlgradient(loss, params)
    rate = RATE / 2 * (1 + tj.cos(np.pi * iteration / steps))
    params, avg_g, avg_sq_g = tj.adamupdate(params, gradients, avg_g, avg_sq_g, iteration, rate)
    return loss, (params, statistics, avg_g, avg_sq_g, iteration + 1)


@tj.dlaccelerate
def scores(params: Params, statistics: Statistics, x: tj.dlarray) -> tj.dlarray:
    """Return a score for each class of images x."""
    return model(params, statistics, x, training=False)[0]


def as_images(rows: tj.dlarray) -> tj.dlarray:
    """Return rows of pixels, which are 'BC', as images."""
    return tj.dlarray(tj.extractdata(rows).reshape(-1, 1, SIDE, SIDE), "BCSS")


def accuracy(state: State, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images that the network reads correctly."""
    found = scores(state[0], state[1], as_images(tj.dlarray(images, "BC")))
    return float(np.mean(tj.onehotdecode(found, CLASSES) == labels))


@dataclass(frozen=True)
class ConvolutionReport:
    """The results of a run of the example."""

    step_s: float
    kernels: int
    test_accuracy: float

    def __str__(self) -> str:
        return (
            f"{'convolutions':<18}{1e3 * self.step_s:>9.3f} ms  a step, {self.kernels} kernels\n"
            f"{'test accuracy':<18}{self.test_accuracy:>12.4f}"
        )


def run(epochs: int = 15, seed: int = 0) -> ConvolutionReport:
    """Train the network for a number of epochs."""
    images, test_images, labels, test_labels = load(seed)
    rng = np.random.default_rng(seed)
    state = init(rng)
    steps = epochs * ceil(len(images) / BATCH)
    seconds = []
    for _ in tqdm(range(epochs), desc="training with convolutions", unit="epoch"):
        for rows, targets in batches(images, labels, rng):
            x = as_images(rows)
            started = time.perf_counter()
            _, state = train_step(state, x, targets, steps)
            seconds.append(time.perf_counter() - started)
    return ConvolutionReport(
        median(seconds), train_step.stats.kernels, accuracy(state, test_images, test_labels)
    )


if __name__ == "__main__":
    report = run()
    print(report)
    sys.exit(0 if report.test_accuracy >= 0.98 else 1)
