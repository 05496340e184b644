# SPDX-License-Identifier: BSD-3-Clause
"""The memory layout of the objects of Python and NumPy that the executor reads, checked on examples."""

import ctypes
import sys
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.containers import Fixed
from tracejit.errors import CodegenError
from tracejit.kernels.executor import state as words
from tracejit.tree import TreeNode, rebuild_node

_take_reference = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


@cache
def check_layout() -> None:
    """Check that objects are laid out as the executor reads them.

    Raises:
        CodegenError: if they are not.
    """
    # Other builds begin objects differently; a word taken for an address may not be one.
    if object.__basicsize__ != words.OBJECT_BYTES or not _matches():
        raise CodegenError(
            "the CPU back end cannot run here: this build of Python or NumPy lays out its objects differently. Set "
            "TRACEJIT_BACKEND=python, and please report the versions of both."
        )


def _matches() -> bool:
    probe = np.zeros((2, 3), np.float32)
    holder, items, table, number = (probe,), [probe, probe], {"a": probe, "b": probe, "c": probe}, 1.5
    scalars = (np.float64(1.5), np.int64(0x3FF8 << 48))
    at = id(probe)
    references = sys.getrefcount(probe) - 1
    flags = words.CONTIGUOUS | words.OWNED | words.ALIGNED | words.WRITEABLE
    weak = word(at, words.ARRAY_WEAK)
    reference = weakref.ref(probe)
    fields = (
        word(id(holder), tuple.__basicsize__ // 8), word(id(holder), words.OBJECT_SIZE),
        word(word(id(items), words.LIST_ITEMS), 1), word(id(items), words.OBJECT_SIZE),
        word(id(table), words.DICT_SIZE), word(id(number), words.FLOAT_VALUE),
        *[word(id(scalar), words.FLOAT_VALUE) for scalar in scalars],
        _half(at, words.OBJECT_REFERENCES), word(at, words.OBJECT_TYPE), word(at, words.ARRAY_DATA),
        _half(at, words.ARRAY_NDIM), word(at, words.ARRAY_DTYPE), _half(at, words.ARRAY_FLAGS) & flags,
        word(word(at, words.ARRAY_SHAPE), 1), word(word(at, words.ARRAY_STRIDES), 0),
        weak, word(at, words.ARRAY_WEAK),
    )  # fmt: skip
    return fields == (
        at, 1, at, 2, 3, *[0x3FF8 << 48] * 3, references, id(np.ndarray), probe.ctypes.data, 2, id(probe.dtype),
        flags, 3, 12, 0, id(reference),
    )  # fmt: skip


@cache
def slots() -> tuple[int, int, int, int]:
    """Return the offsets, in words, of a dlarray's data, format, value and list of weak references.

    Raises:
        CodegenError: if they are not found.
    """
    marked: Any = object()  # other slots hold None
    probe = dlarray._wrap(np.zeros(1), "".join(("S", "S", "C", "B")), marked)
    offsets = {word(id(probe), offset): offset for offset in range(2, dlarray.__basicsize__ // 8)}
    data, format, value = (offsets.get(id(slot)) for slot in (probe._data, probe._format, marked))
    # From Python 3.12 on the list of weak references lies before the object.
    weak = dlarray.__weakrefoffset__ // 8
    before = word(id(probe), weak)
    reference = weakref.ref(probe)
    after = word(id(probe), weak)
    if data is None or format is None or value is None or (before, after) != (0, id(reference)):
        raise CodegenError(
            "the CPU back end cannot run here: this build of Python keeps the slots of an object differently. Set "
            "TRACEJIT_BACKEND=python, and please report the version."
        )
    return data, format, value, weak


def places_of(kind: type, names: Sequence[str]) -> tuple[int, ...]:
    """Return the places, in words, of slots of the objects of a class, and of the list of weak references.

    Raises:
        CodegenError: if they are not found.
    """
    probe: Any = object.__new__(kind)
    marks = [object() for _ in names]
    for name, mark in zip(names, marks, strict=True):
        setattr(probe, name, mark)
    offsets = {word(id(probe), offset): offset for offset in range(2, kind.__basicsize__ // 8)}
    weak = kind.__weakrefoffset__ // 8
    before = word(id(probe), weak)
    reference = weakref.ref(probe)
    after = word(id(probe), weak)
    if any(id(mark) not in offsets for mark in marks) or (before, after) != (0, id(reference)):
        raise CodegenError(
            "the CPU back end cannot run here: this build of Python keeps the slots of an object differently. Set "
            "TRACEJIT_BACKEND=python, and please report the version."
        )
    return (*[offsets[id(mark)] for mark in marks], weak)


@cache
def node_slots() -> tuple[int, int]:
    """Return the offsets, in words, of the fixed part of a node and of its children.

    Raises:
        CodegenError: if they are not found.
    """
    probe = rebuild_node(TreeNode, Fixed(), (None,))
    offsets = {word(id(probe), offset): offset for offset in range(2, TreeNode.__basicsize__ // 8)}
    fixed, leaves = offsets.get(id(probe._fixed)), offsets.get(id(probe._leaves))
    if fixed is None or leaves is None:
        raise CodegenError(
            "the CPU back end cannot run here: this build of Python keeps the slots of a node differently. Set "
            "TRACEJIT_BACKEND=python, and please report the version."
        )
    return fixed, leaves


@cache
def api() -> np.ndarray:
    """Return the addresses of the functions and objects of Python that the entry uses (API_FUNCTIONS, API_OBJECTS)."""
    functions = [
        ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in words.API_FUNCTIONS
    ]
    table = np.array([*functions, *map(id, words.API_OBJECTS)], np.intp)
    keep_for_ever(table)
    return table


def keep_for_ever(value: Any) -> None:
    """Have an object live as long as the process: compiled code may use it after the modules of Python have ended."""
    _take_reference(value)


def word(address: int, offset: int) -> int:
    """Return the word that is `offset` words behind an address."""
    return ctypes.c_ssize_t.from_address(address + words.WORD_BYTES * offset).value


def _half(address: int, offset: int) -> int:
    return ctypes.c_int32.from_address(address + words.WORD_BYTES * offset).value
