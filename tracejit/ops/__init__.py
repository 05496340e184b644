# SPDX-License-Identifier: BSD-3-Clause
"""The ops of tracejit: one record each, a file per family, collected here by name."""

from tracejit.ops import elementwise, indexing, linear, movement, random, reduce
from tracejit.ops.op import Kind, Layout, Op, table

OPS: dict[str, Op] = table(elementwise.OPS, movement.OPS, indexing.OPS, reduce.OPS, linear.OPS, random.OPS)

__all__ = ["OPS", "Kind", "Layout", "Op"]
