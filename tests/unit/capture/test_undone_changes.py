# SPDX-License-Identifier: BSD-3-Clause
"""A recorded call that raises an error leaves the user's objects as they were, and so does a replay."""

import array
import collections
import copy
import queue
import random
import warnings

import numpy as np
import pytest
from effort import sweep

import tracejit as tj


class BoomError(Exception):
    """What the functions raise."""


class Kind:
    """A class with attributes that all instances share."""

    count, table = 0, {"n": 1.0}


class State:
    """An object with everything that the functions change."""

    def __init__(self):
        self.n, self.f, self.c, self.g, self.text, self.flag = 0, 1.0, None, None, "a", False
        self.u, self.w = np.zeros(2), np.ones(2)
        self.pair, self.gone = (0.0, 1.0), 1.0
        self.d, self.e = {"a": 1.0, "b": 2.0}, {}
        self.l, self.r = [3.0, 1.0, 2.0], []
        self.nested = {"p": {"q": [0.0, np.zeros(2)]}}
        self.counter, self.default = collections.Counter(), collections.defaultdict(list)
        self.ordered = collections.OrderedDict(a=1.0, b=2.0)
        self.window = collections.deque([0.0, 1.0, 2.0], maxlen=3)
        self.members, self.memory, self.codes = {1.0}, bytearray(b"ab"), array.array("d", [1.0])
        self.inner = Inner()


class Inner:
    """An object in an attribute."""

    def __init__(self):
        self.v, self.items = 0.0, [1.0]


STATEMENTS = {
    "an attribute": "s.f = s.f * 0.5 + 1",
    "a counter": "s.n += 1",
    "an array": "s.u = s.u * 0.5 + x",
    "an array in place": "s.w *= 0.5; s.w += x",
    "an ndarray by NumPy": "s.w += 1.5; s.w[0] = 2",
    "a tuple": "s.pair = (s.pair[1], s.pair[0] + 1)",
    "a text": "s.text = s.text + 'b' if len(s.text) < 3 else 'a'",
    "a mode": "s.flag = not s.flag",
    "a new dict": "s.c = {'v': 1.0} if s.c is None else s.c",
    "a new array": "s.g = np.zeros(2) if s.g is None else s.g + x",
    "a deleted attribute": "s.__dict__.pop('gone', None)",
    "an attribute by name": "setattr(s, 'f', s.f + 1.0)",
    "an attribute in vars": "vars(s)['f'] = s.f * 0.5 + 1",
    "an attribute within": "s.inner.v = s.inner.v * 0.5 + x.sum(); s.inner.items.append(2.0)",
    "an item": "s.d['a'] = s.d['a'] * 0.5 + 1",
    "items": "s.d.update(a=s.d['a'] + 1, z=x.sum())",
    "a default": "s.e.setdefault('k', 1.0)",
    "a deleted item": "s.d.pop('a', None); s.d['a'] = 4.0",
    "the order of keys": "s.ordered.move_to_end('a'); s.ordered['c'] = s.ordered['a'] + 1",
    "all items": "s.d.clear(); s.d['q'] = s.f",
    "an item of a list": "s.l[0] = s.l[0] * 0.5 + 1",
    "appended": "s.r.append(s.f); s.r += [x]",
    "inserted": "s.r.insert(0, 1.0)",
    "removed": "s.l.append(s.l.pop(0))",
    "sorted": "s.l.sort(); s.l[2] = s.l[2] * 0.5",
    "turned round": "s.l.reverse(); s.l[1] += 1",
    "replaced": "s.l[:] = [s.l[-1] + 1, s.l[0]]",
    "cleared": "s.l.clear(); s.l.extend([4.0, 5.0, s.f])",
    "nested": "s.nested['p']['q'][1] = s.nested['p']['q'][1] + x; s.nested['p']['q'][0] += 1.0",
    "a counter's item": "s.counter['a'] += 1",
    "a list in a defaultdict": "s.default['a'].append(s.f)",
    "a window": "s.window.append(float(x[0]))",
    "a set": "s.members.add(s.f + 1); s.members.discard(1.0)",
    "bytes": "s.memory.extend(b'c'); s.memory[0] = 66",
    "numbers of a module": "s.codes[0] = s.codes[0] * 0.5 + 1; s.codes.append(2.0)",
    "a class": "Kind.count = Kind.count * 2 + 1; Kind.table['n'] = Kind.table['n'] * 0.5",
    "a global": "global total; total = total * 0.5 + 1",
}
ERRORS = {
    "of Python": "if s.fails: raise BoomError",
    "by a value": "if x.sum() > 100: raise BoomError",
    "of a handler": "if s.fails: raise KeyboardInterrupt",
    "in a helper": "helper(s)",
}


def helper(s):
    if s.fails:
        s.f = s.f * 3
        raise BoomError


def built(*lines, error):
    """Return a function that changes its state, may raise an error, and gives a number; and the names that it has."""
    body = "\n".join(f"    {line}" for line in lines)
    names = {"np": np, "BoomError": BoomError, "helper": helper, "total": 0.5, "__name__": __name__}
    names["Kind"] = type("Kind", (Kind,), {"count": 0, "table": {"n": 1.0}})
    exec(f"def step(s, x):\n{body}\n    {error}\n    return x.sum() + s.f", names)
    return names


def shown(value):
    """Return what is in a state as text, with the numbers of arrays."""
    if isinstance(value, (State, Inner)):
        value = {name: part for name, part in vars(value).items() if not name.startswith("_")}
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [shown(part) for part in value]
    is_number = isinstance(value, (int, float, np.number)) or getattr(value, "ndim", None) == 0
    return round(float(value), 9) if is_number else value.tolist() if hasattr(value, "tolist") else value


def everything(names, state):
    kind = names["Kind"]
    return [shown(state), shown(kind.count), shown(kind.table), shown(names["total"])]


def check(lines, error, failing, calls=7):
    """Compare calls of which some raise an error with plain Python, where what these have changed is put back."""
    mine, theirs = built(*lines, error=ERRORS[error]), built(*lines, error=ERRORS[error])
    accelerated = tj.dlaccelerate(mine["step"])
    state, expected = State(), State()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for call in range(calls):
            if accelerated.stats.uncompiled:
                return  # which leaves what Python leaves
            fails = call in failing
            x = np.full(2, 1000.0 if fails and error == "by a value" else 0.5 + call)
            state.fails = expected.fails = fails
            before = copy.deepcopy(expected), theirs["total"], theirs["Kind"].count, {**theirs["Kind"].table}
            found = outcome(accelerated, state, x)
            want = outcome(theirs["step"], expected, x.copy())
            if isinstance(want, type):
                expected, theirs["total"], theirs["Kind"].count, theirs["Kind"].table = before
            assert found == want
            if not accelerated.stats.uncompiled:
                assert everything(mine, state) == everything(theirs, expected), call


def outcome(function, state, x):
    try:
        return shown(function(state, x))
    except (Exception, KeyboardInterrupt) as error:
        return type(error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_what_a_failing_call_changes(name, error):
    for failing in ({0}, {1}, {2}, {3}, {0, 1, 5}):
        check([STATEMENTS[name]], error, failing)


@pytest.mark.parametrize("seed", sweep(range(5), range(200)))
def test_many_changes_at_once(seed):
    chosen = random.Random(seed)
    names = chosen.sample([*STATEMENTS], chosen.randint(2, 6))
    names.sort(key=lambda name: "global" not in name)  # a declaration comes first
    failing = {call for call in range(7) if chosen.random() < 0.4}
    check([STATEMENTS[name] for name in names], chosen.choice([*ERRORS]), failing)


def test_an_error_of_the_recording():
    """The result is refused after the function has returned."""
    state = State()

    @tj.dlaccelerate
    def step(s, x):
        s.f = s.f * 0.5 + 3
        s.r.insert(0, x)
        return iter([x])

    with pytest.raises(tj.ArgumentError):
        step(state, np.ones(2))
    assert (state.f, state.r) == (1.0, [])


def test_what_is_in_a_queue_stays():
    state = State()
    state.queue = queue.Queue()

    @tj.dlaccelerate
    def step(s, x):
        s.queue.put(1.0)
        s.f = s.f * 0.5 + 3
        if s.queue.qsize():
            raise BoomError
        return x

    with pytest.raises(BoomError):
        step(state, np.ones(2))
    assert (state.f, state.queue.qsize()) == (1.0, 1)
