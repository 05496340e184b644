# SPDX-License-Identifier: BSD-3-Clause
"""A network learns to read handwritten digits; its training step is recorded once, compiled and replayed.

The data are the UCI handwritten digits that scikit-learn brings along: 1797 images of 8 x 8 pixels.
`tracejit demo` runs this file.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import tracejit as tj

BATCH = 32
HIDDEN = 128
CLASSES = 10
COMPARED = 100  # steps that run both uncompiled and accelerated
TOLERANCE = 1e-4  # largest relative difference between their losses

Params = dict[str, dict[str, tj.dlarray]]
State = tuple[Params, Params, Params, tj.dlarray]  # parameters, Adam's two moments, iteration


def init(rng: np.random.Generator) -> State:
    """Return the state before the first step: Glorot uniform weights, biases and moments of zero."""

    def layer(outputs: int, inputs: int) -> dict[str, tj.dlarray]:
        limit = (6 / (inputs + outputs)) ** 0.5
        weights = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        return {"weights": tj.dlarray(weights), "bias": tj.dlarray(np.zeros(outputs, np.float32))}

    params = {"hidden": layer(HIDDEN, 64), "output": layer(CLASSES, HIDDEN)}
    zeros = tj.tree.map(tj.zeros_like, params)
    return params, zeros, zeros, tj.dlarray(np.float32(1))


def model(params: Params, x: tj.dlarray) -> tj.dlarray:
    """Return a score for each class of images x, which are 'BC'."""
    x = tj.relu(tj.fullyconnect(x, **params["hidden"]))
    return tj.fullyconnect(x, **params["output"])


@tj.dlaccelerate
def train_step(state: State, x: tj.dlarray, targets: tj.dlarray) -> tuple[tj.dlarray, State]:
    """Return the loss of a mini-batch and the state after one step of Adam."""
    params, avg_g, avg_sq_g, iteration = state
    loss = tj.crossentropy(model(params, x), targets, from_logits=True)
    gradients = tj.dlgradient(loss, params)
    params, avg_g, avg_sq_g = tj.adamupdate(params, gradients, avg_g, avg_sq_g, iteration)
    # The iteration is an array: a number counts by value, so each would need a trace of its own.
    return loss, (params, avg_g, avg_sq_g, iteration + 1)


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images, test images, training labels and test labels."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    return train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=seed)


def batches(images: np.ndarray, labels: np.ndarray, rng: np.random.Generator):
    """Yield the mini-batches of one epoch, in random order."""
    targets = tj.onehotencode(labels, 1, CLASSES)
    order = rng.permutation(len(images))
    # The last batch is smaller (1437 = 44 x 32 + 29). It is kept: its size selects a second trace, which is
    # recorded once and replayed by the kernels that are compiled already.
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        yield tj.dlarray(images[chosen], "BC"), tj.dlarray(targets[chosen], "BC")


def first_steps(
    images: np.ndarray, labels: np.ndarray, seed: int, *, accelerated: bool
) -> tuple[list[float], list[float]]:
    """Return the losses of the first steps from the start that `seed` gives, and the seconds of each."""
    rng = np.random.default_rng(seed)
    state = init(rng)
    losses: list[float] = []
    seconds: list[float] = []
    train_step.enabled = accelerated
    while True:
        for x, targets in batches(images, labels, rng):
            started = time.perf_counter()
            loss, state = train_step(state, x, targets)
            seconds.append(time.perf_counter() - started)
            losses.append(loss.item())
            if len(losses) == COMPARED:
                train_step.enabled = True
                return losses, seconds


def train(
    images: np.ndarray, labels: np.ndarray, epochs: int, seed: int
) -> tuple[Params, list[float], list[float]]:
    """Return the trained parameters, the loss of each step and the seconds of each."""
    rng = np.random.default_rng(seed)
    state = init(rng)
    losses: list[float] = []
    seconds: list[float] = []
    with tqdm(range(epochs), desc="training", unit="epoch") as progress:
        for _ in progress:
            for x, targets in batches(images, labels, rng):
                started = time.perf_counter()
                loss, state = train_step(state, x, targets)
                seconds.append(time.perf_counter() - started)
                losses.append(loss.item())
            progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return state[0], losses, seconds


def accuracy(params: Params, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images that the network reads correctly."""
    scores = model(params, tj.dlarray(images, "BC"))
    return float(np.mean(tj.onehotdecode(scores, CLASSES) == labels))


def plot(losses: list[float], path: Path) -> None:
    """Write the loss curve as a PNG file."""
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy of the mini-batch", title="tracejit: handwritten digits")
    figure.savefig(path, dpi=120)


@dataclass(frozen=True)
class Report:
    """The results of a run of the example."""

    uncompiled_s: float
    accelerated_s: float
    hit_rate: float
    occupancy: float
    compile_s: float
    kernels: int
    loss_difference: float
    test_accuracy: float
    curve: Path
    source: Path

    @property
    def agrees(self) -> bool:
        """True if accelerated and uncompiled steps gave the same losses."""
        return self.loss_difference <= TOLERANCE

    def __str__(self) -> str:
        rows = [
            ("step uncompiled", f"{1e3 * self.uncompiled_s:.3f} ms", "median"),
            ("step accelerated", f"{1e3 * self.accelerated_s:.3f} ms", "median"),
            ("ratio", f"{self.uncompiled_s / self.accelerated_s:.1f}", ""),
            ("hit rate", f"{self.hit_rate:.1f} %", "calls that were replayed"),
            ("occupancy", f"{self.occupancy:g} %", "two traces: full and last mini-batches"),
            ("compile time", f"{self.compile_s:.2f} s", f"{self.kernels} kernels, once"),
            ("losses differ by", f"{self.loss_difference:.1e}", f"at most, relative, in {COMPARED} steps"),
            ("test accuracy", f"{self.test_accuracy:.4f}", ""),
        ]
        table = "\n".join(f"{name:<18}{value:>12}  {note}".rstrip() for name, value, note in rows)
        return f"{table}\n\n{'loss curve':<18}{self.curve}\n{'emitted source':<18}{self.source}"


def run(epochs: int = 40, out: Path = Path("tracejit-demo"), seed: int = 0) -> Report:
    """Train the network for a number of epochs, and write the loss curve and the emitted source to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    images, test_images, labels, test_labels = load(seed)
    train_step.clear_cache()
    expected, uncompiled = first_steps(images, labels, seed, accelerated=False)
    losses, first = first_steps(images, labels, seed, accelerated=True)
    difference = max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))
    params, losses, accelerated = train(images, labels, epochs, seed)
    curve, source = out / "digits_loss.png", out / "digits_step.py"
    plot(losses, curve)
    source.write_text(train_step.source())
    return Report(
        uncompiled_s=median(uncompiled),
        accelerated_s=median(accelerated),
        hit_rate=train_step.hit_rate,
        occupancy=train_step.occupancy,
        # Two calls record; the third one builds the program and compiles its kernels, then replays.
        compile_s=first[2] - median(accelerated),
        kernels=train_step.stats.kernels,
        loss_difference=difference,
        test_accuracy=accuracy(params, test_images, test_labels),
        curve=curve.resolve(),
        source=source.resolve(),
    )


if __name__ == "__main__":
    report = run()
    print(report)
    sys.exit(0 if report.agrees else 1)
