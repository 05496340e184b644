# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers and their adjoints on a device, in PTX that an emulator runs."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from effort import sweep
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, ptx_of

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate
from tracejit.ops.recurrent import PANEL
from tracejit.pipeline import build_for_device

pytestmark = NEEDS_LLVM_22
Shape = tuple[int, ...]


def panels(rows: int, columns: int) -> Shape:
    return (-(-columns // PANEL), rows, PANEL)


def shapes_of(name: str, b: int, t: int, h: int) -> Sequence[Shape]:
    """Return the shapes of the operands of an op, all but the mask, which stands at 0."""
    none = (0,)
    state = (b, h)
    return {
        "lstm_forward": [(b, t, 4 * h), (4 * h,), state, state, panels(h, 4 * h), none],
        "lstm_backward": [(b, t, 4 * h), (b, t, h), state, panels(4 * h, h), none, (b, t, h), state, state],
        "gru_forward": [(b, t, 3 * h), (3 * h,), state, panels(h, 2 * h), panels(h, h), (h,), none],
        "gru_backward": [
            (b, t, 4 * h), (b, t, h), state, panels(2 * h, h), panels(h, h), none, (b, t, h), state,
        ],
        "rnn_forward": [(b, t, h), (h,), state, panels(h, h), none],
        "rnn_backward": [(b, t, h), panels(h, h), none, (b, t, h), state],
    }[name]  # fmt: skip


OPTIONS: dict[str, tuple[str, ...]] = {"lstm": (), "gru": ("before",), "rnn": ("relu",)}
NAMES = [f"{kind}_{way}" for kind in OPTIONS for way in ("forward", "backward")]


def case_of(
    name: str, sizes: tuple[int, int, int], dtype: str, masked: bool, reverse: bool, option: bool
) -> tuple[Graph, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    arrays = []
    for shape in shapes_of(name, *sizes):
        if shape == (0,):
            mask = rng.random(sizes[:2]) < 0.6 if masked else np.ones((1, 1))
            arrays.append(mask.astype(dtype))
        else:
            arrays.append((rng.standard_normal(shape) / 4).astype(dtype))
    graph = Graph()
    b = Builder(graph)
    values = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    params: dict[str, Any] = {"reverse": reverse, "masked": masked}
    params |= dict.fromkeys(OPTIONS[name.partition("_")[0]], option)
    graph.outputs = [*getattr(b, name)(*values, **params)]
    return graph, arrays


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_recurrent_layers(name: str) -> None:
    rnd = random.Random(name)
    sizes = [(3, 4, 9), (1, 1, 1), (2, 0, 3), (5, 3, 40), (0, 2, 3), (1, 3, 70)]
    ways = list(itertools.product((False, True), repeat=3))
    for number in range(sweep(8, 60, sample=2)):
        masked, reverse, option = ways[number % len(ways)]
        own = (
            sizes[number]
            if number < len(sizes)
            else (rnd.randint(1, 6), rnd.randint(0, 5), rnd.randint(1, 70))
        )
        dtype = rnd.choice(["float32", "float64"])
        graph, arrays = case_of(name, own, dtype, masked, reverse, option)
        eps = np.finfo(dtype).eps
        found = EmulatedProgram(build_for_device(graph))(arrays)
        for have, want in zip(found, evaluate(graph, arrays), strict=True):
            assert have.dtype == want.dtype
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(have, want, rtol=0, atol=40 * eps * scale, err_msg=f"{own}")


@pytest.mark.parametrize("name", NAMES)
def test_threads_have_no_memory_of_their_own(name: str) -> None:
    """And steps, however many there are, have the same kernels."""
    few, many = (
        build_for_device(case_of(name, sizes, "float32", True, False, True)[0])
        for sizes in ((2, 3, 8), (5, 20, 40))
    )
    assert len(many.rows) > len(few.rows)
    assert {row.kernel.name for row in few.rows} == {row.kernel.name for row in many.rows}
    for kernel in few.kernels:
        text = ptx_of(kernel, CAPABILITY)
        assert ".local" not in text and "f64" not in text.partition("{")[2]
