# SPDX-License-Identifier: BSD-3-Clause
"""Integrals of densities by Gauss's quadrature: von Mises, skew normal, moments of the truncated normal distribution.

The integrand decays from the point of interest outwards, so that a probability near 0 has all its digits.
"""

import math
from typing import Any

import numpy as np

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.special_ufuncs import call
from tracejit.stats.tails import left_side

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(50)


def _integral(density: Any, start: Any, width: Any) -> Any:
    """Return the integral of a function from a point over a width."""
    total: Any = 0.0
    for node, weight in zip((_NODES + 1.0) / 2.0, _WEIGHTS / 2.0, strict=True):
        total = total + density(start + width * float(node)) * float(weight)
    return total * width


def scaled_i0(k: Any) -> Any:
    """Return exp(-k) i0(k) for k >= 0, also the derivatives at 0, which i0e has as a function of abs(k)."""
    is_small = k < 1.0
    small, large = where(is_small, k, 0.0), where(is_small, 1.0, k)
    return where(is_small, e.exp(-small) * call("i0", (small,)), call("i0e", (large,)))


def _circle_tail(x: Any, k: Any) -> Any:
    """Return the probability of von Mises' distribution from x >= 0 to pi."""
    scale = scaled_i0(k) * (2.0 * math.pi)
    # Where k is large the density falls by exp(-36) over a few of its widths, or over a few lengths of its decay.
    width = e.minimum(math.pi - x, where(k > 25.0, 10.5 / e.sqrt(e.maximum(k, 25.0)), 2.0 * math.pi))
    decay = where(x < math.pi / 2, k * e.sin(x), 0.0)
    width = e.minimum(width, 36.0 / e.maximum(decay, 1.0))
    return _integral(lambda t: e.exp(k * call("cosm1", (t,))), x, width) / scale


def vonmises_cdf(z: Any, k: Any) -> Any:
    """Return the distribution function of von Mises' distribution, which grows by 1 with each turn, to 0 or 1."""
    endless = e.isinf(z)
    finite = where(endless, 0.0, z)
    turns = e.rint(finite / (2.0 * math.pi))
    rest = finite - turns * (2.0 * math.pi)
    tail = _circle_tail(-left_side(rest), k)
    found = where(rest > 0, 1.0 - tail, tail) + turns
    return where(endless, where(z > 0, 1.0, found * 0.0), found)


def vonmises_sf(z: Any, k: Any) -> Any:
    """Return 1 - vonmises_cdf, by the other side of the circle."""
    return vonmises_cdf(-z, k)


def vonmises_var(k: Any) -> Any:
    """Return the mean of the square between -pi and pi."""
    width = e.minimum(k * 0.0 + math.pi, where(k > 25.0, 10.5 / e.sqrt(e.maximum(k, 25.0)), math.pi))
    found = _integral(lambda t: t * t * e.exp(k * call("cosm1", (t,))), k * 0.0, width)
    return found / (scaled_i0(k) * math.pi)


def skewnorm_cdf(z: Any, a: Any) -> Any:
    """Return the distribution function of the skew normal distribution, by Owen's T, in a tail by quadrature."""
    endless = e.isinf(z)
    right, z = endless & (z > 0.0), where(endless, 0.0, z)
    plain = call("ndtr", (z,)) - 2.0 * call("owens_t", (z, a))
    is_tail = (plain < 1e-3) & (z < 0.0)
    at, slant = where(is_tail, z, -1.0), where(is_tail, a, 0.0)
    steep = 1.0 + where(slant > 0.0, slant * slant, 0.0)
    width = e.minimum(9.0 / e.sqrt(steep), 36.0 / (steep * e.abs(at)))

    def density(t: Any) -> Any:
        return e.exp(t * t * -0.5 + call("log_ndtr", (slant * t,))) * (2.0 / math.sqrt(2.0 * math.pi))

    tail = _integral(lambda t: density(-t), -at, width)
    return where(endless, where(right, 1.0, plain * 0.0), where(is_tail, tail, plain))


def circle_mass(z: Any, r: Any) -> Any:
    """Return the distribution function of the wrapped Cauchy distribution, arctan(r tan(z / 2)) / pi on both halves."""
    upper = z > math.pi
    near = where(upper, 2.0 * math.pi - z, z)
    half = near * 0.5
    found = e.arctan2(r * e.sin(half), e.cos(half)) / math.pi
    return where(upper, 1.0 - found, found)


class _Truncated:
    """The normal distribution between a and b by the distances t of places from its mode there.

    mode    the place of the highest density
    width   the length of the interval, without what is too far from the mode
    parts   pairs of a distance and the share of the interval that it stands for, times the density there
    mass    their sum
    """

    def __init__(self, a: Any, b: Any) -> None:
        self.mode = e.minimum(e.maximum(a, 0.0), b)
        reach = 45.0 / e.maximum(
            e.abs(self.mode), 4.5
        )  # beyond it the density is below exp(-45) of that at the mode
        start = e.maximum(a - self.mode, -reach)
        self.width = e.minimum(b - self.mode, reach) - start
        self.parts = []
        for node, weight in zip((_NODES + 1.0) / 2.0, _WEIGHTS / 2.0, strict=True):
            t = start + self.width * float(node)
            self.parts.append((t, e.exp(-self.loss(t)) * float(weight)))
        self.mass: Any = sum(part for _, part in self.parts)

    def loss(self, t: Any) -> Any:
        """Return the negative logarithm of the density, relative to that at the mode."""
        return t * (self.mode + t * 0.5)

    def expected(self, value: Any) -> Any:
        """Return the expectation of a function of t."""
        return sum(value(t) * part for t, part in self.parts) / self.mass


def truncnorm_mean(a: Any, b: Any) -> Any:
    """Return the mean of the normal distribution between a and b."""
    found = _Truncated(a, b)
    return found.mode + found.expected(lambda t: t)


def truncnorm_var(a: Any, b: Any) -> Any:
    """Return the variance of the normal distribution between a and b, a mean of squares: differences would cancel."""
    found = _Truncated(a, b)
    mean = found.expected(lambda t: t)
    return found.expected(lambda t: e.square(t - mean))


def truncnorm_entropy(a: Any, b: Any) -> Any:
    """Return the entropy of the normal distribution between a and b."""
    found = _Truncated(a, b)
    return e.log(found.mass * found.width) + found.expected(found.loss)
