# SPDX-License-Identifier: BSD-3-Clause
"""The device's functions of kernels: loaded once for each driver, from the disk or compiled."""

import time
import weakref
from collections.abc import Sequence

from tracejit.compile.device_code import CUBIN, compiled, stored_code
from tracejit.errors import DeviceError, DeviceMemoryError
from tracejit.program import Kernel, Prepared
from tracejit.runtime.cuda.driver import Driver
from tracejit.util import logs
from tracejit.util.locks import new_lock
from tracejit.util.memory import collector_paused
from tracejit.util.uninterrupted import Stopping, uninterrupted

_functions: "weakref.WeakKeyDictionary[Driver, dict[str, int]]" = weakref.WeakKeyDictionary()
_lock = new_lock()


def functions_of(on: Driver, kernels: Sequence[Kernel]) -> tuple[dict[str, int], Prepared]:
    """Return the device's functions by the names of kernels, and what was compiled and loaded for that.

    Raises:
        CodegenError: if a kernel cannot be compiled.
        DeviceError: if the driver refuses it.
    """
    with _lock:
        known = _functions.setdefault(on, {})
        missing = [kernel for kernel in kernels if kernel.name not in known]
        prepared = Prepared((), (), 0, 0)
        if missing:
            prepared = uninterrupted(
                lambda stopping: _prepare(on, missing, known, stopping), _tell, logs.SLOW_S
            )
        return {kernel.name: known[kernel.name] for kernel in kernels}, prepared


def _prepare(on: Driver, missing: Sequence[Kernel], known: dict[str, int], stopping: Stopping) -> Prepared:
    """Load or compile functions; where the driver refuses cubins, with PTX, which it translates."""
    done = Prepared((), (), 0, 0)
    while missing:
        refused: list[Kernel] = []
        part = _prepare_once(on, missing, known, refused, stopping)
        names = {kernel.name for kernel in refused}
        done = Prepared(
            (*done.compiled, *[name for name in part.compiled if name not in names]),
            (*done.loaded, *[name for name in part.loaded if name not in names]),
            done.compile_ns + part.compile_ns,
            done.load_ns + part.load_ns,
        )
        missing = refused
    return done


def _prepare_once(
    on: Driver, missing: Sequence[Kernel], known: dict[str, int], refused: list[Kernel], stopping: Stopping
) -> Prepared:
    """Load or compile functions; those whose cubins the driver refuses are noted."""
    started = time.perf_counter_ns()
    linked = on.takes_cubins

    def load(kernel: Kernel, code: bytes) -> None:
        try:
            known[kernel.name] = on.load(code, kernel.name)
        except DeviceMemoryError:
            raise
        except DeviceError:
            if on.is_lost or not (linked and code.startswith(CUBIN)):
                raise
            on.takes_cubins = (
                False  # such as those of a linker of CUDA 13 where the driver is made for CUDA 12
            )
            refused.append(kernel)

    absent = []
    for kernel in missing:
        code = stored_code(kernel, on.capability, linked)
        if code is None:
            absent.append(kernel)
        else:
            load(kernel, code)
    loaded = time.perf_counter_ns()
    names = dict.fromkeys([kernel.name for kernel in absent])
    with collector_paused():  # the driver translates PTX, for which it need not wait for Python
        for _ in compiled(absent, on.capability, load, stopping, linked):
            pass
    return Prepared(
        tuple(names),
        tuple([kernel.name for kernel in missing if kernel.name not in names]),
        time.perf_counter_ns() - loaded if absent else 0,
        loaded - started,
    )


def _tell() -> None:
    """Tell the user that compiling takes long."""
    logs.tell_of_slow_build(
        f"compiling the kernels of a function for a GPU takes more than {logs.SLOW_S:g} s."
    )
