# SPDX-License-Identifier: BSD-3-Clause
"""Objects of Python, NumPy and SciPy in captured state: what their code, which is not watched, reads of them."""

import calendar
import functools
import math
import textwrap
import types
import unittest.mock

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
import scipy.sparse
import scipy.stats

import tracejit as tj

X = np.array([1.0, 2.0])


class OwnPolynomial(np.polynomial.Polynomial):
    """A class of the user's whose methods are NumPy's."""


class Held:
    """An object of the user's that holds those of libraries."""

    def __init__(self):
        self.polynomial = np.polynomial.Polynomial([1.0, 2.0])
        self.matrices = [scipy.sparse.csr_matrix(np.eye(2))]


def spline():
    return scipy.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])


def sparse():
    return scipy.sparse.csr_matrix(np.eye(2))


def put(attribute, key=0):
    """Return what writes a number into an array that an object has."""
    return lambda o, n: getattr(o, attribute).__setitem__(key, float(n))


def replace(attribute, make=float):
    """Return what replaces an attribute of an object."""
    return lambda o, n: setattr(o, attribute, make(n))


RECORD = np.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
CASES = {
    # name: (what makes the object, what is computed of it, what changes it)
    "polynomial": (lambda: np.polynomial.Polynomial([1.0, 2.0, 3.0]), "o(x)", put("coef")),
    "another polynomial": (lambda: np.polynomial.Polynomial([1.0, 2.0]), "o(x)", replace("coef", np.ones)),
    "its attribute": (lambda: np.polynomial.Chebyshev([1.0, 2.0]), "x * o.coef[0]", put("coef")),
    "its method": (lambda: np.polynomial.Legendre([1.0, 2.0]), "x * o.degree()", replace("coef", np.ones)),
    "its domain": (lambda: np.polynomial.Polynomial([1.0, 2.0], [-1.0, 1.0]), "o(x)", put("domain")),
    "derived by the user": (lambda: OwnPolynomial([1.0, 2.0]), "o(x) + o.degree()", replace("coef", np.ones)),
    "poly1d": (lambda: np.poly1d([1.0, 2.0]), "o(x) * o[1]", put("coeffs")),
    "spline": (spline, "x * o(0.5)", put("c", (0, 0))),
    "its coefficients": (spline, "x * o.c[0, 0]", put("c", (0, 0))),
    "its method as an object": (
        lambda: spline().__call__, "x * o(0.5)", lambda o, n: put("c", (0, 0))(o.__self__, n)
    ),
    "partial": (
        lambda: functools.partial(spline(), 0.5), "x * o()", lambda o, n: put("c", (0, 0))(o.func, n)
    ),
    "several": (lambda: [spline(), spline()], "x * sum(s(0.5) for s in o)", lambda o, n: put("c", (0, 0))(o[1], n)),
    "B-spline": (
        lambda: scipy.interpolate.BSpline(np.arange(6.0), [1.0, 2.0, 3.0], 2), "x * o(2.5)", put("c", 1)
    ),
    "interp1d": (lambda: scipy.interpolate.interp1d([0.0, 1.0], [0.0, 1.0]), "x * o(0.5)", put("y")),
    "grid": (
        lambda: scipy.interpolate.RegularGridInterpolator(([0.0, 1.0],), np.ones(2)), "x * o([0.5])", put("values")
    ),
    "sparse matrix": (sparse, "x * (o @ np.ones(2))", put("data")),
    "element of one": (sparse, "x * o[0, 0]", lambda o, n: o.__setitem__((0, 0), n)),
    "distribution": (lambda: scipy.stats.norm(0.0, 1.0), "x * o.pdf(0.5)", replace("args", lambda n: (n, 1.0))),
    "sample": (
        lambda: scipy.stats.rv_discrete(values=([1, 2], [0.5, 0.5])), "x * o.pmf(1)", put("pk")
    ),
    "transfer function": (
        lambda: scipy.signal.TransferFunction([1.0], [1.0, 2.0]), "x * o.num[0]", replace("num", np.ones)
    ),
    "calendar": (calendar.Calendar, "x * o.firstweekday", lambda o, n: o.setfirstweekday(n % 7)),
    "text": (lambda: textwrap.TextWrapper(4), "x * len(o.wrap('a b c d e'))", replace("width", int)),
    "record": (lambda: RECORD.copy()[0], "x * o['a']", lambda o, n: o.__setitem__("a", n)),
    "elements": (lambda: np.ones(3).flat, "x * o[0]", lambda o, n: o.__setitem__(0, n)),
    "vectorized": (lambda: np.vectorize(math.sin), "x * getattr(o, 'k', 1.0)", replace("k")),
    "held by objects": (
        Held, "o.polynomial(x) * (o.matrices[0] @ np.ones(2))", lambda o, n: put("data")(o.matrices[0], n)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "body", "change"), CASES.values(), ids=CASES)
def test_what_code_of_libraries_reads_is_compared(make, body, change):
    instance = make()
    plain = eval(f"lambda x: {body}", {"o": instance, "np": np})
    accelerated = tj.dlaccelerate(plain)
    for n in range(2, 5):
        for _ in range(4):
            np.testing.assert_allclose(accelerated(X), plain(X), rtol=1e-13)
        change(instance, n)
    assert accelerated.stats.uncompiled == 0 and accelerated.stats.hits >= 3


def applied(o):
    """Return a value of a polynomial, which another function computes."""
    return o(3.0)


COMMON = ("o(2.0)", "o(x)", "(o * 2)(2.0)", "(o + o)(1.0)", "(-o)(1.0)", "(o**2)(1.0)", "o.deriv()(2.0)")
COMMON = (
    *COMMON,
    "o.integ()(1.0)",
    "(o == p) * 1.0",
    "applied(o)",
    "sum(map(o, [1.0, 2.0]))",
    "x * o.coef[0]",
)
POLYNOMIALS = {
    # name: (what makes one, what is computed of it, what changes it)
    "poly1d": (
        lambda: np.poly1d([1.0, 2.0, 4.0]),
        (*COMMON, "o[1]", "o.c[0]", "np.polyval(o, 2.0)", "np.polyval(o, x)", "o.order", "o.roots.sum().real"),
        (lambda o: put("coeffs")(o, 9), lambda o: o.coeffs.__imul__(2), lambda o: o.__setitem__(4, 1.0)),
    ),
    "Chebyshev": (
        lambda: np.polynomial.Chebyshev([1.0, 2.0, 4.0]),
        (*COMMON, "o.domain[0]", "o.window[1]", "o.roots().sum().real", "o.mapparms()[0]", "o.linspace(3)[1].sum()"),
        (
            lambda o: setattr(o, "domain", np.array([-2.0, 1.0])),
            lambda o: setattr(o, "window", np.array([-3.0, 1.0])),
            lambda o: setattr(o, "coef", np.array([3.0, 1.0, 1.0])),
            lambda o: o.coef.__imul__(3),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "body", "number"),
    [
        (name, body, number)
        for name, (_, bodies, changes) in POLYNOMIALS.items()
        for body in bodies
        for number in range(len(changes))
    ],
)
def test_polynomials_changed_in_place(name, body, number):
    make, _, changes = POLYNOMIALS[name]
    o = make()
    plain = eval(f"lambda x: x + {body}", {"o": o, "p": make(), "np": np, "applied": applied})
    accelerated = tj.dlaccelerate(plain)
    for change in (changes[number], lambda o: None):
        for _ in range(4):
            np.testing.assert_allclose(accelerated(X), plain(X), rtol=1e-13)
        change(o)
    for _ in range(3):
        np.testing.assert_allclose(accelerated(X), plain(X), rtol=1e-13)
    assert accelerated.stats.uncompiled == 0 and accelerated.stats.hits >= 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: functools.partial(len), lambda: functools.lru_cache(len), lambda: np.vectorize(len),
        lambda: np.poly1d([1.0]), lambda: np.polynomial.Polynomial([1.0]), lambda: np.zeros(2).view(Own),
        lambda: tj.custom_gradient(lambda x: (x, lambda d: d)), types.SimpleNamespace, spline,
    ],
)  # fmt: skip
def test_attributes_that_are_set_on_objects_of_libraries(make):
    class Holder:
        def __init__(self):
            self.o = make()

        @tj.dlaccelerate
        def run(self, x):
            self.o.last = x.sum()
            self.o.total = getattr(self.o, "total", 0.0) + x[0]
            return x * 2

    holder, total = Holder(), 0.0
    for n in range(7):
        x, total = X + n, total + n + 1
        holder.run(x)
        assert (holder.o.last, holder.o.total) == (x.sum(), total)


class Own(np.ndarray):
    """A class of arrays."""


def test_mocks_and_aliases_are_left_alone():
    double, as_list = unittest.mock.Mock(return_value=2.0), list[int]
    accelerated = tj.dlaccelerate(lambda x: x * double() * len(as_list([1, 2])))
    for _ in range(4):
        assert accelerated(X).tolist() == [4.0, 8.0]


def test_a_large_sparse_matrix():
    matrix = scipy.sparse.eye(20_000, format="csr")
    ones = np.ones(20_000)
    accelerated = tj.dlaccelerate(lambda x: x * (matrix @ ones)[0])
    for n in range(1, 4):
        matrix.data[0] = n
        for _ in range(3):
            assert accelerated(X).tolist() == [n, 2 * n]
    assert accelerated.stats.uncompiled == 0
