# SPDX-License-Identifier: BSD-3-Clause
"""What is sorted is sorted where something reads it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from launched import graph_of

from tracejit import dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.ir import Graph, Value, evaluate, verify
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.wanted_places import wanted_places

SHAPE = (4, 300)
Make = Callable[[Any, Value], Value]


def half(b: Any, both: Value, number: int = 0) -> Value:
    shape = both.shape[1:]
    part = b.slice(both, starts=(number,) + (0,) * len(shape), stops=(number + 1, *shape),
                   steps=(1,) * both.ndim)  # fmt: skip
    return b.reshape(part, shape=shape)  # type: ignore[no-any-return]


def cut(b: Any, x: Value, start: int, stop: int, step: int = 1) -> Value:
    return b.slice(x, starts=(0, start), stops=(x.shape[0], stop), steps=(1, step))  # type: ignore[no-any-return]


def rewritten(make: Make, shape: tuple[int, ...] = SHAPE) -> Graph:
    """Return the graph after the pass, which must not change what is read."""
    graph = simplify(graph_of(make, shape))
    changed = wanted_places(graph)
    verify(changed)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for have, want in zip(evaluate(changed, [x]), evaluate(graph, [x]), strict=True):
        np.testing.assert_array_equal(have, want)
    return changed


def wanted(make: Make) -> tuple[int, int]:
    (node,) = [node for node in rewritten(make).nodes if node.op.name == "partition"]
    return node.params["least"], node.params["most"]


def median(b: Any, x: Value) -> Value:
    rows = half(b, b.sort(x, axis=1))
    found = b.add(cut(b, rows, 149, 150), cut(b, rows, 150, 151))
    return b.where(b.isnan(cut(b, rows, 299, 300)), np.float32(np.nan), found)  # type: ignore[no-any-return]


CASES: dict[str, tuple[Make, tuple[int, int]]] = {
    "all": (lambda b, x: b.neg(half(b, b.sort(x, axis=1))), (0, 300)),
    "both halves": (lambda b, x: b.sort(x, axis=1), (0, 300)),
    "one element": (lambda b, x: cut(b, half(b, b.sort(x, axis=1)), 7, 8), (7, 8)),
    "the largest": (lambda b, x: cut(b, half(b, b.sort(x, axis=1)), 290, 300), (290, 300)),
    "backwards": (lambda b, x: cut(b, half(b, b.sort(x, axis=1)), 299, 289, -1), (290, 300)),
    "in the opposite order": (lambda b, x: cut(b, half(b, b.sort(x, axis=1), 1), 0, 5), (295, 300)),
    "rows": (lambda b, x: b.slice(half(b, b.sort(x, axis=1)), starts=(1, 0), stops=(2, 300), steps=(1, 1)), (0, 300)),
    "another axis": (lambda b, x: b.slice(half(b, b.sort(x, axis=0)), starts=(1, 0), stops=(2, 300), steps=(1, 1)),
                     (1, 2)),
    "a median": (median, (149, 151)),
    "taken": (lambda b, x: b.take_along_axis(half(b, b.sort(x, axis=1)), b.constant(np.full((4, 2), [[9, 30]])),
                                             axis=1), (9, 31)),
    "nothing": (lambda b, x: cut(b, half(b, b.sort(x, axis=1)), 5, 5), (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_places(name: str) -> None:
    make, expected = CASES[name]
    assert wanted(make) == expected


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, [0.2, 0.25]])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_quantiles_with_gradients(q: Any, axis: int | None) -> None:
    x = np.random.default_rng(0).standard_normal((40, 30))
    x[3, 5] = x[7, 8]

    def loss(x: Any) -> Any:
        found = np.quantile(x, q, axis=axis)
        return found, dlgradient(np.sum(found * found), x)

    step = dlaccelerate(lambda x: dlfeval(loss, x))
    for _ in range(4):
        found, gradient = step(dlarray(x))
        np.testing.assert_allclose(found._data, np.quantile(x, q, axis=axis))
        np.testing.assert_allclose(gradient._data, dlfeval(loss, dlarray(x))[1]._data)


def test_nan_is_found_however_little_is_sorted() -> None:
    x = np.random.default_rng(0).standard_normal((3, 500))
    x[1, 77] = np.nan
    step = dlaccelerate(lambda x: (np.median(x, axis=1), np.quantile(x, 0.1, axis=1)))
    for _ in range(4):
        for found, want in zip(
            step(dlarray(x)), (np.median(x, axis=1), np.quantile(x, 0.1, axis=1)), strict=True
        ):
            np.testing.assert_allclose(found._data, want)
