# SPDX-License-Identifier: BSD-3-Clause
"""The op of convolutions of vectors: sums of products with all places of another vector."""

from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ops.op import KernelCall, Kind, Op, RangeCut, Sample

_NS = 0.1  # about how long a product takes


def _common(x: np.dtype, w: np.dtype) -> tuple[np.dtype, np.dtype]:
    """Return the dtypes of the operands of a kernel: the common one, in which truth values are counted."""
    common = np.result_type(x, w)
    return (np.dtype(np.int64) if common.kind == "b" else common,) * 2


def _numpy(x: np.ndarray, w: np.ndarray, *, before: int, behind: int) -> np.ndarray:
    dtype = _common(x.dtype, w.dtype)[0]
    full = np.convolve(x.astype(dtype), w[::-1].astype(dtype))
    return np.asarray(full[w.size - 1 - before : x.size + behind])


def _infer(x: Aval, w: Aval, *, before: int, behind: int) -> Aval:
    return Aval((x.shape[0] + before + behind - w.shape[0] + 1,), None, _common(x.dtype, w.dtype)[0])


def _numbers(out: Aval, x: Aval, w: Aval, *, before: int, behind: int) -> tuple[int, ...]:
    return (0, out.shape[0], w.shape[0], x.shape[0], before)


def _vjp(b: Any, node: Any, ct: Any) -> Any:
    (x, w), params = node.inputs, node.params
    m = w.shape[0]

    def by_vector() -> Any:
        turned = b.slice(w, starts=(m - 1,), stops=(-1,), steps=(-1,))
        return b.sliding_sums(ct, turned, **{side: m - 1 - width for side, width in params.items()})

    return (by_vector, lambda: b.sliding_sums(x, ct, **params))


OPS = (
    Op(name="sliding_sums", doc="sums of the products of the vector w with all places of the vector x, which stands "
       "between `before` and `behind` zeros; the same of ct and the turned w, and of x and ct", kind=Kind.KERNEL,
       domain=(0.5, 2.0),
       infer=_infer, numpy=_numpy, promote=_common, vjp=_vjp,
       emit=KernelCall("sliding_sums", _numbers,
                       cut=RangeCut(lambda numbers: numbers[1] * numbers[2] * _NS, lambda numbers: numbers[1])),
       samples=(Sample(((5,), (2,)), {"before": 0, "behind": 0}), Sample(((40,), (20,)), {"before": 19, "behind": 7}),
                Sample(((24,), (11,)), {"before": 0, "behind": 0}), Sample(((3,), (3,)), {"before": 1, "behind": 0}))),
)  # fmt: skip
