# SPDX-License-Identifier: BSD-3-Clause
"""Calls that write into their arguments go the compiled way, and do what NumPy does."""

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

Arrays = list[np.ndarray]


def adam(p: Any, m: Any, v: Any, g: Any) -> None:
    m += 0.1 * (g - m)
    v += 0.001 * (g * g - v)
    p -= 0.01 * m / (v**0.5 + 1e-8)


def numbers(seed: int, count: int, *shape: int) -> Arrays:
    return [np.abs(np.random.default_rng(seed + i).standard_normal(shape)) for i in range(count)]


def general_ways(function: tj.AcceleratedFunction) -> list[Any]:
    """Return a list that grows by each call that no call path serves."""
    served: list[Any] = []
    dispatcher = function._dispatcher
    serve = dispatcher.serve

    def counted(*args: Any) -> Any:
        served.append(args)
        return serve(*args)

    dispatcher.serve = counted  # type: ignore[method-assign]
    return served


def agrees(step: Callable[..., Any], plain: Callable[..., Any], given: Arrays) -> None:
    want = [array.copy() for array in given]
    step(*given)
    plain(*want)
    for have, expected in zip(given, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-12)


@pytest.fixture
def step() -> tj.AcceleratedFunction:
    return tj.dlaccelerate(adam, confirm=0, audit=False)


def test_calls_go_the_compiled_way(step: tj.AcceleratedFunction) -> None:
    given = numbers(0, 4, 30)
    for _ in range(2):
        agrees(step, adam, given)
    served = general_ways(step)
    for call in range(10):
        if call % 2:
            given = numbers(call, 4, 30)
        agrees(step, adam, given)
    assert not served and step.stats.hits == 11


def test_nothing_is_allocated(step: tj.AcceleratedFunction) -> None:
    given = numbers(0, 4, 100_000)
    for _ in range(4):
        step(*given)
    tracemalloc.start()
    try:
        for _ in range(10):
            step(*given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000  # an array has 800,000 bytes


def test_arrays_that_share_memory_go_the_general_way(step: tj.AcceleratedFunction) -> None:
    given = numbers(0, 4, 30)
    for _ in range(3):
        agrees(step, adam, given)
    memory = np.ones(100)
    apart = [memory[:30], memory[30:60], *given[2:]]
    agrees(step, adam, apart)
    for wrong in ([memory[:30], memory[20:50], *given[2:]], [*apart[:3], memory[29:59]]):
        kept = memory.copy()
        for _ in range(2):
            with pytest.raises(tj.TraceJitError, match="shares memory with an array that adam writes"):
                step(*wrong)
        assert (memory == kept).all()
        agrees(step, adam, apart)
    for _ in range(3):
        x = numbers(5, 1, 30)[0]
        want = [x.copy(), *[array.copy() for array in given[1:3]]]
        adam(*want, want[0])
        have = [x, *[array.copy() for array in given[1:3]]]
        step(*have, x)
        for one, other in zip(have, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


class Derived(np.ndarray):
    """As np.memmap is one."""


def test_arrays_that_cannot_be_written_in_place(step: tj.AcceleratedFunction) -> None:
    given = numbers(0, 4, 30)
    for _ in range(3):
        agrees(step, adam, given)
    given[1].flags.writeable = False
    kept = [array.copy() for array in given]
    with pytest.raises(tj.TraceJitError, match="read-only"):
        step(*given)
    assert all((have == want).all() for have, want in zip(given, kept, strict=True))
    swapped = [array.astype(">f8") for array in numbers(0, 4, 30)]
    unaligned = [np.empty(241, np.uint8)[1:].view(np.float64) for _ in range(4)]
    strided = [np.ones((30, 3))[:, 1] for _ in range(4)]
    derived = [array.view(Derived) for array in (*swapped[:2], *strided[2:])]
    for odd in (swapped, unaligned, strided, derived):
        for array, source in zip(odd, numbers(3, 4, 30), strict=True):
            array[...] = source
        for _ in range(3):
            agrees(step, adam, odd)


def test_a_guard_that_fails_leaves_arguments_as_they_were() -> None:
    def clipped(p: Any, g: Any) -> None:
        if (g * g).sum() > 1.0:
            p[0] = -1.0
        else:
            p -= g

    step = tj.dlaccelerate(clipped, confirm=0, audit=False)
    for call in range(8):
        agrees(step, clipped, [np.ones(20), np.full(20, 0.1 if call % 3 else 9.0)])
    assert step.stats.traces == 2 and step.stats.hits >= 4


def test_an_index_out_of_range_leaves_arguments_as_they_were() -> None:
    def added(p: Any, i: Any) -> None:
        p += p[i].sum()

    step = tj.dlaccelerate(added, confirm=0, audit=False)
    p = np.ones(5)
    for _ in range(3):
        agrees(step, added, [p, np.array([1, 2])])
    kept = p.copy()
    with pytest.raises(tj.BoundsError):
        step(p, np.array([1, 5]))
    assert (p == kept).all()


def test_results_of_earlier_calls_may_be_written() -> None:
    def plain(p: Any, g: Any) -> Any:
        p -= g
        return p, p * g

    step = tj.dlaccelerate(plain, confirm=0, audit=False)
    p, g = tj.dlarray(np.ones(8)), np.full(8, 0.5)
    kept = []
    for call in range(12):
        before = p
        p, product = step(p, g)
        np.testing.assert_array_equal(before._data, np.full(8, 1 - 0.5 * (call + 1)))
        np.testing.assert_array_equal(p._data, before._data)
        np.testing.assert_array_equal(product._data, p._data * g)
        assert not np.shares_memory(p._data, before._data)
        if call % 2:
            kept.append((p, p._data.copy()))
            p = tj.dlarray(p._data.copy())
    for array, want in kept:
        np.testing.assert_array_equal(array._data, want)


def test_two_threads_at_once(step: tj.AcceleratedFunction) -> None:
    given = [numbers(i, 4, 2000) for i in range(4)]
    want = [[array.copy() for array in arrays] for arrays in given]
    step(*numbers(9, 4, 2000))

    def work(arrays: Arrays) -> None:
        for _ in range(50):
            step(*arrays)

    threads = [threading.Thread(target=work, args=(arrays,)) for arrays in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for have, expected in zip(given, want, strict=True):
        for _ in range(50):
            adam(*expected)
        for one, other in zip(have, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("in_container", [False, True])
def test_an_array_without_axes_is_written_and_a_number_is_not(labelled: bool, in_container: bool) -> None:
    def counted(t: Any, x: Any) -> Any:
        t = t[0] if in_container else t
        t += 1
        return x * t

    step = tj.dlaccelerate(counted, confirm=0, audit=False)
    t: Any = np.array(0.0)
    if labelled:
        t = tj.dlarray(t)
    given = (t,) if in_container else t
    x = np.ones(3)
    for call in range(6):
        assert step(given, x)._data.tolist() == [call + 1.0] * 3
        assert float(t) == call + 1.0
    served = general_ways(step)
    assert step(given, x)._data.tolist() == [7.0] * 3 and not served
    number = (tj.dlarray([3.0, 4.0]) * 2).sum()
    for _ in range(4):
        assert step((number,) if in_container else number, x)._data.tolist() == [15.0] * 3
        assert float(number) == 14.0
    assert step(given, x)._data.tolist() == [8.0] * 3 and float(t) == 8.0


def unaligned(numbers: Any, dtype: str = "<f8") -> Any:
    """Return an array as a field of records without padding has it."""
    numbers = np.asarray(numbers)
    records = np.zeros(numbers.shape, [("kind", "i1"), ("value", dtype)])
    records["value"] = numbers
    return records["value"] if numbers.ndim else np.ndarray((), dtype, records, 1)


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
@pytest.mark.parametrize("numbers", [3.0, [3.0, 4.0]])
def test_unaligned_arrays_are_written(numbers: Any, dtype: str) -> None:
    def raised(x: Any) -> Any:
        x += 1
        return x.sum()

    step = tj.dlaccelerate(raised, audit=False)
    x, y = (unaligned(numbers, dtype) for _ in range(2))
    assert not x.flags.aligned
    for _ in range(4):
        agrees(step, raised, [x])
    for _ in range(4):
        assert tj.dlfeval(lambda y: step(y), y).item() == y.sum()  # noqa: PLW0108 (dlfeval(step, y) is step(y))
    assert (x == y).all() and step.stats.hits >= 4


@pytest.mark.parametrize("make", [unaligned, np.array])
@pytest.mark.parametrize("numbers", [3.0, [3.0, 4.0]])
@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_arrays_that_are_written_beside_those_of_an_evaluation(make: Any, numbers: Any, dtype: str) -> None:
    def raised(x: Any) -> Any:
        x += 1
        return x.sum()

    array = make(numbers, dtype)
    step, before = tj.dlaccelerate(raised), array.copy()
    for inner in (step, lambda x: tj.dlfeval(raised, x)):
        for count in range(1, 5):
            total = tj.dlfeval(lambda x: x * inner(array), np.ones(2))  # noqa: B023
            assert array.tolist() == (before + count).tolist()
            assert total.tolist() == 2 * [array.sum()]
        array[...] = before


def test_unaligned_arrays_have_gradients_inside_an_evaluation() -> None:
    cube = tj.dlaccelerate(lambda x: (x**3).sum())
    x = unaligned([1.0, 2.0])
    for _ in range(4):
        assert tj.dlfeval(lambda x: tj.dlgradient(cube(x), x), x).tolist() == [3.0, 12.0]
