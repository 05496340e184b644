# SPDX-License-Identifier: BSD-3-Clause
"""The driver's library of C functions: its name, the functions that are called, and their arguments."""

import ctypes
import sys
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from tracejit.errors import DeviceError

LEAST_VERSION = 12000  # CUDA 12.0, the first with the structures below


class KernelNode(Structure):
    """A launch in a graph (CUDA_KERNEL_NODE_PARAMS_v2)."""

    _fields_ = (
        ("function", c_void_p),
        ("grid_x", c_uint),
        ("grid_y", c_uint),
        ("grid_z", c_uint),
        ("block_x", c_uint),
        ("block_y", c_uint),
        ("block_z", c_uint),
        ("shared_bytes", c_uint),
        ("parameters", POINTER(c_void_p)),
        ("extra", POINTER(c_void_p)),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


_HANDLE, _OUT = c_void_p, POINTER(c_void_p)

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_OUT, c_int),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuCtxSynchronize": (),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuDeviceGetDefaultMemPool": (_OUT, c_int),
    "cuMemPoolSetAttribute": (_HANDLE, c_int, c_void_p),
    "cuMemAllocAsync": (POINTER(c_uint64), c_size_t, _HANDLE),
    "cuMemFreeAsync": (c_uint64, _HANDLE),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, _HANDLE),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, _HANDLE),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, _HANDLE),
    "cuStreamCreate": (_OUT, c_uint),
    "cuStreamDestroy_v2": (_HANDLE,),
    "cuStreamBeginCapture_v2": (_HANDLE, c_int),
    "cuStreamEndCapture": (_HANDLE, _OUT),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, c_uint),
    "cuEventCreate": (_OUT, c_uint),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (POINTER(c_float), _HANDLE, _HANDLE),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuModuleLoadDataEx": (_OUT, c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleGetFunction": (_OUT, _HANDLE, c_char_p),
    "cuModuleUnload": (_HANDLE,),
    "cuGraphCreate": (_OUT, c_uint),
    "cuGraphAddKernelNode_v2": (_OUT, _HANDLE, POINTER(c_void_p), c_size_t, POINTER(KernelNode)),
    "cuGraphAddChildGraphNode": (_OUT, _HANDLE, POINTER(c_void_p), c_size_t, _HANDLE),
    "cuGraphAddEventRecordNode": (_OUT, _HANDLE, POINTER(c_void_p), c_size_t, _HANDLE),
    "cuGraphInstantiateWithFlags": (_OUT, _HANDLE, c_uint64),
    "cuGraphExecKernelNodeSetParams_v2": (_HANDLE, _HANDLE, POINTER(KernelNode)),
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuGraphExecDestroy": (_HANDLE,),
    "cuGraphDestroy": (_HANDLE,),
}
"""The functions that are called, with the types of their arguments; each returns a status, 0 for success."""


def names() -> tuple[str, ...]:
    """Return the file names under which the driver's library is looked for."""
    return ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")


def load(files: Sequence[str] = ()) -> Any:
    """Return the driver's library, by default that of this system.

    Raises:
        DeviceError: if there is no driver, or it lacks a function.
    """
    open_library: Any = getattr(ctypes, "WinDLL", ctypes.CDLL)
    for name in files or names():
        try:
            library = open_library(name)
        except OSError:
            continue
        return declared(library)
    raise DeviceError(
        f'target="cuda": there is no NVIDIA driver on this machine ({(files or names())[0]} was not found). Install '
        'the driver of the GPU (nvidia.com/drivers; nothing else of CUDA is needed), or use target="cpu".'
    )


def declared(library: Any) -> Any:
    """Return a library whose functions know the types of their arguments.

    Raises:
        DeviceError: if it lacks one of them.
    """
    for name, types in PROTOTYPES.items():
        function = getattr(library, name, None)
        if function is None:
            raise DeviceError(
                f'target="cuda": the NVIDIA driver is too old: it has no {name}. Update it to one of CUDA '
                f'{LEAST_VERSION // 1000} or newer (525.60 or newer), or use target="cpu".'
            )
        function.argtypes, function.restype = types, c_int
    return library


def address_of(function: Any) -> int:
    """Return the address of a function of a library."""
    return ctypes.cast(function, c_void_p).value or 0
