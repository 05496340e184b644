# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on the device as capsules of DLPack, for libraries that take no __cuda_array_interface__."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any

CUDA = 2  # the kind of device
_NAME = b"dltensor"
_KINDS = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}  # by those of NumPy, to which bfloat16 is "V"


class _Tensor(ctypes.Structure):
    """An array (DLManagedTensor: a DLTensor, its keeper, and the function that ends its use)."""

    _fields_ = (
        ("data", c_void_p),
        ("device_kind", c_int32),
        ("device_number", c_int32),
        ("ndim", c_int32),
        ("kind", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
        ("keeper", c_void_p),
        ("end", c_void_p),
    )


_kept: dict[int, Any] = {}
"""The structures that capsules refer to, and what these refer to, by the address of their structure."""

_END = ctypes.CFUNCTYPE(None, c_void_p)
_DESTROY = ctypes.PYFUNCTYPE(None, c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, _DESTROY)(("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _end(address: int) -> None:
    """End the use of a structure."""
    _kept.pop(address, None)


def _destroy(capsule: int) -> None:
    """End the use of a capsule that no library has taken; a library that takes one renames it."""
    if _is_valid(capsule, _NAME):
        _kept.pop(_pointer(capsule, _NAME), None)


_END_FUNCTION, _DESTROY_FUNCTION = _END(_end), _DESTROY(_destroy)


def capsule_of(array: Any) -> Any:
    """Return a capsule with the elements of an array on the device."""
    sizes = (c_int64 * array.ndim)(*array.shape)
    strides = (c_int64 * array.ndim)(*[step // array.itemsize for step in array.strides])
    tensor = _Tensor(
        array.address, CUDA, array.on.ordinal, array.ndim, _KINDS[array.dtype.kind], 8 * array.itemsize, 1,
        sizes, strides, 0, None, ctypes.cast(_END_FUNCTION, c_void_p),
    )  # fmt: skip
    address = ctypes.addressof(tensor)
    _kept[address] = tensor, sizes, strides, array
    return _new_capsule(address, _NAME, _DESTROY_FUNCTION)
