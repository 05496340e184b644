# SPDX-License-Identifier: BSD-3-Clause
"""Distribution functions that are integrals of densities, by Gauss's quadrature: von Mises, skew normal.

The integrand decays from the point of interest outwards, so that a probability near 0 has all its digits.
"""

import math
from typing import Any

import numpy as np

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.special_ufuncs import call

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(50)


def _integral(density: Any, start: Any, width: Any) -> Any:
    """Return the integral of a function from a point over a width."""
    total: Any = 0.0
    for node, weight in zip((_NODES + 1.0) / 2.0, _WEIGHTS / 2.0, strict=True):
        total = total + density(start + width * float(node)) * float(weight)
    return total * width


def _circle_tail(x: Any, k: Any) -> Any:
    """Return the probability of von Mises' distribution from x >= 0 to pi."""
    scale = call("i0e", (k,)) * (2.0 * math.pi)
    # Where k is large the density falls by exp(-36) over a few of its widths, or over a few lengths of its decay.
    width = e.minimum(math.pi - x, where(k > 25.0, 10.5 / e.sqrt(e.maximum(k, 25.0)), math.pi))
    decay = where(x < math.pi / 2, k * e.sin(x), 0.0)
    width = e.minimum(width, 36.0 / e.maximum(decay, 1.0))
    return _integral(lambda t: e.exp(k * call("cosm1", (t,))), x, width) / scale


def vonmises_cdf(z: Any, k: Any) -> Any:
    """Return the distribution function of von Mises' distribution, which grows by 1 with each turn."""
    turns = e.rint(z / (2.0 * math.pi))
    rest = z - turns * (2.0 * math.pi)
    tail = _circle_tail(e.abs(rest), k)
    return where(rest > 0, 1.0 - tail, tail) + turns


def vonmises_sf(z: Any, k: Any) -> Any:
    """Return 1 - vonmises_cdf, by the other side of the circle."""
    return vonmises_cdf(-z, k)


def vonmises_var(k: Any) -> Any:
    """Return the mean of the square between -pi and pi."""
    width = e.minimum(k * 0.0 + math.pi, where(k > 25.0, 10.5 / e.sqrt(e.maximum(k, 25.0)), math.pi))
    found = _integral(lambda t: t * t * e.exp(k * call("cosm1", (t,))), k * 0.0, width)
    return found / (call("i0e", (k,)) * math.pi)


def skewnorm_cdf(z: Any, a: Any) -> Any:
    """Return the distribution function of the skew normal distribution, by Owen's T, in a tail by quadrature."""
    plain = call("ndtr", (z,)) - 2.0 * call("owens_t", (z, a))
    is_tail = (plain < 1e-3) & (z < 0.0)
    at, slant = where(is_tail, z, -1.0), where(is_tail, a, 0.0)
    steep = 1.0 + where(slant > 0.0, slant * slant, 0.0)
    width = e.minimum(9.0 / e.sqrt(steep), 36.0 / (steep * e.abs(at)))

    def density(t: Any) -> Any:
        return e.exp(t * t * -0.5 + call("log_ndtr", (slant * t,))) * (2.0 / math.sqrt(2.0 * math.pi))

    tail = _integral(lambda t: density(-t), -at, width)
    return where(is_tail, tail, plain)


def circle_mass(z: Any, r: Any) -> Any:
    """Return the distribution function of the wrapped Cauchy distribution, arctan(r tan(z / 2)) / pi on both halves."""
    upper = z > math.pi
    near = where(upper, 2.0 * math.pi - z, z)
    half = near * 0.5
    found = e.arctan2(r * e.sin(half), e.cos(half)) / math.pi
    return where(upper, 1.0 - found, found)
