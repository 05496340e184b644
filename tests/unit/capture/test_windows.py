# SPDX-License-Identifier: BSD-3-Clause
"""Windows of numbers in lists and deques: what code appends, drops and moves while it reads all of them."""

import contextlib
import random
import warnings
from collections import OrderedDict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from effort import sweep

import tracejit as tj

_OF_BOTH = (
    "W.append(V); W.DROP", "W.DROP; W.append(V)", "W.insert(0, V); W.pop()", "W.append(V); del W[0]",
    "W[0], W[2] = W[2], W[0]", "W[1] += V", "W.reverse()", "W.append(W[0] + V); W.DROP", "W[-1] = W[0]; W[0] = V",
    "W.insert(1, W.pop())", "W.remove(W[1]); W.append(V)", "W.extend([V, V]); W.DROP; W.DROP", "W[0] = len(W)",
    "t = W[0]; W[0] = W[1]; W[1] = t",
)  # fmt: skip
_MOVES = {
    list: (
        *_OF_BOTH, "W[:-1] = W[1:]; W[-1] = V", "W = W[1:] + [V]", "W = [V] + W[:-1]", "W.sort()", "W[:] = W[::-1]",
        "W = sorted(W)", "W = list(W)", "W[1:] = W[:-1]", "W = [v * 0.5 for v in W]", "W.extend([V, V]); del W[:2]",
        "W += [V]; del W[0]",
        "W.append(V); W = W[-4:]", "W.append(V); W = W[1:]", "W.extend([V, V]); W = W[2:]",
    ),
    deque: (
        *_OF_BOTH, "W.rotate(1)", "W.rotate(-2)", "W.appendleft(V); W.pop()", "W.extendleft([V, V]); W.pop(); W.pop()",
        "W.appendleft(W.pop())", "W += [V]; W.popleft()",
    ),
}  # fmt: skip
_OF_FULL_DEQUE = (
    "W.append(W[0])", "W.append(W[1] + V)", "W.append(V); a = W[0]", "W.append(V); W.append(W[0])",
    "W.append(V)", "W.appendleft(V)", "W.extend([V, a])", "W += [V, V]", "W.extendleft([V])",
)  # fmt: skip
_VALUES = ("float(x[0])", "x.sum()", "a", "a * 2", "x[1].item()", "n", "W[2]", "1.5", "float(x[0] + W[1])")
_READS = (
    "sum(W)", "np.mean(W)", "np.dot(np.arange(len(W)), W)", "np.array(W) @ np.ones(len(W))", "W[0]", "W[-1]", "max(W)",
    "np.std(W)", "sum(v * v for v in W)", "float(len(W))", "np.asarray(W)[1:].sum()", "min(W[0], W[1])",
)  # fmt: skip
_OUTSIDE = (
    "W[1] = 0.25", "W.clear(); W.extend([0.5, 1.5, 2.5, 3.5])", "W[0] = 3", "W = KIND([1.0, 2.0, 4.0, 8.0])",
    "W.reverse()", "o.other = W",
)  # fmt: skip


def function_of(body: str, names: dict[str, Any]) -> Any:
    exec("def function(a, n, x):\n" + "".join(f"    {line}\n" for line in body.split("; ")), names)
    return names["function"]


def held(o: Any) -> Any:
    return o.other is o.w, type(o.w), getattr(o.w, "maxlen", None)


def run(body: str, kind: Any, calls: list[tuple[float, int, list[float], str]], accelerated: Any) -> Any:
    o = SimpleNamespace(w=kind([0.0, 1.0, 2.0, 3.0]), other=None)
    names = {"o": o, "np": np, "kind": kind}
    function = accelerated(function_of(body.replace("W", "o.w"), names))
    found = []
    for a, n, x, change in calls:
        with contextlib.suppress(IndexError):  # by now it may be too short
            exec(change.replace("W", "o.w").replace("KIND", "kind"), names)
        try:
            result: Any = [
                *np.asarray(function(a, n, np.array(x))).tolist(),
                *map(float, [*o.w, *(o.other or ())]),
            ]
        except (IndexError, ValueError) as error:
            result = type(error)
        found.append((result, *held(o)))
    return found, function


def calls_of(draw: random.Random, number: int, outside: float) -> list[tuple[float, int, list[float], str]]:
    changes = [draw.choice(_OUTSIDE) if draw.random() < outside else "pass" for _ in range(number)]
    return [
        (draw.choice([0.5, 1.0, draw.random()]), draw.randrange(3), [draw.random(), draw.random()], change)
        for change in changes
    ]


def assert_same(body: str, kind: Any, calls: Any, is_random: bool = False) -> Any:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        have, function = run(body, kind, calls, tj.dlaccelerate(audit=False))
    if any(issubclass(warning.category, tj.LostChangeWarning) for warning in told):
        assert is_random, body
        return function
    want, _ = run(body, kind, calls, lambda function: function)
    for number, (one, other) in enumerate(zip(have, want, strict=True)):
        assert one[1:] == other[1:], (body, number)
        is_error = isinstance(other[0], type)
        assert one[0] == (other[0] if is_error else pytest.approx(other[0], rel=1e-12)), (body, number)
    return function


def full(elements: Any) -> Any:
    """Return a deque that drops an element for each new one."""
    return deque(elements, maxlen=4)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(sweep(50, 160)))
def test_random_programs_do_what_plain_ones_do(seed: int) -> None:
    draw = random.Random(seed)
    kind = draw.choice([list, deque, full])
    moves = _MOVES[list] if kind is list else (*_MOVES[deque], *(_OF_FULL_DEQUE * 2 if kind is full else ()))
    steps = draw.sample(moves, draw.choice([1, 1, 2, 3]))
    steps = [step.replace("DROP", "pop(0)" if kind is list else "popleft()") for step in steps]
    for _ in range(8):
        steps = [step.replace("V", draw.choice(_VALUES), 1) for step in steps]
    place = draw.randrange(len(steps) + 1)
    reads = draw.sample(_READS, draw.choice([0, 1, 1, 2]))
    body = "; ".join([*steps[:place], f"y = {' + '.join([*reads, '0.0'])}", *steps[place:], "return y * x"])
    calls = calls_of(draw, 30, draw.choice([0.0, 0.0, 0.1]))
    assert_same(body, kind, calls, is_random=True)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (full, "W.append(float(x[0])); return np.mean(W) * x"),
        (full, "W.append(x.sum()); return np.std(W) * x"),
        (full, "y = sum(W); W.appendleft(a); return y * x"),
        (full, "y = np.stack(W); W.append(x[0]); return y @ np.ones(4) * x"),
        (deque, "W.rotate(1); W[0] += a; return np.array(W)[:2] * x"),
        (deque, "v = W.popleft(); W.append(v + x[0]); return v * x"),
        (list, "W.pop(0); W.append(float(x[0])); return np.array(W) @ np.ones(4) * x"),
        (list, "W.insert(0, a); W.pop(); return np.dot(W, W) * x"),
        (list, "W[:-1] = W[1:]; W[-1] = float(x[0]); return sum(W) * x"),
        (list, "W.append(a); del W[0]; return sum(W) * x"),
        (list, "W.append(a); W = W[-4:]; return sum(W) * x"),
        (list, "W.reverse(); W[0] += a; return W[0] * x"),
        (list, "e = 1.0 - x[0]; d = e - W[-1]; W.append(e); W.pop(0); return (e + d) * x"),
    ],
)
def test_windows_are_replayed(kind: Any, body: str) -> None:
    calls = [(0.1 * n, n, [0.2 * n, 1.0 - n], "pass") for n in range(24)]
    assert assert_same(body, kind, calls).stats.hits >= 14


def test_a_window_that_fills_is_replayed_once_it_is_full() -> None:
    window: deque[Any] = deque(maxlen=5)

    @tj.dlaccelerate(audit=False)
    def function(x: Any) -> Any:
        window.append(x.sum())
        return np.mean(window) * x

    with pytest.warns(tj.NotAcceleratedWarning, match="also reads"):
        for n in range(40):
            want = np.mean([[2.0 * k] for k in range(max(0, n - 4), n + 1)])
            np.testing.assert_allclose(function(np.full(2, float(n))), np.full(2, want * n))
    assert function.stats.hits >= 20


def test_a_long_window_takes_as_many_recordings_as_a_short_one() -> None:
    for size in (4, 64):
        window = deque([0.0] * size, maxlen=size)

        @tj.dlaccelerate(audit=False)
        def function(x: Any, window: Any = window) -> Any:
            window.append(float(x[0]))
            return np.mean(window) * x

        for n in range(16):
            function(np.full(2, float(n)))
        assert function.stats.traces <= 6


@pytest.mark.parametrize("name", ["mean", "sum", "max", "std", "median", "sort", "cumsum", "diff"])
def test_functions_of_numpy_take_deques_of_traced_values(name: str) -> None:
    def compute(x: Any) -> Any:
        return getattr(np, name)(deque([x[0], x[1] * 2, 1.0])) * 1.0

    x = np.array([0.5, -1.5])
    want = compute(x)
    np.testing.assert_allclose(tj.dlfeval(compute, tj.dlarray(x)), want)
    accelerated = tj.dlaccelerate(compute)
    for _ in range(4):
        np.testing.assert_allclose(accelerated(x), want)
    assert accelerated.stats.hits == 2


def test_deques_of_traced_values_have_derivatives() -> None:
    def loss(x: Any) -> Any:
        window = deque([x[0], x[1], x[0] * x[1]], maxlen=3)
        window.append(x[1] ** 2)
        return tj.dlgradient(np.mean(window) + np.stack(window).max() + np.array(window)[0], x)

    np.testing.assert_allclose(tj.dlfeval(loss, tj.dlarray([0.5, 2.0])), [2 / 3, (1 + 0.5 + 4) / 3 + 4 + 1])


@pytest.mark.parametrize(
    "body",
    [
        "o.w.append((a, float(x[0]))); return sum(p * q for p, q in o.w) * x",
        "y = np.array(o.w); o.w.append((float(x[1]), a)); return y.sum(0) * x",
        "o.w.rotate(1); o.w[0] = (a, a); return max(p for p, _ in o.w) * x",
        "p, q = o.w.popleft(); o.w.append((q, p + a)); return np.mean([p for p, _ in o.w]) * x",
    ],
)
def test_windows_of_pairs_are_replayed(body: str) -> None:
    results, windows, functions = [], [], []
    for accelerated in (tj.dlaccelerate(audit=False), lambda function: function):
        o = SimpleNamespace(w=deque([(0.5, 1.0), (1.5, -1.0), (0.0, 2.0)], maxlen=3))
        function = accelerated(function_of(body, {"o": o, "np": np}))
        results.append([np.asarray(function(0.25 * n, n, np.array([0.5 * n, 1.0]))) for n in range(24)])
        windows.append(np.array(o.w, float))
        functions.append(function)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    np.testing.assert_allclose(windows[0], windows[1], rtol=1e-12)
    assert functions[0].stats.hits >= 12


def test_a_list_that_grows_is_refused_after_a_few_recordings() -> None:
    o = SimpleNamespace(w=[1.0], q=deque([1.0]))

    @tj.dlaccelerate(audit=False)
    def replaces(x: Any, a: float) -> Any:
        o.w = [*o.w, a]
        return sum(o.w) * x

    @tj.dlaccelerate(audit=False)
    def inserts(x: Any, a: float) -> Any:
        o.q.appendleft(a)
        return x * 2

    for function, of in ((replaces, lambda: o.w), (inserts, lambda: o.q)):
        with pytest.warns(tj.NotAcceleratedWarning):
            for _ in range(60):
                function(np.ones(2), 1.0)
        assert len(of()) == 61 and function.stats.traces <= 32


@pytest.mark.parametrize("first", [0.0, "zeros", "other"])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_delay_lines(first: Any, size: int) -> None:
    def run(accelerated: Any) -> Any:
        line = deque(
            [np.zeros(2) if first == "zeros" else float(n) * (first == "other") for n in range(size)],
            maxlen=size,
        )

        def delayed(x: Any) -> Any:
            line.append(x if first == "zeros" else float(x[0]))
            return line[0] * x

        function = accelerated(delayed)
        found = [np.asarray(function(np.array([1.0 + n, 2.0]))).tolist() for n in range(size + 14)]
        return found, function, [np.asarray(part).tolist() for part in line]

    have, want = run(tj.dlaccelerate(audit=False)), run(lambda function: function)
    assert have[0] == want[0] and have[2] == want[2]
    assert have[1].stats.hits >= 6


def test_two_full_deques_that_pass_elements_on() -> None:
    def run(accelerated: Any) -> Any:
        d, e = deque([1.0, 1.0, 1.0, 5.0, 6.0], maxlen=5), deque([2.0, 2.0, 2.0, 7.0], maxlen=4)

        def function(x: Any) -> Any:
            e.append(d[0])
            d.append(e[0])
            return x * 1

        passing, found = accelerated(function), []
        for _ in range(20):
            passing(np.ones(2))
            found.append(([*map(float, d)], [*map(float, e)]))
        return found

    assert run(tj.dlaccelerate) == run(lambda function: function)


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_a_number_that_is_popped_and_put_back_comes_last(kind: Any) -> None:
    def run(accelerated: Any) -> Any:
        o = SimpleNamespace(d=kind(a=1.0, b=2.0, c=3.0))

        def function(x: Any) -> Any:
            o.d["a"] = o.d.pop("a") + 1
            return x * next(iter(o.d.values()))

        popping, found = accelerated(function), []
        for _ in range(10):
            popping(np.ones(2))
            found.append([(key, float(value)) for key, value in o.d.items()])
        return found

    assert run(tj.dlaccelerate) == run(lambda function: function)


class Filling:
    """Windows that are empty at first, into which a number argument goes."""

    def __init__(self) -> None:
        self.deque, self.list = deque(maxlen=3), []

    def of_deque(self, v):
        self.deque.append(v)
        return np.mean(self.deque)

    def of_list(self, v):
        self.list.append(v)
        if len(self.list) > 4:
            self.list.pop(0)
        return sum(self.list)


@pytest.mark.parametrize("name", ["of_deque", "of_list"])
@pytest.mark.parametrize("kind", [float, int, np.float64])
def test_a_number_argument_goes_into_a_window_that_fills(name: str, kind: Any) -> None:
    one, other = Filling(), Filling()
    accelerated = tj.dlaccelerate(getattr(other, name))
    for call in range(60):
        value = kind(call * call % 17 + call)
        assert accelerated(value) == pytest.approx(getattr(one, name)(value))
        assert other.deque == one.deque and other.list == one.list
    assert accelerated.stats.hits >= 40


def test_a_number_argument_that_something_keeps_is_recorded_by_value() -> None:
    kept = {}

    def function(x: Any, v: Any) -> Any:
        kept.setdefault(len(kept) % 7, []).append([v])
        return x * v

    accelerated = tj.dlaccelerate(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.TraceJitWarning)
        for call in range(40):
            assert accelerated(np.ones(2), float(call)).tolist() == [call, call]
    assert [v for values in kept.values() for v in values].count([39.0]) == 1
    assert accelerated.stats.traces < 90
