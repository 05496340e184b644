# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions and the only readers of their results become one launch."""

from typing import Any

import numpy as np
import pytest
from convolved import ORDERS, WEIGHTS, bent, normalised, operands
from programs import program_of

import tracejit as tj
from tracejit.program import Program

CLOSE = {"rtol": 1e-4}


def names(program: Program) -> list[str]:
    """Return the names of the kernels that compute something, without their hashes."""
    found = dict.fromkeys(row.kernel.name.rpartition("_")[0] for row in program.rows)
    return [name for name in found if name not in ("transpose", "copy", "add_sqrt_mul")]


@pytest.mark.parametrize(
    ("order", "filters", "kernel"),
    [
        ("BSSC", 20, "laid_out"),
        ("BCSS", 5, "laid_out"),
        ("BSSC", 16, "windows"),
        ("BSSC", 24, "windows"),
        ("BCSS", 64, "winograd"),
    ],
)
def test_normalisation_and_activation_join_a_convolution(order: str, filters: int, kernel: str) -> None:
    channels = 20 if order == "BCSS" else 3
    arrays = operands(order, filters, channels)
    # Small results of Winograd's method have the error of the large ones beside them.
    rtol = 1e-3 if kernel == "winograd" else 1e-4
    assert names(program_of(normalised(order), *arrays, rtol=rtol))[-1] == f"{kernel}_sub_mul_relu"
    assert names(program_of(bent(order), *arrays, rtol=rtol))[-1] == f"{kernel}_greater_tanh_where"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("groups", [1, 2])
def test_filters_of_groups(order: str, groups: int) -> None:
    arrays = operands(order, 10, groups=groups)

    def layer(x: Any, w: Any, b: Any, scale: Any, *others: Any) -> Any:
        y = tj.dlconv(x, w, b, groups=groups, data_format=order, weights_format=WEIGHTS)
        return tj.relu(tj.batchnorm(y, b, scale, b, scale * scale, data_format=order))

    assert any(name.endswith("sub_mul_relu") for name in names(program_of(layer, *arrays, **CLOSE)))


def test_results_that_are_used_again_stay_in_memory() -> None:
    arrays = operands("BSSC", 20)
    layer = normalised("BSSC")

    def twice(x: Any, w: Any, b: Any, offset: Any, *others: Any) -> Any:
        y = tj.dlconv(x, w, b, data_format="BSSC", weights_format=WEIGHTS)
        return tj.relu(y), y.sum(axis=0)

    def given_back(x: Any, w: Any, b: Any, offset: Any, *others: Any) -> Any:
        y = tj.dlconv(x, w, b, data_format="BSSC", weights_format=WEIGHTS)
        return tj.relu(y), y

    for function in (twice, given_back):
        assert "laid_out" in names(program_of(function, *arrays, **CLOSE))
    assert names(program_of(lambda *given: layer(*given) * 2, *arrays, **CLOSE)) == ["laid_out_sub_mul_relu"]


def test_loops_that_do_more_stay_apart() -> None:
    """They add up what they compute, read other images or numbers of another kind, or write elsewhere."""
    x, w, b, *_ = operands("BSSC", 20)
    other = np.ones((2, 5, 6, 20), np.float32)

    def conv(x: Any, w: Any, b: Any) -> Any:
        return tj.dlconv(x, w, b, padding="same", data_format="BSSC", weights_format=WEIGHTS)

    for function in (
        lambda x, w, b, other: tj.relu(conv(x, w, b)).sum(axis=(0, 1, 2)),
        lambda x, w, b, other: tj.relu(conv(x, w, b) + other),
        lambda x, w, b, other: conv(x, w, b) > 0,
        lambda x, w, b, other: tj.relu(conv(x, w, b)[1:]),
        lambda x, w, b, other: tj.relu(conv(x, w, b)) + other[:, :1, :1, :1],
        lambda x, w, b, other: tj.relu(conv(x, w, b)).transpose(0, 3, 1, 2) * 2,
        lambda x, w, b, other: tj.concatenate([tj.relu(conv(x, w, b)), other], axis=3),
        lambda x, w, b, other: conv(x, w, b).astype(np.float64),
    ):
        found = names(program_of(function, x, w, b, other, **CLOSE))
        assert "laid_out" in found, found


def test_double_numbers_stay_apart() -> None:
    arrays = [array.astype(np.float64) for array in operands("BSSC", 20)]
    assert names(program_of(normalised("BSSC"), *arrays)) == ["laid_out", "sub_mul_relu"]


def test_the_convolution_runs_before_what_it_reads_is_overwritten() -> None:
    x, w, b, *_ = operands("BSSC", 20)

    @tj.dlaccelerate
    def step(x: Any, w: Any, b: Any) -> Any:
        y = tj.dlconv(x, w, b, padding="same", data_format="BSSC", weights_format=WEIGHTS)
        w *= 0.5
        return tj.relu(y * w.sum())

    for _ in range(4):
        written = w.copy()
        expected = np.maximum(
            np.asarray(tj.dlconv(x, w, b, padding="same", data_format="BSSC", weights_format=WEIGHTS))
            * (w * 0.5).sum(),
            0,
        )
        found = step(x, written, b)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(written, w * 0.5)
