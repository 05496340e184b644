# SPDX-License-Identifier: BSD-3-Clause
"""Draws of random numbers while other threads run: only draws of these threads keep a recording from being kept."""

import random
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@pytest.fixture(autouse=True)
def _idle_thread() -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield
    done.set()
    thread.join()


def texts(x: Any, rng: Any) -> Any:
    return [str(rng.choice(["u", "d"])) for _ in range(2)]


def text_then_number(x: Any, rng: Any) -> Any:
    side = rng.choice(["u", "d"])
    return x + rng.normal(), str(side)


def filled_twice(x: Any, rng: Any) -> Any:
    a, b = [1, 2, 3], [4, 5]
    rng.shuffle(a)
    rng.shuffle(b)
    return x * a[0] + b[0]


@pytest.mark.parametrize("function", [texts, text_then_number, filled_twice])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_draws_that_are_not_followed_are_told_once(function: Callable[..., Any], make: Any) -> None:
    accelerated = tj.dlaccelerate(function)
    one, other = make(0), make(0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(8):
            have, want = accelerated(np.ones(2), one), function(np.ones(2), other)
            assert [np.asarray(part).tolist() for part in have] == [
                np.asarray(part).tolist() for part in want
            ]
    assert "another thread" not in str(accelerated.explain())
    stats = accelerated.stats
    assert stats.uncompiled + stats.hits > 0
    assert len([w for w in found if issubclass(w.category, tj.NotAcceleratedWarning)]) == (stats.hits == 0)


def test_draws_that_are_followed_are_replayed() -> None:
    accelerated = tj.dlaccelerate(lambda x, rng: x * rng.normal(size=3) + rng.integers(0, 9))
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(6):
        want = np.ones(3) * other.normal(size=3) + other.integers(0, 9)
        assert np.array_equal(accelerated(np.ones(3), rng), want)
    assert accelerated.stats.hits == 4


@pytest.mark.parametrize("make", [np.random.default_rng, random.Random])
def test_a_recording_in_which_another_thread_draws_is_not_kept(make: Any) -> None:
    disturb = [True]

    def function(x: Any, rng: Any) -> Any:
        first = rng.random()
        if disturb:
            thread = threading.Thread(target=rng.random)
            thread.start()
            thread.join()
        return x + first, x + rng.random()

    accelerated = tj.dlaccelerate(function)
    one, other = make(0), make(0)
    for _ in range(5):
        assert np.array_equal(accelerated(np.zeros(2), one), function(np.zeros(2), other))
        disturb.clear()
    assert accelerated.stats.hits == 2


def test_the_message_names_the_line_of_the_draw() -> None:
    def chosen(x: Any, rng: Any) -> Any:
        side = rng.choice(["u", "u"])
        return x if side == "u" else -x

    accelerated, rng = tj.dlaccelerate(chosen), np.random.default_rng(0)
    line = chosen.__code__.co_firstlineno + 1
    with pytest.warns(
        tj.NotAcceleratedWarning, match=f"which a replay would not do.*beside_threads.py:{line}"
    ):
        for _ in range(4):
            accelerated(np.ones(2), rng)
