# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products of generated sizes, orders of axes and batches, for a device or a stand-in."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np


def drawn(seed: int) -> tuple[Callable[..., tuple[Any, ...]], list[np.ndarray]]:
    """Return a product of generated sizes, orders of axes, parts and batches, and its factors."""
    rnd = random.Random(seed)
    rng = np.random.default_rng(seed)
    m, n, k = (rnd.choice([1, 2, 3, 5, 8, 17]) for _ in range(3))
    batch = rnd.choice([(), (), (3,), (2, 2)])
    turned = [rnd.random() < 0.5 for _ in range(2)]
    parts = [rnd.choice([0, 0, 1, 4]) for _ in range(2)]
    shared = [bool(batch) and rnd.random() < 0.3 for _ in range(2)]

    def factor(x: Any, number: int) -> Any:
        x = x[..., parts[number] :, parts[number] :]
        return x.swapaxes(-1, -2) if turned[number] else x

    def shape(number: int, rows: int, columns: int) -> tuple[int, ...]:
        sides = (columns, rows) if turned[number] else (rows, columns)
        own = () if shared[number] else batch
        return (*own, *[side + parts[number] for side in sides])

    adds = not batch and rnd.random() < 0.3

    def function(x: Any, y: Any) -> tuple[Any, ...]:
        out = factor(x, 0) @ factor(y, 1)
        return ((out + factor(x, 0) @ (factor(y, 1) * 2)) if adds else out,)

    dtype = rnd.choice(["float32", "float64"])
    arrays = [
        rng.standard_normal(shape(number, *sides)).astype(dtype)
        for number, sides in enumerate(((m, k), (k, n)))
    ]
    return function, arrays
