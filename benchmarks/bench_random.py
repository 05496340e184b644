# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a random number: in accelerated functions, outside of them, and from NumPy's generator.

    TRACEJIT_THREADS=1 python -m benchmarks.bench_random [ELEMENTS]

Nanoseconds for each element, medians of 40 calls.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

REPEATS = 40


def median_ns(function: Callable[[Any], Any], x: Any, repeats: int) -> float:
    """Return the median time of ``function(x)`` for each element of x."""
    times = []
    for repeat in range(repeats + 3):
        started = time.perf_counter_ns()
        function(x)
        if repeat >= 3:  # recorded, confirmed, compiled
            times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / x.size


def rows(n: int, repeats: int = REPEATS) -> list[tuple[str, str, float, float, float]]:
    """Return function, dtype, and what an element of n costs accelerated, uncompiled and with NumPy."""
    source = np.random.default_rng(0)
    found = []
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        given = np.ones(n, dtype)
        for name, draw, by_numpy in (
            ("rand", lambda x: tj.rand(x.shape, like=x), lambda x: source.random(x.shape, x.dtype)),
            (
                "randn",
                lambda x: tj.randn(x.shape, like=x),
                lambda x: source.standard_normal(x.shape, x.dtype),
            ),
            ("dropout", tj.dropout, lambda x: np.where(source.random(x.shape, "f4") < 0.5, 0, 2 * x)),
            ("randi", lambda x: tj.randi(10, x.shape), lambda x: source.integers(10, size=x.shape)),
            ("randperm", lambda x: tj.randperm(x.size), lambda x: source.permutation(x.size)),
        ):
            if dtype == np.float64 or name in ("rand", "randn", "dropout"):
                fast, x = tj.dlaccelerate(draw, audit=False), tj.dlarray(given)
                costs = [median_ns(f, a, repeats) for f, a in ((fast, x), (draw, x), (by_numpy, given))]
                found.append((name, str(dtype), *costs))
    return found


def main() -> None:
    """Print the table."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
    print(f"{'':9} {'':8} {'accelerated':>12} {'uncompiled':>12} {'NumPy':>12}")
    for name, dtype, *costs in rows(n):
        print(f"{name:9} {dtype:8} " + " ".join(f"{cost:12.2f}" for cost in costs))


if __name__ == "__main__":
    main()
