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


def of_a_number(accelerated: Callable[[Any], Any]) -> tuple[Any, ...]:
    table = {"total": 0.0, "list": ()}

    def program(x: Any) -> Any:
        table["total"] += (x * x).sum()
        table["list"] += (x.sum(),)
        return x * 2

    return table, accelerated(program)


def test_what_was_there_counts_where_replays_assign() -> None:
    """A number or a tuple that ``+=`` reads only to replace it: it is set anew before each epoch."""
    worlds = [of_a_number(lambda fun: fun), of_a_number(tj.dlaccelerate)]
    for epoch, steps in enumerate((1, 1, 1, 3, 3, 3)):
        for table, _ in worlds:
            table.update(total=float(epoch // 4), list=())
        for step in range(steps):
            (expected, plain), (found, program) = worlds
            x = np.arange(3.0) + step + epoch
            np.testing.assert_array_equal(np.asarray(program(x)), plain(x))
            assert float(found["total"]) == expected["total"]
            assert [float(part) for part in found["list"]] == [float(part) for part in expected["list"]]
    assert worlds[1][1].stats.hits >= 2


def test_a_sum_that_starts_as_a_number_is_replayed() -> None:
    class Epoch:
        total: Any = 0.0
        count = 0

        @tj.dlaccelerate(audit=False)
        def step(self, x: Any) -> None:
            self.total += x.sum()
            self.count += 1

    epoch = Epoch()
    for _ in range(4):
        epoch.total = 0.0
        for step in range(3):
            epoch.step(np.full(2, float(step)))
        assert float(epoch.total) == 6.0
    assert epoch.step.stats.hits == 8
