# SPDX-License-Identifier: BSD-3-Clause
"""Ops of complex numbers: their parts, conjugates, and numbers made of two parts.

Other ops take complex operands where NumPy does. Compiled programs have parts only: passes/graph/complex_parts.py.
Adjoints follow Note [complex cotangents] in autodiff/reverse.py.
"""

from typing import Any

import numpy as np

from tracejit.aval import Aval, broadcast_shapes, complex_dtype, part_dtype
from tracejit.errors import DTypeError
from tracejit.ops import batch
from tracejit.ops.elementwise import elementwise, format_of
from tracejit.ops.op import Kind, Layout, Op, Piece, Pieces, Sample, Strided

Shape = tuple[int, ...]
_PARTS = ("float64", "float64")
_SAMPLES = (Sample(((2, 3),), dtypes=("complex128",)), Sample(((3,),), dtypes=("complex64",)))


def layout_of_part(layout: Layout, number: int) -> Layout:
    """Return where the real (0) or imaginary (1) parts of complex numbers lie, in elements of their dtype."""
    strides = tuple([2 * stride for stride in layout.strides])
    return Layout(2 * layout.offset + number, layout.shape, strides)


def _infer_part(name: str) -> Any:
    def infer(x: Aval) -> Aval:
        if x.dtype.kind != "c":
            raise DTypeError(
                f"{name}: x is {x.dtype}, expected complex numbers; real ones have no parts to see apart."
            )
        return Aval(x.shape, x.format, part_dtype(x.dtype))

    return infer


def _infer_pairs(x: Aval) -> Aval:
    part: Aval = _infer_part("pairs")(x)
    return Aval((*part.shape, 2), None, part.dtype)


def _vjp_pairs(b: Any, node: Any, ct: Any) -> Any:
    def part(number: int) -> Any:
        shape = ct.shape[:-1]
        starts, stops = (*(0,) * len(shape), number), (*shape, number + 1)
        return b.reshape(b.slice(ct, starts=starts, stops=stops, steps=(1,) * ct.ndim), shape=shape)

    return (lambda: b.complex_of(part(0), b.neg(part(1))),)


def _infer_complex(x: Aval, y: Aval) -> Aval:
    dtype = complex_dtype(np.result_type(x.dtype, y.dtype))
    return Aval(broadcast_shapes("complex_of", (x, y)), format_of((x, y)), dtype)


def _promote_complex(x: np.dtype, y: np.dtype) -> tuple[np.dtype, ...]:
    part = part_dtype(complex_dtype(np.result_type(x, y)))
    return (part, part)


def numpy_complex(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x + i y."""
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_dtype(np.result_type(x, y)))
    out.real, out.imag = x, y
    return out


def _pieces_complex(out: Aval, x: Aval, y: Aval) -> list[Piece]:
    start, step = (0,) * len(out.shape), (1,) * len(out.shape)
    return [Piece(0, start, out.shape, step), Piece(1, start, out.shape, step)]


OPS = (
    elementwise("conj", np.conjugate, "{0}", "complex conjugate, a real number itself; the conjugate of ct",
                lambda b, n, ct: (b.conj(ct),), analytic=False),
    Op(name="real", doc="the real parts of complex numbers; ct as a complex number", kind=Kind.MOVE,
       infer=_infer_part("real"), numpy=lambda x: x.real, vjp=lambda b, n, ct: (ct,), analytic=False,
       batch=batch.shifted,
       emit=Strided(lambda layout: layout_of_part(layout, 0)), samples=_SAMPLES,
       view=lambda apply, x, v: apply("complex_of", v, apply("imag", x))),
    Op(name="imag", doc="the imaginary parts of complex numbers; -i ct", kind=Kind.MOVE,
       infer=_infer_part("imag"), numpy=lambda x: x.imag, analytic=False,
       vjp=lambda b, n, ct: (b.complex_of(b.constant(np.zeros(ct.shape, ct.dtype)), b.neg(ct)),),
       batch=batch.shifted,
       emit=Strided(lambda layout: layout_of_part(layout, 1)), samples=_SAMPLES,
       view=lambda apply, x, v: apply("complex_of", apply("real", x), v)),
    Op(name="pairs", doc="both parts of complex numbers along one more axis, the last; the numbers of which ct has the "
       "parts, conjugate", kind=Kind.MOVE, infer=_infer_pairs, analytic=False,
       numpy=lambda x: np.stack([x.real, x.imag], -1), vjp=_vjp_pairs, batch=batch.shifted,
       emit=Strided(lambda layout: Layout(2 * layout.offset, (*layout.shape, 2),
                                          (*[2 * stride for stride in layout.strides], 1))), samples=_SAMPLES),
    Op(name="complex_of", doc="x + i y for real x and y; the real part of ct, and that of i ct", kind=Kind.MOVE,
       infer=_infer_complex, numpy=numpy_complex, promote=_promote_complex, analytic=False, batch=batch.aligned,
       vjp=lambda b, n, ct: (lambda: b.real(ct), lambda: b.neg(b.imag(ct))), emit=Pieces(_pieces_complex),
       samples=(Sample(((2, 3), (2, 3)), dtypes=_PARTS), Sample(((), ()), dtypes=_PARTS))),
)  # fmt: skip
