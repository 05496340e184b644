# SPDX-License-Identifier: BSD-3-Clause
"""Call paths of several traces: they serve what the paths of each would serve, and count it."""

import enum
import gc
import inspect
import threading
import weakref
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.call.path_text import PathText
from tracejit.call.result import MISS
from tracejit.call.served_counts import ServedCounts
from tracejit.call.shared_reads import shared

X = np.array([0.5, -1.25])


class Phase(enum.Enum):
    GO = 1
    WAIT = 2
    STOP = 3


class Machine:
    """Modes, branches on values and on arguments, and attributes that are replaced."""

    def __init__(self) -> None:
        self.phase, self.steps, self.rate, self.state = Phase.GO, 0, 0.5, np.zeros(2)

    def step(self, x: Any, boost: bool = False) -> Any:
        self.steps += 1
        if self.steps % 7 == 0:
            self.phase = {Phase.GO: Phase.WAIT, Phase.WAIT: Phase.STOP, Phase.STOP: Phase.GO}[self.phase]
        if self.phase is Phase.GO:
            self.state = self.state + self.rate * x
        elif self.phase is Phase.WAIT:
            self.state = self.state * (0.25 if boost else 0.5)
        if self.state[0] > 2:
            self.state = np.zeros(2)
        return self.state


def is_shared(function: Any) -> bool:
    return any(path.is_shared for path in function._cache.paths)


@pytest.mark.slow
def test_a_machine_does_what_the_plain_one_does() -> None:
    plain, ours = Machine(), Machine()
    step = tj.dlaccelerate(ours.step, max_variants=30)
    seen = set()
    for n in range(600):
        x, boost = X * (1 + n % 3), n % 5 == 0
        want, got = plain.step(x, boost), step(x, boost)
        np.testing.assert_array_equal(got, want)
        assert (ours.phase, ours.steps) == (plain.phase, plain.steps)
        np.testing.assert_array_equal(ours.state, plain.state)
        seen.add(is_shared(step))
    assert seen == {False, True}
    assert step.stats.calls == 600 and step.stats.hits > 500 and not step.stats.uncompiled


def alternating(calls: int = 100, **options: Any) -> Any:
    """Return a function whose traces took turns, and take them from one path if nothing was due."""
    fold = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x - 1, **{"audit": False, **options})
    for n in range(calls):
        fold(X if n % 2 else -X)
    return fold


def test_traces_that_take_turns_share_a_path() -> None:
    fold = alternating()
    assert [len(path.served) for path in fold._cache.paths] == [2]
    text = inspect.getsource(fold._cache.paths[0].run)
    assert text.count("__code__") == 1  # read once
    assert text.startswith("def replay(args):\n")


def test_one_that_serves_nearly_all_calls_stays_by_itself() -> None:
    fold = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x - 1, audit=False)
    for n in range(2000):
        fold(X if n % 50 == 0 else -X)
    first, second = fold._cache.paths
    assert sum(first.hits) > 10 * sum(second.hits) and not is_shared(fold)


def test_calls_are_counted() -> None:
    fold = alternating(1)
    for n in range(1, 400):
        fold(X if n % 2 else -X)
        if n % 37 == 0:
            assert fold.stats.calls == n + 1
            assert fold.stats.calls == fold.stats.hits + sum(fold.stats.misses.values())
    assert is_shared(fold)


def test_the_latest_trace_is_the_one_that_is_shown() -> None:
    fold = alternating()
    fold(X)
    assert "sub_" in fold.source()
    fold(-X)
    assert "mul_" in fold.source() and "sub_" not in fold.source()
    assert "hit" in str(fold.explain())


@pytest.mark.parametrize("named", [False, True])
def test_audits_come_when_they_are_due(named: bool) -> None:
    fold, audited = tj.dlaccelerate(lambda x: x * 2 if x.sum() > 0 else x - 1), []
    for n in range(1, 600):
        before = fold.stats.audited
        x = X if n % 2 else -X
        fold(x=x) if named else fold(x)
        if fold.stats.audited != before:
            audited.append(n)
    assert audited == [8, 64, 512]
    assert is_shared(fold)  # again


def test_checks_come_when_they_are_due() -> None:
    fold = alternating(check_mode="sample", check_every=10)
    checked: list[int] = []
    original = fold._dispatcher._check
    fold._dispatcher._check = lambda *args: (checked.append(fold.stats.calls), original(*args))
    for n in range(100):
        fold(X if n % 2 else -X)
    assert checked == list(range(110, 201, 10))


def test_a_change_of_what_is_read_is_seen() -> None:
    class Scale:
        by, up = 2.0, True

        def run(self, x: Any) -> Any:
            return x * self.by if self.up else x - self.by

    o = Scale()
    run = tj.dlaccelerate(o.run, audit=False)
    for n in range(200):
        o.up = bool(n % 2)
        run(X)
    assert is_shared(run)
    o.by, o.up = 3.0, True
    assert run(X).tolist() == (X * 3).tolist()
    o.up = "yes"
    assert run(X).tolist() == (X * 3).tolist()
    assert run(np.ones(3)).tolist() == [3.0] * 3
    del o.by
    assert run(X).tolist() == (X * 2).tolist()  # the class has one


def test_it_goes_with_its_traces() -> None:
    fold = alternating()
    path = fold._cache.paths[0]
    found = [weakref.ref(path), weakref.ref(path.run), *[weakref.ref(served.trace) for served in path.served]]
    del path
    gc.collect()
    gc.disable()
    try:
        fold.clear_cache()
        assert [each() for each in found] == [None] * 4
    finally:
        gc.enable()


def test_a_new_trace_joins() -> None:
    three = tj.dlaccelerate(lambda x: x * 2 if x[0] > 0 else x - 1 if x[1] > 0 else x, audit=False)
    kinds = [np.array([1.0, 0.0]), np.array([-1.0, 1.0]), np.array([-1.0, -1.0])]
    for n in range(100):
        three(kinds[n % 2])
    assert [len(path.served) for path in three._cache.paths] == [2]
    for n in range(200):
        assert three(kinds[n % 3]).tolist() == [[2.0, 0.0], [-2.0, 0.0], [-1.0, -1.0]][n % 3]
    assert [len(path.served) for path in three._cache.paths] == [3]


def test_two_signatures_share_a_path() -> None:
    twice = tj.dlaccelerate(lambda x, by: x * by + tj.dlarray(1.0), audit=False)
    for n in range(200):
        x = np.ones(2 + n % 3)
        assert twice(x, 2.0 if n % 2 else "".__len__()).tolist() == [3.0 if n % 2 else 1.0] * len(x)
    assert any(len(path.served) > 2 for path in twice._cache.paths)


def test_a_trace_that_cannot_share_lets_the_others_share() -> None:
    class Walk:
        def __init__(self) -> None:
            self.n, self.rng = 0, np.random.default_rng(0)

        def step(self, x: Any) -> Any:
            self.n += 1
            if self.n % 3 == 0:
                return x + self.rng.normal(size=2)
            return x * 2 if x[0] > 0 else x - 1

    plain, ours = Walk(), Walk()
    step = tj.dlaccelerate(ours.step, audit=False)
    for n in range(200):
        np.testing.assert_array_equal(step(X if n % 2 else -X), plain.step(X if n % 2 else -X))
    kept = [path for path in step._cache.paths if path.is_shared]
    for n in range(400):
        np.testing.assert_array_equal(step(X if n % 2 else -X), plain.step(X if n % 2 else -X))
    assert len(kept) == 1 and kept[0] in step._cache.paths  # it was not made again


def test_a_call_that_was_on_its_way_when_all_paths_were_dropped() -> None:
    fold = alternating()
    path = fold._cache.paths[0]
    fold._cache._strays = 32
    fold.confirm = 1
    fold._cache.path_hit(path)
    assert fold(X).tolist() == (X - 1).tolist()


def test_another_way_to_set_attributes_is_seen() -> None:
    class Counting:
        def __init__(self) -> None:
            self.n = 0

        def step(self, x: Any) -> Any:
            self.n += 1
            return x * 2

    step, log = tj.dlaccelerate(Counting().step, audit=False), []
    for _ in range(20):
        step(X)
    Counting.__setattr__ = lambda self, name, value: (
        log.append(name),
        object.__setattr__(self, name, value),
    )[1]
    step(X)
    assert log == ["n"]


def test_threads_lose_no_call() -> None:
    fold = alternating()
    before = fold.stats.calls

    def work(seed: int) -> None:
        for n in range(300):
            sign = 1 if (n * seed) % 3 else -1
            x = sign * X * seed
            assert fold(x).tolist() == ((x * 2) if x.sum() > 0 else x - 1).tolist()
            if n % 100 == 50:
                fold.confirm = 1  # which drops all call paths

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fold.stats.calls == before + 1200
    assert fold.stats.hits == fold.stats.calls - sum(fold.stats.misses.values())


def run_of(*paths: tuple[list[str], list[str], dict[str, Any]]) -> Callable[[Any], Any] | None:
    """Return one path for some whose reads and statements after them are given, with their names."""
    texts = [
        PathText([], ["try:", *[f"    {line}" for line in reads], "except AttributeError:", "    return MISS"],
                 after, {"MISS": MISS, **names})
        for reads, after, names in paths
    ]  # fmt: skip
    counts = ServedCounts(len(texts), lambda number: None)
    counts.limit([1 << 60] * len(texts))
    return shared(texts, counts)


class Noisy:
    """Whose attribute runs code of the user."""

    @property
    def size(self) -> int:
        raise ValueError("it must not be read")


def test_nothing_is_read_from_an_object_of_unknown_type() -> None:
    class First:
        size = 1

    class Second:
        size = 2

    holder = type("Holder", (), {})()
    reads = ["v0 = g0.at", "if type(v0) is not g1: return MISS", "v1 = v0.size"]
    run = run_of(
        (reads, ["return ('first', v1)"], {"g0": holder, "g1": First}),
        (reads, ["return ('second', v1)"], {"g0": holder, "g1": Second}),
    )
    assert run is not None
    for value, result in zip(cycle([First(), Second(), Noisy()]), [("first", 1), ("second", 2), MISS] * 2):
        holder.at = value
        assert run(()) == result
    del holder.at
    assert run(()) is MISS


def test_names_of_paths_are_kept_apart() -> None:
    """Names mean other objects in each path, and texts with words that are names stay as they are."""
    space = {"v0": 1, "g1": 2, "frames": 3}
    reads = ["v0 = g0['v0']", "v1, v2, = g0['g1'], g0['frames']", "if v0 != g1: return MISS"]
    after = ["frames.append(v1)", "s0 = [part for part in frames]", "return (s0, v2, 'frames', g1)"]
    first, second = [], []
    run = run_of(
        (reads, after, {"g0": space, "g1": 1, "frames": first}),
        (reads, after, {"g0": space, "g1": 5, "frames": second}),
    )
    assert run is not None
    assert run(()) == ([2], 3, "frames", 1)
    space["v0"] = 5
    assert run(()) == ([2], 3, "frames", 5)
    assert (first, second) == ([2], [2])


@pytest.mark.parametrize("line", ["while v0: break", "for v0 in g0: pass", "with v0: pass"])
def test_other_statements_are_not_shared(line: str) -> None:
    plain = (["v0 = g0"], ["return v0"], {"g0": 1})
    assert run_of(plain, plain) is not None
    assert run_of(plain, (["v0 = g0"], [line, "return v0"], {"g0": 1})) is None or line.startswith("with")
    assert run_of(plain, ([line], ["return g0"], {"g0": 1})) is None
