# SPDX-License-Identifier: BSD-3-Clause
"""What threads with streams of their own do on a device, a real one or the stand-in."""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from device_cases import agree

import tracejit as tj
from tracejit.runtime.cuda.driver import stream

F32 = np.float32


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


Two = tuple[Turns, Turns]


def share(two: Two, n: int) -> None:
    """Arrays that another stream made, before that has run."""
    x = two[0](lambda: tj.exp(tj.gpu(np.zeros(n, F32))))
    y = two[1](lambda: x * 2)
    total = two[0](lambda: y + x)
    assert total.tolist() == [3.0] * n


def free(two: Two, n: int) -> None:
    """Memory that another stream still reads is not given out again."""
    held = [two[0](lambda: tj.gpu(np.full(n, 7, F32)))]
    result = two[1](lambda: held[0] * 1)
    held.clear()
    fresh = two[0](lambda: [tj.gpu(np.full(n, -1, F32)) for _ in range(4)])
    assert two[0](fresh[0].tolist) == [-1.0] * n
    assert result.tolist() == [7.0] * n


def one_program(two: Two, n: int) -> None:
    """A program has one arena, which two streams use in turn."""
    function = tj.dlaccelerate(lambda x: tj.softmax(x @ x, axis=1) @ x, audit=False)
    width = math.isqrt(n) + 3
    shape, spread = (width, width), width**0.25  # so that few elements decide no row
    arrays = [(np.random.default_rng(seed).standard_normal(shape) / spread).astype(F32) for seed in range(2)]
    want = [np.asarray(tj.softmax(tj.dlarray(x @ x), axis=1)) @ x for x in arrays]
    inputs = [tj.gpu(x) for x in arrays]
    for _ in range(3):
        function(inputs[0])
    results = [each(lambda x=x: function(x)) for each, x in zip(two, inputs, strict=True) for _ in range(2)]
    agree([np.asarray(results[3]), np.asarray(results[0])], [want[1], want[0]])


def views(two: Two, n: int) -> None:
    """A view belongs to where its memory belongs."""
    x = tj.gpu(np.full(n, 3, F32))
    held = [two[0](lambda: tj.dlarray(np.asarray(x)) * 0 + x)]
    held.append(tj.dlarray._wrap(held[0]._data[...], None, None))
    result = two[1](lambda: held[1] * 1)
    held.clear()
    two[0](lambda: [tj.gpu(np.full(n, -1, F32)) for _ in range(4)])[0].tolist()
    assert result.tolist() == [3.0] * n


def written(two: Two, n: int) -> None:
    """What a function writes into an argument is there for all."""

    def add(x: Any) -> None:
        x += 1

    function, x = tj.dlaccelerate(add, audit=False), tj.gpu(np.zeros(n, F32))
    for number in range(8):
        two[number % 2](lambda: function(x))
    assert x.tolist() == [8.0] * n


SHARED = (share, free, one_program, views, written)
"""Each takes two threads, and how many elements arrays have."""


def at_the_same_time(handles: Sequence[int]) -> None:
    """Threads call one function, all but the first one by turns on a stream of their own."""
    function = tj.dlaccelerate(lambda w, x: tj.exp(w @ x).sum(axis=0), audit=False)
    w = np.random.default_rng(0).standard_normal((4, 6)).astype(F32) / 4
    shared = tj.gpu(w)
    together = threading.Barrier(len(handles))

    def run(number: int) -> None:
        rng = np.random.default_rng(number)
        together.wait()
        for turn in range(8):
            x = rng.standard_normal((6, 5)).astype(F32)
            if number and turn % 2:
                with stream(handles[number]):
                    found = np.asarray(function(shared, tj.gpu(x)))
            else:
                found = np.asarray(function(shared, tj.gpu(x)))
            np.testing.assert_allclose(found, np.exp(w @ x).sum(axis=0), rtol=2e-5)

    with ThreadPoolExecutor(len(handles)) as pool:
        for done in [pool.submit(run, number) for number in range(len(handles))]:
            done.result()
