# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise functions of complex numbers as formulas of their parts, with NumPy's branch cuts and special values.

Roots and inverse functions are those of W. Kahan, Branch cuts for complex elementary functions (1987). Where one factor
may be infinite, a product with a part that is exactly 0 is 0 with its sign (ISO C, annex G).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.ir import Node, Value
from tracejit.passes.graph import pairs
from tracejit.passes.graph.pairs import Operand, Parts, is_zero, number, pair_of

_SCALE = {
    np.dtype("float64"): (700.0, 709.0),
    np.dtype("float32"): (85.0, 88.0),
}  # e**x is finite up to the second
_MOST_MULTIPLIED = 100  # a power of a smaller integer is a product, as in NumPy


def _signed_mul(b: Any, x: Value, s: Value) -> Value:
    """Return x s, but 0 with its sign where s is 0."""
    zero = b.where(b.logical_and(b.signbit(x), b.logical_not(b.isnan(x))), b.neg(s), s)
    product: Value = b.where(b.equal(s, 0.0), zero, b.mul(x, s))
    return product


def _exp(b: Any, z: Parts) -> Parts:
    scale, most = _SCALE[z.re.dtype]
    # Beyond it e**x overflows before the products do: that of x - scale is multiplied by e**scale at the end.
    large = b.greater(z.re, most)
    size = b.exp(b.where(large, b.sub(z.re, scale), z.re))
    back = b.where(large, number(b, float(np.exp(z.re.dtype.type(scale))), z.re), number(b, 1.0, z.re))
    re = b.mul(_signed_mul(b, size, b.cos(z.im)), back)
    im = b.mul(_signed_mul(b, size, b.sin(z.im)), back)
    vanishes = b.logical_and(b.equal(z.re, -np.inf), b.logical_not(b.isfinite(z.im)))
    real = b.logical_and(b.equal(z.im, 0.0), b.logical_not(b.isnan(size)))
    grows = b.logical_and(b.equal(z.re, np.inf), b.logical_not(b.isfinite(z.im)))
    re = b.where(grows, np.inf, b.where(vanishes, 0.0, re))
    im = b.where(vanishes, b.copysign(number(b, 0.0, z.im), z.im), im)
    return Parts(re, b.where(real, z.im, im))


def _log(b: Any, z: Parts) -> Parts:
    x, y = b.abs(z.re), b.abs(z.im)
    large, small = b.maximum(x, y), b.minimum(x, y)
    size = b.hypot(x, y)
    near = b.logical_and(b.greater(size, 0.5), b.less(size, 2.0))
    # Near the unit circle log |z| is small: it is that of |z|**2 - 1 without the rounding of |z|.
    excess = b.add(b.mul(b.sub(large, 1.0), b.add(large, 1.0)), b.square(small))
    close = b.mul(b.log1p(b.where(near, excess, 0.0)), 0.5)
    return Parts(b.where(near, close, b.log(size)), b.arctan2(z.im, z.re))


def _scaled_log(factor: float) -> Callable[[Any, Parts], Parts]:
    def function(b: Any, z: Parts) -> Parts:
        return pairs.scaled(b, _log(b, z), number(b, factor, z.re))

    return function


def _sqrt(b: Any, z: Parts) -> Parts:
    x, y = b.abs(z.re), b.abs(z.im)
    info = np.finfo(z.re.dtype)
    large, small = float(info.max) / 4, float(info.tiny) * 2.0 ** (2 * info.nmant)
    size = b.maximum(x, y)
    is_large, is_small = b.greater(size, large), b.less(size, small)
    down = b.where(
        is_large, 0.0625, b.where(is_small, number(b, 2.0 ** (2 * info.nmant), x), number(b, 1.0, x))
    )
    up = b.where(is_large, 4.0, b.where(is_small, number(b, 2.0**-info.nmant, x), number(b, 1.0, x)))
    x, y = b.mul(x, down), b.mul(y, down)
    half = b.sqrt(b.mul(b.add(x, b.hypot(x, y)), 0.5))
    other = b.mul(b.div(y, b.add(half, half)), up)
    half = b.mul(half, up)
    right = b.logical_not(b.signbit(z.re))
    root = Parts(b.where(right, half, other), b.copysign(b.where(right, other, half), z.im))
    root = pairs.where(b, is_zero(b, z), Parts(b.abs(z.re), z.im), root)
    infinite = b.isinf(z.im)
    return pairs.where(b, infinite, Parts(b.abs(z.im), z.im), root)


def _sinh(b: Any, z: Parts) -> Parts:
    re = _signed_mul(b, b.sinh(z.re), b.cos(z.im))
    im = _signed_mul(b, b.cosh(z.re), b.sin(z.im))
    still = b.logical_and(b.equal(z.re, 0.0), b.logical_not(b.isfinite(z.im)))
    re = b.where(still, z.re, b.where(_wild(b, z), b.abs(z.re), re))
    return Parts(re, im)


def _cosh(b: Any, z: Parts) -> Parts:
    re = _signed_mul(b, b.cosh(z.re), b.cos(z.im))
    im = _signed_mul(b, b.sinh(z.re), b.sin(z.im))
    re = b.where(_wild(b, z), b.abs(z.re), re)
    still = b.logical_and(b.equal(z.re, 0.0), b.logical_not(b.isfinite(z.im)))
    return Parts(re, b.where(still, 0.0, im))


def _wild(b: Any, z: Parts) -> Value:
    """Return where the real part is infinite and the imaginary part no angle."""
    condition: Value = b.logical_and(b.isinf(z.re), b.logical_not(b.isfinite(z.im)))
    return condition


def _is_real(b: Any, z: Parts) -> Value:
    condition: Value = b.equal(z.im, 0.0)
    return condition


def _tanh(b: Any, z: Parts) -> Parts:
    far = b.greater(b.abs(z.re), 22.0)
    x = b.where(far, 0.0, z.re)
    s, t = b.sinh(x), b.tan(z.im)
    beta, rho = b.add(b.square(t), 1.0), b.sqrt(b.add(b.square(s), 1.0))
    below = b.add(b.mul(beta, b.square(s)), 1.0)
    re = b.div(b.mul(b.mul(beta, rho), s), below)
    im = b.div(t, below)
    # tan is infinite nowhere, but beta may overflow
    decay = b.exp(b.mul(b.abs(z.re), -2.0))
    flat = b.mul(b.mul(4.0, b.mul(b.sin(z.im), b.cos(z.im))), decay)
    # The angle is irrelevant beside an infinite z.re; otherwise one that is not finite gives NaN.
    unknown = b.sub(z.im, z.im)
    wild = b.where(b.isfinite(z.re), unknown, b.copysign(number(b, 0.0, z.re), z.im))
    flat = b.where(b.isfinite(z.im), flat, wild)
    one = b.copysign(number(b, 1.0, z.re), z.re)
    one = b.where(b.logical_or(b.isfinite(z.im), b.isinf(z.re)), one, unknown)
    re, im = b.where(far, one, re), b.where(far, flat, im)
    re = b.where(b.equal(z.re, 0.0), z.re, re)
    return Parts(re, b.where(_is_real(b, z), z.im, im))


def _signs(b: Any, z: Parts) -> Parts:
    """Return parts of 1 where those of z are infinite, otherwise 0, with their signs; NaN stays."""
    one, zero = number(b, 1.0, z.re), number(b, 0.0, z.re)

    def sign(x: Value) -> Value:
        signed: Value = b.where(b.isnan(x), x, b.copysign(b.where(b.isinf(x), one, zero), x))
        return signed

    return Parts(sign(z.re), sign(z.im))


def _is_unknown_on_axis(b: Any, z: Parts) -> Value:
    """Return where z is somewhere on the imaginary axis."""
    condition: Value = b.logical_and(b.equal(z.re, 0.0), b.isnan(z.im))
    return condition


def _beside_one(b: Any, z: Parts) -> tuple[Parts, Parts]:
    """Return the square roots of 1 - z and 1 + z."""
    return _sqrt(b, Parts(b.sub(1.0, z.re), b.neg(z.im))), _sqrt(b, Parts(b.add(z.re, 1.0), z.im))


def _infinite(b: Any, z: Parts) -> Value:
    condition: Value = b.logical_or(b.isinf(z.re), b.isinf(z.im))
    return condition


def _arcsin(b: Any, z: Parts) -> Parts:
    minus, plus = _beside_one(b, z)
    below = b.sub(b.mul(minus.re, plus.re), b.mul(minus.im, plus.im))
    height = b.sub(b.mul(minus.re, plus.im), b.mul(minus.im, plus.re))
    finite = Parts(b.arctan2(z.re, below), b.arcsinh(height))
    finite = pairs.where(b, b.equal(z.re, 0.0), Parts(z.re, b.arcsinh(z.im)), finite)
    signs = _signs(b, z)
    endless = Parts(b.arctan2(signs.re, b.abs(signs.im)), b.copysign(number(b, np.inf, z.re), z.im))
    return pairs.where(b, _infinite(b, z), endless, finite)


def _arccos(b: Any, z: Parts) -> Parts:
    minus, plus = _beside_one(b, z)
    height = b.sub(b.mul(plus.re, minus.im), b.mul(plus.im, minus.re))
    finite = Parts(b.mul(b.arctan2(minus.re, plus.re), 2.0), b.arcsinh(height))
    finite = Parts(b.where(_is_unknown_on_axis(b, z), np.pi / 2, finite.re), finite.im)
    signs = _signs(b, z)
    endless = Parts(b.arctan2(b.abs(signs.im), signs.re), b.copysign(number(b, np.inf, z.re), b.neg(z.im)))
    return pairs.where(b, _infinite(b, z), endless, finite)


def _arccosh(b: Any, z: Parts) -> Parts:
    minus, plus = _sqrt(b, Parts(b.sub(z.re, 1.0), z.im)), _sqrt(b, Parts(b.add(z.re, 1.0), z.im))
    along = b.add(b.mul(minus.re, plus.re), b.mul(minus.im, plus.im))
    finite = Parts(b.arcsinh(along), b.mul(b.arctan2(minus.im, plus.re), 2.0))
    finite = Parts(finite.re, b.where(_is_unknown_on_axis(b, z), np.pi / 2, finite.im))
    signs = _signs(b, z)
    endless = Parts(number(b, np.inf, z.re), b.arctan2(signs.im, signs.re))
    return pairs.where(b, _infinite(b, z), endless, finite)


def _arctanh(b: Any, z: Parts) -> Parts:
    # log |(1 + z) / (1 - z)| / 2, and half the angle between 1 + z and 1 - z.
    x, y = z
    away = b.sub(1.0, x)
    below = b.add(b.square(away), b.square(y))
    re = b.mul(b.log1p(b.div(b.mul(4.0, b.abs(x)), _to_nearer(b, x, y, below))), 0.25)
    # Above and below a pole, whose distance has a square of 0.
    pole = b.mul(b.sub(float(np.log(2.0)), b.log(b.abs(y))), 0.5)
    at_pole = b.logical_and(b.equal(b.abs(x), 1.0), b.less(b.abs(y), number(b, 1e-9, x)))
    re = b.where(at_pole, pole, re)
    im = b.mul(b.arctan2(b.add(y, y), b.sub(b.mul(away, b.add(x, 1.0)), b.square(y))), 0.5)
    finite = Parts(b.where(_is_unknown_on_axis(b, z), x, b.copysign(re, x)), im)
    half_turn = b.copysign(number(b, np.pi / 2, x), y)
    # Where squares overflow, 1 / z is what is left of the real part.
    large = number(b, float(np.finfo(x.dtype).max) ** 0.5 / 4, x)
    is_large = b.greater(b.maximum(b.abs(x), b.abs(y)), large)
    inverse = pairs.div(b, Parts(number(b, 1.0, x), number(b, 0.0, x)), z)
    finite = pairs.where(b, is_large, Parts(b.copysign(inverse.re, x), half_turn), finite)
    endless = Parts(b.copysign(number(b, 0.0, x), x), b.where(b.isnan(y), y, half_turn))
    return pairs.where(b, _infinite(b, z), endless, finite)


def _to_nearer(b: Any, x: Value, y: Value, right: Value) -> Value:
    """Return the squared distance of x + i y to the nearer one of 1 and -1; `right` is that to 1."""
    nearer: Value = b.where(b.signbit(x), b.add(b.square(b.add(x, 1.0)), b.square(y)), right)
    return nearer


def _rotated(function: Callable[[Any, Parts], Parts]) -> Callable[[Any, Parts], Parts]:
    """Return -i f(i z): sin, tan, arcsin and arctan of the hyperbolic functions, and the reverse."""
    return lambda b, z: pairs.turned_back(b, function(b, pairs.turned(b, z)))


def _square(b: Any, z: Parts) -> Parts:
    return pairs.mul(b, z, z)


def _sign(b: Any, z: Parts) -> Parts:
    size = b.hypot(z.re, z.im)
    plain = Parts(b.div(z.re, size), b.div(z.im, size))
    finite = pairs.where(b, b.equal(size, 0.0), Parts(pairs.zeros(b, z.re), pairs.zeros(b, z.im)), plain)
    signs = _signs(b, z)
    both = b.logical_and(b.isinf(z.re), b.isinf(z.im))
    signs = Parts(*[b.where(b.isnan(sign), 0.0, sign) for sign in signs])
    signs = pairs.where(b, both, Parts(number(b, np.nan, z.re), number(b, np.nan, z.re)), signs)
    return pairs.where(b, b.isinf(size), signs, finite)


def _reciprocal(b: Any, z: Parts) -> Parts:
    wide = b.less_equal(b.abs(z.im), b.abs(z.re))
    large, small = b.where(wide, z.re, z.im), b.where(wide, z.im, z.re)
    ratio = b.div(small, large)
    below = b.add(large, b.mul(small, ratio))
    one, other = b.div(1.0, below), b.div(ratio, below)
    return Parts(b.where(wide, one, other), b.where(wide, b.neg(other), b.neg(one)))


def _expm1(b: Any, z: Parts) -> Parts:
    half = b.sin(b.mul(z.im, 0.5))
    re = b.sub(b.mul(b.expm1(z.re), b.cos(z.im)), b.mul(2.0, b.square(half)))
    return Parts(re, b.mul(b.exp(z.re), b.sin(z.im)))


def _log1p(b: Any, z: Parts) -> Parts:
    x = b.add(z.re, 1.0)
    return Parts(b.log(b.hypot(x, z.im)), b.arctan2(z.im, x))


def _exp2(b: Any, z: Parts) -> Parts:
    return _exp(b, pairs.scaled(b, z, number(b, float(np.log(2.0)), z.re)))


def _power(b: Any, node: Node, x: Operand, y: Operand) -> Parts:
    base, exponent = pair_of(b, x), pair_of(b, y)
    data = node.inputs[1].data if node.inputs[1].is_constant else None
    if data is not None and data.ndim == 0 and data.imag == 0 and float(data.real).is_integer():
        n = int(data.real)
        if -_MOST_MULTIPLIED < n < _MOST_MULTIPLIED:
            return _whole_power(b, base, n)
    power = _exp(b, pairs.mul(b, exponent, _log(b, base)))
    one, zero, nan = (number(b, value, base.re) for value in (1.0, 0.0, np.nan))
    of_zero = b.logical_and(b.greater(exponent.re, 0.0), b.equal(exponent.im, 0.0))
    of_zero = b.logical_or(of_zero, b.greater(exponent.re, 0.0))
    at_zero = Parts(b.where(of_zero, zero, nan), b.where(of_zero, zero, nan))
    power = pairs.where(b, is_zero(b, base), at_zero, power)
    return pairs.where(b, is_zero(b, exponent), Parts(one, zero), power)


def _whole_power(b: Any, x: Parts, n: int) -> Parts:
    if n == 0:
        return Parts(pairs.filled(b, 1.0, x.re), pairs.zeros(b, x.im))
    power, left = None, abs(n)
    while True:
        if left & 1:
            power = x if power is None else pairs.mul(b, power, x)
        left >>= 1
        if not left:
            break
        x = pairs.mul(b, x, x)
    assert power is not None
    return _reciprocal(b, power) if n < 0 else power


def _equal(b: Any, x: Parts, y: Parts) -> Value:
    condition: Value = b.logical_and(b.equal(x.re, y.re), b.equal(x.im, y.im))
    return condition


def _comparison(name: str, last: str) -> Callable[[Any, Parts, Parts], Value]:
    """Return a comparison of real parts by one op, and of imaginary parts by another where those are equal."""

    def function(b: Any, x: Parts, y: Parts) -> Value:
        sure = b.logical_not(b.logical_or(b.isnan(x.im), b.isnan(y.im)))
        before = b.logical_and(getattr(b, name)(x.re, y.re), sure)
        among = b.logical_and(b.equal(x.re, y.re), getattr(b, last)(x.im, y.im))
        result: Value = b.logical_or(before, among)
        return result

    return function


def _extremum(comparison: Callable[[Any, Parts, Parts], Value]) -> Callable[[Any, Parts, Parts], Parts]:
    def function(b: Any, x: Parts, y: Parts) -> Parts:
        first = b.logical_or(comparison(b, x, y), pairs.has_nan(b, x))
        return pairs.where(b, first, x, y)

    return function


def _logic(name: str) -> Callable[..., Value]:
    def function(b: Any, *operands: Parts) -> Value:
        result: Value = getattr(b, name)(*[b.logical_not(is_zero(b, x)) for x in operands])
        return result

    return function


def _of_parts(name: str, join: str) -> Callable[[Any, Parts], Value]:
    def function(b: Any, z: Parts) -> Value:
        result: Value = getattr(b, join)(getattr(b, name)(z.re), getattr(b, name)(z.im))
        return result

    return function


def _each_part(name: str) -> Callable[[Any, Parts], Parts]:
    return lambda b, z: Parts(getattr(b, name)(z.re), getattr(b, name)(z.im))


def _cast(b: Any, node: Node, x: Operand) -> Operand:
    wanted = node.params["dtype"]
    if wanted.kind == "c":
        part = np.dtype(wanted.type(0).real.dtype)
        if isinstance(x, Parts):
            return Parts(b.cast(x.re, dtype=part), b.cast(x.im, dtype=part))
        return pair_of(b, x, wanted)
    assert isinstance(x, Parts)
    if wanted.kind == "b":
        nonzero: Value = b.logical_not(is_zero(b, x))
        return nonzero
    cast: Value = b.cast(x.re, dtype=wanted)
    return cast


def _where(b: Any, node: Node, condition: Value, x: Operand, y: Operand) -> Parts:
    return pairs.where(b, condition, pair_of(b, x), pair_of(b, y))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a formula of pairs as a rule for nodes."""
    return lambda b, node, *operands: function(b, *[pair_of(b, x) for x in operands])


_GREATER, _GREATER_EQUAL = _comparison("greater", "greater"), _comparison("greater", "greater_equal")
_LESS, _LESS_EQUAL = _comparison("less", "less"), _comparison("less", "less_equal")

_PLAIN: dict[str, Callable[..., Any]] = {
    "add": pairs.add, "sub": pairs.sub, "mul": pairs.mul, "div": pairs.div, "reciprocal": _reciprocal,
    "square": _square, "sign": _sign, "exp": _exp, "expm1": _expm1, "exp2": _exp2,
    "log": _log, "log2": _scaled_log(float(1 / np.log(2.0))), "log10": _scaled_log(float(1 / np.log(10.0))),
    "log1p": _log1p, "sqrt": _sqrt, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh, "arccosh": _arccosh,
    "arctanh": _arctanh, "arcsin": _arcsin, "arccos": _arccos, "sin": _rotated(_sinh), "tan": _rotated(_tanh),
    "arctan": _rotated(_arctanh), "arcsinh": _rotated(_arcsin),
    "cos": lambda b, z: _cosh(b, pairs.turned(b, z)),
    "equal": _equal, "not_equal": lambda b, x, y: b.logical_not(_equal(b, x, y)), "greater": _GREATER,
    "greater_equal": _GREATER_EQUAL, "less": _LESS, "less_equal": _LESS_EQUAL,
    "maximum": _extremum(_GREATER_EQUAL), "minimum": _extremum(_LESS_EQUAL),
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "cast": _cast,
    "where": _where,
    "abs": _plain(lambda b, z: b.hypot(z.re, z.im)),
    "conj": _plain(lambda b, z: Parts(z.re, b.neg(z.im))),
    **{name: _plain(_each_part(name)) for name in ("neg", "rint", "stop_gradient")},
    **{name: _plain(_of_parts(name, "logical_or")) for name in ("isnan", "isinf")},
    "isfinite": _plain(_of_parts("isfinite", "logical_and")),
    **{name: _plain(_logic(name)) for name in ("logical_and", "logical_or", "logical_xor", "logical_not")},
    **{name: _plain(function) for name, function in _PLAIN.items()},
}
