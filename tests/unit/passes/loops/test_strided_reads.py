# SPDX-License-Identifier: BSD-3-Clause
"""Loops that could use vectors read copies of what lies far apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from launched import graph_of, names

from tracejit.ir import Value, evaluate
from tracejit.ops.op import Layout
from tracejit.pipeline import stages
from tracejit.runtime.python import PythonExecutable

Make = Callable[[Any, Value, Value], Value]
COLUMNS = 100


def laid(array: np.ndarray) -> Layout | None:
    if array.flags.c_contiguous:
        return None
    start = array.size - 1 if min(array.strides) < 0 else 0
    return Layout(start, array.shape, tuple(stride // 4 for stride in array.strides))


def launched(make: Make, x: np.ndarray, y: np.ndarray) -> list[str]:
    """Return what is launched, of a program whose result is right."""
    graph = graph_of(make, x.shape, y.shape)
    layouts = [layout and layout._replace(offset=0) for layout in map(laid, (x, y))]
    made = stages(graph, layouts)
    found = PythonExecutable(made.program)([x, y])
    for have, want in zip(found, evaluate(graph, [x, y]), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)
    return names(made.plan)


def every(step: int, rows: int = 3, columns: int = COLUMNS) -> np.ndarray:
    wide = np.random.default_rng(0).uniform(1, 2, (rows, columns * abs(step))).astype(np.float32)
    return wide[:, ::step]


DEAR: dict[str, Make] = {
    "a function": lambda b, x, y: b.log(x),
    "a division": lambda b, x, y: b.div(x, y),
    "a maximum": lambda b, x, y: b.max(x, axes=(1,), keepdims=False),
    "a sum": lambda b, x, y: b.sum(x, axes=(0, 1), keepdims=False),
}


@pytest.mark.parametrize("name", DEAR)
def test_a_loop_reads_a_copy(name: str) -> None:
    for step in (3, -5):
        assert launched(DEAR[name], every(step), every(1))[0] == "copy"


@pytest.mark.parametrize("name", DEAR)
def test_near_places_are_read_in_place(name: str) -> None:
    for step in (1, -1, 2, -2):
        assert "copy" not in launched(DEAR[name], every(step), every(1))


def test_operands_are_copied_once() -> None:
    x = every(3)
    assert launched(lambda b, x, y: b.mul(b.log(x), b.exp(x)), x, every(1)).count("copy") == 1


def test_a_row_that_is_repeated_is_copied_as_a_row() -> None:
    made = stages(
        graph_of(lambda b, x, y: b.add(b.log(x), y), (200,), (7, 200)), [Layout(0, (200,), (3,)), None]
    )
    first = made.plan.launches[0]
    assert first.nest.extents == (200,)  # type: ignore[union-attr]


def test_sums_and_short_rows_are_left() -> None:
    assert "copy" not in launched(lambda b, x, y: b.add(x, y), every(3), every(1))
    assert "copy" not in launched(DEAR["a function"], every(3, 3, 20), every(1, 3, 20))
