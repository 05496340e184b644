# SPDX-License-Identifier: BSD-3-Clause
"""Special functions with vector code of their own: against numbers of 40 digits, and SciPy where domains end."""

from collections.abc import Callable
from typing import Any

import effort
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from tracejit.kernels.intrinsics import special

import tracejit as tj
from tracejit.ops import OPS, Kind
from tracejit.ops.ufunc_loops import PREFIX

mpmath = pytest.importorskip("mpmath")
mpf = mpmath.mpf

EXACT: dict[str, Callable[[Any], Any]] = {
    "entr": lambda x: -x * mpmath.log(x),
    "erfc": mpmath.erfc,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "erfinv": mpmath.erfinv,
    "gammaln": mpmath.loggamma,
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "log_ndtr": lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "ndtri": lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
    "psi": mpmath.digamma,
}
RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "entr": ((1e-3, 3.0), (3.0, 1e5)),
    "erfc": ((-3.0, 3.0), (-20.0, 9.0)),
    "erfcx": ((-3.0, 3.0), (-9.0, 20.0), (0.0, 1e4)),
    "erfinv": ((-1.0, 1.0), (-1e-3, 1e-3), (0.98, 1.0)),
    "gammaln": ((1e-3, 3.0), (0.99, 1.01), (1.99, 2.01), (2.0, 20.0), (20.0, 1e9)),
    "i0": ((-9.0, 9.0), (-80.0, 80.0)),
    "i0e": ((-9.0, 9.0), (-80.0, 80.0), (80.0, 1e5)),
    "i1": ((-9.0, 9.0), (-80.0, 80.0)),
    "i1e": ((-9.0, 9.0), (-80.0, 80.0), (80.0, 1e5)),
    "log_ndtr": ((-3.0, 3.0), (-100.0, 9.0)),
    "logit": ((0.0, 1.0), (0.49, 0.51)),
    "ndtr": ((-3.0, 3.0), (-12.0, 9.0)),
    "ndtri": ((0.0, 1.0), (0.0, 1e-9), (0.49, 0.51)),
    "psi": ((1e-3, 3.0), (1.46, 1.463), (2.0, 20.0), (20.0, 1e9)),
}
"""Where functions are compared; the ends of the ranges, which float32 may round to an end of a domain, are left out."""
MOST_ULP = {"i1": 8.0, "i1e": 8.0, "log_ndtr": 5.0}
"""The largest errors of float64, where they are more than 4 units of the last place."""
EDGES = np.array([
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 3.0, -3.0, 8.0, -8.0, 10.0, 13.0, 2.5, 1e10, -1e10, 1e30, -1e30,
    np.inf, -np.inf, np.nan, 40.0, -40.0, 100.0, -100.0, 710.0, -710.0, 720.0, 1e-30, -1e-30, 171.0, 2.0**53,
    -(2.0**53), 26.0, -26.0, 1e301, 2e307, -1e306, -1.7e308, 1.7e308,
])  # fmt: skip


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(40), np.errstate(all="ignore"):
        yield


def computed(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return the result of compiled code."""
    function = tj.dlaccelerate(getattr(tj.special, name), confirm=0, audit=False)
    arrays = [tj.dlarray(operand) for operand in operands]
    results = [np.array(function(*arrays)) for _ in range(2)]
    return results[1]


def assert_near(name: str, x: np.ndarray, most_ulp: float) -> None:
    found = computed(name, x)
    assert found.dtype == x.dtype
    for number, have in zip(x, found, strict=True):
        exact = EXACT[name](mpf(float(number)))
        unit = mpf(float(np.spacing(abs(x.dtype.type(exact)))))
        error = float(abs(mpf(float(have)) - exact) / unit)
        assert error <= most_ulp, (name, number, have, float(exact), error)


def test_all_have_records() -> None:
    own = {name.removeprefix("special_") for name in (*special.UNARY, *special.BINARY)}
    assert own == {
        op.name.removeprefix(PREFIX)
        for op in OPS.values()
        if op.name.startswith(PREFIX) and op.kind is Kind.ELEMENTWISE
    }
    assert own == {*EXACT, "xlogy", "xlog1py"}


@pytest.mark.parametrize("name", sorted(EXACT))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_errors(name: str, dtype: type) -> None:
    rng = np.random.default_rng(7)
    count = effort.sweep(50, 1000)
    for low, high in RANGES[name]:
        x = rng.uniform(low, high, count).astype(dtype)
        x = x[(x > low) & (x < high)]
        assert_near(name, x, MOST_ULP.get(name, 4.0) if dtype is np.float64 else 0.51)


@pytest.mark.parametrize("name", sorted(EXACT))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ends_of_domains(name: str, dtype: type) -> None:
    x = EDGES.astype(dtype)
    want = getattr(scipy.special, name)(x)
    want[abs(want) < np.finfo(dtype).tiny] *= 0  # denormal numbers count as 0
    found = computed(name, x)
    np.testing.assert_allclose(found, want, rtol=1e-6 if dtype is np.float32 else 1e-12)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])


@pytest.mark.parametrize("name", ["gammaln", "psi"])
def test_reflections(name: str) -> None:
    x = np.random.default_rng(3).uniform(-9, 0, effort.sweep(200, 3000))
    np.testing.assert_allclose(computed(name, x), getattr(scipy.special, name)(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_two_operands(name: str) -> None:
    x, y = (part.ravel() for part in np.meshgrid(EDGES, EDGES))
    np.testing.assert_allclose(computed(name, x, y), getattr(scipy.special, name)(x, y), rtol=1e-14)
    x, y = np.random.default_rng(5).uniform(0.1, 9, (2, 500))
    for dtype in (np.float64, np.float32):
        a, b = x.astype(dtype), y.astype(dtype)
        rtol = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(computed(name, a, b), getattr(scipy.special, name)(a, b), rtol=rtol)


@given(st.sampled_from(sorted(EXACT)), st.lists(st.floats(-300, 300), min_size=1, max_size=20))
def test_any_numbers_are_those_of_scipy(name: str, numbers: list[float]) -> None:
    x = np.array(numbers)
    want = getattr(scipy.special, name)(x)
    want[abs(want) < np.finfo(np.float64).tiny] *= 0
    x[abs(x) < np.finfo(np.float64).tiny] *= 0
    tame = (x > 0) | (name not in ("gammaln", "psi"))  # SciPy loses digits near the roots between the poles
    np.testing.assert_allclose(computed(name, x)[tame], want[tame], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.uint16])
def test_integers_are_computed_as_by_scipy(dtype: type) -> None:
    x = np.array([0, 1, 1], dtype)
    for name in EXACT:
        want = getattr(scipy.special, name)(x)
        found = computed(name, x)
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=1e-6)
