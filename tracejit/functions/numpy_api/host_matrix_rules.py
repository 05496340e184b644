# SPDX-License-Identifier: BSD-3-Clause
"""Adjoints of NumPy's functions of matrices that programs call: factors, eigenvalues, determinants.

Note [adjoints of complex matrices]
The cotangent c of z is that of dL = Re(c dz) (Note [complex cotangents] in autodiff/reverse.py), so rules of
holomorphic functions are those of real ones, with transposes: det, slogdet, eig. Where a conjugate takes part (Q^H Q =
1, L L^H), rules are in the books with the conjugate g of c, and conjugate transposes.

Eigenvectors are those that LAPACK chooses: of norm 1, with the largest element of a vector real (eig), or the first
element real (eigh, the last one with UPLO="U"; V of svd, or U if there are more columns than rows), because it makes
matrices real and tridiagonal, or bidiagonal, from that side. If a vector v moves by u along the others, it also moves
by g v, with the g that keeps this choice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.aval import part_dtype
from tracejit.ops.linalg import lower_half
from tracejit.ops.matrices import as_column, as_row, transposed

Rule = Callable[[Any, Any, Any], Any]


def is_complex(x: Any) -> bool:
    """Return whether a value is complex."""
    return bool(x.dtype.kind == "c")


def conj(b: Any, x: Any) -> Any:
    return b.conj(x) if is_complex(x) else x


def adjoint(b: Any, x: Any) -> Any:
    """Return conjugate transposes."""
    return transposed(b, conj(b, x))


def part(b: Any, x: Any, axis: int, start: int, stop: int) -> Any:
    """Return rows (axis -2) or columns (axis -1) of matrices."""
    starts, stops = [0] * x.ndim, list(x.shape)
    starts[axis], stops[axis] = start, stop
    return b.slice(x, starts=tuple(starts), stops=tuple(stops), steps=(1,) * x.ndim)


def zeros(b: Any, x: Any) -> Any:
    """Return zeros of the size and dtype of a value."""
    return b.constant(np.zeros(x.shape, x.dtype))


def joined(b: Any, x: Any, y: Any, axis: int) -> Any:
    return b.concatenate(x, y, axis=x.ndim + axis)


def solved(b: Any, x: Any, y: Any) -> Any:
    """Return X^-1 Y; of complex matrices by real ones of twice the size, [[Re, -Im], [Im, Re]]."""
    if not is_complex(x):
        factors, places = b.lu(x)
        return b.lu_solve(x, factors, places, y, transposed=False)
    re, im, n = b.real(x), b.imag(x), x.shape[-1]
    both = joined(b, joined(b, re, b.neg(im), -1), joined(b, im, re, -1), -2)
    found = solved(b, both, joined(b, b.real(y), b.imag(y), -2))
    return b.complex_of(part(b, found, -2, 0, n), part(b, found, -2, n, 2 * n))


def eye(b: Any, x: Any) -> Any:
    """Return unit matrices, as many as `x` has and as large."""
    return b.constant(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape).copy())


def _matrix(b: Any, x: Any) -> Any:
    """Return numbers as matrices of one element."""
    return b.reshape(x, shape=(*x.shape, 1, 1))


_caller: list[Callable[..., Any]] = []


def set_caller(call: Callable[..., Any]) -> None:
    """Let a function append calls of NumPy (called once, by in_python, which has the rules)."""
    _caller[:] = [call]


def node_of(b: Any, function: Callable[..., Any], *given: Any) -> Any:
    """Return the results of a function of NumPy, which the adjoint calls."""
    return _caller[0](b, function, *given)


def like(b: Any, found: Any, a: Any) -> Any:
    """Return a cotangent in the dtype of what it belongs to."""
    return b.real(found) if is_complex(found) and not is_complex(a) else found


def _det(b: Any, node: Any, ct: Any) -> Any:
    (a,), (value,) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    return (b.mul(_matrix(b, b.mul(ct, value)), solved(b, transposed(b, a), eye(b, a))),)


def _slogdet(b: Any, node: Any, ct: Any) -> Any:
    # With t = tr(A^-1 A'): log|d|' = Re t, and sign' = i sign Im t.
    (a,), (sign, size) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    zero = b.constant(np.zeros(size.shape, size.dtype))
    along = zero if ct[1] is None else ct[1]
    across = zero if ct[0] is None else b.imag(b.mul(ct[0], sign))
    weight = b.complex_of(along, across)
    return (b.mul(_matrix(b, weight), solved(b, transposed(b, a), eye(b, a))),)


def _cholesky(b: Any, node: Any, ct: Any) -> Any:
    # L^-H P L^-1 with P the lower half of L^H g, its diagonal halved; Hermitian, as the matrix is.
    (a,), (factor,) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    upper = bool(node.params["arguments"].option("upper", False))
    low, g = (adjoint(b, x) if upper else x for x in (factor, conj(b, ct)))
    turned = adjoint(b, low)
    half = lower_half(b, b.matmul(turned, g), 0.5)
    found = adjoint(b, solved(b, turned, adjoint(b, solved(b, turned, half))))
    return (conj(b, b.mul(b.add(found, adjoint(b, found)), b.constant(a.dtype.type(0.5)))),)


def _reciprocal(b: Any, x: Any, scale: Any) -> Any:
    """Return 1 / x, or 0 where x is 0 up to rounding of numbers of a scale."""
    eps = b.constant(scale.dtype.type(16 * float(np.finfo(x.dtype).eps)))
    differs = b.greater(b.abs(x), b.mul(scale, eps))
    one = b.constant(x.dtype.type(1))
    return b.where(differs, b.div(one, b.where(differs, x, one)), b.constant(x.dtype.type(0)))


def _turning(b: Any, w: Any, inner: Any) -> Any:
    """Return matrices with the element i, j over w_j - w_i, and 0 where eigenvalues are equal."""
    sizes = b.abs(w)
    scale = as_column(b, b.max(b.stop_gradient(sizes), axes=(w.ndim - 1,), keepdims=True))
    factors = _reciprocal(b, b.sub(as_row(b, w), as_column(b, w)), scale)
    return b.mul(factors if factors.dtype == inner.dtype else b.cast(factors, dtype=inner.dtype), inner)


def _sums(b: Any, by_v: Any, v: Any) -> Any:
    """Return what vectors that move along themselves add to the loss."""
    return b.sum(b.mul(by_v, v), axes=(v.ndim - 2,), keepdims=True)


def _of_real_element(b: Any, sums: Any, v: Any, hit: Any) -> Any:
    """Return what the cotangent of vectors has to lose because an element of each, where `hit` is 1, stays real."""
    sums = b.imag(sums)
    real = b.sum(b.mul(b.real(v), hit), axes=(v.ndim - 2,), keepdims=True)
    lost = b.mul(b.mul(sums, _reciprocal(b, real, b.constant(real.dtype.type(1)))), hit)
    return b.complex_of(b.constant(np.zeros(lost.shape, lost.dtype)), lost)


def _largest(b: Any, v: Any) -> Any:
    """Return 1 at the largest element of each column, and 0 elsewhere."""
    places = b.argmax(b.abs(b.stop_gradient(v)), axis=v.ndim - 2, keepdims=True)
    return _where_row(b, v, places)


def _where_row(b: Any, v: Any, places: Any) -> Any:
    rows = b.constant(np.arange(v.shape[-2]).reshape(-1, 1))
    return b.cast(b.equal(rows, places), dtype=part_dtype(v.dtype) if is_complex(v) else v.dtype)


def _eig(b: Any, node: Any, ct: Any) -> Any:
    # V^-T (diag(c_w) + F (V' c_U)) V' with F_ij = 1 / (w_j - w_i).
    (a,), (w, v) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    return (_of_eigenvectors(b, a, w, v, *ct),)


def _of_eigenvectors(b: Any, a: Any, w: Any, v: Any, by_w: Any, by_v: Any) -> Any:
    inner = None if by_w is None else b.mul(as_column(b, by_w), eye(b, v))
    if by_v is not None:
        sums = _sums(b, by_v, v)
        lost = b.mul(conj(b, v), b.real(sums) if is_complex(sums) else sums)
        if is_complex(v):
            lost = b.add(lost, _of_real_element(b, sums, v, _largest(b, v)))
        turns = _turning(b, w, b.matmul(transposed(b, v), b.sub(by_v, lost)))
        inner = turns if inner is None else b.add(inner, turns)
    return like(b, solved(b, transposed(b, v), b.matmul(inner, transposed(b, v))), a)


def _eigvals(b: Any, node: Any, ct: Any) -> Any:
    # The vectors come from eig, whose values may be in another order.
    (a,), (w,) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    values, v = node_of(b, np.linalg.eig, a, [w.aval, a.aval._replace(dtype=w.dtype)])
    apart = b.abs(b.sub(as_column(b, b.stop_gradient(w)), as_row(b, b.stop_gradient(values))))
    nearest = b.argmin(apart, axis=apart.ndim - 1, keepdims=True)
    columns = b.constant(np.arange(w.shape[-1]))
    order = b.cast(b.equal(columns, nearest), dtype=ct.dtype)
    moved = b.matmul(as_row(b, ct), order)
    return (_of_eigenvectors(b, a, values, v, b.reshape(moved, shape=ct.shape), None),)


def _eigh(b: Any, node: Any, ct: Any) -> Any:
    # V (diag(g_w) + F (V^H g_U)) V^H, Hermitian, as the matrix is.
    (a,), (w, v) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    by_w, by_v = ct
    inner = None if by_w is None else b.mul(b.cast(as_column(b, by_w), dtype=v.dtype), eye(b, v))
    if by_v is not None:
        lower = str(node.params["arguments"].option("UPLO", "L", 1)).upper() == "L"
        place = b.constant(np.int64(0 if lower else v.shape[-2] - 1))
        by_v = b.sub(by_v, _of_real_element(b, _sums(b, by_v, v), v, _where_row(b, v, place)))
        turns = _turning(b, w, b.matmul(adjoint(b, v), conj(b, by_v)))
        inner = turns if inner is None else b.add(inner, turns)
    return (_hermitian(b, v, inner),)


def _hermitian(b: Any, v: Any, inner: Any) -> Any:
    found = b.matmul(b.matmul(v, inner), adjoint(b, v))
    return conj(b, b.mul(b.add(found, adjoint(b, found)), b.constant(found.dtype.type(0.5))))


def _eigvalsh(b: Any, node: Any, ct: Any) -> Any:
    (a,), (w,) = node.inputs, node.outputs
    if not a.aval.size:
        return (None,)
    options = {"UPLO": node.params["arguments"].option("UPLO", "L", 1)}
    _, v = node_of(b, np.linalg.eigh, a, [w.aval, a.aval], options)
    return (_hermitian(b, v, b.mul(b.cast(as_column(b, ct), dtype=v.dtype), eye(b, v))),)


def _svd(b: Any, node: Any, ct: Any) -> Any:
    (a,), arguments = node.inputs, node.params["arguments"]
    m, n = a.shape[-2:]
    if not a.aval.size:
        return (None,)
    if len(node.outputs) == 1:
        lead, k = a.shape[:-2], min(m, n)
        avals = [a.aval._replace(shape=(*lead, m, k)), node.output.aval, a.aval._replace(shape=(*lead, k, n))]
        factors = node_of(b, np.linalg.svd, a, avals, {"full_matrices": False})
        return (_of_singular_vectors(b, a, factors, (None, ct, None)),)
    if m != n and arguments.option("full_matrices", True, 1):
        return None
    return (_of_singular_vectors(b, a, node.outputs, ct),)


def _of_singular_vectors(b: Any, a: Any, factors: Any, ct: Any) -> Any:
    # U [F (U^H g_U - g_U^H U) S + S F (V^H g_V - g_V^H V) + diag(g_s) + i diag(Im U^H g_U) / S] V^H,
    # F_ij = 1 / (s_j^2 - s_i^2), and what U and V move by besides. They turn together so that the first row of V, or
    # of U if there are more columns than rows, stays real.
    u, s, vh = factors
    v = adjoint(b, vh)
    by_u, by_v = (zeros(b, x) if given is None else given for x, given in ((u, ct[0]), (v, None)))
    if ct[2] is not None:
        by_v = adjoint(b, ct[2])
    m, n = a.shape[-2:]
    if ct[0] is not None or ct[2] is not None:
        sums = b.add(_sums(b, by_u, u), _sums(b, by_v, v))
        real = u if m < n else v
        lost = _of_real_element(b, sums, real, _where_row(b, real, b.constant(np.int64(0))))
        by_u, by_v = (b.sub(by_u, lost), by_v) if m < n else (by_u, b.sub(by_v, lost))
    g_u, g_v = conj(b, by_u), conj(b, by_v)
    row, column = as_row(b, s), as_column(b, s)
    scale = as_column(b, b.max(b.stop_gradient(s), axes=(s.ndim - 1,), keepdims=True))

    def cast(x: Any) -> Any:
        return b.cast(x, dtype=a.dtype)

    over = _reciprocal(b, row, scale)
    factor = cast(b.mul(_reciprocal(b, b.add(row, column), scale), _reciprocal(b, b.sub(row, column), scale)))
    x, y = b.matmul(adjoint(b, u), g_u), b.matmul(adjoint(b, v), g_v)
    inner = b.mul(b.mul(factor, b.sub(x, adjoint(b, x))), cast(row))
    inner = b.add(inner, b.mul(cast(column), b.mul(factor, b.sub(y, adjoint(b, y)))))
    unit = eye(b, x)
    turned = b.mul(b.imag(x), over)
    inner = b.add(inner, b.mul(b.complex_of(zeros(b, turned), turned), unit))
    if ct[1] is not None:
        inner = b.add(inner, b.mul(cast(as_column(b, ct[1])), unit))
    found = b.matmul(b.matmul(u, inner), adjoint(b, v))
    if m > n:
        beside = b.sub(g_u, b.matmul(u, x))
        found = b.add(found, b.matmul(b.mul(beside, cast(over)), adjoint(b, v)))
    if n > m:
        beside = b.mul(b.sub(g_v, b.matmul(v, y)), cast(over))
        found = b.add(found, b.matmul(u, adjoint(b, beside)))
    return conj(b, found)


def _pinv(b: Any, node: Any, ct: Any) -> Any:
    # P' = -P A' P + P P^H A'^H (1 - A P) + (1 - P A) A'^H P^H P (G. Golub, V. Pereyra, 1973).
    a, p = node.inputs[0], node.output
    none = (None,) * (len(node.inputs) - 1)
    if not a.aval.size:
        return (None, *none)
    turned, g = adjoint(b, p), conj(b, ct)
    found = b.neg(b.matmul(b.matmul(turned, g), turned))
    left, right = b.matmul(a, p), b.matmul(p, a)
    across = adjoint(b, g)
    before = b.matmul(b.matmul(b.sub(eye(b, left), left), across), b.matmul(p, turned))
    behind = b.matmul(b.matmul(turned, p), b.matmul(across, b.sub(eye(b, right), right)))
    return (conj(b, b.add(found, b.add(before, behind))), *none)


def _qr(b: Any, node: Any, ct: Any) -> Any:
    # g of A = Q R is (g_Q + Q S(M)) R^-H with M = R g_R^H - g_Q^H Q and S the lower half and its mirror image
    # (S. F. Walter, L. Lehmann, R. Lamour, On evaluating higher-order derivatives of the QR decomposition, 2012).
    # Columns of A beyond its rows are Q times those of R.
    (a,) = node.inputs
    rows, n = a.shape[-2:]
    if min(a.shape, default=0) == 0:
        return (None,)
    mode, k = node.params["arguments"].option("mode", "reduced", 1), min(rows, n)
    if mode == "raw":
        return None
    q, r = node.outputs if mode != "r" else _reduced(b, a)
    given = ct if mode != "r" else (None, ct)
    g_q, g_r = (zeros(b, x) if each is None else conj(b, each) for x, each in zip((q, r), given, strict=True))
    if q.shape[-1] > k:
        first = part(b, q, -1, 0, k)
        g_q = b.add(part(b, g_q, -1, 0, k), _of_other_columns(b, first, part(b, g_q, -1, k, rows)))
        q, r, g_r = first, part(b, r, -2, 0, k), part(b, g_r, -2, 0, k)
    square, g_square, g_rest = r, g_r, None
    if n > k:
        g_rest = part(b, g_r, -1, k, n)
        g_q = b.add(g_q, b.matmul(part(b, a, -1, k, n), adjoint(b, g_rest)))
        square, g_square = part(b, r, -1, 0, k), part(b, g_r, -1, 0, k)
    m = b.sub(b.matmul(square, adjoint(b, g_square)), b.matmul(adjoint(b, g_q), q))
    # LAPACK's R has a real diagonal, so that of M counts with its real part.
    half = lower_half(b, m, 0.5)
    inner = b.add(g_q, b.matmul(q, b.add(half, adjoint(b, half))))
    if is_complex(a):
        found = adjoint(b, solved(b, square, adjoint(b, inner)))
    else:
        found = transposed(b, b.solve_triangular(square, transposed(b, inner), lower=False))
    if g_rest is not None:
        found = joined(b, found, b.matmul(q, g_rest), -1)
    return (conj(b, found),)


def _reduced(b: Any, a: Any) -> Any:
    """Return the factors Q and R of matrices."""
    k = min(a.shape[-2:])
    sizes = ((*a.shape[:-1], k), (*a.shape[:-2], k, a.shape[-1]))
    return node_of(b, np.linalg.qr, a, [a.aval._replace(shape=size) for size in sizes])


def _of_other_columns(b: Any, q: Any, g: Any) -> Any:
    """Return what the cotangents g of the columns beyond those of A add to those of the first columns, Q.

    The reflections of Householder that LAPACK multiplies make all columns a function of the first ones: with N = E - Q
    the columns of [E; 0] - Q in the first rows and B those of Q in the others, they are
    [0; E] + ([E; 0] - Q) N^-H B^H.
    """
    m, n = q.shape[-2:]
    unit = b.constant(np.broadcast_to(np.eye(m, n, dtype=q.dtype), q.shape).copy())
    apart = b.sub(unit, q)
    first, others = part(b, apart, -2, 0, n), part(b, q, -2, n, m)
    y = solved(b, adjoint(b, first), adjoint(b, others))
    z = solved(b, first, b.matmul(adjoint(b, apart), g))
    return b.sub(joined(b, b.matmul(y, adjoint(b, z)), adjoint(b, z), -2), b.matmul(g, adjoint(b, y)))


MATRIX_RULES: dict[Callable[..., Any], Rule] = {
    np.linalg.cholesky: _cholesky,
    np.linalg.det: _det,
    np.linalg.eig: _eig,
    np.linalg.eigh: _eigh,
    np.linalg.eigvals: _eigvals,
    np.linalg.eigvalsh: _eigvalsh,
    np.linalg.pinv: _pinv,
    np.linalg.qr: _qr,
    np.linalg.slogdet: _slogdet,
    np.linalg.svd: _svd,
    np.linalg.svdvals: _svd,
}
