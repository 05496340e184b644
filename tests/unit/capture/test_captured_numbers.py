# SPDX-License-Identifier: BSD-3-Clause
"""Numbers at places (attributes, items, names) that vary: inputs of traces, and stored like arrays."""

import functools
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from counting_programs import body, made, state
from effort import by_turns, sweep

import tracejit as tj

X = np.array([1.0, -2.0, 0.5])


def plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, tj.dlarray) else value


def check_same(have: Any, want: Any) -> None:
    """Compare numbers by type and value, arrays by elements."""
    if isinstance(want, (list, tuple)):
        assert type(have) is type(want)
        for mine, theirs in zip(have, want, strict=True):
            check_same(mine, theirs)
        return
    if type(want) in (int, float, np.float32):
        assert type(have) is type(want)
    np.testing.assert_allclose(plain(have), want, rtol=1e-12, atol=1e-13)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("seed", "checks"), by_turns(range(sweep(50, 2000, sample=20)), ["none", "tolerance"])
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs(seed: int, checks: str) -> None:
    """As Python does, in recordings and replays, and nothing runs uncompiled."""
    function, o, names = made(seed)
    accelerated, mine, others = made(seed, tj.dlaccelerate(check_mode=checks))
    rng = np.random.default_rng(seed)
    for _ in range(12):
        x = rng.normal(size=3)
        try:
            want = function(x.copy())
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                accelerated(x.copy())
            break
        check_same(accelerated(x.copy()), want)
        check_same(state(mine, others), state(o, names))
    else:
        assert accelerated.stats.hits >= 2, "\n".join(body(seed))
    assert not accelerated.stats.uncompiled


class Ring:
    """A buffer of the last observations."""

    def __init__(self, rows: int) -> None:
        self.rows, self.at, self.rate = np.zeros((rows, 3)), 0, 0.5

    @tj.dlaccelerate(audit=False)
    def put(self, x: Any) -> Any:
        """Put an observation over the oldest one."""
        self.rows[self.at % len(self.rows)] = x
        self.at += 1
        return x * self.rate


def test_a_ring_buffer_has_one_trace() -> None:
    ring, rows = Ring(4), np.zeros((4, 3))
    for call in range(12):
        rows[call % 4] = X * call
        ring.put(X * call)
        np.testing.assert_array_equal(ring.rows, rows)
        assert type(ring.at) is int and ring.at == call + 1
    assert (ring.put.stats.traces, ring.put.stats.hits) == (3, 9)


def test_numbers_that_are_set_outside_are_read_again() -> None:
    ring = Ring(4)
    for call in range(12):
        ring.rate = 0.1 * call
        ring.at = 3 * call
        np.testing.assert_allclose(plain(ring.put(X)), 0.1 * call * X, rtol=1e-15)
        np.testing.assert_array_equal(ring.rows[3 * call % 4], X)
    assert ring.put.stats.hits >= 6 and not ring.put.stats.uncompiled


def test_two_objects_have_a_number_each() -> None:
    first, second = Ring(2), Ring(2)
    for call in range(10):
        (first if call % 3 else second).put(X)
    assert (first.at, second.at) == (6, 4)


def test_another_type_is_recorded_again() -> None:
    ring = Ring(4)
    for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 2, 3, np.float32(0.1), True, 0.6, 10**30):
        ring.rate = rate
        have, want = plain(ring.put(X)), X * rate
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-15)


@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_an_integer_of_more_than_64_bits_is_no_input() -> None:
    ring = Ring(4)
    for call in range(8):
        ring.at = (1 << 63) - 4 + call
        ring.put(X * call)
        assert ring.at == (1 << 63) - 3 + call
        np.testing.assert_array_equal(ring.rows[((1 << 63) - 4 + call) % 4], X * call)


def test_an_error_leaves_the_number_as_it_was() -> None:
    class Steps:
        n = 0

        @tj.dlaccelerate
        def step(self, x: Any, limit: int) -> Any:
            self.n += 1
            if self.n > limit:
                raise ValueError("too many")
            return x * self.n

    steps = Steps()
    for call in range(1, 6):
        assert plain(steps.step(X, 10))[0] == call
    with pytest.raises(ValueError, match="too many"):
        steps.step(X, 3)
    assert type(steps.n) is int and steps.n == 5
    assert plain(steps.step(X, 10))[0] == 6


def test_an_equal_number_is_stored_too() -> None:
    """The recording finds what it puts there, a replay does not."""
    box = {"n": 0}

    def reset(x: Any) -> Any:
        y = x * box["n"]
        box["n"] = 7
        return y

    accelerated = tj.dlaccelerate(reset, audit=False)
    for n in (1, 2, 3, 7, 7, 7, 4, 5):
        box["n"] = n
        assert plain(accelerated(X))[0] == n
        assert box["n"] == 7


def test_a_number_that_a_table_keeps_stays_a_constant() -> None:
    ring = Ring(4)

    @functools.lru_cache
    def rate_of(n: int) -> float:
        return n * 0.5

    accelerated = tj.dlaccelerate(lambda x: x * rate_of(ring.at), audit=False)
    for call in range(10):
        ring.at = call % 3
        assert plain(accelerated(X))[0] == 0.5 * (call % 3)


def test_a_gradient_beside_a_counter() -> None:
    class Adam:
        def __init__(self) -> None:
            self.t, self.m, self.v = 0, np.zeros(3), np.zeros(3)

        def update(self, w: Any, g: Any) -> Any:
            self.t += 1
            self.m = 0.9 * self.m + 0.1 * g
            self.v = 0.999 * self.v + 0.001 * g * g
            return w - 0.1 * (self.m / (1 - 0.9**self.t)) / (np.sqrt(self.v / (1 - 0.999**self.t)) + 1e-8)

    mine, theirs = Adam(), Adam()
    step = tj.dlaccelerate(lambda w: mine.update(w, tj.dlgradient((w**4).sum(), w)), audit=False)
    w, expected = tj.dlarray(X.copy()), X.copy()
    for _ in range(10):
        w, expected = step(w), theirs.update(expected, 4 * expected**3)
        np.testing.assert_allclose(plain(w), expected, rtol=1e-12)
    assert (mine.t, step.stats.uncompiled) == (10, 0) and step.stats.hits >= 6


def test_what_explain_says() -> None:
    ring = Ring(4)
    for _ in range(5):
        ring.put(X)
    assert "self.at is" not in ring.put.explain()


def test_threads_with_objects_of_their_own() -> None:
    rings = [Ring(4) for _ in range(3)]

    def work(ring: Ring) -> None:
        for _ in range(20):
            ring.put(X)

    threads = [threading.Thread(target=work, args=(ring,)) for ring in rings]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [ring.at for ring in rings] == [20, 20, 20]
