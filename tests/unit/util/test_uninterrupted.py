# SPDX-License-Identifier: BSD-3-Clause
"""Work that exceptions of signal handlers do not end halfway."""

import _thread
import functools
import signal
import threading
import time
import warnings

import pytest

import tracejit as tj
from tracejit.util import frames, uninterrupted
from tracejit.util.uninterrupted import is_of_handler, surely


class AlarmError(Exception):
    """The exception of a signal handler."""


def ring(*_):
    raise AlarmError("now")


@pytest.fixture
def alarm():
    """A function that has an AlarmError raised in the main thread after some seconds."""
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("this system has no alarms")
    before = signal.signal(signal.SIGALRM, ring)
    yield lambda after_s: signal.setitimer(signal.ITIMER_REAL, after_s)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_the_result():
    assert uninterrupted.uninterrupted(lambda stopping: (stopping(), threading.get_ident())) != (
        False,
        threading.get_ident(),
    )


def test_an_error_has_its_place():
    def fail(stopping):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        uninterrupted.uninterrupted(fail)
    assert caught.traceback[-1].name == "fail"


def test_in_another_thread_it_runs_at_once():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(uninterrupted.uninterrupted(lambda stopping: threading.get_ident()))
    )
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_the_users_line_is_known_in_the_thread():
    place = uninterrupted.uninterrupted(lambda stopping: frames.user_location())
    assert place == (__file__, test_the_users_line_is_known_in_the_thread.__code__.co_firstlineno + 1)
    assert frames._caller.place is None


def test_an_exception_of_a_handler_waits(alarm):
    """It is raised when the work is done; the work is told that it may stop."""
    done = []

    def work(stopping):
        alarm(0.002)
        while not stopping():
            time.sleep(0.0005)
        done.append(True)

    with pytest.raises(AlarmError, match="now") as caught:
        uninterrupted.uninterrupted(work)
    assert done and is_of_handler(caught.value)


def test_alarms_again_and_again(alarm):
    rings, works, done = [], [], []

    def ring_at_work(*_):  # and not in pytest, whose exceptions nobody would catch
        if works and not done:
            rings.append(True)
            raise AlarmError("now")

    def work(stopping):
        works.append(True)
        while len(rings) < 5:
            time.sleep(0.001)
        done.append(True)

    signal.signal(signal.SIGALRM, ring_at_work)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    with pytest.raises(AlarmError):
        uninterrupted.uninterrupted(work)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert done


def test_a_notice_of_long_work():
    noticed = []
    work = functools.partial(time.sleep, 0.01)
    uninterrupted.uninterrupted(lambda stopping: work(), lambda: noticed.append(1), 0.001)
    uninterrupted.uninterrupted(lambda stopping: None, lambda: noticed.append(2), 10.0)
    assert noticed == [1]


def refuse(*_):
    raise RuntimeError("can't start new thread")


class TestWithoutNewThreads:
    @pytest.fixture(autouse=True)
    def _no_threads(self, monkeypatch):
        monkeypatch.setattr(_thread, "start_new_thread", refuse)
        monkeypatch.setattr(uninterrupted, "_warned", False)

    def test_the_work_runs_here_with_one_warning(self):
        with pytest.warns(tj.TraceJitWarning, match="starts no new thread for this process") as found:
            ran = [uninterrupted.uninterrupted(lambda stopping: threading.get_ident()) for _ in range(2)]
        assert ran == [threading.get_ident()] * 2 and len(found) == 1
        assert found[0].filename == __file__

    def test_an_error_of_the_work_that_says_the_same(self, monkeypatch):
        monkeypatch.undo()
        with pytest.raises(RuntimeError, match="can't start new thread"):
            uninterrupted.uninterrupted(refuse)

    def test_no_warning_while_python_ends(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            uninterrupted.warn_of_threads(RuntimeError("can't create new thread at interpreter shutdown"))

    def test_other_errors_are_raised(self):
        with pytest.raises(RuntimeError, match="something else"):
            uninterrupted.warn_of_threads(RuntimeError("something else"))


class Handler:
    """A handler that is an object."""

    def __call__(self, *_):
        ring()


@pytest.mark.parametrize("handler", [ring, functools.partial(ring, 1), Handler(), Handler().__call__])
def test_errors_of_handlers(handler, alarm):
    signal.signal(signal.SIGALRM, handler)
    with pytest.raises(AlarmError) as caught:
        signal.raise_signal(signal.SIGALRM)
    assert is_of_handler(caught.value)


def test_errors_of_others(alarm):
    for work in (lambda: ring, lambda: 1 / 0, lambda: int("x")):
        try:
            work()
        except Exception as error:
            assert not is_of_handler(error)
    assert not is_of_handler(AlarmError())


class TestSurely:
    def test_an_action_is_done_once_if_nothing_comes(self):
        done = []
        surely(done.append, 1)
        assert done == [1]

    def test_an_action_that_an_error_ends_is_done_again(self):
        done = []

        def action(times):
            done.append("begun")
            if len(done) == 1:
                raise KeyboardInterrupt
            done.append("ended" * times)

        with pytest.raises(KeyboardInterrupt):
            surely(action, 1)
        assert done == ["begun", "begun", "ended"]
