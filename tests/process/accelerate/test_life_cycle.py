# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions that call each other, are collected, forked, end with the process, or get odd arrays."""

import functools
import gc
import inspect
import linecache
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import tracejit as tj
from tracejit import config, dlaccelerate, dlarray, dlfeval, dlgradient
from tracejit.record.recorder import Refusal
from tracejit.traces import replay
from tracejit.util import locks

compiled = replay.executable


pytestmark = pytest.mark.usefixtures("python_backend")


@pytest.fixture
def cpu_backend(python_backend, monkeypatch):
    monkeypatch.setattr(config.settings, "backend", "cpu")
    monkeypatch.setattr(replay, "executable", compiled)


def run_in_process(code, *, expect="done\n"):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, expect, "")


class TestReentrancy:
    def test_a_function_that_calls_itself(self):
        @dlaccelerate
        def power(x, n):
            return x * power(x, n - 1) if n else x * 0 + 1

        for _ in range(4):
            assert [power(np.array([2.0]), n).item() for n in range(5)] == [1.0, 2.0, 4.0, 8.0, 16.0]

    def test_two_that_call_each_other(self):
        @dlaccelerate
        def even(x, n):
            return x if n == 0 else odd(x + 1, n - 1)

        @dlaccelerate
        def odd(x, n):
            return -x if n == 0 else even(x + 1, n - 1)

        for _ in range(4):
            assert even(np.zeros(1), 4).item() == 4.0 and even(np.zeros(1), 3).item() == -3.0

    def test_called_while_it_is_checked(self):
        fun = dlaccelerate(lambda x: x * 2, check_mode="tolerance", confirm=0)
        outer = dlaccelerate(lambda x: fun(x) + 1, check_mode="tolerance", confirm=0)
        for n in range(4):
            assert outer(np.array([float(n)])).item() == 2.0 * n + 1

    def test_called_by_what_handles_its_warning(self):
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())
        fun = dlaccelerate(lambda x: x * next(noise))
        fun(np.ones(1))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *args, **options: fun(np.ones(1))
            fun(np.ones(1))
        assert fun.stats.calls == 3 and fun.stats.uncompiled == 1

    def test_an_error_in_an_inner_function(self):
        fails = [True]

        @dlaccelerate
        def inner(x):
            if fails[0]:
                raise KeyError("inner")
            return x * 2

        outer = dlaccelerate(lambda x: inner(x) + 1)
        for _ in range(2):
            with pytest.raises(KeyError, match="inner"):
                outer(np.ones(1))
            assert outer.occupancy == inner.occupancy == 0.0
        fails[0] = False  # what a call that fails does to the list itself is undone
        assert outer(np.ones(1)).item() == 3.0


class TestTheEndOfTheProcess:
    def test_functions_that_are_called_when_modules_are_gone(self):
        run_in_process("""
import sys
import numpy as np, tracejit as tj
double, other = [tj.dlaccelerate(lambda x, by=by: x * by) for by in (2.0, 3.0)]
x = np.ones(3)
for _ in range(5):
    double(x)
class Last:
    def __init__(self):
        self.functions, self.x, self.write = (double, other), x, sys.stdout.write
    def __del__(self):
        for function in self.functions:
            try:
                function(self.x)
            except Exception:
                pass
        self.write("done\\n")
sys.last = Last()
""")


class TestKindsOfFunctions:
    def test_partials(self):
        def fun(k, x, *, shift=0.0):
            return x * k + shift

        for bound in (functools.partial(fun, 2.0), functools.partial(fun, 2.0, shift=1.0)):
            accelerated = dlaccelerate(bound)
            for n in range(5):
                assert accelerated(np.array([float(n)])).item() == bound(np.array([float(n)])).item()
            assert accelerated.stats.hits == 3

    def test_lambdas_of_one_name_are_apart(self):
        double, triple = [dlaccelerate(lambda x, k=k: x * k) for k in (2.0, 3.0)]
        for _ in range(4):
            assert double(np.ones(1)).item() == 2.0 and triple(np.ones(1)).item() == 3.0

    def test_inherited_methods(self):
        class Base:
            factor = 2.0

            @dlaccelerate
            def scaled(self, x):
                return x * self.factor

        class Derived(Base):
            factor = 5.0

        one, other = Base(), Derived()
        for _ in range(4):
            assert one.scaled(np.ones(1)).item() == 2.0 and other.scaled(np.ones(1)).item() == 5.0

    def test_defaults_and_keywords(self):
        def fun(x, y=None, *, k=2.0, **more):
            return x * k + (0 if y is None else y) + sum(more.values())

        accelerated = dlaccelerate(fun)
        x = np.ones(1)
        for _ in range(4):
            for call in (
                ((x,), {}),
                ((x, x), {"k": 3.0}),
                ((x,), {"y": x, "k": 3.0}),
                ((x,), {"z": 1.0, "w": x}),
            ):
                assert accelerated(*call[0], **call[1]).item() == fun(*call[0], **call[1]).item()

    def test_one_warning_for_all_instances(self):
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())

        class Noisy:
            @dlaccelerate
            def scaled(self, x):
                return x * next(noise)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                noisy = Noisy()
                noisy.scaled(np.ones(1)), noisy.scaled(np.ones(1))
        assert len(caught) == 1


class TestCollection:
    @pytest.mark.usefixtures("cpu_backend")
    @pytest.mark.parametrize("how", ["deleted", "cleared", "evicted", "refused"])
    def test_programs_and_call_paths_go_with_their_traces(self, how):
        mine = lambda: {
            name
            for name, entry in linecache.cache.items()
            if name.startswith("<tracejit call path") and entry[2]
        }
        gc.collect()
        before = mine()
        fun = dlaccelerate(lambda x: x * 2, cache_size=1)
        for _ in range(4):
            fun(np.ones(3))
        (entry,) = fun._cache.variants.values()
        gone = [weakref.ref(thing) for thing in (entry, entry.traces[0], entry.traces[0].replay)]
        assert len(mine() - before) == 1
        if how == "deleted":
            del fun
        elif how == "cleared":
            fun.clear_cache()
        elif how == "evicted":
            fun(np.ones(4))
        else:
            entry.refuse(Refusal("a test", None, "nothing"))
            fun.check_every = 7  # forgets the call paths
            gone = gone[1:]
            fun._cache.last_trace = None
        del entry
        gc.collect()
        assert [reference() for reference in gone] == [None] * len(gone)
        assert mine() == before

    @pytest.mark.usefixtures("cpu_backend")
    def test_a_call_path_has_its_source(self):
        fun = dlaccelerate(lambda x: x * 2)
        for _ in range(4):
            fun(np.ones(3))
        call_path = fun._cache.paths[0].run
        assert inspect.getsource(call_path).startswith("def replay(args):\n")

    def test_no_instance_is_kept(self):
        class Model:
            def __init__(self):
                self.w = dlarray(np.ones(3))

            @dlaccelerate
            def step(self, x):
                return self.w * x if x.sum() > 0 else x

        model = Model()
        for sign in (1, 1, 1, -1, -1, -1):
            model.step(np.ones(3) * sign)
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None

    def test_no_argument_or_result_is_kept(self):
        fun = dlaccelerate(lambda x: (x * 2, float(x[0])))
        for _ in range(4):
            data = np.ones(3)
            x = dlarray(data)
            y = fun(x)[0]
            gone = [weakref.ref(thing) for thing in (data, x, y)]
            del data, x, y
            gc.collect()
            assert [reference() for reference in gone] == [None] * 3


FORK = """
import os, threading, numpy as np, tracejit as tj
f = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x)
for sign in (1, 1, 1, -1, -1, -1):
    f(np.ones(3) * sign)
held, go = threading.Event(), threading.Event()

def hold():
    with f._cache.lock:
        held.set()
        go.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    right = f(np.ones(3)).tolist() == [2.0] * 3 and f(-np.ones(3)).tolist() == [1.0] * 3
    right = right and f(np.ones(5)).tolist() == [2.0] * 5 and f.explain().count("trace") > 0
    os._exit(0 if right else 7)
go.set()
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert f(np.ones(3)).tolist() == [2.0] * 3
print("done")
"""

SHUTDOWN = """
import atexit, threading, numpy as np, tracejit as tj
f = tj.dlaccelerate(lambda x: x * 2)

class Late:
    def __del__(self):
        assert f(np.ones(3)).tolist() == [2.0] * 3

late = Late()
atexit.register(lambda: f(np.ones(3)))

called = threading.Event()

def busy():
    while True:
        f(np.ones(3))
        called.set()

threading.Thread(target=busy, daemon=True).start()
called.wait()
print("done")
"""


class TestProcess:
    def test_fork_while_another_thread_holds_a_lock(self):
        run_in_process(
            FORK.replace("import os,", "import warnings; warnings.simplefilter('ignore')\nimport os,")
        )

    def test_calls_while_the_interpreter_shuts_down(self):
        run_in_process(SHUTDOWN)

    def test_locks_of_dead_functions_are_forgotten(self):
        gc.collect()
        before = len(locks._made)
        fun = dlaccelerate(lambda x: x)
        assert len(locks._made) > before
        del fun
        gc.collect()
        assert len(locks._made) == before


class TestThreads:
    @pytest.mark.filterwarnings("ignore:.* is recorded in most calls")
    def test_many_keys_and_variants_at_once(self):
        fun = dlaccelerate(
            lambda x, k: (x * k if x.sum() > 0 else -x, dlgradient((x**2).sum() * k, x)), cache_size=3
        )
        failed = []

        def work(n):
            for i in range(30):
                size, sign = (n + i) % 4 + 1, 1.0 if (n * i) % 3 else -1.0
                y, grad = fun(np.full(size, sign), 2.0)
                right = (
                    y.tolist() == [2.0 if sign > 0 else 1.0] * size and grad.tolist() == [4.0 * sign] * size
                )
                if not right:
                    failed.append((n, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed and fun.stats.calls == 240 and fun.stats.uncompiled == 0


def arrays_of_every_layout():
    base = np.arange(24.0).reshape(4, 6)
    raw = np.zeros(3 * 8 + 1, np.uint8)
    unaligned = raw[1:].view(np.float64)
    unaligned[...] = [1.0, 2.0, 3.0]
    return {
        "C": base[:2, :3], "F": np.asfortranarray(base[:2, :3]), "negative": base[::-1, ::-2],
        "strided": base[::2, ::3], "zero": np.broadcast_to(base[0, :3], (4, 3)),
        "scalar strides": np.broadcast_to(2.0, (3,)), "unaligned": unaligned,
        "big": base[0].astype(">f8"), "empty": base[:0], "empty strided": base[1:1, ::2], "scalar": np.array(3.0),
        "readonly": np.frombuffer(base.tobytes()), "int": np.arange(3), "bool": np.array([True, False]),
        "uint8": np.arange(5, dtype=np.uint8)[::2], "float32": base[:, 1].astype(np.float32),
    }  # fmt: skip


class TestLayouts:
    @pytest.mark.usefixtures("cpu_backend")
    @pytest.mark.parametrize("name", arrays_of_every_layout())
    def test_as_uncompiled(self, name):
        x = arrays_of_every_layout()[name]
        before = x.copy()
        fun = lambda x: (x * 2, x + x, x.T, x.sum() if x.size else x)
        accelerated = dlaccelerate(fun)
        earlier = []
        for _ in range(4):
            results, expected = accelerated(x), dlfeval(fun, x)
            for found, want in zip(results, expected, strict=True):
                assert found.dtype == want.dtype and found.shape == want.shape
                np.testing.assert_array_equal(tj.extractdata(found), tj.extractdata(want))
                assert not any(np.shares_memory(found._data, other) for other in (x, *earlier))
                earlier.append(found._data)
        np.testing.assert_array_equal(x, before)

    @pytest.mark.usefixtures("cpu_backend")
    def test_one_buffer_twice_and_views_that_overlap(self):
        def fun(a, b):
            a[1:] = a[:-1] + b[1:]
            return a, b * a, dlgradient((a * b).sum(), b)

        followed = [
            lambda base: (base[:4], base[:4]),
            lambda base: (base[:4], base[4:]),
        ]
        refused = [
            lambda base: (base[:4], base[1:5]),
            lambda base: (base[3::-1], base[:4]),
            lambda base: (base[::2], base[1::2]),  # whose intervals overlap
        ]
        accelerated = dlaccelerate(fun)
        for _ in range(4):
            for pair in followed:
                mine, theirs = np.arange(8.0), np.arange(8.0)
                results = zip(accelerated(*pair(mine)), dlfeval(fun, *pair(theirs)), strict=True)
                for found, want in results:
                    np.testing.assert_array_equal(tj.extractdata(found), tj.extractdata(want))
                np.testing.assert_array_equal(mine, theirs)
            for pair in refused:
                base = np.arange(8.0)
                for function in (accelerated, lambda a, b: dlfeval(fun, a, b)):
                    with pytest.raises(tj.WriteError, match="shares memory"):
                        function(*pair(base))
                np.testing.assert_array_equal(base, np.arange(8.0))
