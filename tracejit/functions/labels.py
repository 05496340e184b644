# SPDX-License-Identifier: BSD-3-Clause
"""Labels and data of arrays: dims, finddim, stripdims, extractdata, isdlarray."""

from typing import Any

import numpy as np

from tracejit.array import apply, dlarray
from tracejit.aval import LABELS, NUMPY_NUMBERS, axes_in, check_format, describe_shape
from tracejit.errors import ArgumentError, DimsError
from tracejit.record import recorder, views
from tracejit.util.text import brief


def isdlarray(x: object) -> bool:
    """Return whether `x` is a dlarray.

    Args:
        x: any object.

    Examples:
        >>> import tracejit as tj
        >>> tj.isdlarray(tj.dlarray([1.0])), tj.isdlarray(1.0)
        (True, False)
    """
    return isinstance(x, dlarray)


def dims(x: Any) -> str:
    """Return the labels of `x`, one for each axis in the order of the axes; "" if it is unformatted.

    Args:
        x: dlarray.

    Raises:
        ArgumentError: if `x` is no dlarray.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.dims(tj.dlarray(np.zeros((3, 4)), "TS"))
        'TS'
    """
    return _checked("dims", x)._format or ""


def finddim(x: Any, label: str) -> tuple[int, ...]:
    """Return the numbers of the axes of `x` that have `label`; () if there is none.

    Args:
        x: dlarray.
        label: one of S, C, B, T, U.

    Raises:
        ArgumentError: if `x` is no dlarray.
        DimsError: if `label` is no label.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.finddim(tj.dlarray(np.zeros((2, 3, 4)), "SCS"), "S")
        (0, 2)
    """
    format = _checked("finddim", x)._format or ""
    if not isinstance(label, str) or len(label) != 1 or label.upper() not in LABELS:
        raise DimsError(f"finddim: label must be one of {', '.join(LABELS)}, not {brief(label)}.")
    return tuple(axis for axis, have in enumerate(format) if have == label.upper())


def stripdims(x: Any, format: str | None = None) -> dlarray:
    """Return `x` without labels; it stays on the trace, and is still the same variable for dlgradient.

    Args:
        x: dlarray.
        format: the order in which the axes of a formatted `x` are wanted; labels that `x` lacks become
            axes of size 1. Without it, or where `x` is unformatted, the axes stay as they are.

    Returns:
        Unformatted dlarray.

    Raises:
        ArgumentError: if `x` is no dlarray.
        DimsError: if `format` is no format, or lacks a label of `x`.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.stripdims(tj.dlarray(np.zeros((5, 2)), "BC"), "CB").shape
        (2, 5)
    """
    array = _checked("stripdims", x)
    have = array._format
    if not isinstance(format, (str, type(None))):
        check_format("stripdims", format, 0)  # raises the error
    if format and have is not None:
        wanted = check_format("stripdims", format, len(format)) or ""
        axes = axes_in(have, wanted)
        order = tuple(axis for axis in axes if axis is not None)
        if len(order) != len(have):
            raise DimsError(
                f"stripdims: format {wanted!r} has no place for every axis of "
                f"{describe_shape(array.shape, have)}; name each of its labels."
            )
        shape = tuple(1 if axis is None else array.shape[axis] for axis in axes)
        if order != tuple(range(len(order))):
            array = apply("transpose", array, axes=order)
        if shape != array.shape:
            array = apply("reshape", array, shape=shape)
    result: dlarray = array if views.is_scalar(array) else views.alias(array, None)
    return result


def extractdata(x: Any) -> np.ndarray:
    """Return the values of `x` as an ndarray of its own, which cuts the trace: a constant for dlgradient.

    Args:
        x: dlarray, or a number of NumPy's.

    Returns:
        A copy, so that writing to it changes no dlarray. A function that is recorded for acceleration is recorded
        anew for other values; stop_gradient cuts the derivative and is replayed for all of them.

    Raises:
        ArgumentError: if `x` is neither.
        TraceError: if `x` is used after its trace closed.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.dlfeval(lambda x: tj.dlgradient(x + np.arctan(tj.extractdata(x)), x), tj.dlarray(2.5))
        scalar dlarray float64
        1.0
    """
    return recorder.need_value(_checked("extractdata", x), "extractdata").copy()


def _checked(where: str, x: Any) -> dlarray:
    if isinstance(x, tuple(NUMPY_NUMBERS)):  # NumPy's numbers are arrays without axes
        return dlarray(x)
    if not isinstance(x, dlarray):
        raise ArgumentError(
            f"{where}: x must be a dlarray, not {x.__class__.__name__}; make one with dlarray(x)."
        )
    return x
