# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of one variable: densities, distribution functions and quantiles from formulas of the standard form.

Outside of the support, and for invalid parameters, results are SciPy's. There the formulas are evaluated at a different
place, so that derivatives are 0 and not NaN.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise
from tracejit.functions.elementwise import where
from tracejit.functions.formats import floating
from tracejit.stats.draws import uniforms
from tracejit.stats.frozen import Freezable, FrozenDistribution
from tracejit.stats.moments import MOMENTS
from tracejit.stats.quantiles import by_scipy, improved
from tracejit.stats.tails import log_of

Formula = Callable[..., Any]
Bound = float | Callable[..., Any]


def _positive(*shapes: Any) -> tuple[Any, ...]:
    return tuple([x > 0 for x in shapes])


def _check_sizes(title: str, given: dict[str, Any]) -> None:
    """Check that arrays without labels broadcast; labels are compared where the arrays meet.

    Raises:
        DimsError: if they do not.
    """
    arrays = {name: x for name, x in given.items() if isinstance(x, dlarray)}
    if any(x.format is not None for x in arrays.values()):
        return
    try:
        np.broadcast_shapes(*[x.shape for x in arrays.values()])
    except ValueError:
        sizes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items() if x.ndim)
        raise DimsError(
            f"{title}: sizes do not fit each other: {sizes}. From the last axis on they must be equal or 1; reshape."
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution(Freezable):
    """A distribution of one variable with parameters of shape, a location and, if it is continuous, a scale.

    Methods take the variable, then parameters by position or name, as those of ``scipy.stats`` do:
    ``tj.stats.gamma.logpdf(x, a, loc=0, scale=1)``. Operands are dlarrays of any format, ndarrays or numbers, which
    broadcast; formatted ones are aligned by label. Results are dlarrays of floating-point dtype, float32 for operands
    in float32. Derivatives exist by the variable and by all parameters, except where a special function has none
    (docs/functions.md); `dlgradient` then raises a GradientError that names it.

    name        as in scipy.stats
    shapes      the names of the parameters of shape
    low, high   bounds of the support in standard form, numbers or functions of the shapes
    inner       a place inside of the support
    formulas    by name ("logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"): functions of the standardised
                variable, or of the probability, and the shapes
    valid       function of the shapes that returns conditions on them
    starts      by name ("ppf", "isf"): functions of the probability and the shapes that return where the quantile of
                SciPy is far off, and one near the right one there
    is_open     whether the lower bound is outside of the support
    is_discrete whether the variable is an integer; the density is then "logpmf", and there is no scale

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.stats.norm.cdf(1.0, loc=1.0).item()
        0.5
        >>> slope = tj.dlfeval(lambda s: tj.dlgradient(tj.stats.norm.logpdf(0.0, 0.0, s), s), np.array(2.0))
        >>> slope.item()
        -0.5
    """

    name: str
    shapes: tuple[str, ...] = ()
    low: Bound = -math.inf
    high: Bound = math.inf
    inner: Bound = 0.5
    formulas: Mapping[str, Formula] = field(repr=False)
    valid: Formula = field(default=_positive, repr=False)
    starts: Mapping[str, Formula] = field(default_factory=dict, repr=False)
    is_discrete: bool = False
    is_open: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> FrozenDistribution:
        """Return the distribution with fixed parameters: ``tj.stats.norm(0, 1).cdf(x)``."""
        self._bound("", args, kwargs)
        return FrozenDistribution(self, args, kwargs)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the density at `x`."""
        return elementwise.exp(self._density("pdf", x, args, kwargs))

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the logarithm of the density at `x`, -inf outside of the support."""
        return self._density("logpdf", x, args, kwargs)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the probability of `k`."""
        return elementwise.exp(self._density("pmf", k, args, kwargs))

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the logarithm of the probability of `k`, -inf where there is none."""
        return self._density("logpmf", k, args, kwargs)

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the probability of values up to `x`."""
        return self._cumulated("cdf", x, args, kwargs, 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the probability of values above `x`, exact where that is small."""
        return self._cumulated("sf", x, args, kwargs, 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the logarithm of `cdf`."""
        return self._cumulated("logcdf", x, args, kwargs, -math.inf, 0.0)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the logarithm of `sf`."""
        return self._cumulated("logsf", x, args, kwargs, 0.0, -math.inf)

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the quantile: the value up to which the probability is `q`; NaN for `q` outside of 0 to 1."""
        return self._quantile("ppf", q, args, kwargs)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> dlarray:
        """Return the value above which the probability is `q`; NaN for `q` outside of 0 to 1."""
        return self._quantile("isf", q, args, kwargs)

    def _formula(self, method: str) -> Formula:
        """Return the formula of a method, by that of another where it has none of its own."""
        found = self.formulas.get(method)
        if found is None and method in ("logcdf", "logsf"):
            plain = self.formulas.get(method[3:])
            other = self.formulas.get("sf" if method == "logcdf" else "cdf")
            if plain is not None and other is not None:
                found = lambda *given: log_of(plain(*given), other(*given))
        if found is None:
            have = ", ".join(sorted(self.formulas))
            raise ArgumentError(
                f"stats.{self.name}.{method}: there is no formula for it; there are formulas for {have}."
            )
        return found

    def _bound(
        self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Any, Any]:
        """Return the shapes, the location and the scale."""
        names = [*self.shapes, "loc"] + ([] if self.is_discrete else ["scale"])
        title = f"stats.{self.name}.{method}".rstrip(".")
        given = dict(zip(names, args, strict=False))
        wrong = [name for name in kwargs if name not in names or name in given]
        missing = [name for name in self.shapes if name not in given and name not in kwargs]
        if len(args) > len(names) or wrong or missing:
            what = (
                f"{missing[0]} is missing"
                if missing
                else f"{wrong[0]!r} is unknown or given twice"
                if wrong
                else (f"there are {len(args)} parameters")
            )
            raise ArgumentError(f"{title}: {what}; parameters are {', '.join(names)}.")
        given |= kwargs
        for name, value in given.items():
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                given[name] = floating(title, value)
        return [given[name] for name in self.shapes], given.get("loc", 0), given.get("scale", 1)

    def _refusals(self, shapes: list[Any], scale: Any) -> Any:
        """Return a condition that holds where parameters are invalid, None if they are valid everywhere."""
        bad = None
        for holds in (*self.valid(*shapes), scale > 0):
            if isinstance(holds, (bool, np.bool_)):
                if holds:
                    continue
                holds = as_array(False)
            bad = ~holds if bad is None else bad | ~holds
        return bad

    def _limits(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = (bound(*shapes) if callable(bound) else bound for bound in (self.low, self.high))
        return low, high

    def _standard(self, method: str, x: Any, args: Any, kwargs: Any) -> tuple[dlarray, list[Any], Any, Any]:
        shapes, loc, scale = self._bound(method, args, kwargs)
        title = f"stats.{self.name}.{method}"
        if type(x) not in (int, float):
            x = floating(title, x)
        _check_sizes(
            title, {"x": x, **dict(zip(self.shapes, shapes, strict=True)), "loc": loc, "scale": scale}
        )
        z = x
        if not (isinstance(loc, (int, float)) and loc == 0):
            z = z - loc
        if not (isinstance(scale, (int, float)) and scale == 1):
            z = z / scale
        z = as_array(z)
        return z, _in_dtype(shapes, z), scale, self._refusals(shapes, scale)

    def _safe(self, z: dlarray, outside: Any, shapes: list[Any]) -> Any:
        inner = self.inner(*shapes) if callable(self.inner) else self.inner
        return where(outside, inner, z)

    def _density(self, method: str, x: Any, args: Any, kwargs: Any) -> dlarray:
        if method.endswith("pmf") != self.is_discrete:
            other = method.replace("pmf", "pdf") if method.endswith("pmf") else method.replace("pdf", "pmf")
            raise ArgumentError(f"stats.{self.name}.{method}: the distribution has {other} instead.")
        formula = self._formula("logpmf" if self.is_discrete else "logpdf")
        z, shapes, scale, bad = self._standard(method, x, args, kwargs)
        low, high = self._limits(shapes)
        outside = _beyond(z, low, high, self.is_open)
        if self.is_discrete:
            fraction = (elementwise.floor(z) != z) & ~elementwise.isnan(z)
            outside = fraction if outside is None else outside | fraction
        if outside is None:
            result = formula(z, *shapes)
        else:
            result = where(outside, -math.inf, formula(self._safe(z, outside, shapes), *shapes))
        if not (isinstance(scale, (int, float)) and scale == 1):
            result = result - _log(scale)
        return _without(result, bad)

    def _cumulated(self, method: str, x: Any, args: Any, kwargs: Any, below: float, above: float) -> dlarray:
        formula = self._formula(method)
        z, shapes, _, bad = self._standard(method, x, args, kwargs)
        if self.is_discrete:
            z = where(elementwise.isnan(z), z, elementwise.floor(z))
        low, high = self._limits(shapes)
        outside = _beyond(z, low, high, self.is_open)
        if outside is None:
            return _without(formula(z, *shapes), bad)
        result = where(
            outside,
            where(z <= low, *map(z.dtype.type, (below, above))),
            formula(self._safe(z, outside, shapes), *shapes),
        )
        if self.is_discrete:  # SciPy's functions of integers answer NaN with a number
            result = where(elementwise.isnan(z), z, result)
        return _without(result, bad)

    def _quantile(self, method: str, q: Any, args: Any, kwargs: Any) -> dlarray:
        shapes, loc, scale = self._bound(method, args, kwargs)
        q = floating(f"stats.{self.name}.{method}", q)
        if self.is_discrete:
            return _without(by_scipy(self.name, method, q, shapes) + loc, self._refusals(shapes, scale))
        low, high = self._limits(_in_dtype(shapes, q))
        if method == "isf":
            low, high = high, low
        inside = (q > 0) & (q < 1)
        result = self._inner_quantile(method, where(inside, q, 0.5), _in_dtype(shapes, q))
        result = where(inside, result, where(q == 0, low, where(q == 1, high, q.dtype.type(math.nan))))
        return _without(result * scale + loc, self._refusals(shapes, scale))

    def _inner_quantile(self, method: str, q: Any, shapes: list[Any]) -> Any:
        """Return a quantile of a probability between 0 and 1, by SciPy's own function where there is no formula."""
        formula = self.formulas.get(method)
        if formula is not None:
            return formula(q, *shapes)
        side, sign = ("cdf", 1.0) if method == "ppf" else ("sf", -1.0)
        probability, density = self._formula(side), self._formula("logpdf")
        logarithm = self.formulas.get("log" + side) or (lambda *given: elementwise.log(probability(*given)))
        better = self.starts.get(method)
        has_place, place = better(q, *shapes) if better is not None else (False, 0.0)
        found = by_scipy(self.name, method, where(has_place, 0.5, q), shapes)
        return improved(
            elementwise.stop_gradient(where(has_place, place, found)),
            q,
            lambda x: probability(x, *shapes),
            lambda x: logarithm(x, *shapes),
            lambda x: elementwise.exp(density(x, *shapes)) * sign,
            *self._limits(shapes),
        )

    def mean(self, *args: Any, **kwargs: Any) -> dlarray:
        """Return the mean; parameters are those of the other methods, without a variable."""
        found, loc, scale, bad = self._moment("mean", args, kwargs)
        return _without(found * scale + loc, bad)

    def var(self, *args: Any, **kwargs: Any) -> dlarray:
        """Return the variance."""
        found, _, scale, bad = self._moment("var", args, kwargs)
        return _without(found * scale * scale, bad)

    def std(self, *args: Any, **kwargs: Any) -> dlarray:
        """Return the standard deviation."""
        found, _, scale, bad = self._moment("var", args, kwargs)
        return _without(elementwise.sqrt(found) * scale, bad)

    def entropy(self, *args: Any, **kwargs: Any) -> dlarray:
        """Return the differential entropy, or the entropy of integers."""
        found, _, scale, bad = self._moment("entropy", args, kwargs)
        return _without(found if self.is_discrete else found + _log(scale), bad)

    def median(self, *args: Any, **kwargs: Any) -> dlarray:
        """Return the median, the quantile of 1/2."""
        return self._quantile("ppf", 0.5, args, kwargs)

    def interval(self, confidence: Any, *args: Any, **kwargs: Any) -> tuple[dlarray, dlarray]:
        """Return the ends of the interval of probability `confidence`; both sides of it are equally likely."""
        confidence = floating(f"stats.{self.name}.interval", confidence)
        low, high = (1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0
        return self._quantile("ppf", low, args, kwargs), self._quantile("ppf", high, args, kwargs)

    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> dlarray:
        """Return random numbers: quantiles of uniform ones, with the derivatives of `ppf` by the parameters.

        Args:
            args, kwargs: parameters.
            size: sizes of the result; None for those of the parameters.
            random_state: a seed, or a `tj.Generator`; None for the numbers that `tj.rng` seeds.

        Returns:
            dlarray of floating-point numbers, those of integers too.
        """
        shapes, loc, scale = self._bound("rvs", args, kwargs)
        u = uniforms(f"stats.{self.name}.rvs", [*shapes, loc, scale], size, random_state)
        return self._quantile("ppf", u, args, kwargs)

    def support(self, *args: Any, **kwargs: Any) -> tuple[dlarray, dlarray]:
        """Return the ends of the support."""
        shapes, loc, scale = self._bound("support", args, kwargs)
        bad = self._refusals(shapes, scale)
        low, high = (_without(as_array(end * scale + loc), bad) for end in self._limits(shapes))
        return low, high

    def _moment(self, what: str, args: Any, kwargs: Any) -> tuple[Any, Any, Any, Any]:
        formula = MOMENTS.get(self.name, {}).get(what)
        if formula is None:
            raise ArgumentError(
                f"stats.{self.name}.{what}: there is no formula for it; scipy.stats computes it from numbers."
            )
        shapes, loc, scale = self._bound(what, args, kwargs)
        # Formulas compute with arrays: for a number alone, a special function would choose a dtype of its own.
        arrays = [x if isinstance(x, dlarray) else as_array(float(x)) for x in shapes]
        return formula(*arrays), loc, scale, self._refusals(shapes, scale)


def _in_dtype(shapes: list[Any], z: dlarray) -> list[Any]:
    """Return parameters, numbers in float32 where the variable is: functions of a number alone would give float64."""
    if z.dtype != np.float32:
        return shapes
    return [np.float32(x) if type(x) in (int, float) else x for x in shapes]


def _log(scale: Any) -> Any:
    """Return the logarithm of a scale, of a number as a number: an array of float64 would make one of float32."""
    is_number = isinstance(scale, (int, float)) and scale > 0
    return math.log(scale) if is_number else elementwise.log(scale)


def _beyond(z: dlarray, low: Any, high: Any, is_open: bool) -> Any:
    """Return where a variable is outside of bounds, None if it never is."""
    outside = None
    ends = [isinstance(bound, float) and math.isinf(bound) for bound in (low, high)]
    # Formulas of a half-line have no limit at its infinite end; those of the whole line do.
    above = "greater_equal" if ends[1] else "greater"
    for bound, crossed in ((low, "less_equal" if is_open else "less"), (high, above)):
        if all(ends):
            continue
        found = getattr(elementwise, crossed)(z, bound)
        outside = found if outside is None else outside | found
    return outside


def _without(result: Any, bad: Any) -> dlarray:
    """Return results with NaN for invalid parameters."""
    if bad is not None:
        return where(bad, math.nan, result)
    return as_array(result)
