# SPDX-License-Identifier: BSD-3-Clause
"""Worlds of traps: a function with its state, made twice from the same seeds, and called accelerated and plain."""

import linecache
import random
import re
import warnings

import numpy as np
from bits import same_bits
from effort import sweep

import tracejit as tj
from tracejit import dlaccelerate, dlarray


def pick(n, *values):
    """Return the value of call `n`: three calls each, in turn, so that each is recorded, confirmed and replayed."""
    return values[n // 3 % len(values)]


def frozen(result):
    leaves, treedef = tj.tree.flatten(result)
    kinds = [type(leaf) for leaf in leaves]
    return [np.array(leaf) if isinstance(leaf, np.ndarray | dlarray) else leaf for leaf in leaves], (
        kinds,
        treedef,
    )


def assert_same(found, expected):
    assert found[1] == expected[1]
    for have, want in zip(found[0], expected[0], strict=True):
        if not isinstance(want, np.ndarray):
            assert repr(have) == repr(want)
            continue
        if isinstance(have, np.ndarray) and same_bits(have, want):
            continue
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(have, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
        np.testing.assert_array_equal(np.signbit(have)[have == 0], np.signbit(want)[want == 0])


def follow(world, *, calls=None, warns=None, replays=True, **options):
    """Compare an accelerated world with a plain one; return the functions that were accelerated."""
    calls = calls or sweep(18, 24, sample=12)
    worlds = []
    for enabled in (True, False):
        np.random.seed(1)
        random.seed(1)
        tj.rng(1)
        made = []

        def accelerate(function, made=made, enabled=enabled):
            made.append(dlaccelerate(function, enabled=enabled, **options))
            return made[-1]

        call = world(accelerate)
        results, copies = [], []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(calls):
                results.append(call(n))
                copies.append(frozen(results[-1]))
        for result, as_given in zip(results, copies, strict=True):
            assert_same(frozen(result), as_given)
        worlds.append((copies, caught, made))
    (found, caught, made), (expected, nothing, _) = worlds
    assert not nothing
    for have, want in zip(found, expected, strict=True):
        assert_same(have, want)
    if warns is None:
        assert [str(warning.message) for warning in caught] == []
        assert sum(each.stats.uncompiled for each in made) == 0
        assert not replays or sum(each.stats.hits for each in made) > 0
    else:
        assert_warned(caught, warns)
    return made


def assert_warned(caught, text):
    """Check that one warning was given, which names the marked line of the test."""
    (warning,) = caught
    assert re.search(text, str(warning.message)), str(warning.message)
    assert "/tests/unit/" in warning.filename
    assert "# here" in linecache.getline(warning.filename, warning.lineno)
    assert f"{warning.filename}:{warning.lineno}" in str(warning.message)


def of(fun, *arguments):
    """Return a world in which a function gets arguments in turn, three calls each."""

    def world(accelerate):
        accelerated = accelerate(fun)

        def call(n):
            given = pick(n, *arguments)
            given = given if type(given) is tuple else (given,)
            before = [np.array(a) for a in given if isinstance(a, np.ndarray)]
            result = accelerated(*given)
            for was, now in zip(before, [a for a in given if isinstance(a, np.ndarray)], strict=True):
                if not same_bits(was, now):
                    np.testing.assert_array_equal(was, now)
            return result

        return call

    return world
