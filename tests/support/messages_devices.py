# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages for GPUs, met through the stand-in for NVIDIA's driver."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cublas import FakeCublas, fake_cublas
from fake_driver import FakeLibrary, fake_device

import tracejit as tj
from tracejit.aval import Aval
from tracejit.errors import (
    ArgumentError,
    CodegenError,
    DeviceError,
    DeviceMemoryError,
    DTypeError,
    WriteError,
)
from tracejit.program import BlasProduct, Grid, HostCall, Kernel, ProductOperand, Program, Row, Symbol
from tracejit.runtime.cuda import cublas, library, steps
from tracejit.runtime.cuda.cublas_products import BlasRoutine
from tracejit.runtime.cuda.driver import Driver, driver, stream

X = np.ones((2, 3))


def _met(kept: Any) -> Any:
    def _function() -> Any:
        return kept

    _function.__qualname__ = "_function"
    return tj.dlaccelerate(_function, target="cpu")()


def on_device(call: Callable[[FakeLibrary], object]) -> Callable[[], object]:
    """Return a call that has a device."""

    def provoke() -> object:
        with fake_device() as fake:
            return call(fake)

    return provoke


def opened(**attributes: Any) -> Callable[[], object]:
    """Return a call that opens a driver with these attributes."""

    def provoke() -> object:
        fake = FakeLibrary()
        for name, value in attributes.items():
            setattr(fake, name, value)
        return Driver(fake)

    return provoke


def failing(name: str, status: int) -> Callable[[], object]:
    """Return a call of a function of the driver that fails."""

    def call(fake: FakeLibrary) -> object:
        fake.faults[name] = status
        return tj.gpu(X)

    return on_device(call)


def lost(fake: FakeLibrary) -> object:
    fake.faults["cuMemAllocAsync"] = 719
    try:
        tj.gpu(X)
    except DeviceError:
        return driver()
    return None


def foreign(address: int, **more: Any) -> Any:
    """Return an array of another library."""
    interface = {"shape": (3,), "typestr": "<f4", "data": (address, False), "version": 3, **more}
    return type("Foreign", (), {"__cuda_array_interface__": property(lambda self: interface)})()


def capsule(read_only: bool, strides: tuple[int, ...] | None) -> object:
    """Return a capsule of an array of another library that shows memory of ours."""
    own = tj.gpu(np.ones(9, np.float32))
    place = own.__cuda_array_interface__["data"][0]
    return tj.dlarray(foreign(place, data=(place, read_only), strides=strides)).__dlpack__()


def on_another(fake: FakeLibrary) -> object:
    fake.others[0x7000] = 1
    return tj.dlarray(foreign(0x7000))


def added(x: Any, y: Any) -> Any:
    return x + y


def shared(fake: FakeLibrary) -> object:
    def written(x: Any, y: Any) -> Any:
        x += 1
        return y.sum()

    x = tj.gpu(np.zeros(4, np.float32))
    start = x.__cuda_array_interface__["data"][0]
    assert x.device == "cuda:0"
    return tj.dlaccelerate(written)(x, tj.dlarray(foreign(start)))


SIDE = ProductOperand(0, False, 3, 0)
PRODUCT = BlasProduct("float64", 1, 2, 2, 3, SIDE, SIDE._replace(slot=1), SIDE._replace(slot=2), False)


def with_library(plant: Callable[[pytest.MonkeyPatch, FakeCublas], object]) -> Callable[[], object]:
    """Return a product by a library in which something is planted."""

    def provoke() -> object:
        load = cublas.load
        with fake_device() as fake, fake_cublas(fake) as library, pytest.MonkeyPatch.context() as patch:
            plant(patch, library)
            if cublas.files(12) == ["libno.so.12"]:
                patch.setattr(cublas, "load", load)
            routine = BlasRoutine(cublas.cublas_of(driver()), PRODUCT, (8, 8, 8))
            return routine.enqueue(np.zeros(3, np.int64), 0, 0)

    return provoke


def _old_library() -> Any:
    library = SimpleNamespace(**{name: SimpleNamespace() for name in (*cublas.PROTOTYPES, *cublas.OTHERS)})

    class Version:
        def __call__(self) -> int:
            return 111103

    library.cublasLtGetVersion = Version()
    return library


def row(host: HostCall | None = None, *arguments: Any) -> Row:
    return Row(Kernel("kernel_1", "", host), arguments, "", (), grid=Grid(1, 1))


def program(*rows: Row) -> Program:
    return Program([*rows], [], [Aval((), None, np.dtype(np.float64))], [], 0)


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: library.load(("libno.so.1",)),
        DeviceError,
        'target="cuda": there is no NVIDIA driver on this machine (libno.so.1 was not found). Install the '
        "driver of the "
        'GPU (nvidia.com/drivers; nothing else of CUDA is needed), or use target="cpu".',
    ),
    (
        lambda: library.declared(SimpleNamespace()),
        DeviceError,
        'target="cuda": the NVIDIA driver is too old: it has no cuInit. Update it to one of CUDA 12 or newer '
        "(525.60 or "
        'newer), or use target="cpu".',
    ),
    (
        opened(version=11080),
        DeviceError,
        'target="cuda": the NVIDIA driver is too old: it is made for CUDA 11.8, expected 12.0 or newer. Update the '
        'driver (525.60 or newer), or use target="cpu".',
    ),
    (
        opened(devices=0),
        DeviceError,
        'target="cuda": the NVIDIA driver finds no GPU with number 0 (cuDeviceGet: CUDA_ERROR_NO_DEVICE (100)). '
        "See what "
        'nvidia-smi lists and whether CUDA_VISIBLE_DEVICES hides it, or use target="cpu".',
    ),
    (
        opened(faults={"cuInit": 803}),
        DeviceError,
        'target="cuda": the NVIDIA driver does not fit this system (cuInit: CUDA_ERROR_803 (803)). Install the driver '
        'of the GPU (525.60 or newer) and restart, or use target="cpu".',
    ),
    *[
        (
            opened(faults={name: status}),
            DeviceError,
            f'target="cuda": cuda:0 cannot be used now ({name}: CUDA_ERROR_{status} ({status})). See whether '
            'nvidia-smi shows it and whether another process has it alone, or use target="cpu".',
        )
        for name, status in (("cuInit", 999), ("cuDevicePrimaryCtxRetain", 46))
    ],
    (
        opened(attributes={75: 8, 76: 0, 115: 0}),
        DeviceError,
        'target="cuda": Emulated GPU has no memory pools, which the driver of this system does not offer. Use '
        'target="cpu".',
    ),
    (
        failing("cuMemAllocAsync", 2),
        DeviceMemoryError,
        "cuda:0: there is not enough memory on the device (cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY (2)). Drop arrays "
        "that lie there (del x), use smaller ones, or end other programs that use the GPU (nvidia-smi lists them).",
    ),
    (
        failing("cuMemAllocAsync", 222),
        DeviceError,
        "cuda:0: the NVIDIA driver is too old for the GPU's kernels (cuMemAllocAsync: CUDA_ERROR_222 (222)). "
        "Update the "
        "driver.",
    ),
    (
        failing("cuMemcpyHtoDAsync_v2", 1),
        DeviceError,
        "cuda:0: the NVIDIA driver failed (cuMemcpyHtoDAsync_v2: CUDA_ERROR_INVALID_VALUE (1)). If it happens again, "
        "report it with the output of tracejit doctor --cuda.",
    ),
    (
        failing("cuMemcpyHtoDAsync_v2", 700),
        DeviceError,
        "cuda:0: the device is lost to this process (cuMemcpyHtoDAsync_v2: CUDA_ERROR_ILLEGAL_ADDRESS (700)); "
        "its arrays "
        "are gone. Restart the process; if it happens again, report it with the output of tracejit doctor --cuda.",
    ),
    (
        on_device(lost),
        DeviceError,
        "cuda:0: the device is lost to this process since an earlier error; its arrays are gone. Restart the process.",
    ),
    (
        on_device(lambda fake: stream("fast").__enter__()),
        ArgumentError,
        "stream: expected the address of a CUDA stream, or a stream of PyTorch, CuPy or cuda.core, not 'fast'.",
    ),
    (
        on_device(on_another),
        DeviceError,
        "dlarray: data lies on cuda:1, and tracejit uses cuda:0. Copy it there first, or start the process with "
        "CUDA_VISIBLE_DEVICES=1.",
    ),
    (
        on_device(lambda fake: tj.dlarray(foreign(0, mask=1))),
        ArgumentError,
        "dlarray: data has a mask, which would be lost; pass an array without one.",
    ),
    (
        on_device(lambda fake: tj.dlarray(foreign(0, typestr=">f4"))),
        DTypeError,
        "dlarray: data lies on a GPU in the byte order of other machines (>f4); copy it to the host and back, in that "
        "of this one.",
    ),
    (
        on_device(lambda fake: tj.dlarray(foreign(0, strides=(4, 4, 4, 4)))),
        ArgumentError,
        "dlarray: data is a Foreign whose __cuda_array_interface__ cannot be read (shape is (3,) and strides are "
        "(4, 4, 4, 4)); pass an array of CuPy, PyTorch, JAX or Numba.",
    ),
    (
        on_device(lambda fake: capsule(True, None)),
        BufferError,
        "the array is read-only, which a capsule cannot say; pass a copy (x.copy()).",
    ),
    (
        on_device(lambda fake: capsule(False, (6,))),
        BufferError,
        "the elements lie (6,) bytes apart, which are no multiples of their size, as DLPack expects; pass a copy "
        "(x.copy()).",
    ),
    (
        on_device(lambda fake: np.from_dlpack(tj.gpu(np.ones(3)), device="cpu", copy=False)),
        BufferError,
        "the array lies on cuda:0, and nowhere else without a copy; leave copy= out.",
    ),
    (
        on_device(lambda fake: tj.dlarray(foreign(0, typestr="x"))),
        ArgumentError,
        "dlarray: data is a Foreign whose __cuda_array_interface__ cannot be read (data type 'x' not "
        "understood); pass an "
        "array of CuPy, PyTorch, JAX or Numba.",
    ),
    (
        on_device(lambda fake: tj.gpu(X)._data.__array__(copy=False)),
        ValueError,
        "an array on a device has no elements in the memory of the host without a copy.",
    ),
    (
        on_device(lambda fake: _met(tj.gpu(X))),
        DeviceError,
        '_function: an array that it reads besides its arguments lies on cuda:0, and target="cpu"; put gather(x) in '
        'its place, or set target="auto".',
    ),
    (
        on_device(lambda fake: tj.gpu(X).__setitem__(0, 1.0)),
        WriteError,
        "write: 2x3 float64 lies on cuda:0, where views are copies; write in a function that dlaccelerate or dlfeval "
        "runs, or compute a new array (x = x + y, where).",
    ),
    (
        on_device(lambda fake: tj.gpu(X).to_device("tpu")),
        ArgumentError,
        "to_device: device must be 'cpu', not 'tpu'; gpu(x) copies an array to the GPU.",
    ),
    (
        on_device(lambda fake: tj.dlaccelerate(added)(tj.gpu(X), X)),
        DeviceError,
        "added: x lies on cuda:0 and y in the memory of the host; pass gpu(x) of the one, or gather(x) of the other.",
    ),
    (
        on_device(lambda fake: tj.dlaccelerate(added, target="cpu")(X, tj.gpu(X))),
        DeviceError,
        'added: y lies on cuda:0, and target="cpu"; pass gather(x), or set target="auto".',
    ),
    (
        on_device(shared),
        WriteError,
        "shared.<locals>.written: an array on cuda:0 is written, and another argument shows the same memory in "
        "another way; pass a copy of one of them (x.copy()).",
    ),
    (
        on_device(lambda fake: tj.dlfeval(tj.gpu, X)),
        ArgumentError,
        "gpu: x is traced (2x3 float64); where a function runs is decided outside it. Call gpu before, or on "
        "its result.",
    ),
    (
        lambda: tj.dlarray(X).__cuda_array_interface__,
        AttributeError,
        "the array lies in the memory of the host, and has no __cuda_array_interface__.",
    ),
    (
        lambda: tj.dlaccelerate(added, precision="high"),
        ArgumentError,
        "precision: expected one of ('default', 'highest'), not 'high'.",
    ),
    (
        lambda: tj.dlaccelerate(added, target="gpu"),
        ArgumentError,
        "target: expected one of ('auto', 'cpu', 'cuda'), not 'gpu'.",
    ),
    (
        with_library(
            lambda patch, library: patch.setattr(cublas, "files", lambda major: [f"libno.so.{major}"])
        ),
        DeviceError,
        "TRACEJIT_CUBLAS_FROM: cuBLASLt was not found (libno.so.12). Install it (pip install nvidia-cublas-cu12), or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        lambda: cublas.declared(SimpleNamespace()),
        DeviceError,
        "TRACEJIT_CUBLAS_FROM: cuBLASLt is too old: it has no cublasLtCreate. Install version 12.0.0 or newer, or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        lambda: cublas.declared(_old_library()),
        DeviceError,
        "TRACEJIT_CUBLAS_FROM: cuBLASLt 11.11.3 is too old. Install version 12.0.0 or newer, or unset "
        "TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: library.faults.update(cublasLtCreate=1)),
        DeviceError,
        "cuda:0: cuBLASLt 12.9.3 failed (cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (1)). The library does not "
        "start with this driver: install the one of the driver's version of CUDA (nvidia-cublas-cu12 or "
        "nvidia-cublas), or unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: library.faults.update(cublasLtMatmul=8)),
        DeviceError,
        "cuda:0: cuBLASLt 12.9.3 failed for a product (2 x 3) @ (3 x 2) of float64 (cublasLtMatmul: "
        "CUBLAS_STATUS_ARCH_MISMATCH (8)). This version of the library does not know the GPU: install a newer one, or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: setattr(library, "workspace_bytes", 1 << 26)),
        DeviceError,
        "cuda:0: cuBLASLt 12.9.3 failed for a product (2 x 3) @ (3 x 2) of float64 (cublasLtMatmulAlgoGetHeuristic: "
        "CUBLAS_STATUS_NOT_SUPPORTED (15)). This version of the library cannot compute it: install a newer one, or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: setattr(library, "suggestion_state", 15)),
        DeviceError,
        "cuda:0: cuBLASLt 12.9.3 failed for a product (2 x 3) @ (3 x 2) of float64 (cublasLtMatmulAlgoGetHeuristic: "
        "CUBLAS_STATUS_NOT_SUPPORTED (15)). This version of the library cannot compute it: install a newer one, or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: library.faults.update(cublasLtMatmul=3)),
        DeviceMemoryError,
        "cuda:0: cuBLASLt 12.9.3 failed for a product (2 x 3) @ (3 x 2) of float64 (cublasLtMatmul: "
        "CUBLAS_STATUS_ALLOC_FAILED (3)): there is not enough memory. Drop arrays that lie on the device (del x), or "
        "unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        with_library(lambda patch, library: library.faults.update(cublasLtMatmul=13)),
        DeviceError,
        "cuda:0: cuBLASLt 12.9.3 failed for a product (2 x 3) @ (3 x 2) of float64 (cublasLtMatmul: "
        "CUBLAS_STATUS_EXECUTION_FAILED (13)). If it happens again, report it with the output of tracejit doctor "
        "--cuda, and unset TRACEJIT_CUBLAS_FROM, so that tracejit's own kernels compute products.",
    ),
    (
        lambda: steps.steps_of(program(row(HostCall(abs, (), ())))),
        CodegenError,
        "kernel_1: a kernel of the CPU cannot run on a device.",
    ),
    (
        lambda: steps.steps_of(program(row(None, Symbol("dgemm")))),
        CodegenError,
        "dgemm: a routine of the CPU cannot run on a device.",
    ),
)
