# SPDX-License-Identifier: BSD-3-Clause
"""NVIDIA's library cuBLASLt: its places, the functions that are called, and the meaning of their statuses."""

import ctypes
import importlib.metadata
import sys
import weakref
from contextlib import suppress
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from tracejit.errors import DeviceError, DeviceMemoryError
from tracejit.runtime.cuda.driver import Driver
from tracejit.util.locks import new_lock

LEAST_VERSION = 120000  # cuBLAS 12.0, as 10000 * major + 100 * minor + patch
_MAJORS = (13, 12)
PACKAGES = {13: "nvidia-cublas", 12: "nvidia-cublas-cu12"}
_FILES = ("libcublasLt.so", "cublasLt64_")  # beginnings of names, on Linux and Windows
NOT_INITIALIZED, ALLOC_FAILED, ARCH_MISMATCH, EXECUTION_FAILED, NOT_SUPPORTED = 1, 3, 8, 13, 15
_OFF = "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products"
_ADVICE = {
    NOT_INITIALIZED: "The library does not start with this driver: install the one of the driver's version of CUDA "
    f"({PACKAGES[12]} or {PACKAGES[13]}), or {_OFF}.",
    ARCH_MISMATCH: f"This version of the library does not know the GPU: install a newer one, or {_OFF}.",
    NOT_SUPPORTED: f"This version of the library cannot compute it: install a newer one, or {_OFF}.",
}


class Algorithm(Structure):
    """A way to compute a product, which only the library reads (cublasLtMatmulAlgo_t)."""

    _fields_ = (("data", c_uint64 * 8),)


class Suggestion(Structure):
    """An algorithm that the library suggests, and the workspace it needs (cublasLtMatmulHeuristicResult_t)."""

    _fields_ = (
        ("algorithm", Algorithm),
        ("workspace_bytes", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


_HANDLE, _OUT = c_void_p, POINTER(c_void_p)
_ATTRIBUTE = (_HANDLE, c_int, c_void_p, c_size_t)

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_OUT,),
    "cublasLtMatmulDescCreate": (_OUT, c_int, c_int),
    "cublasLtMatmulDescSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulDescDestroy": (_HANDLE,),
    "cublasLtMatrixLayoutCreate": (_OUT, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": _ATTRIBUTE,
    "cublasLtMatrixLayoutDestroy": (_HANDLE,),
    "cublasLtMatmulPreferenceCreate": (_OUT,),
    "cublasLtMatmulPreferenceSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulPreferenceDestroy": (_HANDLE,),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(_HANDLE,) * 7, c_int, POINTER(Suggestion), POINTER(c_int),
    ),
    "cublasLtMatmul": (
        _HANDLE, _HANDLE, c_void_p, c_void_p, _HANDLE, c_void_p, _HANDLE, c_void_p, c_void_p, _HANDLE,
        c_void_p, _HANDLE, POINTER(Algorithm), c_void_p, c_size_t, _HANDLE,
    ),
}  # fmt: skip
"""The functions that return a status, with the types of their arguments."""

OTHERS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "cublasLtGetVersion": ((), c_size_t),
    "cublasLtGetStatusName": ((c_int,), c_char_p),
}
"""The other functions that are called, with the types of their arguments and results."""


def files(major: int) -> list[str]:
    """Return where the library of a version of CUDA may be: in NVIDIA's package, and by its name in the system."""
    found: list[str] = []
    with suppress(importlib.metadata.PackageNotFoundError):
        found = [
            str(path.locate())
            for path in importlib.metadata.files(PACKAGES[major]) or ()
            if path.name.startswith(_FILES) and path.suffix in (".dll", f".{major}")
        ]
    return [*found, f"cublasLt64_{major}.dll" if sys.platform == "win32" else f"libcublasLt.so.{major}"]


def libraries(newest: int) -> list[str]:
    """Return where the library may be that a driver for a major version of CUDA can run, the newest first."""
    return [name for major in _MAJORS if major <= newest for name in files(major)]


def load(newest: int) -> Any:
    """Return the library for a driver.

    Args:
        newest: the major version of CUDA that the driver is made for.

    Raises:
        DeviceError: if there is none that the driver can run, or it is too old.
    """
    for name in libraries(newest):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return declared(library)
    package = PACKAGES[min(max(newest, min(PACKAGES)), max(PACKAGES))]
    raise DeviceError(
        f"TRACEJIT_CUBLAS_FROM: cuBLASLt was not found ({', '.join(libraries(newest))}). Install it (pip install "
        f"{package}), or {_OFF}."
    )


def declared(library: Any) -> Any:
    """Return a library whose functions know the types of their arguments.

    Raises:
        DeviceError: if it lacks one of them, or is too old.
    """
    wanted = {**{name: (types, c_int) for name, types in PROTOTYPES.items()}, **OTHERS}
    for name, (types, result) in wanted.items():
        function = getattr(library, name, None)
        if function is None:
            raise DeviceError(
                f"TRACEJIT_CUBLAS_FROM: cuBLASLt is too old: it has no {name}. Install version "
                f"{dotted(LEAST_VERSION)} or newer, or {_OFF}."
            )
        function.argtypes, function.restype = types, result
    version = int(library.cublasLtGetVersion())
    if version < LEAST_VERSION:
        raise DeviceError(
            f"TRACEJIT_CUBLAS_FROM: cuBLASLt {dotted(version)} is too old. Install version {dotted(LEAST_VERSION)} "
            f"or newer, or {_OFF}."
        )
    return library


def dotted(version: int) -> str:
    """Return a version as NVIDIA writes it."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


class Cublas:
    """The library on a device.

    Args:
        on: the device.
        library: its functions, by name.

    Attributes:
        on: the device.
        version: of the library, in words.

    Raises:
        DeviceError: if it does not start.
    """

    def __init__(self, on: Driver, library: Any) -> None:
        self.on, self._library = on, library
        self.version = dotted(int(library.cublasLtGetVersion()))
        self._handle = c_void_p()  # lives as long as the process
        on.make_current()
        self.call("cublasLtCreate", byref(self._handle))

    @property
    def handle(self) -> c_void_p:
        """The name that the library has for the device."""
        return self._handle

    def call(self, name: str, *arguments: Any, what: str = "") -> None:
        """Call a function of the library.

        Args:
            name: of the function.
            *arguments: of the function.
            what: is computed, for messages.

        Raises:
            DeviceError: if it fails.
        """
        status = getattr(self._library, name)(*arguments)
        if status:
            raise self.error(name, status, what)

    def error(self, name: str, status: int, what: str = "") -> DeviceError:
        """Return the error for a status that a function of the library returned."""
        text = self._library.cublasLtGetStatusName(status)
        of_what = f" for {what}" if what else ""
        told = (
            f"cuBLASLt {self.version} failed{of_what} "
            f"({name}: {(text or b'CUBLAS_STATUS_UNKNOWN').decode()} ({status}))"
        )
        ordinal = self.on.ordinal
        if status == ALLOC_FAILED:
            return DeviceMemoryError(
                f"cuda:{ordinal}: {told}: there is not enough memory. Drop arrays that lie on the device (del x), or "
                f"{_OFF}."
            )
        advice = _ADVICE.get(
            status, f"If it happens again, report it with the output of tracejit doctor --cuda, and {_OFF}."
        )
        return DeviceError(f"cuda:{ordinal}: {told}. {advice}")

    def release(self, name: str, handle: c_void_p, _ends: Any = sys.is_finalizing) -> None:
        """Destroy a descriptor, unless the process ends."""
        if handle.value and not _ends():
            getattr(self._library, name)(handle)


_opened: "weakref.WeakKeyDictionary[Driver, Cublas]" = weakref.WeakKeyDictionary()
_lock = new_lock()


def cublas_of(on: Driver) -> Cublas:
    """Return the library on a device, which is opened when it is first needed.

    Raises:
        DeviceError: if it is missing or too old, or does not start.
    """
    with _lock:
        if on not in _opened:
            _opened[on] = Cublas(on, load(on.version // 1000))
        return _opened[on]
