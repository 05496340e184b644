# SPDX-License-Identifier: BSD-3-Clause
"""Adjoints of functions of NumPy and SciPy that programs call: those of matrices, roots, Lambert's W.

A rule is that of an op, of (b, node, ct); it returns None where the function has no derivative with its arguments.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.functions.numpy_api.host_filters import recursive, recursive_rule
from tracejit.functions.numpy_api.host_matrix_rules import MATRIX_RULES, Rule, is_complex, part, solved, zeros
from tracejit.functions.numpy_api.scipy_matrix_rules import SCIPY_RULES
from tracejit.ops.linalg import lower_half, lu_factors
from tracejit.ops.matrices import transposed
from tracejit.ops.ufunc_loops import ufunc_of


def _roots(b: Any, node: Any, ct: Any) -> Any:
    # The root x of p_0 x^n + ... + p_n moves by -x^(n - j) / p'(x) with p_j.
    (p,), (x,) = node.inputs, node.outputs
    if p.dtype.kind == "c":
        return None
    count = p.shape[0]
    is_complex = x.dtype.kind == "c"
    powers = [b.constant(np.ones(x.shape, x.dtype))]
    for _ in range(count - 1):
        powers.append(b.mul(powers[-1], x))
    slope = b.constant(np.zeros(x.shape, x.dtype))
    for j in range(count - 1):
        degree = count - 1 - j
        one = b.reshape(b.slice(p, starts=(j,), stops=(j + 1,), steps=(1,)), shape=())
        slope = b.add(slope, b.mul(b.mul(powers[degree - 1], one), b.constant(x.dtype.type(degree))))
    moved = []
    for j in range(count):
        by = b.neg(b.div(powers[count - 1 - j], slope))
        share = b.real(b.mul(ct, by)) if is_complex else b.mul(ct, by)
        moved.append(b.reshape(b.sum(share, axes=(0,), keepdims=False), shape=(1,)))
    return (b.concatenate(*moved, axis=0),)


def _triangular(b: Any, x: Any, y: Any, lower: bool) -> Any:
    """Return X^-1 Y for triangular X, whose other half is 0."""
    return solved(b, x, y) if is_complex(x) else b.solve_triangular(x, y, lower=lower)


def _lu(b: Any, node: Any, ct: Any) -> Any:
    # A' of P A = L U, square, is P' L^-T (tril(L' ct_L, -1) + triu(ct_U U')) U^-T. Columns of A beyond its rows are
    # L times those of U, rows beyond its columns those of L times U; what follows from this is added to ct.
    (a,), (places, low, up) = node.inputs, node.outputs
    m, n = a.shape[-2:]
    k = min(m, n)
    if not a.aval.size:
        return (None,)
    by_low, by_up = (zeros(b, x) if part is None else part for x, part in zip((low, up), ct[1:], strict=True))
    beside = below = None
    if n > k:
        rest = part(b, up, -1, k, n)
        beside = _triangular(b, transposed(b, low), part(b, by_up, -1, k, n), lower=False)
        by_low = b.sub(by_low, b.matmul(beside, transposed(b, rest)))
        up, by_up = part(b, up, -1, 0, k), part(b, by_up, -1, 0, k)
    if m > k:
        rest, by_rest = part(b, low, -2, k, m), part(b, by_low, -2, k, m)
        below = transposed(b, _triangular(b, up, transposed(b, by_rest), lower=False))
        by_up = b.sub(by_up, b.matmul(transposed(b, rest), below))
        low, by_low = part(b, low, -2, 0, k), part(b, by_low, -2, 0, k)
    lower = lower_half(b, b.matmul(transposed(b, low), by_low), 0.0)
    upper = transposed(b, lower_half(b, b.matmul(up, transposed(b, by_up))))
    left = _triangular(b, transposed(b, low), b.add(lower, upper), lower=False)
    found = transposed(b, _triangular(b, up, transposed(b, left), lower=False))
    if beside is not None:
        found = b.concatenate(found, beside, axis=a.ndim - 1)
    if below is not None:
        found = b.concatenate(found, below, axis=a.ndim - 2)
    spread = b.broadcast_to(b.reshape(places, shape=(*places.shape, 1)), shape=a.shape)
    return (b.add_along_axis(zeros(b, a), spread, found, axis=a.ndim - 2),)


def lambert(z: np.ndarray, k: int) -> np.ndarray:
    """Return branch k of Lambert's W."""
    with np.errstate(all="ignore"):
        return np.asarray(ufunc_of("_lambertw")(z, k, 1e-8))


def _lambert(b: Any, node: Any, ct: Any) -> Any:
    # W' = 1 / (e^W (1 + W)), by the derivative of W e^W = z.
    (z,), (w,) = node.inputs, node.outputs
    one = b.constant(w.dtype.type(1))
    slope = b.mul(ct, b.div(one, b.mul(b.exp(w), b.add(one, w))))
    return (b.cast(slope if z.dtype.kind == "c" else b.real(slope), dtype=z.dtype),)


def faddeeva(z: np.ndarray) -> np.ndarray:
    """Return Faddeeva's function exp(-z^2) erfc(-i z)."""
    return np.asarray(ufunc_of("wofz")(z))


def _faddeeva(b: Any, node: Any, ct: Any) -> Any:
    # w' = 2 i / sqrt(pi) - 2 z w (DLMF 7.10.2).
    (z,), (w,) = node.inputs, node.outputs
    slope = b.sub(
        b.constant(w.dtype.type(2j / np.sqrt(np.pi))),
        b.mul(b.constant(w.dtype.type(2)), b.mul(w, b.cast(z, dtype=w.dtype))),
    )
    found = b.mul(ct, slope)
    return (b.cast(found if z.dtype.kind == "c" else b.real(found), dtype=z.dtype),)


def quantile(name: str, method: str, *given: np.ndarray) -> np.ndarray:
    """Return quantiles of a distribution of scipy.stats."""
    import scipy.stats

    with np.errstate(all="ignore"):
        if name == "vonmises":
            # SciPy's isf is the quantile of 1 - q, and some quantiles lie outside of the circle.
            found = np.clip(scipy.stats.vonmises.ppf(*given), -np.pi, np.pi)
            return np.asarray(found if method == "ppf" else -found)
        return np.asarray(getattr(getattr(scipy.stats, name), method)(*given))


def _of_steps(b: Any, node: Any, ct: Any) -> Any:
    return (None,) * len(node.inputs)


RULES: dict[Callable[..., Any], Rule] = {
    **MATRIX_RULES,
    **SCIPY_RULES,
    np.roots: _roots,
    lu_factors: _lu,
    lambert: _lambert,
    faddeeva: _faddeeva,
    recursive: recursive_rule,
    quantile: _of_steps,
}
