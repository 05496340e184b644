# SPDX-License-Identifier: BSD-3-Clause
"""Random convolutions as graphs: one op or all three, in any order of axes."""

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate

Sizes = tuple[int, ...]


class Operands(NamedTuple):
    """Shapes of x, w and y, their spatial sizes, and the params of the ops."""

    shapes: tuple[Sizes, Sizes, Sizes]
    sizes: tuple[Sizes, Sizes, Sizes]
    params: dict[str, Any]


def shape_of(labels: str, spatial: Sizes, **others: int) -> Sizes:
    sizes = iter(spatial)
    return tuple([next(sizes) if label == "S" else others[label] for label in labels])


def operands_of(
    rnd: random.Random,
    channels: tuple[int, ...],
    filters: tuple[int, ...],
    labels: tuple[str, str, str] | None = None,
    strides: tuple[int, ...] = (1, 1, 2, 3),
) -> Operands:
    """Return a random convolution with some of these numbers of channels and filters in a group, and of strides."""
    axes = rnd.randint(1, 3) if labels is None else labels[0].count("S")

    def some(*numbers: int) -> Sizes:
        return tuple([rnd.choice(numbers) for _ in range(axes)])

    groups = rnd.choice([1, 1, 1, 2, 3])
    count, each = rnd.choice(channels), rnd.choice(filters)
    if rnd.random() < 0.3:  # a channel for each filter
        groups, count, each = groups * each, 1, 1
    sizes = some(1, 3, 5, 8), some(1, 2, 3), some(1, 4, 7)
    if labels is None:
        shuffled = ["".join(rnd.sample(own + "S" * axes, axes + 2)) for own in ("BC", "UC", "BU")]
        labels = shuffled[0], shuffled[1], shuffled[2]
    batch = rnd.randint(1, 3)
    shapes = (
        shape_of(labels[0], sizes[0], B=batch, C=groups * count),
        shape_of(labels[1], sizes[1], U=groups * each, C=count),
        shape_of(labels[2], sizes[2], B=batch, U=groups * each),
    )
    params = {
        "labels": labels, "strides": some(*strides), "before": some(-1, 0, 1, 2), "dilation": some(1, 1, 2),
        "groups": groups,
    }  # fmt: skip
    return Operands(shapes, sizes, params)


def at_most(elements: int, drawn: Callable[[], Operands]) -> Operands:
    """Return the first operands drawn that have so many elements: Python takes seconds for the largest."""
    while True:
        operands = drawn()
        if sum(map(math.prod, operands.shapes)) <= elements:
            return operands


def graph_of(operands: Operands, dtype: str, seed: int) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of the three ops on the same operands, and arrays for it."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in operands.shapes]
    graph = Graph()
    b = Builder(graph)
    x, w, y = (b.input(Aval(array.shape, None, array.dtype)) for array in arrays)
    inputs, taps, windows = operands.sizes
    bias = rng.standard_normal(operands.shapes[2][operands.params["labels"][2].index("U")]).astype(dtype)
    arrays.append(bias)
    added = b.input(Aval(bias.shape, None, bias.dtype))
    graph.outputs = [
        b.convolution(x, w, *([added] if seed % 2 else []), size=windows, **operands.params),
        b.convolution_input(y, w, size=inputs, **operands.params),
        b.convolution_weights(x, y, size=taps, **operands.params),
    ]
    return graph, arrays


def assert_same(graph: Graph, arrays: list[np.ndarray], found: list[np.ndarray], what: Any) -> None:
    """Compare what a program returns with the references."""
    for have, want in zip(found, evaluate(graph, arrays), strict=True):
        assert have.dtype == want.dtype
        eps = np.finfo(want.dtype).eps
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(have, want, rtol=0, atol=40 * eps * scale, err_msg=str(what))


def square_windows(
    rnd: random.Random, channels: tuple[int, ...], filters: tuple[int, ...], labels: tuple[str, str, str],
    extents: tuple[int, ...] = (3, 5, 8, 9, 21, 30), unpadded: bool = False,
) -> Operands:  # fmt: skip
    """Return a random convolution with 3 by 3 or 5 by 5 taps, perhaps of several planes, or 3 or 5, and stride 1.

    Where it is `unpadded` there are 5 by 5 taps, and one zero before an image, or none.
    """
    batch = rnd.choice((1, 2, 7))
    count = labels[0].count("S")
    taps = (rnd.choice((1, 2, 3)), *[rnd.choice((3, 3, 5))] * 2)[3 - count :]
    inputs = (rnd.choice((1, 4, 7)), rnd.choice(extents), rnd.choice(extents))[3 - count :]
    before = (rnd.choice((0, 1)), rnd.choice((-1, 0, 1, 1, 5)), rnd.choice((0, 1, 2)))[3 - count :]
    dilation = (1, rnd.choice((1, 1, 2)), rnd.choice((1, 1, 2, 3)))[3 - count :]
    if rnd.random() < 0.2 or count == 1:
        taps, dilation = (*[1] * (count - 1), taps[-1]), (*[1] * (count - 1), dilation[-1])
    if unpadded and count > 1:
        dilation = (1,) * count
        taps, before = (1, 5, 5)[3 - count :], (0, rnd.choice((0, 1)), rnd.choice((0, 1)))[3 - count :]
    windows = tuple(
        [max(1, n + 2 * p - (k - 1) * d) for n, p, k, d in zip(inputs, before, taps, dilation, strict=True)]
    )
    groups, own, each = rnd.choice((1, 1, 2)), rnd.choice(channels), rnd.choice(filters)
    shapes = (
        shape_of(labels[0], inputs, C=groups * own, B=batch),
        shape_of(labels[1], taps, U=groups * each, C=own),
        shape_of(labels[2], windows, U=groups * each, B=batch),
    )
    params = {
        "labels": labels,
        "strides": (1,) * count,
        "before": before,
        "dilation": dilation,
        "groups": groups,
    }
    return Operands(shapes, (inputs, taps, windows), params)


def channelwise_of(rnd: random.Random) -> Operands:
    """Return a random convolution of channels first with a filter for each channel, which moves by one along a line."""
    axes = rnd.randint(1, 3)
    labels = ("BC" + "S" * axes, "UC" + "S" * axes, "BU" + "S" * axes)

    def some(*numbers: int) -> Sizes:
        return tuple([rnd.choice(numbers) for _ in range(axes)])

    inputs, taps, windows = some(1, 3, 5), some(1, 2, 3, 5), some(1, 2, 4)
    inputs, windows = (*inputs[:-1], rnd.choice((2, 7, 37))), (*windows[:-1], rnd.choice((2, 17, 33)))
    batch, groups = rnd.choice((1, 3)), rnd.choice((2, 3, 20))
    params = {
        "labels": labels, "strides": (*some(1, 2)[1:], 1), "before": some(-1, 0, 1, 2, 4), "dilation": some(1, 1, 2),
        "groups": groups,
    }  # fmt: skip
    shapes = ((batch, groups, *inputs), (groups, 1, *taps), (batch, groups, *windows))
    return Operands(shapes, (inputs, taps, windows), params)


def windows_by_two(
    rnd: random.Random, channels: tuple[int, ...], filters: tuple[int, ...], labels: tuple[str, str, str],
    taps: int = 0, batch: int = 0, extents: tuple[int, ...] = (1, 3, 5, 8, 9, 13, 21),
) -> Operands:  # fmt: skip
    """Return a random convolution with 3 by 3 or 4 by 4 taps, or those given, that moves by two."""
    batch, taps = batch or rnd.choice((1, 2, 7)), taps or rnd.choice((3, 4))
    inputs = rnd.choice(extents), rnd.choice(extents)
    before = rnd.choice((-1, 0, 1, 1, 2, 3)), rnd.choice((0, 1, 1, 2, 3))
    windows = tuple([max(1, (n + 2 * p - taps) // 2 + 1) for n, p in zip(inputs, before, strict=True)])
    groups, own, each = rnd.choice((1, 1, 2)), rnd.choice(channels), rnd.choice(filters)
    shapes = (
        shape_of(labels[0], inputs, C=groups * own, B=batch),
        shape_of(labels[1], (taps, taps), U=groups * each, C=own),
        shape_of(labels[2], windows, U=groups * each, B=batch),
    )
    params = {"labels": labels, "strides": (2, 2), "before": before, "dilation": (1, 1), "groups": groups}
    return Operands(shapes, (inputs, (taps, taps), windows), params)
