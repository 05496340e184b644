# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of elliptic integrals, as formulas of Carlson's symmetric ones (DLMF 19.18, 19.25).

Arguments are those of the rules in special_rules.py, which collects these rules too.
"""

from collections.abc import Callable
from math import gamma, pi, sqrt
from typing import Any


def carlson(f: Any, x: Any, z: Any, y: Any) -> Any:
    """Return the integral of ((t + x)(t + z))^(-3/2) (t + y)^(-1/2) over t > 0.

    By partial fractions it is a difference of two RD, over x - z. Where these are close, it is a series in their
    distance d from their mean m, whose terms are hypergeometric functions (DLMF 15.6.1).
    """
    mean, apart = (x + z) * 0.5, (x - z) * 0.5
    is_near = f.less_equal(f.abs(apart), 0.1 * mean)
    m, d = f.where(is_near, mean, 1.0), f.where(is_near, apart, 0.0)
    none = f.equal(y, 0.0)
    ratio, argument = f.square(d / m), f.where(none, 0.5, 1.0 - f.where(is_near, y, 1.0) / m)
    factor, power, series = 1.0, 1.0, 0.0
    for k in range(9):
        order = 2.5 + 2 * k
        at_0 = sqrt(pi) * gamma(order + 1.0) / gamma(order + 0.5)  # which has no derivative by y
        value = f.where(none, at_0, f.hyp2f1(0.5, order, order + 1.0, argument))
        series = series + power * factor / order * value
        factor, power = factor * (1.5 + k) / (k + 1), power * ratio
    p, q = f.where(is_near, 1.0, x), f.where(is_near, 2.0, z)
    plain = (f.elliprd(y, q, p) - f.elliprd(p, y, q)) * (2.0 / 3.0) / (q - p)
    return f.where(is_near, series * f.pow(m, -2.5), plain)


def elliprd_by_z(f: Any, x: Any, y: Any, z: Any, r: Any) -> Any:
    # RD is of degree -3/2. At 0 the product of x and the derivative by x, which is infinite there, is 0.
    total = -1.5 * r
    for first, second in ((x, y), (y, x)):
        none = f.equal(first, 0.0)
        total = total + f.where(none, 0.0, 0.75 * first * carlson(f, f.where(none, 1.0, first), z, second))
    return total / z


def elliprc(f: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    # Both are those of RF(x, y, y); for y < 0, a principal value, d/dx is (z - 1 / sqrt x) / (2 (y - x)) instead.
    negative = f.less_equal(y, 0.0)
    safe = f.where(negative, 1.0, y)
    by_x = (z - 1.0 / f.sqrt(x)) / (2.0 * f.where(negative, y - x, 1.0))
    by_y = (z * -0.5 - x * by_x) / y  # of degree -1/2
    plain = f.elliprd(safe, safe, x) / -6.0, f.elliprd(x, safe, safe) / -3.0
    return f.where(negative, by_x, plain[0]), f.where(negative, by_y, plain[1])


def periods(f: Any, turns: Any, m: Any, of_one: Callable[..., Any]) -> Any:
    """Return turns times a function of m, which is infinite at m = 1: 0 for no turns."""
    none = f.equal(turns, 0.0)
    return f.where(none, 0.0, turns * of_one(f.where(none, 0.0, m)))


def ellipkinc_by_m(f: Any, phi: Any, m: Any, y: Any) -> Any:
    # That of s RF(c^2, 1 - m s^2, 1), for the rest of phi beyond whole periods (DLMF 19.25.5).
    turns = f.floor(phi / pi + 0.5)
    rest = phi - turns * pi
    s, c = f.sin(rest), f.cos(rest)
    part = s * s * s * f.elliprd(c * c, 1.0, 1.0 - m * s * s) / 6.0
    return part + periods(f, turns, m, lambda m: f.elliprd(0.0, 1.0, 1.0 - m) / 3.0)


def third(f: Any, phi: Any, m: Any) -> Any:
    """Return the integral of sin^2 / sqrt(1 - m sin^2) from 0 to phi (DLMF 19.25), also beyond half a period."""
    turns = f.floor(phi / pi + 0.5)
    rest = phi - turns * pi
    s, c = f.sin(rest), f.cos(rest)
    part = s * s * s * f.elliprd(c * c, 1.0 - m * s * s, 1.0) / 3.0
    return part + periods(f, turns, m, lambda m: f.elliprd(0.0, 1.0 - m, 1.0) * (2.0 / 3.0))


def agm(f: Any, a: Any, b: Any, y: Any) -> Any:
    """Return the derivative by a of pi / (2 RF(0, a^2, b^2)): 2 y^2 / (3 pi a^2) RD(0, (b / a)^2, 1), 0 at b = 0.

    Where b is the larger one, the terms are divided by it, so that none overflows.
    """
    is_larger = f.less_equal(f.abs(b), f.abs(a))
    none = f.equal(b, 0.0)
    large, small = f.where(is_larger, a, b), f.where(none, a, f.where(is_larger, b, a))
    ratio = small / large
    first = f.elliprd(0.0, f.where(is_larger, f.square(ratio), 1.0), f.where(is_larger, 1.0, f.square(ratio)))
    found = f.square(y / large) * f.where(is_larger, 1.0, ratio) * first * (2.0 / (3.0 * pi))
    return f.where(none, 0.0, found)


def ellipj(sn: Any, cn: Any, dn: Any, turn: Any, m: Any, own: Any) -> tuple[Any, ...]:
    """Return the derivatives of sn, cn, dn and the amplitude from that of the amplitude.

    `own` is the part of the derivative of dn^2 that does not come from the amplitude.
    """
    return cn * turn, -sn * turn, (own - m * sn * cn * turn) / dn, turn
