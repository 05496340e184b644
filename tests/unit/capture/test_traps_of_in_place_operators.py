# SPDX-License-Identifier: BSD-3-Clause
"""Traps: dlarrays outside the function that it only writes by ``+=``, or only looks at, and that are replaced."""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

MODULE = """
import numpy as np


class Vector:
    def __init__(self, a):
        self.a = a

    def __iadd__(self, other):
        self.a += other
        return self


class Box:
    pass


class Slotted:
    __slots__ = ("a",)


class Property:
    @property
    def a(self):
        return self.kept

    @a.setter
    def a(self, value):
        self.kept = value


def make(accelerated):
    n = None

    def put(array):
        nonlocal n
        n = array()
        globals()["g"] = array()
        for box in (b, slotted, computed, Box, b.inner):
            box.a = array()
        d["a"], d[0], table["a"], l[0], queue[0] = array(), array(), array(), array(), array()
        b.v = Vector(array())

    def held():
        return [n, g, b.a, slotted.a, computed.a, Box.a, b.inner.a, d["a"], d[0], table["a"], l[0], queue[0], b.v.a]

    @accelerated
    def program(x, k=0):
        BODY
        return x * 1

    return program, put, held


b, slotted, computed, d, l = Box(), Slotted(), Property(), {}, [0, 0]
b.inner = Box()
table, queue = collections.defaultdict(int), collections.deque([0, 0])
"""
WRITES = (
    "nonlocal n; n *= 2", "global g; g *= 2", "b.a *= 2", "slotted.a += x[:1]", "computed.a *= 2", "Box.a *= 2",
    "b.inner.a -= 1", "d['a'] *= 2", "d[k] *= 2", "table['a'] *= 2", "l[k] += 1", "queue[0] *= 2", "b.v += x[0]",
    "b.a += x[:1]; d['a'] -= b.a", "b.a = b.a * 2; b.a += 1", "b.a **= 2", "b.a @= b.a", "b.__dict__['a'] *= 2",
    "nonlocal n; n += 1; (lambda: n)()",
)  # fmt: skip
LOOKS = (
    "v = g.T", "v = g[0]", "v = b.a.T", "v = g.real", "v = w = g.T", "v = g.T if k == 0 else 0", "v = d['a'][0]",
    "v, w = g.T, g[0]", "v = g.T; v = g[0]",
)  # fmt: skip


def made(body: str, accelerated: Callable[[Any], Any]) -> Any:
    names: dict[str, Any] = {"collections": collections}
    exec(MODULE.replace("BODY", body), names)
    return names["make"](accelerated)


@pytest.mark.parametrize("replaced_at", [(), (3, 5), range(1, 7)], ids=["never", "twice", "each time"])
@pytest.mark.parametrize("body", [*WRITES, *LOOKS])
def test_the_array_that_is_there_now(body: str, replaced_at: Any) -> None:
    numpys, put_numpys, numpys_held = made(body, lambda fun: fun)
    ours, put, held = made(body, tj.dlaccelerate)
    for call in range(7):
        if call in (0, *replaced_at):
            elements = np.arange(4.0).reshape(2, 2) / 10 + call / 10
            put_numpys(elements.copy)
            put(lambda elements=elements: tj.dlarray(elements.copy()))
        x = np.full(3, call / 10)
        np.testing.assert_allclose(np.asarray(ours(x)), numpys(x))
        for found, expected in zip(held(), numpys_held(), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected)
    assert ours.stats.hits == 5
    assert not ours.stats.uncompiled


def test_a_number_that_is_counted_or_not_used_is_no_state() -> None:
    class Box:
        count = 0
        unused = 0

    box = Box()

    @tj.dlaccelerate
    def program(x: Any) -> Any:
        box.count += 1
        kept = box.unused  # noqa: F841
        return x * 2

    for call in range(5):
        box.unused = call
        program(np.ones(3))
    assert program.stats.hits == 3
