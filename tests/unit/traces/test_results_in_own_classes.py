# SPDX-License-Identifier: BSD-3-Clause
"""Results in classes of the user's: replays make containers; with other objects the function runs uncompiled."""

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


class With(dict):
    """A dict with an attribute beside its items."""

    def __init__(self, **items):
        super().__init__(**items)
        self.name = "with"


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
        (lambda x: Alike(x * 2), lambda r: r.x[0]), (lambda x: collections.UserList([x * 2]), lambda r: r[0]),
        (lambda x: With(a=x * 2), lambda r: r["a"]),
    ],
)  # fmt: skip
def test_arrays_in_objects(make, value):
    accelerated = tj.dlaccelerate(make)
    with pytest.warns(tj.NotAcceleratedWarning, match="which a replay does not make. Return lists, tuples"):
        for number in (1.0, 1.0, 1.0, 2.0, 3.0):
            assert np.asarray(value(accelerated(np.array([number])))).item() == 2 * number


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda x: OwnTuple((x * 2,)), lambda r: r[0]), (lambda x: OwnList([x * 2]), lambda r: r[0]),
        (lambda x: OwnDict(a=x * 2), lambda r: r["a"]), (lambda x: [OwnTuple((x * 2,))], lambda r: r[0][0]),
        (lambda x: collections.Counter(a=float(x[0]) * 2), lambda r: r["a"]),
        (lambda x: collections.deque([x * 2]), lambda r: r[0]),
    ],
)  # fmt: skip
def test_arrays_in_containers_of_own_classes(make, value):
    accelerated = tj.dlaccelerate(make)
    for number in (1.0, 1.0, 1.0, 2.0, 3.0):
        found = accelerated(np.array([number]))
        assert type(found) is type(make(np.ones(1)))
        assert np.asarray(value(found)).item() == 2 * number
    assert accelerated.stats.hits == 3


def test_constants_in_them_stay():
    accelerated = tj.dlaccelerate(lambda x: (x * 2, OwnTuple((1, 2)), {x.size}))
    for number in range(4):
        found, pair, size = accelerated(np.array([float(number)]))
        assert (found.item(), pair, size) == (2.0 * number, (1, 2), {1})
    assert accelerated.stats.hits == 2
