# SPDX-License-Identifier: BSD-3-Clause
"""The logger "tracejit": whole lines, what they cost, and TRACEJIT_LOG."""

import functools
import io
import itertools
import logging
import re
import types

import numpy as np
import pytest
from logged import HERE, lines_of_log, steps

import tracejit as tj
from tracejit import config
from tracejit.store.entry import KernelKey, StoredKernel
from tracejit.store.kernels import SUFFIX, KernelStore, store
from tracejit.traces.counters import defined_at
from tracejit.util import logs


@pytest.fixture
def lines(caplog):
    return lines_of_log(caplog)


class TestSlowBuilds:
    """One line on a terminal, whether a log is set up or not, once in a process."""

    @pytest.fixture(autouse=True)
    def _terminal(self, monkeypatch):
        self.terminal = io.StringIO()
        self.terminal.isatty = lambda: True
        monkeypatch.setattr(logs, "sys", types.SimpleNamespace(stderr=self.terminal))
        monkeypatch.setattr(logs, "_told", False)
        # pytest's own handlers would show the line.
        monkeypatch.setattr(logging.getLogger("tracejit"), "propagate", False)

    def test_once(self):
        logs.tell_of_slow_build("slow")
        logs.tell_of_slow_build("slow again")
        assert self.terminal.getvalue() == "tracejit: slow\n"

    def test_no_terminal(self):
        self.terminal.isatty = lambda: False
        logs.tell_of_slow_build("slow")
        assert self.terminal.getvalue() == ""

    def test_no_standard_error(self, monkeypatch):
        monkeypatch.setattr(logs.sys, "stderr", None)
        logs.tell_of_slow_build("slow")

    def test_turned_off(self, monkeypatch):
        monkeypatch.setattr(logging.getLogger("tracejit"), "level", logging.WARNING)
        logs.tell_of_slow_build("slow")
        assert self.terminal.getvalue() == ""

    def test_a_log_shows_it_already(self, monkeypatch):
        handler = logging.StreamHandler(io.StringIO())
        logger = logging.getLogger("tracejit")
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "level", logging.INFO)
        logger._cache.clear()
        logs.tell_of_slow_build("slow")
        assert (self.terminal.getvalue(), handler.stream.getvalue()) == ("", "slow\n")

    def test_a_log_of_warnings_does_not_show_it(self, monkeypatch):
        handler = logging.StreamHandler(io.StringIO())
        handler.setLevel(logging.WARNING)
        monkeypatch.setattr(logging.getLogger("tracejit"), "handlers", [handler])
        logs.tell_of_slow_build("slow")
        assert (self.terminal.getvalue(), handler.stream.getvalue()) == ("tracejit: slow\n", "")


class TestCalls:
    def test_the_life_of_a_trace(self, lines):
        fun = tj.dlaccelerate(steps, cache_size=1)
        for _ in range(5):
            fun(np.ones(3), 2)
        what = "x: 3 float64, p: 2"
        assert lines() == [
            ("INFO", "miss", f"steps ({HERE}): miss. A new trace was recorded for {what}, because there was none "
             "yet. 2 operations in T."),
            ("INFO", "miss", f"steps ({HERE}): miss. The call was recorded again, and confirmed the trace for {what}. "
             "2 operations in T."),
            ("INFO", "build", f"steps ({HERE}): built the program for {what} in T: 1 launch of 1 kernel, an arena "
             "of 0 bytes."),
            ("INFO", "hit", f"steps ({HERE}): hit. The call was replayed from the trace for {what}."),
            ("DEBUG", "hit", f"steps ({HERE}): hit. The call was replayed from the trace for {what}."),
            ("DEBUG", "hit", f"steps ({HERE}): hit. The call was replayed from the trace for {what}."),
        ]  # fmt: skip
        for _ in range(3):
            fun(np.ones(3), 2)
        assert lines()[-1] == (
            "INFO", "miss",
            f"steps ({HERE}): miss. The call was recorded again by an audit, and agreed with the trace for {what}. "
            "2 operations in T.",
        )  # fmt: skip
        fun(np.ones(4), 2)
        assert lines() == [
            ("INFO", "evict", f"steps ({HERE}): evicted the traces for {what}: more than cache_size (1) "
             "signatures are in use."),
            ("INFO", "miss", f"steps ({HERE}): miss. A new trace was recorded for x: 4 float64, p: 2, because, "
             "compared with the nearest trace, x was 3 float64, is 4 float64. 2 operations in T."),
        ]  # fmt: skip

    def test_a_refusal(self, lines):
        counter = itertools.count()

        @tj.dlaccelerate
        def counted(x):
            return x * next(counter)

        name = counted.__qualname__
        label = f"{name} ({__file__}:{counted.__wrapped__.__code__.co_firstlineno})"
        counted(np.ones(1))
        lines()
        with pytest.warns(tj.NotAcceleratedWarning) as caught:
            counted(np.ones(1))
        counted(np.ones(1))
        why = "two recordings differ: a constant of mul was 0.0, is 1.0 at "
        found = lines()
        assert [line[:2] for line in found] == [("INFO", "miss"), ("WARNING", "warning"), ("DEBUG", "miss")]
        assert found[0][2].startswith(f"{label}: not accelerated for x: 1 float64: {why}{__file__}:")
        assert found[0][2].endswith(". The call ran uncompiled. 1 operation in T.")
        assert found[1][2] == label + str(caught[0].message).removeprefix(name)
        assert found[2][2] == found[0][2].removesuffix(" 1 operation in T.")

    def test_a_trace_that_was_wrong(self, lines):
        factors = itertools.chain([1.0] * 2, itertools.repeat(2.0))
        fun = tj.dlaccelerate(lambda x: x * next(factors))
        with pytest.warns(tj.ChangedTraceWarning):
            for _ in range(8):
                fun(np.ones(1))
        found = lines()[-2:]
        assert [line[:2] for line in found] == [("INFO", "miss"), ("WARNING", "warning")]
        assert (
            "miss. The trace for x: 1 float64 was replaced: a constant of mul was 1.0, is 2.0" in found[0][2]
        )
        assert "a trace that was replayed is out of date" in found[1][2]

    def test_errors_and_policies(self, lines):
        fun = tj.dlaccelerate(lambda x: x.reshape(7))
        with pytest.raises(tj.DimsError):
            fun(np.ones(3))
        ((level, event, text),) = lines()
        assert (level, event) == ("INFO", "miss")
        assert text.endswith(
            "The function raised an error for x: 3 float64, and no trace was kept. (DimsError)"
        )
        with tj.set_policy("error-on-retrace"), pytest.raises(tj.RetraceError):
            fun(np.ones(3))
        ((level, event, text),) = lines()
        assert "miss. A new trace would be recorded for x: 3 float64, because there was none yet." in text

    def test_numbers_that_are_needed(self, lines):
        fun = tj.dlaccelerate(lambda x, n: x * range(n)[-1])
        for n in (1, 2, 3):
            fun(np.ones(1), n)
        assert [line[2].partition("): ")[2] for line in lines()][-1] == (
            "miss. The call was recorded for x: 1 float64, n: an int that varies, but index at "
            f"{__file__}:{fun.function.__code__.co_firstlineno} needs n as a Python number, so its value selects "
            "the trace again. T."
        )

    def test_what_changes_what_it_reads(self, lines):
        held = {"n": 0}

        def fun(x):
            held["n"] += 1
            return x * held["n"]

        tj.dlaccelerate(fun)(np.ones(1))
        assert lines()[0][2].partition("): ")[2] == (
            "miss. The call was recorded for x: 1 float64, but the function changed something that it reads, so no "
            "trace was kept. 1 operation in T."
        )

    def test_differing_outputs(self, lines):
        factors = itertools.chain([1.0] * 2, itertools.repeat(2.0))
        fun = tj.dlaccelerate(lambda x: x * next(factors), check_mode="tolerance")
        with pytest.warns(tj.OutputsDifferWarning) as caught:
            for _ in range(3):
                fun(np.ones(1))
        level, event, text = lines()[-1]
        assert (level, event) == ("WARNING", "warning") and text.endswith(f"): {caught[0].message}")

    def test_a_call_within_an_evaluation(self, lines):
        fun = tj.dlaccelerate(steps)
        for _ in range(3):
            tj.dlfeval(lambda x: tj.dlgradient(fun(x, 2).sum(), x), tj.dlarray(np.ones(3)))
        assert [text.partition("): ")[2][:25] for _, event, text in lines() if event == "build"] == [
            "built the forward program", "built the adjoint program",
        ]  # fmt: skip


class TestHits:
    def test_a_replay_asks_nobody_whether_to_log(self, monkeypatch):
        fun = tj.dlaccelerate(steps)
        for _ in range(4):
            fun(np.ones(3), 2)
        monkeypatch.setattr(logs, "enabled", None)
        monkeypatch.setattr(logs, "write", None)
        for _ in range(3):
            fun(np.ones(3), 2)
        assert fun.stats.hits == 5

    def test_hits_are_logged_from_the_next_audit_on(self, caplog, lines):
        caplog.set_level(logging.INFO, "tracejit")
        fun = tj.dlaccelerate(steps)
        for _ in range(5):
            fun(np.ones(3), 2)
        lines()
        caplog.set_level(logging.DEBUG, "tracejit")
        for _ in range(2):
            fun(np.ones(3), 2)
        assert lines() == []
        for _ in range(3):
            fun(np.ones(3), 2)
        assert [line[:2] for line in lines()] == [("INFO", "miss"), ("DEBUG", "hit"), ("DEBUG", "hit")]

    def test_the_root_logger_does_not_ask_for_each_call(self, caplog):
        caplog.set_level(logging.DEBUG)
        fun = tj.dlaccelerate(steps)
        for _ in range(5):
            fun(np.ones(3), 2)
        assert fun._cache.paths
        assert [record.event for record in caplog.records] == ["miss", "miss", "build", "hit"]

    def test_nothing_is_put_in_words_that_nobody_reads(self, monkeypatch):
        monkeypatch.setattr(logs, "write", None)
        fun = tj.dlaccelerate(steps, cache_size=1)
        for n in (3, 3, 3, 4, 4, 4):
            fun(np.ones(n), 2)
        assert fun.stats.hits == 2 and fun.stats.evicted == 1


class TestCacheOnDisk:
    def entry(self, number=0, size=256):
        key = KernelKey((("kind", "kernel"), ("source", f"hash {number}")))
        return StoredKernel(key, f"add_{number}", (), 12, "", bytes(size))

    def test_a_damaged_entry(self, tmp_path, lines):
        kept, one = KernelStore(str(tmp_path / "cache"), 1 << 20), self.entry()
        kept.save(one)
        path = tmp_path / "cache" / "kernels" / (one.key.name + SUFFIX)
        path.write_bytes(path.read_bytes()[:-1])
        assert kept.load(one.key) is None
        ((level, event, text),) = lines()
        assert (level, event) == ("INFO", "cache")
        assert re.fullmatch(
            f"cache in {re.escape(kept.root)}: entry {one.key.name[:12]} is compiled again and written over, because "
            "its content does not agree with its hash[.]", text,
        )  # fmt: skip

    def test_room_is_made(self, tmp_path, lines):
        kept = KernelStore(str(tmp_path / "cache"), 2000)
        for number in range(3):
            kept.save(self.entry(number))
        assert lines() == []
        for number in range(3, 6):
            kept.save(self.entry(number))
        (line,) = lines()
        assert line[:2] == ("INFO", "cache")
        assert re.fullmatch(
            f"cache in {re.escape(kept.root)}: (\\d+) bytes exceed the limit of 2000; the least recently "
            "used entries were removed, (\\d+) bytes are left[.]", line[2],
        )  # fmt: skip

    def test_a_folder_that_is_not_used(self, tmp_path, lines, monkeypatch):
        root = tmp_path / "cache"
        root.mkdir()
        root.chmod(0o777)
        monkeypatch.setattr(config.settings, "cache_dir", str(root))
        with pytest.warns(tj.errors.CacheWarning) as caught:
            store().save(self.entry())
        assert lines() == [("WARNING", "cache", str(caught[0].message))]
        assert str(caught[0].message).startswith(
            f"compiled kernels are not kept in {root}, because other users may"
        )


class TestPlaces:
    def method(self):
        """Nothing."""

    def test_functions_of_all_kinds(self):
        line = TestPlaces.method.__code__.co_firstlineno
        for function in (self.method, TestPlaces.method, functools.partial(self.method)):
            assert defined_at(function) == (__file__, line)

        @functools.wraps(self.method)
        def wrapper():
            """Nothing."""

        assert defined_at(wrapper) == (__file__, line)

        class Callable:
            def __call__(self):
                """Nothing."""

        assert defined_at(Callable()) == (__file__, Callable.__call__.__code__.co_firstlineno)
        assert defined_at(np.tanh) is None and defined_at(len) is None

    def test_a_function_without_a_place(self, lines):
        tj.dlaccelerate(np.tanh)(tj.dlarray([1.0]))
        named = "x" if hasattr(np.tanh, "__signature__") else "argument 1"  # NumPy tells from 2.4 on
        assert lines()[0][2].startswith(f"tanh: miss. A new trace was recorded for {named}: 1 float64")
