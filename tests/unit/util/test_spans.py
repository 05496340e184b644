# SPDX-License-Identifier: BSD-3-Clause
"""Arrays by where they lie: what may share memory is found as NumPy finds it."""

import random

import numpy as np
import pytest

from tracejit.util.spans import Spans


@pytest.mark.parametrize("seed", range(20))
def test_what_may_share_memory(seed: int) -> None:
    rng, memory = random.Random(seed), np.zeros((6, 8))

    def view() -> np.ndarray:
        whole = rng.choice(
            [memory, memory[2:4], memory.T, np.zeros((6, 8)), memory.reshape(-1)[5:40].reshape(5, 7)]
        )
        starts = [rng.randrange(extent) for extent in whole.shape]
        steps = [rng.choice([1, 2, -1, -3]) for _ in whole.shape]
        key = [
            slice(start, rng.choice([None, start]), step) for start, step in zip(starts, steps, strict=True)
        ]
        return whole[tuple(key)]

    spans, views = Spans(), [view() for _ in range(30)]
    for number, data in enumerate(views):
        spans.add(data, number)
    assert len(spans) == 30 and [*spans] == [*range(30)]
    for data in (view() for _ in range(30)):
        assert spans.near(data) == [n for n, other in enumerate(views) if np.may_share_memory(data, other)]


def test_none_are_near_nothing() -> None:
    assert Spans().near(np.zeros(3)) == []
