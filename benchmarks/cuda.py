# SPDX-License-Identifier: BSD-3-Clause
"""Functions on a GPU beside PyTorch, torch.compile and JAX: `python -m benchmarks.cuda`.

Needs a GPU. Arguments are parts of the names of workloads, by default all. Peers that are not installed, or have no
GPU, are left out. Each function gets the same float32 data in each library, and its results are compared before it is
timed.
PyTorch and tracejit are timed by events on the device; JAX, which has none, by the clock of the host around calls of
which the last is waited for. The median of several rounds, in which the libraries take turns, is printed.
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
_TOLERANCE = 1e-3  # sums of float32 in different orders
Timer = Callable[[Callable[[], Any], int], float]


class Workload(NamedTuple):
    """A function in the words of each library, and the sizes of its arguments; `xp` has tanh, exp, sqrt and max.

    With `differentiates`, a step returns the function's result and its gradients by all arguments.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    differentiates: bool = False


class Library(NamedTuple):
    """A library: how it makes an array and a step, reads a result, and times calls in milliseconds."""

    name: str
    array: Callable[[np.ndarray], Any]
    step: Callable[[Callable[..., Any], bool], Callable[..., Any]]
    numpy: Callable[[Any], np.ndarray]
    timed: Timer
    xp: Any
    forget: Callable[[], Any] = lambda: None  # what was compiled for other workloads


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


def product(xp: Any, x: Any, y: Any) -> Any:
    return x @ y


def loss(xp: Any, w: Any, b: Any, v: Any, c: Any, x: Any) -> Any:
    y = xp.tanh(x @ w + b) @ v + c
    return (y * y).mean()


def normed(xp: Any, x: Any) -> Any:
    y = layer_norm(xp, x)
    return (y * y * y).mean()


def squashed(xp: Any, x: Any) -> Any:
    y = softmax(xp, x)
    return (y * y).mean()


WORKLOADS = (
    Workload("chain, 256 MB", chain, ((1 << 26,), (1 << 26,))),
    Workload("softmax, 1024 columns", softmax, ((1 << 16, 1024),)),
    Workload("layer norm, 1024 columns", layer_norm, ((1 << 16, 1024),)),
    Workload("small chain", chain, ((1 << 10,), (1 << 10,))),
    Workload("MLP 64-128-10", mlp, ((128, 64), (64, 128), (128, 10))),
    Workload("MLP 784-512-10", mlp, ((128, 784), (784, 512), (512, 10))),
    Workload("product 1024", product, ((1024, 1024), (1024, 1024))),
    Workload("product 4096", product, ((4096, 4096), (4096, 4096))),
    Workload("softmax, gradient", squashed, ((1 << 16, 1024),), True),
    Workload("layer norm, gradient", normed, ((1 << 16, 1024),), True),
    Workload("step 64-128-10", loss, ((64, 128), (128,), (128, 10), (10,), (128, 64)), True),
    Workload("step 784-512-10", loss, ((784, 512), (512,), (512, 10), (10,), (128, 784)), True),
    Workload("step 2048-2048-1000", loss, ((2048, 2048), (2048,), (2048, 1000), (1000,), (1024, 2048)), True),
)


def ours() -> Library:
    """Return tracejit, timed by events."""

    def step(f: Callable[..., Any], differentiates: bool) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            result = f(*arrays)
            gradients = tj.dlgradient(result, *arrays)
            return result, *(gradients if isinstance(gradients, tuple) else (gradients,))

        return tj.dlaccelerate(with_gradients if differentiates else f, audit=False)

    def timed(call: Callable[[], Any], repeats: int) -> float:
        return driver().time_ms(call, repeats)

    return Library("tracejit", tj.gpu, step, np.asarray, timed, np)


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

    def eager(f: Callable[..., Any], differentiates: bool) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            arrays = tuple([array.requires_grad_() for array in arrays])
            result = f(*arrays)
            return result.detach(), *torch.autograd.grad(result, arrays)

        return with_gradients if differentiates else f

    def compiled(f: Callable[..., Any], differentiates: bool) -> Callable[..., Any]:
        return eager(torch.compile(f, mode="reduce-overhead"), differentiates)

    torch.backends.cuda.matmul.allow_tf32 = False  # as the others
    return [
        Library("PyTorch", array, eager, numpy, timed, torch),
        Library("torch.compile", array, compiled, numpy, timed, torch, torch._dynamo.reset),
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
        jax.block_until_ready(result)
        return (time.perf_counter() - started) * 1e3 / repeats

    jax.config.update("jax_default_matmul_precision", "highest")

    def step(f: Callable[..., Any], differentiates: bool) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            result, gradients = jax.value_and_grad(f, tuple(range(len(arrays))))(*arrays)
            return result, *gradients

        compiled: Callable[..., Any] = jax.jit(with_gradients if differentiates else f)
        return compiled

    return [Library("JAX", lambda data: jax.device_put(data, device), step, np.asarray, timed, jnp)]


def _results(step: Callable[..., Any], data: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a step on the CPU."""
    results = step(*data)
    return [np.asarray(part) for part in (results if isinstance(results, tuple) else (results,))]


def _error(found: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference, by the size of what is wanted."""
    return float(np.abs(found - want).max() / max(float(np.abs(want).max()), 1e-30))


def measure(workload: Workload, libraries: list[Library]) -> dict[str, str]:
    """Return the milliseconds of each library, or what is wrong with its result."""
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(shape, dtype=np.float32) / 8 for shape in workload.shapes]
    want = _results(
        ours().step(lambda *arrays: workload.function(np, *arrays), workload.differentiates), data
    )
    calls, results = {}, {}
    for library in libraries:
        library.forget()
        step = library.step(
            lambda *arrays, xp=library.xp: workload.function(xp, *arrays), workload.differentiates
        )
        arrays = [library.array(part) for part in data]
        for _ in range(4):
            found = step(*arrays)
        found = found if isinstance(found, tuple) else (found,)
        errors = [_error(library.numpy(part), wanted) for part, wanted in zip(found, want, strict=True)]
        if not max(errors) <= _TOLERANCE:
            results[library.name] = f"wrong by {max(errors):.1e}"
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
    print(f"{'':<24}", *[f"{library.name:>14}" for library in libraries])
    chosen = sys.argv[1:]  # parts of names
    for workload in [w for w in WORKLOADS if not chosen or any(part in w.name for part in chosen)]:
        results = measure(workload, libraries)
        print(f"{workload.name:<24}", *[f"{results[library.name]:>14}" for library in libraries], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
