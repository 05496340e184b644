# SPDX-License-Identifier: BSD-3-Clause
"""Distributions under the names of scipy.stats: ``tj.stats.norm.logpdf(x, loc, scale)``.

In: dlarrays, ndarrays or numbers. Out: densities, distribution functions and quantiles, with derivatives by all
parameters. Methods of scipy.stats itself convert their operands to ndarrays, and refuse traced arrays.
May import: functions/.
"""

from tracejit.stats.continuous import (
    beta,
    cauchy,
    chi,
    chi2,
    expon,
    f,
    gamma,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halfnorm,
    invgamma,
    invgauss,
    laplace,
    logistic,
    lognorm,
    loguniform,
    norm,
    pareto,
    rayleigh,
    skewnorm,
    t,
    truncnorm,
    uniform,
    vonmises,
    weibull_min,
)
from tracejit.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from tracejit.stats.distribution import Distribution
from tracejit.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "Distribution",
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halfnorm",
    "invgamma",
    "invgauss",
    "laplace",
    "logistic",
    "lognorm",
    "loguniform",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rayleigh",
    "skewnorm",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_min",
]
