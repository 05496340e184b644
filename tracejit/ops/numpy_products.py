# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products by NumPy's loop; passes/graph/numpy_products.py puts them in the place of `matmul`."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import Aval, part_dtype
from tracejit.ops import batch
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_NS = 0.16  # of a multiplication
_ONE_THREAD = 1 << 15  # multiplications of one product; OpenBLAS has threads of its own for more
_NOT_TURNED = {"turned_x": False, "turned_y": False}


def _matrix(x: Aval, turned: bool) -> tuple[int, int]:
    """Return the rows and columns of a factor."""
    rows, columns = x.shape[-2:]
    return (columns, rows) if turned else (rows, columns)


def _infer(x: Aval, y: Aval, *, turned_x: bool, turned_y: bool) -> Aval:
    (n, k), (k_too, m) = _matrix(x, turned_x), _matrix(y, turned_y)
    assert x.shape[:-2] == y.shape[:-2] and k == k_too  # a pass has broadcast them
    return Aval((*x.shape[:-2], n, m), None, x.dtype)


def _infer_gram(x: Aval, *, turned: bool) -> Aval:
    n, _ = _matrix(x, turned)
    return Aval((*x.shape[:-2], n, n), None, x.dtype)


def _turned(x: np.ndarray, turned: bool) -> np.ndarray:
    return x.swapaxes(-1, -2) if turned else x


def _product(x: np.ndarray, y: np.ndarray, *, turned_x: bool, turned_y: bool) -> np.ndarray:
    found: np.ndarray = np.matmul(_turned(x, turned_x), _turned(y, turned_y))
    return found


def _gram(x: np.ndarray, *, turned: bool) -> np.ndarray:
    found: np.ndarray = np.matmul(_turned(x, turned), _turned(x, not turned))
    return found


def _steps(x: Aval, turned: bool) -> tuple[int, int]:
    """Return how far apart rows and columns of a factor are, in elements."""
    columns = x.shape[-1]
    return (1, columns) if turned else (columns, 1)


def _numbers(out: Aval, x: Aval, y: Aval, *, turned_x: bool, turned_y: bool) -> tuple[int, ...]:
    """Return the first matrix of a batch and the one after the last; rows, inner size, columns; steps of factors."""
    n, k = _matrix(x, turned_x)
    return (0, prod(out.shape[:-2]), n, k, out.shape[-1], *_steps(x, turned_x), *_steps(y, turned_y))


def _numbers_gram(out: Aval, x: Aval, *, turned: bool) -> tuple[int, ...]:
    n, k = _matrix(x, turned)
    return (0, prod(out.shape[:-2]), n, k, n, *_steps(x, turned))


def _ns(numbers: Sequence[int]) -> float:
    """Return about how long a batch takes, 0 if its products have threads of their own."""
    work = prod(numbers[2:5])
    return 0.0 if work > _ONE_THREAD else numbers[1] * (500 + _NS * work)


def _call(name: str, numbers: Any) -> KernelCall:
    def own(x: Aval) -> str:
        return f"{'complex' if x.dtype.kind == 'c' else 'real'}_{name}"

    def routine(*operands: Aval, **params: Any) -> str:
        char = part_dtype(operands[0].dtype).char
        return f"numpy.linalg.{own(operands[0])}/{char * len(operands)}->{char}"

    return KernelCall(
        f"matrix_loop_complex_{name}",
        numbers,
        cut=RangeCut(_ns, lambda numbers: numbers[1]),
        variant=lambda out, x, *other, **params: f"matrix_loop_{own(x)}",
        routine=routine,
    )


_C16, _C8, _F8, _F4 = "complex128", "complex64", "float64", "float32"

OPS = (
    Op(name="complex_product", doc="x y over the last two axes, each factor transposed if `turned`; recordings have "
       "`matmul`, and no derivative of this",
       kind=Kind.KERNEL, takes_complex=True, infer=_infer, numpy=_product, vjp=None, analytic=False, batch=batch.rows,
       emit=_call("product", _numbers),
       samples=(Sample(((2, 3), (3, 4)), _NOT_TURNED, dtypes=(_C16, _C16)),
                Sample(((2, 0), (0, 3)), _NOT_TURNED, dtypes=(_C16, _C16)),
                Sample(((2, 3, 1), (2, 2, 3)), {"turned_x": True, "turned_y": True}, dtypes=(_C8, _C8)))),
    Op(name="gram", doc="x times x transposed over the last two axes, or x transposed times x if `turned`; recordings "
       "have `matmul`, and no derivative of this",
       kind=Kind.KERNEL, takes_complex=True, infer=_infer_gram, numpy=_gram, vjp=None, analytic=False, batch=batch.rows,
       emit=_call("gram", _numbers_gram),
       samples=(Sample(((3, 4),), {"turned": False}, dtypes=(_C16,)),
                Sample(((2, 3, 1),), {"turned": True}, dtypes=(_C8,)),
                Sample(((3, 4),), {"turned": True}, dtypes=(_F8,)),
                Sample(((2, 3, 1),), {"turned": False}, dtypes=(_F4,)))),
)  # fmt: skip
