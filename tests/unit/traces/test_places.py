# SPDX-License-Identifier: BSD-3-Clause
"""Indices out of range in functions that handle errors: replays leave them to the function, wherever the handler is."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def element(x: Any, i: Any) -> Any:
    try:
        return x[i]
    except IndexError:
        return -1.0


class Padded:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, i: Any) -> Any:
        try:
            return self.x[i]
        except IndexError:
            return 7.0


def in_a_helper(x: Any, i: Any) -> Any:
    return x + element(x, i)


def in_a_method(x: Any, i: Any) -> Any:
    return x + Padded(x)[i]


def of_what_nothing_uses(x: Any, i: Any) -> Any:
    try:
        x[i]
    except IndexError:
        return x * 0
    return x + 1


def counted(x: Any, i: Any) -> Any:
    n = 0
    for k in range(4):
        try:
            x[i + k]
        except IndexError:
            break
        n += 1
    return x * n


def written_beside(x: Any, i: Any) -> Any:
    y = x * 2
    try:
        y[i] = 0
    except IndexError:
        return x
    return x + 1


@pytest.mark.parametrize("kind", [int, np.array])
@pytest.mark.parametrize("fun", [in_a_helper, in_a_method, of_what_nothing_uses, counted, written_beside])
def test_handlers_see_the_error(fun: Callable[..., Any], kind: Any) -> None:
    accelerated = tj.dlaccelerate(fun)
    x = np.array([1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for i in (0, 1, 2, 2, 1, 0, 3, 1, 9, -4, -3):
            np.testing.assert_allclose(np.asarray(accelerated(x, kind(i))), fun(x, kind(i)))


def test_the_guard_of_a_place_is_told() -> None:
    accelerated = tj.dlaccelerate(of_what_nothing_uses)
    for i in (0, 1, 2, 0):
        accelerated(np.ones(3), np.array(i))
    assert accelerated.stats.hits == 2
    assert "whether an index is in range" in str(accelerated.explain())


def test_there_is_no_guard_where_the_element_is_used() -> None:
    accelerated = tj.dlaccelerate(in_a_helper)
    for i in (0, 1, 2, 0):
        accelerated(np.ones(3), np.array(i))
    assert accelerated.stats.hits == 2
    assert "whether" not in str(accelerated.explain())


def test_a_function_without_handlers_raises_the_error_of_the_replay() -> None:
    accelerated = tj.dlaccelerate(lambda x, i: x[i] * 2)
    for i in (0, 1, 2):
        accelerated(np.ones(3), np.array(i))
    with pytest.raises(tj.BoundsError, match="an index is out of range in a replay of take"):
        accelerated(np.ones(3), np.array(3))
