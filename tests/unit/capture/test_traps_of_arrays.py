# SPDX-License-Identifier: BSD-3-Clause
"""Traps: arrays that a function reads by NumPy alone."""

import functools
import itertools
import operator

import numpy as np
import pytest
from worlds import follow, pick

import tracejit as tj
from tracejit import dlarray, dlfeval, dlgradient

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


BODIES = [
    "h = np.zeros(3); h[:] = G; return h * x + G",
    "h = np.zeros((2, 3)); h[0] = G; return h * x + G",
    "h = np.zeros((2, 3))\nfor i in range(2): h[i] = G\nreturn h * x + G",
    "h = np.zeros((2, 3)); v = h[1]; v[:] = G; return h * x + G",
    "h = np.zeros(3); h.put([0, 1, 2], G); return h * x + G",
    "h = np.zeros(3); h.__setitem__(slice(None), G); return h * x + G",
    "h = np.zeros(3); operator.setitem(h, slice(None), G); return h * x + G",
    "h = np.zeros(3); np.copyto(h, G); return h * x + G",
    "k = G; h = np.empty(3); np.multiply(k, 2, h); return h * x + G",
    "h = np.concatenate([G, G]); return h[:3] * x + G",
    "h = np.stack((G, G)); return h * x + G",
    "h = np.array([G, G]); return h * x + G",
    "h = np.array([*G]); return h * x + G",
    "h = np.array([g * 2 for g in G]); return h * x + G",
    "h = np.array(list(map(float, G))); return h * x + G",
    "h = np.frombuffer(bytes(G)); return h * x + G",
    "h = np.array(list(itertools.chain(G, G)))[:3]; return h * x + G",
    "r = np.zeros(3, [('a', float)]); r['a'] = G; return r['a'] * x + G",
    "o = np.empty(2, object); o[:] = [G, G]; return np.add(o[0], o[1]) * x + G",
    "h = functools.reduce(operator.add, [G, G]); return h * x + G",
    "h = np.zeros(3)\nfor k in [G]: h += k\nreturn h * x + G",
    "for k in [G]: x = x * k / np.linalg.norm(k)\nreturn x",
    "for k in (G,): x = x * k / k.sum()\nreturn x",
    "for k in (G,): x = x * k * float(k[0])\nreturn x",
    "for k in (G,): x = x * k * float(k[0]) * 1.0\nreturn x",
    "for k in (G,): x = x * k * k[0].item() * 1.0\nreturn x",
    "for k in (G,): x = x * k * k.tolist()[0] * 1.0\nreturn x",
    "for k in (G,): x = x * k / max(k)\nreturn x",
    "for k in (G,): x = x * k * (k > 3)\nreturn x",
    "for k in (G,): x = x * k if k[0] > 1.5 else x - k\nreturn x",
    "for k in (G,): x = x * k if np.any(k > 3) else x - k\nreturn x",
    "for k in (G,):\n    for _ in range(int(k[0])): x = x * k\nreturn x",
    "for k in (G,): x = x * k\nreturn x, k.sum() + x",
    "for k in (G,): x = x * k\nreturn x, f'{k[1]:.1f}'",
    "for i, g in enumerate(G): x = x + i * g\nreturn x + G",
    "for a, b in zip(G, G): x = x + a * b\nreturn x + G",
    "a, b, c = G; return a * x + G",
    "t = tuple(G); return x * t[0] + G",
    "k = G if x.size else x; return x * np.sum(k) + k",
    "d = {'w': G}; return x * np.sum(d['w']) + d['w']",
    "d = [G]; return x * d[0].sum() + d[0]",
    "d = {i: g for i, g in enumerate(G)}; return x * d[0] + G",
    "k = G; s = k.sum(); del k; return x * s + G",
    "m = memoryview(G); return x * m[0] + G",
    "h = np.asarray(G); return x * h + h.sum()",
    "h = G[:2]; return x * h.sum() + G",
    "h = G.reshape(3, 1); return x * h.sum() + G",
    "return x * next(iter(G)) + G",
    "return x * sum(k.sum() for k in [G]) + G",
    "return x * functools.partial(np.sum, G)() + G",
    "return x * G[[0, 1, 2]] + G",
    "return x * (k := G).sum() + k",
]


class TestArraysThatNumPyReads:
    """What NumPy makes of a captured array that the trace reads too, however it gets there."""

    @pytest.mark.sampled
    @pytest.mark.parametrize("body", BODIES)
    def test_changed_in_place(self, body):
        def world(accelerate):
            names = {"np": np, "G": np.ones(3), "itertools": itertools, "operator": operator}
            names["functools"] = functools
            lines = "\n".join(f"    {line}" for line in body.split("\n"))
            exec(compile(f"def fun(x):\n{lines}", "<trap>", "exec"), names)
            fun = accelerate(names["fun"])

            def call(n):
                names["G"][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return fun(X)

            return call

        follow(world, audit=False)

    def test_arrays_that_change_places(self):
        """A sum over both is what it was, and shows nothing."""

        def world(accelerate):
            weights = [np.ones(3), np.ones(3)]
            fun = accelerate(lambda x: sum(x * w for w in weights) + sum(float(w.sum()) for w in weights))

            def call(n):
                weights[n % 2][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return fun(X)

            return call

        follow(world, audit=False, replays=False)

    @pytest.mark.slow
    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "body",
        [
            "for w in weights: x = x @ w / np.linalg.norm(w)\nreturn x",
            "return (x @ np.concatenate(weights, axis=1))[:50] + x @ weights[1]",
            "for w in weights: x = x @ (w * (abs(w) > 0.5)) + x @ w\nreturn x",
            "for w in weights: x = x @ w + x @ w.astype(np.float32)\nreturn x",
            "for w in weights: x = x @ w * w[3, 4]\nreturn x",
            "for w in weights: x = x @ w * np.median(w)\nreturn x",
        ],
    )
    def test_large_ones(self, body):
        def world(accelerate):
            rng = np.random.default_rng(0)
            names = {"np": np, "weights": [rng.normal(size=(50, 50)) for _ in range(2)]}
            lines = "\n".join(f"    {line}" for line in body.split("\n"))
            exec(compile(f"def fun(x):\n{lines}", "<trap>", "exec"), names)
            fun = accelerate(names["fun"])
            states, x = rng.normal(size=(3, 50, 50)), rng.normal(size=50)

            def call(n):
                names["weights"][1][:] = pick(n, *states)
                return fun(x)

            return call

        follow(world, audit=False)

    def test_weights_in_training_are_let_go(self):
        """A constant is made beside them, and they change at each call: the second recording tells them apart."""

        def world(accelerate):
            weights = [np.ones((3, 3)), np.zeros(3), np.ones((3, 3))]

            @accelerate
            def fun(x):
                mask = np.tril(np.ones((3, 3)))
                for w in weights:
                    x = x * mask[2] @ w if w.ndim == 2 else x + w
                return x

            def call(n):
                for w in weights:
                    w += 0.1 + n
                return fun(X)

            return call

        (fun,) = follow(world, audit=False)
        assert (fun.stats.traces, fun.stats.uncompiled) == (2, 0)

    def test_an_element_that_stays_while_others_change(self):
        """Two of three elements make no difference; the third does."""

        def world(accelerate):
            weights = [np.ones(3), np.ones(3)]
            inner = accelerate(lambda x: sum(x * w * float(w[0]) for w in weights).sum())

            def slope(x):
                y = inner(x)
                return y, dlgradient(y, x)

            def call(n):
                weights[n % 2][:] = pick(n, [1, 2, 3.5], [2, 4, 3.5], [5, 10, 8])
                return dlfeval(slope, dlarray(X)), inner(X)

            return call

        follow(world, audit=False, replays=False)

    def test_indices(self):
        def world(accelerate):
            places = [np.array([0, 1, 2])]

            @accelerate
            def fun(x):
                for place in places:
                    x = x[place] + x[place[0]]
                return x

            def call(n):
                places[0][:] = pick(n, [0, 1, 2], [2, 1, 0], [1, 1, 1])
                return fun(X)

            return call

        follow(world, audit=False)

    def test_embeddings_with_rows_that_change(self):
        def world(accelerate):
            tables = [np.ones((4, 3)), np.ones((4, 3))]
            fun = accelerate(lambda x: sum(x * table[1] for table in tables) * np.float64(3.0))

            def call(n):
                tables[n % 2][n % 4] += 1.0
                return fun(X)

            return call

        (fun,) = follow(world, audit=False, calls=40)
        assert fun.stats.uncompiled == 0 and fun.stats.hits > 20
