# SPDX-License-Identifier: BSD-3-Clause
"""Whether the constants of a trace can have been made of an array that is large enough to tell by."""

from collections.abc import Sequence

import numpy as np

_FEW = 4  # values of a mask, or of an array that was filled
_SHORT = 8  # elements of an array that are taken one by one
_NEAR = 1e-5  # relative; of float32


def can_be(array: np.ndarray, constants: Sequence[np.ndarray]) -> bool:
    """Return whether any constant can have been made of an array: copied, joined, selected or computed.

    An array can, unless it is plain (filled, a mask, a range) and has another size; a number, where it is an element,
    or something that is often taken of weights: a sum, a mean, a norm, an extreme.

    Args:
        array: of some hundred elements or more.
        constants: arrays of any size.

    Examples:
        >>> import numpy as np
        >>> w = np.random.default_rng(0).normal(size=(30, 30))
        >>> can_be(w, [np.zeros(30), np.arange(30.0), np.array(2.0), np.tri(40)])
        False
        >>> [can_be(w, [made]) for made in (w * 2, w[0], np.linalg.norm(w), w[0, 0])]
        [True, True, True, True]
    """
    if array.dtype.kind not in "fiub":
        return True
    few = _few(array)
    numbers = []
    with np.errstate(all="ignore"):
        for made in constants:
            if made.dtype.kind not in "fiubc":  # text
                continue
            if made.dtype.kind == "c" or (made.size > _SHORT and not _is_plain(made)):
                return True
            if made.size <= _SHORT:
                numbers += [float(number) for number in made.reshape(-1)]
            elif made.shape == array.shape or not (few or set()).isdisjoint(_few(made) or ()):
                return True
        return bool(numbers) and _gives_any(array, np.abs(np.array(numbers)))


def _is_plain(made: np.ndarray) -> bool:
    """Return whether an array has few values, or its elements grow evenly."""
    if _few(made) is not None:
        return True
    if made.dtype.kind not in "fiu":
        return False
    steps = np.diff(made.reshape(-1).astype(float))
    return bool(np.allclose(steps, steps[0], rtol=1e-4, atol=0))


def _few(array: np.ndarray) -> set[float] | None:
    """Return the values of an array that has few of them, or None."""
    flat = array.reshape(-1)
    for part in (flat[:1000], flat):
        values = np.unique(part)
        if values.size > _FEW:
            return None
    return {float(value) for value in values}


def _gives_any(array: np.ndarray, numbers: np.ndarray) -> bool:
    """Return whether any of some numbers is, but for its sign, an element of an array or often taken of it."""
    signed = array.reshape(-1).astype(float)
    values = np.sort(np.abs(signed))
    taken = np.array([
        signed.sum(), values.sum(), signed.mean(), values.mean(), signed.std(), signed.var(), signed.max(),
        signed.min(), (values**2).sum(), np.sqrt((values**2).sum()),
    ])  # fmt: skip
    taken = np.sort(np.abs([*taken, *(1 / taken)]))
    for known in (values, taken):
        at = np.searchsorted(known, numbers * (1 - _NEAR))
        if ((at < known.size) & (known[np.minimum(at, known.size - 1)] <= numbers * (1 + _NEAR))).any():
            return True
    return False
