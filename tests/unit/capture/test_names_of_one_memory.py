# SPDX-License-Identifier: BSD-3-Clause
"""Two names for the same elements, through views of their own: each is followed when it gets another array."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("moved", ["first", "second"])
@pytest.mark.filterwarnings("ignore::tracejit.ChangedTraceWarning")
def test_either_name_gets_another_array(moved: str) -> None:
    base = np.arange(48.0)
    owner, items = SimpleNamespace(array=base[28:32]), {"array": base[24:28]}

    def weighted(x: Any) -> Any:
        return x * owner.array + items["array"] * 3

    accelerated, x = tj.dlaccelerate(weighted), base[:4]
    accelerated(x)
    owner.array = base[2:6]
    accelerated(x)
    items["array"] = base[2:6]
    for _ in range(17):  # an audit is among them
        assert accelerated(x).tolist() == weighted(x).tolist()
    if moved == "first":
        owner.array = base[6:10]
    else:
        items["array"] = base[4:8]
    for _ in range(3):
        assert accelerated(x).tolist() == weighted(x).tolist()


@pytest.mark.parametrize("made", [lambda array: array, tj.dlarray, lambda array: tj.dlarray(array)[:]])
@pytest.mark.parametrize(
    "is_one", [lambda n: n % 2, lambda n: n < 5, lambda n: n < 1, lambda n: 5 < n < 8, lambda n: n > 6]
)
@pytest.mark.parametrize("confirm", [1, 2])
@pytest.mark.filterwarnings("error")
def test_two_names_lead_to_one_array_at_times(made: Any, is_one: Any, confirm: int) -> None:
    owner = SimpleNamespace()

    def weighted(x: Any) -> Any:
        return (x + owner.first) * owner.second

    accelerated, x = tj.dlaccelerate(weighted, confirm=confirm), np.arange(3.0)
    for n in range(20):  # two audits are among them
        owner.first = made(np.full(3, float(n)))
        owner.second = owner.first if is_one(n) else made(np.full(3, n + 0.5))
        assert accelerated(x).tolist() == np.asarray(weighted(x)).tolist()
    assert accelerated.stats.hits > 8
    assert not accelerated.stats.uncompiled


@pytest.mark.parametrize("audit", [False, True])
@pytest.mark.parametrize("moved", ["first", "second"])
@pytest.mark.filterwarnings("error")
def test_two_dlarrays_over_one_memory(moved: str, audit: bool) -> None:
    base = np.array([1.0, 2.0])
    owner = SimpleNamespace(first=tj.dlarray(base), second=tj.dlarray(base))

    def weighted(x: Any) -> Any:
        return (x + owner.first) * owner.second

    accelerated, x = tj.dlaccelerate(weighted, audit=audit), np.ones(2)
    for n in range(16):
        if n in (5, 9):
            setattr(owner, moved, tj.dlarray(np.array([5.0, n])))
        if n == 12:
            owner.first = owner.second
        assert accelerated(x).tolist() == np.asarray(weighted(x)).tolist()
    assert accelerated.stats.hits > 6
