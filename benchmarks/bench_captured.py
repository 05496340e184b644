# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks.bench_captured``: what captured state costs, in a replay and while recording."""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from benchmarks.internals import Rows, fastest
from benchmarks.report import environment, table
from tracejit.capture.state import CapturedState
from tracejit.record.recorder import Recorder
from tracejit.record.state import NO_EXCHANGE

SIZE = 8

SHAPE = (SIZE,)
RATE, OFFSET, POWER, MODE = 0.5, 0.25, 2, "sum"
W, B = np.ones(SHAPE), tj.dlarray(np.ones(SHAPE))
SETTINGS = {"rate": 0.5, "unused": 1}


class Layer:
    """Two attributes and a method that are read."""

    def __init__(self) -> None:
        self.scale = tj.dlarray(np.ones(SHAPE))
        self.k = 2.0

    def forward(self, x: Any) -> Any:
        return x * self.scale * self.k


LAYER = Layer()


def with_numbers(x: Any) -> Any:
    """Reads nothing: the same operations, on literals and arguments."""
    x, w, b, scale = x
    return ((x * w + b) * scale * 2.0 * 0.5 + 0.25) ** 2 * 0.5


def with_names(x: Any) -> Any:
    """Reads ten things: three arrays, an object, a method, an item and numbers."""
    x = LAYER.forward(x[0] * W + B) * RATE + OFFSET
    return x**POWER * SETTINGS["rate"]


def replays(repeats: int = 20, number: int = 2000) -> Rows:
    """Return what a call takes with and without captured state."""
    x = tj.dlarray(np.ones(SHAPE))
    arguments = {with_numbers: (x, x, x, x), with_names: (x,)}
    rows, times = [], []
    for function, given in arguments.items():
        accelerated = tj.dlaccelerate(function, audit=False)
        for _ in range(4):
            accelerated(given)

        def run(accelerated: Callable[..., Any] = accelerated, given: Any = given) -> None:
            for _ in range(number):
                accelerated(given)

        times.append(1e6 * fastest(run, repeats) / number)
        rows.append([function.__name__.replace("_", " "), f"{times[-1]:.2f}"])
    rows.append(["difference", f"{times[1] - times[0]:.2f}"])
    return rows


def recordings(ops: int = 100, repeats: int = 20) -> Rows:
    """Return what recording takes for one operation, with and without watching which functions run."""

    def chained(x: Any) -> Any:
        for _ in range(ops // 2):
            x = x * 0.5 + RATE
        return x

    x = tj.dlarray(np.ones(SHAPE))
    rows = []
    for name in ("not watched", "watched"):

        def run(is_watched: bool = name == "watched") -> None:
            state = {"state": CapturedState(chained, (), str, False, NO_EXCHANGE)} if is_watched else {}
            with Recorder("chained", accelerating=True, **state) as recorder:
                chained(recorder.input(x))

        rows.append([name, f"{1e6 * fastest(run, repeats) / ops:.2f}"])
    return rows


def main(argv: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_captured", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("--repeats", type=int, default=20, help="the fastest of so many runs counts")
    args = parser.parse_args(argv)
    print(f"a replay, us\n{table(['function', 'call'], replays(args.repeats))}\n")
    print(f"recording, us for one operation\n{table(['', 'operation'], recordings(repeats=args.repeats))}\n")
    print("  ".join(f"{key} {value}" for key, value in environment().items()))


if __name__ == "__main__":
    main()
