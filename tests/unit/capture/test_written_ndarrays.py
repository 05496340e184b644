# SPDX-License-Identifier: BSD-3-Clause
"""Writes of traced values into ndarrays that are no arguments: attributes, items, globals, and views of them."""

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import by_turns, sweep
from writing_programs import Holder, body, made

import tracejit as tj

# Bodies of a method of x, with what the object has: a program, and whether all of it is in replays.
REPLAYED = {
    "in place": "o.a -= 0.1 * x; return o.a.sum()",
    "momentum": "o.m *= 0.9; o.m += x; o.a -= 0.1 * o.m; return o.a.copy()",
    "an element": "o.a[1] = x.sum(); return o.a * 2",
    "an element again": "o.b[1, 2] += 0.5 * (x[0] + 0.9 * o.b[2].max() - o.b[1, 2]); return o.b.sum()",
    "a slice": "o.a[:] = o.b[:3] @ o.a * 0.3 + x; return np.linalg.norm(o.a)",
    "rows": "o.b[1:] = o.b[:-1]; o.b[0] = x; return o.b.mean(axis=0)",
    "numbers, then values": "o.a[:] = 0.0; o.a += x; o.a += x; return o.a",
    "fill": "o.a.fill(0.0); o.a += x; return o.a.sum()",
    "integers": "o.n[1] += 1; o.a += x / o.n[1]; return o.a.mean()",
    "a mask": "o.a[o.a > x] = 0.5; return o.a * 2",
    "places": "o.b[[0, 2]] = x; return o.b[2].sum()",
    "where": "o.a[...] = np.where(o.a > 1, x, o.a); return o.a.max()",
    "out": "np.multiply(o.a, x, out=o.a); return o.a.sum()",
    "clip": "np.clip(o.a + x, 0, 3, out=o.a); return o.a.sum()",
    "copyto": "np.copyto(o.a, x); return o.a",
    "add.at": "np.add.at(o.a, [0, 0, 1], x); return o.a.sum()",
    "put": "np.put(o.a, [0, 1], x[:2]); return o.a.sum()",
    "sort": "o.a += x; o.a.sort(); return o.a[0]",
    "a matrix": "o.l[1] @= np.eye(3) * 2; o.l[1][0] += x; return o.l[1].sum()",
    "rows in a loop": "for i in range(4): o.b[i] -= x * i\nreturn o.b.sum()",
    "items in a loop": "for w in o.l: w -= 0.1 * x\nreturn x * 2",
    "a variable": "w = o.a; w += x; return w.sum()",
    "a variable, an element": "w = o.a; w[0] = x[1]; return np.sin(w).sum() + o.a.sum()",
    "two names": "o.a += x; return o.same.sum()",
    "transposes": "y = o.b.T @ np.append(x, 1.0); o.b -= 0.1 * y; return (o.b.T @ np.append(x, 2.0)).sum()",
    "a name for it": "o.a += x; o.best = o.a; return o.best.sum()",
    "a copy": "o.a += x; o.best = o.a.copy(); return 1.0",
    "all forms": "o.a += x; return [o.a, o.a.copy(), o.a[0], 2.0]",
    "one after the other": "o.a += x; o.a *= 2; o.a[0] = o.a[1] + o.a[2]; return o.a[0]",
    "numbers alone": "o.a += 1; o.n[0] += 2; return x * o.a",
    "a global": "G[1:] += x[1:]; return G * x",
    "an item": "o.d['v'][0] = x[0]; o.d['v'] *= x; return o.d['v'].sum()",
    "a branch": "o.a += x\nif o.a[0] > 3: o.a[0] = 0\nreturn o.a[0]",
}
REPLAYED |= {
    "what the function makes": "w = np.linspace(0, 1, 3); w += x; return w.sum()",
    "what the function makes, elements": "w = np.linspace(0, 1, 3); w[1:] = x[1:]; return np.sqrt(np.abs(w))",
    "a random array": "w = np.random.default_rng(0).normal(size=3); np.add(w, x, out=w); return w",
}  # fmt: skip
# What a recording shows to vary is recorded from the next one on.
FOUND = {
    "read by NumPy before": "w = o.get(); n = np.sqrt(np.abs(o.a)).sum(); o.bump(x * n); return o.a.sum()",
    "exchanged names": "o.a, o.c = o.c, o.a; o.c[0] = x[0]; return o.c.sum()",
    "a method": "o.a.sum(); o.bump(x); return np.sin(o.a).sum()",
    "a view": "o.b[1] = x; return o.view.sum()",
    "through a view": "o.view += x; return o.b.sum()",
    "rows of an iterator": "for r in o.b: r += x\nreturn o.b.sum()",
}
X = np.array([0.3, -0.2, 0.7])
GIVEN = {
    "what is read": "o.b[0] = o.a; return o.a",
    "a part": "o.b[0] = o.a; return x * 2, o.a[1:]",
    "what is stored": "o.b[0] = o.a; o.c = o.a; return o.c",
}


class State(Holder):
    """A Holder with more."""

    def __init__(self) -> None:
        super().__init__(0)
        self.m, self.c = np.zeros(3), np.ones(3)
        self.l[1] = np.ones((3, 3))
        self.view = self.b[1]

    def bump(self, x: Any) -> None:
        self.a += x

    def get(self) -> np.ndarray:
        return self.a


def program(
    text: str, accelerated: Callable[[Any], Any] = lambda fun: fun
) -> tuple[Any, State, dict[str, Any]]:
    """Return the function of x whose statements are in a text, its object and its globals."""
    names: dict[str, Any] = {"np": np, "tj": tj, "o": State(), "G": np.arange(3.0)}
    lines = [
        line for part in text.split("\n") for line in (part.split("; ") if "for " not in part[:4] else [part])
    ]
    exec("def f(x):\n" + "".join(f"    {line}\n" for line in lines), names)
    return accelerated(names["f"]), names["o"], names


def elements(value: Any) -> np.ndarray:
    return np.asarray(value)


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def sharing(arrays: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the names of arrays that share memory."""
    return {
        (one, other)
        for one, first in arrays.items()
        for other, second in arrays.items()
        if one < other and np.shares_memory(elements(first), elements(second))
    }


def check_same(have: Any, want: Any) -> None:
    for mine, theirs in zip(leaves(have), leaves(want), strict=True):
        found, expected = elements(mine), elements(theirs)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def check_state(have: Holder, want: Holder) -> None:
    mine, theirs = have.arrays(), want.arrays()
    for name, value in theirs.items():
        check_same(mine[name], value)
    assert sharing(mine) == sharing(theirs)


def followed(text: str, calls: int = 7) -> Any:
    """Call a program and NumPy's side by side; return the accelerated function."""
    plain, want, others = program(text)
    function, have, names = program(text, tj.dlaccelerate)
    before = have.arrays()
    for call in range(calls):
        x = np.array([0.3, -0.2, 0.7]) * (call + 1)
        check_same(function(x), plain(x.copy()))
        check_state(have, want)
        check_same(names["G"], others["G"])
    for name, value in want.arrays().items():
        if name in before and value.dtype == float and "o.a, o.c" not in text and "best" not in name:
            assert have.arrays()[name] is before[name]  # the ndarray itself
    return function


@pytest.mark.parametrize("text", REPLAYED.values(), ids=REPLAYED)
def test_what_replays_write(text: str) -> None:
    function = followed(text)
    assert function.stats.hits >= 3
    assert not function.stats.uncompiled


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_is_recorded_once_it_was_found_to_vary(text: str) -> None:
    function = followed(text, 10)
    assert function.stats.hits >= 3
    assert not function.stats.uncompiled


@pytest.mark.parametrize("text", GIVEN.values(), ids=GIVEN)
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_an_ndarray_that_is_returned_is_not_that_of_the_recording(text: str) -> None:
    """Its elements are a constant of the trace, although the trace reads it too."""
    plain, want, _ = program(text)
    function, have, _ = program(text, tj.dlaccelerate(audit=False))
    for call in range(9):
        if call > 3:
            have.a[1:] = want.a[1:] = call
        check_same(function(X), plain(X))
        check_state(have, want)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("seed", "checks"), by_turns(range(sweep(50, 3000, sample=20)), ["none", "tolerance"])
)
@pytest.mark.filterwarnings("ignore:.*is not subscriptable:SyntaxWarning")
def test_random_programs(seed: int, checks: str) -> None:
    """As NumPy does, in recordings, replays and uncompiled, also after the state was changed outside."""
    plain, want, others = made(seed)
    function, have, names = made(seed, lambda fun: tj.dlaccelerate(fun, check_mode=checks))
    for call in range(8):
        x = np.random.default_rng([seed, call]).normal(size=3)
        if call == 5:
            for state, globals_ in ((want, others), (have, names)):
                state.a[0] = 2.0
                state.b = state.b * 1.0
                globals_["G"] = np.ones(3)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
            try:
                expected = plain(x.copy())
            except Exception:
                with pytest.raises(Exception):  # noqa: B017
                    function(x)
                return
            found = function(x)
        check_same(found, expected)
        check_state(have, want)
        check_same(names["G"], others["G"])


def test_random_programs_write() -> None:
    """The programs above are of the kind that is meant."""
    texts = ["\n".join(body(seed)) for seed in range(200)]
    assert sum("+=" in text or "] =" in text for text in texts) > 120


def scanned(o: State, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        o.a[:2] += row
        o.n[0] += 1
        return carry + row * o.a[0], carry

    return tj.dlscan(step, x[0], x)[0]


def branched(o: State, x: Any) -> Any:
    def first() -> Any:
        o.a[:2] = x[0]
        return x.sum()

    def second() -> Any:
        o.a[1:] = -x[1]
        return x.sum() * 2

    return tj.dlcond(x[0, 0] > 0, first, second)


@pytest.mark.parametrize("function", [scanned, branched])
def test_in_loops_and_branches(function: Any) -> None:
    """As outside of recordings, where these run one step after the other."""
    have, want = State(), State()
    accelerated = tj.dlaccelerate(lambda x: function(have, x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for seed in range(6):
            x = np.random.default_rng(seed).normal(size=(4, 2))
            check_same(accelerated(x), function(want, tj.dlarray(x)))
            check_state(have, want)


@pytest.mark.parametrize("wrap", [tj.dlaccelerate, lambda fun: lambda x: tj.dlfeval(fun, x)])
def test_after_an_error_nothing_is_written(wrap: Any) -> None:
    function, o, _ = program("o.a += x; o.b[0] = x; o.a[1:] = x[:2]; o.a[0] = x[1]; raise KeyError(1)", wrap)
    a, was = o.a, {name: value.copy() for name, value in o.arrays().items()}
    for _ in range(3):
        with pytest.raises(KeyError):
            function(np.ones(3))
        assert o.a is a
        for name, value in o.arrays().items():
            np.testing.assert_array_equal(value, was[name])


def test_dlfeval_writes_too() -> None:
    for text in REPLAYED.values():
        plain, want, others = program(text)
        function, have, names = program(text)
        for call in range(2):
            x = np.array([0.3, -0.2, 0.7]) * (call + 1)
            check_same(tj.dlfeval(function, x), plain(x.copy()))
            check_state(have, want)
            check_same(names["G"], others["G"])


@pytest.mark.parametrize(
    "run", [tj.dlfeval, lambda fun, x: tj.dlaccelerate(fun)(x)], ids=["dlfeval", "dlaccelerate"]
)
@pytest.mark.parametrize("write", ["o.a += x", "o.a[0] = x[1]", "np.copyto(o.a, x * 2)", "w = o.a; w[:] = x"])
def test_a_gradient_through_a_written_ndarray_is_an_error(run: Any, write: str) -> None:
    after, _, _ = program(f"{write}; return tj.dlgradient((x * o.a).sum(), x)")
    with pytest.raises(tj.GradientError, match="a value that depends on x was written into"):
        run(after, tj.dlarray(np.ones(3)))
    before, o, _ = program(f"g = tj.dlgradient((x * o.a).sum(), x); {write}; return g")
    want = o.a.copy()
    np.testing.assert_array_equal(elements(run(before, tj.dlarray(np.ones(3)))), want)


def test_a_gradient_by_what_was_not_written() -> None:
    function, o, _ = program("o.a += 1.0; return tj.dlgradient((x * o.a).sum(), x)", tj.dlaccelerate)
    for _ in range(4):
        x = tj.dlarray(np.ones(3))
        gradient = function(x)
        np.testing.assert_array_equal(elements(gradient), o.a)
    assert function.stats.hits == 2


def test_an_argument_that_is_the_array() -> None:
    function, o, _ = program("o.a += 1.0; return x.sum() + o.a.sum()", tj.dlaccelerate)
    plain, p, _ = program("o.a += 1.0; return x.sum() + o.a.sum()")
    with pytest.warns(tj.NotAcceleratedWarning, match=r"it changes global o\.a, which it also reads"):
        for _ in range(5):
            check_same(function(o.a), plain(p.a))
            check_state(o, p)


def test_views_that_are_none_any_more() -> None:
    """A trace that takes one array for a part of another one is not replayed once it is none."""
    text = "o.view += x; o.b *= 2.0; return o.view.copy()"
    plain, want, _ = program(text)
    function, have, _ = program(text, tj.dlaccelerate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for call in range(12):
            if call in (4, 8):
                for state in (want, have):
                    state.view = state.b[2] if call == 8 else state.b[1].copy()
            x = np.full(3, call + 1.0)
            check_same(function(x), plain(x))
            check_state(have, want)


def test_a_dlarray_over_an_ndarray_is_seen_by_numpy() -> None:
    for run in (lambda fun: lambda x: tj.dlfeval(fun, x), tj.dlaccelerate):
        function, o, _ = program("o.a += x; return np.sqrt(np.abs(o.c)).sum()", run)
        o.a = tj.dlarray(o.c)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
            for call in range(4):
                want = np.sqrt(np.abs(o.c + call)).sum()
                check_same(function(np.full(3, float(call))), want)


def test_a_view_of_a_written_array_stays_one_where_it_is_stored() -> None:
    function, o, _ = program("o.a += x; o.best = o.a[1:]; return o.best.sum()", tj.dlaccelerate)
    o.a = tj.dlarray(o.a)
    for _ in range(4):
        function(np.ones(3))
        assert np.shares_memory(elements(o.best), elements(o.a))  # type: ignore[attr-defined]
    assert function.stats.hits == 2


def test_copyto_from_a_captured_array() -> None:
    function, o, _ = program("h = np.zeros(3); np.copyto(h, o.a); return h * x", tj.dlaccelerate)
    o.a = tj.dlarray(np.ones(3))
    for call in range(6):
        if call > 3:
            o.a = tj.dlarray(np.full(3, float(call)))
        check_same(function(np.ones(3)), elements(o.a))


def test_two_dlarrays_over_one_ndarray() -> None:
    """What the first shows follows a write into the second."""
    w = np.arange(4.0)

    def function(x: Any) -> Any:
        first = tj.dlarray(w)
        part = first[:2]
        second = tj.dlarray(w)
        second += x
        return part * 1.0, part.sum()

    for run in (tj.dlfeval, lambda fun, x: tj.dlaccelerate(fun)(x)):
        w[:] = np.arange(4.0)
        check_same(run(function, np.ones(4)), (np.array([1.0, 2.0]), 3.0))


def test_places_are_given_back() -> None:
    """Other threads, and code that runs afterwards, find the ndarrays."""
    seen = []

    def function(x: Any) -> Any:
        o.a += x
        thread = threading.Thread(target=lambda: seen.append(type(o.a)))
        thread.start()
        thread.join()
        return o.a.sum()

    o = State()
    a = o.a
    accelerated = tj.dlaccelerate(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            accelerated(np.ones(3))
            assert o.a is a and type(o.__dict__["a"]) is np.ndarray


@pytest.mark.parametrize(
    "text",
    [
        "o.a[0] = x[0]; return np.asarray(o.a).tolist()",
        "o.a += x; return bytes(memoryview(np.asarray(o.a)))[:0].decode()",
    ],
)
def test_code_that_takes_ndarrays_only(text: str) -> None:
    plain, want, _ = program(text)
    function, have, _ = program(text, tj.dlaccelerate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for call in range(5):
            x = np.full(3, call + 0.5)
            assert function(x) == plain(x)
            check_state(have, want)


@pytest.mark.parametrize(
    "write", ["o.w += x", "o.w[0] = x[1]", "o.w[:] = x", "o.w *= 2", "w = o.w; w[1:] += x[1:]"]
)
def test_masked_arrays_are_written_uncompiled(write: str) -> None:
    """NumPy's code for them writes their elements and their masks."""
    states = []
    for wrap in (tj.dlaccelerate, lambda fun: fun):
        function, o, _ = program(f"{write}; return 1.0", wrap)
        o.w = np.ma.masked_array(np.ones(3), [0, 1, 0])  # type: ignore[attr-defined]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for call in range(6):
                function(np.full(3, call + 1.0))
        assert len(told) == (wrap is tj.dlaccelerate)
        states.append((o.w.data.tolist(), o.w.mask.tolist()))  # type: ignore[attr-defined]
    assert states[0] == states[1]


def test_a_filter_of_numbers_that_vary() -> None:
    """Its results are numbers of a recording, of which nobody needs the values."""
    text = (
        "y = o.a[0] * x + o.m[0]; o.m[0] = o.a[1] * x - y + o.m[1]; o.m[1] = o.a[2] * x - 0.5 * y; return y"
    )
    plain, want, _ = program(text)
    function, have, _ = program(text, tj.dlaccelerate)
    for call in range(12):
        check_same(function(0.1 + call % 5), plain(0.1 + call % 5))
        check_state(have, want)
    assert function.stats.hits == 5  # after the calls that find that the number varies


@pytest.mark.parametrize("kind", [int, float, bool, np.int32])
@pytest.mark.parametrize(
    "write",
    ["w *= x[1]", "w[1:][:2] += x[:2]", "np.add(w, x, out=w)", "w.reshape(2, 2)[0] *= x[2]", "w[0] += x[3]"],
)
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
def test_any_dtype_into_what_numpy_makes(write: str, kind: type) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    w = np.linspace(0, 1, 4)\n    {write}\n    return w * 2", names)
    accelerated = tj.dlaccelerate(names["f"])
    for n in range(5):
        x = np.array([n, 1, 0, n]).astype(kind)
        np.testing.assert_array_equal(np.asarray(accelerated(x)), names["f"](x))
