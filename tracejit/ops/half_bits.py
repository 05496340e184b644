# SPDX-License-Identifier: BSD-3-Clause
"""Ops between the bits of 16-bit numbers and numbers of 32 or 64 bits, which kernels compute with.

They stand for casts in programs: Note [numbers of 16 bits] in ops/halves.py.
"""

import numpy as np

from tracejit.aval import FLOAT16, FLOAT32, Aval
from tracejit.ops.floats import infer_float, promote_float
from tracejit.ops.op import Kind, Op, Sample, Scalar

_SAMPLES = (Sample(((2, 3),)), Sample(((),)))
_NORMAL = (0.0, 30000.0)  # the bits of positive numbers


def _half_value(bits: np.ndarray) -> np.ndarray:
    floats = bits.astype(promote_float(bits.dtype)[0])
    return np.asarray(np.rint(floats)).astype(np.uint16).view(FLOAT16).astype(floats.dtype)


def _half_bits(x: np.ndarray) -> np.ndarray:
    floats = np.asarray(x).astype(promote_float(x.dtype)[0])
    return floats.astype(FLOAT16).view(np.uint16).astype(floats.dtype)


def _half_round(x: np.ndarray) -> np.ndarray:
    floats = np.asarray(x).astype(promote_float(x.dtype)[0])
    return floats.astype(FLOAT16).astype(floats.dtype)


def _infer_single(x: Aval) -> Aval:
    return Aval(x.shape, x.format, FLOAT32)


def _promote_single(x: np.dtype) -> tuple[np.dtype, ...]:
    return (FLOAT32,)


def _brain_value(bits: np.ndarray) -> np.ndarray:
    return (np.asarray(np.rint(bits)).astype(np.uint32) << 16).view(FLOAT32)


def _brain_bits(x: np.ndarray) -> np.ndarray:
    return np.asarray(_brain_round(x).view(np.uint32) >> 16).astype(FLOAT32)


def _brain_round(x: np.ndarray) -> np.ndarray:
    floats = np.asarray(x).astype(FLOAT32)
    bits = floats.view(np.uint32)
    rounded = (bits + ((bits >> 16) & 1) + np.uint32(0x7FFF)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(floats), np.copysign(np.float32(np.nan), floats), rounded.view(FLOAT32))


OPS = (
    Op(name="half_value", doc="the float16 number whose bits are the whole number x; no derivative",
       kind=Kind.ELEMENTWISE, infer=infer_float, numpy=_half_value, promote=promote_float, vjp=None,
       emit=Scalar("half_value_{T}({0})", 6), samples=_SAMPLES, analytic=False, domain=_NORMAL),
    Op(name="half_bits", doc="the bits of the float16 number next to x, as a whole number; no derivative",
       kind=Kind.ELEMENTWISE, infer=infer_float, numpy=_half_bits, promote=promote_float, vjp=None,
       emit=Scalar("half_bits_{T}({0})", 8), samples=_SAMPLES, analytic=False),
    Op(name="half_round", doc="the float16 number next to x; no derivative", kind=Kind.ELEMENTWISE, infer=infer_float,
       numpy=_half_round, promote=promote_float, vjp=None, emit=Scalar("half_round_{T}({0})", 6), samples=_SAMPLES,
       analytic=False),
    Op(name="brain_value", doc="the bfloat16 number whose bits are the whole number x; no derivative",
       kind=Kind.ELEMENTWISE, infer=_infer_single, numpy=_brain_value, promote=_promote_single, vjp=None,
       emit=Scalar("brain_value_{T}({0})", 3), samples=_SAMPLES, analytic=False, domain=_NORMAL),
    Op(name="brain_bits", doc="the bits of the bfloat16 number next to x, as a whole number; no derivative",
       kind=Kind.ELEMENTWISE, infer=_infer_single, numpy=_brain_bits, promote=_promote_single, vjp=None,
       emit=Scalar("brain_bits_{T}({0})", 5), samples=_SAMPLES, analytic=False),
    Op(name="brain_round", doc="the bfloat16 number next to x; no derivative", kind=Kind.ELEMENTWISE,
       infer=_infer_single, numpy=_brain_round, promote=_promote_single, vjp=None,
       emit=Scalar("brain_round_{T}({0})", 4), samples=_SAMPLES, analytic=False),
)  # fmt: skip
