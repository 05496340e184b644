# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles by SciPy's own functions, which programs call: of integers, and of distributions without a formula."""

import math
from typing import Any

from tracejit.array import as_array, dlarray
from tracejit.functions import elementwise
from tracejit.functions.elementwise import where
from tracejit.functions.formats import in_dtype
from tracejit.functions.movement import relabel
from tracejit.functions.numpy_api import in_python
from tracejit.functions.numpy_api.host_rules import quantile
from tracejit.record import recorder


def by_scipy(name: str, method: str, q: dlarray, shapes: list[Any]) -> dlarray:
    """Return quantiles of the standard form of a distribution, without derivatives: of integers they are steps."""
    given = [elementwise.stop_gradient(as_array(x)) for x in (q, *shapes)]
    like = given[0]
    for x in given[1:]:
        like = like + x
    aligned = recorder.align(given)
    found = in_python.call(f"stats.{name}.{method}", quantile, (name, method, *aligned), {})
    return in_dtype(relabel(found, like._format), q.dtype)


def improved(x: Any, q: Any, probability: Any, logarithm: Any, density: Any, low: Any, high: Any) -> Any:
    """Return a quantile after four of Newton's steps.

    The first two are steps of logarithms, for probabilities below 1/2: they lead far in a tail. The last two give the
    quantile its derivatives up to third order; where they are long, they have derivatives only. A step that leaves the
    support is shortened.

    Args:
        x: the quantile, a constant, which may be far off where q is tiny.
        q: the probability.
        probability: function of x, "cdf" or "sf".
        logarithm: that of it.
        density: its derivative, negative for "sf".
        low, high: the support.
    """
    for step in range(4):
        slope = density(x)
        if step < 2:
            known = logarithm(x)
            miss, slope = elementwise.log(q) - known, slope * elementwise.exp(-known)
            helps = (q < 0.5) & (elementwise.abs(miss) < math.inf)
        else:
            miss = q - probability(x)
            helps = elementwise.abs(miss) < 0.1 * elementwise.minimum(q, 1.0 - q)
        some = elementwise.abs(slope) > 0
        move = where(some, miss / where(some, slope, 1.0), 0.0)
        there = x + where(helps, move, 0.0 if step < 2 else move - elementwise.stop_gradient(move))
        there = where(there < low, (x + low) * 0.5, where(there > high, (x + high) * 0.5, there))
        x = elementwise.stop_gradient(there) if step < 2 else there
    return x
