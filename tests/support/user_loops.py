# SPDX-License-Identifier: BSD-3-Clause
"""Loops of users (tj.kernel), with arguments to call them with."""

import math

import numpy as np

import tracejit as tj

WEIGHT = 3.0
RNG = np.random.default_rng(3)


@tj.kernel
def smooth(x, y):
    """Write the means of neighbours."""
    n = x.shape[0]
    y[0] = x[0]
    y[-1] = x[n - 1]
    for i in range(1, n - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / WEIGHT


@tj.kernel(out=lambda a, b: ((a.shape[0], b.shape[0]), a.dtype))
def distances(a, b, d):
    n, k = a.shape
    for i in range(n):
        for j in range(len(b)):
            s = 0.0
            for c in range(k):
                s += (a[i, c] - b[j, c]) ** 2
            d[i, j] = math.sqrt(s) if s > 0 else 0.0


@tj.kernel(out=lambda x, limit: [(x.shape, x.dtype), ((), np.int64)])
def counted(x, limit, y, fault):
    for place in range(len(x) - 1, -1, -1):
        if x[place] > limit and not x[place] > 2 * limit:
            y[place] = max(x[place], limit) + math.pi
            fault[()] += 1
        elif place % 2 == 0 or limit < 0:
            continue
        else:
            y[place] = -abs(x[place])


@tj.kernel(out=lambda x: (x.shape, np.float64))
def collatz(x, steps):
    for i in range(x.size):
        value = int(x[i])
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps[i] += 1
            if steps[i] > 500:
                break


@tj.kernel
def scan(x, rate, y):
    for j in range(x.shape[1]):
        total = 0.0
        for i in range(x.shape[0]):
            total = total * rate + np.exp(-(x[i, j] ** 2)) + math.atan(x[i, j]) + x[i, j] ** 0.5
            y[i, j] = total
        for i in range(x.shape[0] - 1):
            y[i + 1, j] -= y[i, j]


@tj.kernel
def taken(x, index, y):
    for k in range(len(index)):
        y[k] = x[index[k]]


X = RNG.uniform(0.1, 4.0, 9)
CASES = {
    "smooth": (smooth, (X,)),
    "distances": (distances, (RNG.standard_normal((4, 2)), RNG.standard_normal((3, 2)))),
    "square": (distances, (RNG.standard_normal((2, 2)), RNG.standard_normal((2, 2)))),
    "counted": (counted, (X, 1.0)),
    "collatz": (collatz, (np.array([1, 6, 27, 97]),)),
    "scan": (scan, (RNG.uniform(0.1, 1.0, (5, 3)), 0.9)),
}
