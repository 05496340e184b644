# SPDX-License-Identifier: BSD-3-Clause
"""explain() as text and as data, and policies on recordings."""

import itertools
import pickle
import queue
import warnings

import numpy as np
import pytest
from counted_runs import counts_runs

import tracejit as tj
from tracejit import ArgumentError, NotAcceleratedWarning, RetraceError, RetraceWarning, dlaccelerate
from tracejit.accelerate import policy


def branching(x):
    y = x * 2 if x.sum() > 0 else -x
    return y * complex(x[0]).real


LINE = branching.__code__.co_firstlineno


class TestExplain:
    def test_variants_and_guards(self):
        fun = dlaccelerate(branching)
        for n in (1.0, 1.0, -2.0, 1.0):
            fun(np.array([n]))
        text = fun.explain()
        assert text.splitlines() == [
            "branching: hit. The call was replayed from the trace for x: 1 float64.",
            "  x: 1 float64: 2 traces (4 calls, 1 confirmed, 0 audits)",
            "    trace 1, 5 operations",
            f"      bool() at {__file__}:{LINE + 1} is True",
            f"      complex() at {__file__}:{LINE + 2} is 1.0",
            "    trace 2, 5 operations, to be confirmed",
            f"      bool() at {__file__}:{LINE + 1} is False",
            f"      complex() at {__file__}:{LINE + 2} is -2.0",
        ]
        (key,) = text.keys
        assert (key.arguments, key.calls, key.confirmations, key.audits) == ("x: 1 float64", 4, 1, 0)
        assert [variant.replayable for variant in key.variants] == [True, False]
        assert [(g.what, g.where) for g in key.variants[1].guards] == [
            ("bool()", (__file__, LINE + 1)), ("complex()", (__file__, LINE + 2)),
        ]  # fmt: skip
        assert pickle.loads(pickle.dumps(text)) == str(text)

    def test_why_another_variant(self):
        fun = dlaccelerate(branching)
        fun(np.array([1.0]))
        fun(np.array([-2.0]))
        assert (
            "miss. A new trace was recorded for x: 1 float64, because unlike in the latest trace, bool() at "
            f"{__file__}:{LINE + 1} is False."
        ) in fun.explain()

    def test_of_keys_without_guards_nothing_more_is_said(self):
        fun = dlaccelerate(lambda x: x * 2)
        for size in (1, 2):
            fun(np.ones(size))
        text = fun.explain()
        assert len(text.splitlines()) == 1
        assert [key.arguments for key in text.keys] == ["x: 1 float64", "x: 2 float64"]

    def test_numbers(self):
        """What varies is said to become an input only where that may be, and what needs it is named."""

        def fun(x, p, k, n=1.0):
            return x * complex(p).real * k * complex(n).real

        line = f"{__file__}:{fun.__code__.co_firstlineno + 1}"
        fun = dlaccelerate(fun)
        becomes = (
            " A number that takes a third value becomes an input of the trace, unless it is needed as a Python "
            "number."
        )
        needs = (
            f"Each value has a trace of its own, because complex() at {line} needs {{}} as a Python number"
        )

        def told(*args):
            fun(np.ones(2), *args)
            return fun.explain().splitlines()[0]

        told(0.1, 1.0)
        assert told(0.2, 1.0).endswith(f"p was 0.1, is 0.2.{becomes}")
        assert told(0.3, 1.0).endswith(
            f"p: a float that varies, k: 1.0, but complex() at {line} needs p as a Python number, so its value selects "
            "the trace again."
        )
        assert told(0.4, 1.0).endswith(f"p was 0.2, is 0.4. {needs.format('p')}.")
        assert told(0.5, 2.0).endswith(f"p was 0.4, is 0.5; k was 1.0, is 2.0. {needs.format('p')}.{becomes}")
        for n in (4.0, 5.0, 6.0, 7.0):
            told(0.5, 2.0, n)
        assert told(0.6, 2.0, 8.0).endswith(f"n was 7.0, is 8.0. {needs.format('n')}.{becomes}")
        told(0.7, 2.0, 8.0)
        both = f"{needs.format('p')} and complex() at {line} needs n as a Python number."
        assert told(0.8, 2.0, 9.0).endswith(f"n was 8.0, is 9.0. {both}")
        assert told(np.float32(0.5), 1.0).endswith(
            "is np.float32(0.5). Each type has a trace of its own: pass one type, such as float(p)."
        )
        assert told(np.float32(0.25), 1.0).endswith(f"p was np.float32(0.5), is np.float32(0.25).{becomes}")
        told(0.5, np.longlong(5))
        assert told(0.5, np.longlong(3)).endswith(
            "costs a trace each time: pass a Python number, such as float(k)."
        )

    def test_many_guards(self):
        def fun(x):
            for n in range(20):
                x = x + 1 if x.sum() > n else x
            return x

        fun = dlaccelerate(fun)
        for _ in range(2):
            fun(np.ones(1))
        text = fun.explain()
        (key,) = text.keys
        guards = key.variants[0].guards
        assert len(guards) == 20
        assert text.splitlines()[3:] == [
            *[f"      {guard.text}" for guard in guards[:7]], "      and 13 more",
        ]  # fmt: skip

    def test_eight_guards_are_all_told(self):
        def fun(x):
            for n in range(8):
                x = x + 1 if x.sum() > n else x
            return x

        fun = dlaccelerate(fun)
        for _ in range(2):
            fun(np.ones(1))
        assert len(fun.explain().splitlines()) == 11 and "more" not in fun.explain()

    def test_refusals(self):
        counter = itertools.count()
        fun = dlaccelerate(lambda x: x * next(counter))
        fun(np.ones(1))
        with pytest.warns(NotAcceleratedWarning):
            fun(np.ones(1))
        (key,) = fun.explain().keys
        assert key.refusal.reason == "two recordings differ: a constant of mul was 0.0, is 1.0"
        assert key.refusal.where[0] == __file__ and "likely cause: a counter" in key.refusal.remedy
        assert (
            "  x: 1 float64: runs uncompiled (2 calls, 0 confirmed, 0 audits): two recordings"
            in fun.explain()
        )

    def test_replaced(self):
        factors = itertools.chain([1.0] * 2, itertools.repeat(2.0))
        fun = dlaccelerate(lambda x: x * next(factors))
        for _ in range(7):
            fun(np.ones(1))
        with pytest.warns(tj.ChangedTraceWarning):
            fun(np.ones(1))
        assert (
            "The trace for x: 1 float64 was replaced: a constant of mul was 1.0, is 2.0 at" in fun.explain()
        )
        assert "1 trace (8 calls, 1 confirmed, 1 audit, 1 replaced)" in fun.explain()


class TestPolicies:
    def test_error(self):
        fun = dlaccelerate(branching)
        for _ in range(3):
            fun(np.ones(1))
        with tj.set_policy("error-on-retrace"):
            assert fun(np.ones(1)).item() == 2.0
            with pytest.raises(
                RetraceError, match=r"x was 1 float64, is 2 float64\. set_policy.*allows recordings"
            ):
                fun(np.ones(2))
            with pytest.raises(
                RetraceError, match=r"would be recorded .*because no trace for these arguments both applies"
            ):
                fun(-np.ones(1))
            with pytest.raises(RetraceError):
                tj.dlfeval(lambda x: fun(x) + 1, np.ones(2))
        assert fun.occupancy == 2.0 and fun.stats.traces == 2
        assert fun(np.ones(2)).tolist() == [2.0, 2.0]

    def test_error_for_what_is_not_accelerated(self):
        fun = dlaccelerate(lambda x: x + tj.extractdata(x))
        with pytest.warns(NotAcceleratedWarning):
            fun(np.ones(1000))
        text = "not accelerated for x: 1000"
        with tj.set_policy("error-on-retrace"), pytest.raises(RetraceError, match=text):
            fun(np.ones(1000))

    def test_warning_once_for_each_key(self):
        fun = dlaccelerate(lambda x: x * 2)
        with tj.set_policy("warn-on-retrace"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for size in (1, 1, 1, 2, 2):
                fun(np.ones(size))
        assert [w.category for w in caught] == [RetraceWarning] * 2
        assert caught[1].filename == __file__ and "x was 1 float64, is 2 float64" in str(caught[1].message)

    @counts_runs
    def test_uncompiled(self):
        runs = queue.Queue()
        fun = dlaccelerate(lambda x: runs.put(1) or x * 2, confirm=0)
        fun(np.ones(1)), fun(np.ones(1))
        with tj.set_policy("uncompiled"):
            assert fun(np.ones(1)).item() == 2.0
        assert runs.qsize() == 2 and fun.stats.calls == 2
        fun(np.ones(1))
        assert runs.qsize() == 2

    @counts_runs
    def test_audits_are_left_out(self):
        runs = queue.Queue()
        fun = dlaccelerate(lambda x: runs.put(1) or x * 2)
        for _ in range(4):
            fun(np.ones(1))
        with tj.set_policy("error-on-retrace"):
            for _ in range(20):
                fun(np.ones(1))
        assert runs.qsize() == 2
        for _ in range(39):
            fun(np.ones(1))
        assert runs.qsize() == 2
        fun(np.ones(1))  # the 64th call
        assert runs.qsize() == 3

    def test_without_a_block_and_nested(self):
        before = tj.set_policy("warn-on-retrace")
        try:
            with tj.set_policy("uncompiled") as inner:
                assert repr(inner) == "<policy 'uncompiled'>" and policy.current == "uncompiled"
            assert policy.current == "warn-on-retrace"
        finally:
            before.__exit__()
        assert policy.current == "default" and not policy.uncompiled

    def test_another_name(self):
        with pytest.raises(ArgumentError, match=r"set_policy: expected one of .'default'.* not 'never'"):
            tj.set_policy("never")


class TestOneWarning:
    def inner_and_outer(self):
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())

        @dlaccelerate
        def inner(x):
            return x * next(noise)

        @dlaccelerate
        def outer(x):
            return inner(x) + 1

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(8):
                outer(np.ones(2))
        assert inner.stats.refused == outer.stats.refused == 1
        return [str(warning.message).partition(" runs ")[0].rpartition(".")[2] for warning in caught], inner

    def test_of_one_line(self):
        told, inner = self.inner_and_outer()
        assert told == ["outer"]
        assert "inner: not accelerated for x: 2 float64" in inner.explain()

    def test_of_two_lines(self):
        counter = itertools.count()
        noise = iter(np.random.default_rng(0).normal(size=20).tolist())

        @dlaccelerate
        def counts(x):
            return x + next(counter)

        @dlaccelerate
        def outer(x):
            y = x * next(noise)
            return counts(y)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(8):
                outer(np.ones(2))
        assert len(caught) == 2 and caught[0].lineno == caught[1].lineno + 4

    def test_of_a_function_that_is_called_by_itself_later(self):
        _, first = self.inner_and_outer()
        with pytest.warns(NotAcceleratedWarning):
            for _ in range(2):
                first(np.ones(3))


def test_a_call_that_ends_in_a_refusal_is_told_as_one():
    noise = iter(np.random.default_rng(0).normal(size=20).tolist())

    @tj.dlaccelerate
    def noisy(x):
        return x * next(noise)

    with pytest.warns(tj.NotAcceleratedWarning):
        for _ in range(2):
            noisy(np.ones(2))
    told = str(noisy.explain())
    assert "noisy: not accelerated for x: 2 float64: two recordings differ" in told
    assert "miss" not in told
