# SPDX-License-Identifier: BSD-3-Clause
"""A small batch compiles what large ones need: parts, bands of sections and tiles compile nothing, on any threads."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.compile.registry import registry
from tracejit.runtime import cpu
from tracejit.runtime.thread_pool import Pool


def layer(x: Any, t: Any, w: Any, b: Any) -> Any:
    """Return the loss of a layer, and its gradients."""
    y = tj.tanh(x @ w + b)
    loss = ((y - t) ** 2).mean()
    return loss, *tj.dlgradient(loss, w, b)


def scaled(x: Any, t: Any, w: Any, b: Any) -> Any:
    """Return a sum of rows and of all elements, and gradients."""
    y = tj.exp(-tj.abs(t * b))
    loss = y.sum() / 3
    return loss, y.sum(axis=0), tj.dlgradient(loss, b)


def arrays(rows: int) -> list[Any]:
    rng = np.random.default_rng(rows)
    shapes = ((rows, 20), (rows, 10), (20, 10), (10,))
    return [tj.dlarray(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Give a number of threads that programs run on meanwhile."""
    pool = None if request.param == 1 else Pool(request.param)
    monkeypatch.setattr(cpu, "pool", lambda code: pool)
    yield request.param
    if pool is not None:
        pool.stop()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("step", "batches"), [(layer, (20, 3000, 33)), (scaled, (7, 60000, 130))])
def test_larger_batches_compile_nothing(step: Callable[..., Any], batches: tuple[int, ...]) -> None:
    function = tj.dlaccelerate(step)
    counts, parts = [], []
    for rows in batches:
        given = arrays(rows)
        before = len(registry)
        for _ in range(4):
            found = function(*given)
        counts.append(len(registry) - before)
        parts.append(function.source().count(", part 2 of "))
        for have, want in zip(found, tj.dlfeval(step, *given), strict=True):
            np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=2e-4, atol=1e-5)
    assert counts[1:] == [0, 0]
    assert parts[0] == 0 < parts[1]
