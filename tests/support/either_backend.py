# SPDX-License-Identifier: BSD-3-Clause
"""Duties of accelerated functions on either back end: checks that tests in unit/ and in compiled/ share."""

import collections
import dataclasses

import numpy as np
import pytest
from accelerated import dlaccelerate, vector

import tracejit as tj
from tracejit import dlarray, dlfeval, dlgradient, tree
from tracejit.record import state
from tracejit.traces import record


@dataclasses.dataclass
class State:
    w: object
    name: str = "state"


Pair = collections.namedtuple("Pair", "a b")


def check_order_of_dicts() -> None:
    """A function that runs over a dict sees its order."""
    fun = dlaccelerate(lambda d: [x - 2.0 for x in d.values()] + [next(iter(d.values())) * 3.0])
    a, b = vector(1.0), vector(2.0)
    for _ in range(3):
        assert [r.tolist() for r in fun({"a": a, "b": b})] == [[-1.0], [0.0], [3.0]]
        assert [r.tolist() for r in fun({"b": b, "a": a})] == [[0.0], [-1.0], [6.0]]
    assert fun.stats.traces == 2 and fun.stats.hits == 4
    fun.clear_cache()
    fun({"a": a, "b": b})
    fun({"b": b, "a": a})
    assert "because d has the keys ['b', 'a'], had ['a', 'b']" in fun.explain()


def check_other_arguments() -> None:
    """A call path hands arguments that it does not expect to the general way."""
    accelerated = dlaccelerate(lambda d, s=None: tree.map(lambda leaf: leaf * 2, [d, s]))
    x = vector(1)
    calls = [
        ({"a": x},), ({"b": x},), ({"a": x, "b": x},), (collections.OrderedDict(a=x),), ([x],), ((x,),), (x,),
        ({"a": np.ones(1)},), ({"a": np.ones(1, np.float32)},), ({"a": np.ones(2)},), ({"a": dlarray([1.0], "C")},),
        ({"a": np.array(1)},), ({"a": 1.0},), ({"a": None},), (State(x),), (State(x, "other"),), (State(1.0),),
        (Pair(x, x),), (Pair(x, 1),), ({"a": np.ones(4)[::2]},), ({"a": np.ones((1, 1))},), ({"a": [x]},), (x, x),
        ([x, x],), (x, 1),
    ]  # fmt: skip
    for _ in range(3):
        for call in calls:
            for _ in range(3):
                expected = dlfeval(accelerated.function, *call)
                assert repr(accelerated(*call)) == repr(expected)
    assert accelerated.stats.traces == len(calls) - 1  # an ndarray is like a dlarray


def check_places_out_of_range() -> None:
    """A replay refuses a place out of range, and goes on."""
    taken = dlaccelerate(lambda a, i: (a[i] * 2, dlgradient((a[i] ** 2).sum(), a)))
    a = vector(1.0, 2.0, 3.0)
    for _ in range(3):
        values, slope = taken(a, np.array([0, 1, 1]))
        assert values.tolist() == [2.0, 4.0, 4.0] and slope.tolist() == [2.0, 8.0, 0.0]
    for places in ([3, 0, 0], [0, -4, 0], [0, 0, 50_000_000]):
        with pytest.raises(tj.BoundsError, match="an index is out of range in a replay of take at"):
            taken(a, np.array(places))
    assert taken(a, np.array([2, -3, 0]))[0].tolist() == [6.0, 2.0, 2.0]


class Reads(state.State):
    """Reads one array, by reference, as long as `valid`."""

    fetches = accepts = True

    def __init__(self, array):
        self.array, self.layouts, self.names, self.valid = array, (None,), ("weights",), True
        self.found = None
        self.replays = 0

    def value(self, builder, data):
        if data is not self.array:
            return None
        if self.found is None:
            self.found = builder.input(tj.aval.Aval(data.shape, None, data.dtype), data)
        return self.found

    def fetch(self):
        return (self.array,) if self.valid else None

    def accepted(self):
        self.replays += 1


def check_array_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that a function reads around its arguments is an input of the trace."""
    weights = np.array([1.0, 2.0])
    made = []
    monkeypatch.setattr(record, "CapturedState", lambda *_, **__: made.append(Reads(weights)) or made[-1])
    scaled = tj.dlaccelerate(lambda x: x * weights + weights, confirm=0)
    for n in range(5):
        weights[...] = n
        assert scaled(np.ones(2)).tolist() == [2.0 * n] * 2
    assert len(made) == 1 and made[0].replays == 4
    made[0].valid = False
    assert scaled(np.ones(2)).tolist() == [8.0, 8.0]
    assert len(made) == 2 and made[0].replays == 4
