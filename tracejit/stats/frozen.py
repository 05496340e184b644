# SPDX-License-Identifier: BSD-3-Clause
"""Distributions with fixed parameters: ``tj.stats.norm(loc, scale).logpdf(x)``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracejit.errors import ArgumentError

_METHODS = (
    "pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf", "mean", "var", "std", "entropy",
    "median", "interval", "support", "rvs",
)  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    """Return a method that calls the distribution's own with the parameters behind its arguments."""

    def method(self: "FrozenDistribution", *args: Any, **kwargs: Any) -> Any:
        if not hasattr(type(self.dist), name):
            have = ", ".join(each for each in _METHODS if hasattr(type(self.dist), each))
            raise ArgumentError(f"stats.{self.dist.name}.{name}: there is no such method; there are {have}.")
        found = getattr(self.dist, name)
        if name == "rvs":
            return found(*self.args, **self.kwds, **_draws(*args, **kwargs))
        return found(*args, *self.args, **self.kwds, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return what the distribution's `{name}` returns for these parameters."
    return method


def _draws(size: Any = None, random_state: Any = None) -> dict[str, Any]:
    return {"size": size, "random_state": random_state}


@dataclass(frozen=True, eq=False)
class FrozenDistribution:
    """A distribution with fixed parameters, which its methods then do not take.

    Calling a distribution makes one. Parameters are kept as they are given: there are derivatives by them, as by those
    of the distribution's own methods.

    dist        the distribution
    args, kwds  its parameters, by position and by name

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> prior = tj.stats.norm(1.0, scale=2.0)
        >>> prior.cdf(1.0).item(), prior.mean().item(), prior.std().item()
        (0.5, 1.0, 2.0)
        >>> slope = tj.dlfeval(lambda s: tj.dlgradient(tj.stats.norm(0.0, s).logpdf(0.0), s), np.array(2.0))
        >>> slope.item()
        -0.5
    """

    dist: Any
    args: tuple[Any, ...]
    kwds: dict[str, Any]

    pdf = _method("pdf")
    logpdf = _method("logpdf")
    pmf = _method("pmf")
    logpmf = _method("logpmf")
    cdf = _method("cdf")
    sf = _method("sf")
    logcdf = _method("logcdf")
    logsf = _method("logsf")
    ppf = _method("ppf")
    isf = _method("isf")
    mean = _method("mean")
    var = _method("var")
    std = _method("std")
    entropy = _method("entropy")
    median = _method("median")
    interval = _method("interval")
    support = _method("support")
    rvs = _method("rvs")


class Freezable:
    """A distribution that a call gives fixed parameters: ``tj.stats.norm(0, 1)``."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> FrozenDistribution:
        """Return the distribution with fixed parameters, those of its methods without the variable."""
        return FrozenDistribution(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        title = f"stats.{vars(type(self)).get('name') or vars(self).get('name')}"
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        density = "logpmf" if getattr(self, "is_discrete", False) else "logpdf"
        raise AttributeError(
            f"{title}.{name}: there is no such method. Parameters that fit data minimise -tj.{title}.{density}(data, "
            f"...).sum(), whose gradient is that by dlgradient; scipy.{title} computes with ndarrays."
        )
