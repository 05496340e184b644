# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of special functions of several operands where their formulas have quotients 0 / 0 or poles.

First derivatives are compared with differences of SciPy's function, second ones with differences of the first.
"""

from collections.abc import Callable

import numpy as np
import pytest

import tracejit as tj
from tracejit.functions import special_ufuncs
from tracejit.ops.special import RULES

ONCE = ("agm", "ellipeinc", "ellipj", "ellipkinc", "elliprc", "elliprf")  # elliprd has no derivative
TABLE = """
beta 1.5,2.5 -.5,1.5 -.5,-.5 .5,-2.5 -3,2 2,-3 -1.5,-.5 | betaln 1.5,2.5 -.5,1.5 2,-3 1e8,2 | rel_entr 1,1 | kl_div 1,1
binom 5,2 5,6 5,7 2.5,3.5 5,-1 0,0 3,0 -2.5,3 4,-2 | poch 2,3 1,0 -2,2 -2,1 -2,4 .5,.5 | owens_t 0,0 0,1 1,0
agm 1,1 1,1e-8 3,3 1e-5,2 1,1e-150 2,0 1e-150,1 -2,-3 | ellipkinc .5,0 .5,1 1.2,1 0,.5 2.5,.5 .5,-3 -4,.3
ellipeinc .5,0 .5,1 0,.5 2.5,.5 -4,.3 | elliprc 0,1 1,1 2,2 1,-1 3,.5 | elliprf 1,1,1 0,1,2 | ellipj .5,0 .5,.5 0,.5
boxcox 1,0 2,0 1,1 2,1e-9 | boxcox1p 0,0 1,0 | inv_boxcox 0,0 1,0 | inv_boxcox1p 0,0 1,0 | pseudo_huber 1,0 1,2
huber 1,0 1,.5 1,3 | powm1 1,2 2,0 0,2 -2,2 | xlogy 0,0 0,1 1,1 | xlog1py 0,-1 0,0 1,0 | hyp1f1 1,2,0 -2,3,1
hyperu 1,2,.5 0,1,1 -1,2,1.5 2,-1,1 | hyp2f1 1,2,3,0 0,2,3,.5 -2,1,3,.5 | iv 0,0 1,0 2,0 | jv 0,0 1,0 2,0
_spherical_jn 3,1.5 0,2 | _spherical_in 3,1.5 0,2
"""
CASES = [
    (row.split()[0], tuple(map(float, point.split(","))))
    for row in TABLE.replace("|", "\n").splitlines()
    for point in row.split()[1:]
]
INTEGERS = ("_spherical_jn", "_spherical_in")


def along(name: str, point: tuple[float, ...], operand: int) -> Callable[[np.ndarray], tj.dlarray]:
    """Return a function of one operand, the others being those of a point."""

    def function(x: np.ndarray) -> tj.dlarray:
        operands = [x if i == operand else int(p) if name in INTEGERS else p for i, p in enumerate(point)]
        found = special_ufuncs.call(name, tuple(operands))
        return found[0] if isinstance(found, tuple) else found  # type: ignore[no-any-return]

    return function


def slope(function: Callable[..., tj.dlarray], order: int) -> Callable[[float], float]:
    def derived(x: tj.dlarray) -> tj.dlarray:
        y = function(x)
        for _ in range(order):
            y = tj.dlgradient(y, x)
        return y

    return lambda x: float(tj.dlfeval(derived, np.array(float(x))))


def difference(function: Callable[[float], float], x: float) -> tuple[float, float]:
    """Return the derivative by differences over several steps, and how far apart those over two steps are."""
    found = []
    for h in (1e-2, 3e-3, 1e-3, 3e-4):
        near = [function(x + k * h) for k in (-2, -1, 1, 2)]
        found.append((8 * (near[2] - near[1]) - near[3] + near[0]) / (12 * h))
    apart = np.abs(np.diff(found))
    best = int(np.nanargmin(apart)) if np.isfinite(apart).any() else 0
    return found[best + 1], float(apart[best])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case: tuple[str, tuple[float, ...]]) -> None:
    name, point = case
    checked = 0
    for operand, rule in enumerate(RULES[name]):
        if not callable(rule):
            continue
        for order in (1,) if name in ONCE else (1, 2):
            function = along(name, point, operand)
            want, error = difference(slope(function, order - 1), point[operand])
            if not np.isfinite(want) or error > 1e-6 * max(1.0, abs(want)):
                continue  # there is a pole, a jump, or a border of the domain
            if name == "poch" and operand == 1 and point[0] < 0:
                continue  # SciPy's values at poles of gamma do not continue those beside them
            have = slope(function, order)(point[operand])
            assert abs(have - want) <= 1e-6 * max(1.0, abs(want)) + 20 * error, (operand, order, have, want)
            checked += 1
    assert checked or name == "agm"


@pytest.mark.parametrize("m", [1.0, 1 - 1e-12, 0.0])
def test_incomplete_integrals_by_the_parameter(m: float) -> None:
    """At m = 1 they are those of sin^2 / (2 cos^3) and -sin^2 / (2 cos)."""
    phi = np.array([-0.9, 0.3, 1.2])
    root, tangent = np.arctanh(np.sin(phi)), np.tan(phi) / np.cos(phi)
    want = {1.0: (tangent - root) / 4, 0.0: (phi - np.sin(phi) * np.cos(phi)) / 4}[round(m)]
    ends = {1.0: -(root - np.sin(phi)) / 2, 0.0: -(phi - np.sin(phi) * np.cos(phi)) / 4}[round(m)]
    for name, wanted in (("ellipkinc", want), ("ellipeinc", ends)):
        ufunc = getattr(tj.special, name)
        found = tj.dlfeval(lambda m, u=ufunc: tj.dlgradient(u(phi, m).sum(), m), np.full(3, m))
        np.testing.assert_allclose(tj.extractdata(found), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_in"])
def test_spherical_bessel_functions_at_0(name: str) -> None:
    found = [slope(lambda x, n=n: getattr(tj.special, name)(n, x), 1)(0.0) for n in range(4)]
    np.testing.assert_allclose(found, [0.0, 1 / 3, 0.0, 0.0], rtol=1e-15, atol=1e-15)
