# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions beside the functions themselves: equal results, and the warnings of a call."""

import warnings

import numpy as np
from bits import same_bits

from tracejit import (
    dlaccelerate,
    dlarray,
    dlfeval,
    tree,
)


def vector(*numbers):
    return dlarray(np.array(numbers, float))


def plain(result):
    """Return a result with ndarrays for dlarrays."""
    return tree.map(lambda leaf: leaf._data if type(leaf) is dlarray else leaf, result)


def assert_same(found, expected):
    (have, have_tree), (want, want_tree) = tree.flatten(plain(found)), tree.flatten(plain(expected))
    assert have_tree == want_tree
    for a, b in zip(have, want, strict=True):
        assert type(a) is type(b)
        if not isinstance(a, np.ndarray):
            assert repr(a) == repr(b)
        elif not same_bits(a, b):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def follow(fun, calls, **options):
    """Call a function accelerated, and plain, with each of some arguments; return the accelerated function."""
    accelerated = dlaccelerate(fun, **options)
    for arguments in calls:
        arguments = arguments if type(arguments) is tuple else (arguments,)
        assert_same(accelerated(*arguments), dlfeval(fun, *arguments))
    return accelerated


def warned(fun, *arguments):
    """Return the result of a call and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fun(*arguments)
    return result, caught
