# SPDX-License-Identifier: BSD-3-Clause
"""Ops alone, compiled for this CPU, are as exact as NumPy's whether they are its loops or our own code."""

import numpy as np
import pytest

import tracejit as tj
from tracejit.codegen import numpy_loops


@pytest.mark.parametrize("char", ["f", "d"])
def test_ops_alone(char: str) -> None:
    names = sorted(numpy_loops._UFUNCS[char].values())
    x = np.random.default_rng(0).uniform(1.0, 3.0, 1000).astype(char)
    for name in names:
        ufunc = getattr(np, name)
        operands = [x] * ufunc.nin
        function = tj.dlaccelerate(lambda *arrays, ufunc=ufunc: ufunc(*arrays), audit=False)
        with np.errstate(all="ignore"):
            for _ in range(3):
                found = np.asarray(function(*map(tj.dlarray, operands)))
            expected = ufunc(*operands)
        np.testing.assert_allclose(found, expected, rtol=8 * float(np.finfo(char).eps))
