# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of vectors."""

import math
from typing import Any

from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import elementwise, joining, linalg, linear, movement, reductions
from tracejit.functions.formats import floating
from tracejit.functions.special_ufuncs import call


class MultivariateNormal:
    """The normal distribution of vectors: ``tj.stats.multivariate_normal.logpdf(x, mean, cov)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> density = tj.stats.multivariate_normal.pdf(np.zeros(2), np.zeros(2), np.eye(2))
        >>> round(float(density) * 2 * np.pi, 6)
        1.0
    """

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1) -> dlarray:
        """Return the logarithm of the density of vectors.

        Args:
            x: unformatted vectors along the last axis.
            mean: vector; None for zeros.
            cov: positive definite matrix, a vector of variances, or one variance for all components.

        Returns:
            dlarray of the sizes of `x` without the last axis.

        Raises:
            DimsError: if sizes do not fit.
            LinAlgError: if `cov` is not positive definite.

        The quadratic form is that of the Cholesky factor: log p = -(|L^-1 (x - mean)|^2 + n log 2 pi) / 2 - log det L.
        """
        title = "stats.multivariate_normal.logpdf"
        array, cov = floating(title, x), floating(title, cov)
        size = _dimension(mean, cov, array)
        if array.ndim == 0 or (size == 1 and array.shape[-1:] != (1,)):
            array = movement.reshape(array, (*array.shape, 1))
        if array.shape[-1] != size:
            raise DimsError(
                f"{title}: x has {array.shape[-1]} components, mean and cov {size}; vectors lie along the last axis."
            )
        centred = array if mean is None else array - floating(title, mean)
        if cov.ndim < 2:
            roots = elementwise.sqrt(cov)
            whitened = centred / roots
            logarithms = reductions.sum(elementwise.log(roots)) * (size if cov.ndim == 0 else 1)
        else:
            if cov.shape != (size, size):
                raise DimsError(f"{title}: cov has size {cov.shape}, expected {(size, size)}.")
            factor = linalg.cholesky(cov)
            columns = movement.transpose(movement.reshape(centred, (-1, size)))
            solved = linalg.solve_triangular(factor, columns, lower=True)
            whitened = movement.reshape(movement.transpose(solved), centred.shape)
            logarithms = reductions.sum(elementwise.log(linear.diag(factor)))
        form = reductions.sum(whitened * whitened, -1)
        return (form + size * math.log(2 * math.pi)) * -0.5 - logarithms

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1) -> dlarray:
        """Return the density of vectors; arguments are those of `logpdf`."""
        return elementwise.exp(self.logpdf(x, mean, cov))


def _dimension(mean: Any, cov: dlarray, x: dlarray) -> int:
    if mean is not None:
        return as_array(mean).shape[0] if as_array(mean).ndim else 1
    return cov.shape[-1] if cov.ndim else 1


class Dirichlet:
    """The Dirichlet distribution: ``tj.stats.dirichlet.logpdf(x, alpha)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> round(float(tj.stats.dirichlet.pdf(np.array([0.2, 0.3, 0.5]), np.ones(3))), 6)
        2.0
    """

    def logpdf(self, x: Any, alpha: Any) -> dlarray:
        """Return the logarithm of the density of shares.

        Args:
            x: unformatted shares along the first axis, which add up to 1 (that is not checked); the last share may
                be left out.
            alpha: vector of positive numbers.

        Returns:
            dlarray of the sizes of `x` without the first axis.

        Raises:
            DimsError: if there are not as many shares as numbers, or one less.
        """
        title = "stats.dirichlet.logpdf"
        array, weights = floating(title, x), floating(title, alpha)
        if array.ndim and array.shape[0] == weights.shape[0] - 1:
            rest = 1.0 - reductions.sum(array, 0, True)
            array = joining.concatenate([array, rest], 0)
        if weights.ndim != 1 or array.ndim == 0 or array.shape[0] != weights.shape[0]:
            raise DimsError(
                f"{title}: x has size {array.shape} and alpha {weights.shape}; shares lie along the first axis of x, "
                "as many as numbers in alpha or one less."
            )
        constant = call("gammaln", (reductions.sum(weights),)) - reductions.sum(call("gammaln", (weights,)))
        column = movement.reshape(weights, (-1, *(1,) * (array.ndim - 1)))
        total: dlarray = reductions.sum(call("xlogy", (column - 1.0, array)), 0) + constant
        return total

    def pdf(self, x: Any, alpha: Any) -> dlarray:
        """Return the density of shares; arguments are those of `logpdf`."""
        return elementwise.exp(self.logpdf(x, alpha))


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
