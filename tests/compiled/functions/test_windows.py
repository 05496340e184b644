# SPDX-License-Identifier: BSD-3-Clause
"""Parts of arrays by numbers that vary, in compiled programs."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlgradient

A = np.arange(40.0, dtype=np.float32).reshape(10, 4)


def test_rows_and_windows():
    fun = dlaccelerate(lambda x, i, j: (x[i], x[i : i + 3] * 2, x[:, j], x[i, j : j + 2]), audit=False)
    for i in range(-10, 10):
        for j in (0, 1, 2):
            for found, expected in zip(fun(dlarray(A), i, j), fun.function(A, i, j), strict=True):
                np.testing.assert_array_equal(tj.extractdata(found), expected, strict=True)
    assert fun.stats.hits >= 45


def test_an_index_out_of_range():
    def fun(x, i):
        x[i] = -1
        return x[i - 1] + x[i]

    accelerated = dlaccelerate(fun)
    for i in (1, 2, 3, 4, 5):
        accelerated(A.copy(), i)
    x = A.copy()
    with pytest.raises(tj.BoundsError, match="an index is out of range in a replay of"):
        accelerated(x, 10)
    np.testing.assert_array_equal(x, A)


def test_batches():
    def step(w, x, y, i):
        loss = ((x[i : i + 4] @ w - y[i : i + 4]) ** 2).mean()
        return loss, w - 1e-4 * dlgradient(loss, w)

    fun = dlaccelerate(step, audit=False)
    y, w = A.sum(1), np.zeros(4, np.float32)
    expected = w
    for i in [*range(0, 10, 4)] * 20:
        _, w = fun(w, A, y, i)
        part = A[i : i + 4]
        expected = expected - 1e-4 * 2 * (part @ expected - y[i : i + 4]) @ part / len(part)
    np.testing.assert_allclose(tj.extractdata(w), expected, rtol=1e-4)
    assert fun.stats.traces <= 8 and fun.stats.hits >= 52
