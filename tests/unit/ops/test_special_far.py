# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of special functions at tiny, huge and negative operands, and at 0, where formulas lose digits."""

from collections.abc import Callable
from typing import Any

import effort
import numpy as np
import pytest
import scipy.special
from mpmath import mp, mpf

import tracejit as tj
from tracejit.ops.special_rules import ONE
from tracejit.ops.ufunc_loops import ufunc_of

SIZES = np.array([1e-300, 1e-20, 1e-8, 1e-3, 0.13, 0.57, 1.3, 2.6, 5.2, 11.7, 20.9, 33.3, 52.1, 120.6, 310.4])
PLACES = np.concatenate([-SIZES[::-1], [0.0], SIZES])
ROUGH = {"cotdg", "keip", "itstruve0", "itmodstruve0", "it2struve0", "kolmogi"}
"""Functions of which SciPy has a few digits, far from 0 fewer than differences need."""
SINGULAR = {
    "entr",
    "ker",
    "kerp",
    "kei",
    "keip",
    "y0",
    "y1",
    "k0",
    "k1",
    "k0e",
    "k1e",
    "expi",
    "exp1",
    "logit",
}
"""Functions that have no derivative at 0, or near it one that differences do not see."""
SMOOTH = [name for name, rule in ONE.items() if callable(rule) and name not in ROUGH and name[0] != "_"]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def slopes(name: str, *operands: Any) -> np.ndarray:
    """Return the derivatives of a function by its last operand."""
    function = getattr(tj.special, name)
    *before, last = operands
    return tj.extractdata(
        tj.dlfeval(lambda x: tj.dlgradient(function(*before, x).sum(), x), np.asarray(last))
    )


@pytest.mark.slow
def test_functions_of_one_operand() -> None:
    """By differences of SciPy's numbers, wherever these are smooth and finite."""
    for name in effort.sample(SMOOTH, share=4):
        x = PLACES[PLACES != 0] if name in SINGULAR else PLACES
        value, step = ufunc_of(name), np.where(x == 0, 1e-6, np.abs(x) * 1e-5)
        near = [value(x + k * step) for k in (-2, -1, 1, 2)]
        want = (8 * (near[2] - near[1]) - near[3] + near[0]) / (12 * step)
        have, size = slopes(name, x), np.abs(value(x))
        tolerance = 2e-5 * np.abs(want) + size * 1e-12 / step + 1e-290
        # SciPy's zetac is 0 from 127 on, where it is 2^-s.
        seen = np.isfinite(want) & np.isfinite(size) & ((name != "zetac") | (x < 100))
        wrong = seen & ~(np.abs(have - want) <= tolerance)
        assert not wrong.any(), (name, x[wrong], have[wrong], want[wrong])


def hazard(x: Any) -> Any:
    return mp.npdf(x) / (mp.erfc(-x / mp.sqrt(2)) / 2)


def far_series(x: Any, factor: Any, sign: int) -> Any:
    """Return the asymptotic series of a derivative, as long as its terms get smaller."""
    total, term = mpf(0), factor / x**2
    for k in range(12):
        total += term
        term *= sign * mpf(2 * k + 3) / (2 * x * x)
    return total


def dawson(x: Any) -> Any:
    if abs(x) > 20:
        return far_series(x, mpf(-1) / 2, 1)
    return 1 - x * mp.sqrt(mp.pi) * mp.exp(-x * x) * mp.erfi(x)


def scaled(x: Any) -> Any:
    if x > 20:
        return far_series(x, -1 / mp.sqrt(mp.pi), -1)
    return 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / mp.sqrt(mp.pi)


def far_hazard(x: Any) -> Any:
    return -x / (1 - x**-2 + 3 * x**-4 - 15 * x**-6)


EXACT: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "log_ndtr": (
        lambda x: far_hazard(x) if x < -100 else hazard(x), [-1e12, -1e8, -1e5, -40.0, -3.0, 0.0, 4.0, 30.0]
    ),
    "dawsn": (dawson, [0.0, 0.7, 9.0, 99.0, 101.0, -1e4, 1e8]),
    "erfcx": (scaled, [-3.0, 0.0, 0.7, 9.0, 99.0, 101.0, 1e4]),
    "i1": (lambda x: mp.besseli(0, x) - mp.besseli(1, x) / x, [-30.0, 1e-8, 0.3, 9.0, 600.0]),
    "j1": (lambda x: mp.besselj(0, x) - mp.besselj(1, x) / x, [-30.0, 1e-8, 0.3, 9.0, 900.0]),
    "y1": (lambda x: mp.bessely(0, x) - mp.bessely(1, x) / x, [1e-8, 0.3, 9.0, 900.0]),
    "k1": (lambda x: -mp.besselk(0, x) - mp.besselk(1, x) / x, [1e-8, 0.3, 9.0, 600.0]),
    "psi": (lambda x: mp.psi(1, x), [-20.5, -0.3, 1e-5, 0.7, 9.0, 1e8]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_against_many_digits(name: str) -> None:
    formula, places = EXACT[name]
    have = slopes(name, np.array(places))
    for x, slope in zip(places, have, strict=True):
        with mp.workdps(100):  # of 450 the Bessel functions take seconds
            want = float(formula(mpf(x)))
        assert abs(slope - want) <= 2e-11 * abs(want) + 1e-300, (name, x, slope, want)


@pytest.mark.slow
def test_ndtri_exp_far_from_0() -> None:
    for logarithm in (-1e20, -1e10, -700.0, -3.0, -1e-3):
        y = scipy.special.ndtri_exp(logarithm)
        with mp.workdps(450):
            want = float(1 / (far_hazard(mpf(y)) if y < -100 else hazard(mpf(y))))
        assert slopes("ndtri_exp", logarithm).item() == pytest.approx(want, rel=1e-12)


def test_hyp0f1_and_the_principal_value() -> None:
    for v in (0.5, 2.0, 7.3):
        for x in (-900.0, -3.0, 0.0, 1e-9, 2.5, 400.0):
            want = float(mp.hyp0f1(v + 1, x) / v)
            assert slopes("hyp0f1", v, x).item() == pytest.approx(want, rel=1e-9)
    for x, y in ((0.7, -2.0), (2.0, -1e3), (1.3, 0.4), (0.4, 1.3), (2.0, 2.0)):
        step = 1e-4 * abs(y)
        near = [scipy.special.elliprc(x, y + k * step) for k in (-2, -1, 1, 2)]
        want = (8 * (near[2] - near[1]) - near[3] + near[0]) / (12 * step)
        assert slopes("elliprc", x, y).item() == pytest.approx(want, rel=1e-8)


@pytest.mark.filterwarnings(
    "ignore:floating point number truncated:RuntimeWarning", "ignore:non-integer arg n"
)
def test_orders_that_scipy_rounds() -> None:
    for name in ("kn", "yn", "expn"):
        np.testing.assert_array_equal(slopes(name, 2.7, 1.3), slopes(name, 2, 1.3), err_msg=name)
