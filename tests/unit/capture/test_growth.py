"""Lists and deques that a function appends to: replays append as much."""

import collections
import warnings

import numpy as np
import pytest

import tracejit as tj


class State:
    def __init__(self):
        self.h, self.d, self.m = [], collections.deque(maxlen=3), {"a": []}
        self.w, self.k = np.ones(2), 0


def add(container, value):
    container.append(value)


def last(s, x):
    if not s.k:
        s.h.append(1.0)
    s.k = 1
    s.h.append(s.h[-1] * 0.5 + float(x[0]))


def last_array(s, x):
    if not s.k:
        s.h.append(np.zeros(2))
    s.k = 1
    s.h.append(s.h[-1] * 0.5 + x)


def window(s, x):
    s.h.append(float(x[0]))
    if len(s.h) > 3:
        s.h.pop(0)


def momentum(s, x):
    s.w = s.w * 0.9 + x
    s.h.append(s.w.copy())


def assigns(s, x):
    s.h.append(1.0)
    s.h[0] = float(x[0])


def assigns_by_another_name(s, x):
    h = s.h
    h.append(float(x[0]))
    h[-1] += 1.0


def turned(s, x):
    s.h.append(float(x[0]))
    s.h.reverse()


def adds(s, x):
    s.h += [float(x[0])]
    s.m["a"] += x.tolist()


def sometimes(s, x):
    if float(x[0]) > 0.5:
        s.h.append(float(x[0]))


def beside_new_objects(s, x):
    v, counts, table = np.zeros(3), [0, 1], {}
    w = x + 1
    for n in range(2):
        v = v * 2
        v[0] = n
    v[0] += x[0]
    w[0] = counts[0] = 0
    table[0] = w.copy()
    u = w.copy()
    u[-1] = 3.0
    s.h.append(float((v[0] + u[0] + table[0][1]) * counts[1]))


def through_a_function(s, x):
    held = the(s.h)
    s.h.append(float(x[0]))
    held[-1] = 2.0


def through_two_names(s, x):
    h = np.zeros(3) if x is None else s.h
    s.h.append(float(x[0]))
    h[-1] = 2.0


def the(container):
    return container


GROWING = {
    "beside new objects": beside_new_objects,
    "a number": lambda s, x: s.h.append(float((x * x).sum())),
    "an array": lambda s, x: s.h.append(x * 2),
    "an argument": lambda s, x: s.h.append(x),
    "a constant": lambda s, x: s.h.append(1),
    "a tuple": lambda s, x: s.h.append((float(x[0]), x * 2)),
    "a dict": lambda s, x: s.h.append({"loss": float(x[0]), "x": x * 2}),
    "a list": lambda s, x: s.h.append([x[0].item()]),
    "many": lambda s, x: s.h.extend([*x.tolist(), 3]),
    "by an operator": adds,
    "in turn": lambda s, x: [s.h.append(float(v)) for v in x],
    "two lists": lambda s, x: (s.h.append(x[0] * 2), s.m["a"].append(x[1].item())),
    "the same twice": lambda s, x: [s.h.append(v) for v in [x * 2] * 2],
    "a captured array": lambda s, x: s.h.append(s.w),
    "a deque": lambda s, x: s.d.append(float(x[0])),
    "a deque, many": lambda s, x: s.d.extend(x.tolist()),
    "by a bound method": lambda s, x: [put(float(x[0])) for put in [s.h.append]],
    "by a helper": lambda s, x: add(s.h, float(x[0])),
    "its last element": last,
    "its last array": last_array,
    "momentum": momentum,
    "sometimes": sometimes,
}
UNCOMPILED = {
    "its length": lambda s, x: s.h.append(len(s.h) * float(x[0])),
    "all of it": lambda s, x: s.h.append(sum(s.h) + float(x[0])),
    "a window": window,
    "in front": lambda s, x: s.h.insert(0, float(x[0])),
    "turned": turned,
    "in order": lambda s, x: (s.h.append(float(x[0])), s.h.sort()),
    "doubled": lambda s, x: (s.h.append(float(x[0])), s.h.__imul__(2), s.h.clear(), s.h.append(float(x[1]))),
    "assigned": assigns,
    "assigned through a function": through_a_function,
    "assigned through two names": through_two_names,
    "assigned by another name": assigns_by_another_name,
    "a slice": lambda s, x: s.h.__setitem__(slice(len(s.h), None), [float(x[0])]),
}


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [type(value).__name__, *map(_plain, value)]
    if isinstance(value, (tj.dlarray, np.ndarray, np.generic)):
        return np.asarray(value).round(12).tolist()
    return (type(value).__name__, round(value, 12)) if isinstance(value, float) else value


def _followed(program, outer=False, **options):
    """Call a program accelerated and plain, and compare all state after each call."""
    fast, plain = State(), State()

    def step(x):
        program(fast, x)
        return x * 2

    accelerated = tj.dlaccelerate(step, audit=False, **options)
    for n in range(12):
        x = np.array([0.25 * n, 1.0 - n])
        program(plain, x.copy())
        found = tj.dlfeval(accelerated, x.copy()) if outer else accelerated(x.copy())
        assert found.tolist() == (x * 2).tolist()
        assert _plain(vars(fast)) == _plain(vars(plain))
    return accelerated


@pytest.mark.sampled
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("program", GROWING.values(), ids=GROWING)
def test_replays_append(program, outer):
    accelerated = _followed(program, outer)
    assert accelerated.stats.hits >= 5 and not accelerated.stats.uncompiled


@pytest.mark.parametrize("options", [{"check_mode": "tolerance"}, {"check_mode": "sample", "check_every": 2}])
@pytest.mark.parametrize("name", ["a number", "an array", "a deque", "its last element"])
def test_checked_replays_append_once(name, options):
    assert _followed(GROWING[name], **options).stats.hits >= 5


@pytest.mark.parametrize("program", UNCOMPILED.values(), ids=UNCOMPILED)
def test_others_run_uncompiled(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        warnings.simplefilter("error", tj.LostChangeWarning)
        _followed(program)


def test_another_list_takes_its_place():
    state = State()
    accelerated = tj.dlaccelerate(lambda x: state.h.append(x.sum().item()) or x, audit=False)
    for kept in ([], [5.0], collections.deque(maxlen=2)):
        state.h = kept
        for n in range(4):
            accelerated(np.array([n + 0.5]))
        assert [*kept][-2:] == [2.5, 3.5]
    assert accelerated.stats.hits >= 8


def test_a_call_that_fails_appends_nothing():
    state = State()

    @tj.dlaccelerate
    def step(x, i):
        state.h.append(float(x[0]))
        return x[i]

    for n in range(4):
        step(np.array([n, 2.0]), np.array([0]))
    with pytest.raises(IndexError):
        step(np.array([9.0, 2.0]), np.array([7]))
    assert state.h == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "reads", ["sum(state.h)", "sum(sum(getattr(state, n)) for n in ('h',))", "len(vars(state))"]
)
def test_a_warning_tells_where_a_list_is_filled_and_read(reads):
    names = {"state": State()}
    lines = ["def step(x):", f"    read = {reads}", "    state.h.append(float(x[0]))", "    return x * read"]
    exec(compile("\n".join(lines), "filled.py", "exec"), names)
    step = tj.dlaccelerate(names["step"])
    text = r"in global state\.h at filled\.py:3\. The list is read at filled\.py:2, so that"
    with pytest.warns(tj.NotAcceleratedWarning, match=text):
        for n in range(6):
            step(np.array([n + 0.5]))


def test_a_warning_tells_that_a_deque_is_followed_once_it_is_full():
    kept = collections.deque(maxlen=5)

    @tj.dlaccelerate
    def step(x):
        kept.append(float(x[0]))
        return x * sum(kept)

    with pytest.warns(tj.NotAcceleratedWarning, match="which a replay follows once it has its 5 elements"):
        for n in range(16):
            step(np.array([n + 0.5]))
    assert step.stats.hits >= 4
