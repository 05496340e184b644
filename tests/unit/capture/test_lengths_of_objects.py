# SPDX-License-Identifier: BSD-3-Clause
"""Lengths that a method in Python says, ``len(self.buffer)`` of a replay buffer: numbers that vary."""

import random
import threading
import types
from typing import Any

import numpy as np
import pytest

import tracejit as tj

ROOM, CALLS = 12, 30
HELPER = types.ModuleType("lengths_of_a_user")
exec(
    "def size(b):\n    return len(b)\n\n\ndef places(b, rng):\n    return rng.integers(0, len(b), 4)\n",
    HELPER.__dict__,
)


class Buffer:
    def __init__(self) -> None:
        self.rows, self.n, self.room = np.zeros((ROOM, 2)), 0, ROOM

    def __len__(self) -> Any:
        return min(self.n, self.room)

    def push(self, x: float) -> None:
        self.rows[self.n % self.room] = x
        self.n += 1


class Derived(Buffer):
    """Inherits its length."""


class Deep(Derived):
    def __len__(self) -> Any:
        return super().__len__()


class ByBranch(Buffer):
    def __len__(self) -> Any:
        return self.n if self.n < self.room else self.room


class Counting(Buffer):
    size = 0

    def push(self, x: float) -> None:
        super().push(x)
        self.size = min(self.size + 1, self.room)

    def __len__(self) -> Any:
        return self.size


class OfNumPy(Buffer):
    def __len__(self) -> Any:
        return np.minimum(self.n, self.room)


class Truncating(Buffer):
    def __len__(self) -> Any:
        return int(0.5 * self.n) % self.room + 1


class Holder(Buffer):
    """Asks another object for its length."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Counting()

    def push(self, x: float) -> None:
        super().push(x)
        self.inner.push(x)

    def __len__(self) -> Any:
        return len(self.inner)


BUFFERS = [Buffer, Derived, Deep, ByBranch, Counting, OfNumPy, Truncating, Holder]


def size_of(buffer: Any) -> Any:
    return len(buffer)


# Functions of an agent with a buffer b and a generator rng.
USES = {
    "draws": "i = self.rng.integers(0, len(self.b), 4); return self.b.rows[i].mean()",
    "a choice": "return self.b.rows[self.rng.choice(len(self.b), 4)].mean()",
    "np.random": "return self.b.rows[np.random.randint(0, len(self.b), 4)].mean()",
    "Python's random numbers": "return self.b.rows[random.randrange(len(self.b))].sum()",
    "arithmetic": "return self.b.rows.sum() / len(self.b) + len(self.b) * 2, len(self.b) - 1",
    "a type": "n = len(self.b); return n, isinstance(n, int), isinstance(n, float)",
    "a local name": "b = self.b; n = len(b); return b.rows[self.rng.integers(n, size=4)].sum() / n",
    "a loop": "t = 0.0\n    for b in self.both:\n        t += b.rows.sum() / len(b)\n    return t",
    "a helper": "return self.b.rows.sum() * size_of(self.b)",
    "another module": "return self.b.rows[HELPER.places(self.b, self.rng)].sum() * HELPER.size(self.b)",
    "a comparison": "return self.w * 2 if len(self.b) < 9 else self.w * len(self.b)",
    "a place": "return self.b.rows[len(self.b) - 1] * 2.0",
    "state": "self.w = self.w + 0.1 * len(self.b); return self.w.sum()",
}


def agent(use: str, kind: type, accelerated: bool) -> Any:
    names: dict[str, Any] = {"np": np, "random": random, "size_of": size_of, "HELPER": HELPER}
    exec(compile(f"def step(self):\n    {USES[use]}\n", f"<{use}>", "exec"), names)
    step = tj.dlaccelerate(names["step"], audit=False) if accelerated else names["step"]

    class Agent:
        def __init__(self) -> None:
            self.b, self.rng, self.w = kind(), np.random.default_rng(0), np.ones(2)
            self.both = [self.b, self.b]

    Agent.step = step
    made = Agent()
    made.names = names
    return made


def outcome(agent: Any, seed: int) -> Any:
    """Return what a call gives as numbers, and the state of the generators after it; or the error that it raises."""
    np.random.seed(seed)
    random.seed(seed)
    try:
        found = agent.step()
    except Exception as error:
        return type(error), str(error)
    numbers = [float(x) for x in (found if type(found) is tuple else np.ravel(found))]
    is_whole = [isinstance(x, int) for x in found] if type(found) is tuple else None
    return numbers, is_whole, np.random.random(), random.random()


def assert_same(have: Any, want: Any) -> None:
    assert have[1:] == want[1:] and (type(want[0]) is list or have == want)
    if type(want[0]) is list:
        np.testing.assert_allclose(have[0], want[0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUFFERS)
@pytest.mark.parametrize("use", [*USES])
def test_varies_in_one_trace(use: str, kind: type) -> None:
    plain, fast = (agent(use, kind, accelerated) for accelerated in (False, True))
    for call in range(CALLS):
        for one in (plain, fast):
            one.b.push(0.5 * call)
        assert_same(outcome(fast, call), outcome(plain, call))
    assert "len" not in fast.names and "len" not in globals() and "len" not in vars(HELPER)
    stats = fast.step.stats
    assert not stats.uncompiled
    assert stats.traces <= 15 and stats.hits >= CALLS - 15, (stats.traces, stats.hits)


@pytest.mark.parametrize(
    "returned",
    ["self.n - 4", "self.n * 1.0", "None", "self.n > 3", "np.float64(self.n)", "np.uint8(self.n)", "10**30"],
)
def test_errors_and_types_are_those_of_python(returned: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def length(self):\n    return {returned}\n", names)

    class Odd(Buffer):
        __len__ = names["length"]

    plain, fast = (agent("a type", Odd, accelerated) for accelerated in (False, True))
    for call in range(12):
        for one in (plain, fast):
            one.b.push(call)
        assert_same(outcome(fast, call), outcome(plain, call))


def test_a_length_is_asked_of_the_class() -> None:
    plain, fast = (agent("arithmetic", Counting, accelerated) for accelerated in (False, True))
    for call in range(10):
        for one in (plain, fast):
            one.b.push(call)
            one.b.__len__ = lambda: 99
        assert_same(outcome(fast, call), outcome(plain, call))


def test_another_len_is_called() -> None:
    plain, fast = (agent("arithmetic", Counting, accelerated) for accelerated in (False, True))
    for call in range(16):
        for one in (plain, fast):
            one.b.push(call)
            if call == 8:
                one.names["len"] = lambda x: 7
        assert_same(outcome(fast, call), outcome(plain, call))


def test_the_buffer_of_an_agent_runs_compiled_from_the_start() -> None:
    class Memory(Buffer):
        def __init__(self) -> None:
            super().__init__()
            self.rng = np.random.default_rng(0)

        @tj.dlaccelerate
        def train(self) -> Any:
            return self.rows[self.rng.integers(0, len(self), 8)].mean()

    memory = Memory()
    for i in range(200):
        memory.push(i)
        memory.train()
    # Two lengths, their confirmations as inputs, the branch of min(), and audits.
    assert memory.train.stats.uncompiled == 0 and memory.train.stats.hits >= 188


def test_threads_that_record_at_once() -> None:
    """The name stands for another function in the module of all threads, which none of them takes for a change."""

    class Agent:
        def __init__(self) -> None:
            self.b, self.w = Counting(), 0.5

        @tj.dlaccelerate
        def step(self, x: Any) -> Any:
            self.w += 0.5
            return x.sum() * len(self.b) + self.w

    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        agent, results = Agent(), []
        for call in range(20):
            agent.b.push(call)
            results.append(float(agent.step(np.full(2, 0.5 * number))))
        found[number] = results

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert found[number] == [number * min(n, ROOM) + 0.5 + 0.5 * n for n in range(1, 21)]
    assert "len" not in globals()
