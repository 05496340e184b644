# SPDX-License-Identifier: BSD-3-Clause
"""Driver: the device of this process, through the functions of NVIDIA's driver.

Note [memory is used again]
A replay needs memory for its results, and calls of the driver for it take longer than a short replay. So memory that is
freed is kept, by its size, and given out again. That is safe because work that is put on the stream later runs later.
As a side effect, a loop gets the same few addresses in turn, and graphs are kept for these
(runtime/cuda/executable.py).
"""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

from tracejit.compile.capability import Capability
from tracejit.errors import ArgumentError, DeviceError, DeviceMemoryError
from tracejit.kernels.executor import state
from tracejit.runtime.cuda import library as libraries
from tracejit.runtime.cuda.calls import NO_DEVICE, DriverCalls, Ends
from tracejit.runtime.cuda.lanes import Lane, Lanes
from tracejit.util.locks import new_lock
from tracejit.util.text import brief

DEFAULT_STREAM = state.DEFAULT_STREAM
_MAJOR, _MINOR, _POOLS, _PAGEABLE = 75, 76, 115, 88  # attributes of a device
_ORDINAL = 9  # attribute of a pointer
_KEEP_BYTES = 4  # attribute of a pool
_WITHOUT_TIME = 2  # flag of an event
_KEPT_BYTES = 1 << 32  # of freed memory that is kept for the next call, by this file and again by the pool
UNIT = 512  # bytes: the memory of arrays is a multiple of it, so that similar ones share what is kept


class Driver(DriverCalls):
    """A device, its memory and its work.

    Args:
        library: the driver's functions, by name.
        ordinal: the number of the device.
        kept_bytes: of freed memory that is kept (Note [memory is used again]), at most an eighth of the device's.

    Attributes:
        name: of the device.
        version: of CUDA that the driver is made for, as 1000 * major + 10 * minor.
        capability: of the device.
        total_bytes: of the device's memory.
        reads_pageable: whether the device reads all memory of the host itself.
        takes_cubins: whether it has refused none that NVIDIA's linker made.
        lanes: what threads put their work on.

    Raises:
        DeviceError: if the driver is too old, or there is no such device.
    """

    def __init__(self, library: Any, ordinal: int = 0, kept_bytes: int = _KEPT_BYTES) -> None:
        super().__init__(library, ordinal)
        # Without a lock, since memory is freed at any time: threads may count a piece wrongly.
        self._kept_bytes = 0
        self._check("cuInit", library.cuInit(0))
        version, count, device = c_int(), c_int(), c_int()
        self._check("cuDriverGetVersion", library.cuDriverGetVersion(byref(version)))
        self.version = version.value
        if self.version < libraries.LEAST_VERSION:
            raise DeviceError(
                f'target="cuda": the NVIDIA driver is too old: it is made for CUDA {_dotted(self.version)}, expected '
                f"{_dotted(libraries.LEAST_VERSION)} or newer. Update the driver (525.60 or newer), or use "
                'target="cpu".'
            )
        self._check("cuDeviceGetCount", library.cuDeviceGetCount(byref(count)))
        if ordinal >= count.value:
            raise self._error("cuDeviceGet", NO_DEVICE[0])
        self._check("cuDeviceGet", library.cuDeviceGet(byref(device), ordinal))
        self._device = device.value
        name = ctypes.create_string_buffer(256)
        self._check("cuDeviceGetName", library.cuDeviceGetName(name, 256, self._device))
        self.name = name.value.decode(errors="replace")
        self.capability = Capability(self.attribute(_MAJOR), self.attribute(_MINOR))
        total = c_size_t()
        self._check("cuDeviceTotalMem_v2", library.cuDeviceTotalMem_v2(byref(total), self._device))
        self.total_bytes = total.value
        self.reads_pageable = bool(self.attribute(_PAGEABLE))
        self._most_kept_bytes = min(kept_bytes, self.total_bytes // 8)
        if not self.attribute(_POOLS):
            raise DeviceError(
                f'target="cuda": {self.name} has no memory pools, which the driver of this system does not offer. '
                'Use target="cpu".'
            )
        status = library.cuDevicePrimaryCtxRetain(byref(self._context), self._device)
        self._check("cuDevicePrimaryCtxRetain", status)
        self._keep_memory()
        self.takes_cubins = True
        self.lanes = Lanes(self)
        self.words[state.DEVICE_CONTEXT] = self._context.value or 0
        self.words[state.DEVICE_SET_CONTEXT] = libraries.address_of(library.cuCtxSetCurrent)
        self.words[state.DEVICE_LAUNCH] = libraries.address_of(library.cuGraphLaunch)

    def _keep_memory(self) -> None:
        """Let the pool keep freed memory, so that a replay's results need no call of the operating system."""
        pool, kept = c_void_p(), c_uint64(min(_KEPT_BYTES, self.total_bytes // 8))
        self.call("cuDeviceGetDefaultMemPool", byref(pool), self._device)
        self.call("cuMemPoolSetAttribute", pool.value, _KEEP_BYTES, ctypes.addressof(kept))

    def attribute(self, number: int) -> int:
        """Return an attribute of the device, by its number in the driver's header."""
        value = c_int()
        status = self._library.cuDeviceGetAttribute(byref(value), number, self._device)
        self._check("cuDeviceGetAttribute", status)
        return value.value

    def replay(self, executable: int) -> None:
        """Put an executable graph on the stream; as call() does, in less time.

        Raises:
            DeviceError: if it fails.
        """
        if self.is_lost:
            self.refuse_if_lost()
        library = self._library
        status = library.cuCtxSetCurrent(self._context) or library.cuGraphLaunch(executable, self.stream)
        self._check("cuGraphLaunch", status)

    def check_launch(self, status: int) -> None:
        """Check the status of a launch that a compiled entry made.

        Raises:
            DeviceError: if it failed.
        """
        self._check("cuGraphLaunch", status)

    # Streams.

    @property
    def lane(self) -> Lane:
        """The lane of this thread or task (Note [streams] in lanes.py)."""
        return self.lanes.own

    @property
    def stream(self) -> int:
        """The handle of the stream that work of this thread or task is put on."""
        return self.lanes.own.handle

    def wait(self, stream: int, on: int) -> None:
        """Let the stream `on` wait for all that was put on `stream`."""
        if stream == on:
            return
        event = c_void_p()
        self.call("cuEventCreate", byref(event), _WITHOUT_TIME)
        try:
            self.call("cuEventRecord", event, stream)
            self.call("cuStreamWaitEvent", on, event, 0)
        finally:
            self.release("cuEventDestroy_v2", event)

    def synchronize(self) -> None:
        """Wait until all work of the stream is done."""
        self.call("cuStreamSynchronize", self.stream)

    def time_ms(self, work: Any, repeats: int = 1) -> float:
        """Return how many milliseconds the device takes for what `work()` puts on the stream, on average."""
        first, last, took = c_void_p(), c_void_p(), c_float()
        try:
            self.call("cuEventCreate", byref(first), 0)
            self.call("cuEventCreate", byref(last), 0)
            self.call("cuEventRecord", first, self.stream)
            for _ in range(repeats):
                work()
            self.call("cuEventRecord", last, self.stream)
            self.call("cuEventSynchronize", last)
            self.call("cuEventElapsedTime", byref(took), first, last)
        finally:
            for event in (first, last):
                if event.value:
                    self.release("cuEventDestroy_v2", event)
        return took.value / repeats

    # Memory.

    def allocate(self, size: int) -> int:
        """Return the address of memory, a multiple of 256.

        Args:
            size: in bytes; the same is given to free(). Only multiples of UNIT are used again.

        Raises:
            DeviceMemoryError: if there is not enough.
        """
        kept = self.lane.kept.get(size)
        if kept:
            try:
                address = kept.pop()
            except IndexError:  # another thread took it
                pass
            else:
                self._kept_bytes -= size
                return address
        try:
            return self._new_memory(size)
        except DeviceMemoryError:
            if not self._kept_bytes:
                raise
        self.trim()
        return self._new_memory(size)

    def _new_memory(self, size: int) -> int:
        address = c_uint64()
        self.call("cuMemAllocAsync", byref(address), max(size, 1), self.stream)
        return address.value

    def free(self, address: int, size: int, lane: Lane, _ends: Ends = sys.is_finalizing) -> None:
        """Free memory of `size` bytes, after all work that was put on a lane (Note [memory is used again])."""
        if _ends():  # as in release()
            return
        lane = lane.now()
        if size % UNIT or self._kept_bytes + size > self._most_kept_bytes:
            self._give_back(address, size, lane)
        else:
            self._keep(address, size, lane)

    def _keep(self, address: int, size: int, lane: Lane) -> None:
        self._kept_bytes += size
        lane.keep(size, address)

    def _give_back(self, address: int, size: int, lane: Lane) -> None:
        """Give memory to the driver; keep it if it is not taken now, as while another library captures a stream."""
        if not self.release("cuMemFreeAsync", address, lane.handle):
            self._keep(address, size, lane)

    def trim(self) -> None:
        """Give the memory that is kept back to the driver, whose pool keeps some of it in turn."""
        for lane in self.lanes.every():
            for size, kept in list(lane.kept.items()):
                for _ in range(len(kept)):
                    try:
                        address = kept.pop(0)  # what the driver does not take is kept again, at the end
                    except IndexError:  # another thread took it
                        break
                    self._kept_bytes -= size
                    self._give_back(address, size, lane)

    def upload(self, address: int, data: np.ndarray) -> None:
        """Copy a contiguous ndarray to the device; it may be written as soon as this returns."""
        if not data.nbytes:
            return
        # The driver reads page-locked memory (PyTorch's pin_memory) when the copy runs. All other memory it copies to
        # a place of its own before it returns, unless the device reads it itself.
        if self.device_of(data.ctypes.data) is not None:
            data = data.copy()
        self.call("cuMemcpyHtoDAsync_v2", address, data.ctypes.data, data.nbytes, self.stream)
        if self.reads_pageable:
            self.synchronize()

    def download(self, data: np.ndarray, address: int) -> None:
        """Copy from the device into a contiguous ndarray, and wait for it."""
        self.begin_download(data, address)
        self.synchronize()

    def begin_download(self, data: np.ndarray, address: int) -> None:
        """Copy from the device into a contiguous ndarray, whose elements are there after synchronize()."""
        if data.nbytes:
            self.call("cuMemcpyDtoHAsync_v2", data.ctypes.data, address, data.nbytes, self.stream)

    def read(self, places: Sequence[tuple[np.ndarray, int]]) -> None:
        """Copy from addresses on the device into contiguous ndarrays, and wait once for all of them."""
        for data, address in places:
            self.begin_download(data, address)
        if places:
            self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes from one place on the device to another one."""
        if size:
            self.call("cuMemcpyDtoDAsync_v2", target, source, size, self.stream)

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""
        self.call("cuMemsetD8Async", address, 0, size, self.stream)

    def memory(self) -> tuple[int, int]:
        """Return the free and the total bytes of the device's memory."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def device_of(self, address: int) -> int | None:
        """Return the number of the device that an address belongs to, None if it belongs to none."""
        ordinal = c_int()
        self.make_current()
        status = self._library.cuPointerGetAttribute(ctypes.addressof(ordinal), _ORDINAL, address)
        return None if status else ordinal.value

    # Kernels.

    def load(self, code: bytes, name: str) -> int:
        """Return the function `name` in PTX, which the driver compiles, or in a cubin. It stays loaded."""
        module, function = c_void_p(), c_void_p()
        self.call("cuModuleLoadDataEx", byref(module), code + b"\0", 0, None, None)
        try:
            self.call("cuModuleGetFunction", byref(function), module, name.encode())
        except DeviceError:
            self.release("cuModuleUnload", module)
            raise
        return function.value or 0


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


class _OpenDriver:
    """The driver of this process: opened when it is first needed."""

    driver: Driver | None = None
    lock = new_lock()


def driver() -> Driver:
    """Return the driver of this process.

    Raises:
        DeviceError: if there is no driver, no device, or the device is lost.
    """
    with _OpenDriver.lock:
        if _OpenDriver.driver is None:
            _OpenDriver.driver = Driver(libraries.load())
        current = _OpenDriver.driver
    current.refuse_if_lost()
    return current


@contextmanager
def replaced(other: Driver | None) -> Iterator[None]:
    """Use another driver while the block runs, such as one of a test; None opens one when it is needed."""
    before, _OpenDriver.driver = _OpenDriver.driver, other
    try:
        yield
    finally:
        _OpenDriver.driver = before


@contextmanager
def stream(handle: Any) -> Iterator[None]:
    """Put the work of tracejit on a stream of the caller while the block runs, for this thread (or asyncio task).

    Args:
        handle: the address of a CUDA stream, or an object that has it: ``cuda_stream`` (PyTorch), ``ptr`` (CuPy) or
            ``__cuda_stream__``.

    Raises:
        ArgumentError: if it is no stream.
    """
    with driver().lanes.using(stream_of(handle)):
        yield


def stream_of(handle: Any) -> int:
    """Return the address of a stream.

    Raises:
        ArgumentError: if it is no stream.
    """
    protocol = getattr(handle, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for name in ("cuda_stream", "ptr"):
        handle = getattr(handle, name, handle)
    if isinstance(handle, bool) or not isinstance(handle, int) or handle < 0:
        raise ArgumentError(
            f"stream: expected the address of a CUDA stream, or a stream of PyTorch, CuPy or cuda.core, not "
            f"{brief(handle)}."
        )
    return handle
