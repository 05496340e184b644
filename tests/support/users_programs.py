# SPDX-License-Identifier: BSD-3-Clause
"""Programs that write into arrays, as users of NumPy write them; each is a function and how its arguments are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Draw]] = {}


def takes(draw: Draw) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program with a function that draws its arguments."""

    def register(program: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[program.__name__] = (program, draw)
        return program

    return register


def normal(*sizes: tuple[int, ...]) -> Draw:
    return lambda rng: tuple(rng.standard_normal(size) for size in sizes)


def dominant(rng: np.random.Generator, n: int) -> np.ndarray:
    """A matrix whose largest elements are on its diagonal."""
    return rng.uniform(-1, 1, (n, n)) + 2 * n * np.eye(n)


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


# Mechanics and differential equations


@takes(normal((6,)))
def leapfrog(y):
    x, v = y[:3], y[3:]
    for _ in range(3):
        v += 0.5 * 0.1 * -x
        x += 0.1 * v
        v += 0.5 * 0.1 * -x
    return y


@takes(lambda rng: ({"x": rng.standard_normal((4, 2)), "v": rng.standard_normal((4, 2))},))
def particles(state):
    x, v = state["x"], state["v"]
    for position, velocity in zip(x, v, strict=True):
        velocity *= 0.99
        position += 0.1 * velocity
    return (v**2).sum()


@takes(normal((4, 3), (4, 3)))
def n_body(x, v):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(i):
            d = x[j] - x[i]
            force = d / ((d * d).sum() + 0.1) ** 1.5
            a[i] += force
            a[j] -= force
    v += 0.01 * a
    x += 0.01 * v
    return a


@takes(normal((8,)))
def heat_in_place(u):
    for _ in range(3):
        u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[-1] = 0


@takes(normal((5, 6)))
def heat_of_a_plate(u):
    new = np.empty_like(u)
    for _ in range(2):
        new[...] = u
        new[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u, new = new, u
    return u


@takes(normal((7,), (7,)))
def wave_with_three_buffers(before, now):
    after = np.zeros(7)
    for _ in range(4):
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.3 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now, after = now, after, before
    return now


@takes(normal((6,)))
def advection(u):
    for _ in range(3):
        u[1:] -= 0.4 * (u[1:] - u[:-1])
    return u.sum()


def lorenz(y):
    return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


@takes(normal((3,)))
def runge_kutta(y):
    k = np.empty((4, 3))
    for _ in range(2):
        k[0] = lorenz(y)
        k[1] = lorenz(y + 0.005 * k[0])
        k[2] = lorenz(y + 0.005 * k[1])
        k[3] = lorenz(y + 0.01 * k[2])
        y += 0.01 / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
    return k


@takes(normal((3,)))
def trajectory(y):
    path = np.zeros((6, 3))
    path[0] = y
    for i in range(5):
        path[i + 1] = path[i] + 0.01 * lorenz(path[i])
    return path


@takes(normal((2,), (5, 2)))
def rotation(angles, points):
    c, s = np.cos(angles[0]), np.sin(angles[0])
    r = np.array([[c, -s], [s, c]])
    points[:] = points @ r.T
    return r


@takes(normal((2,)))
def jacobian_by_entries(q):
    j = np.zeros((2, 2))
    j[0, 0] = -np.sin(q[0]) - np.sin(q[0] + q[1])
    j[0, 1] = -np.sin(q[0] + q[1])
    j[1, 0] = np.cos(q[0]) + np.cos(q[0] + q[1])
    j[1, 1] = np.cos(q[0] + q[1])
    return j, j.T @ j


@takes(normal((3,)))
def jacobian_by_differences(y):
    j = np.empty((3, 3))
    f = lorenz(y)
    for i in range(3):
        moved = y.copy()
        moved[i] += 1e-3
        j[:, i] = (lorenz(moved) - f) / 1e-3
    return j


# Linear algebra


@takes(lambda rng: (dominant(rng, 4)[[2, 0, 3, 1]], rng.standard_normal(4)))
def gauss_jordan(a, b):
    n = len(b)
    work = np.zeros((n, n + 1))
    work[:, :n] = a
    work[:, n] = b
    for k in range(n):
        pivot = k + int(np.argmax(abs(work[k:, k])))
        if pivot != k:
            work[[k, pivot]] = work[[pivot, k]]
        work[k] /= work[k, k]
        for i in range(n):
            if i != k:
                work[i] -= work[i, k] * work[k]
    return work[:, n]


@takes(lambda rng: (dominant(rng, 3),))
def inverse_in_place(a):
    n = len(a)
    inverse = np.eye(n)
    for k in range(n):
        pivot = a[k, k]
        a[k] /= pivot
        inverse[k] /= pivot
        for i in range(n):
            if i != k:
                factor = a[i, k]
                a[i] -= factor * a[k]
                inverse[i] -= factor * inverse[k]
    return inverse


@takes(normal((3, 2)))
def rows_swapped(a):
    a[0], a[1] = a[1], a[0]
    b = a.copy()
    b[0], b[2] = b[2].copy(), b[0].copy()
    return b


@takes(lambda rng: (dominant(rng, 4),))
def lu_in_place(a):
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


@takes(lambda rng: (definite(rng, 4),))
def cholesky(a):
    lower = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            rest = a[i, j] - (lower[i, :j] * lower[j, :j]).sum()
            lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
    return lower


@takes(lambda rng: (rng.uniform(0, 1, 5), rng.uniform(3, 4, 5), rng.uniform(0, 1, 5), rng.standard_normal(5)))
def thomas(a, b, c, d):
    n = len(d)
    cp, dp, x = np.zeros(n), np.zeros(n), np.empty(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


@takes(lambda rng: (dominant(rng, 4), rng.standard_normal(4), rng.standard_normal(4)))
def gauss_seidel(a, b, x):
    for _ in range(2):
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@takes(normal((4, 3)))
def gram_schmidt_on_columns(q):
    columns = q.T
    for i, column in enumerate(columns):
        for other in columns[:i]:
            column -= (column @ other) * other
        column /= np.sqrt(column @ column)


@takes(normal((3, 3)))
def givens_on_rows(a):
    for i in range(2):
        c, s = 0.6, 0.8
        a[i], a[i + 1] = c * a[i] + s * a[i + 1], c * a[i + 1] - s * a[i]
    return a.T


@takes(lambda rng: (definite(rng, 3), rng.standard_normal(3)))
def power_iteration(a, v):
    for _ in range(4):
        v[:] = a @ v
        v /= np.sqrt((v * v).sum())
    return v @ a @ v


@takes(lambda rng: (definite(rng, 2), rng.standard_normal(2), rng.standard_normal(1)))
def kalman(p, x, z):
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    h = np.array([[1.0, 0.0]])
    x[:] = f @ x
    p[:] = f @ p @ f.T + 0.01 * np.eye(2)
    gain = p @ h.T / (h @ p @ h.T + 0.5)
    x += gain @ (z - h @ x)
    p -= gain @ h @ p
    return gain


@takes(lambda rng: (rng.uniform(0.1, 5, (4, 4)),))
def floyd_warshall(d):
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        np.minimum(d, d[:, k, None] + d[None, k, :], out=d)


# Sorting, tables, counting


@takes(normal((5,)))
def bubble(x):
    for end in range(len(x) - 1, 0, -1):
        for i in range(end):
            x[i], x[i + 1] = np.minimum(x[i], x[i + 1]), np.maximum(x[i], x[i + 1])


@takes(normal((6,)))
def odd_even_sort(x):
    for turn in range(6):
        a, b = x[turn % 2 : -1 : 2], x[turn % 2 + 1 :: 2]
        low, high = np.minimum(a, b), np.maximum(a, b)
        a[:] = low
        b[:] = high
    return x[0], x[-1]


@takes(lambda rng: (rng.integers(0, 2, 9).astype(bool),))
def rule_30(cells):
    for _ in range(3):
        new = np.zeros_like(cells)
        new[1:-1] = cells[:-2] ^ (cells[1:-1] | cells[2:])
        cells[...] = new
    return cells.sum()


@takes(lambda rng: (rng.integers(0, 2, (5, 5)),))
def game_of_life(cells):
    n = np.zeros_like(cells)
    n[1:-1, 1:-1] = (
        cells[:-2, :-2] + cells[:-2, 1:-1] + cells[:-2, 2:] + cells[1:-1, :-2] + cells[1:-1, 2:]
        + cells[2:, :-2] + cells[2:, 1:-1] + cells[2:, 2:]
    )  # fmt: skip
    born, dies = (n == 3) & (cells == 0), ((n < 2) | (n > 3)) & (cells == 1)
    cells[born] = 1
    cells[dies] = 0
    return n


@takes(lambda rng: (rng.integers(0, 4, 10), rng.standard_normal(10)))
def histogram(places, weights):
    bins, sums = np.zeros(4, int), np.zeros(4)
    np.add.at(bins, places, 1)
    np.add.at(sums, places, weights)
    return bins, sums


@takes(lambda rng: (rng.uniform(0, 1, (3, 4)),))
def cheapest_path(cost):
    table = np.zeros_like(cost)
    table[0, 0] = cost[0, 0]
    for j in range(1, 4):
        table[0, j] = table[0, j - 1] + cost[0, j]
    for i in range(1, 3):
        table[i, 0] = table[i - 1, 0] + cost[i, 0]
        for j in range(1, 4):
            table[i, j] = cost[i, j] + np.minimum(table[i - 1, j], table[i, j - 1])
    return table[-1, -1], table


@takes(lambda rng: (np.arange(5.0) + 0.1 * rng.uniform(0, 1, 5), rng.standard_normal(5)))
def divided_differences(x, y):
    c = y.copy()
    for j in range(1, len(c)):
        c[j:] = (c[j:] - c[j - 1 : -1]) / (x[j:] - x[: len(x) - j])
    return c


# Signals and images


@takes(normal((8,)))
def moving_averages(x):
    plain, weighted = np.empty(6), np.zeros(8)
    for i in range(len(plain)):
        plain[i] = x[i : i + 3].mean()
    weighted[0] = x[0]
    for i in range(1, 8):
        weighted[i] = 0.9 * weighted[i - 1] + 0.1 * x[i]
    return plain, weighted


@takes(normal((4,), ()))
def shift_register(taps, sample):
    taps[1:] = taps[:-1]
    taps[0] = sample
    return taps @ np.array([0.4, 0.3, 0.2, 0.1])


@takes(normal((4, 5)))
def image(picture):
    picture[picture > 1] = 1
    np.maximum(picture, -1, out=picture)
    picture[:, 0] = picture[:, -1] = 0
    picture[::-1] = picture
    blurred = picture.copy()
    blurred[1:-1] = (picture[:-2] + picture[1:-1] + picture[2:]) / 3
    return blurred


@takes(normal((6,)))
def sums_in_place(x):
    for i in range(1, len(x)):
        x[i] += x[i - 1]


@takes(normal((8,)))
def haar_in_place(x):
    n = len(x)
    while n > 1:
        even, odd = x[:n:2].copy(), x[1:n:2].copy()
        x[: n // 2] = 0.5 * (even + odd)
        x[n // 2 : n] = 0.5 * (even - odd)
        n //= 2


# Learning


def weights(rng):
    return {"w": rng.standard_normal((3, 2)), "b": rng.standard_normal(2)}


@takes(lambda rng: (weights(rng), rng.standard_normal((5, 3)), rng.standard_normal((5, 2))))
def sgd_in_place(params, x, y):
    error = x @ params["w"] + params["b"] - y
    gradients = {"w": x.T @ error / len(x), "b": error.mean(axis=0)}
    for name, p in params.items():
        p -= 0.1 * gradients[name]
    return (error**2).mean()


@takes(
    lambda rng: (
        weights(rng),
        weights(rng),
        {k: v**2 for k, v in weights(rng).items()},
        rng.standard_normal((5, 3)),
    )
)
def adam_in_place(params, m, v, x):
    g = {"w": x.T @ (x @ params["w"] + params["b"]), "b": (x @ params["w"] + params["b"]).sum(axis=0)}
    for name in params:
        m[name] *= 0.9
        m[name] += 0.1 * g[name]
        v[name][...] = 0.999 * v[name] + 0.001 * g[name] ** 2
        params[name] -= 0.01 * m[name] / (np.sqrt(v[name]) + 1e-8)


@takes(
    lambda rng: (rng.standard_normal((6, 3)), {"mean": rng.standard_normal(3), "var": rng.uniform(1, 2, 3)})
)
def running_statistics(x, running):
    for name, now in (("mean", x.mean(axis=0)), ("var", x.var(axis=0))):
        running[name] *= 0.9
        running[name] += 0.1 * now
    return (x - running["mean"]) / np.sqrt(running["var"])


@takes(normal((4, 3)))
def softmax_in_place(x):
    x -= x.max(axis=1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)


@takes(lambda rng: (rng.standard_normal((9, 2)), np.array([[-1.0, -1.0], [1.0, 1.0]])))
def k_means(x, centres):
    nearest = ((x[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    sums, counts = np.zeros((2, 2)), np.zeros(2)
    np.add.at(sums, nearest, x)
    np.add.at(counts, nearest, 1.0)
    centres[...] = sums / np.maximum(counts, 1)[:, None]
    return nearest


@takes(
    lambda rng: (
        [
            (rng.standard_normal((2, 3)), rng.standard_normal(2)),
            (rng.standard_normal((1, 2)), rng.standard_normal(1)),
        ],
        rng.standard_normal(3),
    )
)
def layers_clipped(layers, x):
    for w, b in layers:
        np.clip(w, -1, 1, out=w)
        b[b < 0] = 0.5
        x = np.tanh(w @ x + b)
    return x
