# SPDX-License-Identifier: BSD-3-Clause
"""Bits as numbers of 8 bits, and back: packbits, unpackbits.

Labels: results have none.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.functions import elementwise, movement, reductions
from tracejit.functions.refusals import refuse


def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> dlarray:
    """Return eight truth values each as one number of 8 bits."""
    given = as_array(a, "np.packbits")
    if given.dtype.kind not in "iub":
        refuse("np.packbits", f"a has dtype {given.dtype}, expected integers or bools; compare it (x != 0)")
    array = given != 0
    if axis is None:
        array, axis = movement.ravel(array), 0
    rows = movement.moveaxis(movement.relabel(array, None), axis, -1)
    missing = -rows.shape[-1] % 8
    rows = apply("pad", rows, widths=(*((0, 0),) * (rows.ndim - 1), (0, missing)), value=False)
    rows = movement.reshape(rows, (*rows.shape[:-1], rows.shape[-1] // 8, 8))
    weights = np.array([1 << i for i in range(8)][:: -1 if bitorder == "big" else 1])
    return movement.moveaxis(elementwise.cast(reductions.sum(rows * weights, -1), np.uint8), -1, axis)


def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> dlarray:
    """Return the bits of numbers of 8 bits as numbers 0 and 1."""
    array = as_array(a, "np.unpackbits")
    if array.dtype != np.uint8:
        refuse("np.unpackbits", f"a has dtype {array.dtype}, expected uint8")
    if axis is None:
        array, axis = movement.ravel(array), 0
    rows = movement.moveaxis(movement.relabel(array, None), axis, -1)
    shifts = np.arange(8, dtype=np.uint8)[:: -1 if bitorder == "big" else 1]
    bits = apply("right_shift", movement.expand_dims(rows, -1), shifts) & np.uint8(1)
    bits = movement.reshape(bits, (*rows.shape[:-1], rows.shape[-1] * 8))
    if count is not None:
        n = bits.shape[-1]
        if count > n:
            bits = apply("pad", bits, widths=(*((0, 0),) * (bits.ndim - 1), (0, count - n)), value=0)
        else:
            bits = movement.sliced(bits, {bits.ndim - 1: slice(None, count)})
    return movement.moveaxis(bits, -1, axis)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.packbits: packbits,
    np.unpackbits: unpackbits,
}
