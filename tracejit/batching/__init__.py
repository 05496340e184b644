# SPDX-License-Identifier: BSD-3-Clause
"""Batches of a graph: nodes that were recorded for one observation, appended for many at once.

In: a builder, nodes, and values that have an axis of observations in front. Out: the results with that axis.
May import: ir.py and below. The rules are in the records of ops (ops/batch.py).
"""

from tracejit.batching.batch import MOST_REPEATED, batch

__all__ = ["MOST_REPEATED", "batch"]
