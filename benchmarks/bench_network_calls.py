# SPDX-License-Identifier: BSD-3-Clause
"""What a network and a function of NumPy cost beside their work: replays, steps, calls, and many layers.

    python -m benchmarks.bench_network_calls [--threads 1] [--seconds 5]

Times are the least of calls that take turns: CPU time of the process with one thread, wall time with more. Those of
first calls are CPU times that are taken once.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.bench_convolution import clock_of, least, use_threads

BATCH, DEEP = 32, 200  # observations, layers
TURN_S = 0.2


def digits(tj: Any) -> tuple[Any, Any, Any]:
    """Return a network for digits of 28 by 28 pixels, a mini-batch and its targets."""
    nn = tj.nn
    layers = [nn.ImageInput((28, 28, 1)), nn.Convolution2d(5, 20), nn.BatchNormalization(), nn.Relu()]
    for _ in range(2):
        layers += [nn.Convolution2d(3, 20, padding="same"), nn.BatchNormalization(), nn.Relu()]
    net = tj.dlnetwork([*layers, nn.FullyConnected(10), nn.Softmax()], seed=0)
    rng = np.random.default_rng(0)
    x = tj.dlarray(rng.random((BATCH, 28, 28, 1), dtype=np.float32), "BSSC")
    return net, x, tj.dlarray(tj.onehotencode(rng.integers(0, 10, BATCH), 1, 10), "BC")


def many(call: Callable[[], Any], count: int) -> Callable[[], None]:
    """Return a function that makes some calls."""

    def calls() -> None:
        for _ in range(count):
            call()

    return calls


class Comparison:
    """Calls that are timed in turns.

    Args:
        seconds: the time for each row.
        threads: of each library; with one, CPU times are taken.
    """

    def __init__(self, seconds: float, threads: int) -> None:
        self.seconds = seconds
        self.clock = clock_of(threads)

    def __call__(self, what: str, calls: Sequence[Callable[[], Any]], count: int = 1) -> list[float]:
        """Print the least times of calls in us, and the ratio of the first two; return the times."""
        times = [
            1e3 * time / count
            for time in least([many(call, count) for call in calls], self.seconds, self.clock, TURN_S)
        ]
        print(
            f"{what:<64}" + "".join(f"{time:10.1f}" for time in times) + f"{times[1] / times[0]:8.2f}",
            flush=True,
        )
        return times


def replays(tj: Any, compared: Comparison) -> None:
    """Compare forward and predict with the same calls uncompiled, for the network of the example and a larger one."""
    from examples.digits_network import SIDE, network

    rng = np.random.default_rng(0)
    small = tj.dlarray(rng.random((BATCH, SIDE, SIDE, 1), dtype=np.float32), "BSSC")
    for side, net, x in ((SIDE, network(), small), (28, *digits(tj)[:2])):
        for name in ("predict", "forward"):
            call = getattr(net, name)
            compared(
                f"{name}, {side} by {side}: accelerated, uncompiled",
                [partial(call, x), partial(call, x, acceleration="none")],
            )


def steps(tj: Any, compared: Comparison) -> None:
    """Compare a training step of a network with the same step of dicts of arrays."""
    net, x, targets = digits(tj)
    iteration = tj.dlarray(np.float32(1))

    def scores(p: Any, s: Any, x: Any) -> tuple[Any, Any]:
        state = {}
        for conv, norm, padding in (
            ("conv", "batchnorm", 0),
            ("conv_1", "batchnorm_1", "same"),
            ("conv_2", "batchnorm_2", "same"),
        ):
            x = tj.dlconv(x, p[conv]["weights"], p[conv]["bias"], padding=padding)
            x, mean, variance = tj.batchnorm(
                x, p[norm]["offset"], p[norm]["scale"], s[norm]["trained_mean"], s[norm]["trained_variance"],
                mean_decay=0.1, variance_decay=0.1,
            )  # fmt: skip
            state[norm] = {"trained_mean": mean, "trained_variance": variance}
            x = tj.relu(x)
        return tj.softmax(tj.fullyconnect(x, p["fc"]["weights"], p["fc"]["bias"])), state

    @tj.dlaccelerate
    def of_network(net: Any, m: Any, v: Any, iteration: Any, x: Any, targets: Any) -> Any:
        y, state = net.forward(x)
        loss = tj.crossentropy(y, targets)
        gradients = tj.dlgradient(loss, net.learnables)
        return loss, *tj.adamupdate(net.with_state(state), gradients, m, v, iteration)

    @tj.dlaccelerate
    def of_dicts(p: Any, s: Any, m: Any, v: Any, iteration: Any, x: Any, targets: Any) -> Any:
        y, s = scores(p, s, x)
        loss = tj.crossentropy(y, targets)
        return loss, s, *tj.adamupdate(p, tj.dlgradient(loss, p), m, v, iteration)

    zeros = tj.tree.map(tj.zeros_like, net.learnables)
    p, s = net.learnables.to_dict(), net.state.to_dict()
    none = tj.tree.map(tj.zeros_like, p)
    compared(
        "step: dicts, network",
        [
            lambda: of_dicts(p, s, none, none, iteration, x, targets),
            lambda: of_network(net, zeros, zeros, iteration, x, targets),
        ],
    )


def calls(tj: Any, compared: Comparison) -> None:
    """Compare a call of a network of 100 small learnables with the run of its program."""
    from benchmarks.cost import record
    from tracejit.traces.replay import Replay

    net = tj.dlnetwork([tj.nn.FeatureInput(4), *[tj.nn.FullyConnected(4) for _ in range(50)]], seed=0)
    x = tj.dlarray(np.ones((1, 4), np.float32), "BC")
    function = tj.dlaccelerate(lambda net, x: net.predict(x))
    replay = Replay(record(function, net, x), "calls")
    inputs = tuple([leaf._data for leaf in tj.tree.flatten((net, x))[0]])
    outputs = tuple(replay(inputs))
    program, call, inside = compared(
        "100 learnables: program, predict, function of the network",
        [lambda: replay.launch(inputs, outputs), lambda: net.predict(x), lambda: function(net, x)],
        count=1000,
    )
    print(
        f"{'beside the program: predict, function of the network':<74}{call - program:10.1f}{inside - program:10.1f}"
    )


def functions(tj: Any, compared: Comparison) -> None:
    """Compare a step with a function of NumPy with the step and the function by themselves."""

    class Cube(tj.DifferentiableFunction):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(save_inputs_for_backward=True)

        def forward(self, x: Any) -> Any:
            return x * x * x

        def backward(self, dy: Any, compute_gradients: Any, x: Any) -> Any:
            return 3 * x * x * dy

    cube, x = Cube(), np.ones(8, np.float32)

    @tj.dlaccelerate
    def with_function(x: Any) -> Any:
        y = tj.sin(cube(2 * x)).sum()
        return y, tj.dlgradient(y, x)

    @tj.dlaccelerate
    def without(x: Any) -> Any:
        y = tj.sin((2 * x) ** 3).sum()
        return y, tj.dlgradient(y, x)

    array = tj.dlarray(x)
    step, whole, forward, backward = compared(
        "step, step with a function of NumPy, its forward, its backward",
        [
            lambda: without(array),
            lambda: with_function(array),
            lambda: cube.forward(x),
            lambda: cube.backward(x, (True,), x),
        ],
        count=1000,
    )
    print(f"{'beside both, for each of the two calls':<84}{(whole - step - forward - backward) / 2:10.1f}")


def depth(tj: Any) -> None:
    """Print the seconds that a network of many layers takes until its first results."""
    for attempt in ("first", "warm"):
        layers = [tj.nn.FeatureInput(16)]
        while len(layers) < DEEP:
            layers += [tj.nn.FullyConnected(16), tj.nn.LayerNormalization(), tj.nn.Relu()]
        x = tj.dlarray(np.ones((BATCH, 16), np.float32), "BC")
        marks = [time.process_time()]
        net = tj.dlnetwork(layers[:DEEP], seed=0)
        marks.append(time.process_time())
        str(net.summary())
        marks.append(time.process_time())
        for _ in range(3):  # recorded, confirmed, built
            net.predict(x)
            marks.append(time.process_time())
        seconds = "".join(f"{end - start:10.2f}" for start, end in pairwise(marks))
        print(f"{f'{DEEP} layers, {attempt}: made, summary, three calls, s':<64}{seconds}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row")
    options = parser.parse_args(arguments)
    use_threads(options.threads)
    import tracejit as tj

    depth(tj)
    for rows in (calls, functions, steps, replays):
        rows(tj, Comparison(options.seconds, options.threads))


if __name__ == "__main__":
    main()
