# SPDX-License-Identifier: BSD-3-Clause
"""Sums of a million numbers of float32 are about as exact as NumPy's, in any number of loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import config

Step = Callable[..., Any]
SHAPES = [
    (1_000_003,),
    (3, 400_001),
    (333_337, 3),
    (500_009, 2),
    (142_861, 7),
    (10_001, 100),
    (1000, 333, 3),
    (3, 111_112, 3),
    (166_667, 3, 2),
]
STEPS: dict[str, Step] = {
    "from a row": lambda x, c: ((x - c) ** 2).sum(),
    "two sums and a maximum": lambda x, c: ((x - c).sum(), (x * c).sum(), (x - c).max(axis=0)),
    "statistics": lambda x, c: ((x - c).mean(), (x - c).var(), (x - c).std(), np.linalg.norm(x - c)),
    "deviation beside any": lambda x, c: (x.std(), x.any(axis=max(0, x.ndim - 2))),
    "centred": lambda x, c: abs(x - x.mean()).max(axis=0),
    "scaled": lambda x, c: (x / abs(x).sum()).max(axis=max(0, x.ndim - 2)),
    "chosen": lambda x, c: (np.where(x > 0.3, x, c) * c).sum(),
    "of a view": lambda x, c: ((x[..., :2] - c[:2]) ** 2).sum(),
    "of some rows": lambda x, c: ((x[::3] - c[..., : x[::3].shape[-1]]) ** 2).sum(),
    "backwards": lambda x, c: (x[::-1] * c).sum(),
}


def check(step: Step, *arrays: np.ndarray, within: float = 5e-7) -> None:
    accelerated = tj.dlaccelerate(step)
    for _ in range(3):
        found = accelerated(*arrays)
    exact = step(*[array.astype(np.float64) for array in arrays])
    for have, want in zip(tj.tree.flatten(found)[0], tj.tree.flatten(exact)[0], strict=True):
        assert np.max(abs(np.asarray(have).astype(np.float64) - want)) <= within * np.max(want)


def operands(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.random(shape, np.float32), rng.random(shape[-1:], np.float32) / 8


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", STEPS)
def test_a_million_numbers_lose_no_bits(name: str, shape: tuple[int, ...]) -> None:
    check(STEPS[name], *operands(*shape))


@pytest.mark.parametrize("axes", [(0, 2), (0, 1), (1, 2), (-1,)], ids=str)
@pytest.mark.parametrize("shape", [(3, 150_001, 3), (150_001, 2, 3)], ids=str)
def test_sums_over_some_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    check(lambda x, c: ((x - c) ** 2).sum(axes), *operands(*shape))
    check(lambda x, c: (np.maximum(x, 0.5) * c).mean(axes), *operands(*shape))


@pytest.mark.parametrize("columns", range(2, 10))
def test_elements_most_of_which_are_one_number(columns: int) -> None:
    """Roundings of sums of one number all go the same way."""
    for rows in (4000, 150_001):
        x, c = operands(3, rows, columns)
        check(lambda x, c: (np.minimum(x, 0.1) * c).sum((1, 2)), x, c, within=1.5e-6)
        check(lambda x, c: (np.minimum(x, 0.1) * c).sum(), x, c, within=1.5e-6)


@pytest.mark.parametrize("columns", [3, 10])
def test_gradients_that_sum_over_rows(columns: int) -> None:
    x, c = operands(1_000_003, columns)

    def gradient(x: Any, c: Any) -> Any:
        return tj.dlgradient(((x - c) ** 2).sum(), c)

    found = tj.dlaccelerate(gradient)
    for _ in range(3):
        have = found(tj.dlarray(x), tj.dlarray(c))
    want = (2 * (c.astype(np.float64) - x)).sum(axis=0)
    np.testing.assert_allclose(np.asarray(have), want, rtol=1e-6)


@pytest.mark.parametrize("function", [np.exp, np.log1p, np.tanh, np.square, lambda x: np.maximum(x, 0.5)])
def test_ten_million_numbers(function: Step) -> None:
    check(lambda x: (function(x).sum(), function(x).var()), operands(10_000_019)[0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.settings, "threads", threads)
    x, _ = operands(3_000_001)
    check(lambda x: (((x - 0.25) ** 2).sum(), np.exp(x).sum()), x)
