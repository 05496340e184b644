# SPDX-License-Identifier: BSD-3-Clause
"""Denormal numbers count as zero while a compiled program runs, and as what they are before and after."""

import numpy as np
import pytest

import tracejit as tj
from tracejit import config

TINY = np.float32(1e-40)


@pytest.fixture
def settings():
    before = config.settings.flush_denormals
    yield config.settings
    config.settings.flush_denormals = before


@pytest.mark.parametrize("flush", [True, False])
def test_denormals_are_flushed_as_set(settings, flush):
    settings.flush_denormals = flush
    double = tj.dlaccelerate(lambda x: x * np.float32(2.0))
    x = tj.dlarray(np.full(40, TINY))
    for _ in range(2):
        double(x)
    assert np.all(tj.extractdata(double(x)) == (0 if flush else np.float32(2) * TINY))


def test_the_control_register_is_restored(settings):
    settings.flush_denormals = True
    half = tj.dlaccelerate(lambda x: x * np.float32(0.5))
    x = tj.dlarray(np.full(40, TINY))
    for _ in range(3):
        half(x)
    assert np.float32(TINY) * np.float32(0.5) > 0


@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_denormals(settings, flush, dtype):
    """They are those of 0 or of the number itself, nothing in between."""
    settings.flush_denormals = flush
    tiny = np.finfo(dtype).tiny
    x = np.array([tiny / 3, -tiny / 3, tiny / 1024, 0.0, -0.0, tiny, 8.0, np.inf, np.nan], dtype)
    counted = np.where(abs(x) < tiny, np.copysign(dtype(0), x), x) if flush else x
    for function in (
        np.cbrt,
        np.frexp,
        lambda x: abs(x) ** -0.5,
        lambda x: abs(x) ** (1 / 3),
        lambda x: abs(x) ** 1.5,
    ):
        with np.errstate(all="ignore"):
            want, own = (tj.tree.flatten(function(numbers))[0] for numbers in (counted, x))
        step = tj.dlaccelerate(function)
        for _ in range(3):
            found = step(tj.dlarray(x))
        for have, wanted, of_number in zip(tj.tree.flatten(found)[0], want, own, strict=True):
            # A loop of NumPy's looks at bits, and so sees the number itself.
            taken = np.where(tj.extractdata(have) == of_number, of_number, wanted)
            np.testing.assert_allclose(tj.extractdata(have), taken, rtol=4 * np.finfo(dtype).eps)
