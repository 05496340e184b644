# SPDX-License-Identifier: BSD-3-Clause
"""A new batch or length needs no other kernel for products: parts are computed by the kernel of the whole."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import effort
import numpy as np
import pytest

import tracejit as tj
from tracejit.codegen import emit, target
from tracejit.passes.loops import contract
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.record.recorder import Recorder

Step = Callable[..., Any]
MULTIPLY = ("product", "panels", "columns", "dots")
SIZES = (1, 2, 3, 5, 8, 10, 16, 20, 32, 33, 48, 64, 100, 128, 200)  # channels and units
GATES = {"gru": (3, 1), "lstm": (4, 2), "rnn": (1, 1)}  # of recurrent layers, with how many states these have


def program_of(step: Step, shapes: Sequence[tuple[int, ...]], dtype: str = "float32") -> Program:
    """Return the program of the squares of results, and of their gradients by all inputs."""
    with Recorder("step", accelerating=True) as recorder:
        inputs = [recorder.input(tj.dlarray(np.zeros(shape, dtype))) for shape in shapes]
        loss = sum((y * y).sum() for y in step(*inputs))
        gradients = tj.dlgradient(loss, *inputs)
        recorder.graph.outputs = [
            recorder.value(y) for y in (loss, *(gradients if len(inputs) > 1 else [gradients]))
        ]
    return build(recorder.graph)


def drawn(rnd: random.Random) -> tuple[str, Callable[[int, int], tuple[Step, list[tuple[int, ...]]]]]:
    """Return a dtype, and what returns a function and the shapes of its arguments for a batch and a length."""
    channels, hidden, last = (rnd.choice(SIZES) for _ in range(3))
    name = rnd.choice(("product", "perceptron", *GATES))
    dtype = rnd.choice(("float32", "float64"))
    if name == "product":
        return dtype, lambda batch, steps: (lambda x, y: [x @ y], [(batch, channels), (channels, hidden)])
    if name == "perceptron":
        shapes = [(channels, hidden), (hidden,), (hidden, last), (last,)]
        return dtype, lambda batch, steps: (
            lambda x, w, b, v, c: [tj.tanh(tj.relu(x @ w + b) @ v + c)], [(batch, channels), *shapes],
        )  # fmt: skip
    gates, states = GATES[name]
    hidden, layer = min(hidden, 100), getattr(tj, name)
    weights = [(gates * hidden, channels), (gates * hidden, hidden), (gates * hidden,)]
    return dtype, lambda batch, steps: (
        lambda x, *others: layer(x, *others, data_format="BTC"),
        [(min(batch, 64), steps, channels), *[(min(batch, 64), hidden)] * states, *weights],
    )


@pytest.mark.parametrize("seed", range(effort.sweep(50, 2000)))
def test_parts_have_the_kernel_of_the_whole(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    launched: list[KernelLaunch] = []

    def launch(*given: Any) -> KernelLaunch:
        launched.append(made(*given))
        return launched[-1]

    made = contract.product_launch
    monkeypatch.setattr(contract, "product_launch", launch)
    rnd = random.Random(seed)
    dtype, of_sizes = drawn(rnd)
    batch, steps = rnd.randrange(1, 300), rnd.randrange(2, 60)
    with target.written_for((64, 32)[seed % 2]):
        program = program_of(*of_sizes(batch, steps), dtype)
        wholes = {emit._kernel(launch).name for launch in launched}
    names = {kernel.name for kernel in program.kernels if kernel.name.startswith(MULTIPLY)}
    plain = {name for name in names if name.count("_") == 1}  # others have a loop over their result
    assert plain <= wholes, (batch, steps)


def test_a_sum_of_one_part_is_not_cut_along_its_elements() -> None:
    """A gradient by filters whose images are one part has the sum that several parts have."""

    def sums(batch: int, extent: int) -> set[str]:
        def step(x: Any, w: Any) -> list[Any]:
            return [tj.dlconv(x, w, padding="same", weights_format="SCU", data_format="BCS")]

        program = program_of(step, [(batch, 40, extent), (3, 40, 24)])
        return {
            row.kernel.name
            for row in program.rows
            if row.kernel.name.startswith("sum_") and row.note != "sum"
        }

    assert sums(8, 32) == sums(64, 32) == sums(128, 16) != set()
