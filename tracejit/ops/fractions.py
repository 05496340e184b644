# SPDX-License-Identifier: BSD-3-Clause
"""Ops of the incomplete gamma and beta functions: their factors besides the powers, and derivatives of these.

SciPy computes the functions themselves. These ops compute what the derivatives by the parameters need, and the
logarithms where the functions underflow (see special_rules.py). NumPy's reference evaluates all elements at once.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval, broadcast_shapes
from tracejit.errors import GradientError
from tracejit.ops.batch import aligned
from tracejit.ops.elementwise import format_of
from tracejit.ops.expressions import Expression
from tracejit.ops.floats import common_float
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

LIMIT = 100_000  # terms
_EPS = 3e-16


def _series(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    term, harmonic, total, total_by = np.ones_like(a), np.zeros_like(a), np.ones_like(a), np.zeros_like(a)
    active = np.ones(a.shape, bool)
    for n in range(1, LIMIT + 1):
        term = term * (x / (a + n))
        harmonic = harmonic + 1.0 / (a + n)
        total = np.where(active, total + term, total)
        total_by = np.where(active, total_by - term * harmonic, total_by)
        active &= (term * harmonic > -1e-18 * total_by) | (term > 1e-18 * total) | (x >= a + n)
        if not active.any():
            break
    missing = np.where(active, np.nan, 1.0)
    return total * missing, total_by / total * missing


def _quotient(
    start: np.ndarray, terms: Callable[[int], tuple[Any, Any, list[Any], list[Any]]], count: int, limit: int
) -> list[np.ndarray]:
    """Return 1 / (start + n1 / (d1 + n2 / (d2 + ...))) and the derivatives of its logarithm.

    Args:
        start: the first denominator; its derivatives are those that `terms(0)` has.
        terms: function of the number of a term that returns numerator and denominator, and derivatives of both.
        count: the number of parameters.
        limit: the number of terms after which results are NaN.
    """
    _, _, _, own = terms(0)
    d = 1.0 / np.where(start == 0, 1e-300, start)
    d_by = [-part * d * d for part in own]
    c, c_by = np.full_like(start, 1e300), [np.zeros_like(start)] * count
    product, sums = d, [-part * d for part in own]
    active = np.ones(start.shape, bool)
    for n in range(1, limit + 1):
        top, bottom, top_by, bottom_by = terms(n)
        u = bottom + top * d
        u = np.where(u == 0, 1e-300, u)
        u_by = [t * d + top * s + b for t, s, b in zip(top_by, d_by, bottom_by, strict=True)]
        c_by = [t / c - top * (s / c) / c + b for t, s, b in zip(top_by, c_by, bottom_by, strict=True)]
        c = bottom + top / c
        c = np.where(c == 0, 1e-300, c)
        d = 1.0 / u
        d_by = [-part * d * d for part in u_by]
        changes = [p / c - q * d for p, q in zip(c_by, u_by, strict=True)]
        product = np.where(active, product * (c * d), product)
        sums = [np.where(active, s + change, s) for s, change in zip(sums, changes, strict=True)]
        far = np.abs(c * d - 1.0) > _EPS
        for s, change in zip(sums, changes, strict=True):
            far |= np.abs(change) > _EPS * np.abs(s)
        active &= far
        if not active.any():
            break
    missing = np.where(active, np.nan, 1.0)
    return [product * missing, *[s * missing for s in sums]]


def _gamma_reference(a: np.ndarray, x: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    dtype = common_float(a.dtype, x.dtype)
    p, z, lower = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64), side >= 0.5)
    holds = (p > 0) & (z >= 0) & (p + z < np.inf)
    value, slope = np.full(p.shape, np.nan), np.full(p.shape, np.nan)
    at = holds & lower
    if at.any():
        value[at], slope[at] = _series(p[at], z[at])
    at = holds & ~lower
    if at.any():
        p, z = p[at], z[at]
        one = np.ones_like(p)
        value[at], slope[at] = _quotient(
            z + 1.0 - p, lambda n: (n * (p - n), z + (2 * n + 1) - p, [n * one], [-one]), 1, LIMIT
        )
    return value.astype(dtype), slope.astype(dtype)


def _beta_terms(a: np.ndarray, b: np.ndarray, x: np.ndarray, n: int) -> tuple[Any, Any, list[Any], list[Any]]:
    one, zero = np.ones_like(a), np.zeros_like(a)
    if n == 0:
        return one, one, [zero, zero], [zero, zero]
    m = n // 2
    even = a + 2 * m
    if n % 2:
        scale = -x * ((a + m) / even) / (even + 1.0)
        top = (a + b + m) * scale
        by_a = scale + top * (1.0 / (a + m) - 1.0 / even - 1.0 / (even + 1.0))
    else:
        scale = m * x / (even * (even - 1.0))
        top = (b - m) * scale
        by_a = -top * (1.0 / even + 1.0 / (even - 1.0))
    return top, one, [by_a, scale], [zero, zero]


def _beta_reference(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    dtype = np.result_type(common_float(a.dtype, b.dtype), common_float(b.dtype, x.dtype))
    p, q, z = np.broadcast_arrays(*[part.astype(np.float64) for part in (a, b, x)])
    at = (p > 0) & (q > 0) & (p + q < np.inf) & (z >= 0) & (z <= 1)
    results = [np.full(p.shape, np.nan) for _ in range(3)]
    if at.any():
        p, q, z = p[at], q[at], z[at]
        quotients = _quotient(np.ones_like(p), lambda n: _beta_terms(p, q, z, n), 2, 2 * LIMIT)
        for result, part in zip(results, quotients, strict=True):
            result[at] = part
    return tuple([result.astype(dtype) for result in results])


def _infer(results: int) -> Callable[..., tuple[Aval, ...]]:
    def infer(*avals: Aval) -> tuple[Aval, ...]:
        dtype = np.result_type(*[common_float(aval.dtype, aval.dtype) for aval in avals])
        shape = broadcast_shapes("special", avals)
        return (Aval(shape, format_of(avals), dtype),) * results

    return infer


def _promote(*dtypes: np.dtype) -> tuple[np.dtype, ...]:
    return (np.result_type(*[common_float(dtype, dtype) for dtype in dtypes]),) * len(dtypes)


def _numbers(out: Any, *avals: Aval) -> Sequence[int]:
    elements = prod(out[0].shape)
    return (0, elements, *[int(prod(aval.shape) == elements) for aval in avals])


def _no_formula(name: str) -> Callable[[], Any]:
    def build() -> Any:
        raise GradientError(
            f"special.{name}: there is no formula for its second derivative by a parameter; pass one that does not "
            "depend on the variables (stop_gradient cuts a dependence)."
        )

    return build


def _total(parts: list[tuple[Any, Any]]) -> Any:
    """Return the sum of products of cotangents and derivatives, of the cotangents that there are."""
    total: Any = None
    for ct, derivative in parts:
        if ct is not None:
            total = ct * derivative if total is None else total + ct * derivative
    return total.value


def _gamma_rule(b: Any, node: Any, cts: Any) -> Any:
    a, x, side = (Expression(b, value) for value in node.inputs)
    value, slope = (Expression(b, part) for part in node.outputs)
    first, second = (None if ct is None else Expression(b, ct) for ct in cts)
    lower = Expression(b, b.less_equal(0.5, side.value))

    def where(p: Any, q: Any) -> Any:
        return Expression(b, b.where(lower.value, p.value, q.value))

    def by_x() -> Any:
        # (x^a e^-x y)' = a x^(a-1) e^-x for the series, -x^(a-1) e^-x for the fraction.
        rest = 1.0 - a / x
        by_value = where(a / x, -1.0 / x) + rest * value
        by_slope = where((1.0 - a * slope) / (x * value), slope / (x * value)) - 1.0 / x
        return _total([(first, by_value), (second, by_slope)])

    if second is not None:
        return (_no_formula("gammainc"), by_x, None)
    return (lambda: _total([(first, value * slope)]), by_x, None)


def _beta_rule(b: Any, node: Any, cts: Any) -> Any:
    p, q, x = (Expression(b, value) for value in node.inputs)
    value, by_a, by_b = (Expression(b, part) for part in node.outputs)
    first, second, third = (None if ct is None else Expression(b, ct) for ct in cts)

    def by_x() -> Any:
        y = 1.0 - x
        share = p / (x * y)
        by_value = share - (p / x - q / y) * value
        by_slopes = (1.0 - p * by_a) / (x * y * value) - 1.0 / x, 1.0 / y - share * by_b / value
        return _total([(first, by_value), (second, by_slopes[0]), (third, by_slopes[1])])

    if second is not None or third is not None:
        return (_no_formula("betainc"), _no_formula("betainc"), by_x)
    return (lambda: _total([(first, value * by_a)]), lambda: _total([(first, value * by_b)]), by_x)


_SHAPES = ((2, 3), (3,), ())


def _call(name: str) -> KernelCall:
    cut = RangeCut(lambda numbers: numbers[1] * 300.0, lambda numbers: numbers[1])
    return KernelCall(name, _numbers, cut=cut, is_aligned=True)


OPS = (
    Op(name="special.gamma_fraction", doc="gammainc(a, x) gamma(a + 1) / (x^a e^-x) if side >= 0.5, otherwise "
       "gammaincc(a, x) gamma(a) / (x^a e^-x), and the derivative of its logarithm by a (DLMF 8.7.1, 8.9.2); y s for "
       "a, a / x + (1 - a / x) y or -1 / x + (1 - a / x) y for x; second derivatives by a are errors",
       kind=Kind.KERNEL, infer=_infer(2), promote=_promote, numpy=_gamma_reference, vjp=_gamma_rule, analytic=False,
       batch=aligned, emit=_call("gamma_fraction"), samples=(Sample(_SHAPES),), domain=(0.6, 2.0)),
    Op(name="special.beta_fraction", doc="betainc(a, b, x) a B(a, b) / (x^a (1 - x)^b) and the derivatives of its "
       "logarithm by a and b (DLMF 8.17.22); y s and y t for a and b, a / (x (1 - x)) - (a / x - b / (1 - x)) y for x; "
       "second derivatives by a and b are errors",
       kind=Kind.KERNEL, infer=_infer(3), promote=_promote, numpy=_beta_reference, vjp=_beta_rule, analytic=False,
       batch=aligned, emit=_call("beta_fraction"), samples=(Sample(_SHAPES),), domain=(0.2, 0.6)),
)  # fmt: skip
