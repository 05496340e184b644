# SPDX-License-Identifier: BSD-3-Clause
"""tj.special and SciPy's ufuncs on dlarrays: numbers, labels, replays and derivatives, against scipy.special."""

from typing import Any

import effort
import numpy as np
import pytest
import scipy.special
from accelerated import dlaccelerate
from special_page import real_ufuncs

import tracejit as tj
from tracejit import dlarray
from tracejit.functions import special_ufuncs
from tracejit.ops.ufunc_loops import ufunc_of

A = np.array([[0.4, 1.7, 3.2], [2.5, 0.9, 5.1]])
V = np.array([0.3, 2.0, 1.2])
CALLS = """
logsumexp(a) | logsumexp(a, axis=0) | logsumexp(a, axis=1, keepdims=True) | logsumexp(a, b=v) | logsumexp(a, 1, b=v - 1)
logsumexp(a, axis=1, b=v - 1, return_sign=True) | logsumexp(a - np.inf) | logsumexp(a, axis=0, b=0 * v)
softmax(a) | softmax(a, axis=1) | log_softmax(a) | log_softmax(a, axis=0) | polygamma(0, a) | polygamma(1, a)
polygamma(3, a) | polygamma([0, 1, 2], a) | polygamma(2, a.astype(np.float32)) | multigammaln(a + 2, 3) | zeta(a + 1)
polygamma([0, 0.5, 1], a) | polygamma(1.5, a)
zeta(a + 1, v) | comb(a + 3, 2) | comb([5, 6, 2], [2, 3, 4]) | comb(5, v, repetition=True) | perm(a + 3, 2)
perm([5, 6, 2], [2, 3, 4]) | sinc(a) | jvp(2, a) | jvp(0.5, a, 2) | yvp(1, a) | ivp(1, a, 3) | kvp(2, a) | kvp(2, a, 2)
spherical_jn(2, a) | spherical_jn(2, a, derivative=True) | spherical_yn(1, a) | spherical_in(2, a, True)
spherical_kn(1, a, True) | expit(a) | log_expit(-a) | erf(a) | cbrt(a) | exp2(a) | round(a) | jn(2, a) | digamma(a)
spherical_jn(2, 2.7 - a) | spherical_jn(3, 2.7 - a, True) | spherical_yn(1, 2.7 - a) | spherical_yn([0, 1, 2], 2.7 - a)
spherical_in(3, 2.7 - a) | spherical_in(2, 2.7 - a, True) | spherical_kn(0, 2.7 - a) | spherical_kn([3, 1, 0], 2.7 - a)
spherical_kn(2, 2.7 - a, True) | spherical_in(1, np.array([3, -2, 5])) | hankel1(1, 2.7 - a) | hankel2(0.5, 2.7 - a)
hankel1(0.3, 2.7 - a) | hankel2(v, 2.7 - a) | hankel1(2, a) | hankel2(3, np.array([2, -1]))
"""
ROWS = [row.strip() for row in CALLS.replace("|", "\n").splitlines() if row.strip()]


def computed(row: str, package: Any, **arrays: Any) -> Any:
    return eval(f"package.{row}", {"package": package, "np": np, **arrays})


def close(have: Any, want: Any, what: str) -> None:
    for found, expected in zip(*(x if isinstance(x, tuple) else (x,) for x in (have, want)), strict=True):
        found, expected = tj.extractdata(found), np.asarray(expected)
        assert found.dtype == expected.dtype, what
        eps = np.finfo(expected.dtype).eps
        np.testing.assert_allclose(found, expected, rtol=32 * eps, atol=8 * eps, err_msg=what)


def test_functions_that_scipy_writes_in_python() -> None:
    with np.errstate(all="ignore"):
        for row in ROWS:
            want = computed(row, scipy.special, a=A, v=V)
            close(computed(row, tj.special, a=dlarray(A, "CB"), v=dlarray(V)), want, row)
            step = dlaccelerate(lambda a, v, row=row: computed(row, tj.special, a=a, v=v))
            for _ in range(3):
                close(step(A, V), want, row)
            assert step.hit_rate > 0, row


def slope(row: str) -> tuple[float, float]:
    """Return a derivative along V of the elements of A, by dlgradient and by differences."""

    def total(a: Any) -> Any:
        found = computed(row, tj.special, a=a, v=V)
        return (found[0] if isinstance(found, tuple) else found).sum()

    found = tj.extractdata(tj.dlfeval(lambda a: tj.dlgradient(total(a), a), A))
    near = [total(dlarray(A + step * V)).item() for step in (2e-4, 1e-4, -1e-4, -2e-4)]
    return float((found * V).sum()), (8 * (near[1] - near[2]) - near[0] + near[3]) / 12e-4


def test_their_derivatives() -> None:
    without = (
        "zeta(a + 1",
        "comb([",
        "perm([",
        "round",
        "logsumexp(a - np.inf",
        "float32",
        "comb(5",
        "b=0 * v",
        "hankel",
        "array([3",
        "polygamma([0, 0.5",  # NaN
        "polygamma(1.5",
    )
    for row in ROWS:
        if not any(part in row for part in without):
            found, wanted = slope(row)
            assert abs(found - wanted) < 1e-7 * max(1, abs(wanted)), (row, found, wanted)


def test_the_derivative_of_hankels_functions() -> None:
    """Also on the negative real axis, where they are those of complex numbers above the cut."""
    for name, order, by in (("hankel1", 1, "h1vp"), ("hankel2", 0.3, "h2vp")):
        z = 2.7 - A
        found = tj.dlfeval(lambda z: tj.dlgradient(getattr(tj.special, name)(order, z).real.sum(), z), z)  # noqa: B023
        np.testing.assert_allclose(found, getattr(scipy.special, by)(order, z).real, rtol=1e-12)


@pytest.mark.filterwarnings(
    "ignore:floating point number truncated:RuntimeWarning", "ignore:non-integer arg n"
)
def test_ufuncs_under_scipys_name() -> None:
    """With numbers and labelled arrays as operands, recorded and replayed."""
    for name, ufunc in effort.sample([*real_ufuncs().items()], share=8):
        count = ufunc.nin
        numbers = [2 if any("l" in types for types in ufunc.types) else 0.7] * (count - 1)
        x = dlarray(np.array([[0.35, 0.5, 0.8]]), "BC")
        with np.errstate(all="ignore"):
            want = ufunc(*numbers, tj.extractdata(x))
            step = dlaccelerate(lambda x, ufunc=ufunc, numbers=numbers: ufunc(*numbers, x))
            for found in (
                ufunc(*numbers, x),
                getattr(tj.special, name)(*numbers, x),
                step(x),
                step(x),
                step(x),
            ):
                for part, wanted in zip(
                    *(r if isinstance(r, tuple) else (r,) for r in (found, want)), strict=True
                ):
                    assert part.format == "BC", name
                    np.testing.assert_allclose(tj.extractdata(part), wanted, rtol=4e-16, err_msg=name)
        assert step.hit_rate > 0, name


@pytest.mark.parametrize("k", [0, -1, 2])
def test_lambertw(k: int) -> None:
    """SciPy's numbers on all branches, and derivatives of real losses: 1 / (e**w (1 + w))."""
    x = np.array([-1.0, -0.36, -0.2, -0.01, 0.3, 2.0, 70.0, 1e9])
    for z in (x, x + 1j, 2, np.array([0.0, np.inf, np.nan]), x.astype(np.float32), np.zeros(0)):
        want = np.asarray(scipy.special.lambertw(z, k))
        np.testing.assert_array_equal(tj.extractdata(tj.special.lambertw(z, k)), want)
        assert tj.special.lambertw(z, k).dtype == want.dtype
    step = dlaccelerate(lambda x: tj.special.lambertw(x, k))
    for _ in range(3):
        np.testing.assert_array_equal(tj.extractdata(step(x)), scipy.special.lambertw(x, k))
    assert step.hit_rate > 0 and tj.special.lambertw(dlarray(x, "C"), k).format == "C"

    def loss(x: Any, y: Any) -> Any:
        w = tj.special.lambertw(x + 1j * y, k)
        return (w.real * tj.special.lambertw(x, k).real + w.imag**2).sum()

    tj.testing.check_gradients(
        loss, np.array([-0.3, -0.1, 0.5, 4.0]), np.array([0.2, 1.0, -0.7, 3.0]), order=2
    )


def test_labels_are_aligned() -> None:
    x, y = dlarray(A, "CB"), dlarray(V, "B")
    found = scipy.special.beta(y, x)
    assert found.format == "CB"
    np.testing.assert_array_equal(tj.extractdata(found), scipy.special.beta(V, A))


def test_out_and_where() -> None:
    out = dlarray(np.zeros_like(A))
    scipy.special.gammaln(dlarray(A), out=out, where=A > 1)
    np.testing.assert_array_equal(tj.extractdata(out), np.where(A > 1, scipy.special.gammaln(A), 0.0))


def test_names() -> None:
    assert set(tj.special.__all__) == set(dir(tj.special))
    for name in tj.special.__all__:
        assert getattr(tj.special, name).__doc__, name
    assert special_ufuncs.name_of(np.add) is None
    assert special_ufuncs.name_of(scipy.special.wofz) is None
    with pytest.raises(AttributeError):
        tj.special.nothing  # noqa: B018


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore::DeprecationWarning"
)  # of fractions for integers
@pytest.mark.sampled
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, float, int])
@pytest.mark.parametrize("name", [name for name, count in special_ufuncs.OPERANDS.items() if count > 1])
def test_numbers_that_vary(name: str, kind: Any) -> None:
    """Beside ndarrays; a number of NumPy has a dtype, and one of Python takes that of the arrays."""
    try:
        ufunc, count = ufunc_of(name), special_ufuncs.OPERANDS[name]
    except tj.ArgumentError:
        pytest.skip("SciPy has none yet")

    def fun(k: Any, *arrays: Any) -> Any:
        return ufunc(k, *arrays)

    accelerated = tj.dlaccelerate(fun, audit=False)
    arrays = [np.array([0.25, 0.5, 0.75])] * (count - 1)
    for number in (1, 2, 3, 3, 4, 5):
        try:
            with np.errstate(all="ignore"):
                expected = fun(kind(number), *arrays)
        except TypeError:
            pytest.skip("SciPy has no loop for these")
        found = accelerated(kind(number), *arrays)
        for have, want in zip(*[x if type(x) is tuple else (x,) for x in (found, expected)], strict=True):
            assert have.dtype == want.dtype
            np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-6)
    assert accelerated.stats.hits
