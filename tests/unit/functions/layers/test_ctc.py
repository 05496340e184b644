# SPDX-License-Identifier: BSD-3-Clause
"""ctc: against the sum over all alignments, one by one, and gradients against differences."""

import itertools
import math
from typing import Any

import effort
import numpy as np
import pytest

import tracejit as tj


def loss_of(y: np.ndarray, target: list[int], blank: int) -> float:
    """Return the loss of one observation (steps, classes) by trying each alignment."""
    total = 0.0
    for alignment in itertools.product(range(y.shape[1]), repeat=len(y)):
        kept = [label for label, _ in itertools.groupby(alignment) if label != blank]
        if kept == target:
            total += math.prod(row[label] for row, label in zip(y, alignment, strict=True))
    return -math.log(total) if total else math.inf


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x)
    return powers / powers.sum(-1, keepdims=True)


GRID = list(itertools.product((1, 3), (0, 1, 2, 5), (0, 1, 2, 3), (2, 3)))


@pytest.mark.parametrize("sizes", GRID[:: effort.sweep(3, 1)], ids=str)
@pytest.mark.parametrize("blank", ["first", "last"])
def test_losses_are_those_of_all_alignments(sizes: tuple[int, int, int, int], blank: str) -> None:
    batch, steps, most, classes = sizes
    rng = np.random.default_rng(sum(sizes))
    y = softmax(rng.standard_normal((batch, steps, classes)))
    number = 0 if blank == "first" else classes - 1
    labels = rng.integers(0, classes - 1, (batch, most)) + (number == 0)
    lengths, counts = rng.integers(0, steps + 1, batch), rng.integers(0, most + 1, batch)
    wanted = [
        loss_of(y[i, : lengths[i]], labels[i, : counts[i]].tolist(), number) for i in range(batch)
    ]  # fmt: skip
    y_mask = np.arange(steps) < lengths[:, None]
    target_mask = np.arange(most) < counts[:, None]
    for given in ((y_mask, target_mask), (lengths, counts)):
        found = tj.ctc(y, labels, *given, blank_index=blank, reduction="none", data_format="BTC")
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    finite = np.where(np.isinf(wanted), 0, wanted)
    options: Any = {"blank_index": blank, "zero_infinity": True, "data_format": "BTC"}
    np.testing.assert_allclose(tj.ctc(y, labels, lengths, counts, **options), finite.mean(), atol=1e-12)
    scores = np.log(y) + rng.standard_normal((batch, steps, 1))
    found = tj.ctc(scores, labels, lengths, counts, **options, from_logits=True)
    np.testing.assert_allclose(found, finite.mean(), rtol=1e-10, atol=1e-12)


def test_gradients() -> None:
    rng = np.random.default_rng(0)
    y = softmax(rng.standard_normal((3, 5, 4)))
    labels = np.array([[1, 1, 2], [3, 2, 1], [2, 2, 9]])
    lengths, counts = np.array([5, 4, 5]), np.array([3, 3, 2])
    for from_logits in (False, True):
        tj.testing.check_gradients(
            lambda y, from_logits=from_logits: tj.ctc(
                y, labels, lengths, counts, from_logits=from_logits, data_format="BTC"
            ),
            tj.dlarray(y),
        )


def test_a_target_without_alignments_has_the_gradient_zero() -> None:
    y = tj.dlarray(softmax(np.random.default_rng(1).standard_normal((2, 2, 3))), "BTC")
    labels = np.array([[1, 1], [1, 2]])  # a repeated label needs a blank between
    losses = tj.ctc(y, labels, reduction="none")
    assert tj.dims(losses) == "B"
    assert np.isinf(losses[0].item())
    assert np.isfinite(losses[1].item())
    assert tj.ctc(y, labels).item() == math.inf
    for zero_infinity in (False, True):
        (gradient,) = tj.dlfeval(
            lambda y, zero_infinity=zero_infinity: [
                tj.dlgradient(tj.ctc(y, labels, zero_infinity=zero_infinity), y)
            ],
            y,
        )
        assert not np.asarray(gradient)[0].any()
        assert np.asarray(gradient)[1].any()


def test_labels_in_any_order() -> None:
    y = softmax(np.random.default_rng(2).standard_normal((2, 4, 3)))
    labels = np.array([[1, 2], [2, 1]])
    wanted = tj.ctc(y, labels, data_format="BTC").item()
    for format, order in (("CBT", (2, 0, 1)), ("TBC", (1, 0, 2)), ("BCS", (0, 2, 1))):
        assert tj.ctc(tj.dlarray(y.transpose(order), format), labels).item() == pytest.approx(wanted)
    for given in (tj.dlarray(labels.T, "TB"), tj.dlarray(labels[None], "CBT"), labels.astype(float)):
        assert tj.ctc(y, given, data_format="BTC").item() == pytest.approx(wanted)
    alone = tj.ctc(tj.dlarray(y[0], "TC"), labels[0])
    assert alone.item() == pytest.approx(loss_of(y[0], [1, 2], 0))


def test_accelerated_it_checks_its_targets() -> None:
    def step(y: Any, labels: Any) -> Any:
        loss = tj.ctc(y, labels, data_format="BTC")
        return loss, tj.dlgradient(loss, y)

    accelerated = tj.dlaccelerate(step, confirm=0)
    y = tj.dlarray(softmax(np.random.default_rng(3).standard_normal((18, 4, 3))))
    labels = tj.dlarray(np.random.default_rng(4).integers(1, 3, (18, 2)))
    accelerated(y, labels)
    for have, want in zip(accelerated(y, labels), tj.dlfeval(step, y, labels), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)
    with pytest.raises(tj.BoundsError, match="out of range in a replay of ctc"):
        accelerated(y, labels + 1)


def test_a_second_derivative_is_an_error() -> None:
    y = tj.dlarray(softmax(np.zeros((2, 2))), "TC")
    with pytest.raises(tj.GradientError, match=r"^ctc: there are no second derivatives"):
        tj.dlfeval(lambda y: tj.dlgradient((tj.dlgradient(tj.ctc(y, [1]), y) ** 2).sum(), y), y)
