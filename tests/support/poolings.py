# SPDX-License-Identifier: BSD-3-Clause
"""Random windows of max pooling as graphs: largest elements, their places, and the adjoint."""

import random

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.ops.pooling import pooled_extent, pooled_shape

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def pooling_of(rnd: random.Random, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of max pooling and its adjoint by random windows, and arrays for it, with some equal elements.

    Lines have fewer elements than a vector or some more; channels come first, or last.
    """
    axes = rnd.randint(1, 3)
    while True:
        size = [rnd.choice((1, 2, 3, 3, 5, 9)) for _ in range(axes)]
        stride = [rnd.choice((1, 2, 2, 3)) for _ in range(axes)]
        padding = [(rnd.randint(0, k - 1), rnd.randint(0, k - 1)) for k in size]
        extents = [rnd.randint(1, 5) for _ in range(axes - 1)] + [rnd.choice((1, 4, 7, 16, 19, 33, 70))]
        if all(map(lambda *window: pooled_extent(*window) > 0, extents, size, stride, padding)):
            break
    channels = rnd.choice(((), (), (1,), (2,), (19,), (64,), (70,)))
    params = {"axis": 1, "size": tuple(size), "stride": tuple(stride), "padding": tuple(padding)}
    aval = Aval((rnd.randint(1, 2), *extents, *channels), None, np.dtype(dtype))
    rng = np.random.default_rng(rnd.randint(0, 1 << 30))
    x = rng.integers(-9, 9, aval.shape).astype(dtype)
    if rnd.random() < 0.5:
        np.copyto(x, rng.choice(SPECIAL, aval.shape), where=rng.random(aval.shape) < rnd.choice((0.1, 0.7)))
    # Whole numbers, whose sums are the same in any order.
    ct = rng.integers(-9, 9, pooled_shape("pooling", aval, **params)).astype(dtype)
    graph = Graph()
    b = Builder(graph)
    given, cotangent = b.input(aval), b.input(Aval(ct.shape, None, aval.dtype))
    largest, place = b.maxpool(given, **params)
    graph.outputs = [largest, place, b.maxpool_adjoint(cotangent, place, shape=aval.shape, **params)]
    return graph, [x, ct]
