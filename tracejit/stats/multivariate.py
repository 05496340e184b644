# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of vectors."""

import math
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import DimsError
from tracejit.functions import elementwise, joining, linalg, linear, movement, random, reductions
from tracejit.functions.formats import floating
from tracejit.functions.special_ufuncs import call
from tracejit.stats.draws import source
from tracejit.stats.frozen import Freezable
from tracejit.util.arguments import sizes


class MultivariateNormal(Freezable):
    """The normal distribution of vectors: ``tj.stats.multivariate_normal.logpdf(x, mean, cov)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> density = tj.stats.multivariate_normal.pdf(np.zeros(2), np.zeros(2), np.eye(2))
        >>> round(float(density) * 2 * np.pi, 6)
        1.0
    """

    name = "multivariate_normal"

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
        form, logarithms, size = _whitened(title, x, mean, cov, "mean", "cov")
        return (form + size * math.log(2 * math.pi)) * -0.5 - logarithms

    def entropy(self, mean: Any = None, cov: Any = 1) -> dlarray:
        """Return the differential entropy; arguments are those of `logpdf`."""
        title = "stats.multivariate_normal.entropy"
        zeros = np.zeros(_dimension(mean, floating(title, cov), as_array(0.0)))
        _, logarithms, size = _whitened(title, zeros if mean is None else mean, mean, cov, "mean", "cov")
        return logarithms + 0.5 * size * (1.0 + math.log(2 * math.pi))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1) -> dlarray:
        """Return the density of vectors; arguments are those of `logpdf`."""
        return elementwise.exp(self.logpdf(x, mean, cov))

    def rvs(self, mean: Any = None, cov: Any = 1, size: Any = None, random_state: Any = None) -> dlarray:
        """Return random vectors, mean + L z with the Cholesky factor L of `cov`, so that they have derivatives by both.

        Args:
            mean, cov: as in `logpdf`.
            size: how many vectors, an integer or sizes; None for one.
            random_state: a seed, or a `tj.Generator`; None for the numbers that `tj.rng` seeds.

        Returns:
            dlarray of the sizes `size`, and of the vectors along the last axis.
        """
        title = "stats.multivariate_normal.rvs"
        covariance = floating(title, cov)
        components = _dimension(mean, covariance, as_array(0.0))
        before = () if size is None else sizes(title, "size", size)
        z = random.randn((*before, components), dtype=covariance.dtype, generator=source(title, random_state))
        if covariance.ndim < 2:
            spread = z * elementwise.sqrt(covariance)
        else:
            spread = linear.matmul(z, movement.transpose(linalg.cholesky(covariance)))
        return spread if mean is None else spread + floating(title, mean)


def _whitened(
    title: str, x: Any, mean: Any, cov: Any, centre: str, shape: str
) -> tuple[dlarray, dlarray, int]:
    """Return |L^-1 (x - mean)|^2 and log det L, with the Cholesky factor L of a matrix, and the number of components.

    Raises:
        DimsError: if sizes do not fit.
    """
    array, cov = floating(title, x), floating(title, cov)
    size = _dimension(mean, cov, array)
    if array.ndim == 0 or (size == 1 and array.shape[-1:] != (1,)):
        array = movement.reshape(array, (*array.shape, 1))
    if array.shape[-1] != size:
        raise DimsError(
            f"{title}: x has {array.shape[-1]} components, {centre} and {shape} {size}; vectors lie along the last "
            "axis."
        )
    centred = array if mean is None else array - floating(title, mean)
    if cov.ndim < 2:
        roots = elementwise.sqrt(cov)
        whitened = centred / roots
        logarithms = reductions.sum(elementwise.log(roots)) * (size if cov.ndim == 0 else 1)
    else:
        if cov.shape != (size, size):
            raise DimsError(f"{title}: {shape} has size {cov.shape}, expected {(size, size)}.")
        factor = linalg.cholesky(cov)
        columns = movement.transpose(movement.reshape(centred, (-1, size)))
        solved = linalg.solve_triangular(factor, columns, lower=True)
        whitened = movement.reshape(movement.transpose(solved), centred.shape)
        logarithms = reductions.sum(elementwise.log(linear.diag(factor)))
    return reductions.sum(whitened * whitened, -1), logarithms, size


def _dimension(mean: Any, cov: dlarray, x: dlarray) -> int:
    if mean is not None:
        return as_array(mean).shape[0] if as_array(mean).ndim else 1
    return cov.shape[-1] if cov.ndim else 1


class Dirichlet(Freezable):
    """The Dirichlet distribution: ``tj.stats.dirichlet.logpdf(x, alpha)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> round(float(tj.stats.dirichlet.pdf(np.array([0.2, 0.3, 0.5]), np.ones(3))), 6)
        2.0
    """

    name = "dirichlet"

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


class MultivariateT(Freezable):
    """Student's distribution of vectors: ``tj.stats.multivariate_t.logpdf(x, loc, shape, df)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> density = tj.stats.multivariate_t.pdf(np.zeros(2), np.zeros(2), np.eye(2), df=3)
        >>> round(float(density) * 2 * np.pi, 6)
        1.0
    """

    name = "multivariate_t"

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> dlarray:
        """Return the logarithm of the density of vectors.

        Args:
            x: unformatted vectors along the last axis.
            loc: vector; None for zeros.
            shape: positive definite matrix, a vector of its diagonal, or one number for all components.
            df: degrees of freedom, one number.

        Returns:
            dlarray of the sizes of `x` without the last axis.

        Raises:
            DimsError: if sizes do not fit.
            LinAlgError: if `shape` is not positive definite.
        """
        form, logarithms, size = _whitened("stats.multivariate_t.logpdf", x, loc, shape, "loc", "shape")
        n = floating("stats.multivariate_t.logpdf", df)
        constant = call("gammaln", (0.5 * (n + size),)) - call("gammaln", (0.5 * n,))
        constant = constant - 0.5 * size * elementwise.log(n * math.pi) - logarithms
        total: dlarray = constant - 0.5 * (n + size) * elementwise.log1p(form / n)
        return total

    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> dlarray:
        """Return the density of vectors; arguments are those of `logpdf`."""
        return elementwise.exp(self.logpdf(x, loc, shape, df))


class Multinomial(Freezable):
    """The multinomial distribution: ``tj.stats.multinomial.logpmf(x, n, p)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> round(float(tj.stats.multinomial.pmf(np.array([1.0, 1.0]), 2, np.array([0.5, 0.5]))), 6)
        0.5
    """

    name = "multinomial"
    is_discrete = True

    def logpmf(self, x: Any, n: Any, p: Any) -> dlarray:
        """Return the logarithm of the probability of counts.

        Args:
            x: unformatted counts along the last axis; -inf unless they are whole, not negative, and add up to `n`.
            n: the number of trials.
            p: probabilities along the last axis. The last one is 1 less the others, as in SciPy.

        Returns:
            dlarray of the sizes of `x` and `p` without the last axis.

        Raises:
            DimsError: if there are not as many counts as probabilities.
        """
        title = "stats.multinomial.logpmf"
        counts, shares, trials = floating(title, x), floating(title, p), floating(title, n)
        if not counts.ndim or not shares.ndim or counts.shape[-1] != shares.shape[-1]:
            raise DimsError(
                f"{title}: x has size {counts.shape} and p {shares.shape}; counts and probabilities lie along the last "
                "axis, as many of both."
            )
        rest = 1.0 - reductions.sum(shares[..., :-1], -1, True)
        shares = joining.concatenate([shares[..., :-1], rest], -1)
        possible = reductions.all((counts >= 0) & (elementwise.floor(counts) == counts), -1)
        possible = possible & (reductions.sum(counts, -1) == trials)
        terms = call("xlogy", (counts, shares)) - call("gammaln", (counts + 1.0,))
        total = reductions.sum(terms, -1) + call("gammaln", (trials + 1.0,))
        return elementwise.where(possible, total, -math.inf)

    def pmf(self, x: Any, n: Any, p: Any) -> dlarray:
        """Return the probability of counts; arguments are those of `logpmf`."""
        return elementwise.exp(self.logpmf(x, n, p))


class Wishart(Freezable):
    """The distribution of Wishart: ``tj.stats.wishart.logpdf(x, df, scale)``.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> round(float(tj.stats.wishart.pdf(np.array([[2.0]]), 2, np.eye(1))), 6)
        0.18394
    """

    name = "wishart"

    def logpdf(self, x: Any, df: Any, scale: Any) -> dlarray:
        """Return the logarithm of the density of a positive definite matrix.

        Args:
            x: unformatted matrix, (n, n), or matrices along the last two axes.
            df: degrees of freedom, one number of at least n.
            scale: positive definite matrix, (n, n).

        Returns:
            dlarray of the sizes of `x` without the last two axes.

        Raises:
            DimsError: if sizes do not fit.
            LinAlgError: if a matrix is not positive definite.
        """
        title = "stats.wishart.logpdf"
        array, scales, n = floating(title, x), floating(title, scale), floating(title, df)
        if (
            scales.ndim != 2
            or array.ndim < 2
            or array.shape[-2:] != scales.shape
            or len(set(scales.shape)) != 1
        ):
            raise DimsError(
                f"{title}: x has size {array.shape} and scale {scales.shape}, expected matrices (n, n) along the last "
                "two axes."
            )
        size = scales.shape[0]
        factor, other = linalg.cholesky(scales), linalg.cholesky(array)
        logarithms = [reductions.sum(elementwise.log(linalg.diagonals(part)), -1) for part in (factor, other)]
        form = reductions.sum(
            elementwise.square(linalg.solve_triangular(factor, other, lower=True)), (-2, -1)
        )
        half = n * 0.5
        numbers = [call("gammaln", (half - j / 2,)) for j in range(size)]
        constant = size * (size - 1) / 4 * math.log(math.pi) + sum(numbers[1:], numbers[0])
        total: dlarray = (
            (n - size - 1.0) * logarithms[1]
            - 0.5 * form
            - half * (size * math.log(2.0))
            - n * logarithms[0]
            - constant
        )
        return total

    def pdf(self, x: Any, df: Any, scale: Any) -> dlarray:
        """Return the density of a positive definite matrix; arguments are those of `logpdf`."""
        return elementwise.exp(self.logpdf(x, df, scale))


multivariate_normal = MultivariateNormal()
multivariate_t = MultivariateT()
dirichlet = Dirichlet()
multinomial = Multinomial()
wishart = Wishart()
