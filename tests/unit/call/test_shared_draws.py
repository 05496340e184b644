# SPDX-License-Identifier: BSD-3-Clause
"""Draws in call paths of several traces: the numbers and states of the plain function, and each draw made once."""

import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.call import shared_draws
from tracejit.record.generator_states import is_generator, state_of


def is_shared(function: Any) -> bool:
    return any(path.is_shared for path in function._cache.paths)


class Learner:
    """Explores now and then: traces draw "random" only, or "random" and "integers"."""

    def __init__(self) -> None:
        self.rng, self.q, self.s = np.random.default_rng(3), np.zeros((5, 3)), 0

    def step(self) -> Any:
        a = self.rng.integers(3) if self.rng.random() < 0.3 else np.argmax(self.q[self.s])
        t = (self.s + a) % 5
        self.q[self.s, a] += 0.1 * (float(t == 4) + 0.9 * self.q[t].max() - self.q[self.s, a])
        self.s = t
        return self.q[a]


class Wanderer:
    """Draws from three generators, in an order that depends on what it has drawn."""

    def __init__(self) -> None:
        self.rng, self.old, self.own = np.random.default_rng(1), np.random.RandomState(2), random.Random(3)
        self.x = np.zeros(3)

    def step(self) -> Any:
        u = self.rng.random()
        if u < 0.3:
            self.x = self.x + self.old.normal(size=3)
        elif u < 0.6:
            self.x = self.x * self.own.gauss(0.5, 0.1) + self.rng.integers(0, 9, size=3)
        elif self.own.random() < 0.5:
            self.x = self.x - self.rng.standard_normal(3)
        else:
            self.x = self.x - self.rng.standard_normal(3).astype(np.float32)
        return self.x


class Chain:
    """Accepts a proposal or keeps the state: all of its traces draw the same."""

    def __init__(self) -> None:
        self.rng, self.x, self.accepted = np.random.default_rng(5), np.zeros(3), 0

    def step(self) -> Any:
        y = self.x + 0.5 * self.rng.normal(size=3)
        if np.log(self.rng.random()) < 0.5 * (self.x @ self.x - y @ y):
            self.x = y
            self.accepted += 1
        return self.x


class Reseeding:
    """Sets the state of a generator in one of its branches."""

    def __init__(self) -> None:
        self.old, self.x = np.random.RandomState(4), 0.0

    def step(self) -> Any:
        if self.old.random_sample() < 0.1:
            self.old.seed(11)
        self.x = self.x + self.old.standard_normal()
        return self.x


def states(o: Any) -> list[Any]:
    """Return the states of the generators of an object."""
    return [pickle.dumps(state_of(value)) for value in vars(o).values() if is_generator(value)]


OWN = np.random.default_rng(3)
KINDS = [Learner, Wanderer, Chain, Reseeding]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"audit": False}, {"check_mode": "sample", "check_every": 7}], ids=str
)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_states_are_those_of_the_plain_function(kind: Any, options: Any) -> None:
    plain, ours = kind(), kind()
    step = tj.dlaccelerate(ours.step, max_variants=20, **options)
    was_shared = False
    for _ in range(300):
        np.testing.assert_allclose(step(), plain.step(), rtol=1e-13)
        assert states(ours) == states(plain)
        was_shared = was_shared or is_shared(step)
    assert was_shared and step.hit_rate > 85


@pytest.mark.parametrize("kind", [Learner, Chain])
def test_each_draw_is_made_once(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = kind()
    step = tj.dlaccelerate(ours.step, max_variants=20, audit=False)
    for _ in range(300):
        step()
    assert is_shared(step)
    made: list[Any] = []
    original = shared_draws.drawn_array
    monkeypatch.setattr(
        shared_draws,
        "drawn_array",
        lambda generator, *how: (made.append(generator), original(generator, *how))[1],
    )
    misses, explored = step.stats.misses.copy(), 0
    for _ in range(100):
        before = ours.rng.bit_generator.state
        step()
        explored += np.random.Generator(twin_of(before)).random() < 0.3
    assert step.stats.misses == misses
    assert len(made) == (100 + explored if kind is Learner else 200)


def twin_of(state: Any) -> Any:
    twin = np.random.PCG64()
    twin.state = state
    return twin


def test_a_call_that_no_trace_serves_leaves_the_draws_to_the_function() -> None:
    class Rare:
        def __init__(self) -> None:
            self.rng, self.old, self.rate = np.random.default_rng(7), np.random.RandomState(8), 0.5

        def step(self) -> Any:
            u = self.rng.random()
            x = self.old.normal() if u < 0.4 else self.rng.normal() if u < 0.9 else self.rng.integers(100)
            return x * self.rate

    plain, ours = Rare(), Rare()
    step = tj.dlaccelerate(ours.step, audit=False)
    for n in range(400):
        if n % 90 == 89:
            plain.rate = ours.rate = float(n)  # a number that varies from then on
        assert step() == plain.step()
        assert states(ours) == states(plain)
    assert is_shared(step)


def test_an_error_leaves_the_generator_as_the_plain_function_does() -> None:
    class Walk:
        def __init__(self) -> None:
            self.rng, self.q, self.at = np.random.default_rng(9), np.arange(6.0), 0

        def step(self) -> Any:
            if self.rng.random() < 0.5:
                return self.q[self.at] + self.rng.normal()
            return self.q[self.at] * 2

    plain, ours = Walk(), Walk()
    step = tj.dlaccelerate(ours.step, audit=False)
    for n in range(200):
        plain.at = ours.at = n % 6
        assert step() == plain.step()
    assert is_shared(step)
    for _ in range(6):
        plain.at = ours.at = 6
        for each in (step, plain.step):
            with pytest.raises(IndexError):
                each()
        assert states(ours) == states(plain)
        plain.at = ours.at = 2
        assert step() == plain.step()


def test_threads_that_draw_from_one_generator_get_numbers_of_its_sequence() -> None:
    class Coin:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(10)

        def toss(self) -> Any:
            u = self.rng.random()
            return u if u < 0.5 else -u

    ours = Coin()
    toss = tj.dlaccelerate(ours.toss, audit=False)
    known = {float(toss()) for _ in range(200)}
    assert is_shared(toss)

    def work() -> None:
        known.update([float(toss()) for _ in range(200)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sequence = np.random.default_rng(10).random(2000)
    assert {abs(u) for u in known} <= set(sequence.tolist())
    assert all((u < 0) == (abs(u) >= 0.5) for u in known)


@pytest.mark.parametrize(
    "draw", [np.random.random, random.random, lambda: OWN.random()], ids=["old", "Python's", "new"]
)
def test_generators_of_tracejit_beside_others_where_an_attribute_is_assigned(draw: Any) -> None:
    class Noisy:
        def __init__(self) -> None:
            self.n = 0

        def step(self, x: Any) -> Any:
            u = tj.rand(1).sum()
            self.n += 1
            return x + draw() + u

    def started() -> Noisy:
        np.random.seed(3)
        random.seed(3)
        OWN.bit_generator.state = np.random.PCG64(3).state
        tj.rng(3)
        return Noisy()

    plain = started()
    want = [np.asarray(tj.dlfeval(plain.step, np.ones(2))) for _ in range(12)]
    ours = started()
    step = tj.dlaccelerate(ours.step, audit=False)
    np.testing.assert_allclose([np.asarray(step(np.ones(2))) for _ in range(12)], want, rtol=1e-15)
    assert ours.n == 12 and step.hit_rate > 80


def test_what_draws_little_is_tried_first() -> None:
    class Rare:
        def __init__(self) -> None:
            self.rng, self.other = np.random.default_rng(1), np.random.default_rng(2)

        def step(self) -> Any:
            if self.rng.random() < 0.3:
                return self.other.normal(size=500).sum()
            return self.other.normal() + self.rng.normal() + self.rng.normal()

    step = tj.dlaccelerate(Rare().step, audit=False)
    for _ in range(200):
        step()
    shared = next(path for path in step._cache.paths if path.is_shared)
    assert [served.trace.state.drawn_numbers for served in shared.served] == [4, 501]
