# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for NVIDIA's driver library: memory of the host for that of a device, kernels by the emulator of PTX.

Its functions take what ctypes would hand to the real ones. Work waits on its stream until somebody waits for that
stream, and a stream runs others only as far as it waits for their events; so results that are read too early are not
there, and memory that is used again too early has other elements. Faults are injected by the name of a function.
`leaks` counts what was not freed.
"""

# ruff: noqa: N802, N815 - the names are those of the driver

import ctypes
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import fake_streams
import numpy as np
import ptx_emulator
import pytest
from fake_streams import Child, FakeStreams, number_of
from ptx_emulator import Kernel, Memory

from tracejit.record import monitor
from tracejit.record.recorder import suspended
from tracejit.runtime.cuda import driver as drivers
from tracejit.runtime.cuda.library import PROTOTYPES

_ATTRIBUTES = {75: 8, 76: 0, 88: 0, 115: 1, 13: 1_000_000, 16: 108, 87: 2}
_NAMES = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
          700: "CUDA_ERROR_ILLEGAL_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED"}  # fmt: skip


@cache
def kernel_of(ptx: str) -> Kernel:
    return Kernel(ptx)


class FakeLibrary(FakeStreams):
    """The functions of the driver's library.

    Attributes:
        calls: names of the functions that were called, in order.
        faults: statuses by the name of a function; it returns the status instead of doing its work.
        version, devices: what the driver says of itself.
        others: addresses that belong to other devices, with their numbers.
        pinned: page-locked memory of the host by its address, which is read when a copy runs. So is all memory if the
            device reads that of the host (attribute 88).
        total: bytes of the device's memory.
        launched, streams: the kernels that were launched, and the streams of the launches of graphs.
        clock: the time in ms, to which a launch adds as many as it has blocks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.faults: dict[str, int] = {}
        self.version, self.devices, self.total = 12040, 1, 1 << 30
        self.others: dict[int, int] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.attributes = dict(_ATTRIBUTES)
        self.memory = Memory()
        self.sizes: dict[int, int] = {}
        self.launched: list[str] = []
        self.streams: list[int] = []
        self.clock = 0.0
        self._by_address: dict[str, Any] = {}
        self._lock = threading.RLock()  # calls come from any thread

    def __getattr__(self, name: str) -> Callable[..., int]:
        method: Callable[..., int] | None = getattr(type(self), f"_{name}", None)
        if name not in PROTOTYPES or method is None:
            raise AttributeError(name)

        def called(*arguments: Any) -> int:
            assert len(arguments) == len(PROTOTYPES[name]), name
            with self._lock:
                if name == "cuGetErrorName":
                    return method(self, *arguments) or 0
                self.calls.append(name)
                if name in self.faults:
                    return self.faults[name]
                with monitor.paused(), suspended():  # this file is no part of what is recorded
                    return method(self, *arguments) or 0

        if name not in ("cuCtxSetCurrent", "cuGraphLaunch"):
            return called
        # Compiled entries call these by their addresses.
        return self._by_address.setdefault(name, ctypes.CFUNCTYPE(ctypes.c_int, *PROTOTYPES[name])(called))

    @property
    def leaks(self) -> int:
        """Pieces of memory, graphs, events and streams that were not freed, and modules without a function."""
        used = {what[3] for what in self.objects.values() if what[0] == "function"}
        return len(self.sizes) + sum(
            what[0] in ("graph", "executable", "event", "stream")
            or (what[0] == "module" and number not in used)
            for number, what in self.objects.items()
        )

    # The device.

    def _cuInit(self, flags: int) -> None:
        assert flags == 0

    def _cuDriverGetVersion(self, out: Any) -> None:
        out._obj.value = self.version

    def _cuGetErrorName(self, status: int, out: Any) -> None:
        out._obj.value = _NAMES.get(status, f"CUDA_ERROR_{status}").encode()

    def _cuDeviceGetCount(self, out: Any) -> None:
        out._obj.value = self.devices

    def _cuDeviceGet(self, out: Any, ordinal: int) -> None:
        out._obj.value = ordinal

    def _cuDeviceGetName(self, out: Any, size: int, device: int) -> None:
        out.value = b"Emulated GPU"

    def _cuDeviceGetAttribute(self, out: Any, number: int, device: int) -> None:
        out._obj.value = self.attributes.get(number, 0)

    def _cuDeviceTotalMem_v2(self, out: Any, device: int) -> None:
        out._obj.value = self.total

    def _cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> None:
        self.new(out, "context")

    def _cuCtxSetCurrent(self, context: Any) -> None:
        assert self.objects[number_of(context)] == ("context",)

    def _cuPointerGetAttribute(self, out: int, number: int, address: int) -> int | None:
        known = any(start <= address < start + max(size, 1) for start, size in self.sizes.copy().items())
        if not known and address not in self.others and address not in self.pinned:
            return 1
        ctypes.c_int.from_address(out).value = self.others.get(address, 0)
        return None

    def _cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free._obj.value, total._obj.value = self.total - sum(self.sizes.values()), self.total

    # Memory.

    def _cuDeviceGetDefaultMemPool(self, out: Any, device: int) -> None:
        self.new(out, "pool")

    def _cuMemPoolSetAttribute(self, pool: int, number: int, value: int) -> None:
        assert self.objects[pool] == ("pool",)

    def _cuMemAllocAsync(self, out: Any, size: int, stream: int) -> int | None:
        if sum(self.sizes.values()) + size > self.total:
            return 2
        address = self.memory.add(np.full(size, 0xA5, np.uint8), is_written=False)
        self.sizes[address] = size
        out._obj.value = address
        return None

    def _cuMemFreeAsync(self, address: int, stream: int) -> int | None:
        if self.sizes.pop(address, None) is None:
            return 1
        self.put(stream, lambda: self.memory.remove(address))
        return None

    def _cuMemcpyHtoDAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:
        def read() -> np.ndarray:
            return np.frombuffer(ctypes.string_at(source, size), np.uint8)

        reads_late = source in self.pinned or self.attributes[88]
        data = None if reads_late else read()
        self.put(
            stream, lambda: self.memory.store(_addresses(target, size), read() if data is None else data)
        )

    def _cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:
        self.put(stream, lambda: ctypes.memmove(target, self.memory.copy(source, size).tobytes(), size))

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:
        self.put(stream, lambda: self.memory.store(_addresses(target, size), self.memory.copy(source, size)))

    def _cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> None:
        self.put(stream, lambda: self.memory.store(_addresses(address, size), np.full(size, value, np.uint8)))

    def _cuGraphAddChildGraphNode(self, out: Any, graph: Any, before: Any, count: int, child: Any) -> None:
        ((_, launch, _),) = self.objects[number_of(child)][1]
        self.add_node(out, graph, before, count, launch)

    # Kernels and graphs.

    def _run(self, kernel: Kernel, words: list[int], grid: tuple[int, int]) -> None:
        self.clock += grid[0]
        kernel.run(words, self.memory, *grid)

    def _tell(self, event: int) -> None:
        self.clock += 0.25
        self.times[event] = self.clock

    def _cuModuleLoadDataEx(self, out: Any, code: bytes, count: int, names: Any, values: Any) -> int | None:
        assert code.endswith(b"\0")
        text = code[:-1].decode()
        if ".target sm_" not in text:
            return 200
        self.new(out, "module", text)
        return None

    def _cuModuleGetFunction(self, out: Any, module: Any, name: bytes) -> int | None:
        _, text = self.objects[number_of(module)]
        if not re.search(rf"\.entry {name.decode()}\(", text):
            return 500
        self.new(out, "function", text, name.decode(), number_of(module))
        return None

    def _cuModuleUnload(self, module: Any) -> None:
        del self.objects[number_of(module)]

    def _cuGraphCreate(self, out: Any, flags: int) -> None:
        self.new(out, "graph", [])

    def _cuGraphAddKernelNode_v2(
        self, out: Any, graph: Any, before: Any, count: int, parameters: Any
    ) -> None:
        self.add_node(out, graph, before, count, self.launch_of(parameters._obj))

    def add_node(self, out: Any, graph: Any, before: Any, count: int, launch: Any) -> None:
        nodes = self.objects[number_of(graph)][1]
        needed = [int(before[i]) for i in range(count)]
        assert all(any(node == known for known, *_ in nodes) for node in needed)
        self.new(out, "node")
        nodes.append((out._obj.value, launch, needed))

    def _cuGraphAddEventRecordNode(self, out: Any, graph: Any, before: Any, count: int, event: Any) -> None:
        assert self.objects[number_of(event)][0] == "event"
        self.add_node(out, graph, before, count, number_of(event))

    def _cuGraphInstantiateWithFlags(self, out: Any, graph: Any, flags: int) -> None:
        nodes = self.objects[number_of(graph)][1]
        self.new(out, "executable", {node: launch for node, launch, _ in nodes})

    def _cuGraphExecKernelNodeSetParams_v2(self, executable: Any, node: Any, parameters: Any) -> None:
        launches = self.objects[number_of(executable)][1]
        assert isinstance(launches[number_of(node)], tuple)
        launches[number_of(node)] = self.launch_of(parameters._obj)

    def _cuGraphLaunch(self, executable: Any, stream: int | None) -> None:
        self.streams.append(number_of(stream))
        for launch in [*self.objects[number_of(executable)][1].values()]:
            if isinstance(launch, int):
                self.put(stream, lambda event=launch: self._tell(event))
                continue
            if isinstance(launch, Child):
                for name, run in launch.works:
                    self.launched.append(name)
                    self.put(stream, run)
                continue
            name, kernel, words, grid = launch
            self.launched.append(name)
            self.put(stream, lambda kernel=kernel, words=words, grid=grid: self._run(kernel, words, grid))

    def _cuGraphExecDestroy(self, executable: Any) -> None:
        del self.objects[number_of(executable)]

    _cuGraphDestroy = _cuGraphExecDestroy

    def launch_of(self, parameters: Any) -> tuple[str, Kernel, list[int], tuple[int, int]]:
        """Return the launch in a driver's structure, whose arguments are copied."""
        _, text, name, _ = self.objects[parameters.function]
        kernel = kernel_of(text)
        size = int(re.search(rf"\.b8 {name}_param_0\[(\d+)\]", text)[1])  # type: ignore[index]
        words = np.frombuffer(ctypes.string_at(parameters.parameters[0], size), np.int64)
        assert parameters.grid_y == parameters.grid_z == parameters.block_y == parameters.block_z == 1
        return name, kernel, words.tolist(), (parameters.grid_x, parameters.block_x)


def _addresses(first: int, size: int) -> np.ndarray:
    return np.uint64(first) + np.arange(size, dtype=np.uint64)


@contextmanager
def fake_device(kept_bytes: int = 0) -> Iterator[FakeLibrary]:
    """Use a fake driver while the block runs; by default memory that is used again is not left over from before.

    It takes PTX, so an installed linker is not used. Recordings take its Python code as a library's, as NVIDIA's is.
    """
    library = FakeLibrary()
    with pytest.MonkeyPatch.context() as patch:
        for module in (sys.modules[__name__], fake_streams, ptx_emulator):
            patch.setitem(monitor.files, str(module.__file__), True)
        patch.setattr("tracejit.compile.link.linker_version", lambda: None)
        patch.setattr("tracejit.compile.link._library", lambda: None)
        with drivers.replaced(drivers.Driver(library, kept_bytes=kept_bytes)):
            yield library
