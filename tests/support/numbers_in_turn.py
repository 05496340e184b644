# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions called with numbers in turn, beside the functions themselves."""

import math
import warnings

import numpy as np
import pytest
from bits import same_bits

import tracejit as tj
from tracejit import RetraceWarning, dlaccelerate, dlarray, dlfeval, tree

X = dlarray(np.array([0.5, -1.5], np.float32))


def assert_same(found, expected):
    (have, have_tree), (want, want_tree) = tree.flatten(found), tree.flatten(expected)
    assert have_tree == want_tree
    for a, b in zip(have, want, strict=True):
        assert type(a) is type(b), (a, b)
        if isinstance(a, (dlarray, np.ndarray)):
            x, y = (tj.extractdata(part) if type(part) is dlarray else part for part in (a, b))
            assert x.dtype == y.dtype
            if not same_bits(x, y):
                np.testing.assert_allclose(x, y, rtol=1e-6)
        elif isinstance(a, (float, np.floating)):
            precision = 1e-6 if type(a) is np.float32 else 1e-14
            assert a == pytest.approx(b, rel=precision, nan_ok=True)
            is_nan_of_numpy = type(a) is not float and np.isnan(a)
            assert is_nan_of_numpy or math.copysign(1, a) == math.copysign(1, b)
        else:
            assert a == b


def outcome(fun, *args):
    """Return what a call gives, or the error that it raises."""
    try:
        return fun(*args)
    except Exception as error:
        return type(error).__name__


def follow(fun, numbers, *arrays, **options):
    """Call a function with numbers in turn, accelerated and plain; return the accelerated function."""
    accelerated = dlaccelerate(fun, audit=False, **options)
    for number in numbers:
        number = number if type(number) is tuple else (number,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetraceWarning)
            found = outcome(accelerated, *arrays, *number)
        assert_same(found, outcome(lambda *args: dlfeval(fun, *args), *arrays, *number))
    return accelerated


FLOATS = [0.5, 0.25, 0.125, 0.75, 2.0, -1.5, 0.1, 3.0]
