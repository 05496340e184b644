# SPDX-License-Identifier: BSD-3-Clause
"""Functions with loops and branches that are run on a device, a real one or the stand-in, and compared with the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
from device_cases import agree

import tracejit as tj
from tracejit.traces.device_replay import DeviceReplay

Function = Callable[..., Any]


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def cumulated(w: Any, h: Any, xs: Any) -> Any:
    return tj.dlscan(lambda h, x: (tj.tanh(h @ w + x),) * 2, h, xs)


def gradients(w: Any, h: Any, xs: Any) -> Any:
    last, ys = cumulated(w, h, xs)
    loss = (ys**2).sum() + last.sum()
    return loss, *tj.dlgradient(loss, w, h, xs)


def backwards(xs: Any) -> Any:
    return tj.dlscan(lambda c, x: (c + x, c * x), xs[0] * 0, xs, reverse=True)


def root(x: Any) -> Any:
    return tj.dlwhile(lambda s: (s * s - 2.0).max() > 1e-4, lambda s: 0.5 * (s + 2.0 / s), x)


def counted(x: Any, n: Any) -> Any:
    return tj.dlwhile(lambda s: s[1] < n, lambda s: (tj.tanh(s[0]), s[1] + 1.0), (x, n * 0))


def branch(x: Any) -> Any:
    return tj.dlcond(x.sum() > 0, tj.exp, lambda x: x * 2, x)


def nested(xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        c = tj.dlcond(c.sum() > 3, lambda c: c * 0.5, lambda c: c + x, c)
        c = tj.dlwhile(lambda s: s.sum() < 2.0, lambda s: s + 0.5, c)
        return c, c

    return tj.dlscan(body, xs[0] * 0, xs)


def table(xs: Any) -> Any:
    """A scan in a scan."""

    def row(c: Any, x: Any) -> Any:
        return tj.dlscan(lambda d, y: (d * 0.5 + y, d), c, x)

    return tj.dlscan(row, xs[0, 0] * 0, xs)


def while_in_branch(x: Any) -> Any:
    def loop(x: Any) -> Any:
        return tj.dlwhile(lambda s: abs(s).sum() < 20.0, lambda s: s * 2, x)

    return tj.dlcond(x.sum() > 0, loop, lambda x: x * 3, x)


def indexed(xs: Any, i: Any) -> Any:
    return tj.dlscan(lambda c, k: (c + xs[k], c.sum()), xs[0] * 0, i)


CASES: list[tuple[Function, list[np.ndarray]]] = [
    (cumulated, [normal(3, 3), normal(2, 3), normal(6, 2, 3)]),
    (cumulated, [normal(8, 8), normal(4, 8), normal(5, 4, 8)]),
    (gradients, [normal(3, 3), normal(2, 3), normal(6, 2, 3)]),
    (
        gradients,
        [normal(4, 4, dtype="float64"), normal(2, 4, dtype="float64"), normal(3, 2, 4, dtype="float64")],
    ),
    (backwards, [normal(7)]),
    (backwards, [normal(4, 5)]),
    (root, [abs(normal(5)) + 10]),
    (root, [np.full(3, 1.4142135, np.float32)]),
    (counted, [normal(70), np.float32(21.0)]),
    (counted, [normal(7), np.float32(0.0)]),
    (branch, [abs(normal(5))]),
    (branch, [-abs(normal(5))]),
    (nested, [normal(5, 3)]),
    (table, [normal(3, 4, 5)]),
    (while_in_branch, [abs(normal(4))]),
    (while_in_branch, [-abs(normal(4))]),
    (indexed, [normal(4, 3), np.array([3, 0, 2])]),
]


def replay_of(function: Any) -> DeviceReplay:
    replay: DeviceReplay = function.variants()[-1].traces[0].replay
    return replay


def check(function: Function, arrays: list[np.ndarray], calls: int = 4) -> Any:
    """Compare calls on the device with the function in Python; return the accelerated function."""
    want = tj.tree.flatten(tj.dlfeval(function, *map(tj.dlarray, arrays)))[0]
    accelerated = tj.dlaccelerate(function)
    inputs = tj.gpu(arrays)
    for _ in range(calls):
        found = tj.tree.flatten(accelerated(*inputs))[0]
        assert all(array.device == "cuda:0" for array in found)
        agree([np.asarray(array) for array in found], [np.asarray(array) for array in want], scale=1e-4)
    assert replay_of(accelerated).refusal is None
    assert accelerated.hit_rate == 100 * (calls - 2) / calls
    return accelerated
