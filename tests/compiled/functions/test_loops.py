# SPDX-License-Identifier: BSD-3-Clause
"""Loops of compiled programs: the executor moves addresses on, and back."""

from pathlib import Path
from typing import Any

import complex_loops
import numpy as np
import pytest
from effort import sweep
from loops import (
    agree,
    array,
    check_a_long_scan_compiles_what_a_short_one_does,
    check_a_loop_that_a_value_ends,
    check_branches,
    check_functions_of_python,
    loops_of,
)
from random_loops import check

import tracejit as tj
from tracejit.describe import profile


@pytest.mark.parametrize("seed", range(sweep(8, 40)))
@pytest.mark.sampled
def test_random_loops(seed: int) -> None:
    accelerated = check(1000 + seed, twice=seed % 2 == 0)
    assert accelerated.stats.programs == 1
    assert loops_of(accelerated)


@pytest.mark.parametrize("seed", range(sweep(4, 24)))
@pytest.mark.sampled
def test_random_loops_of_complex_numbers(seed: int) -> None:
    derivative = (complex_loops.first, complex_loops.second, complex_loops.forward)[seed % 3]
    assert loops_of(complex_loops.check(1000 + seed, derivative))


def test_functions_of_python() -> None:
    check_functions_of_python()


def test_a_loop_that_a_value_ends() -> None:
    check_a_loop_that_a_value_ends()


def test_branches() -> None:
    check_branches()


def test_a_long_scan_compiles_what_a_short_one_does() -> None:
    check_a_long_scan_compiles_what_a_short_one_does()


def test_steps_in_parts() -> None:
    """Launches of a step that are large run in parts, which several threads share."""

    def fun(w: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = tj.tanh(state @ w + x)
            return state, (state * x).sum()

        last, sums = tj.dlscan(step, tj.dlarray(np.zeros((300, 200))), xs)
        loss = (last**2).sum() + sums.mean()
        return loss, tj.dlgradient(loss, (w, xs))

    accelerated = agree(fun, array(200, 200) * 0.1, array(5, 300, 200), loops=2)
    assert "part 2 of" in accelerated.source()


def test_loops_of_two_threads_at_once() -> None:
    """States of calls that overlap have addresses of their own."""
    from concurrent.futures import ThreadPoolExecutor

    fun = tj.dlaccelerate(
        lambda w, xs: tj.dlscan(lambda s, x: (tj.tanh(s * w + x), s), w * 0.0, xs)[1].sum(axis=0)
    )
    w, xs = array(50), array(2000, 50)
    expected = [fun(w * k, xs).tolist() for k in (1.0, 2.0, 3.0, 4.0) for _ in range(3)][2::3]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            assert [x.tolist() for x in pool.map(lambda k: fun(w * k, xs), (1.0, 2.0, 3.0, 4.0))] == expected


def test_an_exported_loop(tmp_path: Path) -> None:
    """A folder holds the loops of its programs, with their conditions and the steps of addresses."""
    captured = tj.dlarray([0.3, -0.2])

    @tj.dlaccelerate
    def fun(w: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = tj.dlcond(state.sum() > 0.2, lambda: state * w - x, lambda: tj.sin(state + captured) + x)
            return state, state.sum()

        last, sums = tj.dlscan(step, w * 0.0, xs, reverse=True)
        grown = tj.dlwhile(lambda v: v.sum() < 9.0, lambda v: v * 1.5 + 1.0, abs(last))
        loss = last.sum() + (sums**2).sum()
        return loss, grown, tj.dlgradient(loss, (w, xs))

    w, xs = array(2), array(7, 2)
    expected = [fun(w, xs) for _ in range(3)][-1]
    tj.export(fun, tmp_path / "loop", captured="constants")
    loaded = tj.load(tmp_path / "loop")
    for one, other in zip(*(tj.tree.flatten(each)[0] for each in (loaded(w, xs), expected)), strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


def test_the_profile_counts_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a launch in a loop the time of all steps counts: here each row takes 1000 ns, by a clock of the test."""

    class Steps:
        status, now = 0, 0

        def __call__(self, first: int, count: int, together: bool = True) -> int:
            Steps.now += 100 + 1000 * count
            return 0

    fun = tj.dlaccelerate(lambda xs: tj.dlscan(lambda c, x: (tj.sin(c) + x, None), xs[0], xs)[0])
    times = []
    for length in (10, 1000):
        xs = array(length, 300)
        for _ in range(3):
            fun(xs)
        replay = fun._cache.last_trace.replay
        assert replay.profile().replay_ns > 0
        with monkeypatch.context() as patch:
            patch.setattr("tracejit.describe.profile.time.perf_counter_ns", lambda: Steps.now)
            found = profile.profile(replay.program, lambda inputs, outputs: Steps())
        times.append(max(found.launch_ns))
    assert times == [10 * 1000, 1000 * 1000]
