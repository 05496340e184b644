# SPDX-License-Identifier: BSD-3-Clause
"""Pooling, normalisation, losses, embedding and resizing compiled: values, kernels for other sizes, threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.compile.registry import registry

FLOAT = np.float32


def images(seed: int, format: str, batch: int, extent: int, channels: int = 4) -> Any:
    sizes = {"B": batch, "C": channels, "S": extent}
    return tj.dlarray(
        np.random.default_rng(seed).normal(size=[sizes[label] for label in format]).astype(FLOAT), format
    )


STEPS: dict[str, Callable[..., Any]] = {
    "maxpool": lambda x: tj.maxpool(x, 2, stride=2),
    "maxpool 3": lambda x: tj.maxpool(x, 3, stride=2, padding=1),
    "avgpool": lambda x: tj.avgpool(x, 2, stride=2),
    "avgpool 3": lambda x: tj.avgpool(x, 3, stride=2, padding=1, padding_value="mean"),
    "adaptiveavgpool": lambda x: tj.adaptiveavgpool(x, 8),
    "batchnorm": lambda x: tj.batchnorm(x, np.ones(4, FLOAT), np.ones(4, FLOAT))[0],
    "groupnorm": lambda x: tj.groupnorm(x, 2, np.ones(4, FLOAT), np.ones(4, FLOAT)),
    "layernorm": lambda x: tj.layernorm(x, np.ones(4, FLOAT), np.ones(4, FLOAT)),
    "crosschannelnorm": lambda x: tj.crosschannelnorm(x, 3),
    "dlresize": lambda x: tj.dlresize(x, scale=2, method="linear"),
    "depthtospace": lambda x: tj.depthtospace(x, 2) * 2,
    "indexcrossentropy": lambda x: tj.indexcrossentropy(
        x, np.zeros(np.delete(x.shape, x.format.index("C")), int), from_logits=True
    ),
    "mish": tj.mish,
}


def gradients(step: Callable[..., Any], x: Any) -> Any:
    y = step(x)
    return y, tj.dlgradient((y * y * y).sum(), x)


@pytest.mark.parametrize("format", ["BCSS", "BSSC"])
@pytest.mark.parametrize("name", STEPS)
def test_other_sizes_compile_nothing(name: str, format: str) -> None:
    """The values and gradients of a step are those of the references, whatever the sizes."""
    compiled = tj.dlaccelerate(lambda x: gradients(STEPS[name], x))
    counts = []
    for batch, extent in ((3, 9), (2, 12), (5, 21), (4, 10), (2, 19)):
        x = images(batch, format, batch, extent)
        before = len(registry)
        for _ in range(4):
            found = compiled(x)
        counts.append(len(registry) - before)
        for have, want in zip(found, tj.dlfeval(lambda x: gradients(STEPS[name], x), x), strict=True):
            scale = abs(tj.extractdata(want)).max()
            np.testing.assert_allclose(
                tj.extractdata(have), tj.extractdata(want), rtol=2e-4, atol=2e-5 * scale
            )
    assert compiled.hit_rate > 0
    assert counts[-2:] == [0, 0]  # odd and even sizes, and means of 2 and of 4 elements, were compiled


def test_embedding() -> None:
    step = tj.dlaccelerate(lambda i, w: (tj.embed(i, w), tj.dlgradient((tj.embed(i, w) ** 2).sum(), w)))
    rng = np.random.default_rng(0)
    counts = []
    for rows, width, count in ((50, 8, 200), (1000, 16, 3000), (7, 40, 5)):
        index, table = rng.integers(0, rows, count), rng.normal(size=(rows, width)).astype(FLOAT)
        before = len(registry)
        for _ in range(4):
            found, gradient = step(index, tj.dlarray(table))
        counts.append(len(registry) - before)
        np.testing.assert_array_equal(tj.extractdata(found), table[index])
        want = np.zeros_like(table)
        np.add.at(want, index, 2 * table[index])
        np.testing.assert_allclose(tj.extractdata(gradient), want, rtol=1e-5)
    assert counts[1:] == [0, 0]


def test_nan_and_infinities() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 10)).astype(FLOAT)
    x[0, 1, 2:5, 3:6] = np.nan
    x[1, 2] = -np.inf
    x[0, 0, 0, 0] = np.inf
    for size, options in (
        (2, {"stride": 2}),
        (3, {"stride": 2, "padding": 1}),
        (3, {}),
        ((1, 4), {"padding": 0}),
    ):
        step = tj.dlaccelerate(
            lambda x, size=size, options=options: tj.maxpool(x, size, return_indices=True, **options)[:2]
        )
        for format, order in (("BCSS", (0, 1, 2, 3)), ("BSSC", (0, 2, 3, 1))):
            given = tj.dlarray(np.ascontiguousarray(x.transpose(order)), format)
            want = tj.maxpool(given, size, return_indices=True, **options)[:2]
            for _ in range(4):
                found = step(given)
            for have, expected in zip(found, want, strict=True):
                np.testing.assert_array_equal(tj.extractdata(have), tj.extractdata(expected))


@pytest.mark.parametrize("extent", [14, 28, 30])
def test_rows_of_one_large_number(extent: int) -> None:
    """A program adds up in another order than NumPy; so rounding makes other variances negative."""
    x = np.repeat(np.geomspace(1e3, 1e9, 300).astype(np.float32)[:, None], extent, 1)
    step = tj.dlaccelerate(
        lambda x: (
            tj.layernorm(x, 0, 1, data_format="BC"),
            tj.groupnorm(x, 1, 0, 1, data_format="BC"),
            tj.instancenorm(x, 0, 1, data_format="CS"),
        )
    )
    for _ in range(3):
        found = step(x)
    for y in found:
        assert (np.abs(tj.extractdata(y)) <= 1e-2).all()


@pytest.mark.parametrize("format", ["BCSS", "BSSC"])
@pytest.mark.parametrize("name", ["maxpool", "maxpool 3", "avgpool 3", "batchnorm", "dlresize"])
def test_large_images_in_parts(name: str, format: str) -> None:
    """Threads share the rows of kernels: the results are those of the references."""
    x = images(1, format, 8, 64)
    compiled = tj.dlaccelerate(lambda x: gradients(STEPS[name], x))
    for _ in range(4):
        found = compiled(x)
    for have, want in zip(found, tj.dlfeval(lambda x: gradients(STEPS[name], x), x), strict=True):
        scale = abs(tj.extractdata(want)).max()
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=2e-4, atol=2e-5 * scale)
