# SPDX-License-Identifier: BSD-3-Clause
"""The check of a GPU: functions are run on it and compared with the CPU, and its speed is measured."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tracejit.accelerate.function import dlaccelerate
from tracejit.array import dlarray
from tracejit.compile import link
from tracejit.config import settings
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
_KERNELS = 25  # products in the program of many launches, each followed by a launch of a function


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure: what was measured, its value and unit, and a remark."""

    name: str
    value: float
    unit: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CudaReport:
    """The result of the check; its repr is the text that the command prints.

    device      facts by name
    checks      what was compared -> how it differs from the CPU, None if it does not
    measures    figures, by events on the device where nothing else is said
    """

    device: dict[str, str]
    checks: dict[str, str | None]
    measures: list[Measure]

    @property
    def broken(self) -> list[str]:
        """The names of the checks that failed."""
        return [name for name, difference in self.checks.items() if difference is not None]

    def __repr__(self) -> str:
        lines = ["device", *(f"  {name:<16}{value}" for name, value in self.device.items()), "checks"]
        lines += [f"  {name:<16}{difference or 'as on the CPU'}" for name, difference in self.checks.items()]
        lines.append("measures")
        for name, value, unit, remark in ((m.name, m.value, m.unit, m.remark) for m in self.measures):
            lines.append(f"  {name:<16}{value:.4g} {unit}{f' ({remark})' if remark else ''}")
        broken = len(self.broken)
        return "\n".join(
            [*lines, "", f"Broken: {broken} of {len(self.checks)} checks." if broken else "It works."]
        )


def examine_cuda(elements: int = 1 << 26) -> CudaReport:
    """Return a report on the GPU of this process; takes about a minute.

    Args:
        elements: of the large arrays that are measured, float32.

    Raises:
        DeviceError: if there is no GPU or no driver.
    """
    on = driver()
    return CudaReport(_device(on), _checks(), _measures(on, elements))


def _device(on: Driver) -> dict[str, str]:
    versions = [f"{name} {version_of(name)}" for name in ("tracejit", "numpy", "numba", "llvmlite")]
    return {
        "GPU": describe_device(),
        "driver": f"for CUDA {on.version // 1000}.{on.version % 1000 // 10}",
        "linker": link.description(),
        "cuBLASLt": library_of_products(on)[1],
        "versions": ", ".join(versions),
    }


def library_of_products(on: Driver) -> tuple[bool, str]:
    """Return whether cuBLASLt can be used on a device, and its version or what is wrong."""
    try:
        return True, cublas_of(on).version
    except DeviceError as error:
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


def _checks() -> dict[str, str | None]:
    rng = np.random.default_rng(0)
    results: dict[str, str | None] = {}
    for name, (function, shapes) in _COMPARED.items():
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        results[name] = _difference(function, arrays)
    results["bounds"] = _bounds()
    if library_of_products(driver())[0]:
        x = rng.standard_normal((33, 70)).astype(np.float32)
        with products_from(1):
            results["cuBLASLt"] = _difference(_product, [x])
    return results


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


def _measures(on: Driver, elements: int) -> list[Measure]:
    rows = max(1, elements // _COLUMNS)
    data = np.random.default_rng(0).standard_normal((rows, _COLUMNS)).astype(np.float32)
    source = uploaded(on, data)
    target = empty(on, source.shape, source.dtype)
    ms = on.time_ms(lambda: on.copy(target.address, source.address, source.nbytes), _REPEATS)
    copied = 2 * source.nbytes / ms / 1e6
    measures = [Measure("copy", copied, "GB/s", f"{size(source.nbytes)}, read and written")]
    x = gpu(data)
    for name, function in (("chain", _chain), ("softmax", _softmax), ("layer norm", _norm)):
        ms = _replay_ms(on, function, x)
        rate = 2 * source.nbytes / ms / 1e6
        measures.append(Measure(name, rate, "GB/s", f"{100 * rate / copied:.0f} % of the copy, {ms:.4g} ms"))
    measures += _products(on, math.isqrt(elements) // 2)
    measures += _small(on, min(512, math.isqrt(elements) // 8))
    return measures


def _products(on: Driver, width: int) -> list[Measure]:
    """Return the figures of a product by own kernels, and by cuBLASLt where that is installed."""
    x = gpu(np.random.default_rng(0).standard_normal((width, width)).astype(np.float32))
    ways: list[tuple[str, int | None]] = [("product", None)]
    if library_of_products(on)[0]:
        ways.append(("by cuBLASLt", 1))
    measures = []
    for name, least in ways:
        with products_from(least):
            ms = _replay_ms(on, _product, x)
        rate = 2 * width**3 / ms / 1e9
        measures.append(Measure(name, rate, "TFLOP/s", f"{width} x {width} with its transpose, {ms:.4g} ms"))
    return measures


def _small(on: Driver, width: int) -> list[Measure]:
    """Return the figures of programs whose cost is that of launches."""
    rng = np.random.default_rng(0)
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
    step = dlaccelerate(_layer, audit=False)
    shapes = (width, width), (width,), (128, width)
    inputs = gpu(tuple([rng.standard_normal(shape).astype(np.float32) for shape in shapes]))
    begun = time.perf_counter()
    for _ in range(3):
        step(*inputs)
    on.synchronize()
    first_s = time.perf_counter() - begun
    return [
        Measure("replay, host", median(times) / 1e3, "us", f"{launches} launches, by the clock of the host"),
        Measure("replay, device", ms * 1e3, "us", f"{launches} launches"),
        Measure("layer, first", first_s, "s", "two recordings and a replay, by the clock of the host"),
        Measure(
            "layer, replay",
            on.time_ms(lambda: step(*inputs), _REPEATS) * 1e3,
            "us",
            f"width {width}, batch 128",
        ),
    ]


def _replay_ms(on: Driver, function: Callable[..., Any], x: Any) -> float:
    """Return the milliseconds on the device of a replay."""
    accelerated = dlaccelerate(function, audit=False)
    for _ in range(4):
        accelerated(x)
    return on.time_ms(lambda: accelerated(x), _REPEATS)
