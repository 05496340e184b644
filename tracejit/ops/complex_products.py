# SPDX-License-Identifier: BSD-3-Clause
"""Products of complex matrices as programs have them: arrays of pairs, which NumPy's loop multiplies.

A pair is the real and the imaginary part of a number side by side, along the last axis. The ops of a recording are in
linear.py; passes/graph/complex_products.py puts these in their place.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from tracejit.aval import Aval, complex_dtype, describe_shape
from tracejit.errors import DimsError
from tracejit.ops import batch
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_NS = 0.16  # of a multiplication of complex128
_ONE_THREAD = 1 << 15  # multiplications of one product; OpenBLAS has threads of its own for more


def _complex(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(complex_dtype(x.dtype))[..., 0]


def _pairs(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x)[..., None].view(x.real.dtype)


def _infer(x: Aval, y: Aval) -> Aval:
    (*lead, n, k, _), (*other, k_too, m, _) = x.shape, y.shape
    if lead != other or k != k_too:
        raise DimsError(
            f"matmul: pairs of {describe_shape(x.shape, None)} and {describe_shape(y.shape, None)} are not those of "
            "matrices that can be multiplied; the axes in front, and columns and rows, must be equal."
        )
    return Aval((*lead, n, m, 2), None, x.dtype)


def _infer_gram(x: Aval) -> Aval:
    *lead, n, _, _ = x.shape
    return Aval((*lead, n, n, 2), None, x.dtype)


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _pairs(np.matmul(_complex(x), _complex(y)))


def _gram(x: np.ndarray) -> np.ndarray:
    matrix = _complex(x)
    return _pairs(np.matmul(matrix, matrix.swapaxes(-1, -2)))


def _numbers(out: Aval, x: Aval, *other: Aval) -> tuple[int, ...]:
    """Return the first and the last matrix of a batch, rows, inner size and columns."""
    return (0, prod(out.shape[:-3]), out.shape[-3], x.shape[-2], out.shape[-2])


def _ns(numbers: Sequence[int]) -> float:
    """Return about how long a batch takes, 0 if its products have threads of their own."""
    work = prod(numbers[2:])
    return 0.0 if work > _ONE_THREAD else numbers[1] * (500 + _NS * work)


def _call(name: str) -> KernelCall:
    def routine(*operands: Aval) -> str:
        char = operands[0].dtype.char
        return f"numpy.linalg.{name}/{char * len(operands)}->{char}"

    return KernelCall(
        f"matrix_loop_{name}", _numbers, cut=RangeCut(_ns, lambda numbers: numbers[1]), routine=routine
    )


_F8, _F4 = "float64", "float32"

OPS = (
    Op(name="matmul_of_pairs", doc="x y over the two axes before the last, of complex numbers whose parts are pairs "
       "along the last; recordings have none, and so no derivative",
       kind=Kind.KERNEL, infer=_infer, numpy=_matmul, vjp=None, analytic=False, batch=batch.rows,
       emit=_call("matmul_of_pairs"),
       samples=(Sample(((2, 3, 2), (3, 4, 2)), dtypes=(_F8, _F8)), Sample(((2, 0, 2), (0, 3, 2)), dtypes=(_F8, _F8)),
                Sample(((2, 1, 3, 2), (2, 3, 1, 2)), dtypes=(_F4, _F4)))),
    Op(name="gram_of_pairs", doc="x times x transposed over the two axes before the last, of complex numbers whose "
       "parts are pairs along the last; recordings have none, and so no derivative",
       kind=Kind.KERNEL, infer=_infer_gram, numpy=_gram, vjp=None, analytic=False, batch=batch.rows,
       emit=_call("gram_of_pairs"),
       samples=(Sample(((3, 4, 2),), dtypes=(_F8,)), Sample(((2, 3, 1, 2),), dtypes=(_F4,)))),
)  # fmt: skip
