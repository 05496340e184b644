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
