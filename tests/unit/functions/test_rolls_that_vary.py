# SPDX-License-Identifier: BSD-3-Clause
"""np.roll by numbers that vary: elements at computed places, in one trace."""

import warnings
from typing import Any

import numpy as np
import pytest
from effort import by_turns

import tracejit as tj

CALLS = 12
KINDS: dict[str, Any] = {
    "int": lambda i: 3 * i - 13,
    "np.int64": lambda i: np.int64(3 * i - 13),
    "np.int16": lambda i: np.int16(3 * i - 13),
    "np.uint8": np.uint8,
    "bool beside": lambda i: i - 2,
    "large": lambda i: (3 * i - 13) * 10**15,
}
# Of an argument x and a number k; self.u is an ndarray and self.n a counter.
ROLLS = {
    "of all": "np.roll(x, k)",
    "along an axis": "np.roll(x, k, axis=1)",
    "along the last axis": "np.roll(x, -k, -1)",
    "along one of one": "np.roll(x[0], k, axis=0)",
    "several axes": "np.roll(x, (k, 2), axis=(0, 1))",
    "opposite": "np.roll(x, (k, -k), axis=(0, 1))",
    "an axis twice": "np.roll(x, (k, k, 1), axis=(1, 1, 0))",
    "one shift of several axes": "np.roll(x, k, axis=(0, 1))",
    "several shifts of all": "np.roll(x, (k, 2))",
    "several shifts of an axis": "np.roll(x, [k, -1], axis=1)",
    "True beside": "np.roll(x, (True, k), axis=(0, 1))",
    "an array of shifts": "np.roll(x, np.array([k, 1]), axis=(0, 1))",
    "an attribute": "np.roll(self.u, k, axis=1)",
    "by names": "np.roll(shift=k, a=self.u)",
    "integers": "np.roll(np.arange(7), k)",
    "what is made": "np.roll(np.zeros(5) + k, k)",
    "nothing": "np.roll(x[:0], k, axis=0)",
    "a counter": "np.roll(x, self.n, axis=1)",
    "an attribute by a counter": "np.roll(self.u, -self.n, axis=1)",
    "a computed place": "np.roll(x, np.argmax(x[0] * np.sin(x[0])), axis=1)",
    "an attribute by a computed place": "np.roll(self.u, np.argmax(x[0] * np.sin(x[0])))",
    "of another roll": "np.roll(np.roll(x, 1, 0), k, 1) - x",
    "in a stencil": "np.roll(x, k, 1) - 2 * x + np.roll(x, -k, 1)",
    "written": "written(np.roll(self.u, k, 0))",
    "state": "kept(self, np.roll(self.u, k, 0) + 1)",
}


def written(y: Any) -> Any:
    y[0] = 0.0
    return y


def kept(owner: Any, y: Any) -> Any:
    owner.u = y
    return y * 2


def grid(roll: str, accelerated: bool) -> Any:
    names: dict[str, Any] = {"np": np, "written": written, "kept": kept}
    exec(f"def step(self, x, k):\n    self.n += 1\n    return {roll}\n", names)
    step = tj.dlaccelerate(names["step"], audit=False) if accelerated else names["step"]

    class Grid:
        def __init__(self) -> None:
            self.u, self.n = np.arange(24.0).reshape(4, 6), 0

    Grid.step = step
    return Grid()


@pytest.mark.parametrize(("roll", "kind"), by_turns([*ROLLS], [*KINDS]))
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_is_recorded_once(roll: str, kind: str, dtype: Any) -> None:
    plain, fast = (grid(ROLLS[roll], accelerated) for accelerated in (False, True))
    for i in range(CALLS):
        x = (np.arange(24).reshape(4, 6) + i).astype(dtype)
        want, have = plain.step(x, KINDS[kind](i)), fast.step(x, KINDS[kind](i))
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(have), want)
    stats = fast.step.stats
    assert stats.hits >= CALLS - 6 and stats.traces <= 6 and not stats.uncompiled


@pytest.mark.parametrize("roll", ["np.roll(x, k, axis=3)", "np.roll(x, (k, 1, 2), axis=(0, 1))"])
def test_errors(roll: str) -> None:
    plain, fast = (grid(roll, accelerated) for accelerated in (False, True))
    for k in range(6):
        with pytest.raises(Exception) as wanted:
            plain.step(np.ones((2, 2)), k)
        with pytest.raises(wanted.type):
            fast.step(np.ones((2, 2)), k)


def test_fractions_are_those_of_numpy() -> None:
    plain, fast = (grid("np.roll(self.u, k)", accelerated) for accelerated in (False, True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(CALLS):
            np.testing.assert_array_equal(fast.step(0.0, 0.75 * i), plain.step(0.0, 0.75 * i))


def test_has_the_derivative_of_the_array() -> None:
    def loss(x: Any, k: Any, w: Any) -> Any:
        y = (np.roll(x, k, axis=1) * w).sum()
        return y, tj.dlgradient(y, x)

    w = np.arange(12.0).reshape(3, 4)
    f = tj.dlaccelerate(loss, audit=False)
    for k in range(8):
        _, gradient = f(tj.dlarray(np.ones((3, 4))), k, w)
        np.testing.assert_array_equal(tj.extractdata(gradient), np.roll(w, -k, axis=1))
    assert (f.stats.traces, f.stats.hits) == (4, 4)


def test_mapped_shifts() -> None:
    x, shifts = np.arange(12.0).reshape(3, 4), np.array([1, 2, 5])

    @tj.dlaccelerate
    def rolled(x: Any, k: Any) -> Any:
        return tj.dlmap(lambda row, by: tj.roll(row, by), over=0)(x, k)

    wanted = np.stack([np.roll(row, by) for row, by in zip(x, shifts, strict=True)])
    for _ in range(4):
        np.testing.assert_array_equal(tj.extractdata(rolled(x, shifts)), wanted)
