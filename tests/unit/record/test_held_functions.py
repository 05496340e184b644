# SPDX-License-Identifier: BSD-3-Clause
"""Functions of NumPy and SciPy that the user's objects and modules hold, and code of installed packages."""

import functools
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import tracejit as tj
from tracejit.record import patches

rng = np.random.default_rng(0)
X = rng.standard_normal((3, 3))
P = X @ X.T + np.eye(3)


class Holder:
    """An object with functions."""

    of_class = np.sin

    def __init__(self) -> None:
        self.asarray, self.cholesky, self.exp = np.asarray, scipy.linalg.cholesky, np.exp
        self.table = {"solve": scipy.linalg.solve, "zeros": np.zeros, "gamma": scipy.special.gamma}
        self.decompose = functools.partial(scipy.linalg.cholesky, lower=True)
        self.listed = [np.array, np.atleast_1d]


HOLDER = Holder()
ALIAS, PARTIAL = np.asarray, functools.partial(np.sum, axis=0)
SOLVE, CONVERT = functools.partial(scipy.linalg.solve, assume_a="gen"), functools.partial(np.array, ndmin=3)
SOLVE.note = "kept"


def filled(array: Any, x: Any) -> Any:
    array[:] = x[0]
    return array


def called(function: Any, x: Any) -> Any:
    return function(x)


def with_default(x: Any, convert: Any = np.asarray, *, factor: Any = scipy.linalg.cholesky) -> Any:
    return factor(convert(x) @ convert(x).T + np.eye(3))


def of_two(made: Any) -> Any:
    """Return the sum of two arrays that are unpacked."""
    a, b = made
    return a + b


def with_rest(made: Any) -> Any:
    """Return the sum of the first array and the last."""
    a, *b = made
    return a + b[-1]


FUNCTIONS = {
    "an attribute": lambda x: HOLDER.asarray(x) * 2,
    "of SciPy": lambda x: HOLDER.cholesky(x @ x.T + np.eye(3)),
    "a ufunc": lambda x: HOLDER.exp(x),
    "of a class": lambda x: Holder.of_class(x),
    "a dict": lambda x: HOLDER.table["solve"](x + 3 * np.eye(3), x),
    "a maker": lambda x: filled(HOLDER.table["zeros"](3), x),
    "a list": lambda x: HOLDER.listed[0]([x[0, 0], 1.0]),
    "a default": lambda x: with_default(x),
    "a name": lambda x: ALIAS(x) * 2,
    "a partial function": lambda x: PARTIAL(x),
    "a partial function of SciPy": lambda x: SOLVE(x + 3 * np.eye(3), b=x),
    "a partial function that converts": lambda x: CONVERT([x[0], x[1] * 2.0]),
    "a partial function in an object": lambda x: HOLDER.decompose(x @ x.T + np.eye(3)),
    "an argument": lambda x: called(np.asarray, x) * 2,
    "map": lambda x: sum(map(np.asarray, [x, 2 * x])),
    "map, unpacked": lambda x: np.matmul(*map(np.asarray, [x, x.T])),
    "map, reduced": lambda x: functools.reduce(np.add, map(np.asarray, [x, x])),
    "map, of pairs": lambda x: of_two(map(np.array, zip((x, x), (2 * x, x), strict=True))),
    "map, unpacked with a rest": lambda x: with_rest(map(np.array, ((x, x), (x, 2 * x)))),
    "map, in a dict": lambda x: dict(zip("ab", map(np.array, ((x, x), (x, 2 * x))), strict=True))["b"],
    "map, in pairs": lambda x: sum(n * y for n, y in enumerate(map(np.array, ((x, x), (x, 2 * x))))),
    "map, of a map": lambda x: sum(map(np.asarray, map(np.array, ((x, x), (x, 2 * x))))),
    "map, in a loop": lambda x: [y + 1 for y in map(np.array, enumerate(x.sum(axis=1)))][1],
    "a conditional function": lambda x: (np.array if x.ndim else np.asarray)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_recorded(name: str) -> None:
    function = FUNCTIONS[name]
    accelerated = tj.dlaccelerate(function)
    for call in range(5):
        x = np.random.default_rng(call).standard_normal((3, 3))
        np.testing.assert_allclose(accelerated(x), function(x), rtol=1e-10)
    assert accelerated.stats.hits == 3


def is_it(function: Any, other: Any) -> bool:
    return function is other


IDENTITIES = {
    "an attribute": lambda x, f: HOLDER.exp is np.exp,
    "of a class": lambda x, f: Holder.of_class is np.sin,
    "a dict": lambda x, f: HOLDER.table["gamma"] is scipy.special.gamma,
    "a list": lambda x, f: HOLDER.listed[1] is np.atleast_1d and np.array in HOLDER.listed,
    "a partial object": lambda x, f: PARTIAL.func is np.sum,
    "an argument": lambda x, f: f is np.sum,
    "an argument of a helper": lambda x, f: is_it(HOLDER.exp, np.exp),
    "a default": lambda x, f, g=np.exp: g is np.exp,
    "an alias": lambda x, f: ALIAS is np.asarray,
    "others": lambda x, f: HOLDER.exp is not np.sin and f is not np.max,
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_they_are_themselves(name: str) -> None:
    @tj.dlaccelerate
    def chosen(x: Any, f: Any) -> Any:
        return x * 2 if IDENTITIES[name](x, f) else x

    assert [chosen(np.ones(1), np.sum).tolist() for _ in range(4)] == [[2.0]] * 4
    assert chosen.stats.hits == 2


def test_ufuncs_that_something_holds_take_lists_of_traced_numbers() -> None:
    held = tj.dlaccelerate(lambda x, f: HOLDER.exp([x[0], 2 * x[1]]) + f([x[1], x[0]]))
    x = np.array([0.5, 0.25])
    for _ in range(3):
        np.testing.assert_allclose(held(x, np.sin), np.exp(x * [1, 2]) + np.sin(x[::-1]), rtol=1e-14)


def test_functions_of_numpy_are_arguments() -> None:
    pooled = tj.dlaccelerate(lambda x, reduce=np.max: reduce(x, axis=0))
    x = np.arange(6.0).reshape(3, 2)
    for reduce in (np.mean, np.max, np.sum, np.mean, np.max, np.sum, np.mean):
        assert pooled(x, reduce).tolist() == reduce(x, axis=0).tolist()
    assert pooled.stats.traces == 6


def test_objects_hold_the_functions_themselves_afterwards() -> None:
    for function in FUNCTIONS.values():
        tj.dlaccelerate(function)(X)
    held = [*vars(HOLDER).values(), *HOLDER.table.values(), *HOLDER.listed, ALIAS, *with_default.__defaults__]
    assert not any(isinstance(function, patches.Patched) for function in held)
    assert HOLDER.cholesky is scipy.linalg.cholesky and HOLDER.listed == [np.array, np.atleast_1d]
    assert SOLVE.func is scipy.linalg.solve and CONVERT.func is np.array
    assert SOLVE.keywords == {"assume_a": "gen"} and SOLVE.note == "kept"


def test_they_are_put_back_after_an_error() -> None:
    def fails(x: Any) -> Any:
        HOLDER.exp(x)
        raise KeyError(1)

    with pytest.raises(KeyError):
        tj.dlaccelerate(fails)(X)
    assert HOLDER.exp is np.exp


def test_what_a_recording_puts_into_an_object_is_the_function_itself() -> None:
    o = types.SimpleNamespace(f=None, g=None)

    def lazy(x: Any) -> Any:
        if o.f is None:
            o.f, o.g = scipy.linalg.solve, np.zeros
        return o.f(x, np.ones(3))

    accelerated = tj.dlaccelerate(lazy)
    for _ in range(6):
        np.testing.assert_allclose(accelerated(P), scipy.linalg.solve(P, np.ones(3)))
    assert o.f is scipy.linalg.solve and o.g is np.zeros and accelerated.stats.hits >= 3


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a module and imports it, in a folder of the user's or of installed packages."""
    added = []

    def write(name: str, text: str, is_installed: bool = False) -> Any:
        folder = tmp_path / ("site-packages" if is_installed else "own")
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        added.append(name)
        return __import__(name)

    yield write
    for name in added:
        sys.modules.pop(name, None)


MODULE = """
import numpy as np
from numpy import array, asarray, exp, pad, shape, zeros
from scipy.linalg import solve

def sphere(x):
    x = np.asarray(x)
    return (x**2).sum()

def stacked(x):
    return array([x[0].sum(), -x[1, 0], 1.0])

def normalized(q):
    q = np.array(q, dtype=float, copy=True)
    q /= np.linalg.norm(q)
    return q

def filled(x):
    out = np.zeros(3)
    out[1:] = x[0, 1:]
    return out

def table():
    return np.linspace(0, 1, 3)

def checked(x):
    return np.array(x, copy=np._CopyMode.IF_NEEDED)
"""
CALLS = {
    "sphere": lambda m, x: m.sphere(x),
    "stacked": lambda m, x: m.stacked(x),
    "normalized": lambda m, x: m.normalized(x),
    "filled": lambda m, x: m.filled(x),
    "its own table": lambda m, x: m.table() * x,
    "a mode of copies": lambda m, x: m.checked(x),
    "a function of NumPy": lambda m, x: m.pad(x, 1),
    "a ufunc": lambda m, x: m.exp(x),
    "a conversion": lambda m, x: m.asarray(x) * 2,
    "a list": lambda m, x: m.array([x[0, 0], 2.0]),
    "sizes": lambda m, x: m.shape(x)[0] * x,
    "zeros": lambda m, x: m.zeros(3) + x,
    "of SciPy": lambda m, x: m.solve(x + 9 * np.eye(3), x),
}


@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_modules_of_others(name: str, is_installed: bool, written: Any) -> None:
    module = written(f"module_{is_installed}_{len(name)}{name[:2].strip()}", MODULE, is_installed)
    call = CALLS[name]
    accelerated = tj.dlaccelerate(lambda x: call(module, x))
    for number in range(5):
        x = np.random.default_rng(number).standard_normal((3, 3))
        expected = call(module, x)
        np.testing.assert_allclose(tj.dlfeval(lambda x: call(module, x), x), expected, rtol=1e-10)
        np.testing.assert_allclose(accelerated(x), expected, rtol=1e-10)
    assert accelerated.stats.hits == 3


def test_equal_code_of_two_files_is_told_apart(written: Any) -> None:
    text = "import numpy as np\ndef f(x):\n    t = np.zeros(2)\n    return t, np.array(x) * 2\n"
    installed, own = written("one_of_two", text, is_installed=True), written("two_of_two", text)
    for module in (installed, own, installed):
        zeros, doubled = tj.dlfeval(lambda x, f=module.f: f(x), np.ones(2))
        assert type(zeros) is np.ndarray and doubled.tolist() == [2.0, 2.0]


def test_many_captured_arrays_are_compared_in_a_time_that_grows_with_their_number() -> None:
    counts = []
    for number in (50, 100):
        table = {i: np.arange(3.0) + i for i in range(number)}
        calls = 0
        real = np.may_share_memory

        def counted(a: Any, b: Any, real: Any = real) -> bool:
            nonlocal calls
            calls += 1
            return bool(real(a, b))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "may_share_memory", counted)
            function = tj.dlaccelerate(lambda x, table=table: x * sum(v[0] for v in table.values()))
            assert [function(np.ones(1)).item() for _ in range(3)] == [sum(range(number))] * 3
        counts.append(calls)
    assert counts[1] <= 3 * counts[0] + 10
