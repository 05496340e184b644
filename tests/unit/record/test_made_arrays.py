# SPDX-License-Identifier: BSD-3-Clause
"""Traced values that are written into ndarrays which NumPy makes in the function: copies, grids, what it computes."""

import gc
import operator  # noqa: F401 (of programs)
import sys
from collections.abc import Callable
from functools import partial  # noqa: F401 (of programs)
from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj

rng = np.random.default_rng(3)
W = rng.standard_normal(4)
M = rng.standard_normal((4, 4))
KEPT: list[np.ndarray] = []


class Box:
    """An object that the function makes."""

    def __init__(self) -> None:
        self.m = M * 1.0
        self.k = W.copy()

    def put(self, x: Any) -> None:
        self.m[0] = x
        self.k += x


def fill(array: Any, values: Any) -> Any:
    array[0] = values
    return array


# Bodies of functions of a vector x of four numbers.
REPLAYED = {
    "a copy": "t = W.copy(); t[0] = x[0]; return t * x",
    "a copy that NumPy reads": "t = W.copy(); t[0] = x[0]; return np.sin(t).sum()",
    "np.array": "t = np.array(W); t[1:3] = x[1:3]; return t",
    "np.copy": "t = np.copy(W); t *= x; return t",
    "a grid": "t = np.linspace(0, 1, 4); t[0] = x[0]; return t * 2",
    "a range": "t = np.arange(4) * 1.0; t[1:3] = x[1:3]; return t",
    "a list again and again": "t = np.tile([1.0, 2.0], 2); t[2] = x[0] * 2; return t",
    "a sum": "t = M + 1; t[0, 0] = x[0]; return t",
    "a diagonal matrix": "t = np.diag(W); t[1] = x; return np.linalg.det(t + np.eye(4) * 9)",
    "a part of a matrix": "t = np.tril(M); t += np.outer(x, x); return t",
    "another shape": "t = np.repeat(W, 2).reshape(4, 2); t[:, 0] = x; return t.sum()",
    "another shape of a copy": "t = W * 2; t = t.reshape(2, 2); t[0, 0] = x[0]; return t",
    "meshes": "a, b = np.meshgrid(np.arange(4.0), np.arange(4.0)); a[0] = x; b += a; return b",
    "random numbers": "t = np.random.default_rng(0).normal(size=4); t[0] = x[0]; return t",
    "integers": "t = np.arange(4); t[0] = x[0] * 10; t[1] += 1; return t",
    "truth values": "t = np.array([True, False, True, False]); t[1] = x[0] > 0; return t & (x > 0)",
    "float32": "t = W.astype(np.float32); t[0] = x[0]; t *= 2; return t",
    "in place": "t = W * 2; t += x; t -= 1; t /= 2; return t",
    "an element in place": "t = W * 2; t[0] += x[0]; t[1] *= x[1]; return t",
    "rows in place": "t = M * 2; t[0] += x; t[1] *= x; return t",
    "two names": "t = W * 2; u = t; t[0] = x[0]; return u * 3",
    "two names in place": "t = M * 2; u = t; t += x; return t + u, t is u",
    "views": "t = M * 2; r = t[1]; c = t[:, 2]; r[:] = x; c += x; return np.sin(t), r, c.sum()",
    "a view in reverse": "t = W * 2; s = t[::-1]; s[0] = x[0]; return t + s",
    "a view that stays": "t = W * 2; s = t[1:3]; del t; s[:] = x[:2]; return s",
    "a transpose": "t = M * 2; t.T[0] = x; return t",
    "an element of a row": "t = M * 2; t[0][1] = x[0]; return t",
    "a block": "t = M * 2; t[:2, :2] = x[:2]; t[2:, 2:] -= np.outer(x[:2], x[2:]); return t @ x",
    "places": "t = W * 2; t[[0, 2]] = x[[1, 3]]; t[-1] = x.max(); return t.tolist()",
    "a mask": "t = W * 2; t[t > 0] = x.sum(); return t",
    "a varying place": "t = W * 2; i = int(np.argmax(x)); t[i] = 1.5; return t",
    "a traced place": "t = W * 2; t[np.argmax(x)] = 0.0; t += x; return t",
    "numbers": "t = W * 2; t += float(x[0]); t[1] = float(x[1]); return t",
    "flat": "t = M * 2; t.flat[1] = x[0]; return t",
    "flat, a slice": "t = M * 2; t.flat[::5] = x; return t",
    "fill": "t = W * 2; t.fill(x[0]); return t",
    "put": "t = W * 2; t.put([0, 2], x[:2]); return t",
    "np.fill_diagonal": "t = M * 2; np.fill_diagonal(t, x); return t",
    "np.copyto": "t = M * 2; np.copyto(t, x); return t",
    "np.copyto, by names": "t = M * 2; np.copyto(dst=t, src=x); return t",
    "np.put": "t = W * 2; np.put(t, [0, 1], x[:2]); return t",
    "np.putmask": "t = W * 2; np.putmask(t, W > 0, x); return t",
    "np.add.at": "t = W * 2; np.add.at(t, [0, 0, 1], x[0]); return t",
    "out": "t = W * 2; np.add(t, x, out=t); np.multiply(x, 2.0, out=t[1:3][:0]) if 0 else None; return t",
    "out of another": "t = W * 2; np.sum(np.outer(x, x), axis=0, out=t); return t",
    "out, in a tuple": "t = W * 2; np.exp(x, out=(t,)); return t",
    "read before": "t = M * 2; y = t @ x; t[0] = x; return t @ x + y",
    "a stencil": "u = np.arange(9.0)\nfor _ in range(3): u[1:-1] = u[1:-1] + x[0] * (u[2:] - u[:-2])\nreturn u",
    "two by turns": "u = np.arange(9.0); v = u * 1\nfor _ in range(3): v[1:] = u[1:] * x[0]; u, v = v, u\nreturn u",
    "copies in a list": "out = []; t = W * 2\nfor i in range(3): t[i] = x[i]; out.append(t.copy())\nreturn out",
    "the same in a list": "out = []; t = W * 2\nfor i in range(3): t[i] = x[i]; out.append(t)\nreturn out",
    "a list": "rows = [W * 2, W * 3]; rows[0][1] = x[0]; return np.stack(rows)",
    "a list in a loop": "rows = [W * 2 for _ in range(2)]\nfor r in rows: r[0] = x[0]\nreturn rows",
    "a dict": "d = {'a': W * 2}; d['a'] += x; d['a'][0] = x[1]; return d['a'] * d['a']",
    "lists in a dict": "d = {'a': [W * 2, M * 1]}; d['a'][1][0] = x; d['a'][0] -= x; return d",
    "a tuple": "t = (W * 2, 1.0); t[0][1] = x[0]; return t[0].sum()",
    "a tuple of state": "s = (W * 2, W * 3); p, v = s; p += x * v; v[0] = x[1]; return s[0] + s[1], p",
    "tuples in a list": "s = [(W * 2, 1), (W * 3, 2)]\nfor t, n in s: t[n] = x[n]\nreturn s",
    "an object": "b = Box(); b.put(x); b.m[1, 1] = x[2]; return b.m.sum() * b.k",
    "rows": "t = M * 2\nfor i, row in enumerate(t): row[i] = x[i]\nreturn t",
    "rows of an iterator": "t = M * 2\nfor row in t: row += x\nreturn t",
    "rows beside values": "t = M * 2\nfor row, v in zip(t, x): row[1:] = v\nreturn t",
    "a function": "t = M * 2; fill(t, x); return t.sum(axis=0)",
    "a function that waits": "t = M * 2; return np.concatenate([t, t * fill(t, x).sum()])",
    "a tuple that waits": "t = M * 2; return (t, fill(t, x))[0] + 1",
    "a function inside": "t = M * 2\ndef inner(v): t[0] = v; return t.sum()\ns = inner(x); return t * s",
    "a function that reads": "t = W * 2; f = lambda: t.sum(); t[0] = x[0]; return f()",
    "a generator": "t = W * 2\ndef parts():\n for i in range(4): t[i] = x[i] * 2; yield t.sum()\nreturn sum(parts())",
    "made inside": "make = lambda: W * 2; a = make(); a[0] = x[0]; b = make(); b[1] = x[1]; return a + b",
    "errors": "t = M * 2\ntry: t[10] = x\nexcept IndexError: t[1] = x\nreturn t",
}
# What a function outside, or code in C, could still see holds numbers; such functions run uncompiled.
STAYING = {
    "kept outside": "t = W * 2; KEPT.append(t); t[0] = x[0]; r = KEPT[-1] * 2; KEPT.clear(); return r",
    "an attribute of a class": "t = W * 2; Box.tmp = t; t[0] = x[0]; r = Box.tmp * 2; del Box.tmp; return r",
    "a set of objects": "t = W * 2; s = {np.sin: t}; v = s.values(); t[0] = x[0]; return [*v][0].sum()",
    "a generator": "t = W * 2; g = (a for a in [t]); t[0] = x[0]; return next(g).sum()",
    "another's function": "t = W * 2; f = t.sum; t[0] = x[0]; return f()",
    "a diagonal": "t = M * 2; d = np.diagonal(t); t[0] = x; return d + 1",
    "a part of bytes": "t = np.frombuffer(bytearray(32)); t[0] = x[0]; return t * 2",
}
# What takes ndarrays only runs with NumPy's own from then on.
ONLY_NDARRAYS = {
    "memory": "t = W * 2; t[0] = x[0]; return np.frombuffer(memoryview(t)).sum()",
    "an address": "t = W * 2; t[0] = x[0]; return t.ctypes.data > 0, t.sum()",
}


def program(body: str) -> Callable[[Any], Any]:
    names = {**globals()}
    exec("def function(x):\n" + "".join(f"    {line}\n" for line in body.split("\n")), names)
    return names["function"]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return leaves([*value.values()])
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def check_same(have: Any, want: Any) -> None:
    for mine, theirs in zip(leaves(have), leaves(want), strict=True):
        found, expected = np.asarray(mine), np.asarray(theirs)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(
            found, expected, rtol=1e-6 if found.dtype == np.float32 else 1e-11, atol=1e-12
        )


def values(call: int) -> np.ndarray:
    return np.random.default_rng(call).standard_normal(4)


@pytest.mark.parametrize("body", REPLAYED.values(), ids=REPLAYED)
def test_all_of_it_is_recorded(body: str) -> None:
    function = program(body)
    accelerated = tj.dlaccelerate(function)
    for call in range(8):
        x = values(call)
        want = function(x.copy())
        check_same(tj.dlfeval(function, x), want)
        check_same(accelerated(x), want)
    assert accelerated.stats.hits >= 2 and not accelerated.stats.uncompiled


@pytest.mark.parametrize("body", REPLAYED.values(), ids=REPLAYED)
def test_derivatives_go_through_it(body: str) -> None:
    function = program(body)

    def total(x: Any) -> Any:
        parts = [
            np.sum(np.cos(np.asarray(part) if isinstance(part, float) else part))
            for part in leaves(function(x))
        ]
        return sum(parts[1:], parts[0])

    def slope(x: Any) -> Any:
        return tj.dlgradient(total(x), x)

    if (
        np.asarray(leaves(function(values(0)))[0]).dtype != float
        or "float(" in body
        or "tolist" in body
        or "1.5" in body
    ):
        pytest.skip("it has no derivative, or that of numbers")
    x, step = values(0), 1e-6
    want = [(total(x + step * unit) - total(x - step * unit)) / (2 * step) for unit in np.eye(4)]
    np.testing.assert_allclose(np.asarray(tj.dlfeval(slope, tj.dlarray(x))), want, rtol=1e-5, atol=1e-7)
    accelerated = tj.dlaccelerate(slope)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(accelerated(tj.dlarray(x))), want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("body", STAYING.values(), ids=STAYING)
def test_what_others_can_see_stays_an_ndarray(body: str) -> None:
    function = program(body)
    accelerated = tj.dlaccelerate(function)
    with pytest.warns(tj.NotAcceleratedWarning, match="written into an ndarray that the function makes at"):
        for call in range(4):
            x = values(call)
            want = function(x.copy())
            check_same(tj.dlfeval(function, x), want)
            check_same(accelerated(x), want)
    assert not accelerated.stats.hits


@pytest.mark.parametrize("body", ONLY_NDARRAYS.values(), ids=ONLY_NDARRAYS)
def test_what_takes_ndarrays_only_gets_them(body: str) -> None:
    function = program(body)
    accelerated = tj.dlaccelerate(function)
    with pytest.warns(tj.NotAcceleratedWarning, match="written into an ndarray that the function makes at"):
        for call in range(4):
            check_same(accelerated(values(call)), function(values(call)))


def test_an_array_of_the_user_stays_one_in_an_evaluation() -> None:
    outside = W * 2
    rows = [M * 2]
    holder = Box()

    def function(x: Any) -> Any:
        outside[0] = x[0]
        rows[0][1] = x
        holder.m[2] = x
        holder.k += x
        return outside.sum() + rows[0].sum()

    tj.dlfeval(function, np.ones(4))
    assert type(outside) is type(rows[0]) is type(holder.m) is type(holder.k) is np.ndarray
    assert outside[0] == rows[0][1, 0] == holder.m[2, 3] == 1


def test_references_are_right_afterwards() -> None:
    """Nothing is kept, and nothing is released once too often."""

    def function(x: Any) -> Any:
        t = W.copy()
        views = [t[1:], t[:2]]
        for view in views:
            view[0] = x[0]
        for row in views:
            row += x[: row.size]
        return t, views

    x = np.ones(4)
    tj.dlfeval(function, x)
    gc.collect()
    before = sys.getrefcount(W), len(gc.get_objects())
    for _ in range(50):
        tj.dlfeval(function, x)
    gc.collect()
    assert sys.getrefcount(W) == before[0] and len(gc.get_objects()) < before[1] + 50


STATEMENTS = (
    "a[{i}] = x[{j}]", "a += x", "a[1:] -= x[1:]", "b[{i}] = x", "b += a", "b[:, {i}] *= x", "c = b[{i}]; c += x",
    "c = b.T; c[{i}] = a * 1", "a = b[{i}]", "a = b[{i}].copy()", "b = b * 1.5", "l = [a, b[{i}]]; l[1][{j}] = x[0]",
    "for r in b: r[{j}] += x[{i}]", "fill(b, x)", "fill(b[{i}:], x)", "np.add(a, x, out=a)", "np.copyto(a, x)",
    "d = {{'k': a}}; d['k'][{i}] = x[{j}]", "b.flat[{i}] = x[{j}]", "a, c = c, a", "c = np.sin(a)", "a = a + x[{i}]",
    "b[a > 0] = x", "c = W * 2", "c[{i}] = a[{j}]", "f = lambda: a; f()[{i}] = x[{j}]", "a = W.copy(); c = a[::-1]",
    "t = (a, c); t[0][{i}] = x[{j}]", "g = [b]; b = g[0]; b[{i}, {j}] = x[0]", "np.fill_diagonal(b, x)",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.filterwarnings(
    "ignore::tracejit.NotAcceleratedWarning"
)  # a function of a generator, for instance
@pytest.mark.parametrize("seed", range(sweep(40, 1500, sample=15)))
def test_random_programs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    lines = ["a = W.copy(); b = M * 2; c = np.linspace(0, 1, 4)"]
    drawn = [str(draw.choice(STATEMENTS)) for _ in range(draw.integers(2, 9))]
    lines += [statement.format(i=draw.integers(4), j=draw.integers(4)) for statement in drawn]
    function = program("\n".join([*lines, "return a, b, c"]))
    accelerated = tj.dlaccelerate(function)
    for call in range(5):
        x = values(call)
        want = function(x.copy())
        check_same(tj.dlfeval(function, x), want)
        check_same(accelerated(x), want)


# What may reach the ndarray by other ways than by variables, or asks it for what dlarrays lack.
ASKING = {
    "a bound method": "t = np.arange(4.0); put = t.__setitem__; put(0, x[0]); put(1, x[1]); return t",
    "a mapped method": "t = np.arange(4.0); [*map(t.__setitem__, range(4), x)]; return t",
    "a partial function": "t = np.arange(4.0)\nfor i in range(4): partial(operator.setitem, t)(i, x[i])\nreturn t",
    "a bound fill": "t = np.arange(4.0); fill = t.fill; fill(x[0]); t[1] = x[1]; return t",
    "locals": "t = np.arange(4.0); names = locals(); t[0] = x[0]; return t, 'names' in names",
    "an address": "t = np.arange(4.0); t[0] = x[0]; return t, t.ctypes.data > 0",
    "an attribute by its name": "t = np.arange(4.0); t[0] = x[0]; return t, hasattr(t, 'ctypes')",
    "a handler": "t = np.arange(4.0); t[0] = x[0]\ntry: return np.sum(memoryview(t))\nexcept TypeError: return -1.0",
    "an identity": "t = np.arange(4.0); before = id(t); t[0] = x[0]; return t, id(t) == before",
    "a copy in a row": "t = np.arange(8.0)[::2]; t[0] = x[0]; v = t.ravel(); w = v.ravel(); v[1] = 9.0; return w",
}


@pytest.mark.parametrize("body", ASKING.values(), ids=ASKING)
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_other_ways_to_an_ndarray(body: str) -> None:
    function = program(body)
    accelerated = tj.dlaccelerate(function)
    for call in range(5):
        x = values(call)
        want = function(x.copy())
        check_same(tj.dlfeval(function, x), want)
        check_same(accelerated(x), want)


def test_a_function_that_cannot_run_again_does_not() -> None:
    """Its first call raises the error of what takes ndarrays only; nothing is done twice, and later calls are right."""
    numbers = iter(range(100))

    def read(array: Any) -> float:
        return float(np.frombuffer(memoryview(array)).sum())

    def function(x: Any) -> Any:
        number = next(numbers)
        t = W * 2
        t[0] = x[0]
        return read(t) + number

    accelerated = tj.dlaccelerate(function)
    with pytest.raises(TypeError, match="bytes-like"):
        accelerated(np.ones(4))
    with pytest.warns(tj.NotAcceleratedWarning):
        for number in range(1, 5):
            expected = 1 + 2 * W[1:].sum() + number
            np.testing.assert_allclose(np.asarray(accelerated(np.ones(4))), expected)


def test_an_id_that_is_used_again_is_another_array() -> None:
    def function(x: Any) -> Any:
        t = np.ones(5) * 2
        t[-1:] += 2.0
        try:
            t[2] = 1.0
            t[9] = x[0]
        except IndexError:
            t[0] += x[1]
        finally:
            t[1] = 2.0
        return t * 1

    x = np.array([1.0, 2.0])
    for _ in range(40):
        check_same(tj.dlfeval(function, x), function(x))
