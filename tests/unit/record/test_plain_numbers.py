# SPDX-License-Identifier: BSD-3-Clause
"""A derivative by an array is an error where another library made a plain number of a value that depends on it."""

import cmath
import functools
import json
import logging
import math
import random
import statistics
from math import exp
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import integrate, optimize

import tracejit as tj
from tracejit.autodiff import forward

pytestmark = pytest.mark.usefixtures("python_backend")


class Slotted:
    """Holds a function of the module `math` in a slot."""

    __slots__ = ("own",)

    def __init__(self) -> None:
        self.own = math.atan


class Model:
    """Holds a function of the module `math` as an attribute."""

    function = math.cosh
    static = staticmethod(math.cosh)

    def __init__(self) -> None:
        self.own = math.atan

    def value(self, x: Any) -> Any:
        return self.own(x) * x


class Named(NamedTuple):
    """Holds a function of the module `math` in a field."""

    own: Any = math.atan


MODEL, SLOTTED, NAMED = Model(), Slotted(), Named()
TABLE, LISTED = {"sine": math.sin}, (math.cos, math.sin)
OUTSIDE = np.zeros(1)
POWER, OF_ALL = functools.partial(math.pow, 2.0), np.vectorize(math.erf)


def derivative(fun: Any, x: float = 2.0) -> Any:
    def both(x: Any) -> Any:
        y = fun(x)
        return y, tj.dlgradient(y, x)

    return tj.dlfeval(both, tj.dlarray(x))[1].item()


def aliased(x: Any) -> Any:
    root = math.sqrt
    return root(x) * x


def over_lines(x: Any) -> Any:
    return (
        math.hypot(
            x,
            1.0,
        )
        * x
    )


def in_a_comprehension(x: Any) -> Any:
    return sum(x * math.pow(x, k) for k in range(3))


def in_a_loop_over_a_map(x: Any) -> Any:
    total = 0.0
    for number in map(TABLE["sine"], [x, 2 * x]):
        total = total + number * x
    return total


def filled(number: Any) -> Any:
    OUTSIDE[0] = number
    return OUTSIDE.sum()


def kept(x: Any) -> Any:
    return x * x if (root := math.sqrt(x)) > 1.0 else x * root


def until(x: Any) -> Any:
    while math.sqrt(x * x) > 1.5:
        x = x / 2.0
    return x


def shown(x: Any) -> Any:
    print(f"{math.log(x):.3f}", math.log10(x), round(math.log2(x), 2))
    print("%f %f" % (math.cos(x), 2.0), "{}".format(math.cosh(x)), "%f" % math.tan(x))  # noqa: UP031, UP032
    logging.getLogger(__name__).debug("%f", math.sinh(x))
    math.exp(x)
    assert math.sin(x) < 1.0
    return x * x


DROPPING = {
    "math.sin": lambda x: TABLE["sine"](x) * x,
    "math.sin ": lambda x: sum(map(TABLE["sine"], [x, x])) * x,
    "math.sin   ": in_a_loop_over_a_map,
    "hash": lambda x: {(root := math.sqrt(x)): 2.0}[root] * root * x,
    "json.dumps": lambda x: len(json.dumps(root := math.sqrt(x))) * root * x,
    "ndarray.__setitem__": lambda x: filled(math.exp(x)) * x,
    "pow": lambda x: abs((-math.exp(x)) ** 0.5) * x,
    "math.sin  ": lambda x: LISTED[1](x) * x,
    "math.cosh": lambda x: MODEL.function(x) * x,
    "math.cosh ": lambda x: MODEL.static(x) * x,
    "math.atan ": lambda x: SLOTTED.own(x) * x,
    "math.atan  ": lambda x: NAMED.own(x) * x,
    "math.pow ": lambda x: POWER(x) * x,
    "math.erf": lambda x: OF_ALL(x) * x,
    "math.atan": MODEL.value,
    "math.fsum": lambda x: math.fsum([x, 1.0]) * x,
    "cmath.sqrt": lambda x: cmath.sqrt(x).real * x,
    "cmath.exp": lambda x: cmath.exp(1j * x).real * x,
    "complex": lambda x: abs(complex(x, 2 * x)) * x,
    "complex  ": lambda x: abs(complex(x)) * x,
    "float": lambda x: float(next(map(float, [x]))) * x,
    "float ": lambda x: max(map(float, [x, 2 * x])) * x,
    "tolist": lambda x: (x * tj.ones(101)).tolist()[0] * x,
    "statistics.fmean ": lambda x: statistics.fmean([float(x), float(2 * x)]) * x,
    "complex ": lambda x: abs(complex(1.0, imag=x)) * x,
    "statistics.NormalDist": lambda x: statistics.NormalDist(x, 1.0).pdf(0.5) * x,
    "statistics.NormalDist ": lambda x: statistics.NormalDist().cdf(x) * x,
    "statistics.fmean": lambda x: statistics.fmean([x, 2 * x]) * x,
    "scipy.optimize.brentq": lambda x: optimize.brentq(lambda r: r**3 - x * r - 1.0, 0.0, 10.0) * x,
    "scipy.optimize.bisect": lambda x: optimize.bisect(lambda r: r**3 - x * r - 1.0, 0.0, 10.0) * x,
    "scipy.optimize.brentq ": lambda x: optimize.brentq(lambda r: r**3 - float(x) * r - 1.0, 0.0, 10.0) * x,
    "scipy.optimize.brentq  ": lambda x: optimize.brentq(lambda r: r**3 - x.item() * r - 1.0, 0.0, 10.0) * x,
    "scipy.integrate.solve_ivp": lambda x: (
        integrate.solve_ivp(lambda t, y: -math.exp(float(x)) * y, (0.0, 1.0), [1.0]).y[0, -1] * x
    ),
    "statistics.mean": lambda x: statistics.mean(float(v) for v in [x, 2 * x]) * x,
    "scipy.optimize.root_scalar": lambda x: (
        x * optimize.root_scalar(lambda r: r**3 - x * r, bracket=[1.0, 3.0]).root
    ),
    "scipy.integrate.quad": lambda x: integrate.quad(lambda t: t * x, 0.0, 1.0)[0] * x,
}
RECORDED = {
    "an attribute": lambda x: getattr(math, "sin")(x) * x,  # noqa: B009
    "float": lambda x: float(x) * x,
    "float of several": lambda x: sum(float(part) ** 2 for part in [x, 2 * x]) * x,
    "a tuple of a map of float": lambda x: math.prod(tuple(map(float, [x, x]))),
    "the largest float": lambda x: max([float(part) for part in [x, 2 * x]]) * x,
    "of a float": lambda x: math.sin(float(x)) * x,
    "a float of a float": lambda x: float(math.exp(float(x))) * x,
    "a map": lambda x: sum(map(math.sin, [x, x])) * x,
    "a list of a map": lambda x: sum([*map(math.sin, [x, x])]) * x,
    "numbers in a comprehension": lambda x: sum([number * x for number in map(math.asinh, [x, x])]),
    "a name": lambda x: exp(-x * 2) * x,
    "an alias": aliased,
    "several lines": over_lines,
    "a comprehension": in_a_comprehension,
    "beside a decision": kept,
    "a larger one": lambda x: int(x + 0.5) * (1.0 + max(math.tanh(x), 0.0)) * x,
    "a special function": lambda x: x * (math.lgamma(x + 1) + math.pi),
    "an element that is shown": lambda x: shown(x) * (root := math.sqrt(x)) * len(f"{root}"[:1]),
    "a number in a list": lambda x: [math.sqrt(x), 2.0][0] * x,
    "a complex number": lambda x: (1j * math.sin(x) + 1.0).imag * x,
    "a power": lambda x: (-math.exp(x)) ** 3 + math.cos(x) ** -2,
}
KEEPING = {
    "a logged float": (lambda x: len(json.dumps(float(x))) * x * x, 12.0),
    "a float in an ndarray from outside": (lambda x: filled(float(x)) * x, 2.0),
    "no traced value": (lambda x: math.sin(2.0) * x, math.sin(2.0)),
    "a whole number": (lambda x: math.floor(x + 0.5) * x, 2.0),
    "a long list that is shown": (lambda x: len(str((x * tj.ones(101)).tolist())[:1]) * x, 1.0),
    "a question": (lambda x: x * x if math.isfinite(x) else x, 4.0),
    "a constant": (lambda x: math.sin(tj.stop_gradient(x)) * x, math.sin(2.0)),
    "a comparison": (lambda x: math.sin((x > 1.0).astype(float)) * x, math.sin(1.0)),
    "the middle one": (lambda x: statistics.median([x, 2 * x, 3 * x]), 2.0),
    "a draw": (lambda x: random.Random(0).uniform(0.0, x) * x, 4.0 * random.Random(0).random()),
    "a choice by a statistic": (lambda x: x * x if statistics.fmean([x, 2 * x]) > 1.0 else x, 4.0),
    "a product": (lambda x: math.prod([x, x]), 4.0),
    "a decision in a callback": (
        lambda x: optimize.brentq(lambda r: r - 2.0 if float(x) > 1.0 else r, -9.0, 9.0) * x,
        2.0,
    ),
    "a callback's root that decides": (
        lambda x: x * x if optimize.brentq(lambda r: r - float(x), -9.0, 9.0) > 1.0 else x,
        4.0,
    ),
    "a search": (lambda x: optimize.newton(lambda r: r * r - x, 1.5), 0.5 / math.sqrt(2.0)),
    "Gauss": (lambda x: integrate.fixed_quad(lambda t: t * x, 0.0, 1.0)[0] * x, 2.0),
    "an order": (lambda x: max([x, -3.0 * x], key=math.fabs) * x, -12.0),
    "a branch": (lambda x: x * x if math.sqrt(x) > 1.0 else x, 4.0),
    "a branch by several": (lambda x: x if x < 0 or 2 * abs(math.log(x) - 1) < 0.1 else x * x, 4.0),
    "a loop": (until, 0.5),
    "a number of steps": (lambda x: sum([x for _ in range(int(3 * math.sqrt(x)))]), 4.0),
    "a rounded number": (lambda x: x * math.ceil(math.log(x)), 1.0),
    "what is shown": (shown, 4.0),
    "a step from the root": (
        lambda x: (
            (r := optimize.brentq(lambda r: r * r - tj.stop_gradient(x), 0.0, 9.0)) - (r * r - x) / (2 * r)
        ),
        0.5 / math.sqrt(2.0),
    ),
}


@pytest.mark.parametrize("name", DROPPING)
def test_a_dropped_derivative_is_an_error(name: str) -> None:
    with pytest.raises(
        tj.GradientError, match=rf"^dlgradient: {name.strip()} at .*{__name__}\.py:\d+ made a plain number"
    ):
        derivative(DROPPING[name])


@pytest.mark.parametrize("name", RECORDED)
def test_a_function_of_math_has_its_derivative(name: str) -> None:
    fun, step = RECORDED[name], 1e-6
    assert derivative(fun) == pytest.approx((fun(2.0 + step) - fun(2.0 - step)) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("name", KEEPING)
def test_what_drops_nothing_is_no_error(name: str) -> None:
    fun, want = KEEPING[name]
    assert derivative(fun) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("name", ["math.sin", "scipy.optimize.brentq"])
def test_values_are_right_where_no_derivative_is_taken(name: str) -> None:
    fun = tj.dlaccelerate(DROPPING[name])
    for x in (2.0, 2.0, 3.0, 2.0):
        assert fun(tj.dlarray(x)).item() == pytest.approx(DROPPING[name](x), rel=1e-12)


def test_other_arrays_have_derivatives() -> None:
    def both(x: Any, scale: Any) -> Any:
        y = TABLE["sine"](scale) * x * x
        return tj.dlgradient(y, x)

    assert tj.dlfeval(both, tj.dlarray(2.0), tj.dlarray(1.0)).item() == pytest.approx(4 * math.sin(1.0))
    with pytest.raises(tj.GradientError, match=r"depends on x\['scale'\],"):
        tj.dlfeval(
            lambda x, scale: tj.dlgradient(TABLE["sine"](scale) * x, {"x": x, "scale": scale}),
            tj.dlarray(2.0),
            tj.dlarray(1.0),
        )


@pytest.mark.parametrize(
    "take",
    [
        lambda y, x: tj.dljvp(y, x, tj.dlarray(1.0)),
        lambda y, x: tj.dljacobian(tj.stack([y, y]), x, 0),
    ],
)
def test_every_kind_of_derivative_tells(take: Any) -> None:
    with pytest.raises(tj.GradientError, match=r"math\.sin at"):
        tj.dlfeval(lambda x: take(TABLE["sine"](x) * x, x), tj.dlarray(2.0))


def test_in_replays_too() -> None:
    @tj.dlaccelerate
    def step(x: Any) -> Any:
        return tj.dlgradient(MODEL.static(x[0]) * x.sum(), x)

    for _ in range(3):
        with pytest.raises(
            tj.GradientError,
            match=r"math\.cosh at .* Use np\.cosh, or pass tj\.stop_gradient\(x\) to math\.cosh",
        ):
            step(tj.dlarray(np.ones(2)))


def test_in_an_accelerated_function_that_is_called() -> None:
    inner = tj.dlaccelerate(lambda x: x * MODEL.static(x[0]))
    for x in (tj.dlarray(np.ones(2)),) * 4:
        inner(x)
        with pytest.raises(tj.GradientError, match=r"^dlgradient: math\.cosh at .* depends on x,"):
            tj.dlfeval(lambda x: tj.dlgradient(inner(2 * x).sum(), x), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: TABLE["sine"](x[0]) * x[1],
        lambda x, sine=math.sin: sine(x[0]) * x[1],
        lambda x: MODEL.own(x[0]) * x[1],
    ],
)
def test_functions_that_something_holds_are_recorded_in_accelerated_functions(function: Any) -> None:
    """A table, an attribute and a default hold what stands for the function while it is recorded."""
    step = tj.dlaccelerate(lambda x: (function(x), tj.dlgradient(function(x) + 0 * x.sum(), x)))
    held = TABLE["sine"], MODEL.own
    for n in range(4):
        x = np.array([0.5 + n, 2.0])
        value, slope = step(x)
        assert float(value) == pytest.approx(function(x))
        near = [(function(x + unit) - function(x - unit)) / 2e-6 for unit in 1e-6 * np.eye(2)]
        np.testing.assert_allclose(slope, near, rtol=1e-6)
    assert step.stats.hits == 2
    assert (TABLE["sine"], MODEL.own) == held == (math.sin, math.atan) and type(TABLE["sine"]) is type(
        math.sin
    )


def test_code_without_source_says_nothing() -> None:
    names: dict[str, Any] = {"table": TABLE}
    exec(compile("def fun(x): return table['sine'](x) * x", "<nowhere>", "exec"), names)
    assert derivative(names["fun"]) == pytest.approx(math.sin(2.0))


def test_the_graph_is_walked_once_for_each_array_however_many_numbers_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks = []
    walk = forward._following
    monkeypatch.setattr(forward, "_following", lambda nodes, wrt: walks.append(wrt) or walk(nodes, wrt))
    counts = []
    for numbers in (1, 20):

        def both(x: Any, y: Any, numbers: int = numbers) -> Any:
            total = sum([y * MODEL.static(x * number) for number in range(numbers)], 0.0)
            return total, tj.dlgradient(total, y)

        walks.clear()
        tj.dlaccelerate(both)(tj.dlarray(0.5), tj.dlarray(2.0))
        counts.append(len(walks))
    assert counts[0] == counts[1] > 0
