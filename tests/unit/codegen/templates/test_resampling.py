# SPDX-License-Identifier: BSD-3-Clause
"""Emitted sums along two axes on the Python backend: lanes of places and of channels, and what is compiled."""

import random

import effort
import numpy as np
import pytest
from resamplings import resampling_of

import tracejit as tj
from tracejit.codegen import target
from tracejit.ir import evaluate
from tracejit.pipeline import build
from tracejit.record.recorder import Recorder
from tracejit.runtime.python import PythonExecutable


@pytest.mark.parametrize("vector_bytes", (16, 32, 64))
@pytest.mark.parametrize("seed", range(effort.sweep(8, 200)))
def test_random_sums(seed: int, vector_bytes: int) -> None:
    graph, arrays = resampling_of(random.Random(seed), ("float32", "float64")[seed % 2])
    with target.written_for(vector_bytes):
        program = build(graph)
    for have, want in zip(PythonExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


def kernels_of(*shape: int, format: str = "BCSS", scale: float = 2) -> list[str]:
    """Return the kernels that resize images by lines between elements."""
    x = tj.dlarray(np.ones(shape, np.float32), format)
    with Recorder("resized", accelerating=True) as recorder:
        y = tj.dlresize(recorder.input(x), scale=scale, method="linear")
        recorder.graph.outputs = [recorder.value(y)]
    return sorted({kernel.name for kernel in build(recorder.graph).kernels})


def test_other_sizes_need_no_other_kernel() -> None:
    first = kernels_of(2, 3, 8, 9)
    assert kernels_of(1, 2, 40, 90) == first == kernels_of(1, 2, 5, 7, scale=3.3)
    assert kernels_of(2, 8, 9, 40, format="BSSC") == kernels_of(2, 5, 6, 60, format="BSSC")


def test_lines_that_leave_the_near_caches_are_resized_axis_by_axis() -> None:
    (name,) = kernels_of(1, 1, 2, 8192)
    assert name.startswith("resample_planes")
    assert [name.rpartition("_")[0] for name in kernels_of(1, 1, 2, 8193)] == ["resample", "resample_last"]
