# SPDX-License-Identifier: BSD-3-Clause
"""Functions of Python's `math` on elements of arrays: numbers, errors and types of plain Python, and derivatives."""

import decimal
import json
import math
import pickle
import random
import threading
from math import atan2, sin
from typing import Any

import numpy as np
import pytest
import scipy.special
from effort import sample, sweep

import tracejit as tj
from tracejit.functions.numpy_api import of_numbers
from tracejit.record import patches, stack
from tracejit.record.recorder import Recorder
from tracejit.record.sizes_only import sizes_only

pytestmark = pytest.mark.usefixtures("python_backend")

ONE = [
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "expm1",
    "exp2", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "erf", "erfc", "gamma", "lgamma", "fabs", "degrees",
    "radians",
]  # fmt: skip
TWO = ["atan2", "hypot", "copysign", "fmod", "remainder", "pow", "log"]
NUMPYS = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "gamma": scipy.special.gamma, "lgamma": scipy.special.gammaln,
}  # fmt: skip
DTYPES = [np.float64, np.float32, np.int64, np.uint8, np.bool_]
USUAL = [0.5, 0.25, 0.75, 0.125, 0.875, 0.625]
SPECIAL = [
    0.5, 2.0, 0.0, -0.0, -1.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 800.0, -800.0, 171.7, 1e308, 0.25, 5e-324,
    -0.5, math.inf, 0.75,
]  # fmt: skip
TABLE = {"sine": math.sin}


def outcome(fun: Any, *args: Any) -> Any:
    """Return what a call gives, or the class and the text of the error that it raises."""
    try:
        return fun(*args)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError) as error:
        return type(error), str(error)


def close(found: Any, wanted: Any) -> bool:
    """Return whether numbers of one type are equal up to the last bits, with the sign of 0."""
    if type(found) is not type(wanted):
        return False
    if not isinstance(wanted, float):
        return bool(found == wanted)
    if math.isnan(wanted) or math.isinf(wanted) or wanted == 0:
        return math.isnan(found) == math.isnan(wanted) and repr(found) == repr(wanted)
    # Gamma functions are SciPy's, with some bits less.
    return abs(found - wanted) <= 64 * math.ulp(wanted) + 1e-15 * (abs(wanted) > 1e-3)


def follow(fun: Any, numbers: Any, dtype: Any = np.float64) -> Any:
    """Call a function of two elements with numbers in turn, accelerated and plain; return the accelerated function."""
    accelerated = tj.dlaccelerate(fun, audit=False)
    for first in numbers:
        with np.errstate(all="ignore"):
            x = np.array([first, 0.5]).astype(dtype)
        found, wanted = outcome(accelerated, x), outcome(fun, x)
        assert close(found, wanted), (first, found, wanted)
    return accelerated


class TestValues:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("name", ONE)
    def test_of_one_number(self, name: str, dtype: Any) -> None:
        shift = 1.0 if name == "acosh" else 0.0
        follow(lambda x: getattr(math, name)(x[0] + shift), USUAL, dtype)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
    @pytest.mark.parametrize("name", TWO)
    def test_of_two_numbers(self, name: str, dtype: Any) -> None:
        function = getattr(math, name)
        follow(lambda x: getattr(math, name)(x[0] + 3, x[1] + 2), USUAL, dtype)
        assert follow(lambda x: getattr(math, name)(x[0] + 3, 2.5), USUAL).stats.hits == 4
        assert follow(lambda x: getattr(math, name)(7, x[0] + 1), USUAL).stats.hits == 4
        assert function in (math.log, getattr(math, name))

    @pytest.mark.parametrize("name", ONE)
    def test_one_trace_serves_all_values(self, name: str) -> None:
        shift = 1.0 if name == "acosh" else 0.0
        fun = follow(lambda x: getattr(math, name)(x[0] + shift), USUAL)
        assert (fun.stats.traces, fun.stats.hits, fun.stats.uncompiled) == (2, 4, 0)

    @pytest.mark.parametrize("name", ONE)
    def test_special_numbers_and_errors(self, name: str) -> None:
        """Errors are those of math, in recordings and where a replay meets such a number, and so are NaN and inf."""
        follow(lambda x: getattr(math, name)(x[0]), SPECIAL)

    @pytest.mark.parametrize("other", [2.0, 0.0, -1.0, 0.5, math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("name", TWO)
    @pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
    def test_special_numbers_beside_another(self, name: str, other: float) -> None:
        follow(lambda x: getattr(math, name)(x[0], other), SPECIAL)
        follow(lambda x: getattr(math, name)(other, x[0]), SPECIAL)

    @pytest.mark.parametrize("name", ONE)
    @pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning")
    def test_errors_that_are_caught(self, name: str) -> None:
        def fun(x: Any) -> Any:
            try:
                return getattr(math, name)(x[0])
            except (ValueError, OverflowError) as error:
                return str(error)

        follow(fun, SPECIAL)

    def test_an_error_that_is_caught_has_one_trace(self) -> None:
        def fun(x: Any) -> Any:
            try:
                return math.log(x[0])
            except ValueError:
                return -1.0

        assert follow(fun, [-1.0, -2.0, -3.0, -4.0, -5.0, 1.0, 2.0, 3.0, -6.0]).stats.traces == 4

    def test_the_table_is_whole(self) -> None:
        assert {*ONE, *TWO} == {*of_numbers.FUNCTIONS}


class TestOthers:
    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: math.isnan(x[0]), lambda x: math.isinf(x[0]), lambda x: math.isfinite(x[0]),
            lambda x: math.isclose(x[0], x[1]), lambda x: math.isclose(x[0], 0.5, rel_tol=0.5),
            lambda x: math.isclose(x[0], 0.0, abs_tol=0.6), lambda x: math.isclose(x[0], x[0] + 1e-12),
            lambda x: math.isclose(1.0, x[0], rel_tol=-1.0), lambda x: math.floor(x[0]), lambda x: math.ceil(x[0]),
            lambda x: math.trunc(x[0]), lambda x: math.modf(x[0])[0], lambda x: math.modf(x[0])[1],
            lambda x: math.frexp(x[0])[0], lambda x: math.ldexp(x[0], 3), lambda x: math.ldexp(x[0], 2000),
            lambda x: math.ldexp(math.sin(x[1]), 1020), lambda x: math.ldexp(1.0, math.ceil(x[1])),
            lambda x: math.dist([x[0], x[1]], (0.5, 2)), lambda x: math.dist(x, [1.0, 2.0]), lambda x: math.dist(x, x),
            lambda x: math.dist(x, [1.0]), lambda x: math.hypot(x[0]), lambda x: math.hypot(*x, 1.0),
            lambda x: math.hypot(), lambda x: math.hypot(1.0, 2.0, x[0]),
            lambda x: math.dist([1, 2.0, x[0]], [3, 1, 1.0]),
            lambda x: math.pow(x[0], True), lambda x: math.isclose(a=x[0], b=0.5), lambda x: math.log(10**30, x[1]),
            lambda x: math.fsum([x[0], x[1], 1.0]), lambda x: math.prod([math.sin(x[1]), x[1]]).item(),
            lambda x: math.sin(x[0, ...]), lambda x: math.sin(math.cos(x[1]) + 1),
            lambda x: math.sin(x), lambda x: math.sin("a"), lambda x: math.sin(), lambda x: math.atan2(x[0]),
            lambda x: math.log(x[1], 1.0), lambda x: math.log(x[1], 0.0), lambda x: math.log(2.0, x[0]),
            lambda x: math.sin(x=x[0]), lambda x: math.pow(x[1], 1 << 70), lambda x: math.gcd(math.ceil(x[1]), 6),
        ],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
    def test_as_plain_python(self, fun: Any) -> None:
        accelerated = tj.dlaccelerate(fun, audit=False)
        for first in (0.5, 0.25, 1.5, -2.5, math.nan, math.inf, 0.5, 3.0):
            x = np.array([first, 0.5])
            found, wanted = outcome(accelerated, x), outcome(fun, x)
            is_error = isinstance(wanted, tuple)
            # What NumPy's arrays refuse in their own words.
            assert isinstance(found, tuple) if is_error else close(found, wanted), (first, found, wanted)

    def test_complex_numbers_are_refused(self) -> None:
        with pytest.raises(TypeError):
            tj.dlfeval(lambda x: math.sin(x[0]), np.ones(2, complex))

    def test_a_number_varies_through_them(self) -> None:
        fun = tj.dlaccelerate(lambda x, k: x * math.sqrt(k) + math.atan2(k, 2))
        for k in (0.5, 0.25, 2.0, 3.0, 4.0, 5.0):
            assert fun(np.ones(2), k)[0].item() == pytest.approx(math.sqrt(k) + math.atan2(k, 2), rel=1e-15)
        assert (fun.stats.hits, "k: a float that varies" in fun.explain()) == (2, True)

    def test_a_value_beside_a_private_array(self) -> None:
        def fun(x: Any) -> Any:
            weights = np.ones(2)
            weights[1] = 3.0
            return math.atan2(x[0], weights[1])

        assert follow(fun, USUAL).stats.hits == 4

    def test_a_captured_array_has_a_derivative(self) -> None:
        scale = tj.dlarray(2.0)
        fun = tj.dlaccelerate(lambda x: tj.dlgradient((x * math.exp(scale)).sum(), scale))
        assert [fun(np.ones(2)).item() for _ in range(4)] == pytest.approx([2 * math.exp(2.0)] * 4, rel=1e-15)


class TestTypes:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
    def test_it_takes_the_dtype_of_arrays(self, dtype: Any) -> None:
        fun = tj.dlaccelerate(lambda x: (x * math.sin(x[0]), x + math.exp(x[1]), math.cos(x[0]) - x))
        for n in range(5):
            x = np.array([n, 1]).astype(dtype)
            wanted = (x * math.sin(x[0]), x + math.exp(x[1]), math.cos(x[0]) - x)
            for found, want in zip(fun(x), wanted, strict=True):
                assert found.dtype == want.dtype
                np.testing.assert_allclose(tj.extractdata(found), want, rtol=1e-6)
        assert fun.stats.hits == 3

    def test_it_is_a_float(self) -> None:
        def fun(x: Any) -> Any:
            y = math.sin(x[0])
            return y, isinstance(y, float), isinstance(y, np.generic), hasattr(y, "shape"), y.is_integer()

        fun_ = tj.dlaccelerate(fun)
        for x in USUAL:
            found = fun_(np.array([x]))
            assert found == fun(np.array([x])) and type(found[0]) is float

    def test_the_result_of_an_evaluation_is_a_float(self) -> None:
        found = tj.dlfeval(lambda x: {"y": math.sin(x[0]), "z": [math.cos(x[0]) ** 2]}, np.ones(1))
        assert found == {"y": math.sin(1.0), "z": [math.cos(1.0) ** 2]}
        assert type(found["y"]) is type(found["z"][0]) is float

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: np.array([math.sin(x[0]), 1.0]), lambda x: np.full(3, math.sin(x[0])),
            lambda x: np.array([math.sin(x[0])] * 3), lambda x: np.asarray(math.sin(x[0])) * x,
            lambda x: np.array([[math.cos(v), math.sin(v)] for v in x]), lambda x: np.diag([math.sin(x[0]), 2.0]) @ x,
            lambda x: np.stack([math.sin(x[0]), x[1]]), lambda x: np.clip(math.sin(x[0]), 0.1, 0.5) * x,
            lambda x: np.interp(math.sin(x[0]), [0.0, 1.0], [2.0, 5.0]) * x, lambda x: np.round(math.sin(x[0]), 2) * x,
            lambda x: np.polyval([1.0, 2.0], math.sin(x[0])) * x, lambda x: np.sign(math.sin(x[0])) * x,
            lambda x: np.clip(x, -math.exp(x[0]), math.sin(x[0])), lambda x: np.where(x > 0.3, math.sin(x[0]), x),
            lambda x: np.float64(math.sin(x[0])) * x, lambda x: np.linspace(0, math.exp(x[0]), 3),
            lambda x: sum(map(math.sin, x)) * x, lambda x: np.vectorize(math.sin)(x),
            lambda x: sin(x[0]) * atan2(*x) * x,
            lambda x: math.sin(-x[0]) ** 3 * math.cos(x[1] + 2) ** -2 * math.exp(x[0]) ** 0.5 * x,
            lambda x: math.sin(x[0]) // 0.3 * x, lambda x: math.exp(x[0]) % 0.3 * x, lambda x: x / math.exp(x[0]),
        ],
    )  # fmt: skip
    def test_it_is_recorded_in(self, fun: Any) -> None:
        accelerated = tj.dlaccelerate(fun)
        for n in range(6):
            x = np.array([0.2 + 0.1 * n, 0.9 - 0.15 * n])
            found, wanted = tj.extractdata(accelerated(x)), fun(x)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
        assert (accelerated.stats.traces, accelerated.stats.hits) == (2, 4)

    @pytest.mark.parametrize(
        "fun",
        [
            lambda x: json.dumps({"a": math.sin(x[0])}), lambda x: str(decimal.Decimal(math.sin(x[0]))),
            lambda x: f"{math.sin(x[0]):.3f}", lambda x: {math.sin(x[0]): 1}, lambda x: float(math.sin(x[0])),
            lambda x: pickle.loads(pickle.dumps(math.sin(x[0]))),
            lambda x: random.Random(0).gauss(math.sin(x[0]), 1.0),
            lambda x: int(9 * math.sin(x[0])), lambda x: round(math.sin(x[0]), 1), lambda x: type(math.sin(x[0])),
            lambda x: [0] * int(3 * math.exp(x[0])), lambda x: math.sin(x[0]) > 0.3,
            lambda x: math.fsum([math.sin(x[0])]), lambda x: json.dumps(*[math.sin(x[0])]),
            lambda x: f"{math.sin(x[0]):.2f}",
        ],
    )  # fmt: skip
    def test_what_needs_the_number_gets_it(self, fun: Any) -> None:
        accelerated = tj.dlaccelerate(lambda x: (x * 2, fun(x)), max_variants=20)
        for n in (1, 2, 1, 2, 3, 1, 2):
            x = np.array([0.2 * n, 0.5])
            found = accelerated(x)[1]
            assert found == fun(x) and type(found) is type(fun(x))
        assert accelerated.stats.hits >= 2
        assert tj.dlfeval(fun, x) == fun(x)

    def test_where_stacks_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stack, "is_readable", lambda: False)
        assert follow(lambda x: math.sin(x[0]), USUAL).stats.hits == 4
        with pytest.raises(TypeError, match="not JSON serializable"):
            tj.dlfeval(lambda x: json.dumps(math.sin(x[0])), np.ones(1))


class TestGuards:
    @pytest.mark.parametrize(
        ("fun", "guards"),
        [
            (lambda a: math.tanh(a) + math.atan(a) * math.fabs(a), 0),
            (lambda a: math.sin(a), 1),
            (lambda a: math.sin(math.cos(math.sin(a))), 1),
            (lambda a: (math.sin(a), math.cos(a), math.tan(a)), 1),
            (lambda a: math.exp(math.sin(a)), 2),
            (lambda a: math.sqrt(a) + math.log(a), 2),
        ],
    )
    def test_are_few(self, fun: Any, guards: int) -> None:
        def called(x: Any) -> Any:
            return fun(x[0])

        accelerated = tj.dlaccelerate(called)
        for x in USUAL:
            accelerated(np.array([x]))
        assert f"1 kept with {guards} guard" in repr(accelerated.stats)

    def test_a_branch_by_a_result(self) -> None:
        fun = follow(
            lambda x: 1.0 if math.sin(x[0]) > 0.4 else math.cos(x[0]), [0.5, 0.25, 0.75, 0.1, 0.6, 0.3]
        )
        assert fun.stats.traces == 4

    def test_a_division_by_zero(self) -> None:
        follow(lambda x: 1.0 / math.sin(x[0]), [0.5, 0.25, 0.75, 0.0, 0.5, -0.0, 0.25, 0.0])
        follow(lambda x: math.sin(x[0]) ** -1, [0.5, 0.25, 0.75, 0.0, 0.5, 0.25, 0.0])
        follow(lambda x: math.exp(x[0]) ** 400, [0.5, 0.25, 0.75, 5.0, 0.5, 0.25, 6.0])


def derivative(fun: Any, x: np.ndarray) -> np.ndarray:
    def both(x: Any) -> Any:
        return tj.dlgradient(fun(x), x)

    found = tj.extractdata(tj.dlfeval(both, x))
    accelerated = tj.dlaccelerate(both)
    for _ in range(3):
        np.testing.assert_allclose(tj.extractdata(accelerated(x)), found, rtol=1e-13)
    assert accelerated.stats.hits == 1
    return found


class TestDerivatives:
    @pytest.mark.parametrize("name", ONE)
    def test_of_one_number(self, name: str) -> None:
        x, numpys = np.array([0.4, 0.7]) + (name == "acosh"), NUMPYS.get(name) or getattr(np, name)
        found = derivative(lambda x: getattr(math, name)(x[0]) * getattr(math, name)(x[1]), x)
        wanted = derivative(lambda x: numpys(x[0]) * numpys(x[1]), x)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)

    @pytest.mark.parametrize("name", [name for name in TWO if name != "remainder"])
    def test_of_two_numbers(self, name: str) -> None:
        x = np.array([1.4, 0.6])
        numpys = (
            (lambda a, b: np.log(a) / np.log(b)) if name == "log" else NUMPYS.get(name) or getattr(np, name)
        )
        found = derivative(lambda x: getattr(math, name)(x[0], x[1]) * x[0], x)
        np.testing.assert_allclose(found, derivative(lambda x: numpys(x[0], x[1]) * x[0], x), rtol=1e-12)

    @pytest.mark.parametrize(
        ("fun", "wanted"),
        [
            (lambda x: math.remainder(x[0], x[1]), [1.0, -2.0]),
            (lambda x: math.dist(x, [0.4, 0.6]), [1.0, 0.0]),
            (lambda x: math.modf(x[0])[0] * x[1], [0.6, 0.4]),
            (lambda x: math.ldexp(x[0], 2), [4.0, 0.0]),
        ],
    )
    def test_of_others(self, fun: Any, wanted: Any) -> None:
        np.testing.assert_allclose(derivative(fun, np.array([1.4, 0.6])), wanted, atol=1e-12)

    def test_in_float32(self) -> None:
        found = derivative(lambda x: (x * math.sin(x[0])).sum(), np.array([0.4, 0.7], np.float32))
        wanted = [math.sin(0.4) + 1.1 * math.cos(0.4), math.sin(0.4)]
        assert found.dtype == np.float32 and found == pytest.approx(wanted, rel=1e-6)

    def test_of_every_kind(self) -> None:
        def fun(x: Any) -> Any:
            return math.sin(x[0]) * math.exp(x[1])

        def numpys(x: Any) -> Any:
            return np.sin(x[0]) * np.exp(x[1])

        x, v = tj.dlarray([0.3, 0.4]), tj.dlarray([1.0, -2.0])
        tj.testing.check_gradients(fun, x)

        def by_number(s: Any, x: Any) -> Any:
            return tj.dlgradient(s * s * x[0], s)

        kinds = [
            lambda fun: tj.jvp(fun, (x,), (v,))[1],
            lambda fun: tj.vjp(fun, (x,), 1.0)[1][0],
            lambda fun: tj.hvp(fun, x, v),
            lambda fun: tj.jacobian(fun, x),
            lambda fun: tj.hessian(fun, x),
            lambda fun: tj.dlfeval(lambda x: tj.dljvp(fun(x), x, v), x),
            lambda fun: tj.dlfeval(lambda x: tj.dlhessian(fun(x), x), x),
            lambda fun: tj.dlfeval(lambda x: by_number(fun(x), x), x),
        ]
        for kind in kinds:
            found, wanted = np.asarray(kind(fun)), np.asarray(kind(numpys))
            np.testing.assert_allclose(found, wanted, rtol=1e-13)

    def test_of_functions_of_numpy(self) -> None:
        functions = (
            lambda y: np.clip(y, -1, 1),
            lambda y: np.interp(y, [0.0, 1.0], [2.0, 5.0]),
            np.sin,
            np.square,
        )
        for function in functions:
            found = derivative(lambda x, f=function: f(math.sin(x[0])) * x[1], np.array([0.4, 0.7]))
            wanted = derivative(lambda x, f=function: f(np.sin(x[0])) * x[1], np.array([0.4, 0.7]))
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


def of_one(x: Any) -> Any:
    return math.sin(x[0]) / math.cos(x[1]) + math.exp(x[0]) ** 2 * math.sqrt(x[1])


class TestWithin:
    def check(self, fun: Any, plain: Any, hits: int) -> None:
        accelerated = tj.dlaccelerate(fun)
        for n in range(6):
            x = np.array([0.2 + 0.3 * n, 1.0 + 0.1 * n, 0.5])
            found = np.asarray(accelerated(x.copy()))
            np.testing.assert_allclose(found, plain(x.copy()), rtol=1e-12)
        assert accelerated.stats.hits == hits

    def test_a_mapped_function(self) -> None:
        self.check(
            lambda x: tj.dlmap(of_one, over=0)(np.stack([x, x / 2])),
            lambda x: [of_one(x), of_one(x / 2)],
            hits=4,
        )

    @pytest.mark.parametrize(
        ("fun", "numbers", "error"),
        [
            (lambda x: math.sqrt(x[0]), [1.0, 2.0, -1.0], "math domain error"),
            (lambda x: math.log(x[0]), [-1.0, 2.0], "math domain error"),
            (lambda x: math.exp(x[0]), [1.0, 800.0], "math range error"),
            (lambda x: 1.0 / math.sin(x[0]), [1.0, 0.0], "float division by zero"),
            (lambda x: math.sin(x[0]) ** -2, [1.0, 0.0], "0.0 cannot be raised to a negative power"),
            (lambda x: math.exp(x[0]) ** 3, [1.0, 500.0], "Numerical result out of range"),
        ],
    )
    def test_an_error_of_one_observation(self, fun: Any, numbers: Any, error: str) -> None:
        mapped = tj.dlmap(fun, over=0)
        x = np.array(numbers)[:, None]
        with pytest.raises((ValueError, ArithmeticError), match=error):
            mapped(x)
        accelerated = tj.dlaccelerate(mapped)
        for _ in range(3):
            np.testing.assert_allclose(
                np.asarray(accelerated(np.abs(x[:1]))), [fun(np.abs(x[0]))], rtol=1e-14
            )
            with pytest.raises((ValueError, ArithmeticError), match=error):
                accelerated(x)

    def test_steps_of_a_loop(self) -> None:
        def step(c: Any) -> Any:
            return np.array(
                [c[0] + 0.1 * math.sin(c[1]), c[1] - 0.1 * math.cos(c[0]), c[2] * math.tanh(c[0])]
            )

        def plain(x: Any) -> Any:
            for _ in range(5):
                x = step(x)
            return x

        self.check(lambda x: tj.dlscan(lambda c, _: (step(c), None), x, length=5)[0], plain, hits=4)

    def test_a_loop_that_a_value_ends(self) -> None:
        def grow(x: Any) -> Any:
            return x + math.exp(-x[0])

        def plain(x: Any) -> Any:
            while x.sum() < 6:
                x = grow(x)
            return x

        self.check(lambda x: tj.dlwhile(lambda x: x.sum() < 6, grow, x), plain, hits=0)

    def test_a_branch_that_is_not_taken(self) -> None:
        """It is recorded, too, with numbers for which math raises an error."""

        def plain(x: Any) -> Any:
            return x * math.log(x[0] - 0.5) if x[0] > 0.6 else x * math.sin(x[0])

        fun = lambda x: tj.dlcond(x[0] > 0.6, lambda: x * math.log(x[0] - 0.5), lambda: x * math.sin(x[0]))
        self.check(fun, plain, hits=2)

    def test_a_function_that_is_called(self) -> None:
        inner = tj.dlaccelerate(lambda x: (math.sin(x[0]), x * math.cos(x[0])))

        def fun(x: Any) -> Any:
            number, array = inner(x)
            return array * number + math.exp(number)

        for _ in range(2):  # replayed within, too
            self.check(fun, lambda x: x * math.cos(x[0]) * math.sin(x[0]) + math.exp(math.sin(x[0])), hits=4)
        gradient = tj.dlfeval(lambda x: tj.dlgradient(inner(x)[0], x), np.array([0.3, 0.0]))
        assert gradient.tolist() == pytest.approx([math.cos(0.3), 0.0], rel=1e-14)

    def test_an_argument_of_a_function_that_is_called(self) -> None:
        inner = tj.dlaccelerate(lambda x, k: x * k)
        self.check(lambda x: inner(x, math.sin(x[0])), lambda x: x * math.sin(x[0]), hits=4)

    def test_an_evaluation_for_sizes(self) -> None:
        with sizes_only("fun"):
            assert (math.log(tj.dlarray([1.0]).sum() * 2) * tj.dlarray([1.0, 2.0])).shape == (2,)

    def test_another_recording_leaves_plain_numbers(self) -> None:
        with Recorder("inner") as inner:
            x = inner.input(tj.dlarray(0.5))
        assert math.sin(x) == math.sin(0.5)


class TestStored:
    def test_in_an_attribute(self) -> None:
        class Model:
            angle = 0.0

            def step(self, x: Any) -> Any:
                self.angle = math.atan2(x[0], x[1])
                return x * self.angle

        model, accelerated = Model(), tj.dlaccelerate(Model.step)
        model.step = lambda x: accelerated(model, x)  # type: ignore[method-assign]
        one = tj.dlaccelerate(lambda x, model=model: Model.step(model, x))
        for n in range(6):
            x = np.array([0.1 * n, 0.5])
            one(x)
            assert (
                model.angle == pytest.approx(math.atan2(x[0], x[1]), rel=1e-15) and type(model.angle) is float
            )
        assert one.stats.hits == 4

    def test_in_a_list_it_is_a_float(self) -> None:
        kept: list[Any] = []

        def fun(x: Any) -> Any:
            kept.append(math.sin(x[0]))
            return x

        accelerated = tj.dlaccelerate(fun)
        for n in range(6):
            accelerated(np.array([0.1 * n]))
        assert kept == [math.sin(0.1 * n) for n in range(6)] and {*map(type, kept)} == {float}
        assert accelerated.stats.hits == 4
        kept.clear()
        tj.dlfeval(fun, np.array([0.5]))
        assert kept == [math.sin(0.5)] and type(kept[0]) is float

    def test_in_an_error(self) -> None:
        def fun(x: Any) -> Any:
            raise ValueError(math.sin(x[0]))

        for run in (tj.dlaccelerate(fun), lambda x: tj.dlfeval(fun, x)):
            with pytest.raises(ValueError, match=r"^0\.47") as caught:
                run(np.array([0.5]))
            assert type(caught.value.args[0]) is float


class TestReplacements:
    def test_look_like_the_functions(self) -> None:
        seen: list[Any] = []

        def fun(x: Any) -> Any:
            seen.append(
                (math.sin == sin, hash(math.sin), repr(math.sin), math.sin.__name__, math.sin.__doc__)
            )
            assert pickle.loads(pickle.dumps(math.sin)) is patches.original(math.sin)
            return x

        tj.dlfeval(fun, np.ones(1))
        assert seen == [(True, hash(math.sin), repr(math.sin), "sin", math.sin.__doc__)]
        assert type(math.sin) is type(sin) is type(len)

    def test_what_a_user_puts_in_their_place_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fun = tj.dlaccelerate(lambda x: x * math.sin(x[0]))
        for _ in range(3):
            fun(np.ones(1))
        monkeypatch.setattr(math, "sin", lambda x: 5.0)
        assert fun(np.ones(1)).item() == 5.0
        monkeypatch.undo()
        assert fun(np.ones(1)).item() == math.sin(1.0)

    def test_threads_that_do_not_record_get_plain_numbers(self) -> None:
        found: list[Any] = []

        def fun(x: Any) -> Any:
            thread = threading.Thread(target=lambda: found.append((math.sin(0.5), math.sin(np.float64(0.5)))))
            thread.start()
            thread.join()
            return x * math.sin(x[0])

        tj.dlfeval(fun, np.ones(1))
        assert found == [(math.sin(0.5),) * 2] and {*map(type, found[0])} == {float}

    def test_functions_that_are_held_elsewhere_take_the_number(self) -> None:
        with pytest.raises(tj.GradientError, match=r"math\.sin at"):
            tj.dlfeval(lambda x: tj.dlgradient(TABLE["sine"](x[0]) * x[0], x), np.ones(1))


def program(rng: random.Random) -> str:
    """Return the source of a function of an array and a number that chains functions of `math` and NumPy."""
    names, lines = ["x[0]", "x[1]", "x.sum()", "k", "1.5"], []
    for number in range(rng.randint(2, 6)):
        a, b = rng.choice(names), rng.choice(names)
        forms = [f"math.{rng.choice(ONE)}({a})"] * 5 + [f"math.{rng.choice(TWO)}({a}, {b})"] * 2
        forms += [f"math.{rng.choice(['sin', 'cos', 'tanh', 'atan'])}({a})"] * 6
        forms += [f"{a} {rng.choice('+-*/')} {b}", f"{a} ** {rng.choice([2, 3, -1.0])}", f"np.exp(-abs({a}))"]
        forms += [f"({a} if {b} > 0.3 else -({a}))", f"math.isclose({a}, {b}) * {a}", f"math.modf({a})[0]"]
        form = rng.choice(forms)
        if rng.random() < 0.2:
            lines += [
                f"    try: v{number} = {form}",
                f"    except (ValueError, ArithmeticError): v{number} = 0.25",
            ]
        else:
            lines.append(f"    v{number} = {form}")
        names += [f"v{number}"] * 3
    last = names[-1]
    ends = [f"return x * {last}, v0", f"return np.array([v0, {last}])", f"return {last}"]
    return "def fun(x, k):\n" + "\n".join(lines) + "\n    " + rng.choice(ends)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_random_programs(dtype: Any) -> None:
    hits = 0
    for seed in sample(range(sweep(20, 300, sample=10))):
        rng = random.Random(f"{seed} {dtype.__name__}")
        source, names = program(rng), {"math": math, "np": np}
        exec(source, names)
        fun: Any = names["fun"]
        accelerated = tj.dlaccelerate(fun)
        for _ in range(8):
            x = np.array([rng.gauss(0.0, 1.5), rng.choice([rng.gauss(0.0, 1.0), 0.0, 1.0])]).astype(dtype)
            with np.errstate(all="ignore"):
                found, wanted = outcome(accelerated, x, 0.75), outcome(fun, x, 0.75)
            if isinstance(wanted, tuple) and isinstance(wanted[0], type):
                assert found == wanted, (source, x)
                continue
            parts = zip(
                *[part if isinstance(part, tuple) else (part,) for part in (found, wanted)], strict=True
            )
            for one, other in parts:
                assert np.asarray(one).dtype == np.asarray(other).dtype, (source, x)
                rtol = 1e-4 if dtype is np.float32 else 1e-9
                np.testing.assert_allclose(np.asarray(one), other, rtol=rtol, atol=1e-12, err_msg=source)
        hits += accelerated.stats.hits
    assert hits > 0
