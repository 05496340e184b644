# SPDX-License-Identifier: BSD-3-Clause
"""Assignments to attributes, items and names by compiled programs, whose call paths store what they compute."""

import collections
import dataclasses
import types

import numpy as np
import pytest
from assigning_programs import CASES, follow, generated

import tracejit as tj


@pytest.mark.parametrize("name", [*CASES])
def test_compiled(name):
    follow(CASES[name], calls=12, most=9 if name == "best" else 5)


@pytest.mark.parametrize("statement", ["read and assigned", "swapped", "in a branch", "in a tuple", "a view"])
@pytest.mark.parametrize("place", ["attribute", "item of an attribute", "global"])
def test_generated(place, statement):
    follow(generated(place, statement, "array"), calls=12, most=6)


def test_arrays_that_are_replaced_are_filled_again():
    """An array that somebody keeps is not."""

    class Simulation:
        def __init__(self):
            self.u = tj.dlarray(np.zeros(1000))

        @tj.dlaccelerate
        def step(self, x):
            self.u = self.u + x
            return self.u[0]

    simulation, kept, memory = Simulation(), [], set()
    for n in range(1, 41):
        assert simulation.step(np.ones(1000)).item() == n
        if n % 10 == 0:
            kept.append((n, simulation.u))
        memory.add(np.asarray(simulation.u).ctypes.data)
    assert all(array.tolist() == [n] * 1000 for n, array in kept)
    assert len(memory) <= 12
    assert simulation.step.stats.hits >= 36


class Holder:
    """What a layer keeps for its backward pass."""

    @tj.dlaccelerate
    def forward(self, x, more, rate):
        self.x, self.flat, self.rows = x, x.reshape(-1), [more["w"], more["pair"].b[1:]]
        self.kept = {"first": more["list"][0], "labelled": more["node"].c, "x": x.T}
        return (x * rate).sum() + more["pair"].a

    def state(self):
        return [self.x, self.flat, *self.rows, *self.kept.values()]


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Node:
    c: object


def test_arguments_that_are_kept_have_a_call_path():
    """What is stored shows the caller's memory, in the general way and by a call path."""
    holder, rng = Holder(), np.random.default_rng(0)
    for n in range(12):
        x, w, b, first, c = (rng.random((2, 3)) for _ in range(5))
        more = {
            "w": w,
            "pair": Pair(np.array(1.0), b),
            "list": [first],
            "node": Node(tj.dlarray(c, "BC")),
        }
        holder.forward(x, more, 0.5)
        x += n
        expected = [x, x.reshape(-1), w, b[1:], first, c, x.T]
        for found, wanted in zip(holder.state(), expected, strict=True):
            assert type(found) is tj.dlarray
            assert found.tolist() == wanted.tolist()
        assert holder.kept["labelled"].format == "BC"
        assert holder.x.format is None
    assert holder.forward.stats.hits == 9
    assert len(holder.forward._cache.paths) == 1


@pytest.mark.parametrize("kind", ["unaligned", "foreign", "no axes", "number"])
def test_arguments_of_other_layouts_are_kept(kind):
    holder = types.SimpleNamespace(x=None)

    @tj.dlaccelerate
    def keep(x):
        holder.x = x
        return x * 2

    for n in range(8):
        x = np.array(n + 0.5) if kind == "no axes" else np.arange(3.0) + n
        if kind == "unaligned":
            memory = np.zeros(3, [("flag", "i1"), ("x", "f8")])
            memory["x"] = x
            x = memory["x"]
        elif kind == "foreign":
            x = x.astype(x.dtype.newbyteorder())
        given = tj.dlarray(n + 0.5) if kind == "number" else x
        assert keep(given).tolist() == (2 * np.asarray(given)).tolist()
        assert np.asarray(holder.x).tolist() == np.asarray(given).tolist()
        if kind in ("unaligned", "no axes"):
            x[...] = 7.0
            assert np.asarray(holder.x).tolist() == x.tolist()
    assert keep.stats.hits == 5


def test_a_number_that_varies_is_kept():
    holder = types.SimpleNamespace(rate=None)

    @tj.dlaccelerate
    def keep(x, rate):
        holder.rate, holder.x = rate, x
        return x * rate

    for n in range(10):
        assert keep(np.ones(2), n / 2).tolist() == [n / 2] * 2
        assert float(holder.rate) == n / 2


def test_views_of_ndarrays_are_made_of_the_array_of_now():
    """A call path compares the layout of an array, too, of which a view is stored."""
    w = np.arange(6.0).reshape(2, 3)
    layouts = [np.copy, np.asfortranarray, lambda w: np.concatenate([w, w], axis=1)[:, :3]]
    layer = types.SimpleNamespace(w=None, kept=None)

    @tj.dlaccelerate
    def forward(x):
        layer.kept = layer.w.T
        return x * 2

    for n in range(24):
        layer.w = layouts[n // 3 % 3](w)
        forward(np.ones(2))
        assert layer.kept.tolist() == w.T.tolist()
        assert np.shares_memory(layer.kept, layer.w)
    assert forward.stats.hits >= 16
    assert len(forward._cache.paths) == 3


def test_a_row_by_a_computed_number_remains_a_view():
    state = types.SimpleNamespace(table=None, row=None, window=None)

    @tj.dlaccelerate
    def step(x, start):
        state.table = x * 2
        state.row = state.table[x[:, 0].argmax()]
        state.window = state.table[start : start + 2]
        return x.sum()

    rng = np.random.default_rng(0)
    for n in range(12):
        x = rng.random((5, 3))
        step(x, n % 3)
        assert state.row.tolist() == (2 * x[x[:, 0].argmax()]).tolist()
        assert state.window.tolist() == (2 * x[n % 3 : n % 3 + 2]).tolist()
        state.table += 1.0
        assert state.row.tolist() == (2 * x[x[:, 0].argmax()] + 1).tolist()
        assert state.window.tolist() == (2 * x[n % 3 : n % 3 + 2] + 1).tolist()
    assert step.stats.hits >= 4
