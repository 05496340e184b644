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
    b = Builder(Graph())
    b.graph.outputs = [b.sort(b.input(Aval((9,), None, np.dtype(np.int8))), axis=0)]
    with written_for(64):
        assert not any("in_order_x" in kernel.text for kernel in build(b.graph).kernels)
