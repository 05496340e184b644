# SPDX-License-Identifier: BSD-3-Clause
"""Results that lie by columns: new ones, and those that are filled again."""

from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate, dlarray


def transposed(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).uniform(1, 9, shape[::-1]).astype(dtype).T


@pytest.mark.parametrize("shape", [(40, 30), (3, 4, 5), (4, 1), (1, 7), (3, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex128"])
def test_results_equal_those_of_numpy_and_lie_as_they_do(shape: tuple[int, ...], dtype: str) -> None:
    x = transposed(shape, dtype)
    step = dlaccelerate(lambda x: (x * x, np.concatenate([x, x], axis=-1), x + x[0]))
    for _ in range(5):
        results = step(dlarray(x))
        for found, want in zip(results, (x * x, np.concatenate([x, x], axis=-1), x + x[0]), strict=True):
            np.testing.assert_array_equal(found._data, want)
            assert found._data.strides == want.strides or 1 in shape or 0 in shape
            found._data[...] = 0  # what is filled again is filled wholly


def test_results_are_filled_again() -> None:
    step = dlaccelerate(lambda x: x + 1, audit=False)
    x = dlarray(transposed((20, 30), "float64"))
    for _ in range(4):
        step(x)
    places = {step(x)._data.__array_interface__["data"][0] for _ in range(20)}
    assert len(places) <= 2


def test_large_results_which_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracejit.traces import trace

    monkeypatch.setattr(trace, "MOST_BYTES", 1)
    x = transposed((20, 30), "float32")
    step = dlaccelerate(lambda x: np.exp(x * 1))
    for _ in range(4):
        result = step(dlarray(x))._data
        np.testing.assert_allclose(result, np.exp(x), rtol=1e-6)
        assert result.flags.f_contiguous


def test_exported_programs_give_them_too(tmp_path: Path) -> None:
    x = transposed((20, 30), "float64")
    step = dlaccelerate(lambda x: np.exp(x) + x)
    for _ in range(3):
        step(dlarray(x))
    tj.export(step, tmp_path / "exported")
    found = tj.load(tmp_path / "exported")(dlarray(x))._data
    np.testing.assert_array_equal(found, step(dlarray(x))._data)
    assert found.flags.f_contiguous


def test_exported_programs_move_complex_numbers(tmp_path: Path) -> None:
    for dtype in ("complex64", "complex128"):
        z = transposed((6, 7), dtype).T
        step = dlaccelerate(lambda z: np.roll(z, 2, axis=1))
        for _ in range(3):
            step(dlarray(z))
        tj.export(step, tmp_path / dtype)
        np.testing.assert_array_equal(tj.load(tmp_path / dtype)(dlarray(z))._data, np.roll(z, 2, axis=1))
