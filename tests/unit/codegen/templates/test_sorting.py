# SPDX-License-Identifier: BSD-3-Clause
"""Sorting in vectors: partitions and networks give NumPy's order, for every size around theirs."""

from collections.abc import Callable

import numpy as np
import pytest

from tracejit.aval import Aval
from tracejit.codegen.target import written_for
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

DTYPES = ("float32", "float64", "int32", "int64")
PATTERNS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "random": lambda x: x,
    "few": np.round,
    "rising": np.sort,
    "falling": lambda x: np.sort(x)[..., ::-1],
    "equal": np.zeros_like,
    "highest": lambda x: np.where(x > 0, np.inf if x.dtype.kind == "f" else np.iinfo(np.int32).max, x),
}


def sorted_by(op: str, x: np.ndarray, axis: int) -> np.ndarray:
    """Return both results of an op, by a kernel for vectors of 64 bytes."""
    b = Builder(Graph())
    operand = b.input(Aval(x.shape, None, x.dtype))
    b.graph.outputs = [getattr(b, op)(operand, axis=axis)]
    with written_for(64):
        program = build(b.graph)
    assert any("in_order_x" in kernel.text for kernel in program.kernels)
    (result,) = PythonExecutable(program)([x])
    return result


def drawn(dtype: str, shape: tuple[int, ...], pattern: str) -> np.ndarray:
    numbers = PATTERNS[pattern](np.random.default_rng(0).standard_normal(shape) * 2)
    return (
        np.nan_to_num(numbers, posinf=2**31 - 1).astype(dtype) if dtype[0] == "i" else numbers.astype(dtype)
    )


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 17, 33, 64, 65, 128, 129, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size(dtype: str, size: int) -> None:
    x = drawn(dtype, (2, size), "few")
    np.testing.assert_array_equal(sorted_by("sort", x, 1), [np.sort(x), np.sort(x)[:, ::-1]])
    places = np.argsort(x, axis=1, stable=True)
    np.testing.assert_array_equal(sorted_by("order", x, 1), [places, np.argsort(places, axis=1)])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_patterns(dtype: str, pattern: str) -> None:
    x = drawn(dtype, (300,), pattern)
    np.testing.assert_array_equal(sorted_by("sort", x, 0)[0], np.sort(x))
    np.testing.assert_array_equal(sorted_by("order", x, 0)[0], np.argsort(x, stable=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_comes_last_and_no_zero_is_lost(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], 200).astype(dtype)
    result = sorted_by("sort", x, 0)[0]
    np.testing.assert_array_equal(result, np.sort(x))
    zeros = result[result == 0]
    assert np.signbit(zeros).sum() == np.signbit(x[x == 0]).sum()
    np.testing.assert_array_equal(sorted_by("order", x, 0)[0], np.argsort(x, stable=True))


def test_other_axes_and_other_dtypes() -> None:
    x = drawn("float32", (70, 3), "random")
    np.testing.assert_array_equal(sorted_by("sort", x, 0)[0], np.sort(x, axis=0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("size", [9, 150])
def test_integers_that_vectors_sort_as_others(dtype: str, size: int) -> None:
    x = (
        np.random.default_rng(0)
        .integers(0, 256, (2, 8 * size), np.uint8)
        .view("bool" if dtype == "bool" else dtype)
    )
    x = (x.view(np.uint8) > 99) if dtype == "bool" else x
    np.testing.assert_array_equal(sorted_by("sort", x, 1), [np.sort(x), np.sort(x)[:, ::-1]])
    places = np.argsort(x, axis=1, stable=True)
    np.testing.assert_array_equal(sorted_by("order", x, 1)[0], places)


def partitioned(x: np.ndarray, least: int, most: int) -> np.ndarray:
    b = Builder(Graph())
    operand = b.input(Aval(x.shape, None, x.dtype))
    b.graph.outputs = [b.partition(operand, axis=x.ndim - 1, least=least, most=most)[0]]
    with written_for(64):
        program = build(b.graph)
    (result,) = PythonExecutable(program)([x])
    return result


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_wanted_places(dtype: str, pattern: str) -> None:
    size = 700
    x = drawn(dtype, (2, size), pattern)
    whole = np.sort(x)
    for least, most in ((0, 1), (0, 0), (7, 8), (349, 351), (690, 700), (100, 400), (0, 700)):
        result = partitioned(x, least, most)
        np.testing.assert_array_equal(result[:, least:most], whole[:, least:most])
        np.testing.assert_array_equal(np.sort(result), whole)
        for row in result:
            assert least == most or (row[:least] <= row[least]).all()
            assert least == most or (row[most:] >= row[most - 1]).all()


def test_nan_comes_last_however_little_is_wanted() -> None:
    x = np.random.default_rng(1).choice([np.nan, np.inf, -np.inf, 0.0, 1.0], (3, 400))
    result = partitioned(x, 3, 5)
    np.testing.assert_array_equal(result[:, 3:5], np.sort(x)[:, 3:5])
    for row, given in zip(result, x, strict=True):
        count = int(np.isnan(given).sum())
        assert np.isnan(row[400 - count :]).all() and not np.isnan(row[: 400 - count]).any()
