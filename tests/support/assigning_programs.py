# SPDX-License-Identifier: BSD-3-Clause
"""Programs that assign to attributes, items and names: the same class or function in NumPy alone, and accelerated."""

import argparse
import collections
import dataclasses
import re
import threading
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


def _constant_in(owner):
    """Return a program that assigns a constant to an object that the standard library has made."""

    def make(accelerate, array):
        @accelerate
        def step(x):
            owner.size, owner.flag, owner.grid = x.shape[0], True, np.arange(4).reshape(2, 2)
            return x * owner.size

        def state():
            found = [owner.size, owner.flag, owner.grid]
            owner.size = owner.flag = owner.grid = None
            return found

        return step, state

    return make


class Local(threading.local):
    """What each thread has for itself."""


for _kind in (types.SimpleNamespace, argparse.Namespace, threading.local, Local):
    CASES[f"constant in {_kind.__name__}"] = lambda accelerate, array, kind=_kind: _constant_in(kind())(
        accelerate, array
    )


@case
def row_by_a_computed_number(accelerate, array):
    s = types.SimpleNamespace(best=array(np.eye(3)), row=None, of_argument=None, rows=None)

    @accelerate
    def step(x):
        s.best = s.best * 0.5 + np.sin(x)[:, None] * np.cos(x)
        s.row = s.best[s.best[:, 0].argmin()]
        s.rows = {"column": s.best[:, s.best[0].argmax()], "part": s.best[s.best[:, 1].argmax(), 1:]}
        s.of_argument = x.reshape(3, 1)[np.sin(x).argmax()]
        s.row += 0.25
        return s.row.sum() + s.of_argument[0]

    return step, lambda: [s.best, s.row, s.rows, s.of_argument]


@case
def views_that_go_by_no_op(accelerate, array):
    s = types.SimpleNamespace(matrix=array(np.eye(3)), kept=None, complex=array(np.zeros(3, complex)))

    @accelerate
    def step(x):
        s.matrix = s.matrix * 0.5 + np.sin(x)[:, None] * np.cos(x)
        windows = np.lib.stride_tricks.sliding_window_view(x, 2)
        s.complex = s.complex * 0.5 + 1j * x
        s.kept = [
            np.diagonal(s.matrix),
            windows,
            np.diag(x.reshape(1, 3) * np.ones((3, 1))),
            x.view(np.int64),
        ]
        s.kept += [s.complex.real, s.complex.imag, s.complex.view(np.float64)]
        return s.kept[0].sum() + windows[0].sum()

    return step, lambda: [s.matrix, s.complex.real, s.complex.imag, s.kept]


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


@case
def setattr_override(accelerate, array):
    class S:
        def __init__(self):
            object.__setattr__(self, "store", {})
            self.u = array(np.zeros(3))

        def __setattr__(self, k, v):
            self.store[k] = v

        def __getattr__(self, k):
            try:
                return object.__getattribute__(self, "store")[k]
            except KeyError:
                raise AttributeError(k) from None

    s = S()

    @accelerate
    def step(x):
        s.u = s.u * 0.5 + x
        return s.u.sum()

    return step, lambda: s.u


@case
def frozen(accelerate, array):
    @dataclasses.dataclass(frozen=True)
    class F:
        u: object

    f = F(array(np.zeros(3)))

    @accelerate
    def step(x):
        object.__setattr__(f, "u", f.u + x)
        return f.u

    return step, lambda: f.u


@case
def temp(accelerate, array):
    class S:
        pass

    s = S()
    s.u = array(np.zeros(3))

    @accelerate
    def step(x):
        s.tmp = x * 2
        s.u = s.u + s.tmp
        del s.tmp
        return s.u

    return step, lambda: [s.u, hasattr(s, "tmp")]


@case
def layers(accelerate, array):
    class Layer:
        def __init__(self):
            self.h = array(np.zeros(3))

        def __call__(self, x):
            self.h = 0.9 * self.h + 0.1 * x
            return self.h * 2

    class Net:
        def __init__(self):
            self.layers = [Layer() for _ in range(3)]

        @accelerate
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    n = Net()
    return n.forward, lambda: [layer.h for layer in n.layers]


@case
def ring(accelerate, array):
    class R:
        def __init__(self):
            self.buf = [array(np.zeros(3)) for _ in range(4)]
            self.i = 0

        @accelerate
        def push(self, x):
            self.buf = [x * 1.0, *self.buf[:-1]]
            return self.buf[0] + self.buf[3]

    r = R()
    return r.push, lambda: r.buf


@case
def momentum(accelerate, array):
    class M:
        def __init__(self):
            self.p = {"w": array(np.ones(3)), "b": array(np.zeros(3))}
            self.v = {k: array(np.zeros(3)) for k in self.p}

        @accelerate
        def step(self, x):
            for k in self.p:
                self.v[k] = 0.9 * self.v[k] - 0.1 * x
                self.p[k] = self.p[k] + self.v[k]
            return self.p["w"].sum()

    m = M()
    return m.step, lambda: [m.p, m.v]


@case
def counter(accelerate, array):
    class M:
        def __init__(self):
            self.u = array(np.zeros(3))
            self.t = array(np.array(0.0))

        @accelerate
        def step(self, x):
            self.t = self.t + 1.0
            self.u = self.u + x / self.t
            return self.u

    m = M()
    return m.step, lambda: [m.u, m.t]


@case
def best(accelerate, array):
    class M:
        def __init__(self):
            self.best = array(np.array(1e9))
            self.w = array(np.zeros(3))

        @accelerate
        def step(self, x):
            loss = ((x - 3) ** 2).sum()
            if loss < self.best:
                self.best = loss
                self.w = x * 1.0
            return loss

    m = M()
    return m.step, lambda: [m.best, m.w]


@case
def inherit(accelerate, array):
    class A:
        def __init__(self):
            self.u = array(np.zeros(3))

        def upd(self, x):
            self.u = self.u + x

    class B(A):
        def upd(self, x):
            super().upd(x)
            self.w = self.u * 2

        @accelerate
        def step(self, x):
            self.upd(x)
            return self.w

    b = B()
    return b.step, lambda: [b.u, b.w]


@case
def generator(accelerate, array):
    class M:
        def __init__(self):
            self.u = array(np.zeros(3))

    m = M()

    @accelerate
    def step(x):
        def inner():
            for k in range(2):
                m.u = m.u + k * x
                yield m.u

        return sum(v.sum() for v in inner())

    return step, lambda: m.u


@case
def matrix(accelerate, array):
    class K:
        def __init__(self):
            self.P = array(np.eye(3))
            self.x = array(np.zeros(3))

        @accelerate
        def step(self, z):
            self.P = self.P + 0.1 * np.eye(3)
            k = self.P @ np.ones(3) * 0.1
            self.x = self.x + k * (z - self.x)
            self.P = self.P - np.outer(k, np.ones(3)) @ self.P * 0.01
            return self.x

    k = K()
    return k.step, lambda: [k.P, k.x]


# Places, as source: what makes the objects, the place itself, another one beside it, and a declaration.
PLACES = {
    "attribute": ("m = Model(u=A, v=B)", "m.u", "m.v", ""),
    "attribute of an attribute": ("m = Model(inner=Model(u=A, v=B))", "m.inner.u", "m.inner.v", ""),
    "attribute of a class": ("class K:\n    u, v = A, B", "K.u", "K.v", ""),
    "attribute of a module": ("m = types.ModuleType('m'); m.u, m.v = A, B", "m.u", "m.v", ""),
    "attribute of a function": ("def m(): pass\nm.u, m.v = A, B", "m.u", "m.v", ""),
    "slot": ("m = Slots(); m.u, m.v = A, B", "m.u", "m.v", ""),
    "item of a dict": ("d = {'u': A, 'v': B}", "d['u']", "d['v']", ""),
    "item of an ordered dict": ("d = collections.OrderedDict(u=A, v=B)", "d['u']", "d['v']", ""),
    "item of a defaultdict": ("d = collections.defaultdict(int, {1: A, 2: B})", "d[1]", "d[2]", ""),
    "item of a list": ("rows = [None, A, B]", "rows[1]", "rows[-1]", ""),
    "item of a deque": ("rows = collections.deque([A, B])", "rows[0]", "rows[1]", ""),
    "item of an attribute": ("m = Model(rows=[{'u': A}, B])", "m.rows[0]['u']", "m.rows[1]", ""),
    "attribute of an item": ("d = {'m': [Model(u=A, v=B)]}", "d['m'][0].u", "d['m'][0].v", ""),
    "item of a UserDict": ("d = collections.UserDict(u=A, v=B)", "d['u']", "d['v']", ""),
    "global": ("u, v = A, B", "u", "v", "global u, v"),
    "attribute of an untracked object": (
        "ms = [Model(u=A, v=B)]\ndef first(): return ms[0]",
        "first().u",
        "first().v",
        "",
    ),
    "attribute by name": ("m = Model(u=A, v=B)\nname = 'u'", "GET(m, name)", "m.v", ""),
}
STATEMENTS = {
    "read and assigned": "P = P * 0.5 + x",
    "assigned only": "P = x * 2",
    "read after it is assigned": "P = x * 2\nP = P + 1",
    "assigned twice": "P = P * 0.5\nP = P + x",
    "kept in a variable": "t = P\nP = t * t * 0.1 - x",
    "swapped": "P, Q = Q, P * 0.5 + x",
    "only swapped": "P, Q = Q, P",
    "both": "P = P * 0.5 + x\nQ = P * 2",
    "in a branch": "if x[0] > 2:\n    P = P * 0.5 + x\nelse:\n    P = P * 0.5 - x",
    "in a loop": "for k in range(3):\n    P = P * 0.5 + k * x",
    "by a helper": "P = helper(P, x)\nQ = helper(x, P)",
    "a view": "Q = P * 0.5 + x\nP = Q[::-1]",
    "the argument": "Q = P * 0.5\nP = x",
    "a reduction": "P = P * 0.5 + x.sum()",
    "in a tuple": "P = P * 0.5 + x\nQ = (P, [P * 2, 1.5], {'n': None})",
}
VALUES = {
    "array": "kind(np.array([1.0, -2.0, 0.5]))",
    "number": "0.75",
    "NumPy's number": "np.float64(0.75)",
    "ndarray": "np.array([1.0, -2.0, 0.5])",
}


class Model:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Slots:
    __slots__ = ("u", "v")


def generated(place, statement, value):
    """Return a function like those in CASES for a place, a statement and the kind of value that is there first."""
    setup, first, second, declaration = PLACES[place]
    body = STATEMENTS[statement].replace("P", first).replace("Q", second)
    if "GET" in body:
        body = re.sub(r"^( *)GET\(m, name\)(, m\.v)? = (.*)$", _by_name, body, flags=re.MULTILINE)
        body = body.replace("GET", "getattr")
    result = first.replace("GET", "getattr")
    lines = [declaration, *body.split("\n"), f"return total({result}) + x.sum()"]
    step = "def step(x):\n" + "".join(f"    {line}\n" for line in lines if line)
    state = f"def state():\n    return [{result}, {second}]\n"
    value = VALUES[value]

    def make(accelerate, kind):
        names = {
            "np": np, "types": types, "collections": collections, "Model": Model, "Slots": Slots, "kind": kind,
            "helper": lambda a, b: a * 0.5 + b, "total": lambda value: value if type(value) is float else value.sum(),
        }  # fmt: skip
        filled = re.sub(r"\b([AB])\b", value, setup)
        exec(compile(f"{filled}\n{step}{state}", f"<{place}, {statement}>", "exec"), names)
        return accelerate(names["step"]), names["state"]

    return make


def _by_name(match):
    """Return an assignment to an attribute whose name is computed."""
    space, beside, value = match.groups()
    if beside is None:
        return f"{space}setattr(m, name, {value})"
    return f"{space}pair = ({value})\n{space}setattr(m, name, pair[0]); m.v = pair[1]"
