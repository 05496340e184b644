# SPDX-License-Identifier: BSD-3-Clause
"""The ops: one record each, a file per family, collected here by name.

In: sizes, formats and dtypes of operands. Out: those of results; a reference in NumPy, an adjoint, and what to emit.
May import: aval.py and below. Records neither build graphs nor emit source themselves: they are handed a builder.
"""

from tracejit.ops import (
    attention,
    bits,
    convolution,
    ctc,
    elementwise,
    embedding,
    indexing,
    linear,
    movement,
    order,
    pooling,
    random,
    recurrent,
    reduce,
)
from tracejit.ops.op import Kind, Layout, Op, table

OPS: dict[str, Op] = table(
    elementwise.OPS, movement.OPS, indexing.OPS, reduce.OPS, linear.OPS, random.OPS, attention.OPS, recurrent.OPS,
    convolution.OPS, pooling.OPS, embedding.OPS, bits.OPS, order.OPS, ctc.OPS,
)  # fmt: skip

__all__ = ["OPS", "Kind", "Layout", "Op"]
