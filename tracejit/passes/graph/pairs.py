# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of values that stand for complex numbers, and the arithmetic of them, as NumPy computes it."""

from typing import Any

import numpy as np

from tracejit.aval import part_dtype
from tracejit.ir import Value
from tracejit.util.named_tuples import NamedTuple


class Parts(NamedTuple):
    """The real and the imaginary part of a complex value, of equal size."""

    re: Value
    im: Value


Operand = Parts | Value


def whole_of(x: Parts) -> Value | None:
    """Return the complex value that parts are seen in, if they are those of one."""
    re, im = x.re.node, x.im.node
    if re is None or im is None or (re.op.name, im.op.name) != ("real", "imag") or re.inputs != im.inputs:
        return None
    return re.inputs[0]


def joined(b: Any, x: Operand) -> Value:
    """Return the complex value of parts: that in which they are seen, transposed as they are, or a new one."""
    if not isinstance(x, Parts):
        return x
    re, im = x.re.node, x.im.node
    if (
        re is not None
        and im is not None
        and re.op.name == im.op.name == "transpose"
        and re.params == im.params
    ):
        whole = whole_of(Parts(re.inputs[0], im.inputs[0]))
        if whole is not None:
            return b.transpose(whole, **re.params)  # type: ignore[no-any-return]
    seen = whole_of(x)
    return b.complex_of(*x) if seen is None else seen


def number(b: Any, value: float, like: Value) -> Value:
    """Return a number as a constant of the dtype of another value."""
    constant: Value = b.constant(np.asarray(value, like.dtype))
    return constant


def zeros(b: Any, like: Value) -> Value:
    """Return zeros of the size and dtype of another value."""
    return filled(b, 0.0, like)


def filled(b: Any, value: float, like: Value) -> Value:
    """Return a number at all places of the size of another value, in its dtype."""
    constant = number(b, value, like)
    broadcast: Value = constant if like.shape == () else b.broadcast_to(constant, shape=like.shape)
    return broadcast


def pair_of(b: Any, x: Operand, dtype: Any = None) -> Parts:
    """Return an operand as a pair; a real one has the imaginary part 0. `dtype` is that of the complex numbers."""
    if isinstance(x, Parts):
        return x
    part = x if dtype is None else b.cast(x, dtype=part_dtype(dtype))
    return Parts(part, zeros(b, part))


def add(b: Any, x: Parts, y: Parts) -> Parts:
    """Return x + y."""
    return Parts(b.add(x.re, y.re), b.add(x.im, y.im))


def sub(b: Any, x: Parts, y: Parts) -> Parts:
    """Return x - y."""
    return Parts(b.sub(x.re, y.re), b.sub(x.im, y.im))


def mul(b: Any, x: Parts, y: Parts) -> Parts:
    """Return x y."""
    re = b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im))
    return Parts(re, b.add(b.mul(x.re, y.im), b.mul(x.im, y.re)))


def scaled(b: Any, x: Parts, scale: Any) -> Parts:
    """Return x times a real number."""
    return Parts(b.mul(x.re, scale), b.mul(x.im, scale))


def turned(b: Any, x: Parts) -> Parts:
    """Return i x."""
    return Parts(b.neg(x.im), x.re)


def turned_back(b: Any, x: Parts) -> Parts:
    """Return -i x."""
    return Parts(x.im, b.neg(x.re))


def where(b: Any, condition: Value, x: Parts, y: Parts) -> Parts:
    """Return x where a condition holds, else y."""
    return Parts(b.where(condition, x.re, y.re), b.where(condition, x.im, y.im))


def div(b: Any, x: Parts, y: Parts) -> Parts:
    """Return x / y by R. L. Smith's algorithm (1962), as NumPy does: without overflow of y.re**2 + y.im**2."""
    wide = b.greater_equal(b.abs(y.re), b.abs(y.im))
    large, small = b.where(wide, y.re, y.im), b.where(wide, y.im, y.re)
    ratio = b.div(small, large)
    scale = b.div(1.0, b.add(large, b.mul(small, ratio)))
    first, second = b.where(wide, x.re, x.im), b.where(wide, x.im, x.re)
    re = b.mul(b.add(first, b.mul(second, ratio)), scale)
    part = b.mul(first, ratio)
    # Which is subtracted from which counts, because 0 - 0 and -(0 - 0) differ in their signs.
    im = b.mul(b.where(wide, b.sub(second, part), b.sub(part, second)), scale)
    quotient = Parts(re, im)
    nothing = b.logical_and(b.equal(y.re, 0.0), b.equal(y.im, 0.0))
    size = b.abs(y.re)
    return where(b, nothing, Parts(b.div(x.re, size), b.div(x.im, size)), quotient)


def is_zero(b: Any, x: Parts) -> Value:
    """Return where x is 0."""
    zero: Value = b.logical_and(b.equal(x.re, 0.0), b.equal(x.im, 0.0))
    return zero


def has_nan(b: Any, x: Parts) -> Value:
    """Return where a part of x is NaN."""
    nan: Value = b.logical_or(b.isnan(x.re), b.isnan(x.im))
    return nan
