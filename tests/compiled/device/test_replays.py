# SPDX-License-Identifier: BSD-3-Clause
"""The replays of functions on a GPU: memory that is used again, graphs that are kept, and call paths."""

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_cases import agree
from fake_driver import FakeLibrary, fake_device
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit.errors import DeviceMemoryError
from tracejit.runtime.cuda.driver import driver

F32 = np.float32
pytestmark = NEEDS_LLVM_22
KEPT_BYTES = 1 << 20


def step(w: Any, x: Any) -> tuple[Any, ...]:
    loss = (tj.tanh(x @ w) ** 2).mean()
    return loss, w - 0.1 * tj.dlgradient(loss, w)


def arrays_of_step() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(F32) for shape in ((3, 7), (5, 3))]


def paths(function: Any) -> int:
    """Return how many call paths a function has."""
    return len(function._cache.paths)


def general_calls(monkeypatch: pytest.MonkeyPatch, function: Any) -> list[int]:
    """Return a list that gets an element for each call that no call path serves."""
    served: list[int] = []
    dispatcher = function._dispatcher
    original: Callable[..., Any] = dispatcher.serve

    def serve(*arguments: Any) -> Any:
        served.append(len(served))
        return original(*arguments)

    monkeypatch.setattr(dispatcher, "serve", serve)
    return served


# Memory and graphs.


def test_a_loop_needs_no_new_memory_and_no_new_graph(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(step, audit=False)
    w, x = tj.gpu(tuple(arrays_of_step()))
    want, there = map(tj.dlarray, arrays_of_step())
    for number in range(24):
        if number == 20:
            fake.calls.clear()
        loss, w = function(w, x)
        want = tj.dlfeval(step, want, there)[1]
    assert Counter(fake.calls) == {"cuCtxSetCurrent": 4, "cuGraphLaunch": 4}
    agree([np.asarray(w)], [want])
    assert loss.device == "cuda:0"


def test_addresses_that_never_come_back_make_few_graphs(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x: tj.exp(x) + 1, audit=False)
    kept = [function(tj.gpu(np.full(5, number, F32))) for number in range(20)]
    instantiated = Counter(fake.calls)["cuGraphInstantiateWithFlags"]
    assert instantiated == 2  # of the general way, and of the entry's frame
    for number, result in enumerate(kept):
        np.testing.assert_allclose(np.asarray(result), np.exp(np.full(5, number, F32)) + 1, rtol=1e-6)


def test_few_graphs_are_kept(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x: x * 2, audit=False)
    inputs = [tj.gpu(np.full(5, number, F32)) for number in range(30)]
    for _ in range(4):
        for number, x in enumerate(inputs):
            assert function(x).tolist() == [2.0 * number] * 5
    graphs = [kind for kind, *_ in fake.objects.values() if kind == "executable"]
    assert len(graphs) <= 1 + 8  # of the general way, and of the entry's frame


def test_memory_that_is_kept_is_given_back_where_it_lacks(fake: FakeLibrary) -> None:
    fake.total = 1 << 16
    x = tj.gpu(np.ones(6000, F32))
    del x
    gc.collect()
    assert sum(fake.sizes.values()) >= 24000  # kept
    x = tj.gpu(np.ones(12000, F32))
    assert np.asarray(x).sum() == 12000
    with pytest.raises(DeviceMemoryError):
        tj.gpu(np.ones(30000, F32))
    assert np.asarray(x).sum() == 12000
    del x
    gc.collect()
    driver().trim()
    assert fake.leaks == 0


def test_no_more_is_kept_than_was_asked_for() -> None:
    with fake_device(kept_bytes=4096) as fake:
        arrays = [tj.gpu(np.ones(256, F32)) for _ in range(10)]
        del arrays
        gc.collect()
        assert sum(fake.sizes.values()) == 4096


# Call paths.


def test_a_call_path_serves_what_its_trace_serves(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    function = tj.dlaccelerate(lambda x, y: {"sum": x + y["b"], "both": (x, [y["b"] * 2])}, audit=False)
    general = general_calls(monkeypatch, function)
    for number in range(6):
        x, y = np.full((2, 3), number, F32), np.arange(3, dtype=F32)
        result = function(tj.gpu(tj.dlarray(x, "BC")), {"b": tj.gpu(tj.dlarray(y, "C"))})
        assert result["sum"].format == "BC" and result["sum"].tolist() == (x + y).tolist()
        assert result["both"][1][0].tolist() == (y * 2).tolist()
    assert len(general) == 3 and paths(function) == 1  # two recordings, and a first replay


@pytest.mark.parametrize(
    "other",
    [
        lambda x: tj.gpu(np.ones((3, 2), F32)),
        lambda x: tj.gpu(np.ones((2, 3))),
        lambda x: tj.gpu(tj.dlarray(np.ones((2, 3), F32), "BC")),
        lambda x: tj.dlarray(np.ones((2, 3), F32)),
        lambda x: np.ones((2, 3), F32),
        lambda x: 1.0,
    ],
    ids=["shape", "dtype", "format", "host", "ndarray", "number"],
)
def test_a_call_path_leaves_other_arguments_alone(other: Any, fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x: tj.exp(x) * 2, audit=False)
    x = tj.gpu(np.ones((2, 3), F32))
    for _ in range(4):
        function(x)
    for _ in range(4):
        for argument in (other(x), x):
            result = function(argument)
            want = np.exp(np.asarray(argument)) * 2
            assert result.shape == want.shape and result.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(result), want, rtol=1e-6)


def test_captured_arrays_may_change_their_size(fake: FakeLibrary) -> None:
    class Model:
        w: Any = None

        def __call__(self, x: Any) -> Any:
            return (x * self.w).sum()

    model = Model()
    function = tj.dlaccelerate(model, audit=False)
    x = tj.gpu(np.arange(3, dtype=F32))
    for place in (tj.gpu, tj.dlarray):
        for value in (np.full(3, 2, F32), np.full(3, 5, F32), np.full((2, 3), 7, F32), np.full(3, 4, F32)):
            model.w = place(value)
            for _ in range(4):
                assert function(x).item() == (np.arange(3) * value).sum()


def test_writes_and_numbers_have_call_paths(fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(x: Any, y: Any, factor: float) -> Any:
        x += factor * y
        return x.sum()

    function = tj.dlaccelerate(add, audit=False)
    general = general_calls(monkeypatch, function)
    x, y, want = tj.gpu(np.arange(4, dtype=F32)), tj.gpu(np.ones(4, F32)), np.arange(4, dtype=F32)
    for number in range(12):
        total = function(x, y, 0.5 * number)
        want += F32(0.5 * number)
        assert total.item() == want.sum() and x.tolist() == want.tolist()
    assert len(general) < 8 and paths(function) == 1
    assert function(x, x, 1.0).item() == 2 * want.sum()  # the same memory twice is another trace
    assert x.tolist() == (2 * want).tolist()


def test_guards_have_call_paths(fake: FakeLibrary) -> None:
    function = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else -x, audit=False)
    for sign in (1, 1, 1, -1, -1, -1, 1, -1, 1, -1):
        assert function(tj.gpu(np.full(3, sign, F32))).tolist() == ([2.0] * 3 if sign > 0 else [1.0] * 3)
    assert paths(function) == 2


def test_objects_that_are_stored_to(fake: FakeLibrary) -> None:
    class Counting:
        total: Any = None

        def step(self, x: Any) -> Any:
            self.total = self.total + x.sum()
            return self.total * 2

    counting = Counting()
    counting.total = tj.gpu(tj.dlarray(np.zeros(1, F32)))
    function = tj.dlaccelerate(counting.step, audit=False)
    for number in range(1, 9):
        result = function(tj.gpu(np.ones(3, F32)))
        assert counting.total.tolist() == [3.0 * number] and result.tolist() == [6.0 * number]
