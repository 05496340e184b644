# SPDX-License-Identifier: BSD-3-Clause
"""Quantiles by SciPy's own functions, which programs call: of integers, and of distributions without a formula."""

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


def improved(x: Any, q: Any, probability: Any, density: Any) -> Any:
    """Return a quantile after two of Newton's steps, which give it its derivatives up to third order.

    Args:
        x: the quantile, a constant.
        q: the probability.
        probability: function of x, "cdf" or, negated with `density`, "sf".
        density: its derivative.
    """
    for _ in range(2):
        slope = density(x)
        some = elementwise.abs(slope) > 0
        x = x + where(some, (q - probability(x)) / where(some, slope, 1.0), 0.0)
    return x
