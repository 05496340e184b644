# SPDX-License-Identifier: BSD-3-Clause
"""The distributions of one variable, with parameters of shape for their tests."""

import tracejit as tj
from tracejit.stats import Distribution

SHAPES: dict[str, tuple[float, ...]] = {
    "t": (4.5,), "gamma": (2.3,), "invgamma": (2.3,), "beta": (2.2, 1.4), "lognorm": (0.7,), "chi2": (3.5,),
    "chi": (2.5,),
    "f": (5.5, 7.5), "weibull_min": (1.7,), "pareto": (2.5,), "invgauss": (0.8,), "skewnorm": (1.5,),
    "vonmises": (1.3,),
    "loguniform": (0.5, 4.0), "truncnorm": (-0.7, 1.6), "poisson": (2.7,), "binom": (7, 0.4), "bernoulli": (0.3,),
    "nbinom": (3.5, 0.4), "geom": (0.35,), "betabinom": (6, 1.5, 2.5),
    "erlang": (3.0,), "weibull_max": (1.7,), "lomax": (2.5,), "powerlaw": (1.6,), "triang": (0.3,), "gennorm": (1.4,),
    "nakagami": (1.3,), "fisk": (2.2,), "gompertz": (0.7,), "genpareto": (0.3,), "genextreme": (0.2,),
    "johnsonsu": (0.5, 1.3), "exponnorm": (1.2,), "gengamma": (2.2, 1.3), "betaprime": (2.5, 3.5),
    "wrapcauchy": (0.4,), "randint": (1.0, 6.0), "hypergeom": (20.0, 7.0, 9.0), "logser": (0.6,), "zipf": (2.5,),
}  # fmt: skip
ALL = [found for name in tj.stats.__all__ if isinstance(found := getattr(tj.stats, name), Distribution)]


def shapes_of(found: Distribution) -> tuple[float, ...]:
    return SHAPES.get(found.name, ())
