# SPDX-License-Identifier: BSD-3-Clause
"""Integers that vary and are as large as 64 bits hold, in arithmetic whose results they may not hold."""

import warnings

import numpy as np
import pytest

import tracejit as tj

BODIES = [
    "k * k * k",
    "k + k",
    "-k",
    "abs(k)",
    "k - 1",
    "k // -1",
    "k * k > 100",
    "k // 2",
    "k % 7",
    "k * 1.5",
    "k << 1",
]
LARGE = (1, 2, 3, 4, 5, -(2**63), 6, 2**63 - 1, 7, 1 - 2**63, 2**62, -(2**62), 2**31, -(2**31))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("made", ["k", "int(k[0])"])
def test_arithmetic_is_that_of_python(body, made):
    plain = eval(f"lambda k: (lambda k: {body})({made})")
    accelerated = tj.dlaccelerate(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for number in LARGE:
            given = number if made == "k" else np.array([number])
            assert accelerated(given) == plain(given)
