# SPDX-License-Identifier: BSD-3-Clause
"""Ndarrays indexed by lists of integers that vary: the lists are arrays of places."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

TABLE = np.random.default_rng(0).normal(size=(9, 3))


class Held:
    """Arrays that functions read and write by lists of places."""

    def __init__(self) -> None:
        self.table, self.counts = TABLE.copy(), np.zeros(9)

    def rows(self, places):
        return TABLE[places].sum(0)

    def pairs(self, places):
        return self.table[[places[0], places[1]]], TABLE[[0, 1], [places[0] % 3, places[1] % 3]]

    def of_an_argument(self, places, given=TABLE):
        return given[places, 1], given[:, [places[0] % 3, 1]]

    def nested(self, places):
        return TABLE[[[places[0]], [places[1]]], [0, 1]]

    def negative(self, places):
        return self.table[1:][[places[0] % 8]], TABLE[[places[0] - 9]]

    def counted(self, places):
        self.counts[places] += 1
        return self.counts.sum()

    def written(self, places):
        self.table[places] = 2.0
        self.table[[places[0], places[1]], [0, places[2] % 3]] -= 0.5
        return self.table[[places[3]]]

    def outside(self, places):
        return TABLE[[places[0] + 5]]


def outcome(function: Callable[..., Any], places: Any) -> Any:
    try:
        return tj.tree.map(lambda x: np.round(np.asarray(x), 12).tolist(), function(places))
    except IndexError:
        return "error"


@pytest.mark.parametrize("name", [name for name in vars(Held) if not name.startswith("_")])
def test_one_trace_serves_all_places(name: str) -> None:
    one, other = Held(), Held()
    accelerated = tj.dlaccelerate(getattr(other, name))
    rng = np.random.default_rng(1)
    for _ in range(16):
        places = rng.integers(0, 9, 4).tolist()
        assert outcome(accelerated, places) == outcome(getattr(one, name), places)
        np.testing.assert_allclose(other.table, one.table)
    assert accelerated.stats.hits >= (3 if name == "outside" else 8)  # an error is recorded each time
