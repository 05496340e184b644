# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of graphs, appended to the same graphs: adjoints (reverse mode) and tangents (forward mode).

In: a builder of the graph, values to differentiate and to differentiate by. Out: more nodes of the same ops.
Derivatives along many directions, or of many cotangents, are batches of the nodes for one.
May import: batching and below.
"""

from tracejit.autodiff.forward import tangents
from tracejit.autodiff.reverse import gradient, rounded

__all__ = ["gradient", "rounded", "tangents"]  # many.py and laplacian.py are imported when they are used
