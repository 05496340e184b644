# SPDX-License-Identifier: BSD-3-Clause
"""Streams of threads on a GPU, none of which a GPU has run yet."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_void_p

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, run_case
from device_streams import SHARED, Turns, Two, at_the_same_time

import tracejit as tj
from tracejit.runtime.cuda.driver import driver, stream

_BESIDE_THE_DEFAULT_STREAM = 1  # flag of a stream


@contextmanager
def new_streams(count: int) -> Iterator[list[int]]:
    """Streams of the driver, while the block runs."""
    handles = [c_void_p() for _ in range(count)]
    for handle in handles:
        driver().call("cuStreamCreate", byref(handle), _BESIDE_THE_DEFAULT_STREAM)
    yield [handle.value or 0 for handle in handles]
    for handle in handles:
        driver().call("cuStreamSynchronize", handle)
        driver().release("cuStreamDestroy_v2", handle)


@pytest.fixture(name="two")
def fixture_two(fixture_device: None) -> Iterator[Two]:
    with new_streams(2) as handles:
        turns = Turns(handles[0]), Turns(handles[1])
        yield turns
        for each in turns:
            each.end()


@pytest.mark.parametrize("busy", [(), (0,), (1,), (0, 1)], ids=["idle", "first", "second", "both"])
@pytest.mark.parametrize("n", [4, 1 << 18])
@pytest.mark.parametrize("use", SHARED, ids=lambda use: use.__name__)
def test_what_is_shared_is_in_order(
    use: Callable[..., None], n: int, busy: tuple[int, ...], two: Two
) -> None:
    """Also where a stream has work of many milliseconds before it."""
    x = tj.gpu(np.eye(2000 if busy else 1, dtype=np.float32))
    for _ in range(3):
        for number in busy:
            two[number](lambda: [x @ x for _ in range(10)])
        use(two, n)


def test_threads_at_the_same_time() -> None:
    with new_streams(8) as handles:
        at_the_same_time(handles)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_functions_on_a_stream(case: Case) -> None:
    with new_streams(1) as (handle,), stream(handle):
        run_case(case, calls=6)
