# SPDX-License-Identifier: BSD-3-Clause
"""Launches that the builder leaves out."""

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.pipeline import build


def test_a_loop_over_nothing_is_not_launched() -> None:
    # Its elements all have one number in common, which would be read although there is none.
    b = Builder(Graph())
    x = b.input(Aval((0, 3), None, np.dtype(np.int64)))
    b.graph.outputs = [b.cast(x, dtype=np.dtype(np.float64)), b.sum(x, axes=(0,), keepdims=False)]
    assert [row.note for row in build(b.graph).rows] == ["sum"]
