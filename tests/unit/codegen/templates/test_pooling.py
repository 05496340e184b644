# SPDX-License-Identifier: BSD-3-Clause
"""Emitted max pooling on the Python backend: windows side by side, channels side by side, and what is compiled."""

import random

import effort
import numpy as np
import pytest
from poolings import pooling_of

from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.ir import Builder, Graph, evaluate
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable


@pytest.mark.parametrize("vector_bytes", (16, 32, 64))
@pytest.mark.parametrize("seed", range(effort.sweep(8, 200)))
def test_random_windows(seed: int, vector_bytes: int) -> None:
    graph, arrays = pooling_of(random.Random(seed), ("float32", "float64")[seed % 2])
    with target.written_for(vector_bytes):
        program = build(graph)
    for have, want in zip(PythonExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


def kernels_of(shape: tuple[int, ...]) -> set[str]:
    """Return the kernels of max pooling by windows of 3 x 3 along the axes 1 and 2, and of its adjoint."""
    b = Builder(Graph())
    params = {"axis": 1, "size": (3, 3), "stride": (2, 2), "padding": ((1, 1), (1, 1))}
    y, place = b.maxpool(b.input(Aval(shape, None, np.dtype(np.float32))), **params)
    b.graph.outputs = [b.maxpool_adjoint(y, place, shape=shape, **params)]
    return {kernel.name for kernel in build(b.graph).kernels}


def test_other_sizes_need_no_other_kernel() -> None:
    first, last = kernels_of((6, 8, 9)), kernels_of((2, 8, 9, 70))
    assert kernels_of((7, 6, 40)) == first == kernels_of((1, 90, 3))
    assert kernels_of((3, 6, 40, 90)) == last != first
