# SPDX-License-Identifier: BSD-3-Clause
"""Counts and times of an accelerated function as data."""

import dataclasses
import itertools
import json
import re
import threading

import numpy as np
import pytest

import tracejit as tj
from tracejit.traces.counters import REASONS


def branching(x):
    return (x * 2 if x.sum() > 0 else -x).sum()


def counts(stats):
    """Return what is not 0, without times."""
    found = dataclasses.asdict(stats)
    found["misses"] = {reason: count for reason, count in found["misses"].items() if count}
    return {name: value for name, value in found.items() if value and not name.endswith("_ns")}


def test_of_a_function_that_was_not_called():
    stats = tj.dlaccelerate(branching).stats
    assert counts(stats) == {}
    assert list(stats.misses) == list(REASONS)
    assert [getattr(stats, name) for name in ("record_ns", "build_ns", "compile_ns", "load_ns")] == [0] * 4


def test_misses_by_reason():
    fun = tj.dlaccelerate(branching, cache_size=1)
    expected = {"calls": 0, "misses": {}}

    def after(value, size=1, calls=1, **changes):
        for _ in range(calls):
            fun(np.full(size, value))
        expected["calls"] += calls
        expected.update(changes)
        assert counts(fun.stats) == {name: value for name, value in expected.items() if value}

    after(1.0, misses={"signature": 1}, keys=1, traces=1, kept=1, guards=1)
    after(1.0, misses={"signature": 1, "unconfirmed": 1}, traces=2, confirmed=1)
    after(1.0, hits=1, programs=1, launches=2, kernels=2)
    after(-1.0, misses={"signature": 1, "unconfirmed": 1, "guard": 1}, traces=3, kept=2, guards=2)
    after(1.0, calls=3, hits=4)
    after(1.0, misses={"signature": 1, "unconfirmed": 1, "guard": 1, "audit": 1}, traces=4, audited=1)
    after(1.0, size=2, misses={"signature": 2, "unconfirmed": 1, "guard": 1, "audit": 1}, traces=5, evicted=1,
          kept=1, guards=1, programs=0, launches=0, kernels=0)  # fmt: skip


def test_evicted_and_times():
    fun = tj.dlaccelerate(branching, cache_size=1, confirm=0)
    for size in (1, 1, 2, 2):
        fun(np.ones(size))
    before = fun.stats
    assert (before.programs, before.evicted) == (1, 1)
    fun(np.ones(1))
    after = fun.stats
    assert (after.misses["signature"], after.misses["evicted"]) == (2, 1)
    assert after.programs == 0
    assert after.build_ns == before.build_ns > 0  # what was spent is not undone
    assert after.record_ns > before.record_ns > 0
    tj.clear_cache(fun)
    assert fun.stats == tj.dlaccelerate(branching).stats


def test_refused_and_replaced():
    counter = itertools.count()
    fun = tj.dlaccelerate(lambda x: x * next(counter))
    with pytest.warns(tj.NotAcceleratedWarning):
        for _ in range(5):
            fun(np.ones(1))
    assert counts(fun.stats) == {
        "calls": 5, "misses": {"signature": 1, "unconfirmed": 1, "refused": 3}, "keys": 1, "traces": 2, "refused": 1,
        "uncompiled": 3,
    }  # fmt: skip
    factors = itertools.chain([1.0] * 2, itertools.repeat(2.0))
    fun = tj.dlaccelerate(lambda x: x * next(factors))
    with pytest.warns(tj.ChangedTraceWarning):
        for _ in range(8):
            fun(np.ones(1))
    stats = fun.stats
    assert (stats.traces, stats.confirmed, stats.replaced, stats.kept, stats.hits) == (3, 1, 1, 1, 5)


def test_errors_count_as_misses():
    fun = tj.dlaccelerate(lambda x: x.reshape(7))
    with pytest.raises(tj.DimsError):
        fun(np.ones(1))
    assert counts(fun.stats) == {"calls": 1, "misses": {"signature": 1}}


def test_forward_and_adjoint_are_programs():
    fun = tj.dlaccelerate(lambda x: tj.tanh(x).sum(), confirm=0)
    for _ in range(2):
        tj.dlfeval(lambda x: tj.dlgradient(fun(x), x), tj.dlarray(np.ones(3)))
    assert counts(fun.stats)["programs"] == 2


def test_arenas():
    fun = tj.dlaccelerate(
        lambda x: tj.tanh(x.sum(axis=0, keepdims=True) - x).sum(axis=0) @ np.ones((3, 2)), confirm=0
    )
    for _ in range(2):
        fun(np.ones((4, 3)))
    (program,) = [replay.program for replay in fun._cache.last_trace.replays()]
    assert fun.stats.arena_bytes == program.arena_bytes > 0
    assert fun.stats.launches == program.launches


def test_as_data():
    fun = tj.dlaccelerate(branching)
    fun(np.ones(1))
    stats = fun.stats
    assert json.loads(json.dumps(dataclasses.asdict(stats)))["misses"]["signature"] == 1
    stats.misses.clear()
    assert fun.stats.misses["signature"] == 1  # what is given away is a copy
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.calls = 0


def test_in_words():
    fun = tj.dlaccelerate(branching)
    for _ in range(4):
        fun(np.ones(3))
    assert re.sub(r"\d+\.\d ms", "T", repr(fun.stats)).splitlines() == [
        "Stats with properties:",
        "",
        "      calls: 4",
        "       hits: 2 (50.0 %)",
        "     misses: 2 (1 signature, 1 unconfirmed)",
        " uncompiled: 0",
        "       keys: 1, 0 evicted",
        "     traces: 2 recorded in T; 1 confirmed, 0 audited, 0 replaced, 0 refused; 1 kept with 1 guard",
        "   programs: 1 built in T; 2 launches, arenas of 64 bytes",
        "    kernels: 2; 0 compiled in T, 0 loaded in T",
    ]
    assert "       hits: 0\n     misses: 0\n" in repr(tj.dlaccelerate(branching).stats)


def test_misses_add_up_with_several_threads():
    fun = tj.dlaccelerate(branching)

    def work():
        for n in range(60):
            fun(np.full(1 + n % 3, (-1.0) ** n))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = fun.stats
    assert stats.calls == 240 == stats.hits + sum(stats.misses.values())
