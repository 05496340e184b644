# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions with elementwise functions of their results, in any order of axes, and their operands."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

ORDERS = ("BSSC", "BCSS", "SSCB")
WEIGHTS = "USSC"
Function = Callable[..., Any]


def operands(
    order: str, filters: int, channels: int = 3, images: int = 2, groups: int = 1
) -> list[np.ndarray]:
    """Return images of 5 by 6, filters of 3 by 3, and four numbers for each filter: the last are positive."""
    rng = np.random.default_rng(filters)
    extents = {"B": images, "C": channels * groups}
    spatial = iter((5, 6))
    shape = [extents[label] if label in extents else next(spatial) for label in order]
    sizes = [shape, (filters, 3, 3, channels), *[(filters,)] * 4]
    arrays = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    return [*arrays[:-1], np.abs(arrays[-1]) + np.float32(0.5)]


def normalised(order: str, bias: bool = True) -> Function:
    """Return a layer: a convolution, batch normalisation with known statistics, a rectifier."""

    def layer(x: Any, w: Any, b: Any, offset: Any, mean: Any, variance: Any) -> Any:
        y = tj.dlconv(x, w, b if bias else 0, padding="same", data_format=order, weights_format=WEIGHTS)
        return tj.relu(tj.batchnorm(y, offset, variance, mean, variance, data_format=order))

    return layer


def bent(order: str) -> Function:
    """Return a layer with functions, a number of its own and a condition."""

    def layer(x: Any, w: Any, b: Any, *others: Any) -> Any:
        y = tj.dlconv(x, w, b, padding="same", data_format=order, weights_format=WEIGHTS)
        return tj.where(y > 0, tj.tanh(y) * 0.3, tj.exp(y) - 1)  # without a jump

    return layer
