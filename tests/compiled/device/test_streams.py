# SPDX-License-Identifier: BSD-3-Clause
"""Streams of threads and tasks: each has its own, and what they share is in order.

The stand-in for the driver runs a stream only as far as somebody waits for it, so a wait that lacks is seen.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from device_streams import SHARED, Turns, at_the_same_time
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.runtime.cuda.driver import Driver, driver, stream

F32 = np.float32
pytestmark = NEEDS_LLVM_22
KEPT_BYTES = 1 << 20


@pytest.fixture(name="two")
def fixture_two(fake: FakeLibrary) -> Iterator[tuple[Turns, Turns]]:
    turns = Turns(5), Turns(6)
    yield turns
    for each in turns:
        each.end()


def test_each_thread_has_its_own(two: tuple[Turns, Turns]) -> None:
    assert [each(lambda: driver().stream) for each in two] == [5, 6]
    assert driver().stream == 0
    with stream(7):
        assert driver().stream == 7
        with stream(8):
            assert [driver().stream, *[each(lambda: driver().stream) for each in two]] == [8, 5, 6]
        assert driver().stream == 7
    assert driver().stream == 0


def test_each_task_has_its_own(fake: FakeLibrary) -> None:
    found: list[int] = []

    async def work(handle: int) -> None:
        with stream(handle):
            for _ in range(3):
                await asyncio.sleep(0)
                assert driver().stream == handle
            later.append(asyncio.create_task(after()))
        found.append(driver().stream)

    async def after() -> None:
        """Outlive the block in which the task was made."""
        while len(found) < 2:
            await asyncio.sleep(0)
        assert driver().stream == 0

    async def both() -> None:
        await asyncio.gather(work(5), work(6))
        await asyncio.gather(*later)

    later: list[Any] = []
    asyncio.run(both())
    assert found == [0, 0]


def test_work_goes_to_the_stream_of_its_thread(two: tuple[Turns, Turns], fake: FakeLibrary) -> None:
    function, x = tj.dlaccelerate(lambda x: x + 1, audit=False), tj.gpu(np.ones(3, F32))
    for _ in range(3):
        function(x)
    fake.streams.clear()
    assert two[0](lambda: function(x)).tolist() == two[1](lambda: function(x)).tolist() == [2.0] * 3
    function(x)
    assert fake.streams == [5, 6, 0]


@pytest.mark.parametrize("use", SHARED, ids=lambda use: use.__name__)
def test_what_is_shared_is_in_order(use: Callable[..., None], two: tuple[Turns, Turns]) -> None:
    use(two, 4)


@pytest.mark.parametrize("use", SHARED, ids=lambda use: use.__name__)
def test_a_wait_that_lacks_is_found(
    use: Callable[..., None], two: tuple[Turns, Turns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Driver, "wait", lambda *arguments, **options: None)
    with pytest.raises((AssertionError, PtxError)):
        use(two, 4)


def test_an_array_that_stays_needs_no_wait(two: tuple[Turns, Turns], fake: FakeLibrary) -> None:
    function, x = tj.dlaccelerate(lambda x: x + 1, audit=False), tj.gpu(np.ones(3, F32))
    for _ in range(3):
        two[0](lambda: function(x))
    fake.calls.clear()
    for _ in range(5):
        two[0](lambda: function(x))
    assert Counter(fake.calls)["cuStreamWaitEvent"] == 0
    two[1](lambda: function(x))
    assert Counter(fake.calls)["cuStreamWaitEvent"] == 1  # for the array and the program at once


def test_an_array_that_is_exported_is_ready_on_the_stream_of_the_thread(two: tuple[Turns, Turns]) -> None:
    x = two[0](lambda: tj.exp(tj.gpu(np.zeros(4, F32))))
    assert two[1](lambda: x.__cuda_array_interface__["stream"]) == 6
    assert x.__cuda_array_interface__["stream"] == 1  # the name of the default stream


def test_a_block_that_ends_by_an_error(fake: FakeLibrary) -> None:
    function, x = tj.dlaccelerate(lambda x: x + 1, audit=False), tj.gpu(np.ones(3, F32))
    for _ in range(6):
        function(x)
    with pytest.raises(KeyError), stream(5):
        y = function(x)
        raise KeyError
    assert y.tolist() == [2.0] * 3 and driver().stream == 0
    fake.streams.clear()
    fake.calls.clear()
    function(x)
    assert fake.streams == [0] and Counter(fake.calls) == {"cuCtxSetCurrent": 1, "cuGraphLaunch": 1}


def test_threads_at_the_same_time(fake: FakeLibrary) -> None:
    at_the_same_time([100, 101, 102, 103])


@pytest.mark.parametrize("name", ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_the_host_waits_at_the_end_of_a_block_whose_stream_cannot_be_waited_for(
    name: str, fake: FakeLibrary
) -> None:
    """What was put on it is done before its arrays are used, or their memory given out again, elsewhere."""
    x = tj.gpu(np.ones(3, F32))
    with stream(77):
        y = x * 2
        fake.faults[name] = 1
    fake.faults.clear()
    assert not fake.queues[77]
    assert y.tolist() == [2.0] * 3


def test_a_stream_that_is_gone_is_not_used(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = tj.dlaccelerate(lambda x: x * 2), tj.gpu(np.ones(3, F32))
    used: list[int] = []
    with stream(77):
        for _ in range(3):
            function(x)
    monkeypatch.setattr(FakeLibrary, "_cuEventRecord", lambda self, event, on: used.append(on))
    assert function(x).tolist() == [2.0] * 3
    assert 77 not in used


def test_events_that_cannot_be_destroyed_change_nothing(fake: FakeLibrary) -> None:
    x = tj.gpu(np.ones(3, F32))
    fake.faults["cuEventDestroy_v2"] = 1
    with stream(77):
        y = x * 2
    assert y.tolist() == [2.0] * 3
