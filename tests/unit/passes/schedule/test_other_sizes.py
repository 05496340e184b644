# SPDX-License-Identifier: BSD-3-Clause
"""A new batch, length or image size needs no kernel that the first one did not know, whatever bounds it crosses."""

import random
from collections.abc import Callable
from typing import Any

import effort
import numpy as np
import pytest

import tracejit as tj
from tracejit.aval import Aval
from tracejit.codegen import target
from tracejit.codegen.row_sums import emit_nest
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.passes.loops import parts
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.record.recorder import Recorder

Shape = tuple[int, ...]
Case = tuple[
    Callable[..., Any], list[tuple[Shape, str | None]]
]  # a function, shapes and formats of its arguments
CHANNELS = (3, 5, 10, 16, 20, 33, 64, 100, 128)


def program_of(step: Callable[..., Any], arguments: list[tuple[Shape, str | None]], dtype: str) -> Program:
    """Return the program of the squares of the results, and of their gradients by all arguments."""
    with Recorder("step", accelerating=True) as recorder:
        inputs = [recorder.input(tj.dlarray(np.zeros(shape, dtype), format)) for shape, format in arguments]
        loss = (step(*inputs) ** 2).mean()
        gradients = tj.dlgradient(loss, *inputs)
        results = (loss, *(gradients if len(inputs) > 1 else [gradients]))
        recorder.graph.outputs = [recorder.value(y) for y in results]
    return build(recorder.graph)


CASES: dict[str, Callable[[int, int, int], Case]] = {
    # channels, batch, length
    "bias": lambda c, b, n: (lambda x, y: tj.tanh(x + y), [((b, c), None), ((c,), None)]),
    "scale": lambda c, b, n: (lambda x, y, z: x * y + z, [((b, n, c), None), ((c,), None), ((c,), None)]),
    "columns": lambda c, b, n: (lambda x: x - x.mean(axis=0), [((b, c), None)]),
    "distance": lambda c, b, n: (lambda x, y: tj.exp(-((x - y) ** 2).sum()), [((b, c), None), ((b, c), None)]),
    "layernorm": lambda c, b, n: (tj.layernorm, [((b, n, c), "BTC"), ((c,), None), ((c,), None)]),
    "batchnorm": lambda c, b, n: (
        lambda x, y, z: tj.batchnorm(x, y, z)[0], [((b, n, c), "BSC"), ((c,), None), ((c,), None)],
    ),
    "softmax": lambda c, b, n: (tj.softmax, [((b, c), "BC")]),
    "crossentropy": lambda c, b, n: (
        lambda x, t: tj.crossentropy(tj.softmax(x), t), [((b, c), "BC"), ((b, c), "BC")],
    ),
    "embed": lambda c, b, n: (lambda w: tj.embed(tj.dlarray(np.ones((b, n), int), "BT"), w), [((50, c), None)]),
    "maxpool": lambda c, b, n: (lambda x: tj.maxpool(x, 2, stride=2), [((b, c, 2 * n, 8), "BCSS")]),
    "attention": lambda c, b, n: (
        lambda q, k, v: tj.attention(q, k, v, 2, data_format="BTC"), [((b, n, 32), None)] * 3,
    ),
    "product": lambda c, b, n: (lambda x, w, y: tj.tanh(x @ w + y), [((b, c), None), ((c, 24), None), ((24,), None)]),
}  # fmt: skip


def drawn_sizes(name: str, rnd: random.Random) -> tuple[int, int]:
    """Return a batch and a length, so large or so small that bounds of parts, bands and tiles lie between."""
    if (
        name == "product"
    ):  # of more than half a tile of rows, and of few enough to be multiplied without panels
        return rnd.choice((16, 20, 33, 48, 64, 100)), 1
    # Means of as many elements as a power of two are exact products, which are put together in other ways.
    return rnd.choice((3, 7, 20, 50, 65, 130, 300)), rnd.choice((3, 5, 9, 20, 40, 100))


def known(program: Program) -> set[str]:
    """Return the names of the kernels that are compiled with a program."""
    return {kernel.name for kernel in (*program.kernels, *program.of_other_sizes)}


@pytest.mark.parametrize("seed", range(effort.sweep(4, 40)))
@pytest.mark.parametrize("name", CASES)
def test_other_sizes_know_their_kernels(name: str, seed: int) -> None:
    rnd = random.Random(f"{name} {seed}")
    channels, dtype = rnd.choice(CHANNELS), rnd.choice(("float32", "float64"))
    (batch, length), (other_batch, other_length) = drawn_sizes(name, rnd), drawn_sizes(name, rnd)
    with target.written_for((64, 32, 16)[seed % 3]):
        first = program_of(*CASES[name](channels, batch, length), dtype)
        other = program_of(*CASES[name](channels, other_batch, other_length), dtype)
    names = {kernel.name for kernel in other.kernels}
    assert names <= known(first), (channels, dtype, batch, length, other_batch, other_length)


def test_a_program_knows_the_kernels_of_parts_without_having_any() -> None:
    small = program_of(*CASES["bias"](10, 4, 1), "float32")
    large = program_of(*CASES["bias"](10, 20000, 1), "float32")
    assert [row.parts for row in small.rows] == [1] * len(small.rows)
    assert max(row.parts for row in large.rows) > 1
    assert len(small.of_other_sizes) == 2  # a copy of rows, and the sum of rows or of parts
    assert large.of_other_sizes == ()
    assert {kernel.name for kernel in large.kernels} == known(small)


def test_programs_without_sums_know_no_other_kernels() -> None:
    with Recorder("step", accelerating=True) as recorder:
        x = recorder.input(tj.dlarray(np.zeros(5, np.float32)))
        recorder.graph.outputs = [recorder.value(tj.tanh(x) + x)]
    assert build(recorder.graph).of_other_sizes == ()


@pytest.mark.parametrize("size", [1, 2, 3, 40])
def test_sums_of_any_size_are_added_by_one_kernel(size: int) -> None:
    element = Value(Aval((), None, np.dtype("float32")), None)
    adding = Node(OPS["sum"], (element,), {}, None)
    adding.makes((element,))
    kernels = set()
    for length, count in ((size, 2), (size, 31), (7, 5)):
        root = Value(Aval((length,), None, np.dtype("float32")), None)
        memory = parts.memory_of_parts(root, count)
        kernels.add(emit_nest(parts.sum_of_parts(memory, root, adding)).kernel)
    assert len(kernels) == 1
