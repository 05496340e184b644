# SPDX-License-Identifier: BSD-3-Clause
"""Statistics and finance: a mixture, a Gaussian process, a Kalman smoother, k-means, regression, prices."""

from typing import Any

import numpy as np

from benchmarks.programs.program import Program, Words, gradients

# A mixture of Gaussians with full covariances, after ADBench: logarithms of weights, means, and inverse factors


def mixture(words: Words, params: Any, x: Any, triangle: Any) -> Any:
    """Return minus the logarithm of the likelihood; `triangle` says where elements of a factor come from."""
    xp = words.np
    logits, means, logs, below = params
    padded = xp.concatenate([below, xp.zeros((len(means), 1))], axis=1)
    factors = padded[:, triangle] + xp.exp(logs)[:, :, None] * xp.eye(means.shape[1])
    apart = xp.einsum("kij,nkj->nki", factors, x[:, None, :] - means)
    logs_of_parts = logits + logs.sum(1) - 0.5 * (apart**2).sum(2)
    likelihood = words.special.logsumexp(logs_of_parts, axis=1).sum()
    prior = 0.5 * (xp.exp(2 * logs).sum() + (below**2).sum()) - logs.sum()
    return prior - likelihood + len(x) * words.special.logsumexp(logits)


def mixture_data(rng: np.random.Generator) -> tuple[Any, ...]:
    parts, width = 10, 10
    count = width * (width - 1) // 2
    triangle = np.full((width, width), count)
    triangle[np.tril_indices(width, -1)] = np.arange(count)
    params = (rng.normal(size=parts), rng.normal(size=(parts, width)), 0.1 * rng.normal(size=(parts, width)),
              0.1 * rng.normal(size=(parts, count)))  # fmt: skip
    return params, rng.normal(size=(1000, width)), triangle


# A Gaussian process with one length for each variable


def process(words: Words, params: Any, x: Any, y: Any) -> Any:
    """Return minus the logarithm of the evidence."""
    xp = words.np
    scaled = x / xp.exp(params["lengths"])
    squares = (scaled**2).sum(1)
    distances = squares[:, None] + squares - 2 * scaled @ scaled.T
    covariance = xp.exp(params["scale"] - 0.5 * distances) + xp.exp(params["noise"]) * xp.eye(len(x))
    factor = xp.linalg.cholesky(covariance)
    white = words.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * (white**2).sum() + xp.log(xp.diagonal(factor)).sum() + 0.5 * len(x) * np.log(2 * np.pi)


def process_data(rng: np.random.Generator) -> tuple[Any, ...]:
    x = rng.uniform(-2, 2, (200, 4))
    y = np.sin(x.sum(1)) + 0.1 * rng.normal(size=200)
    return {"lengths": np.zeros(4), "scale": np.array(0.1), "noise": np.array(-3.0)}, x, y


# A point that moves in a plane, seen with noise: Kalman's filter, and the smoother of Rauch, Tung and Striebel


def kalman(words: Words, logs: Any, seen: Any) -> Any:
    """Return minus the logarithm of the likelihood, and how far the smoothed places are from what was seen."""
    xp = words.np
    move = np.eye(4) + 0.1 * np.eye(4, k=2)
    look = np.eye(2, 4)
    q = xp.exp(logs[0]) * np.kron([[0.01, 0.05], [0.05, 1.0]], np.eye(2))
    r = xp.exp(logs[1]) * np.eye(2)

    def forward(state: Any, z: Any) -> Any:
        x, p = state
        x, p = move @ x, move @ p @ move.T + q
        before = (x, p)
        s = look @ p @ look.T + r
        error = z - look @ x
        weighted = xp.linalg.solve(s, look @ p)
        x, p = x + weighted.T @ error, p - weighted.T @ (look @ p)
        loss = 0.5 * (xp.log(xp.linalg.det(s)) + error @ xp.linalg.solve(s, error))
        return (x, p), (loss, x, p, *before)

    _, (losses, x, p, x_before, p_before) = words.scan(forward, (xp.zeros(4), xp.eye(4)), seen)

    def backward(later: Any, kept: Any) -> Any:
        x, p, x_before, p_before = kept
        later = x + p @ move.T @ xp.linalg.solve(p_before, later - x_before)
        return later, later

    _, smoothed = words.scan(backward, x[-1], (x[:-1], p[:-1], x_before[1:], p_before[1:]), reverse=True)
    return losses.sum() + ((smoothed[:, :2] - seen[:-1]) ** 2).mean()


def kalman_data(rng: np.random.Generator) -> tuple[Any, ...]:
    return np.array([0.3, -0.5]), rng.normal(size=(100, 2)).cumsum(0)


# k-means by Newton: the Hessian is diagonal


def k_means(words: Words, centers: Any, points: Any) -> Any:
    """Return the cost, its gradient, and the diagonal of its Hessian."""
    xp = words.np

    def cost(centers: Any) -> Any:
        return xp.min(((points[:, None, :] - centers) ** 2).sum(2), axis=1).sum()

    gradient, diagonal = words.along(lambda centers: words.with_gradients(cost)(centers)[1], centers,
                                     xp.ones_like(centers))  # fmt: skip
    return cost(centers), gradient, diagonal


# Logistic regression by Newton's method, and the gradient of the loss of other observations by the penalties


def newton(words: Words, penalties: Any, x: Any, labels: Any, other: Any, other_labels: Any) -> Any:
    """Return the loss of other observations at the minimum."""
    xp = words.np
    weights = xp.zeros(x.shape[1])
    for _ in range(6):
        chances = words.special.expit(x @ weights)
        slope = x.T @ (chances - labels) + xp.exp(penalties) * weights
        curvature = (x.T * (chances * (1 - chances))) @ x + xp.diag(xp.exp(penalties))
        weights = weights - xp.linalg.solve(curvature, slope)
    z = other @ weights
    return (xp.logaddexp(0.0, z) - other_labels * z).mean()


def newton_data(rng: np.random.Generator) -> tuple[Any, ...]:
    true = rng.normal(size=10)
    sets = [(x, (x @ true + rng.logistic(size=500) > 0) * 1.0) for x in rng.normal(size=(2, 500, 10))]
    return np.zeros(10), *sets[0], *sets[1]


# Calls by Black and Scholes


def black_scholes(words: Words, spot: Any, strike: Any, rate: Any, volatility: Any, years: Any) -> Any:
    """Return prices and greeks: delta, vega, rho, theta and gamma."""
    xp, ndtr = words.np, words.special.ndtr

    def total(params: Any) -> Any:
        spot, rate, volatility, years = params
        deviation = volatility * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
        prices = spot * ndtr(d1) - strike * xp.exp(-rate * years) * ndtr(d1 - deviation)
        return prices.sum()

    def delta(spot: Any) -> Any:
        return words.with_gradients(lambda spot: total((spot, rate, volatility, years)))(spot)[1]

    price, greeks = words.with_gradients(total)((spot, rate, volatility, years))
    return price, greeks, words.along(delta, spot, xp.ones_like(spot))[1]


def black_scholes_data(rng: np.random.Generator) -> tuple[Any, ...]:
    spread = lambda low, high: rng.uniform(low, high, 10_000)
    return spread(80, 120), spread(80, 120), spread(0, 0.05), spread(0.1, 0.5), spread(0.2, 2)


PROGRAMS = (
    gradients("Gaussian mixture", mixture, mixture_data),
    gradients("Gaussian process", process, process_data),
    gradients("Kalman smoother", kalman, kalman_data, loops=True),
    Program(
        "k-means, Hessian's diagonal",
        k_means,
        lambda rng: (rng.normal(size=(10, 5)), rng.normal(size=(2000, 5))),
    ),
    gradients("Newton's regression", newton, newton_data),
    Program("Black-Scholes, greeks", black_scholes, black_scholes_data),
)
