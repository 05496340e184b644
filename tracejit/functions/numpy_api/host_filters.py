# SPDX-License-Identifier: BSD-3-Clause
"""Recursive filters by SciPy's own routine, which programs call, and their adjoint."""

from typing import Any

import numpy as np

from tracejit.functions.numpy_api.host_matrix_rules import node_of, zeros


def recursive(b: np.ndarray, a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return signals along the last axis, filtered by b / a, vectors of one size with a[0] = 1."""
    from scipy.signal import lfilter

    return np.asarray(lfilter(b, a, x), x.dtype)


def _turned(b: Any, x: Any) -> Any:
    """Return signals backwards in time."""
    n, ones = x.shape[-1], (1,) * (x.ndim - 1)
    return b.slice(x, starts=(*(0,) * (x.ndim - 1), n - 1), stops=(*x.shape[:-1], -1), steps=(*ones, -1))


def _lagged(b: Any, x: Any, k: int) -> Any:
    """Return x[t - k], with 0 before the beginning."""
    n = x.shape[-1]
    if k >= n:
        return zeros(b, x)
    kept = b.slice(x, starts=(0,) * x.ndim, stops=(*x.shape[:-1], n - k), steps=(1,) * x.ndim)
    return (
        kept
        if not k
        else b.concatenate(b.constant(np.zeros((*x.shape[:-1], k), x.dtype)), kept, axis=x.ndim - 1)
    )


def recursive_rule(b: Any, node: Any, ct: Any) -> Any:
    """Return the cotangents of the coefficients and of the signals.

    That of the signals is ct filtered backwards in time. By a coefficient of lag k the result moves as x, or -y,
    filtered by 1 / a, k steps before.
    """
    (above, below, x), (y,) = node.inputs, node.outputs
    if not x.aval.size:
        return None, None, None
    n = above.shape[0]
    one = np.zeros(n, above.dtype)
    one[0] = 1.0

    def by_coefficients(signal: Any, sign: float) -> Any:
        moved = node_of(b, recursive, (b.constant(one), below, signal), [y.aval])
        parts = [
            b.sum(b.mul(ct, _lagged(b, moved, k)), axes=tuple(range(x.ndim)), keepdims=False)
            for k in range(n)
        ]
        whole = b.concatenate(*[b.reshape(each, shape=(1,)) for each in parts], axis=0)
        return b.mul(whole, b.constant(whole.dtype.type(sign)))

    def by_signal() -> Any:
        return _turned(b, node_of(b, recursive, (above, below, _turned(b, ct)), [y.aval]))

    return lambda: by_coefficients(x, 1.0), lambda: by_coefficients(y, -1.0), by_signal
