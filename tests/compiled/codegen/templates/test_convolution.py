# SPDX-License-Identifier: BSD-3-Clause
"""Compiled convolutions against their references, with more filters than a vector has lanes, and fewer."""

import random
import re
from collections.abc import Callable

import convolved
import effort
import numpy as np
import pytest
from convolutions import assert_same, channelwise_of, graph_of, operands_of

import tracejit as tj
from tracejit.pipeline import build
from tracejit.runtime.cpu import CpuExecutable

LABELS = {
    "channels first": ("BCSS", "UCSS", "BUSS"),
    "channels last": ("BSSC", "SSCU", "BSSU"),
    "images last": ("SSCB", "SSCU", "SSUB"),
}


@pytest.mark.parametrize("order", LABELS)
def test_convolutions(order: str) -> None:
    rnd = random.Random(order)
    dtype = "float64" if order == "images last" else "float32"
    few = 2 if order == "channels first" else 1
    for seed in range(effort.sweep(few, 60, sample=1)):
        operands = operands_of(rnd, (16,), (40,), LABELS[order])
        graph, arrays = graph_of(operands, dtype, seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.slow
def test_few_filters() -> None:
    rnd = random.Random(0)
    for seed in range(effort.sweep(2, 60, sample=1)):
        operands = operands_of(rnd, (1, 3), (5,), LABELS["channels first"])
        graph, arrays = graph_of(operands, "float32", seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.parametrize("order", LABELS)
def test_windows_laid_out(order: str) -> None:
    """Of filters that leave lanes unused, the lanes are windows; squares of channels are turned, others gathered."""
    rnd = random.Random(order)
    for seed in range(effort.sweep(2, 60, sample=1)):
        operands = operands_of(rnd, (1, 3, 20), (1, 20), LABELS[order], strides=(1,))
        graph, arrays = graph_of(operands, ("float32", "float64")[seed % 2], seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)


@pytest.mark.parametrize("order", ["BSSC", "BCSS"])
@pytest.mark.parametrize(("filters", "channels"), [(5, 20), (20, 3), (24, 3), (64, 3), (20, 20), (64, 20)])
@pytest.mark.parametrize("layer", [convolved.normalised, convolved.bent])
def test_epilogues(
    order: str, filters: int, channels: int, layer: Callable[[str], convolved.Function]
) -> None:
    arrays = convolved.operands(order, filters, channels)
    accelerated = tj.dlaccelerate(layer(order))
    for _ in range(3):
        found = accelerated(*arrays)
    expected = np.asarray(layer(order)(*arrays))
    # Winograd's method: small results have the error of the large ones beside them, which are about 30.
    atol = 1e-4 if min(filters, channels) >= 16 else 2e-5
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-4, atol=atol)
    assert re.search("def (laid_out|windows|winograd)_.*_(relu|where)_", accelerated.source())


def test_channelwise() -> None:
    rnd = random.Random(0)
    for seed in range(effort.sweep(2, 60, sample=1)):
        operands = channelwise_of(rnd)
        graph, arrays = graph_of(operands, ("float32", "float64")[seed % 2], seed)
        assert_same(graph, arrays, CpuExecutable(build(graph))(arrays), operands)
