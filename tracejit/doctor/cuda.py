# SPDX-License-Identifier: BSD-3-Clause
"""The check of a GPU: functions are run on it and compared with the CPU, and its speed is measured."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from statistics import median
from typing import Any

import numpy as np

from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.compile import link
from tracejit.config import settings
from tracejit.doctor.cuda_report import CudaReport, LostError, Measure, Tell, silently
from tracejit.doctor.facts import describe_device, version_of
from tracejit.errors import BoundsError, DeviceError
from tracejit.functions.elementwise import sqrt, tanh
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.functions.layers.activations import sigmoid, softmax
from tracejit.runtime.cuda.arrays import empty, uploaded
from tracejit.runtime.cuda.cublas import cublas_of
from tracejit.runtime.cuda.driver import Driver, driver
from tracejit.traces.compare import first_difference
from tracejit.traces.devices import gather, gpu
from tracejit.util.text import size

TOLERANCE = 1e-4  # float32, summed in a different order
_COLUMNS = 1024
_REPEATS = 20
_CALLS = 100
_VERSIONS = ("tracejit", "numpy", "numba", "llvmlite")
_ACCESS = ("no: the driver copies memory of the host", "yes: the GPU reads memory of the host itself")
_KERNELS = 25  # products in the program of many launches, each followed by a launch of a function


def examine_cuda(elements: int = 1 << 26, tell: Tell = silently) -> CudaReport:
    """Return a report on the GPU of this process; takes about a minute.

    What fails is a line of the report, and the check goes on, except after a fault that takes the device.

    Args:
        elements: of the large arrays that are measured, float32.
        tell: called with each line of the report as soon as it is known.

    Raises:
        DeviceError: if there is no GPU or no driver.
    """
    on = driver()
    report = CudaReport(tell)
    with suppress(LostError):
        with products_from(None):
            _own(report, on, elements)
        # Last, since a library that does not fit the driver may take the device.
        _of_library(report, on, elements)
    return report


def _own(report: CudaReport, on: Driver, elements: int) -> None:
    """Report on the device and on tracejit's own kernels."""
    report.title("device")
    report.fact("GPU", describe_device)
    report.fact("driver", lambda: f"for CUDA {on.version // 1000}.{on.version % 1000 // 10}")
    report.fact("pageable access", lambda: _ACCESS[on.reads_pageable])
    report.fact("linker", link.description)
    report.fact(
        "versions", lambda: ", ".join([f"{name} {version_of(name) or '(none)'}" for name in _VERSIONS])
    )
    report.title("checks")
    rng = np.random.default_rng(0)
    for name, (function, shapes) in _COMPARED.items():
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        report.check(name, partial(_difference, function, arrays))
    report.check("bounds", _bounds)
    report.title("measures")
    large = _Large(on, elements)
    report.measure("copy", large.copy)
    for name, function in (("chain", _chain), ("softmax", _softmax), ("layer norm", _norm)):
        report.measure(name, partial(large.replay, name, function))
    report.measure("product", partial(_product_by, on, "product", _width(elements)))
    report.measure("replay", partial(_many_launches, on))
    report.measure("layer", partial(_step, on, min(512, math.isqrt(elements) // 8)))


def _of_library(report: CudaReport, on: Driver, elements: int) -> None:
    """Report on products by cuBLASLt, if that is installed."""
    report.title("cuBLASLt")
    works = False

    def version() -> str:
        nonlocal works
        works, text = library_of_products(on)
        return text

    report.fact("cuBLASLt", version)
    if works:
        x = np.random.default_rng(0).standard_normal((33, 70)).astype(np.float32)
        with products_from(1):
            report.check("cuBLASLt", lambda: _difference(_product, [x]))
            report.measure("by cuBLASLt", partial(_product_by, on, "by cuBLASLt", _width(elements)))


def _width(elements: int) -> int:
    """Return the width of the matrix whose product is measured."""
    return math.isqrt(elements) // 2


def library_of_products(on: Driver) -> tuple[bool, str]:
    """Return whether cuBLASLt can be used on a device, and its version or what is wrong.

    Raises:
        DeviceError: if the device is lost.
    """
    try:
        return True, cublas_of(on).version
    except DeviceError as error:
        on.refuse_if_lost()
        return False, f"none; {error}"


@contextmanager
def products_from(least: int | None) -> Iterator[None]:
    """Let cuBLASLt compute products of at least so many multiplications in programs that are built in the block."""
    before, settings.cublas_from = settings.cublas_from, least
    try:
        yield
    finally:
        settings.cublas_from = before


def _product(x: Any) -> Any:
    return x @ x.T


def _layer(w: Any, b: Any, x: Any) -> Any:
    loss = (tanh(x @ w + b) ** 2).mean()
    gradients = dlgradient(loss, w, b)
    return loss, w - 0.1 * gradients[0], b - 0.1 * gradients[1]


def _norm(x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


def _softmax(x: Any) -> Any:
    return softmax(x, axis=1)


def _chain(x: Any) -> Any:
    return tanh(x) * sigmoid(x)


def _sums(x: Any) -> Any:
    return x.sum(), x.sum(axis=0), x.max(axis=1)


def _writing(x: Any, y: Any) -> Any:
    x += y
    return x.mean()


def _many(x: Any) -> Any:
    for _ in range(_KERNELS):
        x = tanh(x @ x)
    return x


_COMPARED: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "training step": (_layer, ((64, 32), (32,), (128, 64))),
    "chain": (_chain, ((1001,),)),
    "softmax": (_softmax, ((33, 130),)),
    "layer norm": (_norm, ((33, 130),)),
    "sums": (_sums, ((65, 130),)),
    "write": (_writing, ((77,), (77,))),
}


def _difference(function: Callable[..., Any], arrays: list[np.ndarray]) -> str | None:
    """Return how a function differs on the device from itself on the CPU, None if it does not."""
    accelerated = dlaccelerate(function, audit=False)
    for _ in range(4):
        here, there = [array.copy() for array in arrays], gpu(tuple(arrays))
        expected = dlfeval(function, *here)
        found = gather((accelerated(*there), there))
        difference = first_difference(found, (expected, tuple(map(dlarray, here))), TOLERANCE)
        if difference is not None:
            return difference
    return None if accelerated.hit_rate else f"it is not replayed: {accelerated.explain()}"


def _bounds() -> str | None:
    """Return what is wrong if an index out of range is not found."""
    accelerated = dlaccelerate(lambda x, i: x[i], audit=False)
    x = gpu(np.arange(4, dtype=np.float32))
    for _ in range(3):
        accelerated(x, gpu(np.array([1, 3])))
    try:
        accelerated(x, gpu(np.array([1, 4])))
    except BoundsError:
        return None
    return "an index out of range was not found"


class _Large:
    """Measures of a large array, which is made once."""

    def __init__(self, on: Driver, elements: int) -> None:
        self._on, self._rows = on, max(1, elements // _COLUMNS)
        self._copied = 0.0  # GB/s; 0 where that was not measured

    @cached_property
    def _source(self) -> Any:
        data = np.random.default_rng(0).standard_normal((self._rows, _COLUMNS)).astype(np.float32)
        return uploaded(self._on, data)

    def copy(self) -> list[Measure]:
        """Return how fast the device copies."""
        on, source = self._on, self._source
        target = empty(on, source.shape, source.dtype)
        ms = on.time_ms(lambda: on.copy(target.address, source.address, source.nbytes), _REPEATS)
        self._copied = 2 * source.nbytes / ms / 1e6
        return [Measure("copy", self._copied, "GB/s", f"{size(source.nbytes)}, read and written")]

    def replay(self, name: str, function: Callable[..., Any]) -> list[Measure]:
        """Return how fast a function reads the array and writes another one."""
        ms = _replay_ms(self._on, function, dlarray._wrap(self._source, None, None))
        rate = 2 * self._source.nbytes / ms / 1e6
        part = f"{100 * rate / self._copied:.0f} % of the copy, " if self._copied else ""
        return [Measure(name, rate, "GB/s", f"{part}{ms:.4g} ms")]


def _product_by(on: Driver, name: str, width: int) -> list[Measure]:
    """Return the figure of a product, by what the settings say."""
    x = gpu(np.random.default_rng(0).standard_normal((width, width)).astype(np.float32))
    ms = _replay_ms(on, _product, x)
    rate = 2 * width**3 / ms / 1e9
    return [Measure(name, rate, "TFLOP/s", f"{width} x {width} with its transpose, {ms:.4g} ms")]


def _many_launches(on: Driver) -> list[Measure]:
    """Return the figures of a program whose cost is that of launches."""
    x = gpu(np.eye(8, dtype=np.float32))
    many = dlaccelerate(_many, audit=False)
    for _ in range(3):
        many(x)
    launches = many.stats.launches
    times = []
    for _ in range(_CALLS):
        started = time.perf_counter_ns()
        many(x)
        times.append(time.perf_counter_ns() - started)
        on.synchronize()
    ms = on.time_ms(lambda: many(x), _REPEATS)
    return [
        Measure("replay, host", median(times) / 1e3, "us", f"{launches} launches, by the clock of the host"),
        Measure("replay, device", ms * 1e3, "us", f"{launches} launches"),
    ]


def _step(on: Driver, width: int) -> list[Measure]:
    """Return the figures of a training step."""
    rng = np.random.default_rng(0)
    step = dlaccelerate(_layer, audit=False)
    shapes = (width, width), (width,), (128, width)
    inputs = gpu(tuple([rng.standard_normal(shape).astype(np.float32) for shape in shapes]))
    begun = time.perf_counter()
    for _ in range(3):
        step(*inputs)
    on.synchronize()
    first_s = time.perf_counter() - begun
    us = on.time_ms(lambda: step(*inputs), _REPEATS) * 1e3
    return [
        Measure("layer, first", first_s, "s", "two recordings and a replay, by the clock of the host"),
        Measure("layer, replay", us, "us", f"width {width}, batch 128"),
    ]


def _replay_ms(on: Driver, function: Callable[..., Any], x: Any) -> float:
    """Return the milliseconds on the device of a replay."""
    accelerated = dlaccelerate(function, audit=False)
    for _ in range(4):
        accelerated(x)
    return on.time_ms(lambda: accelerated(x), _REPEATS)
