# SPDX-License-Identifier: BSD-3-Clause
"""Functions on a GPU beside PyTorch, torch.compile and JAX: `python -m benchmarks.cuda`.

Needs a GPU; peers that are not installed, or have no GPU, are left out. Each function gets the same float32 data in
library, and its results are compared before it is timed. PyTorch and tracejit are timed by events on the device; JAX,
which has none, by the clock of the host around calls of which the last is waited for. The median of several rounds, in
which the libraries take turns, is printed.
"""

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from tracejit.doctor.facts import describe_device
from tracejit.errors import DeviceError
from tracejit.runtime.cuda.driver import driver

ROUNDS, REPEATS = 7, 20
Timer = Callable[[Callable[[], Any], int], float]


class Workload(NamedTuple):
    """A function in the words of each library, and the sizes of its arguments; `xp` has tanh, exp, sqrt and max."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


class Library(NamedTuple):
    """A library: how it makes an array and a step, reads a result, and times calls in milliseconds."""

    name: str
    array: Callable[[np.ndarray], Any]
    step: Callable[[Callable[..., Any]], Callable[..., Any]]
    numpy: Callable[[Any], np.ndarray]
    timed: Timer
    xp: Any


def chain(xp: Any, x: Any, y: Any) -> Any:
    return xp.tanh(x) / (1 + xp.exp(-y)) + x * y


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.amax(x, 1)[:, None])
    return e / e.sum(1)[:, None]


def layer_norm(xp: Any, x: Any) -> Any:
    centred = x - x.mean(1)[:, None]
    return centred / xp.sqrt((centred * centred).mean(1)[:, None] + 1e-5)


def mlp(xp: Any, x: Any, w: Any, v: Any) -> Any:
    return xp.tanh(x @ w) @ v


WORKLOADS = (
    Workload("chain, 256 MB", chain, ((1 << 26,), (1 << 26,))),
    Workload("softmax, 1024 columns", softmax, ((1 << 16, 1024),)),
    Workload("layer norm, 1024 columns", layer_norm, ((1 << 16, 1024),)),
    Workload("small chain", chain, ((1 << 10,), (1 << 10,))),
    Workload("MLP 64-128-10", mlp, ((128, 64), (64, 128), (128, 10))),
    Workload("MLP 784-512-10", mlp, ((128, 784), (784, 512), (512, 10))),
)


def ours() -> Library:
    """Return tracejit, timed by events."""
    return Library(
        "tracejit", tj.gpu, lambda f: tj.dlaccelerate(f, audit=False), np.asarray,
        lambda call, repeats: driver().time_ms(call, repeats), np,
    )  # fmt: skip


def torches() -> list[Library]:
    """Return PyTorch, as it is and compiled; none if it is not installed or has no GPU."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []

    def timed(call: Callable[[], Any], repeats: int) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(repeats):
            call()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / repeats

    def array(data: np.ndarray) -> Any:
        return torch.as_tensor(data, device="cuda")

    def numpy(x: Any) -> np.ndarray:
        result: np.ndarray = x.cpu().numpy()
        return result

    def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
        step: Callable[..., Any] = torch.compile(f, mode="reduce-overhead")
        return step

    torch.backends.cuda.matmul.allow_tf32 = False  # as the others
    return [
        Library("PyTorch", array, lambda f: f, numpy, timed, torch),
        Library("torch.compile", array, compiled, numpy, timed, torch),
    ]


def jaxes() -> list[Library]:
    """Return JAX; none if it is not installed or has no GPU."""
    try:
        import jax
        import jax.numpy as jnp

        device = jax.devices("gpu")[0]
    except (ImportError, RuntimeError):
        return []

    def timed(call: Callable[[], Any], repeats: int) -> float:
        started = time.perf_counter()
        for _ in range(repeats):
            result = call()
        result.block_until_ready()
        return (time.perf_counter() - started) * 1e3 / repeats

    jax.config.update("jax_default_matmul_precision", "highest")
    return [Library("JAX", lambda data: jax.device_put(data, device), jax.jit, np.asarray, timed, jnp)]


def measure(workload: Workload, libraries: list[Library]) -> dict[str, str]:
    """Return the milliseconds of each library, or what is wrong with its result."""
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(shape, dtype=np.float32) / 8 for shape in workload.shapes]
    want = workload.function(np, *data)
    calls, results = {}, {}
    for library in libraries:
        step = library.step(lambda *arrays, xp=library.xp: workload.function(xp, *arrays))
        arrays = [library.array(part) for part in data]
        for _ in range(4):
            found = step(*arrays)
        error = float(np.abs(library.numpy(found) - want).max())
        if not error <= 1e-3 * max(1.0, float(np.abs(want).max())):
            results[library.name] = f"wrong by {error:.1e}"
            continue
        calls[library.name] = library.timed, lambda step=step, arrays=arrays: step(*arrays)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, (timed, call) in calls.items():
            times[name].append(timed(call, REPEATS))
    return results | {name: f"{median(each):.4f}" for name, each in times.items()}


def main() -> int:
    """Print the table and return the exit code."""
    try:
        device = describe_device()
    except DeviceError as error:
        print(f"benchmarks.cuda: {error}", file=sys.stderr)
        return 1
    libraries = [ours(), *torches(), *jaxes()]
    print(f"{device}; milliseconds a call, median of {ROUNDS} rounds of {REPEATS}")
    print(f"{'':<26}", *[f"{library.name:>14}" for library in libraries])
    for workload in WORKLOADS:
        results = measure(workload, libraries)
        print(f"{workload.name:<26}", *[f"{results[library.name]:>14}" for library in libraries], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
