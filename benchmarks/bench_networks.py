# SPDX-License-Identifier: BSD-3-Clause
"""Times of whole training steps of convolutional networks, accelerated, beside PyTorch's in its better order of axes.

    python -m benchmarks.bench_networks [--threads 1] [--seconds 5] [--only lenet resnet unet]

A step is the loss, the gradients of all parameters and a step of gradient descent with momentum, in float32. Times are
the least of calls that take turns, in ms: CPU time of the process with one thread, wall time with more. `--first`
prints the seconds until the third call has returned instead, which is the first one that replays: from an empty cache
(TRACEJIT_CACHE_DIR), or from one that a process before it has filled.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench_convolution import Call, clock_of, least, parser_of, use_threads

RATE, MOMENTUM = 0.01, 0.9
Weights = dict[str, np.ndarray]


class Network(NamedTuple):
    """Sizes of the images of a network, the number of classes, and how its weights and its scores are made.

    `scores(ops, weights, x)` is written once for both libraries, by the functions of `ops`. `dense` is True where each
    pixel has a class.
    """

    images: tuple[int, int, int, int]
    classes: int
    weights: Callable[[Callable[..., None]], None]
    scores: Callable[[Any, Any, Any], Any]
    dense: bool = False


def lenet_weights(add: Callable[..., None]) -> None:
    add("c1", 20, 1, 5, 5)
    add("c2", 50, 20, 5, 5)
    add("f1", 500, 50, 4, 4)
    add("f2", 10, 500)


def lenet(ops: Any, p: Any, x: Any) -> Any:
    x = ops.pool(ops.relu(ops.convolution(x, p["c1"], p["c1 bias"])))
    x = ops.pool(ops.relu(ops.convolution(x, p["c2"], p["c2 bias"])))
    return ops.dense(ops.relu(ops.dense(x, p["f1"], p["f1 bias"])), p["f2"], p["f2 bias"])


WIDTHS = (16, 32, 64)


def resnet_weights(add: Callable[..., None]) -> None:
    add("stem", WIDTHS[0], 3, 3, 3, norm=True)
    before = WIDTHS[0]
    for width in WIDTHS:
        add(f"{width} a", width, before, 3, 3, norm=True)
        add(f"{width} b", width, width, 3, 3, norm=True)
        if width != before:
            add(f"{width} s", width, before, 1, 1, norm=True)
        before = width
    add("output", 10, WIDTHS[-1])


def resnet(ops: Any, p: Any, x: Any) -> Any:
    def block(x: Any, name: str, stride: int = 1, padding: int = 1) -> Any:
        y = ops.convolution(x, p[name], p[f"{name} bias"], stride, padding)
        return ops.normalize(y, p[f"{name} offset"], p[f"{name} scale"])

    x = ops.relu(block(x, "stem"))
    for width in WIDTHS:
        stride = 1 if width == WIDTHS[0] else 2
        y = block(ops.relu(block(x, f"{width} a", stride)), f"{width} b")
        x = ops.relu(y + (x if stride == 1 else block(x, f"{width} s", stride, 0)))
    return ops.dense(ops.mean(x), p["output"], p["output bias"])


DEPTHS = (16, 32, 64)


def unet_weights(add: Callable[..., None]) -> None:
    before = 3
    for depth in DEPTHS:
        add(f"down {depth} a", depth, before, 3, 3)
        add(f"down {depth} b", depth, depth, 3, 3)
        before = depth
    for depth in DEPTHS[-2::-1]:
        add(f"up {depth}", before, depth, 2, 2, outputs=depth)
        add(f"up {depth} a", depth, 2 * depth, 3, 3)
        add(f"up {depth} b", depth, depth, 3, 3)
        before = depth
    add("output", 4, before, 1, 1)


def unet(ops: Any, p: Any, x: Any) -> Any:
    def block(x: Any, name: str) -> Any:
        for part in "ab":
            x = ops.relu(ops.convolution(x, p[f"{name} {part}"], p[f"{name} {part} bias"], 1, 1))
        return x

    kept = []
    for depth in DEPTHS[:-1]:
        x = block(x, f"down {depth}")
        kept.append(x)
        x = ops.pool(x)
    x = block(x, f"down {DEPTHS[-1]}")
    for depth in DEPTHS[-2::-1]:
        x = ops.transposed(x, p[f"up {depth}"], p[f"up {depth} bias"])
        x = block(ops.join(kept.pop(), x), f"up {depth}")
    return ops.convolution(x, p["output"], p["output bias"])


NETWORKS = {
    "lenet": Network((128, 1, 28, 28), 10, lenet_weights, lenet),
    "resnet": Network((64, 3, 32, 32), 10, resnet_weights, resnet),
    "unet": Network((8, 3, 64, 64), 4, unet_weights, unet, dense=True),
}


def data_of(network: Network) -> tuple[Weights, np.ndarray, np.ndarray]:
    """Return weights in PyTorch's order, images and the classes of images or pixels."""
    rng = np.random.default_rng(0)
    weights: Weights = {}

    def add(name: str, *sizes: int, norm: bool = False, outputs: int = 0) -> None:
        weights[name] = rng.normal(0, (2 / np.prod(sizes[1:])) ** 0.5, sizes).astype(np.float32)
        weights[f"{name} bias"] = np.zeros(outputs or sizes[0], np.float32)
        if norm:
            weights[f"{name} offset"] = np.zeros(sizes[0], np.float32)
            weights[f"{name} scale"] = np.ones(sizes[0], np.float32)

    network.weights(add)
    images = rng.standard_normal(network.images).astype(np.float32)
    shape = (network.images[0], *(network.images[2:] if network.dense else ()))
    return weights, images, rng.integers(0, network.classes, shape)


class Ours:
    """The functions of tracejit."""

    def __init__(self) -> None:
        import tracejit as tj

        self.relu = tj.relu
        self.dense = tj.fullyconnect
        self.pool = partial(tj.maxpool, pool_size=2, stride=2)
        self.mean = partial(tj.avgpool, pool_size="global")
        self.transposed = partial(tj.dltranspconv, stride=2, weights_format="CUSS")
        self.tj = tj

    def convolution(self, x: Any, weights: Any, bias: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.tj.dlconv(x, weights, bias, stride=stride, padding=padding, weights_format="UCSS")

    def normalize(self, x: Any, offset: Any, scale: Any) -> Any:
        return self.tj.batchnorm(x, offset, scale)[0]

    def join(self, x: Any, y: Any) -> Any:
        return self.tj.concatenate([x, y], axis=x.format.index("C"))


class Theirs:
    """The functions of PyTorch."""

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]

        functions = torch.nn.functional
        self.relu = functions.relu
        self.pool = partial(functions.max_pool2d, kernel_size=2)
        self.transposed = partial(functions.conv_transpose2d, stride=2)
        self.torch = torch
        self.functions = functions

    def convolution(self, x: Any, weights: Any, bias: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.functions.conv2d(x, weights, bias, stride, padding)

    def normalize(self, x: Any, offset: Any, scale: Any) -> Any:
        return self.functions.batch_norm(x, None, None, scale, offset, training=True)

    def dense(self, x: Any, weights: Any, bias: Any) -> Any:
        return self.functions.linear(x.flatten(1), weights.flatten(1), bias)

    def mean(self, x: Any) -> Any:
        return x.mean((2, 3))

    def join(self, x: Any, y: Any) -> Any:
        return self.torch.cat([x, y], 1)


def ours(network: Network, format: str) -> tuple[Call, Callable[[], float]]:
    """Return a call that takes a step, and one that returns the loss of the last one."""
    import tracejit as tj

    ops = Ours()
    weights, images, classes = data_of(network)
    axes = [0, *range(2, len(format)), 1] if format[1] == "S" else list(range(len(format)))
    x = tj.dlarray(np.ascontiguousarray(images.transpose(axes)), format)
    targets = tj.dlarray(classes, "BSS" if network.dense else "B")
    pixels = classes.size // len(classes)
    if "f1" in weights:  # its inputs are an image
        weights["f1"] = weights["f1"].transpose(axes).reshape(len(weights["f1"]), -1)
    params = {name: tj.dlarray(value) for name, value in weights.items()}

    @tj.dlaccelerate(audit=False)
    def step(params: Any, velocity: Any, x: Any, targets: Any) -> Any:
        loss = tj.indexcrossentropy(network.scores(ops, params, x), targets, from_logits=True) / pixels
        gradients = tj.dlgradient(loss, params)
        params, velocity = tj.sgdmupdate(params, gradients, velocity, RATE, MOMENTUM)
        return loss, params, velocity

    state = [None, params, tj.tree.map(tj.zeros_like, params)]

    def call() -> None:
        state[:] = step(*state[1:], x, targets)

    return call, lambda: float(state[0])


def theirs(network: Network, format: str, threads: int) -> tuple[Call, Callable[[], float]]:
    """Return the same for PyTorch."""
    import torch

    torch.set_num_threads(threads)
    ops = Theirs()
    weights, images, classes = data_of(network)
    x, targets = torch.tensor(images), torch.tensor(classes)
    params = {name: torch.tensor(value) for name, value in weights.items()}
    if format[1] == "S":
        x = x.to(memory_format=torch.channels_last)
        params = {
            name: value.to(memory_format=torch.channels_last) if value.ndim == 4 else value
            for name, value in params.items()
        }
    for value in params.values():
        value.requires_grad_()
    optimizer = torch.optim.SGD(params.values(), RATE, MOMENTUM)
    last = [0.0]

    def call() -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network.scores(ops, params, x), targets)
        loss.backward()
        optimizer.step()
        last[0] = loss.item()

    return call, lambda: last[0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__, list(NETWORKS), seconds=5.0)
    parser.add_argument("--first", action="store_true", help="time the first calls")
    options = parser.parse_args(arguments)
    use_threads(options.threads)
    clock = clock_of(options.threads)
    for name in options.only:
        network = NETWORKS[name]
        if options.first:
            call, _ = ours(network, "BCSS")
            start = time.perf_counter()
            for _ in range(3):
                call()
            print(f"{name:8} {time.perf_counter() - start:8.2f} s", flush=True)
            continue
        steps = [ours(network, "BCSS"), ours(network, "BSSC")]
        with suppress(ImportError):
            steps += [theirs(network, "BCSS", options.threads), theirs(network, "BSSC", options.threads)]
        for call, _ in steps:
            call()
        losses = [loss() for _, loss in steps]
        np.testing.assert_allclose(losses, losses[0], rtol=1e-4)
        times = least([call for call, _ in steps], options.seconds, clock)
        ratio = f"{min(times[2:]) / min(times[:2]):8.2f}" if times[2:] else ""
        print(f"{name:8}" + "".join(f"{value:9.2f}" for value in times) + ratio, flush=True)


if __name__ == "__main__":
    main()
