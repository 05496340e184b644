# SPDX-License-Identifier: BSD-3-Clause
"""Initial values of learnable arrays."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.creation import ones, zeros
from tracejit.functions.random import rand, randn
from tracejit.util.text import brief

_DEVIATION = 0.01  # of "narrow-normal"


def _glorot(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    return (2 * rand(size, dtype=np.float32) - 1) * math.sqrt(6 / (inputs + outputs))


def _he(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    return randn(size, dtype=np.float32) * math.sqrt(2 / inputs)


def _orthogonal(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    rows, columns = size[0], math.prod(size[1:])
    drawn = randn((max(rows, columns), min(rows, columns)), dtype=np.float64)._data
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diagonal(r))  # uniform over all orthogonal matrices
    matrix = q if rows >= columns else q.T
    return dlarray(np.ascontiguousarray(matrix).reshape(size).astype(np.float32))


def _narrow_normal(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    return randn(size, dtype=np.float32) * _DEVIATION


def _zeros(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    return zeros(size, np.float32)


def _ones(size: tuple[int, ...], inputs: int, outputs: int) -> dlarray:
    return ones(size, np.float32)


INITIALIZERS: dict[str, Callable[[tuple[int, ...], int, int], dlarray]] = {
    "glorot": _glorot,
    "he": _he,
    "orthogonal": _orthogonal,
    "narrow-normal": _narrow_normal,
    "zeros": _zeros,
    "ones": _ones,
}


def check_initializer(layer: str, argument: str, value: Any, more: tuple[str, ...] = ()) -> Any:
    """Return an initialiser.

    Raises:
        ArgumentError: if it is neither a known name nor a function.
    """
    if callable(value) or (isinstance(value, str) and value in (*INITIALIZERS, *more)):
        return value
    raise ArgumentError(
        f"{layer}: {argument} must be one of {', '.join((*INITIALIZERS, *more))}, or a function of the size, not "
        f"{brief(value)}."
    )


def initial(
    argument: str, initializer: Any, size: tuple[int, ...], inputs: int = 1, outputs: int = 1
) -> dlarray:
    """Return the initial value of an array, in float32 if a name says how.

    Glorot: uniform within sqrt(6 / (inputs + outputs)). (X. Glorot and Y. Bengio, 2010.) He: normal of variance
    2 / inputs. (K. He et al., 2015.) Orthogonal: columns, or rows, of a random orthogonal matrix. (A. Saxe et
    al., 2014.)

    Args:
        argument: name of the array, for messages.
        initializer: name, or function of the size.
        size: of the array.
        inputs: elements that each output is a sum over.
        outputs: outputs that each input enters.

    Raises:
        DimsError: if a function returns an array of the wrong size.
    """
    if isinstance(initializer, str):
        return INITIALIZERS[initializer](size, max(inputs, 1), max(outputs, 1))
    array = as_array(initializer(size), argument, "value")
    if array._data.shape != size:
        raise DimsError(
            f"{argument}: the initialiser returned an array of the sizes {array._data.shape}, expected {size}."
        )
    return array


__all__ = ["check_initializer", "initial"]
