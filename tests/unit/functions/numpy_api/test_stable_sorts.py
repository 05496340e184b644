# SPDX-License-Identifier: BSD-3-Clause
"""Stable sorts: zeros of both signs, and complex numbers with such parts, keep their order, as in NumPy."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj

KINDS: list[dict[str, Any]] = [{"kind": "stable"}, {"kind": "mergesort"}, {"stable": True}]
SIZES = (0, 1, 7, 16, 17, 100)
VALUES = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf])


def drawn(dtype: Any, size: int) -> np.ndarray:
    """Return rows of few different values."""
    rng = np.random.default_rng(size)
    rows = rng.choice(VALUES, (2, size)).astype(dtype)
    if rows.dtype.kind == "c":
        rows.imag = rng.choice(VALUES[:3], (2, size))
    return rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex64, np.complex128])
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_zeros_keep_their_order(options: dict[str, Any], dtype: Any) -> None:
    def ordered(x: Any) -> Any:
        return np.sort(x, **options)

    def along_the_first(x: Any) -> Any:
        return np.sort(x, axis=0, **options)

    for function in (ordered, along_the_first):
        accelerated = tj.dlaccelerate(function)
        for size in SIZES:
            x = drawn(dtype, size)
            expected = function(x)
            for result in (*[accelerated(x) for _ in range(3)], tj.dlfeval(function, tj.dlarray(x))):
                assert np.asarray(result).tobytes() == expected.tobytes(), size


def test_a_method_sorts_in_place() -> None:
    def ordered(x: Any) -> Any:
        y = x.copy()
        y.sort(kind="stable")
        return y

    x = drawn(np.float64, 40)[0]
    accelerated = tj.dlaccelerate(ordered)
    for _ in range(3):
        assert np.asarray(accelerated(x)).tobytes() == ordered(x).tobytes()


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_gradients_go_back_to_where_elements_came_from(options: dict[str, Any]) -> None:
    def gradient(x: Any) -> Any:
        return tj.dlgradient((np.sort(x, **options) * np.arange(4.0)).sum(), x)

    x = np.array([2.0, 0.0, -0.0, -1.0])
    for _ in range(3):
        assert tj.dlfeval(gradient, tj.dlarray(x)).tolist() == [3.0, 1.0, 2.0, 0.0]
    assert np.sort(tj.dlarray(np.array([[2.0, 1.0]]), "CB"), **options).format == "CB"  # type: ignore[attr-defined]
