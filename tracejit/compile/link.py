# SPDX-License-Identifier: BSD-3-Clause
"""Cubins by NVIDIA's linker nvJitLink, where its package is installed; the driver translates PTX where it is not."""

import ctypes
import importlib.metadata
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from tracejit.compile.capability import Capability
from tracejit.util.named_tuples import NamedTuple

PACKAGES = ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12")  # those of CUDA 13 and 12
_PTX = 2  # kind of input
_FILES = ("libnvJitLink.so", "nvJitLink_")  # beginnings of names, on Linux and Windows


class Linked(NamedTuple):
    """The result of the linker for PTX.

    cubin       machine code; None where the linker does not take the PTX
    report      the messages of the linker and its assembler: errors, and with the option "-verbose" the registers and
                the memory of kernels
    is_known    whether the linker knows the GPU
    """

    cubin: bytes | None
    report: str
    is_known: bool = True


@cache
def linker_version() -> str | None:
    """Return the name and version of the installed linker, None without one."""
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            return f"{package} {importlib.metadata.version(package)}"
    return None


@cache
def _library() -> Any:
    """Return the linker's library, None without one, or where it cannot be loaded."""
    with suppress(OSError, AttributeError):  # the loader of the system, and a library that lacks a function
        return _loaded()
    return None


def _loaded() -> Any:
    version = linker_version()
    if version is None:
        return None
    for path in importlib.metadata.files(version.partition(" ")[0]) or ():
        if path.name.startswith(_FILES) and path.suffix in (".dll", ".12", ".13"):
            library = ctypes.CDLL(str(path.locate()))
            library.nvJitLinkCreate.argtypes = (c_void_p, c_int, c_void_p)
            library.nvJitLinkAddData.argtypes = (c_void_p, c_int, c_char_p, c_size_t, c_char_p)
            library.nvJitLinkComplete.argtypes = (c_void_p,)
            for name in ("LinkedCubin", "ErrorLog", "InfoLog"):
                for function in (f"nvJitLinkGet{name}Size", f"nvJitLinkGet{name}"):
                    getattr(library, function).argtypes = (c_void_p, c_void_p)
            return library
    return None


def description() -> str:
    """Return what translates PTX, in words."""
    version = linker_version()
    if version is None:
        return "none; the driver translates PTX"
    return version if _library() else f"{version}, which cannot be loaded; the driver translates PTX"


def cubin_of(ptx: str, capability: Capability) -> bytes | None:
    """Return the cubin of PTX for a GPU, None where no linker is installed or it does not take that."""
    found = linked(ptx, capability)
    return None if found is None else found.cubin  # the driver says why it takes it no more than the linker


def refusal(ptx: str, capability: Capability) -> str | None:
    """Return why the linker does not take PTX for a GPU that it knows; None if it does, or none is installed."""
    found = linked(ptx, capability)
    if found is None or found.cubin is not None or not found.is_known:
        return None
    lines = [line.strip() for line in found.report.splitlines() if line.strip()] or ["it gives no reason"]
    return next((line for line in lines if "error" in line), lines[0])


def linked(ptx: str, capability: Capability, *options: str) -> Linked | None:
    """Return what the linker makes of PTX for a GPU, given further options; None where no linker is installed."""
    library = _library()
    if library is None:
        return None
    handle = c_void_p()
    texts = (f"-arch=sm_{capability.major}{capability.minor}", *options)
    if library.nvJitLinkCreate(byref(handle), len(texts), (c_char_p * len(texts))(*map(str.encode, texts))):
        return Linked(None, f"the linker does not know {' '.join(texts)}", is_known=False)
    try:
        data = ptx.encode() + b"\0"
        failed = library.nvJitLinkAddData(handle, _PTX, data, len(data), b"kernel")
        failed = failed or library.nvJitLinkComplete(handle)
        report = b"".join([_taken(library, handle, name).rstrip(b"\0") for name in ("ErrorLog", "InfoLog")])
        return Linked(
            None if failed else _taken(library, handle, "LinkedCubin"), report.decode(errors="replace")
        )
    finally:
        library.nvJitLinkDestroy(byref(handle))


def _taken(library: Any, handle: c_void_p, name: str) -> bytes:
    """Return the bytes that the linker has under a name."""
    size = c_size_t()
    getattr(library, f"nvJitLinkGet{name}Size")(handle, byref(size))
    taken = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvJitLinkGet{name}")(handle, taken)
    return taken.raw
