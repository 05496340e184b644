# SPDX-License-Identifier: BSD-3-Clause
"""Warnings about what is hardly meant: changes of arguments that are lost, calls that are hardly ever replayed."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@dataclass
class Model:
    w: Any
    steps: int = 0


def in_a_dict(p: Any, x: Any) -> Any:
    loss = ((p["w"] * x) ** 2).sum()
    p["w"] = p["w"] - 0.1 * tj.dlgradient(loss, p["w"])
    return loss


def in_a_list(p: Any, x: Any) -> Any:
    p["old"].append(x.sum())
    return x * 2


def in_an_object(p: Any, x: Any) -> Any:
    p["model"].w = p["model"].w * x
    p["model"].steps += 1
    return x * 2


@pytest.mark.parametrize(
    ("function", "given", "held"),
    [
        (in_a_dict, lambda: {"w": tj.dlarray(np.ones(3))}, lambda p: p["w"].round(6).tolist() == [0.8] * 3),
        (in_a_list, lambda: {"old": [], "w": 1}, lambda p: [part.item() for part in p["old"]] == [3.0]),
        (in_an_object, lambda: {"model": Model(tj.dlarray(np.ones(3)))}, lambda p: p["model"].steps == 1),
    ],
)
def test_no_warning_of_what_is_put_into_containers(function: Any, given: Any, held: Any) -> None:
    step = tj.dlaccelerate(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            p = given()
            step(p, np.ones(3))
            assert held(p)


def test_a_change_that_is_returned_is_not_lost() -> None:
    @tj.dlaccelerate
    def step(p: Any, x: Any) -> Any:
        p["w"] = p["w"] * x
        p["name"] = "changed"
        p.pop("unused", None)
        x[0] = 1.0
        return p, x.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            step({"w": tj.dlarray(np.ones(3)), "unused": 1}, tj.dlarray(np.ones(3)))


def turnover(function: Any, calls: int, given: Callable[[int], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for i in range(calls):
            function(np.ones(3), given(i))
    return [str(each.message) for each in found if each.category is tj.RetraceWarning]


def test_numbers_of_numpy_that_change() -> None:
    scaled = tj.dlaccelerate(lambda x, rate: x * rate, cache_size=4)
    (text,) = turnover(scaled, 30, lambda i: np.longlong(i))
    assert text.endswith(
        "was np.int64(22), is np.int64(23). A NumPy number of this type that changes from call to call costs a "
        "trace each time: pass a Python number, such as float(rate). If so many are intended, raise cache_size (4)."
    )
    assert (
        "is recorded in most calls: traces for 20 different signatures were evicted, and 0 % of 24 calls were replayed."
        in text
    )
    for kind in (float, np.float64, np.float32, np.int64):
        scaled = tj.dlaccelerate(lambda x, rate: x * rate, cache_size=4)
        assert turnover(scaled, 30, lambda i, kind=kind: kind(0.5 * i + 0.25)) == []


def test_sizes_that_come_back_are_no_turnover() -> None:
    summed = tj.dlaccelerate(lambda x, y: x.sum() + y.sum(), cache_size=4, confirm=0)
    assert turnover(summed, 60, lambda i: np.ones(1 + i // 10)) == []
    (text,) = turnover(
        tj.dlaccelerate(lambda x, y: x.sum() + y.sum(), cache_size=4), 40, lambda i: np.ones(1 + i)
    )
    assert "y was 23 float64, is 24 float64" in text
