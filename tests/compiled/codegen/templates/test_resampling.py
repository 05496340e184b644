# SPDX-License-Identifier: BSD-3-Clause
"""Compiled sums along two axes against their reference."""

import random

import effort
import numpy as np
from resamplings import resampling_of

from tracejit.ir import evaluate
from tracejit.pipeline import build
from tracejit.runtime.cpu import CpuExecutable


def test_random_sums() -> None:
    for seed in range(effort.sweep(6, 200, sample=3)):
        graph, arrays = resampling_of(random.Random(seed), ("float32", "float64")[seed % 2])
        for have, want in zip(CpuExecutable(build(graph))(arrays), evaluate(graph, arrays), strict=True):
            np.testing.assert_array_equal(have, want, strict=True)
