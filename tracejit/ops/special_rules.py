# SPDX-License-Identifier: BSD-3-Clause
"""The derivatives of special functions, as formulas.

A rule is a formula (f, *operands, y) for each operand, where y is the result, or the results. For a function of several
results, the formula gives the derivative of each. ZERO stands where the derivative is 0, UNKNOWN where there is no
formula. Formulas are from the Digital Library of Mathematical Functions (dlmf.nist.gov), by the number of its chapter,
unless they follow from the definition.
"""

from collections.abc import Callable
from math import inf, log, pi, sqrt
from typing import Any

from tracejit.ops import elliptic_rules, incomplete_rules, special_series
from tracejit.ops.rules import UNKNOWN, ZERO, Rule

_DEGREE = pi / 180
_ROOT_PI, _ROOT_2PI = sqrt(pi), sqrt(2 * pi)


def _gauss(f: Any, x: Any) -> Any:
    """Return the density of the normal distribution."""
    return f.exp(x * x * -0.5) / _ROOT_2PI


def _boxcox_by_p(f: Any, is_0: Any, log: Any, p: Any) -> Any:
    """Return the derivative of (z**p - 1) / p by p, given where z is 0, which has no logarithm, and that elsewhere."""
    at_0 = f.where(f.less_equal(p, 0.0), inf, 1.0) / f.square(f.where(is_0, p, 1.0))
    return f.where(is_0, at_0, f.square(log) * f.hyp1f1(2.0, 3.0, p * log) * 0.5)


def _over(f: Any, numerator: Any, x: Any, limit: float) -> Any:
    """Return a quotient whose limit at x = 0 is known."""
    at_0 = f.equal(x, 0.0)
    return f.where(at_0, limit, numerator / f.where(at_0, 1.0, x))


def _far(f: Any, x: Any, plain: Any, factor: float, sign: float) -> Any:
    """Return the derivative of dawsn (sign = 1) or erfcx (-1) by its asymptotic series where its terms cancel.

    It is factor / x^2 (1 + 3 s / (2 x^2) + 15 / (4 x^4) + 105 s / (8 x^6) + ...) (DLMF 7.12.1).
    """
    is_far = f.less_equal(100.0, f.abs(x))
    z = 1.0 / f.square(f.where(is_far, x, 100.0))
    series = factor * z * (1.0 + sign * 1.5 * z * (1.0 + sign * 2.5 * z * (1.0 + sign * 3.5 * z)))
    return f.where(is_far, series, plain)


def _pole(f: Any, x: Any) -> Any:
    """Return whether gamma has a pole at x: 0, -1, -2, ..."""
    return f.logical_and(f.less_equal(x, 0.0), f.equal(x, f.floor(x)))


def _rgamma_at_pole(f: Any, pole: Any, x: Any) -> Any:
    """Return the derivative of 1 / gamma at poles, (-1)^n n! at -n, and 1 elsewhere.

    It is that of sin(pi x) gamma(1 - x) / pi (DLMF 5.5.3), which also has the next derivatives.
    """
    there = f.where(pole, x, 0.0)
    turned = f.gamma(1.0 - there)
    return turned * (f.cos(pi * there) - f.sin(pi * there) * f.psi(1.0 - there) / pi)


def _rgamma(f: Any, x: Any, y: Any) -> Any:
    pole = _pole(f, x)
    return f.where(pole, _rgamma_at_pole(f, pole, x), -y * f.psi(f.where(pole, 1.0, x)))


def _psi_between(f: Any, x: Any, y: Any) -> Any:
    """Return psi(x) - psi(y); where both are poles, its limit along a line on which x - y stays an integer.

    That is psi(1 - x) - psi(1 - y) (DLMF 5.5.4).
    """
    poles = f.logical_and(_pole(f, x), _pole(f, y))
    return f.psi(f.where(poles, 1.0 - x, x)) - f.psi(f.where(poles, 1.0 - y, y))


def _by_factor(f: Any, known: Any, x: Any, s: Any, y: Any) -> Any:
    """Return the derivative along x of y = known gamma(x) / gamma(s), where x - s is fixed; `known` is a function.

    At a pole of gamma(s) alone y is 0, and the derivative that of 1 / gamma(s).
    """
    pole = f.where(_pole(f, x), False, _pole(f, s))
    at_x, at_s = f.where(pole, x, 1.0), f.where(pole, s, 1.0)
    slope = f.psi(at_x) * f.rgamma(at_s) + _rgamma_at_pole(f, pole, s)
    plain = y * _psi_between(f, f.where(pole, 1.0, x), f.where(pole, 1.0, s))
    return f.where(pole, known(pole) * f.gamma(at_x) * slope, plain)


def _beta(f: Any, a: Any, b: Any, y: Any) -> Any:
    return _by_factor(f, lambda pole: f.gamma(f.where(pole, b, 1.0)), a, a + b, y)


def _binom_by_n(f: Any, n: Any, k: Any, y: Any) -> Any:
    return _by_factor(f, lambda pole: f.rgamma(f.where(pole, k + 1.0, 1.0)), n + 1.0, n - k + 1.0, y)


def _binom_by_k(f: Any, n: Any, k: Any, y: Any) -> Any:
    first, second = k + 1.0, n - k + 1.0
    poles = _pole(f, first), _pole(f, second)
    either = f.where(_pole(f, n + 1.0), False, f.logical_or(*poles))
    factors = [f.rgamma(f.where(either, x, 1.0)) for x in (first, second)]
    slopes = [_rgamma(f, f.where(either, x, 1.0), y) for x, y in zip((first, second), factors, strict=True)]
    there = f.gamma(f.where(either, n + 1.0, 1.0)) * (slopes[0] * factors[1] - factors[0] * slopes[1])
    plain = y * (f.psi(f.where(either, 1.0, second)) - f.psi(f.where(either, 1.0, first)))
    return f.where(either, there, plain)


def _spherical(f: Any, bessel: Callable[..., Any], n: Any, x: Any, sign: float) -> Any:
    """Return the derivative of a spherical Bessel function that is finite at 0 (DLMF 10.51.2, 10.51.5)."""
    order = n * 1.0
    lower, upper = bessel(f.maximum(n - 1, 0), x), bessel(n + 1, x)
    return (order * lower + sign * (order + 1.0) * upper) / (2.0 * order + 1.0)


def _polynomial(of_lower: Callable[..., Any]) -> Callable[..., Any]:
    """Return a formula that lowers the degree, the first operand, and is 0 for the degree 0 (DLMF 18.9)."""

    def formula(f: Any, n: Any, *rest: Any) -> Any:
        constant = f.equal(n, 0)
        lower = of_lower(f, f.where(constant, 1, n), *rest)
        return f.where(constant, 0.0, lower)

    return formula


def _lowered(f: Any, bessel: Callable[..., Any], n: Any, x: Any, sign: float) -> Any:
    """Return the sum, or the difference, of the orders next to n; SciPy rounds n."""
    whole = f.floor(n * 1.0)
    return bessel(whole - 1.0, x) + bessel(whole + 1.0, x) * sign


def _expn(f: Any, n: Any, x: Any, y: Any) -> Any:
    n = f.floor(n * 1.0)  # as SciPy rounds it
    at_0 = f.equal(n, 0)
    return -f.where(at_0, y + y / x, f.expn(f.where(at_0, 0, n - 1), x))


def _sh_jacobi(f: Any, n: Any, p: Any, q: Any, x: Any, y: Any) -> Any:
    return (n + p) * f.eval_jacobi(n - 1, p - q + 1.0, q, 2.0 * x - 1.0) / f.binom(2.0 * n + p - 1.0, n)


def _airye(f: Any, x: Any, y: Any) -> tuple[Any, ...]:
    root = f.sqrt(f.maximum(x, 0.0))
    return y[1] + root * y[0], x * y[0] + root * y[1], y[3] - root * y[2], x * y[2] - root * y[3]


def _powm1_by_p(f: Any, x: Any, p: Any, y: Any) -> Any:
    safe = f.where(f.equal(x, 0.0), f.where(f.less_equal(p, 0.0), x, 1.0), x)
    return f.pow(x, p) * f.log(safe)


ONE: dict[str, Rule] = {
    "bei": lambda f, x, y: f.beip(x),
    "beip": lambda f, x, y: special_series.kelvin(f, x, lambda far: f.ber(far) - f.beip(far) / far, 2),
    "ber": lambda f, x, y: f.berp(x),
    "berp": lambda f, x, y: special_series.kelvin(f, x, lambda far: -f.bei(far) - f.berp(far) / far, 4),
    "kei": lambda f, x, y: f.keip(x),
    "keip": lambda f, x, y: f.ker(x) - y / x,
    "ker": lambda f, x, y: f.kerp(x),
    "kerp": lambda f, x, y: -f.kei(x) - y / x,
    "cosdg": lambda f, x, y: f.sindg(x) * -_DEGREE,
    "sindg": lambda f, x, y: f.cosdg(x) * _DEGREE,
    "tandg": lambda f, x, y: (y * y + 1.0) * _DEGREE,
    "cotdg": lambda f, x, y: (y * y + 1.0) * -_DEGREE,
    "cosm1": lambda f, x, y: -f.sin(x),
    "dawsn": lambda f, x, y: _far(f, x, 1.0 - 2.0 * x * y, -0.5, 1.0),
    "psi": lambda f, x, y: f._zeta(2.0, x),
    "gamma": lambda f, x, y: y * f.psi(x),
    "gammaln": lambda f, x, y: f.psi(x),
    "loggamma": lambda f, x, y: f.psi(x),
    "rgamma": _rgamma,
    "gammasgn": ZERO,
    "round": ZERO,
    "ellipe": lambda f, m, y: f.elliprd(0.0, 1.0 - m, 1.0) / -6.0,
    "ellipk": lambda f, m, y: f.elliprd(0.0, 1.0, 1.0 - m) / 6.0,
    "ellipkm1": lambda f, p, y: f.elliprd(0.0, 1.0, p) / -6.0,
    "erfc": lambda f, x, y: f.exp(-x * x) * (-2.0 / _ROOT_PI),
    "erfcx": lambda f, x, y: _far(f, f.maximum(x, 0.0), 2.0 * x * y - 2.0 / _ROOT_PI, -1.0 / _ROOT_PI, -1.0),
    "erfi": lambda f, x, y: f.exp(x * x) * (2.0 / _ROOT_PI),
    "erfinv": lambda f, x, y: f.exp(y * y) * (_ROOT_PI / 2.0),
    "erfcinv": lambda f, x, y: f.exp(y * y) * (-_ROOT_PI / 2.0),
    "exp1": lambda f, x, y: -f.exp(-x) / x,
    "expi": lambda f, x, y: f.exp(x) / x,
    "exp10": lambda f, x, y: y * log(10.0),
    "exprel": lambda f, x, y: f.hyp1f1(2.0, 3.0, x) * 0.5,
    "i0": lambda f, x, y: f.i1(x),
    "i1": lambda f, x, y: (f.i0(x) + f.iv(2.0, x)) * 0.5,
    "i0e": lambda f, x, y: f.i1e(x) - f.sign(x) * y,
    "i1e": lambda f, x, y: (f.i0e(x) + f.ive(2.0, x)) * 0.5 - f.sign(x) * y,
    "j0": lambda f, x, y: -f.j1(x),
    "j1": lambda f, x, y: (f.j0(x) - f.jv(2.0, x)) * 0.5,
    "y0": lambda f, x, y: -f.y1(x),
    "y1": lambda f, x, y: f.y0(x) - y / x,
    "k0": lambda f, x, y: -f.k1(x),
    "k1": lambda f, x, y: -f.k0(x) - y / x,
    "k0e": lambda f, x, y: y - f.k1e(x),
    "k1e": lambda f, x, y: y - f.k0e(x) - y / x,
    "itstruve0": lambda f, x, y: f.struve(0.0, x),
    "itmodstruve0": lambda f, x, y: f.modstruve(0.0, x),
    "it2struve0": lambda f, x, y: -_over(f, f.struve(0.0, x), x, 2.0 / pi),
    "kolmogorov": lambda f, x, y: f._kolmogp(x),
    "kolmogi": lambda f, p, y: 1.0 / f._kolmogp(y),
    "ndtr": lambda f, x, y: _gauss(f, x),
    "log_ndtr": lambda f, x, y: sqrt(2.0 / pi) / f.erfcx(x * -sqrt(0.5)),
    "ndtri": lambda f, p, y: f.exp(y * y * 0.5) * _ROOT_2PI,
    "ndtri_exp": lambda f, x, y: f.erfcx(y * -sqrt(0.5)) * sqrt(pi / 2.0),
    "log_expit": lambda f, x, y: f.exp(y - x),
    "logit": lambda f, p, y: 1.0 / (p * (1.0 - p)),
    "entr": lambda f, x, y: -f.log(x) - 1.0,
    "spence": lambda f, x, y: -special_series.log_quotient(f, x),
    "wrightomega": lambda f, x, y: y / (1.0 + y),
    "zetac": lambda f, s, y: special_series.riemann_zeta_slope(f, s),
    "_riemann_zeta": lambda f, s, y: special_series.riemann_zeta_slope(f, s),
}
"""Of functions of one operand."""

SEVERAL: dict[str, tuple[Rule, ...]] = {
    **incomplete_rules.RULES,
    # one operand, several results
    "fresnel": (lambda f, x, y: (f.sin(x * x * (pi / 2)), f.cos(x * x * (pi / 2))),),
    "sici": (lambda f, x, y: (special_series.sine_quotient(f, x, -1.0), f.cos(x) / x),),
    "shichi": (lambda f, x, y: (special_series.sine_quotient(f, x, 1.0), f.cosh(x) / x),),
    "airy": (lambda f, x, y: (y[1], x * y[0], y[3], x * y[2]),),
    "airye": (_airye,),
    "itairy": (lambda f, x, y: (f.airy(x)[0], f.airy(x)[2], f.airy(-x)[0], f.airy(-x)[2]),),
    "iti0k0": (lambda f, x, y: (f.i0(x), f.k0(x)),),
    "itj0y0": (lambda f, x, y: (f.j0(x), f.y0(x)),),
    "it2i0k0": (lambda f, x, y: ((f.i0(x) - 1.0) / x, -f.k0(x) / x),),
    "it2j0y0": (lambda f, x, y: ((1.0 - f.j0(x)) / x, -f.y0(x) / x),),
    # two operands
    "agm": (elliptic_rules.agm, lambda f, a, b, y: elliptic_rules.agm(f, b, a, y)),
    "beta": (_beta, lambda f, a, b, y: _beta(f, b, a, y)),
    "betaln": (lambda f, a, b, y: _psi_between(f, a, a + b), lambda f, a, b, y: _psi_between(f, b, a + b)),
    "binom": (_binom_by_n, _binom_by_k),
    "boxcox": (
        lambda f, x, p, y: f.pow(x, p - 1.0),
        lambda f, x, p, y: _boxcox_by_p(f, f.equal(x, 0.0), f.log(f.where(f.equal(x, 0.0), 1.0, x)), p),
    ),
    "boxcox1p": (
        lambda f, x, p, y: f.pow(x + 1.0, p - 1.0),
        lambda f, x, p, y: _boxcox_by_p(f, f.equal(x, -1.0), f.log1p(f.where(f.equal(x, -1.0), 0.0, x)), p),
    ),
    "inv_boxcox": (
        lambda f, x, p, y: y / (1.0 + p * x),
        lambda f, x, p, y: y * x * x * f.hyp2f1(2.0, 2.0, 3.0, -p * x) * -0.5,
    ),
    "inv_boxcox1p": (
        lambda f, x, p, y: (y + 1.0) / (1.0 + p * x),
        lambda f, x, p, y: (y + 1.0) * x * x * f.hyp2f1(2.0, 2.0, 3.0, -p * x) * -0.5,
    ),
    "ellipeinc": (
        lambda f, phi, m, y: f.sqrt(1.0 - m * f.square(f.sin(phi))),
        lambda f, phi, m, y: elliptic_rules.third(f, phi, m) * -0.5,
    ),
    "ellipkinc": (lambda f, phi, m, y: 1.0 / f.sqrt(1.0 - m * f.square(f.sin(phi))), elliptic_rules.ellipkinc_by_m),
    "elliprc": (
        lambda f, x, y, z: elliptic_rules.elliprc(f, x, y, z)[0],
        lambda f, x, y, z: elliptic_rules.elliprc(f, x, y, z)[1],
    ),
    "eval_chebyt": (ZERO, _polynomial(lambda f, n, x, y: n * f.eval_chebyu(n - 1, x))),
    "eval_chebyu": (ZERO, _polynomial(lambda f, n, x, y: 2.0 * f.eval_gegenbauer(n - 1, 2.0, x))),
    "eval_chebyc": (ZERO, _polynomial(lambda f, n, x, y: n * f.eval_chebyu(n - 1, x * 0.5))),
    "eval_chebys": (ZERO, _polynomial(lambda f, n, x, y: f.eval_gegenbauer(n - 1, 2.0, x * 0.5))),
    "eval_sh_chebyt": (ZERO, _polynomial(lambda f, n, x, y: 2.0 * n * f.eval_chebyu(n - 1, 2.0 * x - 1.0))),
    "eval_sh_chebyu": (
        ZERO,
        _polynomial(lambda f, n, x, y: 4.0 * f.eval_gegenbauer(n - 1, 2.0, 2.0 * x - 1.0)),
    ),
    "eval_legendre": (ZERO, _polynomial(lambda f, n, x, y: f.eval_gegenbauer(n - 1, 1.5, x))),
    "eval_sh_legendre": (
        ZERO,
        _polynomial(lambda f, n, x, y: 2.0 * f.eval_gegenbauer(n - 1, 1.5, 2.0 * x - 1.0)),
    ),
    "eval_hermite": (ZERO, _polynomial(lambda f, n, x, y: 2.0 * n * f.eval_hermite(n - 1, x))),
    "eval_hermitenorm": (ZERO, _polynomial(lambda f, n, x, y: n * f.eval_hermitenorm(n - 1, x))),
    "eval_laguerre": (ZERO, _polynomial(lambda f, n, x, y: -f.eval_genlaguerre(n - 1, 1.0, x))),
    "expn": (ZERO, _expn),
    "huber": (
        lambda f, d, r, y: f.maximum(f.abs(r) - d, 0.0),
        lambda f, d, r, y: f.minimum(f.maximum(r, -d), d),
    ),
    "pseudo_huber": (
        lambda f, d, r, y: 2.0 * y / d - r * r / (d * f.sqrt(1.0 + f.square(r / d))),
        lambda f, d, r, y: r / f.sqrt(1.0 + f.square(r / d)),
    ),
    "hyp0f1": (UNKNOWN, lambda f, v, x, y: f.hyp0f1(v + 1.0, x) / v),
    "iv": (UNKNOWN, lambda f, v, x, y: (f.iv(v - 1.0, x) + f.iv(v + 1.0, x)) * 0.5),
    "ive": (UNKNOWN, lambda f, v, x, y: (f.ive(v - 1.0, x) + f.ive(v + 1.0, x)) * 0.5 - f.sign(x) * y),
    "jv": (UNKNOWN, lambda f, v, x, y: (f.jv(v - 1.0, x) - f.jv(v + 1.0, x)) * 0.5),
    "jve": (UNKNOWN, lambda f, v, x, y: (f.jve(v - 1.0, x) - f.jve(v + 1.0, x)) * 0.5),
    "yv": (UNKNOWN, lambda f, v, x, y: (f.yv(v - 1.0, x) - f.yv(v + 1.0, x)) * 0.5),
    "yve": (UNKNOWN, lambda f, v, x, y: (f.yve(v - 1.0, x) - f.yve(v + 1.0, x)) * 0.5),
    "kv": (UNKNOWN, lambda f, v, x, y: (f.kv(v - 1.0, x) + f.kv(v + 1.0, x)) * -0.5),
    "kve": (UNKNOWN, lambda f, v, x, y: y - (f.kve(v - 1.0, x) + f.kve(v + 1.0, x)) * 0.5),
    "kn": (ZERO, lambda f, n, x, y: _lowered(f, f.kv, n, x, 1.0) * -0.5),
    "yn": (ZERO, lambda f, n, x, y: _lowered(f, f.yv, n, x, -1.0) * 0.5),
    "struve": (
        UNKNOWN,
        lambda f, v, x, y: special_series.struve_by_x(f, v, x, y, f.struve(v + 1.0, x), -1.0),
    ),
    "modstruve": (
        UNKNOWN,
        lambda f, v, x, y: special_series.struve_by_x(f, v, x, y, f.modstruve(v + 1.0, x), 1.0),
    ),
    "_spherical_jn": (ZERO, lambda f, n, x, y: _spherical(f, f._spherical_jn, n, x, -1.0)),
    "_spherical_yn": (ZERO, lambda f, n, x, y: n * y / x - f._spherical_yn(n + 1, x)),
    "_spherical_in": (ZERO, lambda f, n, x, y: _spherical(f, f._spherical_in, n, x, 1.0)),
    "_spherical_kn": (ZERO, lambda f, n, x, y: n * y / x - f._spherical_kn(n + 1, x)),
    "kl_div": (lambda f, x, p, y: f.log(x / p), lambda f, x, p, y: 1.0 - x / p),
    "rel_entr": (lambda f, x, p, y: f.log(x / p) + 1.0, lambda f, x, p, y: -x / p),
    "mathieu_a": (ZERO, UNKNOWN),
    "mathieu_b": (ZERO, UNKNOWN),
    "owens_t": (
        lambda f, h, a, y: f.exp(h * h * -0.5) * (2.0 * f.ndtr(a * h) - 1.0) / (-2.0 * _ROOT_2PI),
        lambda f, h, a, y: f.exp(h * h * (1.0 + a * a) * -0.5) / (2.0 * pi * (1.0 + a * a)),
    ),
    "poch": (
        lambda f, x, m, y: _by_factor(f, lambda pole: 1.0, x + m, x, y),
        lambda f, x, m, y: y * f.psi(x + m),
    ),
    "powm1": (lambda f, x, p, y: p * f.pow(x, p - 1.0), _powm1_by_p),
    "smirnov": (ZERO, lambda f, n, d, y: f._smirnovp(n, d)),
    "smirnovi": (ZERO, lambda f, n, p, y: 1.0 / f._smirnovp(n, y)),
    "tklmbda": (
        lambda f, x, p, y: f.where(
            f.logical_or(f.equal(y, 0.0), f.equal(y, 1.0)), 0.0, 1.0 / (f.pow(y, p - 1.0) + f.pow(1.0 - y, p - 1.0))
        ),
        UNKNOWN,
    ),
    "xlogy": (
        lambda f, x, p, y: f.where(f.logical_and(f.equal(x, 0.0), f.less_equal(p, 0.0)), 0.0, f.log(p)),
        lambda f, x, p, y: x / f.where(f.equal(x, 0.0), 1.0, p),
    ),
    "xlog1py": (
        lambda f, x, p, y: f.where(f.logical_and(f.equal(x, 0.0), f.less_equal(p, -1.0)), 0.0, f.log1p(p)),
        lambda f, x, p, y: x / f.where(f.equal(x, 0.0), 1.0, p + 1.0),
    ),
    "_zeta": (lambda f, s, q, y: special_series.zeta_by_s(f, s, q), lambda f, s, q, y: -s * f._zeta(s + 1.0, q)),
    # two operands, several results
    "ellipj": (
        lambda f, u, m, y: elliptic_rules.ellipj(y[0], y[1], y[2], y[2], m, 0.0 * u),
        lambda f, u, m, y: elliptic_rules.ellipj(
            y[0], y[1], y[2], -y[2] * elliptic_rules.ellipkinc_by_m(f, y[3], m, u), m, y[0] * y[0] * -0.5
        ),
    ),
    "pbdv": (UNKNOWN, lambda f, v, x, y: (y[1], (x * x * 0.25 - v - 0.5) * y[0])),
    "pbvv": (UNKNOWN, lambda f, v, x, y: (y[1], (x * x * 0.25 - v - 0.5) * y[0])),
    "pbwa": (UNKNOWN, lambda f, a, x, y: (y[1], (a - x * x * 0.25) * y[0])),
    # three and more operands
    "chndtr": (
        lambda f, x, n, c, y: special_series.noncentral_density(f, x, n, c),
        UNKNOWN,
        lambda f, x, n, c, y: (f.chndtr(x, n + 2.0, c) - y) * 0.5,
    ),
    "elliprd": (
        lambda f, x, y, z, r: -0.75 * elliptic_rules.carlson(f, x, z, y),
        lambda f, x, y, z, r: -0.75 * elliptic_rules.carlson(f, y, z, x),
        elliptic_rules.elliprd_by_z,
    ),
    "elliprf": (
        lambda f, x, y, z, r: f.elliprd(y, z, x) / -6.0,
        lambda f, x, y, z, r: f.elliprd(x, z, y) / -6.0,
        lambda f, x, y, z, r: f.elliprd(x, y, z) / -6.0,
    ),
    "eval_gegenbauer": (
        ZERO, UNKNOWN,
        _polynomial(lambda f, n, a, x, y: 2.0 * a * f.eval_gegenbauer(n - 1, a + 1.0, x)),
    ),
    "eval_genlaguerre": (
        ZERO, UNKNOWN,
        _polynomial(lambda f, n, a, x, y: -f.eval_genlaguerre(n - 1, a + 1.0, x)),
    ),
    "eval_jacobi": (
        ZERO, UNKNOWN, UNKNOWN,
        _polynomial(lambda f, n, a, b, x, y: (n + a + b + 1.0) * 0.5 * f.eval_jacobi(n - 1, a + 1.0, b + 1.0, x)),
    ),
    "eval_sh_jacobi": (ZERO, UNKNOWN, UNKNOWN, _polynomial(_sh_jacobi)),
    "hyp1f1": (UNKNOWN, UNKNOWN, lambda f, a, b, x, y: a / b * f.hyp1f1(a + 1.0, b + 1.0, x)),
    "hyperu": (UNKNOWN, UNKNOWN, lambda f, a, b, x, y: -a * f.hyperu(a + 1.0, b + 1.0, x)),
    "hyp2f1": (
        UNKNOWN, UNKNOWN, UNKNOWN,
        lambda f, a, b, c, x, y: a * b / c * f.hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
    ),
    "lpmv": (
        ZERO, UNKNOWN,
        lambda f, m, v, x, y: (v * x * y - (v + m) * f.lpmv(m, v - 1.0, x)) / (x * x - 1.0),
    ),
    "nrdtrimn": (
        lambda f, p, s, x, y: -s * _ROOT_2PI * f.exp(f.square(f.ndtri(p)) * 0.5),
        lambda f, p, s, x, y: -f.ndtri(p),
        lambda f, p, s, x, y: 1.0 + 0.0 * x,
    ),
    "nrdtrisd": (
        lambda f, m, p, x, y: -1.0 / f.ndtri(p),
        lambda f, m, p, x, y: -y * _ROOT_2PI * f.exp(f.square(f.ndtri(p)) * 0.5) / f.ndtri(p),
        lambda f, m, p, x, y: 1.0 / f.ndtri(p),
    ),
    "radian": (
        lambda f, d, m, s, y: _DEGREE + 0.0 * d,
        lambda f, d, m, s, y: _DEGREE / 60.0 + 0.0 * m,
        lambda f, d, m, s, y: _DEGREE / 3600.0 + 0.0 * s,
    ),
    "wright_bessel": (UNKNOWN, UNKNOWN, lambda f, a, b, x, y: f.wright_bessel(a, b + a, x)),
    "log_wright_bessel": (
        UNKNOWN, UNKNOWN, lambda f, a, b, x, y: f.exp(f.log_wright_bessel(a, b + a, x) - y),
    ),
}  # fmt: skip
"""By operand, of functions of several operands or several results."""
