# SPDX-License-Identifier: BSD-3-Clause
"""Ops between the bits of 16-bit numbers and numbers of 32 or 64 bits, which kernels compute with.

They stand for casts in programs: Note [numbers of 16 bits] in ops/halves.py.
"""

from collections.abc import Callable

import numpy as np

from tracejit.aval import FLOAT16
from tracejit.ops.floats import infer_float, promote_float
from tracejit.ops.op import Kind, Op, Sample, Scalar

_SAMPLES = (Sample(((2, 3),)), Sample(((),)))
_NORMAL = (0.0, 30000.0)  # the bits of positive numbers


def _value_of(dtype: Callable[[], np.dtype]) -> Callable[[np.ndarray], np.ndarray]:
    def reference(bits: np.ndarray) -> np.ndarray:
        floats = bits.astype(promote_float(bits.dtype)[0])
        return np.asarray(np.rint(floats)).astype(np.uint16).view(dtype()).astype(floats.dtype)

    return reference


def _bits_of(dtype: Callable[[], np.dtype]) -> Callable[[np.ndarray], np.ndarray]:
    def reference(x: np.ndarray) -> np.ndarray:
        floats = np.asarray(x).astype(promote_float(x.dtype)[0])
        return floats.astype(dtype()).view(np.uint16).astype(floats.dtype)

    return reference


def _rounded(x: np.ndarray) -> np.ndarray:
    floats = np.asarray(x).astype(promote_float(x.dtype)[0])
    return floats.astype(FLOAT16).astype(floats.dtype)


OPS = (
    Op(name="half_value", doc="the float16 number whose bits are the whole number x; no derivative",
       kind=Kind.ELEMENTWISE, infer=infer_float, numpy=_value_of(lambda: FLOAT16), promote=promote_float, vjp=None,
       emit=Scalar("half_value_{T}({0})", 6), samples=_SAMPLES, analytic=False, domain=_NORMAL),
    Op(name="half_bits", doc="the bits of the float16 number next to x, as a whole number; no derivative",
       kind=Kind.ELEMENTWISE, infer=infer_float, numpy=_bits_of(lambda: FLOAT16), promote=promote_float, vjp=None,
       emit=Scalar("half_bits_{T}({0})", 8), samples=_SAMPLES, analytic=False),
    Op(name="half_round", doc="the float16 number next to x; no derivative", kind=Kind.ELEMENTWISE, infer=infer_float,
       numpy=_rounded, promote=promote_float, vjp=None, emit=Scalar("half_round_{T}({0})", 6), samples=_SAMPLES,
       analytic=False),
)  # fmt: skip
