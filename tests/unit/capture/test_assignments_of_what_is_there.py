# SPDX-License-Identifier: BSD-3-Clause
"""An array that is assigned to a place where it already is: replays assign it where another one has come between."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

MODULE = """
class Box:
    pass


class Kept:
    k = None


o, s, l, d, g = Box(), Box(), [0], {}, None


def program(x):
    BODY
    return x * 1
"""
KEPT = (
    "o.k = s.k",
    "global g; g = s.k",
    "Kept.k = s.k",
    "s.k = s.k + x; o.k = s.k",
    "l[0] = s.k",
    "d['k'] = s.k",
    "l[0] = d['k'] = s.k; s.k = s.k * x",
)
OF_DLARRAYS = (
    "o.k = s.k; s.k = s.k * 2",
    "o.k = s.k; s.k += 1",
    "l[0] = s.k; s.k *= x",
    "s.k *= x; d['k'] = s.k",
)
"""What NumPy computes from an ndarray no replay can assign, and an ndarray takes no traced values."""


def made(body: str, accelerated: Callable[[Any], Any], box: Callable[[Any], Any]) -> tuple[Any, ...]:
    names: dict[str, Any] = {}
    exec(MODULE.replace("BODY", body), names)
    o, s, items, table, kept = (names[name] for name in ("o", "s", "l", "d", "Kept"))

    def read() -> None:
        s.k = box(np.ones(3) * names["call"])

    def written() -> None:
        array = box(np.ones(3) * -names["call"])
        o.k = items[0] = table["k"] = names["g"] = kept.k = array

    def held() -> list[Any]:
        return [s.k, o.k, items[0], table["k"], names["g"], kept.k]

    return names, accelerated(names["program"]), read, written, held


def of_numpy(array: np.ndarray) -> np.ndarray:
    return array


@pytest.mark.parametrize(
    ("body", "box"),
    [*[(body, tj.dlarray) for body in (*KEPT, *OF_DLARRAYS)], *[(body, of_numpy) for body in KEPT]],
)
def test_is_assigned_again(body: str, box: Callable[[Any], Any]) -> None:
    worlds = [made(body, lambda fun: fun, of_numpy), made(body, tj.dlaccelerate, box)]
    for call in range(11):
        for names, program, read, written, _ in worlds:
            names["call"] = call
            if call in (0, 4, 7):
                read()
            if call in (0, 6, 9):
                written()
            program(np.ones(3) / 2)
        for expected, found in zip(*[held() for *_, held in worlds], strict=True):
            np.testing.assert_array_equal(np.asarray(found), expected)
    assert worlds[1][1].stats.hits >= (7 if box is tj.dlarray else 2)
    assert not worlds[1][1].stats.uncompiled


def test_an_assignment_that_did_not_happen_is_none() -> None:
    class Box:
        k: Any = None

    o, s = Box(), Box()
    o.k = s.k = tj.dlarray(np.ones(3))

    @tj.dlaccelerate
    def program(x: Any, better: bool) -> Any:
        if better:
            o.k = s.k
        return x * s.k

    for _ in range(3):
        program(np.ones(3), False)
    other = o.k = tj.dlarray(np.zeros(3))
    for _ in range(3):
        program(np.ones(3), False)
    assert o.k is other
    program(np.ones(3), True)
    assert o.k is s.k
