# SPDX-License-Identifier: BSD-3-Clause
"""Accelerated functions in pickles: by reference where they can be imported, by value where a pickler wants that."""

import pickle
import sys
import types

import numpy as np
import pytest

import tracejit as tj

cloudpickle = pytest.importorskip("cloudpickle")

X = np.array([1.0, 2.0])
SOURCE = """
import numpy as np
import tracejit as tj

SCALE = 3.0

@tj.dlaccelerate(cache_size=7, confirm=0)
def step(x, depth=1):
    return step(x, depth - 1) * SCALE if depth else np.tanh(x)

def run(x):
    return step(x) + 1

class Model:
    def __init__(self):
        self.w = 2.0

    @tj.dlaccelerate
    def forward(self, x):
        return x * self.w
"""


@tj.dlaccelerate
def public(x):
    return x * 2


@pytest.fixture
def made():
    """A module that no other process can import, as __main__ and notebooks are."""
    module = types.ModuleType("made_for_pickles")
    sys.modules[module.__name__] = module
    exec(SOURCE, vars(module))
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    sys.modules.pop(module.__name__, None)


def elsewhere(value):
    """Return a value as another process would load it."""
    data = cloudpickle.dumps(value)
    del sys.modules["made_for_pickles"]
    return pickle.loads(data)


def test_by_reference():
    for dumps in (pickle.dumps, cloudpickle.dumps, lambda f: pickle._dumps(f)):
        assert pickle.loads(dumps(public)) is public
        assert b"test_pickles" in dumps(public)


def test_main_is_pickled_by_value(monkeypatch):
    main = sys.modules["__main__"]
    function = tj.dlaccelerate(public.function)
    vars(function)["__module__"] = "__main__"
    vars(function)["__qualname__"] = "step_of_main"
    monkeypatch.setattr(main, "step_of_main", function, raising=False)
    assert pickle.loads(pickle.dumps(function)) is function  # multiprocessing imports the main module anew
    copied = pickle.loads(cloudpickle.dumps(function))
    assert copied is not function and copied(X).tolist() == [2.0, 4.0]


def test_by_value_with_its_options(made):
    copied = elsewhere(made.step)
    assert copied is not made.step and type(copied) is tj.AcceleratedFunction
    assert (copied.cache_size, copied.confirm, copied.__name__) == (7, 0, "step")
    assert [copied(X).tolist() for _ in range(3)] == [(3 * np.tanh(X)).tolist()] * 3
    assert copied.stats.hits == 2


def test_a_function_that_calls_an_accelerated_one(made):
    run = elsewhere(made.run)
    assert [run(X).tolist() for _ in range(3)] == [(3 * np.tanh(X) + 1).tolist()] * 3
    inner = run.__globals__["step"]
    assert inner is inner.function.__globals__["step"] and inner is not made.step


def test_methods(made):
    model = made.Model()
    assert model.forward(X).tolist() == [2.0, 4.0]
    copied = elsewhere(model)
    copied.w = 5.0
    assert copied.forward(X).tolist() == [5.0, 10.0] and model.forward(X).tolist() == [2.0, 4.0]


def test_local_functions(made):
    scale = 4.0
    copied = pickle.loads(cloudpickle.dumps(tj.dlaccelerate(lambda x: x * scale)))
    assert copied(X).tolist() == [4.0, 8.0]


def test_no_pickler():
    assert public.__reduce__() == "public"
