# SPDX-License-Identifier: BSD-3-Clause
"""Large products of complex matrices, and those of a matrix and its transpose, call NumPy's loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.passes.graph.numpy_products import LEAST, numpy_products

Build = Callable[..., Any]
SIDE = 16  # of square matrices whose product is large
SWAP = (1, 0)


def graph_of(build: Build, *shapes: tuple[int, ...], dtype: str = "complex128") -> Graph:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = [build(b, *[b.input(Aval(shape, None, np.dtype(dtype))) for shape in shapes])]
    return graph


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    # Sums of whole numbers are exact in any order.
    rng = np.random.default_rng(sum(shape))
    found = rng.integers(-9, 10, shape).astype(dtype)
    return found + 1j * rng.integers(-9, 10, shape).astype(dtype) if found.dtype.kind == "c" else found


CASES: dict[str, tuple[Build, tuple[tuple[int, ...], ...], list[str]]] = {
    "square": (lambda b, x, y: b.matmul(x, y), ((SIDE, SIDE), (SIDE, SIDE)), ["complex_product"]),
    "batch": (lambda b, x, y: b.matmul(x, y), ((3, 20, 21), (3, 21, 22)), ["complex_product"]),
    "broadcast": (lambda b, x, y: b.matmul(x, y), ((2, 1, 20, 21), (3, 21, 22)), ["complex_product"]),
    "transposed": (
        lambda b, x, y: b.matmul(b.transpose(x, axes=SWAP), b.transpose(y, axes=SWAP)),
        ((21, 20), (22, 21)),
        ["complex_product"],
    ),
    "own transpose": (lambda b, x, y: b.matmul(x, b.transpose(x, axes=SWAP)), ((20, 21), (1,)), ["gram"]),
    "transpose first": (
        lambda b, x, y: b.matmul(b.transpose(x, axes=SWAP), x),
        ((20, 21), (1,)),
        ["gram"],
    ),
    "own adjoint": (
        lambda b, x, y: b.matmul(x, b.conj(b.transpose(x, axes=SWAP))),
        ((20, 21), (1,)),
        ["complex_product"],
    ),
    "added": (
        lambda b, x, y: b.matmul_add(x, y, b.matmul(y, x)),
        ((SIDE, SIDE), (SIDE, SIDE)),
        ["complex_product"] * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", CASES)
def test_same_numbers(case: str, dtype: str) -> None:
    build, shapes, expected = CASES[case]
    graph = graph_of(build, *shapes, dtype=dtype)
    changed = numpy_products(graph)
    verify(changed)
    assert [node.op.name for node in changed.nodes if node.op.name in ("complex_product", "gram")] == expected
    inputs = [numbers(shape, dtype) for shape in shapes]
    (found,), (want,) = evaluate(changed, inputs), evaluate(graph, inputs)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def test_small_and_real_ones_are_left() -> None:
    one_less = (1, LEAST - 1)
    for graph in (
        graph_of(lambda b, x, y: b.matmul(x, y), one_less, (LEAST - 1, 1)),
        graph_of(lambda b, x, y: b.matmul(x, y), (50, 50), (50, 50), dtype="float64"),
        graph_of(lambda b, x, y: b.matmul(b.real(x), b.real(y)), (50, 50), (50, 50)),
        graph_of(lambda b, x, y: b.matmul(x, y), (50, 0), (0, 50)),
    ):
        assert numpy_products(graph) is graph


def test_products_in_the_steps_of_a_loop() -> None:
    def power(x: tj.dlarray) -> tj.dlarray:
        return tj.dlscan(lambda y, _: (y @ x / 8, None), x, None, length=5)[0]

    x = numbers((SIDE, SIDE), "complex128") / 8
    fast = tj.dlaccelerate(power)
    for _ in range(4):
        found = fast(tj.dlarray(x))
    assert "matrix_loop_complex_product" in fast.source()
    want = x
    for _ in range(5):
        want = want @ x / 8
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12)


def test_gradients_of_a_product_and_of_a_gram_matrix() -> None:
    def loss(x: tj.dlarray, y: tj.dlarray) -> tuple[tj.dlarray, tj.dlarray]:
        total = np.sum(np.abs(x @ y - x @ x.T) ** 2)
        return total, tj.dlgradient(total, x)

    x, y = (tj.dlarray(numbers((SIDE, SIDE), "complex128") + shift) for shift in (0, 1))
    fast = tj.dlaccelerate(loss)
    for _ in range(4):
        found = fast(x, y)
    assert {"matrix_loop_complex_gram", "matrix_loop_complex_product"} <= {
        word for line in fast.source().splitlines() for word in line.replace("(", " ").split()
    }
    value, gradient = tj.dlfeval(loss, x, y)
    np.testing.assert_allclose(np.asarray(found[0]), np.asarray(value), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(found[1]), np.asarray(gradient), rtol=1e-12)


@pytest.mark.parametrize(("dtype", "least"), [("float64", 64), ("float32", 128)])
@pytest.mark.parametrize("first", [False, True])
def test_a_real_matrix_times_its_transpose(dtype: str, least: int, first: bool) -> None:
    def build(b: Any, x: Any) -> Any:
        turned = b.transpose(x, axes=SWAP)
        return b.matmul(turned, x) if first else b.matmul(x, turned)

    shape = (130, least) if first else (least, 130)
    graph = graph_of(build, shape, dtype=dtype)
    changed = numpy_products(graph)
    verify(changed)
    assert [node.op.name for node in changed.nodes if node.op.name != "transpose"] == ["gram"]
    x = numbers(shape, dtype)
    (found,), (want,) = evaluate(changed, [x]), evaluate(graph, [x])
    np.testing.assert_array_equal(found, want)
    assert found.dtype == want.dtype
    few = graph_of(build, (500, least - 1) if first else (least - 1, 500), dtype=dtype)
    assert numpy_products(few) is few


def test_other_real_products_are_left() -> None:
    for graph in (
        graph_of(lambda b, x: b.matmul(x, b.transpose(x, axes=SWAP)), (200, 200), dtype="int64"),
        graph_of(lambda b, x: b.matmul(x, x), (200, 200), dtype="float64"),
        graph_of(
            lambda b, x, y: b.matmul(x, b.transpose(y, axes=SWAP)), (200, 200), (200, 200), dtype="float64"
        ),
        graph_of(lambda b, x: b.matmul(x, b.transpose(x, axes=(0, 2, 1))), (3, 200, 200), dtype="float64"),
    ):
        assert numpy_products(graph) is graph
