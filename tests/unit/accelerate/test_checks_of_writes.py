# SPDX-License-Identifier: BSD-3-Clause
"""check_mode, audits and uncompiled runs of functions that write: each call writes once, which is checked."""

import warnings
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate, hidden

import tracejit as tj


def counted(x: Any, y: Any) -> Any:
    x += 1
    y[1:] += x[1:]
    return x.sum()


def odd(kind: str, size: int) -> np.ndarray:
    """Return zeros in memory that a replay reads a copy of."""
    if kind == "foreign":
        return np.zeros(size, ">f8")
    if kind == "unaligned":
        return np.zeros(8 * size + 1, np.uint8)[1:].view(np.float64)
    return np.zeros((size, 2))[:, 0] if kind == "strided" else np.zeros(size)


KINDS = ("plain", "strided", "unaligned", "foreign")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["none", "tolerance", "sample"])
def test_each_call_writes_once(kind: str, mode: str) -> None:
    step = dlaccelerate(counted, check_mode=mode, check_every=2)
    have, want = [odd(kind, 3), odd(kind, 3)], [np.zeros(3), np.zeros(3)]
    for _ in range(12):  # with an audit at the eighth
        assert step(*have).item() == counted(*want)
        assert [array.tolist() for array in have] == [array.tolist() for array in want]


@pytest.mark.parametrize("kind", KINDS)
def test_an_uncompiled_run_writes_the_array_of_the_caller(kind: str) -> None:
    calls: list[str] = []

    def refused(x: Any) -> None:
        calls.insert(0, "1")
        x += len(calls)

    step = dlaccelerate(refused)
    x = odd(kind, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(5):
            step(x)
            assert x.tolist() == [(call + 1) * (call + 2) / 2] * 3
    assert step.stats.uncompiled > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_array_twice(kind: str) -> None:
    def both(a: Any, b: Any) -> None:
        a += 1
        b *= 2

    for mode in ("none", "tolerance"):
        step = dlaccelerate(both, check_mode=mode)
        x, want = odd(kind, 3), np.zeros(3)
        for _ in range(5):
            step(x, x)
            both(want, want)
            assert x.tolist() == want.tolist()


@pytest.mark.parametrize("kind", ["unaligned", "foreign"])
def test_odd_arrays_that_overlap_are_refused(kind: str) -> None:
    x = odd(kind, 9)
    step = dlaccelerate(counted)
    for _ in range(2):
        with pytest.raises(tj.WriteError, match="y shares memory with an array that counted writes"):
            step(x[:6], x[3:])
    assert not x.any()


def test_a_difference_in_what_is_written_is_found() -> None:
    factor = hidden(2.0)

    def scaled(p: Any, q: Any) -> None:
        p *= factor.get()

    step = dlaccelerate(scaled, check_mode="tolerance")
    p, q = np.ones(3), np.ones(3)
    for _ in range(4):
        step(p, q)
    factor.set(3.0)
    with pytest.warns(
        tj.OutputsDifferWarning, match=r"scaled: argument p\[0\] is 32.0, expected 48.0 \(3 of 3"
    ):
        step(p, q)
    assert p.tolist() == [32.0] * 3


def test_captured_arrays_are_written_once() -> None:
    factor = hidden(1.0)
    total = tj.dlarray(np.zeros(3))

    def added(x: Any) -> Any:
        total[...] = total + x * factor.get()
        x += 1
        return total.sum()

    step = dlaccelerate(added, check_mode="tolerance")
    x, want = np.zeros(3), np.zeros(3)
    for call in range(10):
        want += call
        assert step(x).item() == want.sum()
        assert total.tolist() == want.tolist() and x.tolist() == [call + 1.0] * 3
    factor.set(2.0)
    with pytest.warns(tj.OutputsDifferWarning, match=r"output is .*, expected "):
        step(x)
    assert total.tolist() == (want + 10).tolist() and x.tolist() == [11.0] * 3


def test_a_captured_array_of_which_replays_read_a_copy_is_refused() -> None:
    total = tj.dlarray(odd("unaligned", 3))

    def added(x: Any) -> None:
        total[...] = total + x

    step = dlaccelerate(added)
    with pytest.warns(UserWarning, match="it writes an array, read besides its arguments, whose"):
        for _ in range(4):
            step(np.ones(3))
    assert total.tolist() == [4.0] * 3


def test_inside_dlfeval() -> None:
    def squared(p: Any, x: Any) -> Any:
        p *= x
        return p * x

    for mode in ("none", "tolerance"):
        step = dlaccelerate(squared, check_mode=mode)

        def loss(p: Any, x: Any, step: Any = step) -> Any:
            p = p * 1.0
            y = step(p, x)
            z = (p * y).sum()  # p is p x, y is p x x
            return z, tj.dlgradient(z, x)

        for _ in range(4):
            value, slope = tj.dlfeval(loss, np.array([2.0]), np.array([3.0]))
            assert (value.item(), slope.item()) == (4 * 27.0, 4 * 27.0)


def test_an_argument_of_dlfeval_is_written_through_an_accelerated_function() -> None:
    def moved(p: Any, x: Any) -> None:
        p[1:] += x[1:] ** 2

    step = dlaccelerate(moved)

    def outer(p: Any, x: Any) -> Any:
        step(p, x)
        return tj.dlgradient((p * p).sum(), x)

    p, want = np.zeros(3), np.zeros(3)
    x = np.array([1.0, 2.0, 3.0])
    for _ in range(5):
        slope = tj.dlfeval(outer, p, x)
        want[1:] += x[1:] ** 2
        assert p.tolist() == want.tolist()
        assert slope.tolist() == (4 * want * x * [0, 1, 1]).tolist()


@pytest.mark.parametrize("is_accelerated", [False, True])
def test_a_replay_inside_an_evaluation_that_has_what_it_reads_on_its_tape(is_accelerated: bool) -> None:
    written, kept = tj.dlarray(np.zeros(2)), {"n": 0, "last": tj.dlarray(np.zeros(2))}

    @dlaccelerate(check_mode="tolerance")
    def inner(x: Any) -> Any:
        written[:] = written + x
        kept["n"] += 1
        kept["last"] = kept["last"] + 2 * x
        return written * 3

    def outer(x: Any) -> Any:
        return inner(x) + inner(2 * x) + kept["last"]

    step = dlaccelerate(outer, check_mode="tolerance") if is_accelerated else lambda x: tj.dlfeval(outer, x)
    total, count, last = 0.0, 0, 0.0
    for call in range(12):
        if call % 3 == 2:  # alone: the same trace
            total, count, last = total + call, count + 1, last + 2 * call
            want = 3 * total
        else:
            want = 3 * (total + call) + 3 * (total + 3 * call) + last + 6 * call
            total, count, last = total + 3 * call, count + 2, last + 6 * call
        have = (inner if call % 3 == 2 else step)(np.full(2, float(call)))
        assert have.tolist() == [want] * 2
        assert (written.tolist(), kept["n"], kept["last"].tolist()) == ([total] * 2, count, [last] * 2)
