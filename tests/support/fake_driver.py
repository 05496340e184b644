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

import numpy as np
import ptx_emulator
import pytest
from ptx_emulator import Kernel, Memory

from tracejit.record import monitor
from tracejit.record.recorder import suspended
from tracejit.runtime.cuda import driver as drivers
from tracejit.runtime.cuda.library import PROTOTYPES

_ATTRIBUTES = {75: 8, 76: 0, 115: 1, 13: 1_000_000, 16: 108, 87: 2}
_NAMES = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
          700: "CUDA_ERROR_ILLEGAL_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED"}  # fmt: skip


@cache
def kernel_of(ptx: str) -> Kernel:
    return Kernel(ptx)


def _number(value: Any) -> int:
    """Return the number of a handle or an integer."""
    value = getattr(value, "value", value)
    return 0 if value is None else int(value)


class _Work:
    """Work on a stream."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.is_done = False


class _Child:
    """A captured graph: the names of what it runs, and that."""

    def __init__(self, works: list[tuple[str, Callable[[], Any]]]) -> None:
        self.works = works


class FakeLibrary:
    """The functions of the driver's library.

    Attributes:
        calls: names of the functions that were called, in order.
        faults: statuses by the name of a function; it returns the status instead of doing its work.
        version, devices: what the driver says of itself.
        others: addresses that belong to other devices, with their numbers.
        pinned: page-locked memory of the host by its address, which is read when a copy runs.
        total: bytes of the device's memory.
        launched, streams: the kernels that were launched, and the streams of the launches of graphs.
        clock, times: the time in ms, to which a launch adds as many as it has blocks, and that of events in graphs.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.faults: dict[str, int] = {}
        self.version, self.devices, self.total = 12040, 1, 1 << 30
        self.others: dict[int, int] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.attributes = dict(_ATTRIBUTES)
        self.memory = Memory()
        self.sizes: dict[int, int] = {}
        self.objects: dict[int, Any] = {}
        self.queues: dict[int, list[_Work]] = {}  # of streams
        self.captured: dict[int, list[tuple[str, Callable[[], Any]]]] = {}  # of streams
        self.launched: list[str] = []
        self.streams: list[int] = []
        self.clock, self.times = 0.0, dict[int, float]()
        self._last = 0x1000
        self._by_address: dict[str, Any] = {}
        self._lock = threading.RLock()  # calls come from any thread

    def __getattr__(self, name: str) -> Callable[..., int]:
        method: Callable[..., int] | None = vars(type(self)).get(f"_{name}")
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

    def new(self, out: Any, *what: Any) -> None:
        self._last += 16
        self.objects[self._last] = what
        out._obj.value = self._last

    def put(self, stream: Any, run: Callable[[], Any], name: str = "") -> None:
        if _number(stream) in self.captured:
            self.captured[_number(stream)].append((name, run))
            return
        self.queues.setdefault(_number(stream), []).append(_Work(run))

    def finish(self, stream: int, last: "_Work | None" = None) -> None:
        """Run the work of a stream, up to some work."""
        queue = self.queues.setdefault(stream, [])
        while queue and (last is None or not last.is_done):
            work = queue.pop(0)
            work.run()
            work.is_done = True

    @property
    def waiting(self) -> int:
        """How much work has not run."""
        return sum(map(len, self.queues.values()))

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
        out._obj.value = self.attributes[number]

    def _cuDeviceTotalMem_v2(self, out: Any, device: int) -> None:
        out._obj.value = self.total

    def _cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> None:
        self.new(out, "context")

    def _cuCtxSetCurrent(self, context: Any) -> None:
        assert self.objects[_number(context)] == ("context",)

    def _cuPointerGetAttribute(self, out: int, number: int, address: int) -> int | None:
        known = any(start <= address < start + max(size, 1) for start, size in self.sizes.items())
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
        whole = self.pinned.get(source)
        data = np.frombuffer(ctypes.string_at(source, size), np.uint8) if whole is None else whole
        self.put(stream, lambda: self.memory.store(_addresses(target, size), data.reshape(-1).view(np.uint8)))

    def _cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:
        self.put(stream, lambda: ctypes.memmove(target, self.memory.copy(source, size).tobytes(), size))

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: int) -> None:
        self.put(stream, lambda: self.memory.store(_addresses(target, size), self.memory.copy(source, size)))

    def _cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> None:
        self.put(stream, lambda: self.memory.store(_addresses(address, size), np.full(size, value, np.uint8)))

    # Streams and events.

    def _cuStreamSynchronize(self, stream: Any) -> None:
        self.finish(_number(stream))

    def _cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> None:
        kind, recorded = self.objects[_number(event)]
        assert kind == "event"
        if recorded is not None:
            self.put(stream, lambda: self.finish(*recorded))

    def _cuEventCreate(self, out: Any, flags: int) -> None:
        self.new(out, "event", None)

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        assert self.objects[_number(event)][0] == "event"
        queue = self.queues.get(_number(stream))
        self.objects[_number(event)] = "event", (_number(stream), queue[-1]) if queue else None

    def _cuEventSynchronize(self, event: Any) -> None:
        _, recorded = self.objects[_number(event)]
        if recorded is not None:
            self.finish(*recorded)

    def _cuEventElapsedTime(self, out: Any, first: Any, last: Any) -> None:
        times = [self.times.get(_number(event)) for event in (first, last)]
        out._obj.value = 1.0 if None in times else times[1] - times[0]

    def _run(self, kernel: Kernel, words: list[int], grid: tuple[int, int]) -> None:
        self.clock += grid[0]
        kernel.run(words, self.memory, *grid)

    def _tell(self, event: int) -> None:
        self.clock += 0.25
        self.times[event] = self.clock

    def _cuEventDestroy_v2(self, event: Any) -> None:
        del self.objects[_number(event)]

    # Captures: what is put on the stream meanwhile becomes the launches of a graph.

    def _cuStreamCreate(self, out: Any, flags: int) -> None:
        assert flags == 1
        self.new(out, "stream")

    def _cuStreamDestroy_v2(self, stream: Any) -> None:
        self.captured.pop(_number(stream), None)
        del self.objects[_number(stream)]

    def _cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> None:
        assert self.objects[_number(stream)] == ("stream",) and mode == 2
        self.captured[_number(stream)] = []

    def _cuStreamEndCapture(self, stream: Any, out: Any) -> None:
        works = self.captured.pop(_number(stream))
        self.new(out, "graph", [(0, _Child(works), [])])

    def _cuGraphAddChildGraphNode(self, out: Any, graph: Any, before: Any, count: int, child: Any) -> None:
        ((_, launch, _),) = self.objects[_number(child)][1]
        self.add_node(out, graph, before, count, launch)

    # Kernels and graphs.

    def _cuModuleLoadDataEx(self, out: Any, code: bytes, count: int, names: Any, values: Any) -> int | None:
        assert code.endswith(b"\0")
        text = code[:-1].decode()
        if ".target sm_" not in text:
            return 200
        self.new(out, "module", text)
        return None

    def _cuModuleGetFunction(self, out: Any, module: Any, name: bytes) -> int | None:
        _, text = self.objects[_number(module)]
        if not re.search(rf"\.entry {name.decode()}\(", text):
            return 500
        self.new(out, "function", text, name.decode(), _number(module))
        return None

    def _cuModuleUnload(self, module: Any) -> None:
        del self.objects[_number(module)]

    def _cuGraphCreate(self, out: Any, flags: int) -> None:
        self.new(out, "graph", [])

    def _cuGraphAddKernelNode_v2(
        self, out: Any, graph: Any, before: Any, count: int, parameters: Any
    ) -> None:
        self.add_node(out, graph, before, count, self.launch_of(parameters._obj))

    def add_node(self, out: Any, graph: Any, before: Any, count: int, launch: Any) -> None:
        nodes = self.objects[_number(graph)][1]
        needed = [int(before[i]) for i in range(count)]
        assert all(any(node == known for known, *_ in nodes) for node in needed)
        self.new(out, "node")
        nodes.append((out._obj.value, launch, needed))

    def _cuGraphAddEventRecordNode(self, out: Any, graph: Any, before: Any, count: int, event: Any) -> None:
        assert self.objects[_number(event)][0] == "event"
        self.add_node(out, graph, before, count, _number(event))

    def _cuGraphInstantiateWithFlags(self, out: Any, graph: Any, flags: int) -> None:
        nodes = self.objects[_number(graph)][1]
        self.new(out, "executable", {node: launch for node, launch, _ in nodes})

    def _cuGraphExecKernelNodeSetParams_v2(self, executable: Any, node: Any, parameters: Any) -> None:
        launches = self.objects[_number(executable)][1]
        assert isinstance(launches[_number(node)], tuple)
        launches[_number(node)] = self.launch_of(parameters._obj)

    def _cuGraphLaunch(self, executable: Any, stream: int | None) -> None:
        self.streams.append(_number(stream))
        for launch in [*self.objects[_number(executable)][1].values()]:
            if isinstance(launch, int):
                self.put(stream, lambda event=launch: self._tell(event))
                continue
            if isinstance(launch, _Child):
                for name, run in launch.works:
                    self.launched.append(name)
                    self.put(stream, run)
                continue
            name, kernel, words, grid = launch
            self.launched.append(name)
            self.put(stream, lambda kernel=kernel, words=words, grid=grid: self._run(kernel, words, grid))

    def _cuGraphExecDestroy(self, executable: Any) -> None:
        del self.objects[_number(executable)]

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
        for module in (sys.modules[__name__], ptx_emulator):
            patch.setitem(monitor.files, str(module.__file__), True)
        patch.setattr("tracejit.compile.link.linker_version", lambda: None)
        patch.setattr("tracejit.compile.link._library", lambda: None)
        with drivers.replaced(drivers.Driver(library, kept_bytes=kept_bytes)):
            yield library
