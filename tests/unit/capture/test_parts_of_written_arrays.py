# SPDX-License-Identifier: BSD-3-Clause
"""dlarrays of the state that are parts of others, which the function writes before it reads them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def add_to_a_row(d: Any) -> None:
    d[1] += 1


def set_the_row(d: Any) -> None:
    d[0] = 3.0


def add_to_an_element(d: Any) -> None:
    d[0, 0] += 1


def add_to_all(d: Any) -> None:
    d += 1


WRITES = [add_to_a_row, set_the_row, add_to_an_element, add_to_all]


class Plain:
    array: Callable[..., Any] = staticmethod(np.array)

    def __init__(self, write: Callable[[Any], None]) -> None:
        self.write = write
        self.d = self.array(np.ones((2, 2)))
        self.part = self.d[0]

    def step(self) -> Any:
        self.write(self.d)
        return self.part.sum()


class Fast(Plain):
    array: Callable[..., Any] = staticmethod(tj.dlarray)


def replace_the_part(o: Any) -> None:
    o.part = o.array(np.array([7.0, 7.0]))


def take_the_part_again(o: Any) -> None:
    o.part = o.d[0]


def replace_the_whole(o: Any) -> None:
    o.d = o.array(np.full((2, 2), 5.0))


def take_another_part(o: Any) -> None:
    o.part = o.d[1]


@pytest.mark.parametrize("write", WRITES)
def test_a_part_that_is_none_any_more_is_read_as_it_is(write: Callable[[Any], None]) -> None:
    plain, fast = Plain(write), Fast(write)
    step = tj.dlaccelerate(fast.step)
    for change in (None, replace_the_part, take_the_part_again, replace_the_whole, take_another_part):
        for o in (plain, fast) if change is not None else ():
            change(o)
        for _ in range(4):
            assert float(step()) == float(plain.step())
            np.testing.assert_array_equal(np.asarray(fast.d), plain.d)
            np.testing.assert_array_equal(np.asarray(fast.part), plain.part)
    assert step.hit_rate > 50
