# SPDX-License-Identifier: BSD-3-Clause
"""Arrays side by side, as np.stack(..., axis=-1) and complex numbers of two parts need them."""

from typing import Any


def interleaved_2(start: int, stop: int, x: Any, y: Any, out: Any) -> None:
    """Write to out the elements of x and y by turns, from number `start` to before `stop` of each."""
    for i in range(start, stop):
        out[2 * i] = x[i]
        out[2 * i + 1] = y[i]


def interleaved_3(start: int, stop: int, x: Any, y: Any, z: Any, out: Any) -> None:
    """Write to out the elements of x, y and z by turns, from number `start` to before `stop` of each."""
    for i in range(start, stop):
        out[3 * i] = x[i]
        out[3 * i + 1] = y[i]
        out[3 * i + 2] = z[i]
