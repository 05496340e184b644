# SPDX-License-Identifier: BSD-3-Clause
"""Direct calls: calls that compiled code serves without Python's code around it."""

import gc
import inspect
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracejit.kernels.executor import state as words

import tracejit as tj
from tracejit.accelerate import aim as aims


def array(*numbers: float) -> tj.dlarray:
    return tj.dlarray(np.array(numbers))


def ready(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return an accelerated function whose calls with these arguments are direct."""
    accelerated = tj.dlaccelerate(function, **{"audit": False, **options})
    for _ in range(6):
        accelerated(*arguments)
    assert is_direct(accelerated, *arguments)
    return accelerated


def frames_of(call: Callable[[], Any]) -> list[str]:
    """Return the names of the functions of Python that a call runs."""
    names: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [name for name in names if name not in ("<lambda>", "setprofile")]


def is_direct(function: Any, *arguments: Any, **named: Any) -> bool:
    """Return whether a call runs neither the general way nor a call path."""
    return not {"__call__", "replay"} & {*frames_of(lambda: function(*arguments, **named))}


def test_a_call_runs_no_code_of_python() -> None:
    x = array(1.0, 2.0)
    assert frames_of(lambda: tj.dlaccelerate(lambda x: x * 2)(x)) != []
    double = ready(lambda x: x * 2, x)
    assert double(x).tolist() == [2.0, 4.0]
    assert frames_of(lambda: double(x)) == ["fetch"]  # which compares the code of the function
    assert is_direct(double.__call__, x)


def test_calls_are_counted() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    before = double.stats
    for _ in range(10):
        double(x)
    assert (double.stats.calls, double.stats.hits) == (before.calls + 10, before.hits + 10)
    double(x)
    assert double.hit_rate == 100 * (before.hits + 11) / (before.calls + 11)
    double(array(1.0, 2.0))
    double(x)
    assert "hit. The call was replayed" in str(double.explain())


@pytest.mark.parametrize("named", [False, True])
def test_audits_come_when_they_are_due(named: bool) -> None:
    x, audited = array(1.0), []
    double = tj.dlaccelerate(lambda x: x * 2)
    for number in range(1, 70):
        before = double.stats.audited
        double(x=x) if named and number % 3 == 0 else double(x)
        if double.stats.audited != before:
            audited.append(number)
    assert audited == [8, 64]


def test_other_arguments_go_the_general_way() -> None:
    x = array(1.0, 2.0)
    scale = ready(lambda x, by=2.0: x * by, x)
    assert scale(array(1.0, 2.0, 3.0)).tolist() == [2.0, 4.0, 6.0]
    assert scale(x, 3.0).tolist() == [3.0, 6.0]
    assert scale(x, by=5.0).tolist() == [5.0, 10.0]
    assert scale(x=x).tolist() == [2.0, 4.0]
    assert scale(np.float32([1.0])).tolist() == [2.0]
    assert scale(x).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError):
        scale()
    with pytest.raises(TypeError):
        scale(x, 1.0, 2.0)


def test_results_in_use_are_kept() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    kept = [double(array(float(i))) for i in range(20)]
    assert [each.item() for each in kept] == [2.0 * i for i in range(20)]


class Scale:
    def __init__(self) -> None:
        self.by = tj.dlarray(np.array([2.0]))

    @tj.dlaccelerate(audit=False)
    def __call__(self, x: Any) -> Any:
        return x * self.by


def test_captured_arrays_are_read_again() -> None:
    scale, x = Scale(), array(3.0)
    for _ in range(6):
        type(scale).__call__.__get__(scale)(x)
    method = type(scale).__call__.__get__(scale)
    assert is_direct(method, x)
    scale.by = tj.dlarray(np.array([5.0]))
    assert method(x).tolist() == [15.0]
    scale.by = tj.dlarray(np.array([5.0, 6.0]))
    assert method(x).tolist() == [15.0, 18.0]


def test_a_guard_that_fails() -> None:
    x, settings = array(3.0), {"by": 2.0}
    scale = ready(lambda x: x * settings["by"], x)
    settings["by"] = 4.0
    assert scale(x).tolist() == [12.0]


@pytest.mark.parametrize("options", [{"enabled": False}, {"check_mode": "tolerance"}, {"confirm": 0}])
def test_a_change_of_options_ends_them(options: dict[str, Any]) -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    for name, value in options.items():
        setattr(double, name, value)
    assert not is_direct(double, x)
    assert double(x).tolist() == [2.0]


def test_a_policy_ends_them_for_a_while() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    with tj.set_policy("uncompiled"):
        assert not is_direct(double, x)
    assert is_direct(double, x)


def test_a_recording_in_any_thread_blocks_them() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    seen: list[bool] = []
    inside, done = threading.Event(), threading.Event()

    def recorded(x: Any) -> Any:
        inside.set()
        done.wait(10)
        return x + 1

    thread = threading.Thread(target=lambda: tj.dlfeval(recorded, x))
    thread.start()
    inside.wait(10)
    seen.append(is_direct(double, x))
    done.set()
    thread.join()
    assert seen == [False]
    assert is_direct(double, x)

    def gradient(x: Any) -> Any:
        y = double(x).sum()
        return tj.dlgradient(y, x)

    assert tj.dlfeval(gradient, x).tolist() == [2.0]  # it was traced through
    with pytest.raises(ZeroDivisionError):
        tj.dlfeval(lambda x: 1 / 0, x)
    assert is_direct(double, x)


def test_threads_share_a_function() -> None:
    n = 30_000
    double = ready(lambda x: x * 2 + 1, tj.dlarray(np.zeros(n)))
    wrong: list[float] = []

    def work(number: float) -> None:
        x = tj.dlarray(np.full(n, number))
        for _ in range(200):
            y = double(x)
            if not (y._data == 2 * number + 1).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert double.stats.calls == double.stats.hits + sum(double.stats.misses.values())


def test_nothing_is_leaked() -> None:
    x, settings = array(1.0, 2.0), {"by": 2.0}
    scale = ready(lambda x: {"y": [x * settings["by"], x + 1]}, x)
    other = array(1.0, 2.0, 3.0)
    for _ in range(100):  # until both traces share a call path
        scale(x)
        scale(other)
    objects = [scale, x, x._data, other, settings]
    gc.collect()
    before, blocks = [sys.getrefcount(each) for each in objects], sys.getallocatedblocks()
    for _ in range(2000):
        scale(x)
        scale(other)
    kept = [scale(x) for _ in range(100)]
    del kept
    gc.collect()
    assert [sys.getrefcount(each) for each in objects] == before
    assert sys.getallocatedblocks() - blocks < 500


@pytest.mark.parametrize("by_python", [False, True])
def test_threads_lose_no_call(by_python: bool) -> None:
    """A program alone, or a call path, which makes a number of Python's."""
    x = np.ones(3)
    step = tj.dlaccelerate(
        (lambda x: float((x * 2.0).sum())) if by_python else (lambda x: x * 2.0), audit=False
    )
    step.check_mode, step.check_every = "sample", 10
    for _ in range(25):
        step(x)
    assert frames_of(lambda: step(x)) == (["replay"] if by_python else ["fetch"])
    before, interval = step.stats.calls, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: [step(x) for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert step.stats.calls == before + 2000


def test_a_method_that_stores_runs_its_call_path_alone() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.n = np.ones(3), 0

        def step(self, x: Any) -> Any:
            self.n += 1
            self.w = self.w - 0.1 * x
            return self.w.sum()

    model, x = Model(), np.ones(3)
    step = tj.dlaccelerate(model.step, audit=False)
    for _ in range(8):
        step(x)
    assert frames_of(lambda: step(x)) == ["replay"]
    assert model.n == 9 and step.stats.hits >= 5


def test_programs_go_with_their_function() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    program, frame = weakref.ref(double._cache.paths[0].served[0].trace), double._aim[0][0]
    state = weakref.ref(frame[0])
    del frame
    double.clear_cache()
    assert program() is None and state() is None
    assert double(x).tolist() == [2.0]


def test_a_call_keeps_its_program() -> None:
    """Other threads may drop a trace whenever a call runs Python; a profiler stands for them here."""
    x, settings = array(1.0, 2.0), {"by": 2.0}
    scale = ready(lambda x: x * settings["by"], x)
    recycler = weakref.ref(scale._cache.paths[0].served[0].trace.direct.recycler)
    alive: list[bool] = []

    def drop(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code.co_name == "fetch":
            scale.clear_cache()
            gc.collect()
            alive.append(recycler() is not None)

    sys.setprofile(drop)
    try:
        y = scale(x)
    finally:
        sys.setprofile(None)
    assert y.tolist() == [2.0, 4.0]
    assert alive == [True] and recycler() is None
    assert scale(x).tolist() == [2.0, 4.0]


def test_threads_drop_programs_that_run() -> None:
    x = tj.dlarray(np.ones((300, 300)))
    function = ready(lambda x: tj.tanh(x @ x / 300) + 1, x)
    wanted, wrong, ended = np.tanh(1.0) + 1, [], threading.Event()

    def work() -> None:
        while not ended.is_set():
            y = function(x)
            if not np.allclose(y._data, wanted):
                wrong.append(y)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        time.sleep(0.01)
        function.clear_cache()
        filled = [np.full(size, 0x4141_4141_4141) for size in range(1, 100)]
        del filled
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_trace_that_was_dropped_while_it_ran_gets_no_path() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    trace, variants, _ = double._cache.paths[0].served[0]
    double.clear_cache()
    double._cache.remember(trace, variants)
    assert double._cache.paths == () and not is_direct(double, x)


def test_functions_that_are_turned_off_while_they_run_stay_off() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    double.confirm = 1  # drops the call paths
    run = tj.traces.trace.Trace.run

    def turned_off(self: Any, call: Any) -> Any:
        double.enabled = False  # as another thread would
        return run(self, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tj.traces.trace.Trace, "run", turned_off)
        assert double(x).tolist() == [2.0]
    before = double.stats.calls
    assert double(x).tolist() == [2.0]
    assert double.stats.calls == before


def test_direct_calls_count_where_the_oldest_key_is_dropped() -> None:
    x, other = array(1.0), array(1.0, 2.0)
    double = ready(lambda x: x * 2, x)
    for _ in range(6):
        double(other)
    double(x)
    assert is_direct(double, other)
    double.cache_size = 1
    assert [key.parts[0].shape for key in double._cache.variants] == [(2,)]


def test_functions_are_as_they_were() -> None:
    x = array(1.0)
    double = ready(lambda x: x * 2, x)
    assert callable(double) and type(double).__call__.__doc__.startswith("Call the function")
    assert str(inspect.signature(double)) == "(x)"
    assert str(inspect.signature(double.__call__)) == "(*args, **kwargs)"
    with pytest.raises(TypeError, match="__call__"):
        type(double).__call__(1, x)
    with pytest.raises(SystemError):
        object.__new__(type(double))(x)


def test_a_layout_that_was_not_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    ready(lambda x: x * 2, array(1.0))
    call = tj.AcceleratedFunction.__call__
    monkeypatch.setattr(words, "FUNCTION_AIM", 3)
    monkeypatch.setattr(aims, "_NOWHERE", [])
    monkeypatch.setattr(aims, "_served", [tj.AcceleratedFunction])
    assert not aims._are_direct()
    assert tj.AcceleratedFunction.__call__ is call


def test_programs_that_check_indices() -> None:
    x, places = array(1.0, 2.0, 3.0), tj.dlarray(np.array([2, 0]))
    taken = ready(lambda x, places: x[places], x, places)
    for _ in range(3):
        assert taken(x, places).tolist() == [3.0, 1.0]
        with pytest.raises(tj.BoundsError):
            taken(x, tj.dlarray(np.array([2, 3])))
    assert is_direct(taken, x, places)


def test_programs_with_guards() -> None:
    x = array(1.0, 2.0)
    folded = ready(lambda x: x if x.sum() > 0 else -x, x)
    assert folded(array(-1.0, -2.0)).tolist() == [1.0, 2.0]
    assert folded(x).tolist() == [1.0, 2.0]


def test_numbers_as_arguments() -> None:
    x = array(1.0, 2.0)
    scaled = ready(lambda x, by: x * by, x, 2)
    assert [scaled(x, by).tolist() for by in (2, 3, 2.5, True, 2)] == [
        [2.0, 4.0], [3.0, 6.0], [2.5, 5.0], [1.0, 2.0], [2.0, 4.0]
    ]  # fmt: skip


def test_other_threads_run_beside_long_programs() -> None:
    """A short program keeps Python's lock; a long one lets go of it, or the other thread would not count on."""
    x = tj.dlarray(np.ones((500, 500)))
    long = ready(lambda x: ((x @ x) @ x).sum(), x)
    short = ready(lambda x: x + 1, array(1.0))
    assert long._aim[0][0][0][words.BRIEF] == 0
    assert short._aim[0][0][0][words.BRIEF] == 1
