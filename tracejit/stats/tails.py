# SPDX-License-Identifier: BSD-3-Clause
"""Logarithms of probabilities that are near 0, near 1, or too small for a floating-point number."""

from typing import Any

from tracejit.functions import elementwise as e
from tracejit.functions.elementwise import where


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
