# SPDX-License-Identifier: BSD-3-Clause
"""Abstract values: the shape, format and dtype of an array, and the rules that combine them.

A format has one label for each axis: S (spatial), C (channel), B (batch), T (time), U (unspecified).
C, B and T occur at most once. The order is the user's; nothing is permuted into a standard order.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

LABELS = "SCBTU"
UNIQUE_LABELS = "CBT"

BOOL, INT32, INT64, UINT64 = map(np.dtype, ("bool", "int32", "int64", "uint64"))
FLOAT32, FLOAT64 = map(np.dtype, ("float32", "float64"))
COMPLEX64, COMPLEX128 = map(np.dtype, ("complex64", "complex128"))

# Each maps to itself: NumPy may hold several equal dtype objects, and the one made by name compares fastest.
SUPPORTED_DTYPES = {
    dtype: dtype
    for dtype in map(np.dtype, (
        "float64", "float32", "complex128", "complex64", "bool",
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    ))
}  # fmt: skip


FLOAT16 = np.dtype("float16")
HALF_DTYPES = {FLOAT16: FLOAT16}
"""The floating-point dtypes of 16 bits, which are formats of memory (Note [numbers of 16 bits] in ops/halves.py)."""


class Halves:
    """The memory of whether an array of 16-bit numbers was met in this process: until then no op looks for any."""

    met = False


NUMPY_NUMBERS = frozenset(dtype.type for dtype in SUPPORTED_DTYPES if dtype.kind not in "bc")
"""The types of NumPy's real numbers that arrays are made of."""
NUMBERS = NUMPY_NUMBERS | {int, float}
"""The types of numbers that can vary from call to call."""
NUMPY_SCALARS = frozenset(dtype.type for dtype in SUPPORTED_DTYPES if dtype.kind != "b")
"""The types of NumPy's numbers, with the complex ones."""


class Aval(NamedTuple):
    """Shape, format (None: unformatted) and dtype of an array."""

    shape: tuple[int, ...]
    format: str | None
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{describe_shape(self.shape, self.format)} {dtype_name(self.dtype)}"


@cache
def dtype_name(dtype: np.dtype) -> str:
    """Return the name of a dtype; NumPy builds the string at each call."""
    return str(dtype)


def describe_shape(shape: Sequence[int], format: str | None) -> str:
    """Return sizes with labels: ``2(B) x 3(C)`` when formatted, ``2x3`` when not, ``scalar`` for ()."""
    if not shape:
        return "scalar"
    if format is None:
        return "x".join(map(str, shape))
    return " x ".join(f"{extent}({label})" for extent, label in zip(shape, format, strict=True))


GIVE_DTYPE = "; give the dtype to the data, np.asarray(data, np.float32)"
"""The remedy for a dtype as an argument of dlarray."""


def check_format(where: str, format: object, ndim: int, argument: str = "format") -> str | None:
    """Return `format` as a string of upper-case labels, or raise a DimsError in the name of `where` and `argument`."""
    if format is None:
        return None
    if not isinstance(format, str):
        is_dtype = isinstance(format, np.dtype) or (
            isinstance(format, type) and issubclass(format, np.generic)
        )
        raise DimsError(
            f"{where}: {argument} must be a string of the labels {', '.join(LABELS)} or None, "
            f"not {type(format).__name__}{GIVE_DTYPE if is_dtype else ''}."
        )
    labels = format.upper()
    if not labels and ndim == 0:
        return None
    for label in labels:
        if label not in LABELS:
            raise DimsError(
                f"{where}: {argument} {format!r} has the label {label!r}; labels are "
                "S (spatial), C (channel), B (batch), T (time) and U (unspecified)."
            )
    for label in UNIQUE_LABELS:
        if labels.count(label) > 1:
            raise DimsError(
                f"{where}: {argument} {format!r} has the label {label!r} {labels.count(label)} times; C, B "
                "and T may occur once. Use S for further spatial axes or U for axes without a meaning."
            )
    if len(labels) != ndim:
        raise DimsError(
            f"{where}: {argument} {format!r} labels {len(labels)} axes, but the data has {ndim}; "
            "give one label for each axis (U where an axis has no meaning)."
        )
    return labels


def check_dtype(where: str, dtype: np.dtype, argument: str = "data") -> np.dtype:
    """Return `dtype` in native byte order, or raise a DTypeError in the name of `where` about an argument."""
    native = SUPPORTED_DTYPES.get(dtype)
    if native is None and dtype.kind in "biufc":
        native = SUPPORTED_DTYPES.get(dtype.newbyteorder("="))
    if native is None:
        native = _half_dtype(dtype)
    if native is None:
        role = "" if argument == "data" else f" as {argument}"
        raise DTypeError(
            f"{where}: data of type {dtype} is not supported{role}; use float64, float32, float16, bfloat16 (of "
            "ml_dtypes), complex128, complex64, bool or an integer type (for example data.astype(np.float32))."
        )
    return native


def _half_dtype(dtype: np.dtype) -> np.dtype | None:
    """Return a floating-point dtype of 16 bits in native byte order, or None for any other dtype."""
    if dtype.itemsize != 2:
        return None
    if dtype.name == "bfloat16" and dtype not in HALF_DTYPES:
        HALF_DTYPES[dtype] = dtype  # of the package ml_dtypes, which is imported where there is one
    native = HALF_DTYPES.get(dtype) or HALF_DTYPES.get(dtype.newbyteorder("="))
    Halves.met = Halves.met or native is not None
    return native


def native_dtype(dtype: np.dtype) -> np.dtype:
    """Return the object that stands for a dtype that arrays have: NumPy may hold several equal ones."""
    return SUPPORTED_DTYPES.get(dtype) or HALF_DTYPES[dtype]


def is_half(dtype: np.dtype) -> bool:
    """Return whether numbers are of floating point and have 16 bits."""
    return dtype.itemsize == 2 and dtype in HALF_DTYPES


def bits_dtype(dtype: np.dtype) -> np.dtype:
    """Return the integers that stand for numbers of 16 bits, and for moved complex64; any other dtype itself."""
    if dtype == COMPLEX64:
        return np.dtype(np.int64)
    return np.dtype(np.uint16) if is_half(dtype) else dtype


def wanted_dtype(where: str, dtype: object) -> np.dtype:
    """Return the dtype that an argument `dtype`, in any spelling that NumPy takes, asks for.

    Raises:
        ArgumentError: if NumPy knows no such dtype.
        DTypeError: if arrays cannot have it.
    """
    try:
        if hasattr(type(dtype), "__dlpack__"):
            raise TypeError("an array is no dtype")
        wanted: np.dtype = np.dtype(dtype)  # type: ignore[call-overload]
    except Exception:
        raise ArgumentError(
            f"{where}: dtype must be a NumPy dtype such as np.float32, not {brief(dtype)}."
        ) from None
    return check_dtype(where, wanted, "dtype")


def is_inexact(dtype: np.dtype) -> bool:
    """Return whether a dtype is of floating point, real or complex, so that there are derivatives."""
    return dtype.kind in "fc" or is_half(dtype)


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which NumPy sums and multiplies: 64 bits for integers and bools."""
    if dtype.kind in "fc":
        return dtype
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def part_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real and the imaginary part of complex numbers; a real dtype itself."""
    if dtype.kind != "c":
        return dtype
    return FLOAT32 if dtype == COMPLEX64 else FLOAT64


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype whose parts hold numbers of `dtype`."""
    return COMPLEX64 if dtype in (FLOAT32, COMPLEX64) else COMPLEX128


def merge_formats(first: str, second: str) -> str:
    """Return the labels of the combination of two formatted operands.

    The operand with more labels gives the order (the first on a tie). Labels that it lacks are added:
    further axes of a repeated label at the end of that label's block, new labels at the end.
    """
    lead, other = (first, second) if len(first) >= len(second) else (second, first)
    merged = lead
    for label in dict.fromkeys(other):
        missing = other.count(label) - merged.count(label)
        if missing > 0:
            last = merged.rfind(label)
            at = len(merged) if last < 0 else last + 1
            merged = merged[:at] + label * missing + merged[at:]
    return merged


def axes_in(format: str, merged: str) -> tuple[int | None, ...]:
    """Return, for each axis of `merged`, the axis of `format` that belongs there (None: size 1).

    >>> axes_in("CB", "BCT")
    (1, 0, None)
    """
    positions = {label: iter([i for i, have in enumerate(format) if have == label]) for label in format}
    return tuple(next(positions[label], None) if label in positions else None for label in merged)


def broadcast_shapes(op: str, avals: Sequence[Aval]) -> tuple[int, ...]:
    """Return the NumPy broadcast of the operands' shapes, or raise a DimsError in the name of `op`."""
    shape = avals[0].shape
    for aval in avals:
        if aval.shape != shape:
            break
    else:
        return shape
    ndim = max(len(aval.shape) for aval in avals)
    result = [1] * ndim
    for aval in avals:
        offset = ndim - len(aval.shape)
        for i, extent in enumerate(aval.shape):
            have = result[offset + i]
            if have == 1:
                result[offset + i] = extent
            elif extent not in (1, have):
                raise DimsError(
                    f"{op}: operands of sizes {' and '.join(describe_shape(a.shape, a.format) for a in avals)} "
                    f"do not align: {have} against {extent} on axis {offset + i}. Sizes must be equal or 1; "
                    "formatted arrays align by label, others from the last axis."
                )
    return tuple(result)


def supported(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a NumPy result of `dtype` is held: float16 is widened to float32."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def is_int64(number: int) -> bool:
    """Return whether an integer can be an input of a trace."""
    return -(1 << 63) <= number < 1 << 63
