# SPDX-License-Identifier: BSD-3-Clause
"""An LSTM tells slow waves from fast ones, in sequences of different lengths.

Sequences are padded to a few lengths (buckets), so that each bucket has one trace, and a mask leaves the padding out.

    python examples/sequence_lstm.py [epochs]
"""

import sys
from typing import Any

import numpy as np
from tqdm import tqdm

import tracejit as tj
from tracejit import nn

BUCKETS = (10, 15, 20)  # steps
BATCH, CHANNELS, CLASSES = 16, 3, 2


def sequences(count: int, rng: np.random.Generator) -> list[tuple[np.ndarray, int]]:
    """Return sequences (steps, channels) of noisy waves, with the class of each: slow or fast."""
    made = []
    for _ in range(count):
        steps, kind = int(rng.integers(6, BUCKETS[-1] + 1)), int(rng.integers(CLASSES))
        phase = rng.uniform(0, 2 * np.pi, CHANNELS)
        wave = np.sin((0.5, 0.9)[kind] * np.arange(steps)[:, None] + phase)
        made.append(((wave + 0.3 * rng.standard_normal(wave.shape)).astype(np.float32), kind))
    return made


def batches(data: list[tuple[np.ndarray, int]], rng: np.random.Generator) -> list[tuple[Any, Any, Any]]:
    """Return mini-batches: sequences padded to the length of their bucket, masks, and targets."""
    result = []
    for low, high in zip((0, *BUCKETS), BUCKETS, strict=False):
        own = [part for part in data if low < len(part[0]) <= high]
        order = rng.permutation(len(own))
        for start in range(0, len(own), BATCH):
            chosen = [own[number] for number in order[start : start + BATCH]]
            x = np.zeros((len(chosen), high, CHANNELS), np.float32)
            mask = np.zeros((len(chosen), high), np.float32)
            for row, (wave, _) in enumerate(chosen):
                x[row, : len(wave)], mask[row, : len(wave)] = wave, 1
            targets = tj.onehotencode(np.array([kind for _, kind in chosen]), 1, CLASSES)
            result.append((tj.dlarray(x, "BTC"), tj.dlarray(mask, "BT"), tj.dlarray(targets, "BC")))
    return [result[number] for number in rng.permutation(len(result))]


def network(seed: int = 0) -> tj.dlnetwork:
    """Return the network before training; its inputs are sequences and masks."""
    net = tj.dlnetwork([nn.SequenceInput(CHANNELS, name="waves")], initialize=False)
    net = net.add_layers(nn.Input((None, None), "BT", name="mask"))
    net = net.add_layers([
        nn.LSTM(32, output_mode="last", has_mask_input=True, name="lstm"), nn.FullyConnected(CLASSES)
    ])  # fmt: skip
    net = net.connect_layers("waves", "lstm/in").connect_layers("mask", "lstm/mask")
    return net.initialize(seed=seed)


@tj.dlaccelerate
def step(
    net: tj.dlnetwork, m: Any, v: Any, iteration: Any, x: Any, mask: Any, targets: Any
) -> tuple[Any, ...]:
    """Return the loss of a mini-batch, and network, moments and iteration after a step of Adam."""
    scores, _ = net.forward(x, mask)  # a new sequence begins with a state of zeros
    loss = tj.crossentropy(scores, targets, from_logits=True)
    net, m, v = tj.adamupdate(net, tj.dlgradient(loss, net.learnables), m, v, iteration, 0.01)
    return loss, net, m, v, iteration + 1


def train(epochs: int = 15, count: int = 512, seed: int = 0) -> tuple[tj.dlnetwork, list[float], float]:
    """Return the trained network, the mean loss of each epoch, and the fraction of new sequences that it tells."""
    rng = np.random.default_rng(seed)
    data, test = sequences(count, rng), sequences(256, rng)
    net = network(seed)
    zeros = tj.tree.map(tj.zeros_like, net.learnables)
    state: Any = (net, zeros, zeros, tj.dlarray(np.float32(1)))
    losses = []
    for _ in tqdm(range(epochs), desc="training", unit="epoch"):
        found = []
        for batch in batches(data, rng):
            loss, *state = step(*state, *batch)
            found.append(loss.item())
        losses.append(float(np.mean(found)))
    right = total = 0
    for x, mask, targets in batches(test, rng):
        scores = np.asarray(state[0].predict(x, mask))
        right += int((scores.argmax(axis=1) == np.asarray(targets).argmax(axis=1)).sum())
        total += len(scores)
    return state[0], losses, right / total


if __name__ == "__main__":
    _, losses, accuracy = train(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    print(f"{len(losses)} epochs, loss {losses[0]:.3f} to {losses[-1]:.3f}, {step.stats.kept} traces")
    print(f"new sequences told apart: {accuracy:.4f}")
