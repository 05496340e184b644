# SPDX-License-Identifier: BSD-3-Clause
"""Results in classes of containers that replays do not make: the function runs uncompiled, and says so."""

import collections

import numpy as np
import pytest

import tracejit as tj


class OwnTuple(tuple):
    """A tuple of the user's."""


class OwnList(list):
    """A list of the user's."""


class OwnDict(dict):
    """A dict of the user's."""


class Alike:
    """An object that equals all others."""

    def __init__(self, x):
        self.x = [x]

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda x: OwnTuple((x * 2,)), lambda r: r[0]), (lambda x: OwnList([x * 2]), lambda r: r[0]),
        (lambda x: OwnDict(a=x * 2), lambda r: r["a"]), (lambda x: [OwnTuple((x * 2,))], lambda r: r[0][0]),
        (lambda x: collections.Counter(a=float(x[0]) * 2), lambda r: r["a"]),
        (lambda x: Alike(x * 2), lambda r: r.x[0]), (lambda x: collections.deque([x * 2]), lambda r: r[0]),
    ],
)  # fmt: skip
def test_arrays_in_classes_of_users(make, value):
    accelerated = tj.dlaccelerate(make)
    with pytest.warns(tj.NotAcceleratedWarning, match="which a replay does not make. Return lists, tuples"):
        for number in (1.0, 1.0, 1.0, 2.0, 3.0):
            assert np.asarray(value(accelerated(np.array([number])))).item() == 2 * number


def test_constants_in_them_stay():
    accelerated = tj.dlaccelerate(lambda x: (x * 2, OwnTuple((1, 2)), {x.size}))
    for number in range(4):
        found, pair, size = accelerated(np.array([float(number)]))
        assert (found.item(), pair, size) == (2.0 * number, (1, 2), {1})
    assert accelerated.stats.hits == 2
