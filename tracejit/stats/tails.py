# SPDX-License-Identifier: BSD-3-Clause
"""Logarithms of probabilities that are near 0, near 1, or too small for a floating-point number."""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array
from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where
from tracejit.functions.special_ufuncs import call
from tracejit.ops.ufunc_loops import PREFIX
from tracejit.record import recorder


def left_side(z: Any) -> Any:
    """Return -abs(z), with the derivative from below at 0, where that of abs is 0."""
    return where(z > 0, -z, z)


def log_of(part: Any, other: Any) -> Any:
    """Return the logarithm of a probability; near 1 by the other one, which is small and has more digits.

    Args:
        part: the probability.
        other: 1 - part.
    """
    is_small = part < 0.5
    return where(is_small, e.log(where(is_small, part, 0.5)), e.log1p(-where(is_small, 0.5, other)))


def log1mexp(y: Any, logarithm: Any) -> Any:
    """Return log(1 - exp(-y)) for y >= 0.

    Args:
        y: a number, which may have underflowed to 0.
        logarithm: of y.

    For small y it is log y - y / 2 + O(y^2). (M. Maechler, Accurately computing log(1 - exp(-|a|)), 2012.)
    """
    is_tiny, is_large = y < 1e-9, y > 0.7
    safe = where(is_tiny | is_large, 0.5, y)
    middle = where(is_large, e.log1p(-e.exp(-where(is_large, y, 1.0))), e.log(-e.expm1(-safe)))
    return where(is_tiny, where(is_tiny, logarithm, 0.0) - y * 0.5, middle)


def _applied(name: str, *operands: Any) -> Any:
    return apply(PREFIX + name, *recorder.align([as_array(x) for x in operands]))


def is_lost(part: Any) -> Any:
    """Return where a probability is 0, or has lost digits because it is a subnormal number."""
    return part < np.finfo(part.dtype).tiny


def log_gammainc(a: Any, x: Any, logarithm: Any = None) -> Any:
    """Return the logarithm of gammainc; where that underflows, by its series (DLMF 8.7.1).

    Args:
        a: the parameter.
        x: the variable.
        logarithm: of x, where that may underflow.
    """
    part = call("gammainc", (a, x))
    lost = is_lost(part)
    logarithm = e.log(where(lost, x, 1.0)) if logarithm is None else logarithm
    power = a * logarithm - call("gammaln", (a + 1.0,)) - where(lost, x, 0.0)
    series = _applied("gamma_fraction", a, where(lost, x, a * 0.01), 1.0)[0]
    known = log_of(where(lost, 0.25, part), where(lost, 0.75, call("gammaincc", (a, x))))
    return where(lost, where(lost, power, 0.0) + e.log(series), known)


def log_gammaincc(a: Any, x: Any) -> Any:
    """Return the logarithm of gammaincc; where that underflows, by its continued fraction (DLMF 8.9.2)."""
    part = call("gammaincc", (a, x))
    lost = is_lost(part) & (x < math.inf)
    far = where(lost, x, 4.0 * a + 40.0)
    power = a * e.log(far) - call("gammaln", (a,)) - far
    fraction = _applied("gamma_fraction", a, far, 0.0)[0]
    known = log_of(where(lost, 0.25, part), where(lost, 0.75, call("gammainc", (a, x))))
    return where(lost, power + e.log(fraction), known)


def log_betainc(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Return the logarithm of betainc; where that underflows, by its continued fraction (DLMF 8.17.22).

    Args:
        a, b: the parameters.
        x: the variable.
        rest: 1 - x.
    """
    part = call("betainc", (a, b, x))
    lost = is_lost(part)
    powers = a * e.log(where(lost, x, 0.5)) + b * e.log(where(lost, rest, 0.5))
    fraction = _applied("beta_fraction", a, b, where(lost, x, 0.01 * a / (a + b)))[0]
    tail = powers - e.log(a) - call("betaln", (a, b)) + e.log(fraction)
    # The other probability by the smaller one of both places: where x is tiny, the rest is 1 in floating point.
    low = x < 0.5
    other = where(
        low, call("betaincc", (a, b, where(low, x, 0.5))), call("betainc", (b, a, where(low, 0.5, rest)))
    )
    return where(lost, tail, log_of(where(lost, 0.25, part), where(lost, 0.75, other)))


def log1p_square(z: Any) -> Any:
    """Return log(1 + z**2), also where the square is infinite."""
    is_far = e.abs(z) > 1e8 if z.dtype != np.float32 else e.abs(z) > 1e4
    far = 2.0 * e.log(e.abs(where(is_far, z, 1.0)))
    return where(is_far, far, e.log1p(e.square(where(is_far, 0.0, z))))


def log_t_tail(w: Any, n: Any) -> Any:
    """Return the logarithm of the probability of Student's distribution above z, where that is tiny.

    Args:
        w: z / sqrt(n), positive.
        n: the degrees of freedom.

    It is that of betainc(n/2, 1/2, x) / 2 at x = n / (n + z^2), by the continued fraction of the hypergeometric
    function F(1/2, 1; n/2 + 1; -n/z^2) (DLMF 8.17.8, 15.8.1, 15.7.5). All its terms are positive, and at most k / z^2,
    where z is at least 13 (the probability is tiny for float32) or 37 (float64).
    """
    half, square = n * 0.5, log1p_square(w)
    inverse = 1.0 / w
    share = inverse * inverse
    fraction: Any = 1.0
    for k in range(8, 0, -1):
        factor = (half + (k - 1) * 0.5) * (k * 0.5) / ((half + (k - 1.0)) * (half + float(k)))
        fraction = 1.0 + factor * share / fraction
    powers = square * ((n - 1.0) * -0.5) - e.log(w)
    return powers - e.log(n) - call("betaln", (half, n * 0.0 + 0.5)) - e.log(fraction)
