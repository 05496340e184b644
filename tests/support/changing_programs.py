# SPDX-License-Identifier: BSD-3-Clause
"""Functions that change what is outside: a module in which a body is put, bodies, and what is compared."""

import collections
from typing import Any

import numpy as np

import tracejit as tj

MODULE = """
import numpy as np, collections, io


class Box:
    count = 0

    def __init__(self):
        self.n, self.t, self.dt, self.k, self.z = 0, 0.0, 0.01, 2, 1j
        self.flag, self.ok, self.name, self.none, self.shapes = False, True, "", None, ()
        self.a, self.b, self.big = np.zeros(3), np.zeros((2, 3), int), np.zeros(20_000)
        self.l, self.h, self.s, self.c = [0, 0], [], set(), collections.Counter()
        self.queue, self.memory = collections.deque(maxlen=3), bytearray(3)
        self.d = {"n": 0, "a": np.zeros(2)}

    def bump(self):
        self.n += 1

    @property
    def p(self):
        return self.__dict__.get("_p", 0)

    @p.setter
    def p(self, value):
        self._p = value


class Slotted:
    __slots__ = ("a", "n")

    def __init__(self):
        self.n, self.a = 0, np.zeros(2)


o, slotted, d, g, ga, table = Box(), Slotted(), {"n": 0, "a": np.zeros(2)}, 0, np.zeros(2), collections.defaultdict(int)


def bump():
    global g
    g += 1


def make(accelerated):
    c, ca = 0, np.zeros(2)

    @accelerated
    def program(x, k=1):
        BODY
        return x * 2

    def outside():
        return [c, ca, g, ga, d, table, vars(o), Box.count, slotted.n, slotted.a]

    def reset():
        nonlocal c
        c = 5
        o.n = o.t = 0
        o.flag, o.name, d["n"] = False, "", 0
        o.a[:] = o.big[:] = 0
        o.h.clear()

    return program, outside, reset
"""
# By their bodies: whether all of it is in replays too.
REPLAYED = (
    "o.n += 1", "o.n -= 3", "o.n += k", "o.n += o.k", "o.n += 1; o.n += 2", "o.bump()", "o.bump(); o.n += 1",
    "for _ in range(3): o.n += 1", "o.n += x.shape[0]", "o.n += int(x.sum() > -1)", "[o.bump() for _ in range(2)]",
    "o.t += 0.01", "o.t += o.dt", "o.t -= o.dt", "h = o.dt; o.t += h", "o.t += 1", "o.count += 1", "Box.count += 1",
    "o.d['n'] += 1", "d['n'] += 1", "table['x'] += 1", "o.c['x'] += 1", "global g; g += 1", "bump()",
    "global g; g += 1; bump()", "nonlocal c; c += 1", "nonlocal c; c -= 2", "slotted.n += 1", "o.l[0] += 1",
    "if k: o.n += 1", "if not k: o.n += 1", "if not k: o.t += o.dt",
    "o.n = 5", "o.n = 5; o.n += 1", "o.flag = True", "o.name = 'abc'", "o.shapes = (1, 2)", "o.none = None",
    "o.none = 3", "o.t = k * 0.5", "o.name = str(x.shape)", "o.n = min(o.k, 3)", "o.p = 3", "setattr(o, 'n', 5)",
    "d['new'] = 1", "d[k] = 1", "d.update(n=3)", "d.setdefault('q', 1)", "global g; g = 4", "nonlocal c; c = 3",
    "o.l[0] = 5", "o.l[k] = 5", "o.new = x.ndim", "if not k: o.n = 4",
    "o.n *= 2", "o.flag |= True", "o.ok &= False", "o.n //= 2", "o.n += 1; o.n = 7", "o.n = max(o.n, 3)",
    "o.n = o.n", "o.a[0] = 3", "o.a[:] = 4", "o.a[...] = 4", "o.a[k:] = 1", "o.a[o.a < 1] = 2", "o.a.fill(2)",
    "np.copyto(o.a, 1)", "o.b |= 3", "ca[:] = 1", "o.big[:] = 1", "o.big[k] = 1", "if not k: o.big += 1",
    "o.s.add(1)", "o.s.add(x.shape)", "o.s |= {1}", "o.a = np.zeros(3)", "o.a = np.ones(3); o.a += 1",
    "o.l.clear()", "d.clear()", "o.s.clear()", "o.s.discard(1)", "v = o.a; v += 1",
    "o.a += 1", "o.a -= 0.5", "o.a *= 2; o.a += 1", "o.a[0] += 1",
    "o.a[:] += 1", "o.a[k] += 1", "o.a[k:] -= 1", "np.add(o.a, 1, out=o.a)",
    "np.add.at(o.a, [0, 0], 1)", "o.b[0] += 1", "o.b[0, 1] += 1", "o.b[0][1] += 1",
    "o.big += 1", "o.big[:] += 1", "o.big[k] += 1", "o.d['a'] += 1",
    "o.flag = not o.flag", "o.name += 'a'", "d['a'] += 1", "slotted.a += 1", "global ga; ga += 1",
    "o.n = o.n + 1", "o.n ^= 1", "o.n <<= 1; o.n |= 1", "o.n = (o.n + 1) % 5", "o.n, o.k = o.k, o.n",
    "o.t += o.dt; o.t += o.dt", "o.t += o.dt * 2", "o.t += o.dt / o.k", "o.t *= 1.5; o.t += 1.0",
    "d[k] = d.get(k, 0) + 1", "o.l[k] += 1", "o.p += 1", "table[k] += 1", "o.c[x.shape] += 1",
    "o.n += 1; x = x * o.n", "o.k += o.n; o.n += 1", "setattr(o, 'n', o.n + 1)", "globals()['g'] += 1",
    "if o.n < 3: o.n += 1",
    "np.add(o.a, 1, o.a)", "v = o.a[1:]; v += 1", "v = o.a.T; v -= 1", "for a in (o.a, ga): a += 1",
    "nonlocal ca; ca += 1", "vars(o)['n'] += 1", "o.__dict__['n'] += 1",
    "o.l += [1]", "o.h.append(1.0)", "o.h.append(x.shape)", "o.h.extend([1, 2])", "o.h += [1.0]", "o.queue.append(1)",
    "o.h.append(x * 2)", "o.h.append(float(x[0]))", "o.h += [x.sum().item(), k]", "o.h.extend(x.tolist())",
    "o.h.append((o.n, {'x': x * 1}))", "h = o.h; h.append(x)", "add = o.h.append; add(1); add(x * 3)",
    "if k: o.h.append(k)", "for part in x: o.h.append(float(part))", "o.h.append(1); o.h += [2]; o.h.extend((3, 4))",
    "o.queue.extend([x.sum() * n for n in range(3)])", "o.n += 1; o.h.append(o.n)", "o.h.append(o.a)",
    "o.h.append(len(o.h))", "if len(o.h) < 2: o.h.append(len(o.h) * x)", "o.n += len(o.h)",
    "o.queue.append(k); o.queue.append(k)", "o.queue.extend([1, 2, 1, 2])",
)  # fmt: skip
TOLD = (
    "o.shapes += (1,)", "o.z += 1",

    "o.c.update('ab')",
    "o.h.insert(0, 1)", "o.h[len(o.h):] = [1]", "o.queue.appendleft(k)", "o.h.append(1); o.h.reverse()",
    "o.h.append(1); o.h.insert(0, 2)", "o.h += [2]; o.h[0] = 3", "o.h.append(2); o.h *= 2",
    "o.s.add(len(o.s))", "o.s.update([len(o.s)])", "o.s ^= {1}", "o.memory[0] += 1",
    "o.memory.append(1)", "o.memory += b'a'", "o.memory[1:2] = b'a'; o.memory[0] += 1",
)  # fmt: skip


def frozen(value: Any) -> Any:
    """Return a value as something that later changes leave as it is, and that compares by its contents."""
    if isinstance(value, dict):
        return {str(key): frozen(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [frozen(part) for part in value]
    if isinstance(value, (np.ndarray, tj.dlarray)):
        return np.asarray(value).tolist()
    if isinstance(value, set):
        return sorted(map(str, value))
    return bytes(value) if isinstance(value, bytearray) else value
