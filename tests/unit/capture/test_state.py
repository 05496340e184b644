# SPDX-License-Identifier: BSD-3-Clause
"""Captured state: each change is seen, and state that stays as it is costs no trace.

Each trap is a function and changes between its calls that a frozen trace would not see.
"""

import gc
import sys
import threading
import warnings

import numpy as np
import pytest
from accelerated import hidden
from layers import Layer
from namespaces import Namespace, follow

import tracejit as tj
from tracejit import NotAcceleratedWarning, dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.capture import emit, snapshot

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def layer():
    return Layer()


class TestRecording:
    def test_a_profile_function_stays(self):
        seen = []

        def profile(frame, event, arg):
            if event == "call" and frame.f_code.co_name == "f":
                seen.append(event)

        def f(x):
            return x * 2

        accelerated = dlaccelerate(f, audit=False)
        sys.setprofile(profile)
        try:
            accelerated(X)
            assert sys.getprofile() is profile
        finally:
            sys.setprofile(None)
        assert seen == ["call"]

    def test_beside_a_profiler(self):
        import cProfile

        accelerated = dlaccelerate(lambda x: x * 2)
        profiler = cProfile.Profile()
        profiler.enable()
        try:
            accelerated(X)
        finally:
            profiler.disable()
        assert profiler.getstats()
        assert sys.getprofile() is None

    def test_an_error_ends_the_watch(self):
        def fail(x):
            raise KeyError("no")

        for _ in range(2):
            with pytest.raises(KeyError):
                dlaccelerate(fail)(X)
        assert sys.getprofile() is None

    def test_the_watch_goes_on_after_an_error_that_is_caught(self):
        rate = 2.0

        def scaled(x):
            return x * rate

        def f(x):
            try:
                x = x + np.ones(7)
            except tj.DimsError:
                x = x + dlgradient((x * x).sum(), x)
            return scaled(x)

        def change():
            nonlocal rate
            rate = 3.0

        follow(f, change)

    def test_other_threads_are_not_watched(self):
        noise = 0.0
        running, stop = threading.Event(), threading.Event()

        def count():
            nonlocal noise
            while not stop.is_set():
                noise += 1
                read()
                running.set()

        def read():
            return noise

        thread = threading.Thread(target=count)
        thread.start()
        running.wait()
        try:
            accelerated = follow(lambda x: x * 2, traces=2)
        finally:
            stop.set()
            thread.join()
        assert accelerated.stats.traces == 2

    def test_threads_record_apart(self):
        class Model:
            def __init__(self, k):
                self.k = k

            def __call__(self, x):
                return x * self.k

        models = [Model(float(n)) for n in range(4)]
        accelerated = [dlaccelerate(model) for model in models]
        results = [[] for _ in models]

        def work(i):
            for n in range(20):
                models[i].k = float(i + n // 5)
                results[i].append(accelerated[i](X)[0].item())

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [[float(i + n // 5) for n in range(20)] for i in range(4)]

    def test_functions_of_the_collector_are_not_of_the_call(self):
        times = []

        def callback(phase, info):
            times.append(len(times))

        def f(x):
            gc.collect()
            return x * 2

        gc.callbacks.append(callback)
        try:
            follow(f, traces=2)
        finally:
            gc.callbacks.remove(callback)

    def test_constants_that_are_made_inside_are_constants(self):
        accelerated = follow(lambda x: x + np.linspace(0, 1, 3), traces=2)
        assert not accelerated._cache.last_trace.state.names

    def test_a_buffer_that_is_filled_inside(self):
        def f(x):
            buffer = np.zeros(3)
            buffer[0] = 1
            y = x * buffer
            buffer[1] = 2
            return y + x * buffer

        follow(f, traces=2)

    def test_too_many_objects(self, monkeypatch):
        monkeypatch.setattr(snapshot, "_MOST_OBJECTS", 100)
        many = [[i] for i in range(200)]
        accelerated = dlaccelerate(lambda x: x * sum(part[0] for part in many))
        with pytest.warns(NotAcceleratedWarning, match="more objects than can be compared"):
            assert accelerated(X).tolist() == (X * 19900).tolist()


class TestGradients:
    def test_by_an_argument(self):
        w = np.array([1.0, 2.0, 3.0])

        def f(x):
            y = ((x * w) ** 2).sum()
            return y, dlgradient(y, x)

        follow(f, lambda: w.fill(3.0), traces=2)

    def test_inside_an_evaluation(self):
        w = dlarray(np.array([1.0, 2.0, 3.0]))
        accelerated = dlaccelerate(lambda x: (x * w) ** 2)

        def f(x):
            return dlgradient(accelerated(x).sum(), x)

        for factor in (1.0, 1.0, 1.0, 5.0, 5.0):
            w._data[...] = factor
            assert dlfeval(f, X).tolist() == (2 * X * factor**2).tolist()
        assert accelerated.stats.traces == 2

    def test_by_an_array_that_an_accelerated_function_captured(self):
        params = {}
        accelerated = dlaccelerate(lambda x: (x * params["w"]) ** 2)

        def f(w, x):
            params["w"] = w
            return dlgradient(accelerated(x).sum(), w, x)

        for n in range(5):
            w = np.arange(3.0) + n
            by_w, by_x = dlfeval(f, w, X)
            assert by_w.tolist() == (2 * w * X**2).tolist()
            assert by_x.tolist() == (2 * X * w**2).tolist()
        assert accelerated.stats.traces == 2

    def test_inside_by_an_array_that_it_captured(self):
        params = {}
        accelerated = dlaccelerate(lambda x: dlgradient(((x * params["w"]) ** 2).sum(), params["w"]))

        def f(w, x):
            params["w"] = w
            return dlgradient(accelerated(x).sum(), w)

        for n in range(4):
            w = np.arange(3.0) + n
            assert dlfeval(f, w, X).tolist() == (2 * X**2).tolist()

    def test_an_array_that_no_name_leads_to(self):
        accelerated = dlaccelerate(lambda x, take: x * take())

        def f(w, x):
            return dlgradient(accelerated(x, hidden(w).get).sum(), w)

        with pytest.warns(
            NotAcceleratedWarning, match="an array of the evaluation around it that no name leads to"
        ):
            assert dlfeval(f, np.ones(3), X).tolist() == X.tolist()


class TestExplain:
    def test_what_changed(self, layer):
        accelerated = follow(lambda x: x * layer.k)
        layer.k = 9.0
        accelerated(X)
        assert "because closure layer.k is no longer 2.0" in accelerated.explain()

    def test_the_function_of_a_method_has_no_guard_without_a_name(self):
        """The class leads to the function that is called, which has no name in words of its own."""

        class Model:
            def __init__(self):
                self.w = 2.0
                self.bound = dlaccelerate(self.plain)

            @dlaccelerate
            def decorated(self, x):
                return x * self.w

            def plain(self, x):
                return x * self.w

        model = Model()
        for method in (model.decorated, model.bound):
            for _ in range(3):
                method(X)
            (trace,) = method.explain().keys[0].variants
            assert [guard.text for guard in trace.guards] == ["self.w is 2.0"]
        Model.plain = lambda self, x: x
        model.bound(X)
        assert "because the function is no longer the same as " in model.bound.explain()

    def test_guards_are_listed(self, layer):
        accelerated = follow(layer.__call__)
        (known,) = next(iter(accelerated._cache.variants.values())).traces
        assert known.state.names == ("self.w",)
        shown = [str(guard) for guard in known.state.guards()]
        assert "self.k is 2.0" in shown
        assert "self.w is 3 float64" in shown
        assert "self.rate is 1.0" in shown
        guard = next(guard for guard in known.state.guards() if guard.name == "self.k")
        code = Layer.__call__.__code__
        assert guard.where == (code.co_filename, code.co_firstlineno + 1)


def test_a_guard_compares_in_place():
    """The function that compares is what note [guards] shows."""
    module = Namespace("rate = 2.0\ndef f(x): return x * rate * w", w=dlarray(np.ones(3)))
    accelerated = follow(module["f"])
    (known,) = next(iter(accelerated._cache.variants.values())).traces
    source = known.state.source()
    assert source.startswith(
        "def fetch():\n    try:\n        v0 = g0.__code__\n        if v0 is not g2: return None\n"
    )
    assert "\n        v1 = g1['rate']\n        if v1 is not g3 and differs(v1, g3): return None\n" in source
    assert source.endswith("        return None\n    return (v2d, )\n")
    assert "def fetch():" in emit.__doc__


def test_no_warning_is_given_twice(layer):
    accelerated = dlaccelerate(lambda x: x * float(layer.k), audit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(200):
            layer.k = str(n)
            accelerated(X)
    assert len(caught) == 1


TABLED = np.array([1.0, 2.0])


def test_explain_says_that_what_is_in_an_array_changed():
    @dlaccelerate
    def scaled(x):
        return x * float(TABLED.sum())

    for _ in range(3):
        scaled(dlarray(np.ones(2)))
    told = scaled.explain()
    assert "what is in global TABLED is as it was" in told
    TABLED[0] = 5.0
    assert scaled(dlarray(np.ones(2))).tolist() == [7.0, 7.0]
    assert "because what is in global TABLED is no longer as it was" in scaled.explain()
