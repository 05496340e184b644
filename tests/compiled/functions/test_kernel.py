# SPDX-License-Identifier: BSD-3-Clause
"""Loops of users, compiled, compared with Python's; and exported."""

import numpy as np
import pytest
from user_loops import CASES, smooth, taken

import tracejit as tj
from tracejit.errors import BoundsError


@pytest.mark.whole("each is a program of its own")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_loops(name, dtype):
    kernel, arguments = CASES[name]
    given = [
        np.asarray(x).astype(dtype) if np.asarray(x).dtype.kind == "f" else np.asarray(x) for x in arguments
    ]
    fun = tj.dlaccelerate(lambda *x: kernel(*[y * 1 for y in x]))
    expected = fun.function(*map(tj.dlarray, given))
    for _ in range(4):
        pairs = zip(*[x if isinstance(x, tuple) else (x,) for x in (fun(*given), expected)], strict=True)
        for found, right in pairs:
            assert found.dtype == right.dtype
            rtol = 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(np.asarray(found), np.asarray(right), rtol=rtol)
    assert fun.stats.hits == 2


def test_an_index_out_of_range_writes_nothing():
    @tj.dlaccelerate
    def fun(x, index, y):
        y += 1
        return taken(x, index)

    y = np.zeros(2)
    for _ in range(3):
        fun(np.ones(3), np.array([0, -3, 2]), y)
    with pytest.raises(BoundsError):
        fun(np.ones(3), np.array([0, 1, 3]), y)
    assert y.tolist() == [3.0, 3.0]
    assert fun.stats.hits == 2  # the call that raised was replayed, too


def test_an_export(tmp_path):
    fun = tj.dlaccelerate(lambda x: smooth(x) * 2)
    x = np.arange(6.0) ** 2
    tj.export(fun, tmp_path / "smooth.tj", args=(x,))
    loaded = tj.load(tmp_path / "smooth.tj")
    assert np.allclose(np.asarray(loaded(x)), np.asarray(fun(x)))
