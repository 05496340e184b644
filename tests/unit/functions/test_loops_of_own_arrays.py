# SPDX-License-Identifier: BSD-3-Clause
"""Loops over arrays that the function makes in each call: constants of the trace, whenever garbage is collected."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj

TIMES = [0.0, 0.5, 1.0]


def made() -> np.ndarray:
    return np.arange(3.0) * 2.0


def scanned(w: Any) -> Any:
    last, ys = tj.dlscan(lambda c, x: (tj.tanh(c * w + x), c), w * 0.1, np.arange(5.0) * 2.0)
    return last.sum() + ys.mean()


def scanned_in_containers(w: Any) -> Any:
    xs = {"t": np.linspace(0, 1, 4), "u": (np.arange(12.0).reshape(4, 3) + 1,)}
    last, _ = tj.dlscan(lambda c, x: (tj.sin(c * w + x["t"] * x["u"][0] + made()), None), made(), xs)
    return last.sum()


def scanned_by_name(w: Any) -> Any:
    t = np.arange(5.0) * 2.0
    last, ys = tj.dlscan(lambda c, x: (tj.tanh(c * w + x * t[3]), c), w * 0.1, t)
    return last.sum() + ys.mean()


LOOPS: dict[str, Callable[[Any], Any]] = {
    "scan": scanned,
    "scan of containers": scanned_in_containers,
    "scan by a name": scanned_by_name,
    "checkpoint": lambda w: tj.dlcheckpoint(lambda x: tj.sin(x * made()))(w).sum(),
    "cond": lambda w: tj.dlcond(w.sum() > 0, lambda: w * made(), lambda: w + made()).sum(),
    "rk4": lambda w: tj.dlrk4(lambda t, y: -y * w * t, TIMES, made(), num_steps=4).sum(),
    "euler": lambda w: tj.dleuler(lambda t, y, w: -y * w * t * made(), TIMES, made(), w, num_steps=4).sum(),
    "ode45": lambda w: tj.dlode45(lambda t, y, w: -y * w * t, TIMES, made() + 1, w).sum(),
}


@pytest.fixture
def _uncollected() -> Iterator[None]:
    """Garbage stays: what only a cycle of references releases is held for good."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_they_are_replayed(name: str, gradient: bool) -> None:
    loss = LOOPS[name]
    fun = (lambda w: tj.dlgradient(loss(w), w)) if gradient else loss
    accelerated = tj.dlaccelerate(fun)
    calls = [tj.dlarray(np.array(w)) for w in ([0.5, 0.6, 0.7], [0.1, 0.4, 0.2])]
    for _ in range(3):
        for w in calls:
            expected = np.asarray(tj.dlfeval(fun, w))
            np.testing.assert_allclose(np.asarray(accelerated(w)), expected, rtol=1e-12)
    assert (accelerated.stats.programs, accelerated.stats.hits) == (1, 4)


def test_a_loop_over_an_array_that_stays_reads_it_in_each_call() -> None:
    kept = np.arange(5.0)
    accelerated = tj.dlaccelerate(lambda c: tj.dlscan(lambda c, x: (c * 0.5 + x, None), c, kept)[0])
    for number in range(4):
        kept[:] = number
        expected = tj.dlscan(lambda c, x: (c * 0.5 + x, None), 1.0, kept)[0]
        assert accelerated(tj.dlarray(1.0)).item() == expected.item()
