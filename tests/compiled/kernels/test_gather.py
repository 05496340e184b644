# SPDX-License-Identifier: BSD-3-Clause
"""Elements at computed places: integers of 64 bits keep all their bits, and places outside are errors."""

import numpy as np
import pytest

import tracejit as tj

CALLS = {
    "x[i]": lambda x, i: x[i],
    "x[i, :]": lambda x, i: x[:, None][i, :],
    "x[:, i]": lambda x, i: np.stack([x, x])[:, i],
    "take rows": lambda x, i: np.take(np.stack([x, x], 1), i, axis=0),
    "take_along_axis": lambda x, i: np.take_along_axis(x, i, 0),
    "take_along_axis, rows": lambda x, i: np.take_along_axis(np.stack([x, x], 1), np.stack([i, i], 1), 0),
    "sort": lambda x, i: np.sort(x)[i],
    "quantile": lambda x, i: np.quantile(x, [0.0, 0.6, 1.0], method="nearest"),
    "unique": lambda x, i: np.unique(x),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_keep_all_bits(call: str, dtype: type) -> None:
    x = np.array([2**63 - 1, 2**62 + 1, 3, 2**53 + 1], dtype)
    i = np.array([1, 0, -1, 2, 1])
    want = CALLS[call](x, i)
    step = tj.dlaccelerate(CALLS[call])
    for _ in range(3):
        found = step(tj.dlarray(x), tj.dlarray(i))
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(tj.extractdata(found), want)


@pytest.mark.parametrize("call", ["x[i]", "take rows", "take_along_axis", "take_along_axis, rows"])
@pytest.mark.parametrize("outside", [4, -5])
def test_places_outside(call: str, outside: int) -> None:
    x, i = np.array([2**63 - 1, 2**62 + 1, 3, 2**53 + 1]), np.array([1, 0, -1])
    step = tj.dlaccelerate(CALLS[call])
    for _ in range(3):
        step(tj.dlarray(x), tj.dlarray(i))
    with pytest.raises(tj.BoundsError):
        step(tj.dlarray(x), tj.dlarray(np.array([1, outside, 0])))
