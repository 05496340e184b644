# SPDX-License-Identifier: BSD-3-Clause
"""Results of earlier calls are filled again only when nobody can tell."""

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj
from tracejit.accelerate import dispatch
from tracejit.call import recycle

LONG = 40


@pytest.fixture
def step() -> tj.AcceleratedFunction:
    @tj.dlaccelerate(confirm=0, audit=False)
    def step(x: tj.dlarray) -> tuple[tj.dlarray, tj.dlarray]:
        return x + 1.0, (x * x).sum()

    return step


def inside(array: tj.dlarray) -> np.ndarray:
    """Return the ndarray that a dlarray holds; extractdata gives a copy."""
    return array._data


def address(array: tj.dlarray) -> int:
    return int(inside(array).__array_interface__["data"][0])


def test_results_that_were_dropped_are_filled_again(step: tj.AcceleratedFunction) -> None:
    x = tj.dlarray(np.zeros(5))
    addresses = set()
    for _ in range(LONG):
        x, _total = step(x)
        addresses.add(address(x))
    assert inside(x).tolist() == [LONG] * 5
    assert len(addresses) <= 4  # the first call's, and those of two sets of results


def test_results_of_the_last_call_are_filled_first(step: tj.AcceleratedFunction) -> None:
    x = tj.dlarray(np.zeros(5))
    for _ in range(4):
        step(x)
    assert len({address(step(x)[0]) for _ in range(LONG)}) == 1
    kept, _total = step(x)
    others = {address(step(x)[0]) for _ in range(LONG)}
    assert len(others) == 1
    assert address(kept) not in others


def keep_array(y: tj.dlarray) -> Any:
    return y


def keep_view(y: tj.dlarray) -> Any:
    return inside(y)[1:3]


def keep_data(y: tj.dlarray) -> Any:
    return inside(y)


def keep_memoryview(y: tj.dlarray) -> Any:
    return memoryview(inside(y))


def keep_interface(y: tj.dlarray) -> Any:
    class Holder:
        __array_interface__ = inside(y).__array_interface__
        owner = inside(y)

    return np.asarray(Holder())


def keep_read_only(y: tj.dlarray) -> Any:
    return np.asarray(y)


def keep_dlpack(y: tj.dlarray) -> Any:
    return np.from_dlpack(y)


def keep_labelled(y: tj.dlarray) -> Any:
    return tj.dlarray(inside(y), "S")


def keep_capsule(y: tj.dlarray) -> Any:
    return np.from_dlpack(inside(y))


KEEPERS = [
    keep_array,
    keep_view,
    keep_data,
    keep_memoryview,
    keep_interface,
    keep_read_only,
    keep_dlpack,
    keep_labelled,
    keep_capsule,
]


@pytest.mark.parametrize("keep", KEEPERS)
def test_what_is_kept_stays(step: tj.AcceleratedFunction, keep: Callable[[tj.dlarray], Any]) -> None:
    kept, wanted = [], []
    for i in range(LONG):
        y, _total = step(tj.dlarray(np.full(5, float(i))))
        if i % 3:
            kept.append(keep(y))
            wanted.append(i + 1.0)
        del y
    for found, want in zip(kept, wanted, strict=True):
        assert (np.asarray(inside(found) if isinstance(found, tj.dlarray) else found) == want).all()


@pytest.mark.parametrize("seed", range(sweep(4, 10)))
def test_keeping_at_random(seed: int) -> None:
    @tj.dlaccelerate(confirm=0, audit=False)
    def several(x: tj.dlarray) -> dict[str, Any]:
        return {"a": x + 1.0, "b": [x * 2.0, x.sum()], "c": x - x}

    rnd = random.Random(seed)
    held: list[tuple[Any, np.ndarray]] = []
    x = np.arange(4.0)
    for i in range(200):
        given = tj.dlarray(x + i)
        out = several(given)
        leaves = [out["a"], *out["b"], out["c"]]
        wanted = [x + i + 1, (x + i) * 2, (x + i).sum(), x * 0]
        for leaf, want in zip(leaves, wanted, strict=True):
            if rnd.random() < 0.3:
                held.append((rnd.choice((keep_array, keep_data, keep_memoryview))(leaf), want))
        del out, leaves, leaf
        rnd.shuffle(held)
        del held[rnd.randrange(12) :]
        for kept, want in held:
            np.testing.assert_array_equal(
                np.asarray(inside(kept) if isinstance(kept, tj.dlarray) else kept), want
            )


def reshape(y: tj.dlarray) -> None:
    inside(y).shape = (5, 1)


def retype(y: tj.dlarray) -> None:
    inside(y).dtype = np.int64


def protect(y: tj.dlarray) -> None:
    inside(y).setflags(write=False)


def relabel(y: tj.dlarray) -> None:
    y._format = "C"


def assign(y: tj.dlarray) -> None:
    y[0] = 7.0


def record(y: tj.dlarray) -> None:
    y._value = 3  # type: ignore[assignment]


class Other(tj.dlarray):  # type: ignore[misc]
    __slots__ = ()


def reclass(y: tj.dlarray) -> None:
    y.__class__ = Other


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize("change", [reshape, retype, protect, relabel, assign, record, reclass])
def test_what_was_changed_is_replaced(
    step: tj.AcceleratedFunction, change: Callable[[tj.dlarray], None]
) -> None:
    for i in range(LONG):
        y, total = step(tj.dlarray(np.full(5, float(i))))
        found = inside(y)
        assert (type(y), y._value) == (tj.dlarray, None)
        assert (found.shape, found.dtype, y.format, found.flags.writeable) == ((5,), np.float64, None, True)
        assert found.tolist() == [i + 1.0] * 5
        assert float(total) == 5.0 * i * i
        del found
        change(y)


def test_data_that_changed_owner() -> None:
    function = tj.dlaccelerate(lambda x: [x + 1.0], confirm=0, audit=False)
    x = tj.dlarray(np.zeros(3000))
    data = np.full(3000, 7.0).tobytes()
    for _ in range(LONG):
        (y,) = function(x)
        # NumPy unpickles an array without a copy of its data.
        inside(y).__setstate__((1, (3000,), np.dtype(np.float64), False, data))
        assert inside(y).base is data
        del y
    assert data == np.full(3000, 7.0).tobytes()


def test_data_that_another_array_has(step: tj.AcceleratedFunction) -> None:
    held = []
    for i in range(LONG):
        y, _total = step(tj.dlarray(np.full(5, float(i))))
        held.append(inside(y))
        y._data = np.zeros(5)
        del y
        assert all(kept.tolist() == [at + 1.0] * 5 for at, kept in enumerate(held))


@pytest.mark.parametrize("of", [lambda y: y, inside])
def test_what_a_weak_reference_finds_is_not_filled(
    step: tj.AcceleratedFunction, of: Callable[[tj.dlarray], Any]
) -> None:
    for i in range(LONG):
        y, _total = step(tj.dlarray(np.full(5, float(i))))
        reference = weakref.ref(of(y))
        del y, _total
        for _ in range(4):
            step(tj.dlarray(np.full(5, -9.0)))
            found = reference()
            assert found is None or np.asarray(found).tolist() == [i + 1.0] * 5
            del found


def test_weak_references_end(step: tj.AcceleratedFunction) -> None:
    x = tj.dlarray(np.zeros(5))
    step(x)
    for _ in range(LONG):
        y, _total = step(x)
        of_array, of_data = weakref.ref(y), weakref.ref(inside(y))
        watched = inside(y).tolist()
        del y
        # A result that a weak reference still finds is not another call's.
        for _ in range(4):
            step(tj.dlarray(np.ones(5)))
        if of_data() is not None:
            assert of_data().tolist() == watched
        if of_array() is not None:
            assert inside(of_array()).tolist() == watched


def test_results_never_share_memory(step: tj.AcceleratedFunction) -> None:
    x = tj.dlarray(np.zeros(5))
    held = [step(x) for _ in range(LONG)]
    data = [inside(part) for pair in held for part in pair]
    assert len({array.__array_interface__["data"][0] for array in data}) == 2 * LONG
    assert not any(np.shares_memory(array, inside(x)) for array in data)


def test_other_arguments_go_the_general_way(step: tj.AcceleratedFunction) -> None:
    for i in range(LONG):
        for data in (np.full(5, float(i)), np.full((2, 3), float(i)), np.full(5, i, np.float32)):
            y, total = step(tj.dlarray(data))
            np.testing.assert_array_equal(inside(y), data + 1)
            assert float(total) == data.size * i * i
    assert step.stats.traces == 3


def test_a_step_may_read_its_last_results_but_one(step: tj.AcceleratedFunction) -> None:
    before, x = tj.dlarray(np.zeros(3)), tj.dlarray(np.ones(3))
    for i in range(LONG):
        before, (x, _total) = x, step(x)
        assert inside(before).tolist() == [i + 1.0] * 3
        assert inside(x).tolist() == [i + 2.0] * 3


def test_many_threads(step: tj.AcceleratedFunction) -> None:
    wrong = []

    def run(start: float) -> None:
        x = tj.dlarray(np.full(5, start))
        for i in range(300):
            x, total = step(x)
            if inside(x).tolist() != [start + i + 1] * 5 or float(total) != 5 * (start + i) ** 2:
                wrong.append((start, i))

    threads = [threading.Thread(target=run, args=(1000.0 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_results_are_not_kept(step: tj.AcceleratedFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycle, "MOST_BYTES", 40)
    monkeypatch.setattr("tracejit.traces.trace.MOST_BYTES", 40)
    for _ in range(3):
        y, _total = step(tj.dlarray(np.zeros(5)))
    gone = weakref.ref(inside(y))
    del y, _total
    gc.collect()
    assert gone() is None


def test_clearing_the_cache_frees_results(step: tj.AcceleratedFunction) -> None:
    for _ in range(6):
        y, _total = step(tj.dlarray(np.zeros(5)))
    kept = weakref.ref(y)
    del y, _total
    assert kept() is not None
    step.clear_cache()
    gc.collect()
    assert kept() is None


def test_guard_that_fails_gives_nothing_away() -> None:
    @tj.dlaccelerate(confirm=0, audit=False)
    def f(x: tj.dlarray) -> tj.dlarray:
        return x * 2.0 if x.sum() > 0 else x - 1.0

    held = []
    for i in range(LONG):
        sign = 1.0 if i % 5 else -1.0
        y = f(tj.dlarray(np.full(3, sign * (i + 1))))
        held.append((y, 2.0 * (i + 1) if sign > 0 else -(i + 1) - 1.0))
        if i % 2:
            del held[0]
        assert all(inside(kept).tolist() == [want] * 3 for kept, want in held)


def test_checks_that_are_switched_on_after_replays_are_made(
    step: tj.AcceleratedFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    monkeypatch.setattr(dispatch, "difference_from_function", lambda *given: checked.append(given))
    x = np.ones(3)
    for _ in range(5):
        step(x)
    assert step._cache.paths and not checked
    step.check_mode = "tolerance"
    for number in range(1, 4):
        step(x)
        assert len(checked) == number and not step._cache.paths
    step.check_mode = "none"
    step(x), step(x)
    assert step._cache.paths and len(checked) == 3
