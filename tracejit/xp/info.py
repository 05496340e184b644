# SPDX-License-Identifier: BSD-3-Clause
"""The description that a library gives of itself: devices, dtypes, capabilities."""

from typing import Any

import numpy as np

from tracejit.aval import SUPPORTED_DTYPES
from tracejit.errors import ArgumentError

_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def named_dtypes() -> dict[str, np.dtype]:
    """Return the dtypes of arrays by name."""
    return {str(dtype): dtype for dtype in SUPPORTED_DTYPES if str(dtype) != "float16"}


class NamespaceInfo:
    """The result of ``__array_namespace_info__()``.

    Examples:
        >>> import tracejit as tj
        >>> tj.xp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float64')
    """

    def capabilities(self) -> dict[str, Any]:
        """Return what is supported besides functions: masks as indices, sizes that depend on values, any rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new arrays."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """Return all devices."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of Python's numbers."""
        return {
            "real floating": np.dtype("float64"),
            "complex floating": np.dtype("complex128"),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of a kind, or of a tuple of kinds, by name.

        Raises:
            ArgumentError: for a kind that the standard does not have.
        """
        if kind is None:
            return named_dtypes()
        kinds = kind if isinstance(kind, tuple) else (kind,)
        unknown = [one for one in kinds if one not in _KINDS]
        if unknown:
            raise ArgumentError(f"xp.dtypes: kind is {unknown[0]!r}, expected one of {', '.join(_KINDS)}.")
        letters = "".join(_KINDS[one] for one in kinds)
        return {name: dtype for name, dtype in named_dtypes().items() if dtype.kind in letters}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """Return what the library says about itself."""
    return NamespaceInfo()
