# SPDX-License-Identifier: BSD-3-Clause
"""Classes as users of NumPy write them, whose state lies in ndarrays: in attributes, containers and other objects.

Each has the statements of its constructor, those of a method of x (an array of 4 numbers from 0 to 1), other methods,
and the code before the class.
"""

import linecache
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

_DIFFUSED = """
s.un[1:-1, 1:-1] = (
    s.u[1:-1, 1:-1]
    + 0.1
    * (s.u[2:, 1:-1] + s.u[:-2, 1:-1] + s.u[1:-1, 2:] + s.u[1:-1, :-2] - 4 * s.u[1:-1, 1:-1])
    + x[0]
)
"""

PROGRAMS: dict[str, tuple[str, ...]] = {
    "zip": (
        """
s.ps = [np.zeros(4), np.ones(4)]
s.ms = [np.zeros(4), np.zeros(4)]
""",
        """
for p, m in zip(s.ps, s.ms):
    m *= 0.9
    m += x
    p -= 0.1 * m
return s.ps[0].sum()
""",
    ),
    "enumerate": (
        "s.w = np.zeros(4)",
        """
s.w += x
t = 0.0
for i, v in enumerate(s.w):
    t = t + i * v
return t
""",
    ),
    "zeros_like": (
        "s.w = np.zeros(4)",
        """
g = np.zeros_like(s.w)
g[1:] = x[1:]
s.w -= g
return s.w.sum()
""",
    ),
    "isinstance": (
        "s.w = np.zeros(4)",
        """
if isinstance(s.w, np.ndarray):
    s.w += x
return s.w.sum()
""",
    ),
    "asarray": (
        "s.w = np.zeros(4)",
        """
w = np.asarray(s.w)
w += x
return s.w.sum()
""",
    ),
    "asarray of what was written": (
        "s.w = np.zeros(4)",
        """
s.w += x
return np.asarray(s.w).sum()
""",
    ),
    "dot": (
        "s.w = np.zeros(4)",
        """
s.w += x
return s.w.dot(x)
""",
    ),
    "result_type": (
        "s.w = np.zeros(4)",
        """
s.w += x.astype(np.result_type(s.w, np.float32))
return s.w.sum()
""",
    ),
    "broadcast_to": (
        "s.w = np.zeros(4)",
        """
s.w += x
return np.broadcast_to(s.w, (2, 4)).sum(0)
""",
    ),
    "property": (
        "s._w = np.zeros(4)",
        """
s.w[:] = s.w * 0.5 + x
return s.w.sum()
""",
        """
@property
def w(s):
    return s._w
""",
    ),
    "property setter": (
        "s._w = np.zeros(4)",
        """
s.w += x
return s.w.sum()
""",
        """
@property
def w(s):
    return s._w


@w.setter
def w(s, v):
    s._w = v
""",
    ),
    "swap": (
        """
s.u = np.zeros(4)
s.v = np.ones(4)
""",
        """
s.v[1:] = s.u[:-1] * 0.5 + x[1:]
s.u, s.v = s.v, s.u
return s.u.sum()
""",
    ),
    "kalman": (
        """
s.P = np.eye(2)
s.F = np.array([[1, 0.1], [0, 1]])
s.Q = np.eye(2) * 0.01
s.x = np.zeros(2)
""",
        """
s.x = s.F @ s.x
s.P = s.F @ s.P @ s.F.T + s.Q
S = s.P[0, 0] + 0.1
K = s.P[:, 0] / S
s.x = s.x + K * (x[0] - s.x[0])
s.P = s.P - np.outer(K, s.P[0])
return s.x
""",
    ),
    "kalman predict only": (
        """
s.P = np.eye(2)
s.F = np.array([[1, 0.1], [0, 1]])
s.Q = np.eye(2) * 0.01
s.x = np.zeros(2)
""",
        """
s.P = s.F @ s.P @ s.F.T + s.Q
return x * 2
""",
    ),
    "dict of arrays": (
        """
s.p = {"a": np.zeros(4), "b": np.ones(4)}
""",
        """
for k in s.p:
    s.p[k] -= 0.1 * x
return s.p["a"].sum()
""",
    ),
    "dict items": (
        """
s.p = {"a": np.zeros(4), "b": np.ones(4)}
s.g = {"a": np.zeros(4), "b": np.zeros(4)}
""",
        """
for k, v in s.p.items():
    s.g[k] = 0.9 * s.g[k] + x
    v -= 0.1 * s.g[k]
return s.p["a"].sum()
""",
    ),
    "dict items in place": (
        """
s.p = {"a": np.zeros(4), "b": np.ones(4)}
s.g = {"a": np.zeros(4), "b": np.zeros(4)}
""",
        """
for k, v in s.p.items():
    s.g[k] *= 0.9
    s.g[k] += x
    v -= 0.1 * s.g[k]
return s.p["a"].sum()
""",
    ),
    "dict values zip": (
        """
s.p = {"a": np.zeros(4), "b": np.ones(4)}
s.g = {"a": np.zeros(4), "b": np.zeros(4)}
""",
        """
for p, g in zip(s.p.values(), s.g.values()):
    g[...] = 0.9 * g + x
    p -= 0.1 * g
return s.p["a"].sum()
""",
    ),
    "comprehension rebuild": (
        "s.ps = [np.zeros(4), np.ones(4)]",
        """
s.ps = [p - 0.1 * x for p in s.ps]
return s.ps[0].sum()
""",
    ),
    "layers objects": (
        "s.ls = [L(), L()]",
        """
for l in s.ls:
    l.w -= 0.1 * x
return s.ls[0].w.sum()
""",
        "",
        """
class L:
    def __init__(s):
        s.w = np.zeros(4)
""",
    ),
    "layer method": (
        "s.ls = [L(), L()]",
        """
for l in s.ls:
    l.update(x)
return s.ls[0].w.sum()
""",
        "",
        """
class L:
    def __init__(s):
        s.w = np.zeros(4)
        s.m = np.zeros(4)

    def update(s, g):
        s.m[:] = 0.9 * s.m + g
        s.w -= 0.1 * s.m
""",
    ),
    "getattr in a loop": (
        """
s.a = np.zeros(4)
s.b = np.zeros(4)
""",
        """
for n in ("a", "b"):
    getattr(s, n)[:] += x
return s.a.sum()
""",
    ),
    "setattr in a loop": (
        """
s.a = np.zeros(4)
s.b = np.zeros(4)
""",
        """
for n in ("a", "b"):
    setattr(s, n, getattr(s, n) + x)
return s.a.sum()
""",
    ),
    "ring buffer": (
        """
s.buf = np.zeros((5, 4))
s.i = 0
""",
        """
s.buf[s.i] = x
s.i = (s.i + 1) % 5
return s.buf.mean(0)
""",
    ),
    "roll": (
        "s.buf = np.zeros(5)",
        """
s.buf = np.roll(s.buf, 1)
s.buf[0] = x[0]
return s.buf.mean()
""",
    ),
    "roll inplace": (
        "s.buf = np.zeros(5)",
        """
s.buf[:-1] = s.buf[1:]
s.buf[-1] = x[0]
return s.buf.mean()
""",
    ),
    "running stats": (
        """
s.n = 0
s.mean = np.zeros(4)
s.M2 = np.zeros(4)
""",
        """
s.n += 1
d = x - s.mean
s.mean += d / s.n
s.M2 += d * (x - s.mean)
return s.M2 / max(s.n - 1, 1)
""",
    ),
    "stencil": (
        """
s.u = np.zeros((6, 6))
s.un = np.zeros((6, 6))
""",
        _DIFFUSED
        + """
s.u[:] = s.un
return s.u.sum()
""",
    ),
    "stencil swap": (
        """
s.u = np.zeros((6, 6))
s.un = np.zeros((6, 6))
""",
        _DIFFUSED
        + """
s.u, s.un = s.un, s.u
return s.u.sum()
""",
    ),
    "leapfrog": (
        """
s.u = np.zeros(6)
s.up = np.zeros(6)
""",
        """
new = 2 * s.u - s.up
new[1:-1] += 0.1 * (s.u[2:] - 2 * s.u[1:-1] + s.u[:-2]) + x[0]
s.up = s.u
s.u = new
return s.u.sum()
""",
    ),
    "copy": (
        "s.u = np.zeros(6)",
        """
old = s.u.copy()
s.u[1:-1] += 0.1 * (old[2:] - 2 * old[1:-1] + old[:-2]) + x[0]
return abs(s.u - old).max()
""",
    ),
    "np.copy": (
        "s.u = np.zeros(6)",
        """
old = np.copy(s.u)
s.u[1:-1] += 0.1 * (old[2:] - 2 * old[1:-1] + old[:-2]) + x[0]
return abs(s.u - old).max()
""",
    ),
    "print shape": (
        "s.u = np.zeros(4)",
        """
assert s.u.shape == x.shape and s.u.ndim == 1
s.u += x
return s.u.sum()
""",
    ),
    "a loop over elements": (
        "s.u = np.zeros(4)",
        """
for i in range(len(s.u)):
    s.u[i] += x[i] * i
return s.u.sum()
""",
    ),
    "max of list": (
        "s.u = np.zeros(4)",
        """
s.u += x
return max(s.u)
""",
    ),
    "sum builtin": (
        "s.u = np.zeros(4)",
        """
s.u += x
return sum(s.u)
""",
    ),
    "elements unpacked": (
        "s.u = np.zeros(4)",
        """
s.u += x
a, b, c, d = s.u
return a * b - c * d
""",
    ),
    "unpack": (
        "s.st = np.zeros(4)",
        """
a, b, c, d = s.st
s.st += 0.1 * np.array([b, x[0] - a, d, x[1] - c])
return s.st
""",
    ),
    "unpacked, then replaced": (
        "s.st = np.zeros(4)",
        """
a, b, c, d = s.st
s.st = s.st + 0.1 * np.array([b, x[0] - a, d, x[1] - c])
return s.st
""",
    ),
    "clip own": (
        "s.st = np.zeros(4)",
        """
s.st += x
s.st = np.clip(s.st, -1, 1)
return s.st
""",
    ),
    "linalg": (
        """
s.A = np.eye(4)
s.b = np.zeros(4)
""",
        """
s.A += np.outer(x, x)
s.b += x
return np.linalg.solve(s.A, s.b)
""",
    ),
    "a counter that decides": (
        """
s.n = 0
s.w = np.zeros(4)
""",
        """
s.n += 1
s.w += x
if s.n % 3 == 0:
    s.w *= 0.5
return s.w.sum()
""",
    ),
    "dataclass": (
        "s.c = C(np.zeros(4), np.zeros(4), 0)",
        """
s.c.a += x
s.c.b[:] = s.c.a * 2
s.c.n += 1
return s.c.b / s.c.n
""",
        "",
        """
import dataclasses


@dataclasses.dataclass
class C:
    a: np.ndarray
    b: np.ndarray
    n: int
""",
    ),
    "slots": (
        "s.c = C()",
        """
s.c.a += x
return s.c.a.sum()
""",
        "",
        """
class C:
    __slots__ = ("a",)

    def __init__(s):
        s.a = np.zeros(4)
""",
    ),
    "namedtuple state": (
        "s.c = C(np.zeros(4), np.zeros(4))",
        """
s.c.a[:] += x
s.c = s.c._replace(b=s.c.a * 2)
return s.c.b.sum()
""",
        "",
        """
import collections

C = collections.namedtuple("C", "a b")
""",
    ),
    "tuple of arrays": (
        "s.c = (np.zeros(4), np.zeros(4))",
        """
a, b = s.c
a += x
b -= a
return b.sum()
""",
    ),
    "nested list": (
        "s.W = [[np.zeros(4), np.zeros(2)], [np.zeros(4)]]",
        """
for row in s.W:
    for w in row:
        w += x[: w.size]
return s.W[0][1].sum()
""",
    ),
    "list index": (
        "s.W = [np.zeros(4), np.zeros(4)]",
        """
for i in range(len(s.W)):
    s.W[i] -= 0.1 * x
return s.W[0].sum()
""",
    ),
    "map": (
        "s.W = [np.zeros(4), np.zeros(4)]",
        """
s.W = list(map(lambda w: w * 0.9 + x, s.W))
return s.W[0].sum()
""",
    ),
    "adam": (
        """
s.t = 0
s.w = np.zeros(4)
s.m = np.zeros(4)
s.v = np.zeros(4)
""",
        """
s.t += 1
s.m = 0.9 * s.m + 0.1 * x
s.v = 0.999 * s.v + 0.001 * x**2
mh = s.m / (1 - 0.9**s.t)
vh = s.v / (1 - 0.999**s.t)
s.w -= 0.01 * mh / (np.sqrt(vh) + 1e-8)
return s.w.sum()
""",
    ),
    "global arr": (
        "pass",
        """
global W
W += x
return W.sum()
""",
        "",
        "W = np.zeros(4)",
    ),
    "setitem dict": (
        """
s.d = {}
s.w = np.zeros(4)
""",
        """
s.w += x
s.d["last"] = s.w.copy()
return s.w.sum()
""",
    ),
    "w.T": (
        "s.W = np.zeros((4, 4))",
        """
s.W += np.outer(x, x)
return s.W.T @ x
""",
    ),
    "flatten": (
        "s.W = np.zeros((2, 2))",
        """
s.W += x.reshape(2, 2)
return s.W.flatten() * 2
""",
    ),
    "ravel write": (
        "s.W = np.zeros((2, 2))",
        """
s.W.ravel()[:] += x
return s.W.sum()
""",
    ),
    "shape tuple": (
        "s.W = np.zeros((2, 2))",
        """
n, m = s.W.shape
s.W += x.reshape(n, m)
return s.W.sum()
""",
    ),
    "np.where": (
        "s.w = np.zeros(4)",
        """
s.w[:] = np.where(s.w > 1, 0, s.w + x)
return s.w.sum()
""",
    ),
    "bool mask state": (
        """
s.alive = np.ones(4, bool)
s.w = np.zeros(4)
""",
        """
s.w += x
s.alive &= s.w < 3
return s.alive.sum()
""",
    ),
    "mask write": (
        "s.w = np.zeros(4)",
        """
s.w += x
s.w[s.w > 2] = 0
return s.w.sum()
""",
    ),
    "argmax write": (
        "s.w = np.zeros(4)",
        """
s.w[np.argmax(x)] += 1
return s.w.sum()
""",
    ),
    "a method that returns self": (
        "s.w = np.zeros(4)",
        "return s.up(x).w.sum()",
        """
def up(s, g):
    s.w -= g
    return s
""",
    ),
    "ema params": (
        """
s.w = [np.zeros(4), np.zeros(2)]
s.e = [np.zeros(4), np.zeros(2)]
""",
        """
for w, e in zip(s.w, s.e):
    w -= 0.1 * x[: w.size]
    e *= 0.99
    e += 0.01 * w
return s.e[0].sum()
""",
    ),
    "enumerate list": (
        """
s.w = [np.zeros(4), np.zeros(2)]
s.e = [np.zeros(4), np.zeros(2)]
""",
        """
for i, w in enumerate(s.w):
    s.e[i] = 0.9 * s.e[i] + x[: w.size]
    s.w[i] = w - 0.1 * s.e[i]
return s.e[0].sum()
""",
    ),
    "reversed": (
        "s.w = [np.zeros(4), np.zeros(4)]",
        """
h = x
for w in reversed(s.w):
    w += h
    h = np.tanh(w)
return h.sum()
""",
    ),
    "sorted keys": (
        """
s.p = {"a": np.zeros(4), "b": np.ones(4)}
""",
        """
for k in sorted(s.p):
    s.p[k] += x
return s.p["a"].sum()
""",
    ),
    "norm clip": (
        "s.g = [np.zeros(4), np.zeros(4)]",
        """
for g in s.g:
    g += x
n = np.sqrt(sum((g**2).sum() for g in s.g))
if n > 2:
    for g in s.g:
        g *= 2 / n
return n
""",
    ),
    "concatenate": (
        "s.g = [np.zeros(4), np.zeros(4)]",
        """
for g in s.g:
    g += x
return np.concatenate([g.ravel() for g in s.g]).sum()
""",
    ),
    "fill": (
        "s.g = np.zeros(4)",
        """
s.g.fill(0)
s.g += x
return s.g.sum()
""",
    ),
    "set to zero": (
        "s.g = np.zeros(4)",
        """
s.g[:] = 0
s.g += x
return s.g.sum()
""",
    ),
    "np.add out": (
        """
s.g = np.zeros(4)
s.tmp = np.zeros(4)
""",
        """
np.multiply(x, 2, out=s.tmp)
np.add(s.g, s.tmp, out=s.g)
return s.g.sum()
""",
    ),
    "save best": (
        """
s.best = np.inf
s.w = np.zeros(4)
s.bw = None
""",
        """
s.w += x - 0.5
l = abs(s.w).sum()
if l < s.best:
    s.best = l
    s.bw = s.w.copy()
return l
""",
    ),
    "view attr": (
        """
s.flat = np.zeros(8)
s.w = s.flat[:4]
s.b = s.flat[4:]
""",
        """
s.w += x
s.b -= x
return s.flat.sum()
""",
    ),
    "flat params": (
        "s.flat = np.zeros(8)",
        """
w = s.flat[:4]
b = s.flat[4:]
w += x
b -= x
return s.flat.sum()
""",
    ),
    "flat params dot": (
        "s.flat = np.zeros(8)",
        """
w = s.flat[:4].reshape(2, 2)
b = s.flat[4:]
y = w @ x[:2]
s.flat -= 0.1 * np.concatenate([np.outer(y, x[:2]).ravel(), b])
return y.sum()
""",
    ),
    "closure list": (
        "s.f = make()",
        "return s.f(x)",
        "",
        """
def make():
    ws = [np.zeros(4), np.zeros(4)]

    def f(x):
        for w in ws:
            w += x
        return ws[0].sum()

    return f
""",
    ),
    "class attr": (
        "pass",
        """
Program.tot += x
return Program.tot.sum()
""",
        "tot = np.zeros(4)",
    ),
    "vars loop": (
        "s.c = C()",
        """
for k, v in vars(s.c).items():
    v += x
return s.c.a.sum()
""",
        "",
        """
class C:
    def __init__(s):
        s.a = np.zeros(4)
        s.b = np.ones(4)
""",
    ),
    "grid of objs": (
        "s.g = [[C() for _ in range(2)] for _ in range(2)]",
        """
for row in s.g:
    for c in row:
        c.a += x
return s.g[1][1].a.sum()
""",
        "",
        """
class C:
    def __init__(s):
        s.a = np.zeros(4)
""",
    ),
    "linked": (
        "s.h = C(C(None))",
        """
c = s.h
while c is not None:
    c.a += x
    c = c.nxt
return s.h.nxt.a.sum()
""",
        "",
        """
class C:
    def __init__(s, n):
        s.a = np.zeros(4)
        s.nxt = n
""",
    ),
    "optimizer obj": (
        """
s.ps = [np.zeros(4), np.ones(2)]
s.o = Opt(s.ps)
""",
        """
s.o.step([x, x[:2]])
return s.ps[0].sum()
""",
        "",
        """
class Opt:
    def __init__(s, ps):
        s.ps = ps
        s.m = [np.zeros_like(p) for p in ps]
        s.v = [np.zeros_like(p) for p in ps]
        s.t = 0

    def step(s, gs):
        s.t += 1
        for p, g, m, v in zip(s.ps, gs, s.m, s.v):
            m[:] = 0.9 * m + 0.1 * g
            v[:] = 0.99 * v + 0.01 * g * g
            p -= 0.1 * (m / (1 - 0.9**s.t)) / (np.sqrt(v / (1 - 0.99**s.t)) + 1e-8)
""",
    ),
    "optimizer dict": (
        """
s.ps = {"w": np.zeros(4), "b": np.ones(2)}
s.m = {k: np.zeros_like(v) for k, v in s.ps.items()}
""",
        """
g = {"w": x, "b": x[:2]}
for k, p in s.ps.items():
    s.m[k] *= 0.9
    s.m[k] += g[k]
    p -= 0.1 * s.m[k]
return s.ps["w"].sum()
""",
    ),
    "network by hand": (
        """
r = np.random.default_rng(0)
s.W = [r.normal(size=(4, 3)), r.normal(size=(3, 1))]
s.b = [np.zeros(3), np.zeros(1)]
""",
        """
X = np.stack([x, x[::-1]])
acts = [X]
h = X
for W, b in zip(s.W, s.b):
    h = np.tanh(h @ W + b)
    acts.append(h)
d = (h - 0.5) * (1 - h**2)
for i in reversed(range(2)):
    gW = acts[i].T @ d
    gb = d.sum(0)
    if i:
        d = (d @ s.W[i].T) * (1 - acts[i] ** 2)
    s.W[i] -= 0.1 * gW
    s.b[i] -= 0.1 * gb
return ((h - 0.5) ** 2).mean()
""",
    ),
    "Runge-Kutta": (
        "s.y = np.array([1.0, 0.0])",
        """
f = lambda y: np.array([y[1], -y[0] + 0.1 * x[0]])
h = 0.01
k1 = f(s.y)
k2 = f(s.y + h / 2 * k1)
k3 = f(s.y + h / 2 * k2)
k4 = f(s.y + h * k3)
s.y += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
return s.y
""",
    ),
    "Runge-Kutta without input": (
        """
s.y = np.array([1.0, 0.0])
s.t = 0.0
""",
        """
f = lambda t, y: np.array([y[1], -y[0] + 0.1 * np.sin(t)])
h = 0.01
k1 = f(s.t, s.y)
k2 = f(s.t + h / 2, s.y + h / 2 * k1)
k3 = f(s.t + h / 2, s.y + h / 2 * k2)
k4 = f(s.t + h, s.y + h * k3)
s.y = s.y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
s.t += h
return s.y
""",
    ),
    "verlet": (
        """
s.q = np.zeros((5, 2))
s.v = np.ones((5, 2))
s.f = np.zeros((5, 2))
""",
        """
dt = 0.01
s.v += 0.5 * dt * s.f
s.q += dt * s.v
d = s.q[:, None] - s.q[None]
r2 = (d**2).sum(-1) + 1.0
s.f = -(d / r2[..., None]).sum(1)
s.v += 0.5 * dt * s.f
return (s.v**2).sum()
""",
    ),
    "lattice Boltzmann": (
        """
s.f = np.ones((9, 6, 6))
s.c = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
""",
        """
rho = s.f.sum(0)
u = np.einsum("qd,qxy->dxy", s.c, s.f) / rho
feq = rho * (1 + 3 * np.einsum("qd,dxy->qxy", s.c, u)) / 9
s.f += 0.6 * (feq - s.f)
for q in range(9):
    s.f[q] = np.roll(s.f[q], s.c[q], axis=(0, 1))
return rho.sum() + x[0]
""",
    ),
    "kmeans": (
        """
s.c = np.arange(8.0).reshape(4, 2)
s.n = np.ones(4)
""",
        """
p = x[:2]
j = np.argmin(((s.c - p) ** 2).sum(1))
s.n[j] += 1
s.c[j] += (p - s.c[j]) / s.n[j]
return j
""",
    ),
    "recursive least squares": (
        """
s.P = np.eye(4)
s.th = np.zeros(4)
""",
        """
k = s.P @ x / (1 + x @ s.P @ x)
s.th += k * (1 - x @ s.th)
s.P -= np.outer(k, x @ s.P)
return s.th
""",
    ),
    "PID": (
        """
s.i = 0.0
s.e = 0.0
""",
        """
e = 1 - x[0]
s.i += e * 0.01
d = (e - s.e) / 0.01
s.e = e
return 2 * e + 0.1 * s.i + 0.01 * d
""",
    ),
    "IIR filter": (
        """
s.z = np.zeros(2)
s.b = np.array([0.1, 0.2, 0.1])
s.a = np.array([1.0, -0.5, 0.2])
""",
        """
y = s.b[0] * x[0] + s.z[0]
s.z[0] = s.b[1] * x[0] - s.a[1] * y + s.z[1]
s.z[1] = s.b[2] * x[0] - s.a[2] * y
return y
""",
    ),
    "echo state network": (
        """
r = np.random.default_rng(0)
s.W = r.normal(size=(5, 5)) * 0.1
s.Wi = r.normal(size=(5, 4))
s.h = np.zeros(5)
""",
        """
s.h = 0.7 * s.h + 0.3 * np.tanh(s.W @ s.h + s.Wi @ x)
return s.h
""",
    ),
    "hopfield": (
        "s.W = np.zeros((4, 4))",
        """
v = np.sign(x - 0.5)
s.W += np.outer(v, v)
np.fill_diagonal(s.W, 0)
return s.W @ v
""",
    ),
    "welford class": (
        "s.r = R()",
        """
s.r.push(x)
return s.r.var()
""",
        "",
        """
class R:
    def __init__(s):
        s.n = 0
        s.m = np.zeros(4)
        s.s = np.zeros(4)

    def push(s, x):
        s.n += 1
        d = x - s.m
        s.m += d / s.n
        s.s += d * (x - s.m)

    def var(s):
        return s.s / s.n if s.n > 1 else np.zeros_like(s.s)
""",
    ),
    "particle": (
        """
s.p = np.zeros((6, 2))
s.w = np.ones(6) / 6
""",
        """
s.p += x[:2]
s.w *= np.exp(-((s.p - x[2:]) ** 2).sum(1))
s.w /= s.w.sum()
return s.w @ s.p
""",
    ),
    "where alive": (
        """
s.pos = np.zeros(4)
s.alive = np.ones(4, bool)
""",
        """
s.pos[s.alive] += x[s.alive]
s.alive[s.pos > 2] = False
return s.alive.sum()
""",
    ),
    "count hist": (
        "s.h = np.zeros(5, int)",
        """
np.add.at(s.h, (x * 5).astype(int), 1)
return s.h
""",
    ),
    "replay buffer": (
        """
s.b = np.zeros((6, 4))
s.r = np.zeros(6)
s.n = 0
""",
        """
i = s.n % 6
s.b[i] = x
s.r[i] = x.sum()
s.n += 1
m = min(s.n, 6)
return s.b[:m].mean(0) * s.r[:m].mean()
""",
    ),
    "advantages": (
        "s.v = np.zeros(4)",
        """
adv = np.zeros(4)
l = 0.0
for t in reversed(range(4)):
    nv = s.v[t + 1] if t < 3 else 0.0
    dl = x[t] + 0.99 * nv - s.v[t]
    l = dl + 0.9 * l
    adv[t] = l
s.v += 0.1 * adv
return adv
""",
    ),
}


def program(name: str, accelerated: Callable[[Any], Any] = lambda method: method) -> Any:
    """Return an object of the class of a name, whose method `step` goes through a function."""
    init, body, methods, before, *_ = (*PROGRAMS[name], "", "")
    parts = [before, "class Program:", "    def __init__(s):", indented(init, 8), indented(methods, 4)]
    source = "\n".join([*parts, "    @accelerated", "    def step(s, x):", indented(body, 8)])
    file = f"<program {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"np": np, "types": types, "accelerated": accelerated, "__name__": "programs"}
    exec(compile(source, file, "exec"), names)
    return names["Program"]()


def indented(text: str, by: int) -> str:
    """Return lines with spaces before them."""
    return "\n".join(" " * by + line for line in text.splitlines())


def arrays(value: Any, seen: tuple[Any, ...] = ()) -> list[np.ndarray]:
    """Return the arrays and numbers in an object, in the order of attributes and elements."""
    if (
        any(value is other for other in seen)
        or value is None
        or isinstance(value, (str, type))
        or callable(value)
    ):
        return []
    if isinstance(value, (np.ndarray, np.generic, tj.dlarray, bool, int, float)):
        return [np.asarray(value)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    names = [*getattr(value, "__slots__", ()), *getattr(value, "__dict__", ())]
    return [
        array
        for part in (*parts, *[getattr(value, name) for name in names])
        for array in arrays(part, (*seen, value))
    ]
