# SPDX-License-Identifier: BSD-3-Clause
"""ctc, compiled: against PyTorch, without a kernel for each size, and alike on any number of threads."""

from typing import Any

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import config


def step(scores: Any, labels: Any, lengths: Any, counts: Any) -> Any:
    losses = tj.ctc(
        scores,
        labels,
        lengths,
        counts,
        from_logits=True,
        reduction="none",
        zero_infinity=True,
        data_format="BTC",
    )
    return losses, tj.dlgradient(losses.sum(), scores)


def operands(dtype: str, batch: int, steps: int, classes: int, most: int) -> list[tj.dlarray]:
    rng = np.random.default_rng(batch)
    arrays = [
        rng.standard_normal((batch, steps, classes)).astype(dtype),
        rng.integers(1, classes, (batch, most)),
        rng.integers(steps // 2, steps + 1, batch),
        rng.integers(0, most + 1, batch),
    ]
    return [tj.dlarray(array) for array in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients_are_those_of_pytorch(dtype: str) -> None:
    torch = pytorch()
    accelerated = tj.dlaccelerate(step, confirm=0)
    kernels = []
    for sizes in ((37, 30, 12, 9), (21, 50, 12, 13), (1, 2, 2, 1)):
        arrays = operands(dtype, *sizes)
        for _ in range(2):
            found, gradient = accelerated(*arrays)
        kernels.append(accelerated.stats.kernels)
        scores, labels, lengths, counts = (torch.tensor(np.asarray(x)) for x in arrays)
        scores.requires_grad_()
        logs = torch.log_softmax(scores.transpose(0, 1), 2)
        wanted = torch.nn.functional.ctc_loss(
            logs, labels, lengths, counts, reduction="none", zero_infinity=True
        )
        wanted.sum().backward()
        tolerance = 2e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(found, wanted.detach(), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(gradient, scores.grad, rtol=tolerance, atol=tolerance)
    assert kernels[0] == kernels[1]


def test_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = operands("float32", 100, 60, 20, 10)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(config.settings, "threads", threads)
        accelerated = tj.dlaccelerate(step, confirm=0)
        for _ in range(2):
            result = accelerated(*arrays)
        found.append([np.asarray(x).copy() for x in result])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
