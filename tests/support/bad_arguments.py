# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of arguments that hardly any function takes, each made anew where it is used."""

import array
import datetime
import decimal
import fractions
import functools
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import dlarray, dlfeval


class Raises:
    """An object of which every question raises an error of its own."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __iter__(self) -> Any:
        raise RuntimeError("no elements")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class RaisesText:
    """An object whose text cannot be had."""

    def __repr__(self) -> str:
        raise ValueError("no text")


class RaisesArray:
    """An object that says it is an array, and is none."""

    shape, ndim, dtype = (2,), 1, np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise KeyError("no array")


class RaisesEqual:
    """An object that cannot be compared."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise AttributeError("no equality")


class Endless:
    """A sequence that says it is long, and has nothing."""

    def __len__(self) -> int:
        return 1 << 60

    def __getitem__(self, index: Any) -> Any:
        raise KeyError(index)


class Sparse:
    """An object with the attributes of a sparse matrix, and no way to make an array of it."""

    shape, ndim, dtype, nnz, format = (2, 3), 2, np.dtype(float), 1, "csr"

    def toarray(self) -> Any:
        return np.zeros((2, 3))


class BadTensor:
    """An object like a tensor of another library, which does not hand its data over."""

    shape = (2, 3)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the data are on another device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class NoCapsule:
    """An object whose __dlpack__ returns no capsule."""

    def __dlpack__(self, **options: Any) -> Any:
        return None

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Text(str):
    """A string of a class of its own."""


class Whole(int):
    """An integer of a class of its own."""


def itself() -> list[Any]:
    """Return a list that contains itself."""
    ring: list[Any] = []
    ring.append(ring)
    return ring


def twice_itself() -> list[Any]:
    """Return a list that contains itself twice, in which there are 2**64 places 64 levels down."""
    ring: list[Any] = []
    ring += [ring, ring]
    return ring


def closed() -> dlarray:
    """Return an array of a trace that has ended."""
    kept: list[Any] = []
    dlfeval(lambda x: kept.append(2 * x), np.ones(3))
    return kept[0]


def deep() -> list[Any]:
    """Return a list nested deeper than any array."""
    nest: list[Any] = [1.0]
    for _ in range(2000):
        nest = [nest]
    return nest


KINDS: dict[str, Callable[[], Any]] = {
    # nothing, and text
    "None": lambda: None,
    "text": lambda: "text",
    "no text": lambda: "",
    "text of a class": lambda: Text("CB"),
    "a missing label": lambda: "T",
    "a repeated label": lambda: "CC",
    "bytes": lambda: b"\x00\xff",
    "bytearray": lambda: bytearray(b"ab"),
    "memoryview": lambda: memoryview(b"ab"),
    # containers
    "dict": lambda: {"a": 1.0},
    "empty dict": dict,
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset((1, 2)),
    "ragged list": lambda: [[1.0, 2.0], [3.0]],
    "empty list": list,
    "empty tuple": tuple,
    "empty lists": lambda: [[], []],
    "list of None": lambda: [None, 1.0],
    "list of text": lambda: ["a", "b"],
    "list of mixed": lambda: [1.0, "b", None],
    "list of dlarrays": lambda: [[dlarray([1.0, 2.0])], [dlarray([3.0])]],
    "list of itself": itself,
    "list of itself twice": twice_itself,
    "long range": lambda: range(10**15),
    "iterator without end": itertools.count,
    "deep list": deep,
    "long tuple": lambda: (0,) * 70,
    "pair of zeros": lambda: (0, 0),
    "pair": lambda: (1, 2),
    "range": lambda: range(3),
    "generator": lambda: (x for x in (1.0, 2.0)),
    "endless sequence": Endless,
    "array of array": lambda: array.array("d", [1.0, 2.0]),
    # numbers
    "a bool": lambda: True,
    "-1": lambda: -1,
    "99": lambda: 99,
    "-99": lambda: -99,
    "1.5": lambda: 1.5,
    "-2.5": lambda: -2.5,
    "NaN": lambda: math.nan,
    "infinity": lambda: math.inf,
    "-infinity": lambda: -math.inf,
    "complex": lambda: 1j,
    "1 << 62": lambda: 1 << 62,
    "1 << 70": lambda: 1 << 70,
    "10 ** 15": lambda: 10**15,
    "10 ** 30": lambda: 10**30,
    "10 ** 400": lambda: 10**400,
    "10 ** 5000": lambda: 10**5000,
    "-10 ** 30": lambda: -(10**30),
    "integer of a class": lambda: Whole(7),
    "decimal": lambda: decimal.Decimal("1.5"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "date": lambda: datetime.date(2024, 1, 1),
    # numbers and arrays of NumPy
    "float16": lambda: np.float16(1.5),
    "longdouble": lambda: np.longdouble(1.5),
    "complex128": lambda: np.complex128(1j),
    "datetime64": lambda: np.datetime64("2024-01-01"),
    "timedelta64": lambda: np.timedelta64(1, "D"),
    "scalar of text": lambda: np.str_("a"),
    "array of objects": lambda: np.array([1, None, "a"], object),
    "array of text": lambda: np.array(["a", "b"]),
    "array of dates": lambda: np.array(["2024-01-01"], "M8[D]"),
    "array of longdouble": lambda: np.ones(3, np.longdouble),
    "array of complex": lambda: np.ones(3, complex),
    "array of float16": lambda: np.ones(3, np.float16),
    "structured array": lambda: np.zeros(3, [("a", float), ("b", int)]),
    "record": lambda: np.zeros(1, [("a", float)])[0],
    "array of bytes": lambda: np.array([b"a"]),
    "masked array": lambda: np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "matrix": lambda: np.eye(3).view(np.matrix),
    "scalar array": lambda: np.array(2.5),
    "empty array": lambda: np.zeros(0),
    "array of no rows": lambda: np.zeros((0, 3)),
    "array of 33 axes": lambda: np.zeros((1,) * 33),
    "array of 64 axes": lambda: np.zeros((1,) * 64),
    "array of 7": lambda: np.zeros(7),
    "array of 5 x 7": lambda: np.zeros((5, 7)),
    "array of NaN": lambda: np.full(3, np.nan),
    "large integers": lambda: np.full(3, 2**63, np.uint64),
    "array beyond 64 bits": lambda: [1 << 64, -1],
    # dlarrays
    "formatted dlarray": lambda: dlarray(np.ones((2, 3)), "CB"),
    "dlarray of other labels": lambda: dlarray(np.ones((2, 3)), "ST"),
    "dlarray of bools": lambda: dlarray([True, False, True]),
    "dlarray of integers": lambda: dlarray([0, 7, -9]),
    "scalar dlarray": lambda: dlarray(1.5),
    "array of a trace that ended": closed,
    # things of Python
    "class": lambda: dict,
    "class of dlarrays": lambda: dlarray,
    "function": lambda: math.sqrt,
    "lambda": lambda: lambda *args: args[0],
    "partial": lambda: functools.partial(max, 1),
    "module": lambda: math,
    "Ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "slice": lambda: slice(0, 2),
    "slice of text": lambda: slice("a", None),
    "slice of dlarrays": lambda: slice(dlarray(1.5), None),
    "object": object,
    "namespace": lambda: types.SimpleNamespace(shape=(2,), dtype=float),
    "error": lambda: ValueError("an argument"),
    "array of strings of any length": lambda: np.array(["a"], "T"),
    "a dtype": lambda: np.dtype(np.float32),
    "ufunc": lambda: np.add,
    # objects that raise
    "raises": Raises,
    "raises for text": RaisesText,
    "raises for array": RaisesArray,
    "raises for ==": RaisesEqual,
    "sparse": Sparse,
    "tensor elsewhere": BadTensor,
    "tensor without a capsule": NoCapsule,
}
