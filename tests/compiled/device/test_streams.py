# SPDX-License-Identifier: BSD-3-Clause
"""Streams of threads and tasks: each has its own, and what they share is in order.

The stand-in for the driver runs a stream only as far as somebody waits for it, so a wait that lacks is seen.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from ptx_emulator import PtxError

import tracejit as tj
from tracejit.runtime.cuda.driver import Driver, driver, stream

F32 = np.float32
pytestmark = NEEDS_LLVM_22
KEPT_BYTES = 1 << 20


class Turns:
    """A thread that runs functions on a stream of its own, while this thread does something else in between."""

    def __init__(self, handle: int) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._block = stream(handle)
        self._pool.submit(self._block.__enter__).result()

    def __call__(self, function: Callable[[], Any]) -> Any:
        return self._pool.submit(function).result()

    def end(self) -> None:
        self._pool.submit(self._block.__exit__, None, None, None).result()
        self._pool.shutdown()


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


def share(two: tuple[Turns, Turns]) -> None:
    """Arrays that another stream made, before that has run."""
    x = two[0](lambda: tj.exp(tj.gpu(np.zeros(4, F32))))
    y = two[1](lambda: x * 2)
    total = two[0](lambda: y + x)
    assert total.tolist() == [3.0] * 4


def free(two: tuple[Turns, Turns]) -> None:
    """Memory that another stream still reads is not given out again."""
    held = [two[0](lambda: tj.gpu(np.full(4, 7, F32)))]
    result = two[1](lambda: held[0] * 1)
    held.clear()
    fresh = two[0](lambda: [tj.gpu(np.full(4, -1, F32)) for _ in range(4)])
    assert two[0](fresh[0].tolist) == [-1.0] * 4
    assert result.tolist() == [7.0] * 4


def one_program(two: tuple[Turns, Turns]) -> None:
    """A program has one arena, which two streams use in turn."""
    function = tj.dlaccelerate(lambda x: tj.softmax(x @ x, axis=1) @ x, audit=False)
    arrays = [np.random.default_rng(n).standard_normal((5, 5)).astype(F32) for n in range(2)]
    want = [np.asarray(tj.softmax(tj.dlarray(x @ x), axis=1)) @ x for x in arrays]
    inputs = [tj.gpu(x) for x in arrays]
    for _ in range(3):
        function(inputs[0])
    results = [each(lambda x=x: function(x)) for each, x in zip(two, inputs, strict=True) for _ in range(2)]
    for found, wanted in zip([results[3], results[0]], [want[1], want[0]], strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def views(two: tuple[Turns, Turns]) -> None:
    """A view belongs to where its memory belongs."""
    x = tj.gpu(np.full(4, 3, F32))
    held = [two[0](lambda: tj.dlarray(np.asarray(x)) * 0 + x)]
    held.append(tj.dlarray._wrap(held[0]._data[...], None, None))
    result = two[1](lambda: held[1] * 1)
    held.clear()
    two[0](lambda: [tj.gpu(np.full(4, -1, F32)) for _ in range(4)])[0].tolist()
    assert result.tolist() == [3.0] * 4


def written(two: tuple[Turns, Turns]) -> None:
    """What a function writes into an argument is there for all."""

    def add(x: Any) -> None:
        x += 1

    function, x = tj.dlaccelerate(add, audit=False), tj.gpu(np.zeros(4, F32))
    for number in range(8):
        two[number % 2](lambda: function(x))
    assert x.tolist() == [8.0] * 4


SHARED = (share, free, one_program, views, written)


@pytest.mark.parametrize("use", SHARED, ids=lambda use: use.__name__)
def test_what_is_shared_is_in_order(use: Callable[..., None], two: tuple[Turns, Turns]) -> None:
    use(two)


@pytest.mark.parametrize("use", SHARED, ids=lambda use: use.__name__)
def test_a_wait_that_lacks_is_found(
    use: Callable[..., None], two: tuple[Turns, Turns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Driver, "wait", lambda *arguments, **options: None)
    with pytest.raises((AssertionError, PtxError)):
        use(two)


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
    function = tj.dlaccelerate(lambda w, x: tj.exp(w @ x).sum(axis=0), audit=False)
    w = np.random.default_rng(0).standard_normal((4, 6)).astype(F32) / 4
    shared = tj.gpu(w)
    together = threading.Barrier(4)

    def run(number: int) -> None:
        rng = np.random.default_rng(number)
        together.wait()
        for turn in range(8):
            x = rng.standard_normal((6, 5)).astype(F32)
            if number and turn % 2:
                with stream(100 + number):
                    found = np.asarray(function(shared, tj.gpu(x)))
            else:
                found = np.asarray(function(shared, tj.gpu(x)))
            np.testing.assert_allclose(found, np.exp(w @ x).sum(axis=0), rtol=2e-5)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, number) for number in range(4)]:
            done.result()


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
