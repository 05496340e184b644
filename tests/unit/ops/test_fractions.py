# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of the incomplete gamma and beta functions by their parameters, with 100 digits beside."""

from typing import Any

import effort
import numpy as np
import pytest
from accelerated import dlaccelerate
from mpmath import mp, mpf
from tracejit.kernels.loops import fractions as kernels

import tracejit as tj
from tracejit.errors import GradientError
from tracejit.ops import OPS

GAMMA = [
    (a, x)
    for a in (1e-8, 1e-3, 0.5, 1.0, 7.3, 200.0, 3e3, 1e5)
    for x in (1e-6, 0.1, 0.99, 1.3, 5.0, 60.0, 190.0, 220.0, 2.9e3, 3.05e3, 1.001e5)
]
BETA = [
    (a, b, x)
    for a in (1e-3, 0.5, 7.0, 900.0)
    for b in (1e-3, 0.4, 20.0, 700.0)
    for x in (1e-9, 0.01, 0.3, 0.56, 0.95, 1 - 1e-6)
]


def upper_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower_gamma(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def upper_beta(a: Any, b: Any, x: Any) -> Any:
    return lower_beta(b, a, 1 - x)


def differences(fun: Any, given: list[float], wrt: int) -> float:
    with mp.workdps(100):
        values = [mpf(part) for part in given]
        step = values[wrt] * mpf(10) ** -14
        ends = [fun(*values[:wrt], values[wrt] + s, *values[wrt + 1 :]) for s in (step, -step)]
        return float((ends[0] - ends[1]) / (2 * step))


def gradient(name: str, *given: float) -> list[float]:
    fun = getattr(tj.special, name)
    arrays = [np.array(part) for part in given]
    return [g.item() for g in tj.dlfeval(lambda *z: tj.dlgradient(fun(*z), z), *arrays)]


@pytest.mark.slow
def test_gammainc_by_a() -> None:
    for a, x in effort.sample(GAMMA, share=4):
        # The smaller side, whose derivative has all digits.
        want = -differences(upper_gamma, [a, x], 0) if x > a else differences(lower_gamma, [a, x], 0)
        for name, sign in (("gammainc", 1), ("gammaincc", -1)):
            have = gradient(name, a, x)[0] * sign
            assert abs(have - want) <= 1e-10 * abs(want) + 1e-290, (name, a, x, have, want)


@pytest.mark.slow
def test_betainc_by_a_and_b() -> None:
    for a, b, x in effort.sample(BETA, share=4):
        side, turn = (lower_beta, 1) if x <= a / (a + b) else (upper_beta, -1)
        want = [differences(side, [a, b, x], wrt) * turn for wrt in (0, 1)]
        for name, sign in (("betainc", 1), ("betaincc", -1)):
            have = gradient(name, a, b, x)
            for p, q in zip(have, want, strict=False):
                assert abs(p * sign - q) <= 1e-9 * abs(q) + 1e-290, (name, a, b, x, p, q)


def test_ends() -> None:
    """At 0, 1 and infinity, and for parameters that are none."""
    assert gradient("gammainc", 2.0, 0.0)[0] == gradient("gammainc", 2.0, np.inf)[0] == 0.0
    assert gradient("betainc", 2.0, 3.0, 0.0)[:2] == gradient("betainc", 2.0, 3.0, 1.0)[:2] == [0.0, 0.0]
    with np.errstate(all="ignore"):
        assert np.isnan(gradient("gammainc", -1.0, 2.0)[0])
        assert np.isnan(gradient("betainc", 2.0, np.nan, 0.5)[1])


@pytest.mark.parametrize("name", ["gamma", "beta"])
def test_the_loop_and_the_reference_agree(name: str) -> None:
    """Both stop at the same terms or one apart; also where there is nothing."""
    op = OPS[f"special.{name}_fraction"]
    specials = [
        (np.nan, 1.0),
        (1.0, np.nan),
        (-1.0, 0.5),
        (0.0, 0.5),
        (np.inf, 0.5),
        (2.0, np.inf),
        (2.0, 0.0),
    ]
    if name == "gamma":
        rows = [(a, x, float(x <= a + 1.0)) for a, x in [*GAMMA, *specials]]
    else:
        rows = [(a, b, x if x <= (a + 1) / (a + b + 2) else 1 - x) for a, b, x in BETA]
        rows = [(a, b, x) for a, b, x in rows if x <= (a + 1) / (a + b + 2)]
        rows += [(a, 2.0, x) for a, x in specials] + [(2.0, a, 0.5) for a, _ in specials] + [(2.0, 3.0, 1.5)]
    arrays = [np.array(column) for column in zip(*rows, strict=True)]
    with np.errstate(all="ignore"):
        wanted = op.numpy(*arrays)
    found = [np.empty(len(rows)) for _ in wanted]
    getattr(kernels, f"{name}_fraction")(0, len(rows), 1, 1, 1, *arrays, *found)
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-15)


def test_mixed_second_derivatives() -> None:
    """By the parameter and the variable, in both orders; by the parameter twice is an error."""
    a, x = np.array(2.3), np.array(1.7)

    def by_a(a: Any, x: Any) -> Any:
        return tj.dlgradient(tj.special.gammainc(a, x), a)

    def by_x(a: Any, x: Any) -> Any:
        return tj.dlgradient(tj.special.gammainc(a, x), x)

    first = tj.dlfeval(lambda a, x: tj.dlgradient(by_a(a, x), x), a, x).item()
    second = tj.dlfeval(lambda a, x: tj.dlgradient(by_x(a, x), a), a, x).item()
    assert first == pytest.approx(second, rel=1e-11)
    with pytest.raises(
        GradientError, match=r"^special\.gammainc: there is no formula for its second derivative"
    ):
        tj.dlfeval(lambda a, x: tj.dlgradient(by_a(a, x), a), a, x)
    p, q, z = np.array(1.3), np.array(2.2), np.array(0.3)

    def shapes(p: Any, q: Any, z: Any) -> Any:
        return sum(tj.dlgradient(tj.special.betainc(p, q, z), (p, q)))

    def variable(p: Any, q: Any, z: Any) -> Any:
        return tj.dlgradient(tj.special.betainc(p, q, z), z)

    first = tj.dlfeval(lambda *given: tj.dlgradient(shapes(*given), given[2]), p, q, z).item()
    found = tj.dlfeval(lambda *given: tj.dlgradient(variable(*given), given[:2]), p, q, z)
    assert first == pytest.approx(sum(part.item() for part in found), rel=1e-11)
    with pytest.raises(
        GradientError, match=r"^special\.betainc: there is no formula for its second derivative"
    ):
        tj.dlfeval(lambda *given: tj.dlgradient(shapes(*given), given[0]), p, q, z)


def test_forward_mode_replays_and_float32() -> None:
    a, b, x = np.array([0.7, 2.0, 9.0]), np.array(1.5), np.array([[0.2], [0.8]])

    def fun(a: Any, b: Any, x: Any) -> Any:
        return tj.special.betainc(a, b, x) + tj.special.gammainc(a, x)

    def slopes(a: Any, b: Any, x: Any) -> Any:
        return tj.dlgradient(fun(a, b, x).sum(), (a, b, x))

    want = tj.dlfeval(slopes, a, b, x)
    _, tangent = tj.jvp(fun, (a, b, x), (np.ones(3), np.ones(()), np.ones((2, 1))))
    assert tangent.sum().item() == pytest.approx(sum(g.sum().item() for g in want), rel=1e-12)
    step = dlaccelerate(slopes)
    for _ in range(3):
        found = step(a, b, x)
    for have, part in zip(found, want, strict=True):
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(part), rtol=1e-13)
    narrow = tj.dlfeval(slopes, *[part.astype(np.float32) for part in (a, b, x)])
    for have, part in zip(narrow, want, strict=True):
        assert have.dtype == np.float32
        np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(part), rtol=2e-5)
