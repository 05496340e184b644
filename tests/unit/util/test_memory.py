# SPDX-License-Identifier: BSD-3-Clause
"""Memory between the stages."""

import gc

import numpy as np
import pytest

import tracejit as tj
from tracejit.util import memory


@pytest.mark.slow
def test_only_long_recordings_give_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = []
    monkeypatch.setattr(memory, "_trim", lambda: trimmed.append)

    def repeated(count: int) -> None:
        @tj.dlaccelerate(confirm=0)
        def f(x: tj.dlarray) -> tj.dlarray:
            for _ in range(count):
                x = x * 1.5 + 1.0
            return x

        for _ in range(3):
            f(tj.dlarray(np.ones(2)))

    repeated(10)
    assert trimmed == []
    repeated(1100)
    assert trimmed == [0]


def test_without_a_function_that_gives_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_trim", lambda: None)
    memory.give_back(10**9)


def test_the_collector_is_on_again() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), memory.collector_paused():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with memory.collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
