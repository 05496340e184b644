# SPDX-License-Identifier: BSD-3-Clause
"""Random weighted sums along two axes of images as graphs, with their adjoint."""

import random

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.ops.resampling import SumTables, tables, transposed


def sums_of(rnd: random.Random, extent: int) -> SumTables:
    """Return sums over neighbours that go along an axis, faster or more slowly than the places of the result."""
    places, taps = rnd.choice((1, 3, 16, 17, 40, 70)), rnd.choice((1, 2, 2, 4, 5))
    rng = np.random.default_rng(rnd.randint(0, 1 << 30))
    firsts = np.floor(np.linspace(-1.5, extent + 0.5, places)).astype(np.int64)
    return tables(
        firsts[:, None] + np.arange(taps), rng.integers(-3, 4, (places, taps)).astype(np.float64), extent
    )


def resampling_of(rnd: random.Random, dtype: str) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of random sums along two axes, and of their adjoint, with arrays of whole numbers."""
    channels = rnd.choice(((), (), (1,), (2,), (19,), (70,)))
    shape = (rnd.choice((0, 1, 2)), rnd.choice((1, 2, 5)), rnd.choice((1, 3, 16, 31, 33, 90)), *channels)
    rng = np.random.default_rng(rnd.randint(0, 1 << 30))
    forward, back = [], []
    for extent in shape[1:3]:
        sums = sums_of(rnd, extent)
        for found, given in ((forward, sums), (back, transposed(sums, extent))):
            found += [given.starts, np.ascontiguousarray(given.weights.T).astype(dtype)]
    given = [
        rng.integers(-9, 9, sizes).astype(dtype)
        for sizes in (shape, (shape[0], len(forward[0]), len(forward[2]), *channels))
    ]
    if rnd.random() < 0.3:  # beside what a place sums, too
        for array in given:
            array[rng.random(array.shape) < 0.05] = np.inf
    graph = Graph()
    b = Builder(graph)
    x, ct, *both = [b.input(Aval(array.shape, None, array.dtype)) for array in (*given, *forward, *back)]
    graph.outputs = [
        b.resample_planes(x, *both, axis=1),
        b.resample_planes(ct, *both[4:], *both[:4], axis=1),
    ]
    return graph, [*given, *forward, *back]
