# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a compiled program that call functions of Python: errors, threads, memory, calls inside calls."""

import gc
import signal
import threading
import tracemalloc
from functools import partial

import numpy as np
import pytest
from tracejit.kernels.executor.state import HAS_CONTROL_REGISTER

import tracejit as tj
from tracejit.traces import trace


class Scale(tj.DifferentiableFunction):
    """Multiplies by two, and calls `then` before."""

    def __init__(self, then=lambda x: None):
        super().__init__(save_inputs_for_backward=True)
        self.then = then
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.then(x)
        return x * 2

    def backward(self, dy, compute_gradients, x):
        return dy * 2


def stepped(scale, rows=4):
    """Return a function with kernels before and after a call of Python, and what it gives for ones."""

    @partial(tj.dlaccelerate, audit=False)
    def step(x):
        loss = (scale(x + 1) ** 2).sum()
        return loss, tj.dlgradient(loss, x)

    x = np.ones((rows, 8))
    for _ in range(3):
        step(x)
    assert step.stats.hits == 1
    return step, x, 16.0 * x.size


class MyError(Exception):
    pass


@pytest.mark.parametrize("again", [True, False], ids=["filled-again", "new"])
@pytest.mark.parametrize("error", [MyError("no"), KeyboardInterrupt(), SystemExit(3), StopIteration()])
def test_an_error_is_the_user_s_own(error, again, monkeypatch):
    if not again:
        monkeypatch.setattr(trace, "MOST_BYTES", -1)  # as for large results
    scale = Scale()
    step, x, expected = stepped(scale)

    def fail(x):
        raise error

    for _ in range(3):
        scale.then, calls = fail, scale.calls
        with pytest.raises(type(error)) as caught:
            step(x)
        assert caught.value is error and scale.calls == calls + 1
        assert caught.traceback[-1].name == "fail"
        scale.then = lambda x: None
        assert step(x)[0].item() == expected
    assert step.stats.hits == 4


def test_arguments_stay_as_they_were_after_an_error():
    scale = Scale()

    @tj.dlaccelerate
    def update(x):
        y = scale(x)
        x += 1
        return scale(y)

    x = np.ones(3)
    for _ in range(4):
        update(x)
    assert x.tolist() == [5.0] * 3 and update.stats.hits == 2
    calls = scale.calls

    def fail(x):
        if scale.calls == calls + 2:
            raise MyError

    scale.then = fail
    with pytest.raises(MyError):
        update(x)
    assert x.tolist() == [5.0] * 3
    scale.then = lambda x: None
    assert update(x).tolist() == [20.0] * 3 and x.tolist() == [6.0] * 3


def test_a_signal_in_a_call_raises_there():
    if not hasattr(signal, "raise_signal"):
        pytest.skip("no signals")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        raise_in_a_call()
    finally:
        signal.signal(signal.SIGINT, before)


def raise_in_a_call():
    scale = Scale()
    step, x, expected = stepped(scale)
    scale.then = lambda x: signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        step(x)
    scale.then = lambda x: None
    assert step(x)[0].item() == expected


def test_calls_inside_calls():
    inner, y, inside = stepped(Scale())
    seen = []

    def call(x):
        seen.append(inner(y)[0].item())
        seen.append(tj.dlfeval(lambda x: tj.dlgradient((x**2).sum(), x), x).sum().item())

    outer, x, expected = stepped(Scale(call))
    for _ in range(3):
        assert outer(x)[0].item() == expected
    assert seen == [inside, 2.0 * 2 * x.size] * 6


def test_a_function_that_calls_itself():
    scale = Scale()
    step, x, expected = stepped(scale)
    depth = []

    def again(x):
        if len(depth) < 3:
            depth.append(0.0)
            depth[depth.index(0.0)] = step(np.ones((4, 8)))[0].item()

    scale.then = again
    assert step(x)[0].item() == expected and depth == [expected] * 3


def test_threads():
    together = threading.Barrier(4)
    scale = Scale()
    step, _, _ = stepped(scale, 6000)
    scale.then = lambda x: together.wait(60)
    wrong = []

    def work(number):
        for i in range(20):
            own = np.full((6000, 8), float(number * 20 + i))
            loss, slope = step(own)
            right = 4 * (own + 1) ** 2
            if not np.isclose(loss.item(), right.sum()) or not np.allclose(slope, 8 * (own + 1)):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and step.stats.hits == 81


def test_nothing_leaks():
    scale = Scale()
    step, x, _ = stepped(scale)

    def fail(x):
        raise MyError

    def some(count):
        scale.then = lambda x: None
        for _ in range(count):
            step(x)
        scale.then = fail
        for _ in range(count // 10):
            with pytest.raises(MyError):
                step(x)

    def growth(count):
        before = tracemalloc.get_traced_memory()[0]
        some(count)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    some(200)
    gc.collect()
    tracemalloc.start()
    least = min(growth(1000) for _ in range(3))  # other threads, and caches of Python, grow now and then
    tracemalloc.stop()
    assert least < 10_000


@pytest.mark.slow
def test_many_calls_do_not_leak():
    test_nothing_leaks()
    scale = Scale()
    step, x, expected = stepped(scale)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20_000):  # a leak of one number would be 500 kB
        step(x)
    assert step(x)[0].item() == expected
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] - before < 20_000
    tracemalloc.stop()


@pytest.mark.skipif(not HAS_CONTROL_REGISTER, reason="denormals are as they are")
def test_arithmetic_is_as_it_was_meanwhile():
    tiny = np.float64(5e-324)
    seen = []
    scale = Scale(lambda x: seen.append(float(np.add(tiny, tiny) > 0)))
    stepped(scale)
    assert seen == [1.0] * 3


def test_another_size_than_recorded():
    class Some(tj.DifferentiableFunction):
        def forward(self, x):
            return x[x > 0]

        def backward(self, dy, need):
            raise AssertionError

    some = Some()
    with pytest.warns(tj.ChangedTraceWarning):
        step = tj.dlaccelerate(lambda x: some(x) * 2)
        for k in (2, 2, 2, 3, 3):
            x = np.where(np.arange(5) < k, 1.0, -1.0)
            assert step(x).tolist() == [2.0] * k


def test_guards_are_looked_at_after_the_call():
    scale = Scale()

    @partial(tj.dlaccelerate, audit=False)
    def step(x):
        y = scale(x)
        return y + 1 if y.sum() > 0 else y - 1

    for _ in range(4):
        assert step(np.ones(2)).tolist() == [3.0, 3.0]
        assert step(-np.ones(2)).tolist() == [-3.0, -3.0]
    assert step.stats.kept == 2 and step.stats.hits == 4


def test_inside_an_evaluation():
    scale = Scale()
    step, x, _ = stepped(scale)

    def outer(x):
        loss, slope = step(x)
        return tj.dlgradient(loss * 3, x), slope

    for _ in range(4):
        around, slope = tj.dlfeval(outer, x)
        assert np.allclose(around, 3 * 8 * (x + 1)) and np.allclose(slope, 8 * (x + 1))
