# SPDX-License-Identifier: BSD-3-Clause
"""A check that an accelerated function draws the random numbers that the function itself draws."""

import numpy as np

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlfeval

X = dlarray(np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32), "BC")


def calls(fun, *args, count=5, seed=3):
    """Return the results of some calls in turn, and the state after them."""
    with tj.rng(seed):
        found = [fun(*args) for _ in range(count)]
        return [tj.tree.flatten(each)[0] for each in found], tj.rng()


def assert_draws_as_uncompiled(fun, *args, hits=60.0, exact=True, **options):
    """Compare calls of the accelerated function with those of the function itself."""
    accelerated = dlaccelerate(fun, **options)
    found, state = calls(accelerated, *args)
    expected, expected_state = calls(lambda *args: dlfeval(fun, *args), *args)
    assert state == expected_state
    assert accelerated.hit_rate == hits
    for have, want in zip(found, expected, strict=True):
        for a, b in zip(have, want, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and a.format == b.format
            if exact:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return found
