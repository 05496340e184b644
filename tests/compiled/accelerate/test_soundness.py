# SPDX-License-Identifier: BSD-3-Clause
"""Decisions, sizes and their limits in compiled programs."""

import warnings

import numpy as np

from tracejit import (
    dlaccelerate,
    dlarray,
    dlfeval,
    dlgradient,
    tree,
)
from tracejit.record import guards
from tracejit.traces import replay


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
        np.testing.assert_allclose(a, b, rtol=1e-12) if isinstance(a, np.ndarray) else None
        assert isinstance(a, np.ndarray) or repr(a) == repr(b)


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


VECTORS = [
    vector(1, 2),
    vector(1, 2),
    vector(-3, 1),
    vector(-3, 1),
    vector(4, -1),
    vector(1, 2),
    vector(-3, 1),
]


class TestDecisions:
    def test_compiled(self):
        def fun(x):
            y = x * 2 if x.sum() > 0 else x * 3
            return y * float(x[0]), dlgradient((y * y).sum(), x)

        follow(fun, VECTORS * 3)


class TestSizes:
    def test_compiled(self):
        def fun(x):
            y = x[x > 0]
            return y, dlgradient((y**2).sum(), x)

        follow(
            fun, [np.array(n, float) for n in ([1, 2, -1], [-1, 1, 5], [1, -1, 1], [1, 1, 1], [0, 0, 3])] * 2
        )


class TestLimits:
    def test_a_decision_on_the_edge_of_rounding(self, monkeypatch):
        # As if the compiled sum differed from NumPy's.
        monkeypatch.setattr(replay.Replay, "__call__", lambda *_: (_ for _ in ()).throw(guards.GuardFailed))
        accelerated = dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x)
        caught = [w for _ in range(13) for w in warned(accelerated, vector(1, 2))[1]]
        (warning,) = caught
        assert "bool() keeps giving different results in the compiled and the uncompiled function" in str(
            warning.message
        )
        assert accelerated.stats.uncompiled == 1
