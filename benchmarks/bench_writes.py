# SPDX-License-Identifier: BSD-3-Clause
"""The cost of an optimiser step that writes into its arguments, beside one that returns new arrays.

    TRACEJIT_THREADS=2 python -m benchmarks.bench_writes [ROUNDS]

Microseconds for a call, medians. The two take turns, round by round, because the speed of a machine varies.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

import tracejit as tj

Shapes = Sequence[tuple[int, ...]]
CASES: dict[str, Shapes] = {
    "30": [(30,)],
    "MLP 64-128-10": [(128, 64), (128,), (10, 128), (10,)],
    "400000": [(400_000,)],
    "10 x 40000": [(40_000,)] * 10,
}
CALL_S = 0.02  # a part of a round takes about this long


def new_arrays(params: Any, means: Any, squares: Any, gradients: Any) -> Any:
    """Return the parameters and the moments after a step of Adam."""
    means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients, strict=True)]
    squares = [0.999 * v + 0.001 * g * g for v, g in zip(squares, gradients, strict=True)]
    updates = [1e-3 * m / (np.sqrt(v) + 1e-8) for m, v in zip(means, squares, strict=True)]
    return [p - u for p, u in zip(params, updates, strict=True)], means, squares


def in_place(params: Any, means: Any, squares: Any, gradients: Any) -> None:
    """Write the parameters and the moments after a step of Adam into their arrays."""
    for p, m, v, g in zip(params, means, squares, gradients, strict=True):
        m *= 0.9
        m += 0.1 * g
        v *= 0.999
        v += 0.001 * g * g
        p -= 1e-3 * m / (np.sqrt(v) + 1e-8)


def arrays(shapes: Shapes, seed: int) -> list[tj.dlarray]:
    """Return positive numbers."""
    rng = np.random.default_rng(seed)
    return [tj.dlarray(rng.uniform(0.5, 1.5, shape).astype(np.float32)) for shape in shapes]


def steps(shapes: Shapes) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a call of each step, on states of their own that begin alike."""
    gradients = arrays(shapes, 3)
    new, written = ([arrays(shapes, seed) for seed in range(3)] for _ in range(2))
    returning = tj.dlaccelerate(new_arrays, confirm=0, audit=False)
    writing = tj.dlaccelerate(in_place, confirm=0, audit=False)

    def step_new() -> None:
        new[:] = returning(*new, gradients)

    def step_in_place() -> None:
        writing(*written, gradients)

    for _ in range(3):
        step_new()
        step_in_place()
    for have, want in zip(chain(*written), chain(*new), strict=True):
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(want), rtol=1e-5)
    return step_new, step_in_place


def median_us(step: Callable[[], None], seconds: float) -> float:
    """Return the median time of as many calls as fit in about that long, three at least."""
    times: list[int] = []
    until = time.perf_counter_ns() + int(seconds * 1e9)
    while len(times) < 3 or time.perf_counter_ns() < until:
        started = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / 1e3


def rows(
    rounds: int, seconds: float = CALL_S, cases: Mapping[str, Shapes] = CASES
) -> list[tuple[str, float, float]]:
    """Return what a call costs that returns new arrays, and one that writes, for each case."""
    found = []
    for name, shapes in cases.items():
        both = steps(shapes)
        times = [[median_us(step, seconds) for step in both] for _ in range(rounds)]
        new, written = (statistics.median(part) for part in zip(*times, strict=True))
        found.append((name, new, written))
    return found


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{'Adam on':16} {'new arrays':>12} {'in place':>12} {'ratio':>7}")
    for name, new, written in rows(rounds):
        print(f"{name:16} {new:12.2f} {written:12.2f} {new / written:7.2f}")


if __name__ == "__main__":
    main()
