# SPDX-License-Identifier: BSD-3-Clause
"""The states of generators: copies in memory are the states that NumPy and Python tell."""

import random
from typing import Any

import numpy as np
import pytest

from tracejit.record import generator_states
from tracejit.record.generator_states import copy_of, restore, state_of

KINDS = {
    "Python's": lambda: random.Random(3),
    "old": lambda: np.random.RandomState(3),
    "new": lambda: np.random.default_rng(3),
    "old, of another kind": lambda: np.random.RandomState(np.random.PCG64(3)),
    "new, of the same kind": lambda: np.random.Generator(np.random.MT19937(3)),
}


def draw(generator: Any) -> None:
    for _ in range(301):
        generator.random()
    (generator.gauss if isinstance(generator, random.Random) else generator.normal)(0.0, 1.0)


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_comes_back(kind: str, is_asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_asked:  # where the words are not found
        monkeypatch.setattr(generator_states, "_offset_of_python", tuple)
        monkeypatch.setattr(generator_states, "_offset_of_gauss", tuple)
    generator = KINDS[kind]()
    for _ in range(6):
        draw(generator)
        told, copy = str(state_of(generator)), copy_of(generator)
        is_memory = type(copy).__name__ == "_Memory"
        assert is_memory == (kind in ("Python's", "old") and not is_asked)
        draw(generator)
        assert str(state_of(generator)) != told
        restore(generator, copy)
        assert str(state_of(generator)) == told
        draw(generator)
