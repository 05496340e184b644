# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and labels of the data that a layer takes or gives; a size may be unknown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import FLOAT32, Aval, check_format, wanted_dtype
from tracejit.errors import DimsError
from tracejit.record.sizes_only import zeros_of
from tracejit.util.arguments import as_index, listed
from tracejit.util.text import brief


class DataLayout:
    """The sizes and labels of an array that a network takes, without its elements.

    Args:
        size: one size for each axis, None where it is unknown, as the number of observations mostly is.
        format: labels of the axes, such as "BCSS"; None for an array without labels.
        dtype: of the elements.

    Raises:
        DimsError: if a size is negative, sizes and labels differ in number, or a label is unknown or occurs twice.

    Examples:
        >>> from tracejit import nn
        >>> layout = nn.DataLayout((None, 1, 28, 28), "BCSS")
        >>> layout, layout.size_of("C")
        (?(B) x 1(C) x 28(S) x 28(S), 1)
    """

    __slots__ = ("dtype", "format", "size")

    def __init__(
        self, size: Sequence[int | None], format: str | None = None, dtype: Any = np.float32
    ) -> None:
        given = listed("DataLayout", "size", (size,) if as_index(size) is not None else size)
        sizes = tuple([None if part is None else as_index(part) for part in given])
        for part, number in zip(given, sizes, strict=True):
            if part is not None and (number is None or number < 0):
                raise DimsError(
                    f"DataLayout: a size is an integer of at least 0, or None if it is unknown, not {brief(part)}."
                )
        self.size: tuple[int | None, ...] = sizes
        self.format = check_format("DataLayout", format, len(sizes))
        self.dtype = wanted_dtype("DataLayout", dtype)

    def axes_of(self, labels: str) -> tuple[int, ...]:
        """Return the axes that have one of some labels."""
        return tuple([axis for axis, label in enumerate(self.format or "") if label in labels])

    def size_of(self, label: str) -> int | None:
        """Return the size along the only axis of a label; None if there is no such axis, or its size is unknown."""
        axes = self.axes_of(label)
        return self.size[axes[0]] if len(axes) == 1 else None

    def sizes_of(self, label: str) -> tuple[int | None, ...]:
        """Return the sizes along all axes of a label."""
        return tuple([self.size[axis] for axis in self.axes_of(label)])

    def zeros(self, least: int = 1) -> dlarray:
        """Return zeros of this layout, which take no memory; an unknown size is 1, or `least` along T and S."""
        sizes = [
            (least if label in "TS" else 1) if size is None else size
            for size, label in zip(self.size, self.format or "U" * len(self.size), strict=True)
        ]
        return dlarray._wrap(zeros_of(Aval(tuple(sizes), None, self.dtype)), self.format, None)

    def _parts(self) -> tuple[Any, ...]:
        return self.size, self.format, self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataLayout) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        if self.format is None:
            return "x".join("?" if size is None else str(size) for size in self.size) or "scalar"
        return " x ".join(
            f"{'?' if size is None else size}({label})"
            for size, label in zip(self.size, self.format, strict=True)
        )


def layout_of(array: Any, unknown: str = "") -> DataLayout:
    """Return the layout of an array, in which the sizes along some labels count as unknown."""
    sizes = [
        None if label in unknown else size
        for size, label in zip(array._data.shape, array._format or "?" * array._data.ndim, strict=True)
    ]
    return DataLayout(sizes, array._format, array._data.dtype)


__all__ = ["FLOAT32", "DataLayout", "layout_of"]
