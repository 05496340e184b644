# SPDX-License-Identifier: BSD-3-Clause
"""Values of narrow integers are counted, and places of up to 32 bits are sorted beside them: NumPy's results."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

from tracejit import dlarray


def draw(dtype: str, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x.flat[:3] = limits.min, limits.max, limits.max
    return x


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("shape", [(3,), (300,), (20, 15)])
def test_values_and_places(dtype: str, shape: tuple[int, ...]) -> None:
    def everything(x: Any) -> Any:
        return (
            np.unique(x), *np.unique(x, return_counts=True), np.argsort(x, axis=0, kind="stable"),
            np.argsort(x, kind="stable"), np.isin(x, x.ravel()[:5]), np.argsort(x, axis=None, kind="stable"),
        )  # fmt: skip

    x = draw(dtype, shape)
    step = dlaccelerate(everything)
    for found in (everything(dlarray(x)), step(dlarray(x)), step(dlarray(x))):
        for ours, theirs in zip(found, everything(x), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_values_of_16_bits_that_are_counted(dtype: str) -> None:
    x = draw(dtype, (40_000,)) // 300
    found = np.unique(dlarray(x), return_counts=True)
    for ours, theirs in zip(found, np.unique(x, return_counts=True), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_values_of_floats_and_their_counts() -> None:
    x = np.array([3.0, np.nan, 1.0, np.nan, 3.0, -np.inf])
    step = dlaccelerate(lambda x: (*np.unique(x, return_counts=True), np.unique(x, equal_nan=False)))
    for _ in range(2):
        values, counts, apart = (np.asarray(part) for part in step(dlarray(x)))
        np.testing.assert_array_equal(values, [-np.inf, 1.0, 3.0, np.nan])
        np.testing.assert_array_equal(counts, [1, 1, 2, 2])
        assert len(apart) == 5


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2, np.hypot, np.logical_xor])
def test_a_ufunc_of_one_integer_starts_from_its_identity(ufunc: Any, dtype: str) -> None:
    for x in (np.ones(1, dtype), np.zeros(1, dtype)):
        ours, theirs = ufunc.reduce(dlarray(x)), ufunc.reduce(x)
        assert ours.dtype == theirs.dtype
        assert ours.item() == theirs.item()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("into", ["float64", "float32", "int64", "uint8", "complex128"])
def test_numbers_without_a_sign_are_subtracted_at_places(into: str, dtype: str) -> None:
    def subtracted(x: Any, values: Any) -> Any:
        np.subtract.at(x, [0, 1, 1], values)
        np.subtract.at(x, 2, values[0])
        return x * 1

    if not np.can_cast(np.result_type(into, dtype), into, "same_kind"):
        pytest.skip("NumPy refuses it")
    x, values = np.array([5, 1, 0]).astype(into), np.array([3, 1, 0]).astype(dtype)
    step, expected = dlaccelerate(subtracted), subtracted(x.copy(), values)
    for found in (subtracted(dlarray(x.copy()), values), step(x.copy(), values), step(x.copy(), values)):
        assert np.asarray(found).tolist() == expected.tolist()
