# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the driver's functions in the context of a device, and what the statuses mean that they return."""

import sys
from collections.abc import Callable
from ctypes import byref, c_char_p, c_void_p
from typing import Any

import numpy as np

from tracejit.errors import DeviceError, DeviceMemoryError
from tracejit.kernels.executor import state

OUT_OF_MEMORY = 2
NO_DEVICE = (100, 101)
TOO_OLD = (34, 803)  # a stand-in for the library, two parts that differ
PTX_TOO_NEW = 222
# After one of these the device answers nothing that this process asks: see "sticky errors" in NVIDIA's guide.
LOST = (46, 214, 220, 226, 700, 702, 714, 715, 716, 717, 718, 719, 999)
_LOST_COUNT = 1 << 40  # what the word for being busy has then at least

Ends = Callable[[], bool]
"""Tells whether the process ends."""


class DriverCalls:
    """The functions of the driver, called for one device.

    Args:
        library: the functions, by name.
        ordinal: the number of the device.

    Attributes:
        is_lost: whether the device answers nothing more.
        words: what compiled entries read of it (kernels/executor/state.py).
    """

    def __init__(self, library: Any, ordinal: int) -> None:
        self.ordinal = ordinal
        self.is_lost = False
        self.words = np.zeros(state.DRIVER_WORDS, np.intp)
        self._library = library
        self._context = c_void_p()  # without an address until the device is open

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver in the device's context.

        Raises:
            DeviceError: if it fails.
        """
        self.make_current()
        self._check(name, getattr(self._library, name)(*arguments))

    def make_current(self) -> None:
        """Make the device's context that of this thread, for a library that calls the driver itself."""
        self._check("cuCtxSetCurrent", self._library.cuCtxSetCurrent(self._context))

    def release(self, name: str, *arguments: Any, _ends: Ends = sys.is_finalizing) -> bool:
        """Call a function that frees something, unless the device is lost or the process ends: then all is freed.

        Return whether that is free now. No error is raised, since this is called where nobody could take it.
        """
        if self.is_lost or _ends():  # objects may outlive the names of this module
            return True
        library = self._library
        return not (library.cuCtxSetCurrent(self._context) or getattr(library, name)(*arguments))

    def refuse_if_lost(self) -> None:
        """Raise an error if the device is lost.

        Raises:
            DeviceError: if it is.
        """
        if self.is_lost:
            raise DeviceError(
                f"cuda:{self.ordinal}: the device is lost to this process since an earlier error; its arrays are gone. "
                "Restart the process."
            )

    def _check(self, name: str, status: int) -> None:
        if status:
            raise self._error(name, status)

    def _error(self, name: str, status: int) -> DeviceError:
        """Return the error for a status that a function of the driver returned."""
        text = c_char_p()
        self._library.cuGetErrorName(status, byref(text))
        what = f"{name}: {(text.value or b'CUDA_ERROR_UNKNOWN').decode()} ({status})"
        if status in LOST:
            self.is_lost = True
            self.words[state.IS_BUSY] += _LOST_COUNT
        return _error_of(self.ordinal, status, what, is_open=bool(self._context))


def _error_of(ordinal: int, status: int, what: str, is_open: bool) -> DeviceError:
    """Return the error for a status of a device's driver, given what returned it in words."""
    if status == OUT_OF_MEMORY:
        return DeviceMemoryError(
            f"cuda:{ordinal}: there is not enough memory on the device ({what}). Drop arrays that lie there "
            "(del x), use smaller ones, or end other programs that use the GPU (nvidia-smi lists them)."
        )
    if status in NO_DEVICE:
        return DeviceError(
            f'target="cuda": the NVIDIA driver finds no GPU with number {ordinal} ({what}). See what '
            'nvidia-smi lists and whether CUDA_VISIBLE_DEVICES hides it, or use target="cpu".'
        )
    if status in TOO_OLD:
        return DeviceError(
            f'target="cuda": the NVIDIA driver does not fit this system ({what}). Install the driver of the GPU '
            '(525.60 or newer) and restart, or use target="cpu".'
        )
    if status == PTX_TOO_NEW:
        return DeviceError(
            f"cuda:{ordinal}: the NVIDIA driver is too old for the GPU's kernels ({what}). Update the driver."
        )
    if status in LOST and not is_open:
        return DeviceError(
            f'target="cuda": cuda:{ordinal} cannot be used now ({what}). See whether nvidia-smi shows it and whether '
            'another process has it alone, or use target="cpu".'
        )
    if status in LOST:
        return DeviceError(
            f"cuda:{ordinal}: the device is lost to this process ({what}); its arrays are gone. Restart the "
            "process; if it happens again, report it with the output of tracejit doctor --cuda."
        )
    return DeviceError(
        f"cuda:{ordinal}: the NVIDIA driver failed ({what}). If it happens again, report it with the output "
        "of tracejit doctor --cuda."
    )
