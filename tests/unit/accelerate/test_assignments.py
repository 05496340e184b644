# SPDX-License-Identifier: BSD-3-Clause
"""Assignments to attributes, items and names: the same class or function in NumPy alone, and accelerated."""

import collections
import dataclasses
import types

import numpy as np
import pytest

import tracejit as tj

CASES = {}


def case(make):
    """Note a function that returns a step and a function that returns the state which it changes."""
    CASES[make.__name__] = make
    return make


def plain(value):
    """Return arrays as nested lists, and what holds them as lists and dicts."""
    if isinstance(value, (tj.dlarray, np.ndarray, np.generic)):
        return np.asarray(value).tolist()
    if isinstance(value, (dict, collections.UserDict)):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [plain(part) for part in value]
    return plain(vars(value)) if dataclasses.is_dataclass(value) else value


def assert_close(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert [*found] == [*expected]
        for key in expected:
            assert_close(found[key], expected[key])
    elif isinstance(expected, list):
        for pair in zip(found, expected, strict=True):
            assert_close(*pair)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12)
    else:
        assert found == expected


def follow(make, kind=tj.dlarray, calls=7, most=3, outer=False):
    """Call a step in NumPy and accelerated, and compare what it returns and the state after each call."""
    made = []

    def accelerate(function):
        made.append(tj.dlaccelerate(function))
        return made[-1]

    step, state = make(lambda function: function, lambda data: data)
    fast, fast_state = make(accelerate, kind)
    for n in range(calls):
        x = np.arange(3.0) + n
        expected = plain(step(x.copy()))
        found = tj.dlfeval(lambda x: fast(x) * 1, x.copy()) if outer else fast(x.copy())
        assert_close(plain(found), expected)
        assert_close(plain(fast_state()), plain(state()))
    bound = fast if isinstance(fast, tj.AcceleratedFunction) else made[-1]
    assert bound.stats.hits >= calls - most, bound.explain()


@case
def attr(accelerate, array):
    class S:
        def __init__(self):
            self.u = array(np.zeros(3))

        @accelerate
        def step(self, x):
            self.u = self.u + 0.5 * x
            return self.u.sum()

    s = S()
    return s.step, lambda: s.u


@case
def attr_from_float(accelerate, array):
    class S:
        def __init__(self):
            self.u = 0.0

        @accelerate
        def step(self, x):
            self.u = self.u + 0.5 * x
            return self.u.sum()

    s = S()
    return s.step, lambda: s.u


@case
def item(accelerate, array):
    st = {"u": array(np.ones(3)), "n": 3}

    @accelerate
    def step(x):
        st["u"] = st["u"] * 0.5 + x
        return st["u"] * 2

    return step, lambda: st


@case
def listitem(accelerate, array):
    st = [array(np.ones(3)), 2]

    @accelerate
    def step(x):
        st[0] = st[0] * 0.5 + x
        return st[0] * 2

    return step, lambda: st


@case
def nested(accelerate, array):
    class L:
        pass

    class S:
        pass

    s = S()
    s.layer = L()
    s.layer.w = array(np.ones(3))

    @accelerate
    def step(x):
        s.layer.w = s.layer.w - 0.1 * x
        s.layer.extra = x * 3
        return s.layer.w

    return step, lambda: [s.layer.w, s.layer.extra]


@case
def loop(accelerate, array):
    class L:
        pass

    layers = [L(), L()]
    for layer in layers:
        layer.w = array(np.ones(3))

    @accelerate
    def step(x):
        for layer in layers:
            layer.w = layer.w * 0.5 + x
        return layers[0].w + layers[1].w

    return step, lambda: [layer.w for layer in layers]


@case
def swap(accelerate, array):
    class S:
        pass

    s = S()
    s.prev = array(np.zeros(3))
    s.u = array(np.ones(3))

    @accelerate
    def step(x):
        s.prev, s.u = s.u, 2 * s.u - s.prev + 0.1 * x
        return s.u

    return step, lambda: [s.prev, s.u]


@case
def swap_only(accelerate, array):
    class S:
        pass

    s = S()
    s.a = array(np.zeros(3))
    s.b = array(np.ones(3))

    @accelerate
    def step(x):
        s.a, s.b = s.b, s.a
        return s.a + x

    return step, lambda: [s.a, s.b]


@case
def closure(accelerate, array):
    u = array(np.ones(3))

    @accelerate
    def step(x):
        nonlocal u
        u = u * 0.5 + x
        return u

    return step, lambda: u


@case
def glob(accelerate, array):
    ns = {"np": np, "u": array(np.ones(3))}
    exec("def step(x):\n    global u\n    u = u*0.5 + x\n    return u+1\n", ns)
    return accelerate(ns["step"]), lambda: ns["u"]


@case
def params(accelerate, array):
    class S:
        pass

    s = S()
    s.params = {"w": array(np.ones(3)), "b": [array(np.zeros(3))]}

    @accelerate
    def step(x):
        s.params = {"w": s.params["w"] - 0.1 * x, "b": [s.params["b"][0] + x]}
        return s.params["w"]

    return step, lambda: s.params


@case
def slots(accelerate, array):
    class P:
        __slots__ = ("u",)

    p = P()
    p.u = array(np.ones(3))

    @accelerate
    def step(x):
        p.u = p.u * 0.5 + x
        return p.u

    return step, lambda: p.u


@case
def setattr_(accelerate, array):
    class P:
        pass

    p = P()
    p.u = array(np.ones(3))
    name = "u"

    @accelerate
    def step(x):
        setattr(p, name, getattr(p, name) * 0.5 + x)
        p.__dict__["v"] = x * 2
        return p.u

    return step, lambda: [p.u, p.v]


@case
def classattr(accelerate, array):
    class P:
        u = array(np.ones(3))

    class Q(P):
        pass

    @accelerate
    def step(x):
        Q.u = Q.u * 0.5 + x
        return Q.u

    return step, lambda: [P.u, Q.u]


@case
def classdefault(accelerate, array):
    class P:
        u = array(np.ones(3))

        @accelerate
        def step(self, x):
            self.u = self.u * 0.5 + x
            return self.u

    p = P()
    return p.step, lambda: [P.u, p.u]


@case
def module(accelerate, array):
    m = types.ModuleType("mm")
    m.u = array(np.ones(3))

    @accelerate
    def step(x):
        m.u = m.u * 0.5 + x
        return m.u

    return step, lambda: m.u


@case
def ns(accelerate, array):
    m = types.SimpleNamespace(u=array(np.ones(3)))

    @accelerate
    def step(x):
        m.u = m.u * 0.5 + x
        return m.u

    return step, lambda: m.u


@case
def dataclass(accelerate, array):
    @dataclasses.dataclass
    class St:
        u: object
        n: int

    class S:
        pass

    s = S()
    s.st = St(array(np.ones(3)), 1)

    @accelerate
    def step(x):
        s.st = dataclasses.replace(s.st, u=s.st.u + x)
        return s.st.u

    return step, lambda: s.st


@case
def views(accelerate, array):
    class S:
        pass

    s = S()
    s.y = array(np.ones(3))

    @accelerate
    def step(x):
        s.y = s.y + x
        s.head = s.y[:2]
        s.x = x
        s.x0 = x[:1]
        return s.y

    def state():
        s.head[...] = s.head + 1
        s.x[...] = 7
        return [s.y, s.head, s.x, s.x0]

    return step, state


@case
def deque(accelerate, array):
    d = collections.deque([array(np.ones(3)), array(np.zeros(3))])

    @accelerate
    def step(x):
        d[0] = d[0] + x
        d[1] = d[0] * 2
        return d[1]

    return step, lambda: list(d)


@case
def prop(accelerate, array):
    class S:
        def __init__(self):
            self._u = array(np.zeros(3))

        @property
        def u(self):
            return self._u

        @u.setter
        def u(self, v):
            self._u = v

        @accelerate
        def step(self, x):
            self.u = self.u + x
            return self.u

    s = S()
    return s.step, lambda: s.u


@case
def helper(accelerate, array):
    class S:
        def __init__(self):
            self.u = array(np.zeros(3))

    s = S()

    def upd(o, x):
        o.u = o.u + x

    @accelerate
    def step(x):
        upd(s, x)
        upd(s, 2 * x)
        return s.u * 1

    return step, lambda: s.u


@case
def writeonly(accelerate, array):
    class S:
        pass

    s = S()

    @accelerate
    def step(x):
        s.last = x.sum()
        return x * 2

    return step, lambda: s.last


@case
def reset(accelerate, array):
    class S:
        def __init__(self):
            self.u = None

    s = S()

    @accelerate
    def step(x):
        if s.u is None:
            s.u = x * 0
        s.u = s.u + x
        return s.u

    return step, lambda: s.u


@case
def inplace_then(accelerate, array):
    class S:
        def __init__(self):
            self.u = array(np.zeros(3))
            self.v = array(np.ones(3))

    s = S()

    @accelerate
    def step(x):
        s.u += x
        s.v = s.u * 2
        s.best = s.u
        return s.v

    def st():
        assert s.best is s.u
        return [s.u, s.v]

    return step, st


@case
def userdict(accelerate, array):
    d = collections.UserDict(u=array(np.ones(3)))

    @accelerate
    def step(x):
        d["u"] = d["u"] + x
        return d["u"]

    return step, lambda: d["u"]


@pytest.mark.parametrize("name", [*CASES])
def test_dlarrays(name):
    follow(CASES[name])


@pytest.mark.parametrize("name", sorted({*CASES} - {"views", "swap_only", "inplace_then"}))
def test_ndarrays_become_dlarrays(name):
    """The first call finds ndarrays, later calls the dlarrays that it left; nothing is retraced after that."""
    follow(CASES[name], kind=lambda data: data, most=4)


@pytest.mark.parametrize("name", [*CASES])
def test_inside_an_evaluation(name):
    follow(CASES[name], outer=True)


@pytest.mark.parametrize("name", [*CASES])
def test_checked(name):
    def checked(function):
        return tj.dlaccelerate(function, check_mode="tolerance")

    step, state = CASES[name](lambda function: function, lambda data: data)
    fast, fast_state = CASES[name](checked, tj.dlarray)
    for n in range(6):
        x = np.arange(3.0) + n
        assert_close(plain(fast(x.copy())), plain(step(x.copy())))
        assert_close(plain(fast_state()), plain(state()))


@pytest.mark.parametrize("name", [*CASES])
def test_uncompiled(name):
    step, state = CASES[name](lambda function: function, lambda data: data)
    fast, fast_state = CASES[name](lambda function: tj.dlaccelerate(function, enabled=False), tj.dlarray)
    for n in range(4):
        x = np.arange(3.0) + n
        assert_close(plain(fast(x.copy())), plain(step(x.copy())))
        assert_close(plain(fast_state()), plain(state()))


class Model:
    def __init__(self, **attributes):
        vars(self).update(attributes)


X = np.array([0.5, -1.5, 2.0])


class TestErrors:
    def test_an_error_leaves_the_object_as_it_was(self):
        model = Model(u=tj.dlarray(np.zeros(3)), items={"v": 1.0}, rows=[tj.dlarray(X)])
        before = dict(vars(model)), dict(model.items), [*model.rows]

        def step(x):
            model.u = model.u + x
            model.new = x * 2
            model.items["v"] = x
            model.items["w"] = x
            model.rows[0] = model.u
            raise ValueError("stop")

        fast = tj.dlaccelerate(step)
        for _ in range(3):
            with pytest.raises(ValueError, match="stop"):
                fast(X)
            after = dict(vars(model)), dict(model.items), [*model.rows]
            assert [[*part] for part in after] == [[*part] for part in before]
            assert all(a is b for a, b in zip(after[0].values(), before[0].values(), strict=True))
            assert model.rows[0] is before[2][0]

    def test_an_error_after_replays(self):
        model = Model(u=tj.dlarray(np.zeros(3)))

        @tj.dlaccelerate
        def step(x):
            model.u = model.u + x
            if model.u.sum() > 4.0:
                raise ValueError("stop")
            return model.u

        for _ in range(4):
            step(X)
        u = model.u
        with pytest.raises(ValueError, match="stop"):
            step(X)
        assert model.u is u and u.tolist() == (4 * X).tolist()

    def test_an_object_that_no_replay_can_make(self):
        model = Model(inner=None)

        @tj.dlaccelerate
        def step(x):
            model.inner = Model(u=x * 2)
            return x + 1

        with pytest.warns(
            tj.NotAcceleratedWarning, match="an object that holds arrays of the call to closure model.inner"
        ):
            for n in range(4):
                step(X + n)
                assert model.inner.u.tolist() == (2 * (X + n)).tolist()

    def test_assigned_in_one_of_two_calls(self):
        model, turns = Model(u=tj.dlarray(X)), iter([1, 0] * 10)

        @tj.dlaccelerate
        def step(x):
            if next(turns):
                model.u = x * 2
            return x * 2

        with pytest.warns(tj.NotAcceleratedWarning):
            for n in range(6):
                before = model.u
                step(X + n)
                assert (model.u.tolist() == (2 * (X + n)).tolist()) if n % 2 == 0 else model.u is before


def test_numbers_that_vary():
    model = Model(rate=1.0, history=[])

    @tj.dlaccelerate
    def step(x, rate):
        model.rate = rate * 0.5
        return x * rate

    for n in range(8):
        step(X, 1.0 + n / 8)
        assert type(model.rate) is float and model.rate == (1.0 + n / 8) * 0.5
    assert step.stats.hits > 0


def test_two_keys_of_one_object():
    model = Model(u=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x, scale):
        model.u = model.u * scale + x.sum()
        return model.u

    expected = np.zeros(3)
    for n in range(12):
        x = np.ones(2 + n % 2)
        expected = expected * (1 + n % 2) + x.sum()
        assert step(x, 1 + n % 2).tolist() == expected.tolist() == model.u.tolist()
    assert step.stats.hits == 8


def test_shapes_that_take_turns():
    """What other traces of a key need is compared with the state before the call."""
    model = Model(a=tj.dlarray(np.zeros(2)), b=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x):
        model.a, model.b = model.b + x, model.a * 2 + x
        return model.a.sum()

    a, b = np.zeros(2), np.zeros(3)
    for n in range(10):
        a, b = b + n, a * 2 + n
        assert step(np.array([float(n)])).item() == a.sum()
        assert model.b.tolist() == b.tolist()
    assert step.stats.hits >= 5


def test_the_other_method_sees_it():
    class Sim:
        def __init__(self):
            self.u = tj.dlarray(np.zeros(3))

        @tj.dlaccelerate
        def step(self, x):
            self.u = self.u + x
            return self.u.sum()

        @tj.dlaccelerate
        def energy(self):
            return (self.u**2).sum()

    sim = Sim()
    for n in range(1, 7):
        assert sim.step(X).item() == pytest.approx(n * X.sum())
        assert sim.energy().item() == pytest.approx(((n * X) ** 2).sum())
    assert sim.step.stats.hits == sim.energy.stats.hits == 4


def test_results_do_not_share_memory_with_what_is_stored():
    model = Model(u=tj.dlarray(np.zeros(3)))

    @tj.dlaccelerate
    def step(x):
        model.u = model.u + x
        return model.u

    kept = []
    for n in range(1, 7):
        kept.append(step(X))
        assert model.u.tolist() == (n * X).tolist()
    assert [array.tolist() for array in kept] == [(n * X).tolist() for n in range(1, 7)]


def test_what_is_assigned_has_the_labels_of_the_array():
    model = Model(u=None)

    @tj.dlaccelerate
    def step(x):
        model.u = x * 2
        return x

    for _ in range(4):
        step(tj.dlarray(X, "B"))
        assert model.u.format == "B"


def test_a_container_that_holds_one_array_twice():
    model = Model(pair=None)

    @tj.dlaccelerate
    def step(x):
        u = x * 2
        model.pair = (u, [u, 1, "a"], None)
        return x

    for n in range(5):
        step(X + n)
        first, (second, *rest), none = model.pair
        assert (
            first is second and first.tolist() == (2 * (X + n)).tolist() and rest == [1, "a"] and none is None
        )


def test_in_a_function_that_is_accelerated_inside():
    model = Model(u=tj.dlarray(np.zeros(3)))
    inner = tj.dlaccelerate(lambda x: setattr(model, "u", model.u + x))

    @tj.dlaccelerate
    def outer(x):
        inner(x)
        inner(2 * x)
        return model.u * 2

    for n in range(1, 6):
        assert outer(X).tolist() == (6 * n * X).tolist()
        assert model.u.tolist() == (3 * n * X).tolist()
    assert outer.stats.hits == 3


def test_gradients_within_an_evaluation():
    """What a replay stores is on the tape of the evaluation around it."""
    model = Model(u=tj.dlarray(X))
    inner = tj.dlaccelerate(lambda x: setattr(model, "u", model.u * x))

    def loss(x):
        model.u = tj.dlarray(X)
        inner(x)
        inner(x)
        return tj.dlgradient(model.u.sum(), x)

    for n in range(5):
        np.testing.assert_allclose(tj.extractdata(tj.dlfeval(loss, X + n)), 2 * X * (X + n))
    assert inner.stats.hits > 0
    assert model.u.tolist() == (X * (X + 4) ** 2).tolist()
