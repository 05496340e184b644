# SPDX-License-Identifier: BSD-3-Clause
"""Cubins by NVIDIA's linker nvJitLink, where its package is installed; the driver translates PTX where it is not."""

import ctypes
import importlib.metadata
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from tracejit.compile.capability import Capability

PACKAGES = ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12")  # those of CUDA 13 and 12
_PTX = 2  # kind of input
_FILES = ("libnvJitLink.so", "nvJitLink_")  # beginnings of names, on Linux and Windows


@cache
def linker_version() -> str | None:
    """Return the name and version of the installed linker, None without one."""
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
    return None


@cache
def _library() -> Any:
    """Return the linker's library, None without one."""
    version = linker_version()
    if version is None:
        return None
    for path in importlib.metadata.files(version.partition(" ")[0]) or ():
        if path.name.startswith(_FILES) and path.suffix in (".dll", ".12", ".13"):
            library = ctypes.CDLL(str(path.locate()))
            library.nvJitLinkCreate.argtypes = (c_void_p, c_int, c_void_p)
            library.nvJitLinkAddData.argtypes = (c_void_p, c_int, c_char_p, c_size_t, c_char_p)
            for name in ("Complete", "GetLinkedCubinSize", "GetLinkedCubin", "GetErrorLog"):
                getattr(library, f"nvJitLink{name}").argtypes = (c_void_p, c_void_p)[
                    : 1 + (name != "Complete")
                ]
            return library
    return None


def cubin_of(ptx: str, capability: Capability) -> bytes | None:
    """Return the cubin of PTX for a GPU, None where no linker is installed or it does not take that."""
    library = _library()
    if library is None:
        return None
    handle = c_void_p()
    options = (c_char_p * 1)(f"-arch=sm_{capability.major}{capability.minor}".encode())
    if library.nvJitLinkCreate(byref(handle), 1, options):
        return None
    try:
        data = ptx.encode() + b"\0"
        if library.nvJitLinkAddData(handle, _PTX, data, len(data), b"kernel") or library.nvJitLinkComplete(
            handle
        ):
            return None  # the driver says why
        size = c_size_t()
        library.nvJitLinkGetLinkedCubinSize(handle, byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        library.nvJitLinkGetLinkedCubin(handle, cubin)
        return cubin.raw
    finally:
        library.nvJitLinkDestroy(byref(handle))
