"""float(x), int(x), x.item() and the like of values that vary: numbers that vary with them, in one trace."""

import collections
import gc
import itertools
import json
import math
import queue
import statistics
import sys
import threading
import types
import warnings

import numpy as np
import pytest
from effort import by_turns
from numbers_in_turn import assert_same, outcome

import tracejit as tj
from tracejit import dlaccelerate, dlfeval, dlgradient
from tracejit.record import monitor, recorder

VALUES = (0.5, 1.5, -2.5, 3.75, -0.25, 2.0, 1e3, -7.5)
SPECIAL = (0.5, -0.0, math.nan, 1.5, math.inf, 2.0**62, -math.inf, 1e300, -(2.0**63), 0.0)
_Real = float


def _difference(a, b):
    return a - 2 * b


CONVERSIONS = {
    "float": lambda v: float(v),
    "int": lambda v: int(v),
    "round": lambda v: round(v),
    "floor": lambda v: math.floor(v),
    "ceil": lambda v: math.ceil(v),
    "trunc": lambda v: math.trunc(v),
    "of each other": lambda v: float(int(float(v))),
    "of a result": lambda v: int(float(v) * 3 + 1),
    "of a function of math": lambda v: float(math.atan(float(v))),
    "list": lambda v: list(map(float, (v, v))),
    "tuple": lambda v: tuple(map(int, [v])),
    "loop": lambda v: [a + 1 for a in map(float, [v])],
    "generator": lambda v: sum(float(part) ** 2 for part in [v, v]),
    "by another name": lambda v: _Real(v),
}
OF_ARRAYS = {
    "item": lambda x: x.sum().item(),
    "item at a place": lambda x: x.item(1),
    "item of one element": lambda x: x[:1].item(),
    "tolist": lambda x: x.tolist(),
    "tolist of rows": lambda x: np.stack([x, x * 2]).tolist(),
    "tolist of a number": lambda x: x[0].tolist(),
    "unpacked": lambda x: _difference(*x[:2].tolist()),
    "float of one element": lambda x: float(x[1:2].reshape(())),
    "in turn": lambda x: [float(part) for part in x],
    "argmax": lambda x: x[int(np.argmax(x))] * int(np.argmin(x)),
    "count": lambda x: x.sum() / max(int((x > 0).sum()), 1),
    "norm": lambda x: x / float(np.sqrt(np.sum(x * x))),
    "clipped": lambda x: x * min(max(float(x[0]), -1.0), 1.0),
    "compared": lambda x: x if float(abs(x).max()) < 2 else -x,
    "rounded": lambda x: x[round(float(abs(x[0]))) % 3],
    "into an array": lambda x: np.array([float(x[0]), int(x[1]), x[2].item()]),
}
DTYPES = (np.float64, np.float32, np.int64, np.int8, np.uint8, np.uint64, np.bool_)


def _compare(function, arguments, hits, **options):
    """Call a function accelerated and plain; compare results and errors, and the number of replays."""
    accelerated = dlaccelerate(function, audit=False, **options)
    for values in arguments:
        found = outcome(accelerated, *values)
        assert_same(found, outcome(lambda *args: dlfeval(function, *args), *values))
    assert accelerated.stats.hits == hits, accelerated.explain()
    return accelerated


@pytest.mark.sampled
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_of_elements_of_arrays(convert, dtype):
    _compare(lambda x: convert(x[0]), [(np.array([v, 0], dtype),) for v in VALUES], hits=len(VALUES) - 2)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, kind in itertools.product(CONVERSIONS, (float, np.float64, np.float32))
        if (name, kind) != ("trunc", np.float32)  # which has no __trunc__
    ],
)
def test_of_numbers(name, kind):
    convert, x = CONVERSIONS[name], np.arange(3.0)
    # The third value shows that the number varies.
    _compare(lambda x, v: (x * v, convert(v)), [(x, kind(v)) for v in VALUES], hits=len(VALUES) - 4)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", [name for name in CONVERSIONS if name != "trunc"]
)  # which NumPy's integers have not
def test_of_integers(name):
    arguments = [(np.array([v, 1]),) for v in (3, -2, 0, 7, 2**40, 5)]
    _compare(lambda x: CONVERSIONS[name](x[0]), arguments, hits=4)


@pytest.mark.sampled
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_of_special_values(convert, dtype):
    """Errors and integers of more than 64 bits are those of Python."""
    accelerated = dlaccelerate(lambda x: convert(x[0]), max_variants=20)
    for v in SPECIAL * 3:
        with np.errstate(all="ignore"):
            x = np.array([v, 0], dtype)
            assert_same(outcome(accelerated, x), outcome(lambda x: dlfeval(accelerated.function, x), x))


@pytest.mark.sampled
@pytest.mark.parametrize("function", OF_ARRAYS.values(), ids=OF_ARRAYS)
def test_of_arrays(function):
    rng = np.random.default_rng(0)
    ways = 2 if function in (OF_ARRAYS["clipped"], OF_ARRAYS["compared"]) else 1
    arguments = [(np.abs(rng.normal(size=3)) + (3 * n % 2),) for n in range(ways)] * 6
    arguments = [(x * (1 + 0.1 * n / 12),) for n, (x,) in enumerate(arguments)]
    accelerated = dlaccelerate(function, audit=False)
    for (x,) in arguments:
        found, expected = accelerated(x), dlfeval(function, x)
        if isinstance(expected, np.ndarray):  # of numbers alone
            expected = tj.dlarray(expected)
        assert_same(found, expected)
    assert accelerated.stats.hits >= len(arguments) - 2 * ways, accelerated.explain()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function", [lambda x: x[0].item(), lambda x: x.tolist(), lambda x: [float(x[0]), int(x[1])]]
)
def test_of_each_dtype(function, dtype):
    arguments = [
        (np.array([a, b]).astype(dtype),) for a, b in ((0, 1), (1, 1), (2, 5), (7, 3), (0, 1), (9, 1))
    ]
    accelerated = dlaccelerate(function, audit=False)
    for (x,) in arguments:
        found, expected = accelerated(x), function(x)
        assert found == expected and repr(found) == repr(expected)  # of the types of Python


@pytest.mark.parametrize(
    "function", [lambda z: z[0].item(), lambda z: z.tolist(), lambda z: z.sum().item() * 2j]
)
def test_of_complex_numbers(function):
    _compare(function, [(np.array([n + 1j, 2 - n * 1j]),) for n in range(6)], hits=4)


def test_a_sequence_of_programs():
    """Every pair of a conversion and what Python does with numbers, with values in turn."""
    uses = {
        "sums": lambda a, b: a + b - 1,
        "quotients": lambda a, b: a / (abs(b) + 1),
        "whole": lambda a, b: a // 2 + b % 3,
        "powers": lambda a, b: a**2 + 2.0**b,
        "order": lambda a, b: sorted([a, b, 0.75]),
        "largest": lambda a, b: max(a, b, 1),
        "equal": lambda a, b: a == b,
        "branch": lambda a, b: a if b > 1 else -a,
        "parts": lambda a, b: (a.real, b.imag),
        "text": lambda a, b: f"{a:.2f} {b}",
        "key": lambda a, b: {a: 1}[a] + b,
        "types": lambda a, b: (type(a).__name__, isinstance(b, float), isinstance(b, int)),
        "array": lambda a, b: (np.array([a, b]) * 2).tolist(),
        "product": lambda a, b: (np.arange(2.0) * a + b).tolist(),
        "truth": lambda a, b: bool(a) and not b,
        "range": lambda a, b: len(range(abs(int(a)))) + int(b),
    }
    conversions = [CONVERSIONS[name] for name in ("float", "int", "round", "of each other", "of a result")]
    for first, use, second in by_turns(conversions, [*uses.values()], conversions):
        function = lambda x, use=use, first=first, second=second: use(first(x[0]), second(x[1]))
        accelerated = dlaccelerate(function, max_variants=30)
        for a, b in ((0.5, 1.5), (2.5, -1.5), (3.5, 0.5), (0.5, 1.5), (-4.25, 2.5)):
            x = np.array([a, b])
            assert_same(accelerated(x), dlfeval(function, x))


@pytest.mark.sampled
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_in_dlfeval_as_in_numpy(convert):
    for value in (*VALUES, *SPECIAL):
        x = np.array([value, 0.0])
        with np.errstate(all="ignore"):
            assert_same(
                outcome(lambda x: dlfeval(lambda x: convert(x[0]), x), x), outcome(lambda x: convert(x[0]), x)
            )


DIFFERENTIABLE = {
    "float": lambda x: float(x[0]) * x.sum(),
    "float of a sum": lambda x: float(np.sum(x * x)) ** 1.5,
    "item": lambda x: (x * x.mean().item()).sum() + x.item(1) ** 3,
    "tolist": lambda x: math.prod(x.tolist()),
    "rows": lambda x: sum(row[0] * row[1] for row in np.stack([x, x * x], axis=1).tolist()),
    "unpacked": lambda x: _difference(*x[:2].tolist()) * x[2],
    "map": lambda x: sum(v * v for v in map(float, x)),
    "list of a map": lambda x: np.array(list(map(float, x))) @ x,
    "loop": lambda x: sum(float(v) ** n for n, v in enumerate(x)),
    "math": lambda x: math.exp(float(x[0])) * float(math.atan(x[1])) + x[2].item(),
    "largest": lambda x: max(float(v) for v in x) * x[0],
    "clipped": lambda x: min(max(float(x[0]), -0.25), 0.25) * x[1] + float(x[2]),
    "branch": lambda x: float(x[0]) * x[1] if float(x[2]) > 1 else x[1],
    "norm": lambda x: (x / float(np.sqrt(np.sum(x * x))))[0],
    "array": lambda x: np.array([float(x[0]), 2.0 * float(x[1])]).sum() * x[2],
    "write": lambda x: _written(np.zeros(3), x).sum(),
    "parts": lambda x: float(x[0]).real * x[1].item().conjugate() + float(x[2]).imag,
    "complex": lambda x: (((x[0] + 1j * x[1]).item() * (x[2] - 2j)).item().conjugate() * 1j).real,
    "result": lambda x: float((x**3).sum()),
    "derivative": lambda x: float(dlgradient((x**3).sum(), x)[1]) if type(x) is tj.dlarray else 3 * x[1] ** 2,
    "shown": lambda x: len(f"{float(x[0]):8.3f}{x[1].item()}"[:8]) * x.sum(),
    "a step": lambda x: _slope(lambda t: math.sin(float(t)) * t, x[0].item()) * x[1],
}


def _written(z, x):
    z[0], z[2] = float(x[0]) ** 2, x[1].item() * x[2]
    return z * x


def _slope(function, at):
    return (function(at + 1e-3) - function(at - 1e-3)) / 2e-3


@pytest.mark.sampled
@pytest.mark.parametrize("function", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_derivatives_go_through(function):
    both = lambda x: (y := function(x), dlgradient(y, x))
    accelerated = dlaccelerate(both, audit=False)
    for n in range(5):
        x = np.array([0.5, 1.25, 2.0]) + 0.03125 * n
        slopes = [_slope(lambda t, e=e, x=x: float(function(x + t * e)), 0.0) for e in np.eye(3)]
        for run in (accelerated, lambda x: dlfeval(both, x)):
            y, gradient = run(x)
            assert float(y) == pytest.approx(float(function(x)), rel=1e-13)
            np.testing.assert_allclose(tj.extractdata(gradient), slopes, rtol=1e-4, atol=1e-5)
    assert accelerated.stats.hits >= (0 if function is DIFFERENTIABLE["shown"] else 3), accelerated.explain()


def test_other_derivatives_go_through():
    function = lambda x: float(x[0]) ** 2 * x[1:].sum().item()
    x, v = np.array([0.5, 1.25, 2.0]), np.array([1.0, -1.0, 0.5])
    gradient, hessian = np.array([3.25, 0.25, 0.25]), np.array([[6.5, 1, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(tj.jvp(function, (x,), (v,))[1].item(), gradient @ v)
    np.testing.assert_allclose(tj.vjp(function, (x,), 2.0)[1][0], 2 * gradient)
    np.testing.assert_allclose(tj.jacobian(function, x), gradient)
    np.testing.assert_allclose(tj.hessian(function, x), hessian)
    np.testing.assert_allclose(tj.hvp(function, x, v), hessian @ v)
    cut = lambda x: dlgradient(float(tj.stop_gradient(x[0])) * x.sum(), x)
    np.testing.assert_array_equal(dlfeval(cut, x), np.full(3, 0.5))


def test_integers_in_dlfeval_are_true_ones():
    kinds = dlfeval(
        lambda x: [type(n) is int for n in (int(x[0]), round(x[0]), np.argmax(x).item())], np.ones(2)
    )
    assert kinds == [True] * 3


def test_floats_that_dlfeval_gave_are_true_ones():
    kept = []
    dlfeval(lambda x: kept.extend([float(x[0]), x.sum().item(), {"a": x.tolist()}]), np.array([0.5, 1.5]))
    assert kept == [0.5, 2.0, {"a": [0.5, 1.5]}] and type(kept[0]) is type(kept[2]["a"][0]) is float


class Filter:
    def __init__(self):
        self.level, self.seen, self.rows = 0.0, 0, np.zeros((4, 2))

    def step(self, x):
        error = float(x[0]) - self.level
        self.level += 0.5 * error
        place = int(abs(error)) % 4
        self.rows[place] += x
        self.seen += int(x[1] > 0)
        return self.level if error > 0 else round(self.level), float(self.rows.sum())


@pytest.mark.slow
def test_state_of_objects():
    fast, plain = Filter(), Filter()
    step = dlaccelerate(fast.step)
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = rng.normal(size=2) * 3
        assert step(x) == pytest.approx(plain.step(x), rel=1e-13)
        assert (fast.level, fast.seen) == pytest.approx((plain.level, plain.seen), rel=1e-13)
        np.testing.assert_allclose(fast.rows, plain.rows, rtol=1e-13)
        assert type(fast.level) is float and type(fast.seen) is int
    assert step.stats.hits > 5 and step.stats.uncompiled == 0


class Holder:
    """An object with the special methods by which Python asks for a number."""

    def __init__(self, x):
        self.x = x

    def __float__(self):
        return float(self.x[0])

    def __int__(self):
        return int(self.x[0])

    def __index__(self):
        return int(self.x[0])

    def __hash__(self):
        return int(self.x[0])

    def __eq__(self, other):
        return float(self.x[0]) == float(other.x[0])


@pytest.mark.parametrize("number", [math.nan, 1.5, 0.0])
def test_keys_of_tables(number):
    """A NaN has the hash of its identity."""

    def function(x):
        a = float(x[0])
        table = {a: 1, "b": 2}
        return a in table, table[a], len({a, a, 2.0})

    for run in (dlaccelerate(function), lambda x: dlfeval(function, x)):
        for _ in range(3):
            assert run(np.array([number])) == (True, 1, 2)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_into_an_array_of_integers(dtype):
    """What does not fit is an error, as in NumPy."""

    def function(x):
        z = np.zeros(2, dtype)
        z[0] = float(x[0])
        return z

    accelerated = dlaccelerate(function, max_variants=20)
    values = (1.5, 2.5, 200.75, math.nan, 3.0, math.inf, 4e9, -0.5, 1e30, 255.5, -(2.0**63), 2.0**63, 5.0)
    for value in (*values, *values):
        x = np.array([value])
        try:
            expected = function(x).tolist()
        except (OverflowError, ValueError):
            with pytest.raises((OverflowError, ValueError)):
                accelerated(x)
        else:
            assert accelerated(x).tolist() == expected
    assert accelerated.stats.hits > 5


def test_in_another_thread():
    """A number that another thread takes out of a container is its value there."""
    waiting, found = collections.deque(), []

    def function(x):
        ready = threading.Event()
        thread = threading.Thread(target=lambda: (ready.wait(), found.append(waiting.popleft() * 2)))
        thread.start()
        waiting.append(float(x[0]))
        ready.set()
        thread.join()
        return x * 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accelerated = dlaccelerate(function)
        for n in range(4):
            accelerated(np.array([n + 0.5]))
    assert found == [1.0, 3.0, 5.0, 7.0]


def test_a_call_that_fails_before_its_next_instruction():
    """The instruction that asks has no line where its error is handled."""

    def function(x):
        try:
            return list(map(float, [x[0], "a"]))
        except ValueError:
            return float(x[0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accelerated = dlaccelerate(function)
        for n in range(12):
            assert accelerated(np.array([n + 0.5])) == n + 0.5


@pytest.mark.parametrize("block", [monitor.paused, monitor.resumed, monitor.unwatched, recorder.suspended])
def test_nothing_goes_on_after_an_interrupt(block):
    """A block whose generator an interrupt has left behind changes nothing when that is collected."""
    left = queue.SimpleQueue()  # what is in it stays after an error

    def function(x):
        y = float(x[0])
        started = block()
        left.put(started)
        started.__enter__()
        raise KeyboardInterrupt(y)

    before = sys.gettrace(), sys.getprofile()
    with pytest.raises(KeyboardInterrupt):
        dlaccelerate(function)(np.array([1.5]))
    left.get().__exit__(None, None, None)
    assert (sys.gettrace(), sys.getprofile(), recorder.thread.recorder) == (*before, None)
    accelerated = dlaccelerate(lambda x: x * float(x[0]))
    for n in range(4):
        assert accelerated(np.array([n + 0.5])).item() == (n + 0.5) ** 2
    assert accelerated.stats.hits == 2


class TestWhatKeepsItsGuard:
    """Where C code may compute with the number, each value has a trace."""

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: max(map(float, x)),
            lambda x: sum(map(float, x)),
            lambda x: min(2.0, *map(float, x)),
            lambda x: complex(x[0]),
            lambda x: _difference(*map(float, x)),
            lambda x: complex(float(x[0]), x[1]),
            lambda x: "%.3f" % x[0],  # noqa: UP031 - which calls __float__
            lambda x: x[0].__float__() * 2,
            lambda x: np.float64(x[0].__float__()),
            lambda x: float.__new__(float, x[0]),
            lambda x: [*map(float.__mul__, map(float, x), [2.0, 3.0])],
            lambda x: dict(zip("ab", map(float, x), strict=True)),
            lambda x: hash(float(x[0])),
            lambda x: type("Real", (float,), {})(x[0]) + 1,
            lambda x: round(x[0], 1),
            # A map whose elements other code has looked at.
            lambda x: [*map(float, filter(lambda v: v > 1, map(float, x)))],
            lambda x: list(map(float, map(max, map(float, x), [0.0, 1.0]))),
            lambda x: [*map(float, itertools.accumulate(map(float, x), max))],
            lambda x: [v * 2 for v in map(float, map(lambda v: 0.0 if v < 1 else v, map(float, x)))],  # noqa: C417
            lambda x: [*map(float, iter(map(float, x).__next__, 2.5))],
            # What libraries and Python's own functions get from functions of the user's.
            lambda x: json.dumps({"a": x[0]}, default=lambda v: float(v)),
            lambda x: json.dumps({"a": x[0]}, default=lambda v: v.item()),
            lambda x: statistics.mean(float(v) for v in x),
            lambda x: float(Holder(x)) * 2,
            lambda x: math.floor(Holder(x)) + int(Holder(x)),
            lambda x: [5, 6, 7, 8, 9, 10][Holder(x)],
            lambda x: {Holder(x): 1} == {Holder(x): 1},
            # Arrays of NumPy's with other things than numbers.
            lambda x: np.array([10**30, float(x[0])]).tolist(),
            lambda x: np.asarray([float(x[0]), "a"]).tolist(),
            lambda x: np.array([float(x[0])], dtype=object)[0],
            lambda x: np.array([(float(x[0]), 1)], dtype=[("a", float), ("b", int)])["a"].tolist(),
        ],
    )
    def test_each_value_is_right(self, function):
        accelerated = dlaccelerate(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for n in range(12):
                x = np.array([0.5 + n % 5, 3 - n])
                assert_same(accelerated(x), dlfeval(function, x))

    @pytest.mark.slow
    def test_many_elements(self):
        accelerated = dlaccelerate(lambda x: x.tolist()[0])
        for n in range(2):
            accelerated(np.full(101, float(n)))
        (key,) = accelerated.explain().keys
        assert "tolist()" in str(accelerated.explain()) and key is not None


def test_what_is_kept_runs_uncompiled_for_some_calls_only():
    kept = []

    @dlaccelerate
    def function(x):
        number = float(x[0])
        if kept == []:  # which reads all of it
            kept.append(number)
        return x * number

    with pytest.warns(tj.NotAcceleratedWarning, match="a number that varies outlives the call"):
        results = [function(np.full(2, float(n))).tolist() for n in range(12)]
    assert results == [[float(n * n)] * 2 for n in range(12)]
    assert kept == [0.0] and type(kept[0]) is float and function.stats.hits > 3


def test_numbers_are_collected_and_traced_again():
    """While Python takes a Number for a float, the collector does not see it; afterwards it does."""

    @dlaccelerate
    def function(x):
        numbers = [float(part) for part in x]
        gc.collect()
        numbers.append(numbers)  # a cycle
        return sum(numbers[:-1])

    for n in range(6):
        assert function(np.arange(3.0) + n) == 3.0 + 3 * n
    assert function.stats.hits == 4


def test_a_debugger_goes_on(monkeypatch):
    seen = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try:
        function = dlaccelerate(lambda x: x * float(x[0]))
        results = [function(np.full(1, float(n))).item() for n in range(5)]
    finally:
        sys.settrace(before)
    assert results == [float(n * n) for n in range(5)] and seen


def test_threads():
    results = {}

    def work(number):
        function = dlaccelerate(lambda x: x * float(x[0]) + int(x[1]))
        results[number] = [function(np.array([n + 0.5, number])).tolist() for n in range(10)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert results[number] == [[(n + 0.5) ** 2 + number, number * (n + 0.5) + number] for n in range(10)]


def test_where_objects_cannot_change(monkeypatch):
    """On other builds of Python each value has a trace, as of all that need a number."""
    monkeypatch.setattr("tracejit.record.become.is_possible", lambda: False)
    function = dlaccelerate(lambda x: x * float(x[0]), max_variants=20, audit=False)
    for n in (1, 2, 3, 1, 2, 3, 1, 2, 3):
        assert function(np.full(1, float(n))).item() == n * n
    assert function.stats.hits == 3


def test_nested_evaluations():
    inner = dlaccelerate(lambda x: float(x[0]) * 2)
    function = dlaccelerate(lambda x: x * inner(x))
    for n in range(6):
        assert function(np.full(1, float(n))).item() == 2.0 * n * n
    assert function.stats.hits == 4


class Annealed:
    """State in arrays without axes, and of a few elements, that a step reads as plain numbers."""

    def __init__(self):
        self.energy, self.angles, self.count = np.array(4.0), np.array([0.5, 0.25]), np.array(3)

    def step(self, x):
        temperature = float(self.energy) * 0.5
        first, second = self.angles.tolist()
        self.angles = np.array([first + temperature, second - first * self.angles.item(1)]) * 0.25
        self.energy = np.array(self.energy.item() * 0.5 + x.sum())
        self.count = np.array(int(self.count) + 2)
        return x * temperature + math.sin(second)


@pytest.mark.parametrize("wrap", [np.asarray, tj.dlarray])
def test_state_in_dlarrays(wrap):
    """Such state was a constant of each trace, and the function ran uncompiled."""
    mine, theirs = Annealed(), Annealed()
    for name, value in vars(theirs).items():
        setattr(mine, name, wrap(value))
    accelerated = dlaccelerate(mine.step)
    for n in range(14):
        x = np.array([0.5, -0.25]) * (n % 4)
        np.testing.assert_allclose(accelerated(x), theirs.step(x), rtol=1e-12)
        for name, value in vars(theirs).items():
            np.testing.assert_allclose(np.asarray(getattr(mine, name)), value, rtol=1e-12)
    assert accelerated.stats.hits >= 6 and not accelerated.stats.uncompiled


def test_state_whose_value_is_needed_is_compared():
    state = types.SimpleNamespace(k=tj.dlarray(2), rate=tj.dlarray(0.5))

    @dlaccelerate
    def program(x):
        for _ in range(int(state.k)):
            x = x * float(state.rate)
        return x

    for k, rate in ((2, 0.5), (2, 0.5), (2, 0.25), (2, 3.0), (3, 3.0), (3, 0.5), (2, 1.5)):
        state.k, state.rate = tj.dlarray(k), tj.dlarray(rate)
        assert program(np.ones(1)).tolist() == [rate**k]


def test_a_derivative_by_state_that_is_read_as_a_number():
    state = types.SimpleNamespace(rate=tj.dlarray(3.0))
    slope = dlaccelerate(lambda x: tj.dlgradient((float(state.rate) * x**2).sum(), x))
    for rate in (3.0, 3.0, 0.5, 2.0):
        state.rate = tj.dlarray(rate)
        assert slope(tj.dlarray([1.0, 2.0])).tolist() == [2 * rate, 4 * rate]
