# SPDX-License-Identifier: BSD-3-Clause
"""Recorded calls and replays on a GPU: what they write and store, where it lies, and what a failed one leaves."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from device_cases import address, check_class, foreign
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22

import tracejit as tj
from tracejit.errors import DeviceError, DeviceMemoryError, WriteError

F32 = np.float32
pytestmark = NEEDS_LLVM_22


class _Holder:
    """An object with attributes."""

    kept: Any = None
    last: Any = None


def test_a_recording_without_memory_for_its_result_writes_nothing_on_the_host(fake: FakeLibrary) -> None:
    holder = _Holder()
    holder.kept = tj.dlarray(np.zeros(3, F32))

    def count(x: Any) -> Any:
        x += 1
        holder.last = x * 2
        holder.kept += 1
        return x.sum()

    function, x = tj.dlaccelerate(count, target="cuda"), np.zeros(3, F32)
    for number in range(3):
        for allowed in range(3 if number < 2 else 4):  # pieces of memory that a call takes
            calls = iter(range(allowed))
            original = FakeLibrary._cuMemAllocAsync

            def allocate(self: Any, *arguments: Any, calls: Any = calls, original: Any = original) -> Any:
                return 2 if next(calls, None) is None else original(self, *arguments)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(FakeLibrary, "_cuMemAllocAsync", allocate)
                with pytest.raises(DeviceMemoryError):
                    function(x)
            last = None if number == 0 else holder.last.tolist()
            assert x.tolist() == holder.kept.tolist() == [number] * 3
            assert last == (None if number == 0 else [2.0 * number] * 3)
        assert function(x).item() == 3 * (number + 1)


def test_a_replay_that_fails_between_its_writes_writes_nothing_on_the_host(
    fake: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(x: Any, y: Any) -> None:
        x += 1
        y += 2

    function, x, y = tj.dlaccelerate(count, target="cuda"), np.zeros(3, F32), np.zeros(4, F32)
    for _ in range(3):
        function(x, y)
    copies = iter([None, 1])
    monkeypatch.setattr(FakeLibrary, "_cuMemcpyDtoHAsync_v2", lambda self, *arguments: next(copies))
    with pytest.raises(DeviceError):
        function(x, y)
    assert x.tolist() == [3.0] * 3 and y.tolist() == [6.0] * 4


def test_what_a_recording_stores_lies_where_replays_store_it(fake: FakeLibrary) -> None:
    """Also an argument, which is the caller's memory: later writes into it are seen."""
    holder = _Holder()

    def step(x: Any) -> Any:
        holder.kept, holder.last = x * 2, x
        return x + 1

    def double(x: Any) -> None:
        x *= 2

    function, doubled = tj.dlaccelerate(step), tj.dlaccelerate(double)
    for number in range(4):
        x = tj.gpu(np.full(3, number, F32))
        function(x)
        assert holder.kept.device == holder.last.device == "cuda:0"
        assert holder.kept.tolist() == [2.0 * number] * 3 and address(holder.last) == address(x)
        doubled(x)
        assert holder.last.tolist() == [2.0 * number] * 3


def test_an_argument_that_is_written_and_also_read_elsewhere_is_refused(fake: FakeLibrary) -> None:
    w = tj.gpu(np.ones(3, F32))

    def count(x: Any) -> Any:
        x += 1
        return w.sum()

    function = tj.dlaccelerate(count)
    with pytest.raises(WriteError, match="is both an argument and met besides the arguments"):
        function(w)
    for number in range(4):
        assert function(tj.gpu(np.full(3, number, F32))).item() == 3.0
    with pytest.raises(WriteError, match="is both an argument and met besides the arguments"):
        function(w)
    assert w.tolist() == [1.0] * 3


def test_an_array_of_the_host_that_is_written_and_also_an_argument_is_refused(fake: FakeLibrary) -> None:
    """The copy of the argument on the device would not show what is written."""
    holder = _Holder()
    holder.kept = np.ones(3, F32)

    def count(x: Any) -> Any:
        holder.kept += 1
        return x.sum() + holder.kept.sum()

    function = tj.dlaccelerate(count, target="cuda")
    for argument in (holder.kept, holder.kept[1:]):
        with pytest.raises(
            WriteError, match="an array of the host is written, and is both an argument and met"
        ):
            function(argument)
    assert holder.kept.tolist() == [1.0] * 3
    for number in range(1, 5):
        assert function(np.zeros(3, F32)).item() == 3.0 * (number + 1)
        with pytest.raises(WriteError):
            function(holder.kept)


def _train(holder: _Holder) -> Any:
    """Return a step that writes arrays besides its arguments: whole, by an index, and through a view."""

    def step(x: Any) -> Any:
        before = holder.kept[1:]
        holder.kept += x
        holder.kept[0] = 5
        view = holder.kept[1:]
        view *= 2
        holder.last = holder.kept.copy()
        holder.last += before.sum()
        return holder.kept.sum()

    return step


@pytest.mark.parametrize("options", [{}, {"check_mode": "tolerance"}, {"audit": True}, {"confirm": 0}, None])
def test_a_captured_array_on_the_device_is_written(fake: FakeLibrary, options: dict[str, Any] | None) -> None:
    there, here = _Holder(), _Holder()
    there.kept, here.kept = tj.gpu(np.ones(3, F32)), np.ones(3, F32)
    array, x, plain = there.kept, np.arange(3, dtype=F32), _train(here)
    function = (
        partial(tj.dlfeval, _train(there)) if options is None else tj.dlaccelerate(_train(there), **options)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert function(tj.gpu(x)).item() == plain(x)
            assert there.kept is array and there.kept.device == there.last.device == "cuda:0"
            assert there.kept.tolist() == here.kept.tolist() and there.last.tolist() == here.last.tolist()
    if options == {}:
        assert function.stats.hits == 3


@pytest.mark.parametrize("options", [{}, {"check_mode": "tolerance"}, {"target": "cuda"}, None])
def test_a_captured_ndarray_of_the_host_is_written(fake: FakeLibrary, options: dict[str, Any] | None) -> None:
    """It stays where it is, and the ndarray that it is; a view of it is a part of it."""

    def step(holder: _Holder) -> Callable[[Any], Any]:
        def of(x: Any) -> Any:
            holder.kept += x
            holder.kept[1:] *= 2
            holder.kept[0] = x.sum()
            return (holder.kept * x).sum()

        return of

    there, here = _Holder(), _Holder()
    there.kept, here.kept = np.ones(3, F32), np.ones(3, F32)
    array, plain = there.kept, step(here)
    function = (
        partial(tj.dlfeval, step(there)) if options is None else tj.dlaccelerate(step(there), **options)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(5):
            x = np.arange(3, dtype=F32) + number
            assert function(tj.gpu(x)).item() == plain(x)
            assert there.kept is array and there.kept.tolist() == here.kept.tolist()
    if options == {}:
        assert function.stats.hits == 3


class _Counting:
    """An object whose number and ndarrays, in a list, change in each call."""

    def __init__(self) -> None:
        self.count, self.parts = 0, [np.zeros(3, F32), np.ones(3, F32)]

    def step(self, x: Any) -> Any:
        self.count += 1
        for part in self.parts:
            part *= F32(0.5)
            part += x
        return self.parts[0] * self.count + self.parts[1]


@pytest.mark.parametrize("place", [tj.gpu, np.copy], ids=["gpu", "host"])
def test_numbers_and_ndarrays_that_vary_are_inputs(
    fake: FakeLibrary, place: Callable[[np.ndarray], Any]
) -> None:
    """As on the CPU, where such a function is replayed too."""
    there, here = _Counting(), _Counting()
    function = tj.dlaccelerate(there.step, target="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(10):
            x = np.arange(3, dtype=F32) + number
            assert function(place(x)).tolist() == here.step(x).tolist()
            assert there.count == here.count
            assert [part.tolist() for part in there.parts] == [part.tolist() for part in here.parts]
    assert function.stats.hits == 5 and not function.stats.uncompiled


def test_an_error_of_the_function_itself_is_raised_as_it_is(fake: FakeLibrary) -> None:
    """Also where it may be due to what stands in the place of ndarrays, so that the call is recorded again."""
    model = _Counting()

    def step(x: Any, fails: bool) -> Any:
        result = model.step(x)
        if fails:
            raise TypeError("wrong")
        return result

    function = tj.dlaccelerate(step, target="cuda")
    for number in range(6):
        function(np.ones(3, F32), False)
        with pytest.raises(TypeError, match=r"^wrong$"):
            function(np.ones(3, F32), True)
        assert model.count == number + 1


def test_a_function_that_takes_ndarrays_only_gets_them(fake: FakeLibrary) -> None:
    model = _Counting()

    def step(x: Any) -> Any:
        result = model.step(x)
        for part in model.parts:
            if type(part) is not np.ndarray:
                raise TypeError("an ndarray is expected")
        return result

    function, plain = tj.dlaccelerate(step, target="cuda"), _Counting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for _ in range(4):
            assert function(np.ones(3, F32)).tolist() == plain.step(np.ones(3, F32)).tolist()


@pytest.mark.parametrize("options", [{"check_mode": "tolerance"}, {"audit": True}, None])
def test_an_argument_on_the_device_is_written(fake: FakeLibrary, options: dict[str, Any] | None) -> None:
    """Also by the uncompiled function that a replay is checked against."""

    def step(x: Any, y: Any) -> Any:
        x += 1
        y[::2] = x[::2]
        return x.sum() + y.sum()

    function = partial(tj.dlfeval, step) if options is None else tj.dlaccelerate(step, **options)
    x, y, same = tj.gpu(np.arange(4, dtype=F32)), tj.gpu(np.zeros(4, F32)), tj.gpu(np.ones(4, F32))
    hx, hy, hsame = np.arange(4, dtype=F32), np.zeros(4, F32), np.ones(4, F32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert function(x, y).item() == step(hx, hy)
            assert x.tolist() == hx.tolist() and y.tolist() == hy.tolist()
            assert function(same, same).item() == step(hsame, hsame)
            assert same.tolist() == hsame.tolist()


def test_a_captured_array_that_is_also_an_argument_is_not_written(fake: FakeLibrary) -> None:
    holder = _Holder()
    holder.kept = tj.gpu(np.ones(3, F32))
    function = tj.dlaccelerate(_train(holder))
    with pytest.raises(WriteError, match="is both an argument and met besides the arguments"):
        function(holder.kept)
    assert holder.kept.tolist() == [1.0] * 3 and holder.last is None
    for _ in range(3):
        function(tj.gpu(np.ones(3, F32)))
    kept = holder.kept.tolist()
    with pytest.raises(WriteError, match="is both an argument and met besides the arguments"):
        function(holder.kept)
    assert holder.kept.tolist() == kept


def test_a_call_follows_the_arrays_that_the_function_meets(fake: FakeLibrary) -> None:
    """A call without arrays on the device runs there if the function meets some, as long as it does."""
    holder = _Holder()

    def double(*x: Any) -> Any:
        product = holder.kept * 2
        return product + x[0] if x else product, np.add(*x, 1) if len(x) == 1 else None

    for arguments in ((), (np.ones(3, F32),), (2.0,)):
        function = tj.dlaccelerate(double)
        for there in (True, False, True):
            for number in range(4):
                kept = np.full(3, number, F32)
                holder.kept = tj.gpu(kept) if there else tj.dlarray(kept)
                results = function(*arguments)
                assert results[0].tolist() == (kept * 2 + (arguments[0] if arguments else 0)).tolist()
                if number or there:
                    assert results[0].device == ("cuda:0" if there else "cpu")
                if arguments and isinstance(arguments[0], np.ndarray):
                    assert results[1].device == results[0].device and results[1].tolist() == [2.0] * 3
    assert "met arrays on a GPU" in str(_first(double, holder).explain())


def _first(function: Any, holder: _Holder) -> Any:
    holder.kept = tj.gpu(np.ones(3, F32))
    accelerated = tj.dlaccelerate(function)
    accelerated()
    return accelerated


@pytest.mark.parametrize("place", [tj.gpu, np.copy], ids=["gpu", "host"])
def test_a_class_whose_arrays_lie_on_the_device(
    fake: FakeLibrary, place: Callable[[np.ndarray], Any]
) -> None:
    check_class(place)


def test_captured_arrays_on_the_device_decide_and_are_selected_from(fake: FakeLibrary) -> None:
    there, here = _Holder(), _Holder()
    there.kept, here.kept = tj.gpu(np.array([1, -2, 3, -4], F32)), np.array([1, -2, 3, -4], F32)

    def step(holder: _Holder) -> Any:
        mask = holder.kept < 0
        holder.kept[mask] *= F32(0.5)
        holder.kept[~mask] += 1 if holder.kept.sum() < 20 else -1
        return holder.kept[holder.kept > 0].sum()

    function = tj.dlaccelerate(lambda: step(there))
    for _ in range(12):
        assert function().item() == step(here)
        assert there.kept.tolist() == here.kept.tolist() and there.kept.device == "cuda:0"
    assert function.stats.hits >= 6 and not function.stats.uncompiled


def test_an_array_argument_of_the_host_is_written_where_the_call_follows_others(fake: FakeLibrary) -> None:
    holder, x = _Holder(), np.zeros(3, F32)
    holder.kept = tj.gpu(np.ones(3, F32))

    def add(x: Any) -> Any:
        x += holder.kept
        return x.sum()

    function = tj.dlaccelerate(add)
    for number in range(1, 6):
        assert function(x).item() == 3 * number and x.tolist() == [number] * 3


def test_a_function_that_is_to_run_on_the_cpu_meets_no_array_on_the_device(fake: FakeLibrary) -> None:
    holder = _Holder()
    holder.kept = tj.gpu(np.ones(3, F32))
    function = tj.dlaccelerate(lambda: holder.kept * 2, target="cpu")
    for _ in range(3):
        with pytest.raises(
            DeviceError, match=r"lies on cuda:0, and target=\"cpu\"; put gather\(x\) in its place"
        ):
            function()
    holder.kept = tj.gather(holder.kept)
    for _ in range(4):
        assert function().device == "cpu"
    holder.kept = tj.gpu(holder.kept)
    with pytest.raises(DeviceError):
        function()


def test_a_function_without_array_arguments_runs_on_the_device(fake: FakeLibrary) -> None:
    holder = _Holder()
    holder.kept = tj.dlarray(np.ones(3, F32))

    def scaled(rate: float) -> Any:
        holder.kept *= 2
        return holder.kept * rate

    function = tj.dlaccelerate(scaled, target="cuda")
    for number in range(1, 6):
        result = function(0.5 * number)
        assert result.device == "cuda:0" and result.tolist() == [2**number * 0.5 * number] * 3


def test_an_evaluation_of_arrays_on_the_device_writes_into_others(fake: FakeLibrary) -> None:
    """Arrays of the host and of the device share no memory, which is found without copies."""
    total, x = tj.dlarray(np.zeros(3, F32)), tj.gpu(np.ones(3, F32))

    def count(x: Any) -> Any:
        nonlocal total
        total += 1
        return x * 2

    fake.calls.clear()
    for call in (lambda: tj.dlfeval(count, x), lambda: tj.dlaccelerate(count, enabled=False)(x)):
        assert call().device == "cuda:0"
    assert total.tolist() == [2.0] * 3 and "cuMemcpyDtoHAsync_v2" not in fake.calls


def test_arguments_of_odd_strides_that_are_the_same_memory(fake: FakeLibrary) -> None:
    memory = tj.gpu(np.arange(40, dtype=np.uint8))
    field: Any = {"data": (address(memory) + 3, False), "shape": (5,), "strides": (6,), "typestr": "<f4"}
    want = np.arange(40, dtype=np.uint8)
    shown = np.ndarray((5,), F32, want, 3, (6,))

    def count(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    function = tj.dlaccelerate(count)
    for _ in range(4):
        assert (
            function(foreign(memory, **field), foreign(memory, **field)).tolist()
            == count(shown, shown).tolist()
        )
        assert memory.tolist() == want.tolist()
