# SPDX-License-Identifier: BSD-3-Clause
"""Objects that become other objects: how a Number turns into the true number that it stands for.

Note [true numbers]
The user's code can keep a Number anywhere: as a key of a cache, in a list, in an attribute, in an object of C code.
Once its value is needed, or its recording has ended, it must be a true number for everybody who refers to it. So it
becomes one in place: the type and the value of the true number are copied into the object's own memory, which is
larger. Its identity stays, so each reference is right at once. Dicts and sets stay right too, because a Number hashes
and compares as its number does. Such an object is never freed, because the memory of a true number is freed in a
different way. That costs some bytes for each number that outlives its recording.
"""

import ctypes
import gc
import sys
from functools import cache
from typing import Any

_HEAD_BYTES = 16  # the count of references and the type
_REFERENCES_BYTES = 8


@cache
def is_possible() -> bool:
    """Return whether this build of Python lays out objects as become() expects."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != _HEAD_BYTES:
        return False
    probe = 1.5
    return ctypes.c_ssize_t.from_address(id(probe) + _REFERENCES_BYTES).value == id(float)


def become(thing: Any, number: Any, slots: tuple[str, ...]) -> None:
    """Turn an object into a number, for all references to it.

    Args:
        thing: the object, an instance of a class with slots only, whose `slots` are emptied.
        number: an object that holds no references.
    """
    size = sys.getsizeof(number)
    if not is_possible() or size > type(thing).__basicsize__:
        return
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))  # it is never freed
    # The collector must not look at it any more.
    ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(thing))
    for slot in slots:
        object.__delattr__(thing, slot)
    # All of it at once: no thread sees a part of it.
    ctypes.memmove(id(thing) + _REFERENCES_BYTES, id(number) + _REFERENCES_BYTES, size - _REFERENCES_BYTES)


def shape_of(thing: Any, number: Any) -> bytes | None:
    """Return the part of an object that take_shape() replaces; None where that cannot be.

    Args:
        thing: the object, an instance of a class with slots only.
        number: an object that holds no references.
    """
    size = sys.getsizeof(number)
    if not is_possible() or size > type(thing).__basicsize__:
        return None
    return ctypes.string_at(id(thing) + _REFERENCES_BYTES, size - _REFERENCES_BYTES)


def take_shape(thing: Any, number: Any) -> None:
    """Have an object be a number until restore() gets what shape_of() returned; it is not freed before."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(thing))
    size = sys.getsizeof(number) - _REFERENCES_BYTES
    ctypes.memmove(id(thing) + _REFERENCES_BYTES, id(number) + _REFERENCES_BYTES, size)


def restore(thing: Any, shape: bytes) -> None:
    """Have an object be again what it was before take_shape()."""
    if not gc.is_tracked(thing):  # which no number is
        ctypes.memmove(id(thing) + _REFERENCES_BYTES, shape, len(shape))
        ctypes.pythonapi.PyObject_GC_Track(ctypes.py_object(thing))
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))
