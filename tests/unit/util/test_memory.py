# SPDX-License-Identifier: BSD-3-Clause
"""Memory between the stages."""

import gc
from collections.abc import Iterator

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


@pytest.fixture
def thawed() -> Iterator[None]:
    """No frozen objects during a test; the suite freezes what it imports."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.slow
@pytest.mark.usefixtures("thawed")
def test_what_was_imported_is_old_when_the_collector_goes_on() -> None:
    with memory.collector_paused():
        kept = [[i] for i in range(5000)]
        memory.age()
    oldest = {id(held) for held in gc.get_objects(generation=2)}
    assert all(id(held) in oldest for held in kept)
    assert gc.get_freeze_count() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("thawed")
def test_objects_that_the_user_froze_stay_frozen() -> None:
    gc.freeze()
    memory.age()
    assert gc.get_freeze_count() > 0
