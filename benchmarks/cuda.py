# SPDX-License-Identifier: BSD-3-Clause
"""Functions on a GPU beside PyTorch, torch.compile and JAX: `python -m benchmarks.cuda`.

Needs a GPU. Arguments are parts of the names of workloads, by default all. Peers that are not installed, or have no
GPU, are left out. Each function gets the same float32 data in each library, and its results are compared before it is
timed. A step with gradients returns them all, and changes nothing. PyTorch and tracejit are timed by events on the
device; JAX, which has none, by the clock of the host around calls of which the last is waited for. The median of
several rounds, in which the libraries take turns, is printed. Where cuBLASLt is installed, tracejit has a second
column, in which that computes all products. A library that fails has the class of its error in the table, and the
error on standard error.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from benchmarks.workloads.transformer import transformer
from tracejit.config import settings
from tracejit.doctor.cuda import library_of_products
from tracejit.doctor.facts import describe_device
from tracejit.errors import DeviceError
from tracejit.runtime.cuda.driver import driver

ROUNDS, REPEATS = 7, 20
_TOLERANCE = 1e-3  # sums of float32 in different orders
Timer = Callable[[Callable[[], Any], int], float]


class Workload(NamedTuple):
    """A row of the table.

    name            what the command line calls it
    data            the arguments, NumPy arrays
    function        returns the function in the words of a library
    gradients       by how many of the arguments, the first ones, a step returns gradients besides the result
    """

    name: str
    data: Callable[[np.random.Generator], list[np.ndarray]]
    function: Callable[["Library"], Callable[..., Any]]
    gradients: int = 0


class Library(NamedTuple):
    """A library: how it makes an array and a step, reads a result, and times calls in milliseconds.

    Of the losses of README's table it takes those under the name `losses`.
    """

    name: str
    losses: str
    array: Callable[[np.ndarray], Any]
    step: Callable[[Callable[..., Any], int], Callable[..., Any]]
    numpy: Callable[[Any], np.ndarray]
    timed: Timer
    xp: Any
    layers: Any
    forget: Callable[[], Any] = lambda: (
        None
    )  # what was compiled for other workloads, or was set for other libraries


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


def lenet(layers: Any, c1: Any, b1: Any, c2: Any, b2: Any, f1: Any, f2: Any, x: Any, targets: Any) -> Any:
    x = layers.pool(layers.relu(layers.convolution(x, c1, b1)))
    x = layers.pool(layers.relu(layers.convolution(x, c2, b2)))
    scores = layers.relu(layers.flat(x) @ f1) @ f2
    return -(targets * layers.logsoftmax(scores)).sum() / len(targets)


def of_shapes(
    name: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], gradients: int = 0
) -> Workload:
    """Return a workload of a function whose first argument is a namespace like NumPy's."""

    def data(rng: np.random.Generator) -> list[np.ndarray]:
        return [rng.standard_normal(shape, dtype=np.float32) / 8 for shape in shapes]

    return Workload(name, data, lambda library: partial(function, library.xp), gradients)


def of_layers(
    name: str, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], gradients: int
) -> Workload:
    """Return a workload of a function whose first argument are the layers of a library."""
    return of_shapes(name, function, shapes, gradients)._replace(
        function=lambda library: partial(function, library.layers)
    )


def of_table(workload: Any) -> Workload:
    """Return the gradient of a loss of README's table, whose arguments are trees."""
    structure: Any = None

    def data(rng: np.random.Generator) -> list[np.ndarray]:
        nonlocal structure
        leaves, structure = tj.tree.flatten(workload.data(rng))
        return leaves

    def function(library: Library) -> Callable[..., Any]:
        loss = workload.losses[library.losses]()
        return lambda *arrays: loss(*tj.tree.unflatten(structure, arrays))

    params = len(tj.tree.flatten(workload.data(np.random.default_rng(0))[0])[0])
    return Workload(workload.name, data, function, params)


def workloads() -> list[Workload]:
    """Return the rows of the table."""
    large, square = (1 << 16, 1024), (4096, 4096)
    digits = (20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (800, 500), (500, 10), (128, 1, 28, 28), (128, 10)
    return [
        of_shapes("chain, 256 MB", chain, ((1 << 26,), (1 << 26,))),
        of_shapes("softmax", softmax, (large,)),
        of_shapes("layer norm", layer_norm, (large,)),
        of_shapes("softmax, gradient", squashed, (large,), 1),
        of_shapes("layer norm, gradient", normed, (large,), 1),
        of_shapes("small chain", chain, ((1 << 10,), (1 << 10,))),
        of_shapes("MLP 64-128-10", mlp, ((128, 64), (64, 128), (128, 10))),
        of_shapes("MLP 784-512-10", mlp, ((128, 784), (784, 512), (512, 10))),
        of_shapes("step 64-128-10", loss, ((64, 128), (128,), (128, 10), (10,), (128, 64)), 4),
        of_shapes("step 784-512-10", loss, ((784, 512), (512,), (512, 10), (10,), (128, 784)), 4),
        of_shapes(
            "step 2048-2048-1000", loss, ((2048, 2048), (2048,), (2048, 1000), (1000,), (1024, 2048)), 4
        ),
        of_shapes("product 1024", product, ((1024, 1024), (1024, 1024))),
        of_shapes("product 4096", product, (square, square)),
        of_shapes("products, batch of 64", product, ((64, 512, 512), (64, 512, 512))),
        of_layers("LeNet", lenet, digits, 6),
        of_table(transformer("transformer")),
        of_table(transformer("transformer, wide", 512, 8, 256, 16)),
    ]


def ours() -> Library:
    """Return tracejit, timed by events."""

    def step(f: Callable[..., Any], gradients: int) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            result = f(*arrays)
            return result, *tj.tree.flatten(tj.dlgradient(result, *arrays[:gradients]))[0]

        return tj.dlaccelerate(with_gradients if gradients else f, audit=False)

    def timed(call: Callable[[], Any], repeats: int) -> float:
        return driver().time_ms(call, repeats)

    layers = SimpleNamespace(
        convolution=lambda x, weights, bias: tj.dlconv(
            tj.dlarray(x, "BCSS") if x.format is None else x, weights, bias, weights_format="UCSS"
        ),
        pool=partial(tj.maxpool, pool_size=2, stride=2),
        relu=tj.relu,
        flat=lambda x: tj.stripdims(x).reshape(len(x), -1),
        logsoftmax=partial(tj.logsoftmax, axis=1),
    )

    def forbid() -> None:  # what with_cublas() allows, for the programs that are built next
        settings.cublas_from = None

    return Library("tracejit", "tracejit", tj.gpu, step, np.asarray, timed, np, layers, forbid)


def with_cublas() -> list[Library]:
    """Return tracejit with all products by cuBLASLt; none if that is not installed."""
    if not library_of_products(driver())[0]:
        return []

    def allow() -> None:
        settings.cublas_from = 1

    return [ours()._replace(name="with cuBLASLt", forget=allow)]


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

    def eager(f: Callable[..., Any], gradients: int) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            by = [array.requires_grad_() for array in arrays[:gradients]]
            result = f(*arrays)
            return result.detach(), *torch.autograd.grad(result, by)

        return with_gradients if gradients else f

    def compiled(f: Callable[..., Any], gradients: int) -> Callable[..., Any]:
        return eager(torch.compile(f, mode="reduce-overhead"), gradients)

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # as the others
    functions = torch.nn.functional
    layers = SimpleNamespace(
        convolution=functions.conv2d,
        pool=partial(functions.max_pool2d, kernel_size=2),
        relu=functions.relu,
        flat=lambda x: x.flatten(1),
        logsoftmax=partial(functions.log_softmax, dim=1),
    )
    return [
        Library("PyTorch", "torch", array, eager, numpy, timed, torch, layers),
        Library("torch.compile", "torch", array, compiled, numpy, timed, torch, layers, torch._dynamo.reset),
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

    def step(f: Callable[..., Any], gradients: int) -> Callable[..., Any]:
        def with_gradients(*arrays: Any) -> Any:
            result, by = jax.value_and_grad(f, tuple(range(gradients)))(*arrays)
            return result, *by

        compiled: Callable[..., Any] = jax.jit(with_gradients if gradients else f)
        return compiled

    def convolution(x: Any, weights: Any, bias: Any) -> Any:
        return jax.lax.conv_general_dilated(x, weights, (1, 1), "VALID") + bias[:, None, None]

    window = (1, 1, 2, 2)
    layers = SimpleNamespace(
        convolution=convolution,
        pool=lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID"),
        relu=jax.nn.relu,
        flat=lambda x: x.reshape(len(x), -1),
        logsoftmax=partial(jax.nn.log_softmax, axis=1),
    )
    return [
        Library("JAX", "jax", lambda data: jax.device_put(data, device), step, np.asarray, timed, jnp, layers)
    ]


def _results(step: Callable[..., Any], data: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a step on the CPU."""
    results = step(*data)
    return [np.asarray(part) for part in (results if isinstance(results, tuple) else (results,))]


def _error(found: np.ndarray, want: np.ndarray) -> float:
    """Return the largest difference, by the size of what is wanted."""
    return float(np.abs(found - want).max() / max(float(np.abs(want).max()), 1e-30))


class _WrongError(Exception):
    """A result differs from that of the CPU."""


def _first_calls(
    library: Library, workload: Workload, data: list[np.ndarray], want: list[np.ndarray]
) -> tuple[Callable[[], Any], float]:
    """Return a call of a workload, and the seconds of the first four calls.

    Raises:
        _WrongError: if the result is not the one that is wanted.
    """
    library.forget()
    step = library.step(workload.function(library), workload.gradients)
    arrays = [library.array(part) for part in data]
    started = time.perf_counter()
    for _ in range(4):
        found = step(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    errors = [_error(library.numpy(part), wanted) for part, wanted in zip(found, want, strict=True)]
    first = time.perf_counter() - started
    if not max(errors) <= _TOLERANCE:
        raise _WrongError(f"wrong by {max(errors):.1e}")
    return lambda: step(*arrays), first


def measure(workload: Workload, libraries: list[Library], seconds: dict[str, float]) -> dict[str, str]:
    """Return the milliseconds of each library, or what is wrong with its result, or which error it raised.

    `seconds` gets the seconds of each library's first four calls.
    """
    data = workload.data(np.random.default_rng(0))
    cpu = ours()
    want = _results(cpu.step(workload.function(cpu), workload.gradients), data)
    calls: dict[str, tuple[Timer, Callable[[], Any]]] = {}
    times: dict[str, list[float]] = {}
    results: dict[str, str] = {}

    def fail(library: str, error: Exception) -> None:
        results[library] = f"failed: {type(error).__name__}"
        print(f"{workload.name}, {library}: {error}", file=sys.stderr, flush=True)

    for library in libraries:
        try:
            call, seconds[library.name] = _first_calls(library, workload, data, want)
        except _WrongError as wrong:
            results[library.name] = str(wrong)
        except Exception as error:
            fail(library.name, error)
        else:
            calls[library.name], times[library.name] = (library.timed, call), []
    for _ in range(ROUNDS):
        for name, (timed, call) in [*calls.items()]:
            try:
                times[name].append(timed(call, REPEATS))
            except Exception as error:
                fail(name, error)
                del calls[name]
    return results | {name: f"{median(times[name]):.4f}" for name in calls}


def main() -> int:
    """Print the table and return the exit code."""
    try:
        device = describe_device()
    except DeviceError as error:
        print(f"benchmarks.cuda: {error}", file=sys.stderr)
        return 1
    libraries = [ours(), *with_cublas(), *torches(), *jaxes()]
    print(f"{device}; milliseconds a call, median of {ROUNDS} rounds of {REPEATS}")
    print(f"{'':<24}", *[f"{library.name:>14}" for library in libraries])
    chosen = sys.argv[1:]  # parts of names
    for workload in [w for w in workloads() if not chosen or any(part in w.name for part in chosen)]:
        seconds: dict[str, float] = {}
        results = measure(workload, libraries, seconds)
        first = ", ".join(f"{seconds[library.name]:.1f}" for library in libraries if library.name in seconds)
        cells = [f"{results[library.name]:>14}" for library in libraries]
        print(f"{workload.name:<24}", *cells, f"  first calls {first} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
