# SPDX-License-Identifier: BSD-3-Clause
"""State that is a list or a dict of numbers which code reads as a whole: ``x = np.array(self.state)``."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj

# Bodies of a function of an object o, a number a and an array x.
REPLAYED = {
    "an array": "y = np.array(o.state); o.state[0] += a; return y * x",
    "an array that is put back": "y = np.array(o.state) + x; o.state = y.tolist(); return y",
    "a step": "o.state = [v + 0.1 * a for v in o.state]; return np.asarray(o.state)",
    "a step in place": "o.state[:] = [v * 0.9 + w for v, w in zip(o.state, x)]; return sum(o.state)",
    "floats of arrays": "o.state = [v + float(w) for v, w in zip(o.state, x)]; return x * 2",
    "a product": "y = np.dot(o.state, x); o.state[1] -= a; return y",
    "largest": "y = max(o.state) * x; o.state[0] += 0.25; return y",
    "unpacked": "y = math.hypot(*o.state); o.state = [y, a]; return y * x",
    "integers": "n = sum(o.count); o.count[0] += 1; return n * x",
    "kinds": "y = np.array(o.mixed) @ np.ones(3); o.mixed[0] += 1; o.mixed[2] -= 0.5; return y * x",
    "rows": "y = np.array(o.rows); o.rows[1][0] += a; return y @ x",
    "of a dict": "y = sum(o.d.values()); o.d['p'] += a; return y * x",
    "items of a dict": "y = [k * len(n) for n, k in o.d.items()]; o.d['q'] = a; return np.array(y) * x",
    "keys that are computed": "for n in o.d: o.d[n] = o.d[n] * 0.5 + a\nreturn o.d['p'] * x",
    "a dict in a list": "y = sum(e['w'] for e in o.parts); o.parts[1]['w'] += a; return y * x",
    "changed outside": "return np.array(o.outside) * x",
    "an index": "y = o.state[o.n % 2]; o.n += 1; o.state[o.n % 2] = y + a; return y * x",
    "two names": "o.other = o.state; y = np.array(o.other); o.state[0] += a; return y * o.other[0]",
    "a branch": "y = 1.0 if min(o.state) > 0 else 2.0\no.state[0] += 0.125; return y * x",
    "a part": "y = sum(o.state[1:]); o.state[1] += a; return y * x",
    "sorted": "y = sorted(o.state); o.state[0] += a; return np.array(y) * x",
    "a helper": "y = o.total(); o.state[1] += a; return y * x",
    "a copy": "y = list(o.state); y[0] = 2.0; o.state[1] += a; return np.array(y) * x",
    "it is returned": "o.state[0] += a; return o.state, x * 1",
}
CONSTANTS = {  # which are what is there already in some of the calls
    "an item": "y = np.array(o.state) * x; o.state[0] = 1.0; return y",
    "all items": "y = sum(o.state) * x; o.state[:] = [1.0, 2.0]; return y",
    "a key": "y = sum(o.d.values()) * x; o.d['p'] = 1.0; return y",
    "keys": "y = sum(o.d.values()) * x; o.d.update(p=1.0, q=1.0); return y",
    "another list": "y = np.array(o.state) * x; o.state = [1.0, 2.0]; return y",
    "NaN": "y = np.array(o.state) * x; o.state[0] = math.nan; return y",
}
RETURNED = {  # a container that the function changes
    "an item": "o.state[0] += a; return o.state, x * 1",
    "an item of arrays": "o.state[0] = x.sum(); return o.state",
    "a key": "o.d['p'] += a; return o.d, x * 1",
    "a key of arrays": "o.d['q'] = x[0]; return {'d': o.d}",
    "a row": "o.rows[0][1] += x[1]; return o.rows",
    "a row of itself": "o.rows[0] = [x[0], 1.0]; return [o.rows, o.rows[0]]",
    "another list": "o.state = [o.state[0] + a, 1.0]; return (o.state,)",
}
RIGHT = {  # as often as they are replayed
    "it grows": "o.state.append(a); return sum(o.state) * x",
    "it shrinks": "y = sum(o.state)\nif len(o.state) > 1: o.state.pop()\nreturn y * x",
    "another type": "y = sum(o.state); o.state[0] = int(y) if y < 2 else 0.5; return y * x",
    "a key is new": "o.d[str(o.n)] = a; o.n += 1; return sum(o.d.values()) * x",
    "a key goes": "y = sum(o.d.values())\nif 'q' in o.d: del o.d['q']\nreturn y * x",
    "a text": "y = len(str(o.state)); o.state[0] += a; return y * x",
    "a number of steps": "y = 0\nfor _ in range(sum(o.count)): y += 1\no.count[0] += 1; return y * x",
    "equality": "y = o.state == [1.0, 2.0]; o.state[0] += 0.25; return y * x",
    "a member": "y = 0.25 in o.state; o.state[1] += a; return y * x",
    "NaN": "y = np.array(o.state); o.state[0] = math.nan; o.state[1] += a; return y * x",
    "two lists of one": "o.other = o.state; o.state = [v + a for v in o.state]; return np.array(o.other) * x",
    "in itself": "o.parts.append(o.parts) if len(o.parts) < 3 else None; return o.parts[0]['w'] * x",
}


class Model:
    """An object with such state."""

    def __init__(self) -> None:
        self.state, self.other, self.outside = [-0.5, 0.25], [0.0], [1.0, 2.0]
        self.count, self.mixed = [0, 1], [1, 2.0, np.float64(0.5)]
        self.rows = [[1.0, 2.0], [3.0, 4.0]]
        self.d, self.parts = {"p": 1.0, "q": 0.5}, [{"w": 1.0}, {"w": 2.0}]
        self.n = 0

    def total(self) -> float:
        return sum(self.state)


def function_of(body: str, o: Any) -> Any:
    names = {"o": o, "np": np, "math": math}
    exec("def function(a, x):\n" + "".join(f"    {line}\n" for line in body.split("\n")), names)
    return names["function"]


def same(have: Any, want: Any) -> bool:
    if isinstance(want, (list, tuple)):
        return type(have) is type(want) and len(have) == len(want) and all(map(same, have, want))
    if isinstance(want, dict):
        return [*have] == [*want] and all(same(have[key], want[key]) for key in want)
    return np.allclose(np.asarray(have), np.asarray(want), rtol=1e-12, equal_nan=True) and (
        np.asarray(have).dtype == np.asarray(want).dtype
    )


def run(body: str, is_changed_outside: bool) -> Any:
    """Call a function accelerated and plain, each with an object of its own; return the accelerated one."""
    have, want = Model(), Model()
    plain, accelerated = function_of(body, want), tj.dlaccelerate(function_of(body, have))
    for call in range(24):
        a, x = 0.01 * call, np.array([1.0 + call, 2.0])
        for o in (have, want):
            o.outside[call % 2] += 0.5
            if is_changed_outside and call % 5 == 4:
                o.state, o.d["p"], o.count[0] = [0.1 * call, -0.2], 0.1 * call, call % 3
        assert same(accelerated(a, x), plain(a, x.copy()))
        for name in ("state", "count", "mixed", "rows", "d", "other", "outside"):
            assert same(getattr(have, name), getattr(want, name)), (name, call)
        assert (have.other is have.state) == (want.other is want.state)
        numbers = [*have.state, *have.count, *have.mixed, *have.d.values()]
        kinds = [*want.state, *want.count, *want.mixed, *want.d.values()]
        is_of_arrays = any(type(number) is tj.dlarray for number in numbers)
        assert is_of_arrays or [*map(type, numbers)] == [*map(type, kinds)]
    return accelerated


@pytest.mark.parametrize("is_changed_outside", [False, True])
@pytest.mark.parametrize("body", REPLAYED.values(), ids=REPLAYED)
def test_replays_read_and_store_it(body: str, is_changed_outside: bool) -> None:
    accelerated = run(body, is_changed_outside)
    assert accelerated.stats.hits >= 12, accelerated.explain()


@pytest.mark.parametrize("is_changed_outside", [False, True])
@pytest.mark.parametrize("body", RETURNED.values(), ids=RETURNED)
def test_a_container_that_is_returned_has_what_was_put_into_it(body: str, is_changed_outside: bool) -> None:
    assert run(body, is_changed_outside).stats.hits >= 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("body", CONSTANTS.values(), ids=CONSTANTS)
def test_a_constant_is_stored_where_the_number_varies(body: str) -> None:
    run(body, True)
    have, want = Model(), Model()
    plain, accelerated = function_of(body, want), tj.dlaccelerate(function_of(body, have))
    for call in range(24):
        for o in (have, want):
            if call % 3 == 1:
                o.state[0], o.d["p"] = 0.1 * call, 0.3 * call
        assert same(accelerated(1.0, np.ones(2)), plain(1.0, np.ones(2)))
        assert same(have.state, want.state) and same(have.d, want.d), call


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_changed_outside", [False, True])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_changes_otherwise_is_right(body: str, is_changed_outside: bool) -> None:
    run(body, is_changed_outside)


def test_a_list_that_is_no_state_has_one_trace() -> None:
    o = SimpleNamespace(sizes=[2, 3], state=[1.0, 2.0])

    @tj.dlaccelerate
    def function(x: Any) -> Any:
        y = np.array(o.state) @ x * sum(o.sizes)
        o.state[0] += 1.0
        return y

    for call in range(8):
        assert function(np.ones(2)).item() == pytest.approx((3.0 + call) * 5)
    assert function.stats.hits >= 4


def test_keys_whose_hash_is_code_are_not_asked() -> None:
    asked = []

    class Key:
        def __hash__(self) -> int:
            asked.append(self)
            return 5

    class Plain:
        pass

    o = SimpleNamespace(d={Key(): 1.0}, plain={Plain(): 1.0, (1, "a"): 2.0})

    @tj.dlaccelerate
    def function(x: Any) -> Any:
        y = (sum(o.d.values()) + sum(o.plain.values())) * x
        o.plain.update({key: v + 1.0 for key, v in o.plain.items()})
        return y

    count = len(asked)
    for call in range(8):
        assert function(np.ones(1)).item() == 4.0 + 2 * call
    assert len(asked) == count and function.stats.hits >= 4


def test_a_derivative_by_such_a_number_is_none() -> None:
    o = SimpleNamespace(state=[1.0, 2.0])

    @tj.dlaccelerate
    def function(x: Any) -> Any:
        y = (np.array(o.state) * x * x).sum()
        o.state = [v + 1.0 for v in o.state]
        return tj.dlgradient(y, x)

    for call in range(8):
        np.testing.assert_allclose(function(np.ones(2)), [2.0 + 2 * call, 4.0 + 2 * call])
    assert function.stats.hits >= 4
