# SPDX-License-Identifier: BSD-3-Clause
"""The cost of methods that write ndarrays of their object, beside the same methods run by NumPy.

    TRACEJIT_THREADS=2 python -m benchmarks.bench_state [ROUNDS]

Microseconds for a call, medians. The two take turns, round by round, because the speed of a machine varies.
"""

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracejit as tj
from benchmarks.bench_writes import CALL_S, median_us

SIZES = (10, 10_000, 1_000_000)


class State:
    """Weights with a momentum, and a table of values of states and actions."""

    def __init__(self, size: int) -> None:
        self.w = np.zeros(size)
        self.m = np.zeros(size)
        self.q = np.zeros((50, 4))
        self.seen = np.zeros((size, 4))
        self.count = 0

    def descend(self, gradient: Any) -> None:
        """Make a step of descent with momentum."""
        self.m *= 0.9
        self.m += 0.1 * gradient
        self.w -= 0.01 * self.m

    def drift(self, gradient: Any) -> Any:
        """Move the weights, and return a function of them."""
        self.w += gradient
        return np.sqrt(np.abs(self.w)).sum()

    def learn(self, state: int, action: int, reward: float, after: int) -> None:
        """Make a step of Q-learning."""
        self.q[state, action] += 0.1 * (reward + 0.9 * self.q[after].max() - self.q[state, action])

    def remember(self, observation: Any) -> None:
        """Put an observation into a buffer, over the oldest one where it is full."""
        self.seen[self.count % len(self.seen)] = observation
        self.count += 1


class Accelerated(State):
    """The same, accelerated."""

    descend = tj.dlaccelerate(State.descend)
    drift = tj.dlaccelerate(State.drift)
    learn = tj.dlaccelerate(State.learn)
    remember = tj.dlaccelerate(State.remember)


def calls(method: str, size: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a call of NumPy's method, and one of the accelerated method, on states that begin alike."""
    states = State(size), Accelerated(size)
    arguments: tuple[Any, ...] = (np.linspace(-1, 1, 4 if method == "remember" else size),)
    if method == "learn":
        arguments = (3, 1, 0.5, 7)
    methods = [getattr(state, method) for state in states]
    for _ in range(4):
        for call in methods:
            call(*arguments)
    for name in ("w", "m", "q", "seen"):
        np.testing.assert_allclose(getattr(states[1], name), getattr(states[0], name), rtol=1e-12, atol=1e-15)
    first, second = ((lambda call=call: call(*arguments)) for call in methods)
    return first, second


def rows(
    rounds: int, seconds: float = CALL_S, sizes: Sequence[int] = SIZES
) -> list[tuple[str, int, float, float]]:
    """Return what a call of each method costs in NumPy, and accelerated."""
    found = []
    cases = [(method, size) for method in ("descend", "drift", "remember") for size in sizes] + [
        ("learn", 10)
    ]
    for method, size in cases:
        both = calls(method, size)
        times = [[median_us(call, seconds) for call in both] for _ in range(rounds)]
        plain, fast = (statistics.median(part) for part in zip(*times, strict=True))
        found.append((method, size, plain, fast))
    return found


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{'method':10} {'numbers':>9} {'NumPy':>10} {'tracejit':>10} {'ratio':>7}")
    for method, size, plain, fast in rows(rounds):
        print(f"{method:10} {size:9} {plain:10.2f} {fast:10.2f} {plain / fast:7.1f}")


if __name__ == "__main__":
    main()
