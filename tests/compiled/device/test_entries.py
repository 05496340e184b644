# SPDX-License-Identifier: BSD-3-Clause
"""The compiled entry of programs on a GPU: what it runs, what it leaves to Python, results that are filled again."""

import gc
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_cases import FUNCTIONS, Case, agree
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit.errors import DeviceError, DeviceMemoryError
from tracejit.runtime.cuda.driver import driver, stream
from tracejit.runtime.cuda.executable import DeviceExecutable

F32 = np.float32
pytestmark = NEEDS_LLVM_22
KEPT_BYTES = 1 << 20


@pytest.fixture(name="by_python")
def fixture_by_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets an element for each replay that Python launches."""
    launched: list[int] = []
    original = DeviceExecutable.__call__

    def noted(self: DeviceExecutable, *arguments: Any) -> Any:
        launched.append(len(launched))
        return original(self, *arguments)

    monkeypatch.setattr(DeviceExecutable, "__call__", noted)
    return launched


def doubled() -> Any:
    return tj.dlaccelerate(lambda x: x * 2 + 1, audit=False)


def warm(function: Any, x: Any, calls: int = 12) -> None:
    """Call a function until its entry has graphs for the results that it fills in turn."""
    for _ in range(calls):
        function(x)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_results_are_those_of_the_function(case: Case, fake: FakeLibrary, by_python: list[int]) -> None:
    function = tj.dlaccelerate(case.function, audit=False)
    rng = np.random.default_rng(1)
    for _ in range(9):
        arrays = [rng.standard_normal(shape).astype(case.dtype) for shape in case.shapes]
        want = tj.tree.flatten(tj.dlfeval(case.function, *map(tj.dlarray, arrays)))[0]
        results = tj.tree.flatten(function(*tj.gpu(tuple(arrays))))[0]
        agree([np.asarray(array) for array in results], want)
    assert len(by_python) == 1  # the first replay, which goes the general way


def test_a_replay_calls_the_driver_twice(fake: FakeLibrary, by_python: list[int]) -> None:
    function, x = doubled(), tj.gpu(np.arange(3, dtype=F32))
    warm(function, x)
    by_python.clear()
    fake.calls.clear()
    for _ in range(10):
        function(x)
    assert Counter(fake.calls) == {"cuCtxSetCurrent": 10, "cuGraphLaunch": 10}
    assert not by_python


@pytest.mark.parametrize(
    "use",
    [
        lambda y: y,
        lambda y: y._data,
        weakref.ref,
        lambda y: weakref.ref(y._data),
        tj.dlarray,
        lambda y: type("Foreign", (), {"__cuda_array_interface__": y.__cuda_array_interface__, "keeps": y})(),
    ],
    ids=["array", "data", "weak", "weak_data", "copy", "foreign"],
)
def test_results_that_are_in_use_are_not_filled_again(use: Any, fake: FakeLibrary) -> None:
    function = doubled()
    inputs = [tj.gpu(np.full(4, number, F32)) for number in range(12)]
    used = []
    for x in inputs:
        result = function(x)
        used.append((use(result), result._data.address))
    for number, (held, address) in enumerate(used):
        if isinstance(held, weakref.ref):
            held = held()
        if held is None:
            continue
        if hasattr(held, "tolist"):
            assert held.tolist() == [2.0 * number + 1] * 4
        else:
            assert held.__cuda_array_interface__["data"][0] == address


def test_results_that_were_changed_are_not_filled_again(fake: FakeLibrary) -> None:
    function, x = doubled(), tj.gpu(np.ones(4, F32))
    warm(function, x)
    for change in (
        lambda y: setattr(y, "_format", "SSCB"),
        lambda y: setattr(y._data, "is_writeable", False),
        lambda y: setattr(y._data, "base", x),
    ):
        for _ in range(4):
            change(function(x))
        result = function(x)
        assert result.format is None and result._data.is_writeable and result._data.base is None
        assert result.tolist() == [3.0] * 4


def test_what_is_not_as_usual_goes_the_way_of_python(fake: FakeLibrary, by_python: list[int]) -> None:
    function, whole = doubled(), tj.gpu(np.arange(12, dtype=F32))
    x = tj.gpu(np.arange(4, dtype=F32))
    warm(function, x)
    by_python.clear()
    interface = {**whole.__cuda_array_interface__, "shape": (4,), "data": (whole._data.address + 4, False)}
    behind = tj.dlarray(type("Foreign", (), {"__cuda_array_interface__": interface, "keeps": whole})())
    assert function(behind).tolist() == [3.0, 5.0, 7.0, 9.0]
    assert len(by_python) == 1
    with stream(77):
        assert function(x).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert len(by_python) == 2 and fake.streams[-1] == 77
    assert function(x).tolist() == [1.0, 3.0, 5.0, 7.0]
    assert len(by_python) == 2 and fake.streams[-1] == 0


def test_guards_writes_and_numbers_are_left_to_python(fake: FakeLibrary, by_python: list[int]) -> None:
    def add(x: Any, y: Any) -> Any:
        x += y
        return x.sum()

    for function in (
        lambda x: x * 2 if x.sum() > 0 else -x,
        lambda x: add(x, x * 0 + 1),
        lambda x: x[tj.argmax(x)],
    ):
        by_python.clear()
        accelerated, x = tj.dlaccelerate(function, audit=False), tj.gpu(np.ones(3, F32))
        for _ in range(8):
            accelerated(x)
        assert len(by_python) == 6


def test_a_launch_that_fails(fake: FakeLibrary) -> None:
    function, x = doubled(), tj.gpu(np.ones(3, F32))
    warm(function, x)
    fake.faults["cuGraphLaunch"] = 1
    with pytest.raises(DeviceError, match=r"driver failed \(cuGraphLaunch: CUDA_ERROR_INVALID_VALUE \(1\)\)"):
        function(x)
    fake.faults.clear()
    assert function(x).tolist() == [3.0] * 3
    fake.faults["cuGraphLaunch"] = 700
    with pytest.raises(DeviceError, match="the device is lost to this process"):
        function(x)
    fake.faults.clear()
    with pytest.raises(DeviceError, match="the device is lost to this process since an earlier error"):
        function(x)


def test_too_little_memory_for_results(fake: FakeLibrary) -> None:
    function, x = doubled(), tj.gpu(np.ones(3000, F32))
    warm(function, x)
    kept = [function(x) for _ in range(2)]
    fake.total = sum(fake.sizes.values())
    with pytest.raises(DeviceMemoryError):
        kept += [function(x) for _ in range(4)]
    fake.total = 1 << 30
    assert function(x).tolist() == [3.0] * 3000 and kept[0].tolist() == [3.0] * 3000


def test_nothing_leaks(fake: FakeLibrary) -> None:
    function, x = doubled(), tj.gpu(np.ones(3, F32))
    warm(function, x)
    del function, x
    gc.collect()
    driver().trim()
    assert fake.leaks == 0


def test_several_threads(fake: FakeLibrary) -> None:
    """Each call has a frame of its own: results, addresses and graphs."""
    function = tj.dlaccelerate(lambda x: tj.exp(x @ x.T).sum(axis=0), audit=False)
    arrays = [np.random.default_rng(n).standard_normal((6, 5)).astype(F32) for n in range(4)]
    want = [np.exp(x @ x.T).sum(axis=0) for x in arrays]
    inputs = tj.gpu(tuple(arrays))
    for x in inputs:
        warm(function, x, 3)

    def run(number: int) -> None:
        for _ in range(25):
            np.testing.assert_allclose(np.asarray(function(inputs[number])), want[number], rtol=2e-5)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, number) for number in range(4)]:
            done.result()
