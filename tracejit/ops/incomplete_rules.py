# SPDX-License-Identifier: BSD-3-Clause
"""The derivatives of the incomplete gamma and beta functions, and of distribution functions that are made of them.

Rules are as in special_rules.py, which collects them. A derivative by a parameter of shape is the smaller side of the
distribution times the derivative of its logarithm, so nothing cancels (fractions.py).
"""

from math import inf
from typing import Any

from tracejit.ops.rules import UNKNOWN, ZERO, Rule


def _gamma_density(f: Any, a: Any, x: Any) -> Any:
    """Return the derivative of gammainc by x."""
    return f.exp(f.xlogy(a - 1.0, x) - x - f.gammaln(a))


def _beta_density(f: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of betainc by x."""
    return f.exp(f.xlogy(a - 1.0, x) + f.xlog1py(b - 1.0, -x) - f.betaln(a, b))


def _beta_density_of(f: Any, a: Any, b: Any, x: Any, rest: Any) -> Any:
    return f.exp(f.xlogy(a - 1.0, x) + f.xlogy(b - 1.0, rest) - f.betaln(a, b))


def _poisson(f: Any, k: Any, m: Any) -> Any:
    whole = f.floor(k)
    return f.exp(f.xlogy(whole, m) - m - f.gammaln(whole + 1.0))


def _t_density(f: Any, n: Any, t: Any) -> Any:
    constant = f.betaln(n * 0.5, 0.5) + f.log(n) * 0.5
    return f.exp((n + 1.0) * -0.5 * f.log1p(t * t / n) - constant)


def _f_density(f: Any, m: Any, n: Any, x: Any) -> Any:
    """Return the density of the ratio of chi-squared variables."""
    part = m * x / (m * x + n)
    return _beta_density(f, m * 0.5, n * 0.5, part) * m * n / f.square(m * x + n)


def _binomial(f: Any, k: Any, n: Any, p: Any) -> Any:
    """Return the derivative of bdtrc by p."""
    whole = f.floor(k)
    return _beta_density(f, whole + 1.0, f.floor(n * 1.0) - whole, p)


def _gamma_by_a(f: Any, a: Any, x: Any) -> Any:
    """Return the derivative of gammainc by a: that of the logarithm of the smaller side, times this side."""
    trivial = f.logical_or(f.equal(x, 0.0), f.equal(x, inf))
    x = f.where(trivial, a, x)
    lower = f.less_equal(x, a + 1.0)
    slope = f.gamma_fraction(a, x, f.where(lower, 1.0, 0.0))[1]
    by_a = f.log(x) - f.psi(f.where(lower, a + 1.0, a)) + slope
    return f.where(trivial, 0.0, f.where(lower, f.gammainc(a, x), -f.gammaincc(a, x)) * by_a)


def _beta_by_shapes(f: Any, a: Any, b: Any, x: Any, rest: Any = None) -> tuple[Any, Any]:
    """Return the derivatives of betainc by a and b, likewise; `rest` is 1 - x."""
    rest = 1.0 - x if rest is None else rest
    trivial = f.logical_or(f.less_equal(x, 0.0), f.less_equal(rest, 0.0))
    x, rest = f.where(trivial, 0.5, x), f.where(trivial, 0.5, rest)
    lower = f.less_equal(x, (a + 1.0) / (a + b + 2.0))
    p, q = f.where(lower, a, b), f.where(lower, b, a)
    z, w = f.where(lower, x, rest), f.where(lower, rest, x)
    _, by_p, by_q = f.beta_fraction(p, q, z)
    whole = f.psi(p + q)
    side = f.betainc(p, q, z)
    slopes = side * (f.log(z) - f.psi(p + 1.0) + whole + by_p), side * (f.log(w) - f.psi(q) + whole + by_q)
    by_a, by_b = f.where(lower, slopes[0], -slopes[1]), f.where(lower, slopes[1], -slopes[0])
    return f.where(trivial, 0.0, by_a), f.where(trivial, 0.0, by_b)


def _t_by_n(f: Any, n: Any, t: Any) -> Any:
    """Return the derivative of stdtr by n; the outer side is betainc(n / 2, 1 / 2, n / (n + t^2)) / 2."""
    total = n + t * t
    x, rest = n / total, t * t / total
    by_a = _beta_by_shapes(f, n * 0.5, 0.5 + 0.0 * n, x, rest)[0]
    by_x = f.where(f.equal(t, 0.0), 0.0, _beta_density_of(f, n * 0.5, 0.5, x, rest) * x * rest / n)
    return -f.sign(t) * (by_a * 0.25 + by_x * 0.5)


def _f_by_sizes(f: Any, m: Any, n: Any, x: Any) -> tuple[Any, Any]:
    """Return the derivatives of fdtr, betainc(m / 2, n / 2, m x / (m x + n)), by m and n."""
    total = m * x + n
    part, rest = m * x / total, n / total
    by_a, by_b = _beta_by_shapes(f, m * 0.5, n * 0.5, part, rest)
    by_x = f.where(f.equal(x, 0.0), 0.0, _beta_density_of(f, m * 0.5, n * 0.5, part, rest) * part * rest)
    return by_a * 0.5 + by_x / m, by_b * 0.5 - by_x / n


def _negated(rule: Any) -> Rule:
    """Return the rule of 1 - y, given that of y as a function."""
    return lambda *values: -rule(*values)


RULES: dict[str, tuple[Rule, ...]] = {
    "chdtr": (
        lambda f, v, x, y: _gamma_by_a(f, v * 0.5, x * 0.5) * 0.5,
        lambda f, v, x, y: _gamma_density(f, v * 0.5, x * 0.5) * 0.5,
    ),
    "chdtri": (
        lambda f, v, p, y: -_gamma_by_a(f, v * 0.5, y * 0.5) / _gamma_density(f, v * 0.5, y * 0.5),
        lambda f, v, p, y: -2.0 / _gamma_density(f, v * 0.5, y * 0.5),
    ),
    "chdtriv": (
        lambda f, p, x, y: 2.0 / _gamma_by_a(f, y * 0.5, x * 0.5),
        lambda f, p, x, y: -_gamma_density(f, y * 0.5, x * 0.5) / _gamma_by_a(f, y * 0.5, x * 0.5),
    ),
    "gammainc": (lambda f, a, x, y: _gamma_by_a(f, a, x), lambda f, a, x, y: _gamma_density(f, a, x)),
    "gammaincinv": (
        lambda f, a, p, y: -_gamma_by_a(f, a, y) / _gamma_density(f, a, y),
        lambda f, a, p, y: 1.0 / _gamma_density(f, a, y),
    ),
    "gammainccinv": (
        lambda f, a, p, y: -_gamma_by_a(f, a, y) / _gamma_density(f, a, y),
        lambda f, a, p, y: -1.0 / _gamma_density(f, a, y),
    ),
    "pdtr": (ZERO, lambda f, k, m, y: -_poisson(f, k, m)),
    "pdtrc": (ZERO, lambda f, k, m, y: _poisson(f, k, m)),
    "pdtri": (ZERO, lambda f, k, p, y: -1.0 / _poisson(f, k, y)),
    "pdtrik": (
        lambda f, p, m, y: f.where(f.equal(y, 0.0), 0.0, -1.0 / _gamma_by_a(f, y + 1.0, m)),
        lambda f, p, m, y: f.where(
            f.equal(y, 0.0), 0.0, -_gamma_density(f, y + 1.0, m) / _gamma_by_a(f, y + 1.0, m)
        ),
    ),
    "stdtr": (lambda f, n, t, y: _t_by_n(f, n, t), lambda f, n, t, y: _t_density(f, n, t)),
    "stdtrit": (
        lambda f, n, p, y: -_t_by_n(f, n, y) / _t_density(f, n, y),
        lambda f, n, p, y: 1.0 / _t_density(f, n, y),
    ),
    "stdtridf": (
        lambda f, p, t, y: 1.0 / _t_by_n(f, y, t),
        lambda f, p, t, y: -_t_density(f, y, t) / _t_by_n(f, y, t),
    ),
    "bdtr": (ZERO, UNKNOWN, lambda f, k, n, p, y: -_binomial(f, k, n, p)),
    "bdtrc": (ZERO, UNKNOWN, lambda f, k, n, p, y: _binomial(f, k, n, p)),
    "bdtri": (ZERO, UNKNOWN, lambda f, k, n, p, y: -1.0 / _binomial(f, k, n, y)),
    "betainc": (
        lambda f, a, b, x, y: _beta_by_shapes(f, a, b, x)[0],
        lambda f, a, b, x, y: _beta_by_shapes(f, a, b, x)[1],
        lambda f, a, b, x, y: _beta_density(f, a, b, x),
    ),
    "betaincinv": (
        lambda f, a, b, p, y: -_beta_by_shapes(f, a, b, y)[0] / _beta_density(f, a, b, y),
        lambda f, a, b, p, y: -_beta_by_shapes(f, a, b, y)[1] / _beta_density(f, a, b, y),
        lambda f, a, b, p, y: 1.0 / _beta_density(f, a, b, y),
    ),
    "betainccinv": (
        lambda f, a, b, p, y: -_beta_by_shapes(f, a, b, y)[0] / _beta_density(f, a, b, y),
        lambda f, a, b, p, y: -_beta_by_shapes(f, a, b, y)[1] / _beta_density(f, a, b, y),
        lambda f, a, b, p, y: -1.0 / _beta_density(f, a, b, y),
    ),
    "fdtr": (
        lambda f, m, n, x, y: _f_by_sizes(f, m, n, x)[0],
        lambda f, m, n, x, y: _f_by_sizes(f, m, n, x)[1],
        lambda f, m, n, x, y: _f_density(f, m, n, x),
    ),
    "fdtri": (
        lambda f, m, n, p, y: -_f_by_sizes(f, m, n, y)[0] / _f_density(f, m, n, y),
        lambda f, m, n, p, y: -_f_by_sizes(f, m, n, y)[1] / _f_density(f, m, n, y),
        lambda f, m, n, p, y: 1.0 / _f_density(f, m, n, y),
    ),
    "fdtridfd": (
        lambda f, m, p, x, y: -_f_by_sizes(f, m, y, x)[0] / _f_by_sizes(f, m, y, x)[1],
        lambda f, m, p, x, y: 1.0 / _f_by_sizes(f, m, y, x)[1],
        lambda f, m, p, x, y: -_f_density(f, m, y, x) / _f_by_sizes(f, m, y, x)[1],
    ),
    "gdtr": (
        lambda f, a, b, x, y: x * _gamma_density(f, b, a * x),
        lambda f, a, b, x, y: _gamma_by_a(f, b, a * x),
        lambda f, a, b, x, y: a * _gamma_density(f, b, a * x),
    ),
    "gdtrix": (
        lambda f, a, b, p, y: -y / a,
        lambda f, a, b, p, y: -_gamma_by_a(f, b, a * y) / (a * _gamma_density(f, b, a * y)),
        lambda f, a, b, p, y: 1.0 / (a * _gamma_density(f, b, a * y)),
    ),
    "gdtria": (
        lambda f, p, b, x, y: 1.0 / (x * _gamma_density(f, b, y * x)),
        lambda f, p, b, x, y: -_gamma_by_a(f, b, y * x) / (x * _gamma_density(f, b, y * x)),
        lambda f, p, b, x, y: -y / x,
    ),
    "gdtrib": (
        lambda f, a, p, x, y: -x * _gamma_density(f, y, a * x) / _gamma_by_a(f, y, a * x),
        lambda f, a, p, x, y: 1.0 / _gamma_by_a(f, y, a * x),
        lambda f, a, p, x, y: -a * _gamma_density(f, y, a * x) / _gamma_by_a(f, y, a * x),
    ),
    "btdtria": (
        lambda f, p, b, x, y: 1.0 / _beta_by_shapes(f, y, b, x)[0],
        lambda f, p, b, x, y: -_beta_by_shapes(f, y, b, x)[1] / _beta_by_shapes(f, y, b, x)[0],
        lambda f, p, b, x, y: -_beta_density(f, y, b, x) / _beta_by_shapes(f, y, b, x)[0],
    ),
    "btdtrib": (
        lambda f, a, p, x, y: -_beta_by_shapes(f, a, y, x)[0] / _beta_by_shapes(f, a, y, x)[1],
        lambda f, a, p, x, y: 1.0 / _beta_by_shapes(f, a, y, x)[1],
        lambda f, a, p, x, y: -_beta_density(f, a, y, x) / _beta_by_shapes(f, a, y, x)[1],
    ),
    "nbdtr": (ZERO, UNKNOWN, lambda f, k, n, p, y: _beta_density(f, n * 1.0, f.floor(k) + 1.0, p)),
    "nbdtrc": (ZERO, UNKNOWN, lambda f, k, n, p, y: -_beta_density(f, n * 1.0, f.floor(k) + 1.0, p)),
    "nbdtri": (ZERO, UNKNOWN, lambda f, k, n, p, y: 1.0 / _beta_density(f, n * 1.0, f.floor(k) + 1.0, y)),
}  # fmt: skip
_COMPLEMENTS = {
    "chdtrc": "chdtr",
    "gammaincc": "gammainc",
    "betaincc": "betainc",
    "fdtrc": "fdtr",
    "gdtrc": "gdtr",
}
RULES |= {name: tuple([_negated(rule) for rule in RULES[of]]) for name, of in _COMPLEMENTS.items()}
