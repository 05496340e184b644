# SPDX-License-Identifier: BSD-3-Clause
"""Elementwise ops on the bits of numbers: signs, exponents, neighbours, shifts; and the length of a pair."""

from typing import Any

import numpy as np

from tracejit.aval import Aval, broadcast_shapes
from tracejit.ops.elementwise import elementwise, format_of
from tracejit.ops.floats import as_float, float_of, infer_float, promote_float
from tracejit.ops.op import Kind, Op, Sample, Scalar

_INTEGERS = (Sample(((2, 3), (3,)), dtypes=("int64", "int64"), integer_high=9),)


def _copysign(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    return (lambda: b.where(b.equal(b.signbit(x), b.signbit(y)), ct, b.neg(ct)), None)


def _hypot(b: Any, node: Any, ct: Any) -> Any:
    # 0 at the origin, where the slope is any direction, as that of the norm is.
    length = b.where(b.equal(node.output, 0.0), 1.0, node.output)
    return tuple(lambda x=x: b.mul(ct, b.div(x, length)) for x in node.inputs)


def _infer_exponent(x: Aval) -> Aval:
    return Aval(x.shape, x.format, np.dtype(np.int32))


def _fraction(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frexp(as_float(x))[0])


def _exponent(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frexp(as_float(x))[1])


def _infer_ldexp(x: Aval, n: Aval) -> Aval:
    dtype = float_of(x.dtype)
    return Aval(broadcast_shapes("ldexp", (x, n)), format_of((x, n)), dtype)


def _promote_ldexp(x: np.dtype, n: np.dtype) -> tuple[np.dtype, ...]:
    return (*promote_float(x), np.dtype(np.int64))


def _numpy_ldexp(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.asarray(np.ldexp(as_float(x), n.astype(np.int64)))


OPS = (
    elementwise("signbit", np.signbit, "signbit_{T}({0})", "x has a minus sign, -0.0 too; no derivative",
                analytic=False),
    elementwise("copysign", np.copysign, "copysign_{T}({0}, {1})", "|x| with the sign of y; ct, -ct if signs differ",
                _copysign, analytic=False, kinks=()),
    elementwise("nextafter", np.nextafter, "nextafter_{T}({0}, {1})", "the next number after x towards y; ct",
                lambda b, n, ct: (ct, None), cost=8, analytic=False),
    elementwise("spacing", np.spacing, "spacing_{T}({0})", "distance to the next number away from 0; no derivative",
                analytic=False),
    elementwise("hypot", np.hypot, "hypot_{T}({0}, {1})",
                "sqrt(x x + y y) without overflow; ct x / h, ct y / h, 0 at the origin", _hypot, cost=12,
                analytic=False, domain=(0.3, 2.0)),
    elementwise("left_shift", np.left_shift, "left_shift_{T}({0}, {1})",
                "x times 2**y by shifting the bits, 0 beyond the last place; no derivative", analytic=False,
                samples=_INTEGERS),
    elementwise("right_shift", np.right_shift, "right_shift_{T}({0}, {1})",
                "floor(x / 2**y) by shifting the bits; no derivative", analytic=False, samples=_INTEGERS),
    Op(name="frexp_fraction", doc="the f of x = f 2**n with 0.5 <= |f| < 1; ct 2**-n", kind=Kind.ELEMENTWISE,
       infer=infer_float, numpy=_fraction, promote=promote_float,
       vjp=lambda b, n, ct: (b.ldexp(ct, b.neg(b.frexp_exponent(n.inputs[0]))),),
       emit=Scalar("frexp_fraction_{T}({0})", 8), samples=(Sample(((2, 3),)), Sample(((),))), analytic=False,
       domain=(0.55, 0.95)),
    Op(name="frexp_exponent", doc="the n of x = f 2**n with 0.5 <= |f| < 1, 0 for 0; no derivative",
       kind=Kind.ELEMENTWISE, infer=_infer_exponent, numpy=_exponent, promote=promote_float, vjp=None,
       emit=Scalar("frexp_exponent_{T}({0})", 8), samples=(Sample(((2, 3),)), Sample(((),))), analytic=False),
    Op(name="ldexp", doc="x 2**n for integers n; ct 2**n", kind=Kind.ELEMENTWISE, infer=_infer_ldexp,
       numpy=_numpy_ldexp, promote=_promote_ldexp,
       vjp=lambda b, n, ct: (b.ldexp(ct, n.inputs[1]), None),
       emit=Scalar("ldexp_{T}({0}, {1})", 12), analytic=False,
       samples=(Sample(((2, 3), (3,)), dtypes=(None, "int64"), integer_high=5),
                Sample(((), (2, 3)), dtypes=(None, "int64"), integer_high=5))),
)  # fmt: skip
