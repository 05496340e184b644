# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers of distributions: quantiles of uniform numbers, so that they have derivatives by the parameters."""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import FLOAT32, FLOAT64
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions import elementwise, random
from tracejit.functions.rng import Generator
from tracejit.util.arguments import sizes
from tracejit.util.text import brief

_LEAST = {8: 2.0**-54, 4: 2.0**-25}  # in place of 0, whose quantile may be infinite; by the bytes of a number


def uniforms(title: str, parameters: list[Any], size: Any, random_state: Any) -> dlarray:
    """Return numbers between 0 and 1, both excluded, as many as `size` or the parameters ask for.

    Raises:
        DimsError: if parameters do not broadcast to `size`.
        ArgumentError: if `random_state` is no source of random numbers.
    """
    arrays = [x for x in parameters if isinstance(x, (dlarray, np.ndarray))]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    wanted = shape if size is None else sizes(title, "size", size)
    if not _fits(shape, wanted):
        raise DimsError(
            f"{title}: size is {wanted}, expected one that parameters of size {shape} broadcast to."
        )
    is_single = bool(arrays) and all(x.dtype == np.float32 for x in arrays)
    dtype = FLOAT32 if is_single else FLOAT64
    u = random.rand(wanted, dtype=dtype, generator=source(title, random_state))
    return elementwise.maximum(u, dtype.type(_LEAST[dtype.itemsize]))


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def source(title: str, random_state: Any) -> Generator | None:
    """Return where to draw from: None for what tj.rng() seeds.

    Raises:
        ArgumentError: for any other object.
    """
    if random_state is None or isinstance(random_state, Generator):
        return random_state
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return Generator(int(random_state))
    raise ArgumentError(
        f"{title}: random_state must be None, a seed or a tj.Generator, not {brief(random_state)}."
    )
