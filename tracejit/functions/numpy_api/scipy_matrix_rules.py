# SPDX-License-Identifier: BSD-3-Clause
"""Adjoints of the functions of scipy_matrices.py, made of these functions, so that they have derivatives themselves.

Cotangents are transposed, conjugate or not, as Note [adjoints of complex matrices] in host_matrix_rules.py says.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.functions.numpy_api import scipy_matrices as routines
from tracejit.functions.numpy_api.host_matrix_rules import (
    Rule,
    adjoint,
    conj,
    is_complex,
    joined,
    like,
    node_of,
    part,
    solved,
    zeros,
)
from tracejit.ops.matrices import transposed


def _of_dtype(b: Any, x: Any, dtype: np.dtype) -> Any:
    return x if x.dtype == dtype else b.cast(x, dtype=dtype)


def _frechet_node(b: Any, x: Any, g: Any, y: Any, options: dict[str, Any]) -> Any:
    """Return the derivative along g of a function of x, whose value is complex where y is."""
    dtype = np.result_type(x.dtype, g.dtype)
    x, g = _of_dtype(b, x, dtype), _of_dtype(b, g, dtype)
    real = not is_complex(y) and dtype.kind == "f"
    found = dtype if real else np.result_type(dtype, np.complex64)
    return node_of(b, routines.frechet, (x, g), [x.aval._replace(dtype=found)], {**options, "real": real})


def _primary(name: str) -> Rule:
    """Return the rule of a function that a power series could define: its adjoint is the derivative at A' along ct."""

    def rule(b: Any, node: Any, ct: Any) -> Any:
        (a,), (y,) = node.inputs, node.outputs
        if not a.aval.size:
            return (None,)
        options = {"name": name}
        if name == "powers":
            options["t"] = node.params["arguments"].option("t", None, 1)
        return (like(b, _frechet_node(b, transposed(b, a), ct, y, options), a),)

    return rule


def _frechet(b: Any, node: Any, ct: Any) -> Any:
    # A block of f(B) with B = [[A, E], [0, A]], so that the blocks of the adjoint of f at B go to A and E.
    (a, e), (y,) = node.inputs, node.outputs
    arguments, n = node.params["arguments"], a.shape[-1]
    options = {"name": arguments.option("name", None)}
    if options["name"] == "powers":
        options["t"] = arguments.option("t", None)
    if not a.aval.size:
        return None, None

    def by_a() -> Any:
        dtype = np.result_type(a.dtype, e.dtype)
        x, g = (_of_dtype(b, transposed(b, each), dtype) for each in (a, e))
        none = zeros(b, x)
        whole = joined(b, joined(b, x, none, -1), joined(b, g, x, -1), -2)
        empty = zeros(b, ct)
        along = joined(b, joined(b, empty, ct, -1), joined(b, empty, empty, -1), -2)
        found = _frechet_node(b, whole, along, y, options)
        first = part(b, part(b, found, -2, 0, n), -1, 0, n)
        last = part(b, part(b, found, -2, n, 2 * n), -1, n, 2 * n)
        return like(b, b.add(first, last), a)

    return by_a, lambda: like(b, _frechet_node(b, transposed(b, a), ct, y, options), e)


def _sylvester(b: Any, node: Any, ct: Any) -> Any:
    (p, q, r), (x,) = node.inputs, node.outputs
    if not r.aval.size:
        return (None, None, None)
    s = node_of(b, routines.sylvester, (transposed(b, p), transposed(b, q), ct), [x.aval])
    turned = transposed(b, x)
    return (
        like(b, b.neg(b.matmul(s, turned)), p), like(b, b.neg(b.matmul(turned, s)), q), like(b, s, r)
    )  # fmt: skip


def _discrete_lyapunov(b: Any, node: Any, ct: Any) -> Any:
    (a, q), (x,) = node.inputs, node.outputs
    if not q.aval.size:
        return (None, None)
    s = node_of(b, routines.discrete_lyapunov, (_of_dtype(b, adjoint(b, a), x.dtype), conj(b, ct)), [x.aval])
    a_ = _of_dtype(b, a, x.dtype)
    by_a = b.add(b.matmul(b.matmul(s, a_), adjoint(b, x)), b.matmul(b.matmul(adjoint(b, s), a_), x))
    return like(b, conj(b, by_a), a), like(b, conj(b, s), q)


def _gain(b: Any, given: Any, x: Any, is_discrete: bool) -> tuple[Any, Any]:
    """Return the gain K and the closed loop A - B K."""
    p, q, _, r = given
    turned = b.matmul(adjoint(b, q), x)
    if is_discrete:
        r, turned = b.add(r, b.matmul(turned, q)), b.matmul(turned, p)
    gain = solved(b, r, turned)
    return gain, b.sub(p, b.matmul(q, gain))


def _riccati(is_discrete: bool) -> Rule:
    """Return the rule of a Riccati equation, whose derivative solves a Lyapunov equation of the closed loop F.

    With M = dQ + K^H dR K + (T (dA - dB K) + its adjoint), where T is X, or F^H X of the discrete equation, dX solves
    F^H dX + dX F = -M, or dX = F^H dX F + M.
    """

    def rule(b: Any, node: Any, ct: Any) -> Any:
        (x,) = node.outputs
        if not x.aval.size:
            return (None,) * 4
        given = [_of_dtype(b, each, x.dtype) for each in node.inputs]
        gain, loop = _gain(b, given, x, is_discrete)
        g = conj(b, ct)
        if is_discrete:
            s = node_of(b, routines.discrete_lyapunov, (loop, g), [x.aval])
        else:
            s = node_of(b, routines.sylvester, (loop, adjoint(b, loop), b.neg(g)), [x.aval])
        before = b.matmul(x, loop) if is_discrete else x
        by_a = b.matmul(before, b.add(s, adjoint(b, s)))
        turned = adjoint(b, gain)
        found = (by_a, b.neg(b.matmul(by_a, turned)), s, b.matmul(b.matmul(gain, s), turned))
        return tuple([like(b, conj(b, y), z) for y, z in zip(found, node.inputs, strict=True)])

    return rule


def _shifted(b: Any, row: Any, by: int) -> Any:
    """Return a row whose element j is element j + by of another one, or 0."""
    n = row.shape[-1]
    if abs(by) >= n:
        return zeros(b, row)
    kept = b.slice(row, starts=(0, max(by, 0)), stops=(1, n + min(by, 0)), steps=(1, 1))
    none = b.constant(np.zeros((1, abs(by)), row.dtype))
    return kept if not by else b.concatenate(*((kept, none) if by > 0 else (none, kept)), axis=1)


def _banded(b: Any, node: Any, ct: Any) -> Any:
    # The transposed matrix has the rows of diagonals in the other order, each shifted; -ct_b x' has its diagonals.
    (ab, _), (x,) = node.inputs, node.outputs
    arguments = node.params["arguments"]
    lower, upper = arguments.option("lower", 0, 2), arguments.option("upper", 0, 3)
    if not x.aval.size:
        return (None, None)
    rows = [part(b, ab, -2, upper - d, upper - d + 1) for d in range(-lower, upper + 1)]
    turned = [_shifted(b, row, d) for row, d in zip(rows, range(-lower, upper + 1), strict=True)]
    # Row lower + d of the transposed matrix is row upper - d, shifted.
    whole = turned[0] if len(turned) == 1 else b.concatenate(*turned, axis=0)
    options = {"lower": upper, "upper": lower}
    s = node_of(b, routines.banded, (_of_dtype(b, whole, x.dtype), ct), [x.aval], options)
    n = ab.shape[-1]
    columns = x.aval.size // n
    left, right = (b.reshape(each, shape=(n, columns)) for each in (s, x))
    slopes = []
    for d in range(-upper, lower + 1):
        moved = transposed(b, left)
        shifted = [_shifted(b, part(b, moved, -2, k, k + 1), d) for k in range(columns)]
        product = b.mul(shifted[0] if columns == 1 else b.concatenate(*shifted, axis=0), transposed(b, right))
        slopes.append(b.neg(b.sum(product, axes=(0,), keepdims=True)))
    by_ab = slopes[0] if len(slopes) == 1 else b.concatenate(*slopes, axis=0)
    return like(b, by_ab, ab), like(b, s, node.inputs[1])


def _polar(b: Any, node: Any, ct: Any) -> Any:
    # U moves by U W + (1 - U U^H) E P^-1 and P by U^H E - W P, where P W + W P = U^H E - E^H U.
    (a,), (u, p) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    by_u, by_p = (zeros(b, x) if each is None else conj(b, each) for x, each in zip((u, p), ct, strict=True))
    inner = b.sub(b.matmul(adjoint(b, u), by_u), b.matmul(by_p, p))
    turns = node_of(b, routines.sylvester, (p, p, inner), [p.aval])
    found = b.matmul(u, b.add(b.sub(turns, adjoint(b, turns)), by_p))
    if a.shape[-2] > a.shape[-1]:
        beside = b.sub(by_u, b.matmul(u, b.matmul(adjoint(b, u), by_u)))
        found = b.add(found, adjoint(b, solved(b, p, adjoint(b, beside))))
    return (conj(b, found),)


SCIPY_RULES: dict[Callable[..., Any], Rule] = {
    routines.logm: _primary("logm"),
    routines.sqrtm: _primary("sqrtm"),
    routines.signm: _primary("signm"),
    routines.powers: _primary("powers"),
    routines.frechet: _frechet,
    routines.sylvester: _sylvester,
    routines.discrete_lyapunov: _discrete_lyapunov,
    routines.continuous_riccati: _riccati(False),
    routines.discrete_riccati: _riccati(True),
    routines.banded: _banded,
    routines.polar: _polar,
}
