# SPDX-License-Identifier: BSD-3-Clause
"""Series and continued fractions of the incomplete gamma and beta functions, with their derivatives by the parameters.

Elements first to last are computed; an operand with the step 0 is one number for all. Fractions are evaluated forwards
(W. J. Lentz 1976; I. J. Thompson and A. R. Barnett 1986): the value is the product of factors c d, and its logarithm's
derivative the sum of c' / c + d' / d. What has not converged after LIMIT terms is NaN.
"""

import math
from typing import Any


def gamma_fraction(
    first: int,
    last: int,
    step_a: int,
    step_x: int,
    step_side: int,
    a: Any,
    x: Any,
    side: Any,
    value: Any,
    slope: Any,
) -> None:
    """Write to value the series (side >= 0.5) or the fraction, to slope the derivative of its logarithm by a."""
    for i in range(first, last):
        p = float(a[i * step_a])
        z = float(x[i * step_x])
        is_defined = p > 0.0 and z >= 0.0 and p + z < math.inf
        n = 0
        missing = 1
        result, by = 1.0, 0.0
        if float(side[i * step_side]) >= 0.5:
            term, harmonic = 1.0, 0.0
            while is_defined and missing == 1 and n < 100000:
                n += 1
                term *= z / (p + n)
                harmonic += 1.0 / (p + n)
                result += term
                by -= term * harmonic
                is_small = term * harmonic <= -1e-18 * by and term <= 1e-18 * result
                missing = 0 if is_small and z < p + n else 1
            by /= result
        else:
            b = z + 1.0 - p
            b = b if b != 0.0 else 1e-300
            d = 1.0 / b
            d_by, c, c_by = d * d, 1e300, 0.0
            result, by = d, d
            while is_defined and missing == 1 and n < 100000:
                n += 1
                e = n * (p - n)
                b += 2.0
                u = b + e * d
                u = u if u != 0.0 else 1e-300
                u_by = e * d_by + n * d - 1.0
                c_by = (n - e * c_by / c) / c - 1.0
                c = b + e / c
                c = c if c != 0.0 else 1e-300
                d = 1.0 / u
                d_by = -u_by * d * d
                change = c_by / c - u_by * d
                result *= c * d
                by += change
                missing = 0 if abs(c * d - 1.0) <= 3e-16 and abs(change) <= 3e-16 * abs(by) else 1
        value[i] = result if missing == 0 else math.nan
        slope[i] = by if missing == 0 else math.nan


def beta_fraction(
    first: int, last: int, step_a: int, step_b: int, step_x: int, a: Any, b: Any, x: Any, value: Any, by_a: Any,
    by_b: Any,
) -> None:  # fmt: skip
    """Write to value the fraction, to by_a and by_b the derivatives of its logarithm."""
    for i in range(first, last):
        p = float(a[i * step_a])
        q = float(b[i * step_b])
        z = float(x[i * step_x])
        is_defined = p > 0.0 and q > 0.0 and p + q < math.inf and z >= 0.0 and z <= 1.0
        c, c_a, c_b = 1e300, 0.0, 0.0
        d, d_a, d_b = 1.0, 0.0, 0.0
        product, sum_a, sum_b = 1.0, 0.0, 0.0
        n = 0
        missing = 1
        while is_defined and missing == 1 and n < 200000:
            m = (n + 1) // 2
            even = p + 2 * m
            if n % 2 == 0:
                scale = -z * ((p + m) / even) / (even + 1.0)
                e = (p + q + m) * scale
                e_a = scale + e * (1.0 / (p + m) - 1.0 / even - 1.0 / (even + 1.0))
            else:
                scale = m * z / (even * (even - 1.0))
                e = (q - m) * scale
                e_a = -e * (1.0 / even + 1.0 / (even - 1.0))
            n += 1
            u = 1.0 + e * d
            u = u if u != 0.0 else 1e-300
            u_a, u_b = e_a * d + e * d_a, scale * d + e * d_b
            c_a, c_b = (e_a - e * c_a / c) / c, (scale - e * c_b / c) / c
            c = 1.0 + e / c
            c = c if c != 0.0 else 1e-300
            d = 1.0 / u
            d_a, d_b = -u_a * d * d, -u_b * d * d
            change_a, change_b = c_a / c - u_a * d, c_b / c - u_b * d
            product *= c * d
            sum_a += change_a
            sum_b += change_b
            change = max(abs(change_a) - 3e-16 * abs(sum_a), abs(change_b) - 3e-16 * abs(sum_b))
            missing = 0 if n > 1 and abs(c * d - 1.0) <= 3e-16 and change <= 0.0 else 1
        value[i] = product if missing == 0 else math.nan
        by_a[i] = sum_a if missing == 0 else math.nan
        by_b[i] = sum_b if missing == 0 else math.nan
