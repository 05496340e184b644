# SPDX-License-Identifier: BSD-3-Clause
"""Loops over short rows, compiled: other sizes share their kernels."""

import numpy as np

import tracejit as tj
from tracejit.compile.registry import registry


def gradient(x, bias):
    y = tj.tanh(x + bias)
    loss = (y * y).sum()
    return loss, tj.dlgradient(loss, x, bias)


def arrays(rows, columns):
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, columns)), rng.standard_normal(columns)


def test_other_sizes_share_the_kernels():
    function = tj.dlaccelerate(gradient)
    counts = []
    for rows, columns in ((256, 10), (1000, 10), (512, 24)):
        x, bias = (array.astype(np.float32) for array in arrays(rows, columns))
        for _ in range(2):
            loss, _ = function(x, bias)
        counts.append(len(registry))
        np.testing.assert_allclose(loss, (np.tanh(x + bias) ** 2).sum(), rtol=1e-5)
    assert counts[1:] == counts[:1] * 2
