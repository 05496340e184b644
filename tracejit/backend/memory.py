# SPDX-License-Identifier: BSD-3-Clause
"""How Python and NumPy lay out the objects that the executor reads, checked on examples."""

import ctypes
import sys
import weakref
from functools import cache

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import CodegenError
from tracejit.kernels import state as words


@cache
def check_layout() -> None:
    """Check that objects are laid out as the executor reads them.

    Raises:
        CodegenError: if they are not.
    """
    probe = np.zeros((2, 3), np.float32)
    holder, items = (probe,), [probe]
    at = id(probe)
    references = sys.getrefcount(probe) - 1
    found = (
        _word(id(holder) + words.TUPLE_ITEMS), _word(_word(id(items) + words.LIST_ITEMS)),
        _half(at + words.OBJECT_REFERENCES), _word(at + words.OBJECT_TYPE), _word(at + words.ARRAY_DATA),
        _half(at + words.ARRAY_NDIM), _word(at + words.ARRAY_DTYPE),
        _half(at + words.ARRAY_FLAGS) & (words.CONTIGUOUS_AND_ALIGNED | words.WRITEABLE),
        _word(_word(at + words.ARRAY_SHAPE) + 8), _word(_word(at + words.ARRAY_STRIDES)),
        _word(at + words.ARRAY_WEAK),
    )  # fmt: skip
    expected = (
        at, at, references, id(np.ndarray), probe.ctypes.data, 2, id(probe.dtype),
        words.CONTIGUOUS_AND_ALIGNED | words.WRITEABLE, 3, 12, 0,
    )  # fmt: skip
    if found != expected:
        raise CodegenError(
            "this build of Python or NumPy lays out its objects in another way than the CPU backend reads them; "
            "set TRACEJIT_BACKEND=python, and please report the versions of both."
        )


@cache
def slots() -> tuple[int, int, int, int]:
    """Return where a labelled array keeps its data, format, value, and the list of its weak references.

    Raises:
        CodegenError: if it does not keep them in slots.
    """
    probe = dlarray._wrap(np.zeros(1), "".join(("S", "S", "C", "B")), None)
    places = {_word(id(probe) + at): at for at in range(16, dlarray.__basicsize__, 8)}
    data, format, value = (places.get(id(part)) for part in (probe._data, probe._format, None))
    # From Python 3.12 on the list of weak references lies before the object.
    weak = dlarray.__weakrefoffset__
    before = _word(id(probe) + weak)
    reference = weakref.ref(probe)
    after = _word(id(probe) + weak)
    if data is None or format is None or value is None or (before, after) != (0, id(reference)):
        raise CodegenError(
            "this build of Python keeps the slots of an object in another way than the CPU backend reads them; "
            "set TRACEJIT_BACKEND=python, and please report the version."
        )
    return data, format, value, weak


def _word(address: int) -> int:
    return ctypes.c_ssize_t.from_address(address).value


def _half(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
