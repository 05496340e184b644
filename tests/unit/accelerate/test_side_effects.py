# SPDX-License-Identifier: BSD-3-Clause
"""Functions that print, log, or keep values: one warning where a replay does not do it again, none elsewhere."""

import functools
import io
import logging
import queue
import sys
import warnings
from collections import deque

import numpy as np
import pytest

import tracejit as tj

X = np.array([1.0, 2.0])
history = []
by_name = {}
state = {"history": []}
latest = deque(maxlen=2)
last = [np.zeros(2)]
seen = set()
written = io.StringIO()
waiting = queue.Queue()
numbers = bytearray(2)
logger = logging.getLogger("of.a.user")


def helper(y):
    history.append(y)


class Trainer:
    def __init__(self):
        self.history = []
        self.table = {}

    def step(self, x):
        loss = (x**2).sum()
        self.history.append({"loss": loss, "kind": "train"})
        return loss


def warned(function, *args, hits=3):
    """Call an accelerated function five times; return its warnings."""
    step = tj.dlaccelerate(function)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(5):
            step(*args)
    assert step.stats.hits == hits
    return found


def prints(x):
    print("loss")
    return x * 2


def logs(x):
    logger.warning("loss %s", 1)
    return x * 2


def keeps_by_append(x):
    y = x * 2
    history.append(y)
    return y


def keeps_by_extend(x):
    y = x * 2
    history.extend([y, y])
    return y


def keeps_by_insert(x):
    y = x * 2
    history.insert(0, (1, y))
    return y


def keeps_by_adding(x):
    y = x * 2
    state["history"] += [y]
    return y


def keeps_in_a_global_name(x):
    global history
    y = x * 2
    history += [y]
    return y


def keeps_at_the_front(x):
    y = x * 2
    state["history"][:0] = [y]
    return y


def keeps_by_update(x):
    y = x * 2
    by_name.update(loss=y)
    return y


def keeps_the_latest(x):
    y = x * 2
    latest.appendleft(y)
    return y


def keeps_a_constant(x):
    history.append(1.0)
    return x * 2


def adds_a_constant(x):
    state["history"] += ["step"]
    return x * 2


def drops_the_oldest(x):
    latest.append(1.5)
    return x * 2


def empties(x):
    seen.clear()
    return x * 2


def writes_to_a_file(x):
    written.write("step")
    return x * 2


def prints_to_a_file(x):
    print("step", file=written)
    return x * 2


def prints_to_stderr(x):
    print("step", file=sys.stderr)
    return x * 2


def writes_to_stdout(x):
    sys.stdout.write("step")
    return x * 2


def puts_into_a_queue(x):
    waiting.put(1.0)
    return x * 2


def adds_bytes(x):
    numbers.append(1)
    return x * 2


def changes_bytes(x):
    numbers[0] += 1
    return x * 2


def removes_items(x):
    by_name.update(n=1)
    by_name.clear()
    return x * 2


def keeps_in_a_helper(x):
    y = x * 2
    helper(y)
    return y


@pytest.fixture(autouse=True)
def _empty():
    history.clear()
    by_name.clear()
    latest.clear()
    state["history"] = []


@pytest.mark.parametrize(
    ("function", "what", "instead", "line"),
    [
        (prints, "calls print()", "print it", 1),
        (logs, "writes to the log", "log it", 1),
        (writes_to_a_file, "calls write() of a StringIO that it did not make", "write it", 1),
        (prints_to_a_file, "calls print()", "print it", 1),
        (prints_to_stderr, "calls print()", "print it", 1),
        (puts_into_a_queue, "calls put() of a Queue that it did not make", "keep it", 1),
    ],
)
def test_what_a_replay_does_not_repeat(function, what, instead, line, capsys, caplog):
    place = f"{__file__}:{function.__code__.co_firstlineno + line}"
    (warning,) = warned(function, X)
    assert warning.category is tj.LostChangeWarning
    assert str(warning.message) == (
        f"{function.__name__} {what} at {place}, which happens while it is recorded only: a replay does not repeat it. "
        f"Return the value, and {instead} outside."
    )
    assert f"{warning.filename}:{warning.lineno}" == place


@pytest.mark.parametrize(
    ("function", "name", "contents", "count"),
    [
        (keeps_by_insert, "global history", lambda: history, 5),
        (keeps_at_the_front, "global state['history']", lambda: state["history"], 5),
        (adds_bytes, "global numbers", lambda: numbers, 7),
        (changes_bytes, "global numbers", lambda: [None] * numbers[0], 5),
    ],
)
def test_what_no_replay_repeats_runs_uncompiled(function, name, contents, count, monkeypatch):
    monkeypatch.setitem(globals(), "numbers", bytearray(2))
    (warning,) = warned(function, X, hits=0)
    assert warning.category is tj.NotAcceleratedWarning and f"it changes {name}, which" in str(
        warning.message
    )
    assert len(contents()) == count


def test_a_full_deque_drops_the_last_in_replays():
    latest.extend([0.0, 0.0])
    step = tj.dlaccelerate(keeps_the_latest)
    for n in range(9):
        step(X + n)
    assert [part.tolist() for part in latest] == [[18.0, 20.0], [16.0, 18.0]]
    assert step.stats.hits >= 2


def test_a_dict_that_is_updated_is_updated_by_replays():
    accelerated = tj.dlaccelerate(keeps_by_update)
    for n in range(4):
        accelerated(np.full(2, float(n)))
        assert by_name["loss"].tolist() == [2.0 * n] * 2
    assert accelerated.stats.hits == 2


def test_a_dict_that_an_operator_updates_is_updated_by_replays():
    table = {"tables": {}}

    @tj.dlaccelerate
    def keeps_by_an_operator(x):
        table["tables"] |= {"loss": x * 2}

    for n in range(4):
        table["tables"] = {}
        keeps_by_an_operator(np.full(2, float(n)))
        assert table["tables"]["loss"].tolist() == [2.0 * n] * 2
    assert keeps_by_an_operator.stats.hits == 2


@pytest.mark.parametrize(
    ("function", "container", "added"),
    [
        (keeps_by_append, lambda: history, [[2.0, 4.0]]),
        (keeps_by_extend, lambda: history, [[2.0, 4.0]] * 2),
        (keeps_by_adding, lambda: state["history"], [[2.0, 4.0]]),
        (keeps_in_a_global_name, lambda: history, [[2.0, 4.0]]),
        (keeps_a_constant, lambda: history, [1.0]),
        (adds_a_constant, lambda: state["history"], ["step"]),
        (keeps_in_a_helper, lambda: history, [[2.0, 4.0]]),
    ],
)
def test_what_is_appended_is_appended_by_replays(function, container, added):
    assert not warned(function, X)
    kept = [part.tolist() if isinstance(part, tj.dlarray) else part for part in container()]
    assert kept == added * 5


def test_a_full_deque_drops_the_oldest_in_replays():
    assert not warned(drops_the_oldest, X)
    assert latest == deque([1.5, 1.5], 2)


def test_a_list_that_is_put_into_itself():
    def holds_itself(x):
        history.append(history)
        return x * 2

    step = tj.dlaccelerate(holds_itself)
    with pytest.warns(tj.NotAcceleratedWarning, match="it changes global history, which it also reads"):
        for _ in range(5):
            step(X)
    assert len(history) == 5 and history[-1] is history


def test_in_an_attribute():
    trainer = Trainer()
    assert not warned(trainer.step, X)
    assert [(entry["loss"].item(), entry["kind"]) for entry in trainer.history] == [(5.0, "train")] * 5


def test_both_are_told():
    def both(x):
        print("loss")
        waiting.put(1.0)
        return x * 2

    (warning,) = warned(both, X)  # the first of them: the other is told once that is mended
    assert "print()" in str(warning.message)


def makes_lists(x):
    values, table = [], {}
    for i in range(3):
        values.append(x * i)
        table.update({i: x})
    values.extend([x])
    return sum(values)


def keeps_what_is_there(x):
    seen.add(x.shape)
    by_name["shape"] = x.shape
    by_name.update(steps=1)
    return x * 2


def keeps_the_last(x):
    last[:] = [x * 2]
    return x * 2


def fills_a_list_of_the_call(x, rows):
    rows = list(rows)
    rows.append(x * 2)
    return rows


def is_asked_not_to_print(x):
    if len(x) > 5:
        print("long")
        history.append(x * 2)
    return x * 2


def prints_to_a_buffer(x):
    buffer = io.StringIO()
    print("text", file=buffer)
    return x * len(buffer.getvalue())


def logs_below_the_level(x):
    logger.debug("loss")
    return x * 2


def comprehends(x):
    return sum([x * i for i in range(3)])


def add_to(parts, part):
    parts.append(part)
    parts += [part]


def put_into(table, y):
    table.update({"y": y})


def has_a_helper_fill_its_list(x):
    parts, table = [], {}
    add_to(parts, x * 2)
    put_into(table, x)
    return sum(parts) + table["y"]


def fills_its_list_in_a_nested_function(x):
    parts = []

    def visit(depth):
        parts.append(x * depth)
        if depth:
            visit(depth - 1)

    visit(3)
    return sum(parts)


def passes_its_list_on(x, depth=3, parts=None):
    parts = [] if parts is None else parts
    parts.append(x * depth)
    return passes_its_list_on(x, depth - 1, parts) if depth else sum(parts)


@pytest.mark.parametrize(
    "function",
    [
        has_a_helper_fill_its_list,
        fills_its_list_in_a_nested_function,
        passes_its_list_on,
        makes_lists,
        removes_items,
        is_asked_not_to_print,
        prints_to_a_buffer,
        logs_below_the_level,
        comprehends,
    ],
)
def test_no_false_alarm(function):
    assert not warned(function, X)


@pytest.mark.parametrize("function", [keeps_the_last, keeps_what_is_there, empties])
def test_no_alarm_for_what_the_first_call_alone_changes(function):
    seen.add(1)
    last[0] = np.zeros(2)
    assert not warned(function, X, hits=2)


def test_no_alarm_for_a_copied_argument():
    assert not warned(fills_a_list_of_the_call, X, [X])


def test_no_alarm_where_the_function_runs_uncompiled():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        step = tj.dlaccelerate(prints, enabled=False)
        for _ in range(4):
            step(X)
            tj.dlfeval(keeps_by_append, X)
    assert not found


def test_once_for_each_kind():
    step = tj.dlaccelerate(puts_into_a_queue)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for size in (1, 2, 3, 1, 2, 3):
            step(np.ones(size))
    assert len(found) == 1


def test_no_alarm_where_something_is_put_into_an_argument():
    def returned(state, x):
        state["n"] += 1
        return state, x * 2

    def same(state, x):
        state["n"] = state["n"]
        copy = {**state, "n": state["n"] + 1}
        return x * copy["n"]

    for function in (returned, same):
        step = tj.dlaccelerate(function)
        for _ in range(4):
            step({"n": 1, "x": np.ones(2)}, np.ones(2))


@pytest.mark.parametrize("kind", ["attribute", "cache"])
def test_no_alarm_for_what_happens_once_where_something_is_made(kind, capsys):
    kept = {"table": None}

    def made():
        print("made")
        return np.ones(2)

    remembered = functools.lru_cache(made)

    def of_attribute(x):
        if kept["table"] is None:
            kept["table"] = made()
        return x * kept["table"]

    step = tj.dlaccelerate(of_attribute if kind == "attribute" else lambda x: x * remembered())
    for _ in range(6):
        step(X)
    assert capsys.readouterr().out == "made\n"
    assert step.stats.hits == 3


def warns(x):
    warnings.warn("large", stacklevel=1)
    return x * 2


def warns_of_its_caller(x):
    def inner():
        warnings.warn(DeprecationWarning("old"), stacklevel=2)

    inner()
    return x * 2


def warns_explicitly(x):
    warnings.warn_explicit("large", UserWarning, "of_a_user.py", 3)
    return x * 2


def warns_sometimes(x):
    if len(history) == 0:
        warnings.warn("empty", stacklevel=1)
    return x * 2


def shows_again(x):
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.warn("large", stacklevel=1)
    return x * 2


def catches(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("large", stacklevel=1)
    return x * len(found)


def ignores(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("large", stacklevel=1)
    return x * 2


WARNING = [warns, warns_of_its_caller, warns_explicitly, warns_sometimes, shows_again, catches, ignores]


@pytest.mark.parametrize("action", ["always", "default", "module", "once", "ignore"])
@pytest.mark.parametrize("function", WARNING)
def test_a_warning_is_told_where_the_plain_function_gives_it_again(function, action):
    history.clear()
    given = []
    for run in (function, tj.dlaccelerate(function)):
        globals().pop("__warningregistry__", None)
        warnings.onceregistry.clear()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter(action)
            warnings.simplefilter("always", tj.LostChangeWarning)
            for _ in range(5):
                assert run(X).tolist() == ([1.0, 2.0] if function is catches else [2.0, 4.0])
        given.append(found)
    plain, accelerated = given
    told = [w for w in accelerated if w.category is tj.LostChangeWarning]
    assert len(told) == (len(plain) == 5)
    assert len(accelerated) - len(told) == min(len(plain), 2)
    assert all("gives a warning at" in str(w.message) for w in told)


def test_a_warning_that_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        step = tj.dlaccelerate(warns)
        for _ in range(4):
            with pytest.raises(UserWarning, match="large"):
                step(X)
