# SPDX-License-Identifier: BSD-3-Clause
"""Times of derivatives beyond the gradient, accelerated, beside JAX's under jit.

    python -m benchmarks.bench_derivatives [--jax-python jax-venv/bin/python] [--threads 1] [--seconds 2] [--rounds 3]

Each library runs in a process of its own, and the processes take turns. Times are the least of all calls, in
microseconds of float32. Where a library has two ways, such as a Laplacian in one forward pass and by nested gradients,
each is a row, and the ratio is that of the faster ways: JAX's time over ours.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]
Cases = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def mlp(rng: np.random.Generator, *widths: int) -> list[np.ndarray]:
    """Return the weights of layers, (outputs, inputs)."""
    pairs = zip(widths[1:], widths[:-1], strict=True)
    return [(rng.standard_normal(pair) / np.sqrt(pair[1])).astype(np.float32) for pair in pairs]


def data() -> dict[str, Any]:
    """Return what the cases take."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    return {
        "network": mlp(rng, 20, 64, 64, 1), "direction": mlp(rng, 20, 64, 64, 1), "x": draw(20, 128),
        "small": draw(4 * 8 + 8), "small x": draw(4, 64),
        "pinn": mlp(rng, 10, 32, 32, 32, 1), "points": draw(10, 256),
        "square": mlp(rng, 100, 100, 100), "vector": draw(100),
    }  # fmt: skip


def forward(xp: Any, weights: Any, x: Any) -> Any:
    """Return the outputs of a network for observations in columns."""
    for w in weights[:-1]:
        x = xp.tanh(w @ x)
    return weights[-1] @ x


def loss_of(xp: Any, weights: Any, x: Any) -> Any:
    return (forward(xp, weights, x) ** 2).mean()


def small_loss(xp: Any, theta: Any, x: Any) -> Any:
    return loss_of(xp, [theta[:32].reshape(8, 4), theta[32:].reshape(1, 8)], x)


def ours() -> Cases:
    """Return the cases in the words of tracejit: functions, which are accelerated, and arguments."""
    import tracejit as tj

    given = tj.tree.map(tj.dlarray, data())

    def in_one_pass(weights: Any, x: Any) -> Any:
        return tj.dllaplacian(forward(tj, weights, x), x, 0)

    def nested(weights: Any, x: Any) -> Any:
        slope = tj.dlgradient(forward(tj, weights, x).sum(), x)
        return sum([tj.dlgradient(slope[i].sum(), x)[i : i + 1] for i in range(1, 10)],
                   tj.dlgradient(slope[0].sum(), x)[:1])  # fmt: skip

    def step(laplacian: Any) -> Any:
        def gradients(weights: Any, x: Any) -> Any:
            return tj.dlgradient((laplacian(weights, x) ** 2).mean(), weights)

        return lambda weights, x: tj.dlfeval(gradients, weights, x)

    pinn = (given["pinn"], given["points"])
    square = (given["vector"], given["square"])
    return {
        "product with a Hessian": (lambda w, v, x: tj.hvp(lambda w: loss_of(tj, w, x), w, v),
                                   (given["network"], given["direction"], given["x"])),
        "Hessian": (lambda w, x: tj.hessian(lambda w: small_loss(tj, w, x), w), (given["small"], given["small x"])),
        "Laplacian, one pass": (lambda w, x: tj.dlfeval(in_one_pass, w, x), pinn),
        "Laplacian, nested": (lambda w, x: tj.dlfeval(nested, w, x), pinn),
        "gradient of a Laplacian, one pass": (step(in_one_pass), pinn),
        "gradient of a Laplacian, nested": (step(nested), pinn),
        "Jacobian, forward": (lambda x, w: tj.jacobian(lambda x: forward(tj, w, x), x, mode="forward"), square),
        "Jacobian, reverse": (lambda x, w: tj.jacobian(lambda x: forward(tj, w, x), x, mode="reverse"), square),
    }  # fmt: skip


def jaxs() -> Cases:
    """Return the cases in the words of JAX."""
    import jax
    import jax.numpy as jnp

    given = jax.tree.map(jnp.asarray, data())

    def u(weights: Any, x: Any) -> Any:
        return forward(jnp, weights, x)[0]

    def by_hessian(weights: Any, x: Any) -> Any:
        return jax.vmap(lambda x: jnp.trace(jax.hessian(u, 1)(weights, x)), 1)(x)

    def by_jvp(weights: Any, x: Any) -> Any:
        def one(x: Any) -> Any:
            slope = jax.grad(u, 1)
            curved = lambda v: jax.jvp(lambda x: slope(weights, x), (x,), (v,))[1] @ v
            return jax.vmap(curved)(jnp.eye(10, dtype=x.dtype)).sum()

        return jax.vmap(one, 1)(x)

    def step(laplacian: Any) -> Any:
        return jax.grad(lambda w, x: (laplacian(w, x) ** 2).mean())

    def product(w: Any, v: Any, x: Any) -> Any:
        return jax.jvp(jax.grad(lambda w: loss_of(jnp, w, x)), (w,), (v,))[1]

    pinn = (given["pinn"], given["points"])
    square = (given["vector"], given["square"])
    return {
        "product with a Hessian": (product, (given["network"], given["direction"], given["x"])),
        "Hessian": (jax.hessian(lambda w, x: small_loss(jnp, w, x)), (given["small"], given["small x"])),
        "Laplacian, Hessian": (by_hessian, pinn),
        "Laplacian, jvp of grad": (by_jvp, pinn),
        "gradient of a Laplacian, Hessian": (step(by_hessian), pinn),
        "gradient of a Laplacian, jvp of grad": (step(by_jvp), pinn),
        "Jacobian, forward": (lambda x, w: jax.jacfwd(lambda x: forward(jnp, w, x))(x), square),
        "Jacobian, reverse": (lambda x, w: jax.jacrev(lambda x: forward(jnp, w, x))(x), square),
    }


def measure(library: str, seconds: float) -> dict[str, Any]:
    """Return the least microseconds of each case, and a sum of its results to compare."""
    found = {}
    if library == "jax":
        import jax

        cases, accelerate, wait = jaxs(), jax.jit, jax.block_until_ready
    else:
        import tracejit as tj

        cases, accelerate, wait = ours(), tj.dlaccelerate, lambda result: result
    for name, (function, args) in cases.items():
        ready = accelerate(function)
        for _ in range(5):
            result = wait(ready(*args))
        least, until = np.inf, time.perf_counter() + seconds
        while time.perf_counter() < until:
            started = time.perf_counter()
            wait(ready(*args))
            least = min(least, time.perf_counter() - started)
        leaves = result if isinstance(result, (list, tuple)) else [result]
        found[name] = (1e6 * least, float(sum(np.abs(np.asarray(leaf)).sum() for leaf in leaves)))
    return found


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {name: (min(old.get(name, (np.inf,))[0], us), total) for name, (us, total) in new.items()}


def report(times: dict[str, dict[str, Any]]) -> None:
    """Print a row for each way, and the ratio of the fastest ways of each case."""
    cases: dict[str, dict[str, list[Any]]] = {}
    for library, rows in times.items():
        for name, (us, total) in rows.items():
            case, _, way = name.partition(", ")
            cases.setdefault(case, {}).setdefault(library, []).append((us, way, total))
    for case, by_library in cases.items():
        best = {library: min(ways) for library, ways in by_library.items()}
        for library, ways in by_library.items():
            for us, way, _ in ways:
                print(f"{case:24} {library:5} {way:14} {us:10.1f} us")
        if "jax" in best:
            first, second = best["ours"], best["jax"]
            same = np.isclose(first[2], second[2], rtol=1e-3)
            print(f"{case:24} ratio {second[0] / first[0]:.2f}{'' if same else '  THE RESULTS DIFFER'}")


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_derivatives", description=__doc__.partition(".")[0]
    )
    parser.add_argument("--jax-python", help="a Python with JAX")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--library", choices=("ours", "jax"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.library:
        print(json.dumps(measure(args.library, args.seconds)))
        return
    pythons = {"ours": sys.executable} | ({"jax": args.jax_python} if args.jax_python else {})
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "NUMBA_NUM_THREADS": str(args.threads),
                   "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false" if args.threads == 1 else ""}  # fmt: skip
    times: dict[str, dict[str, Any]] = {library: {} for library in pythons}
    for _ in range(args.rounds):
        for library, python in pythons.items():
            command = [
                python,
                "-m",
                "benchmarks.bench_derivatives",
                "--library",
                library,
                "--seconds",
                str(args.seconds),
            ]
            if hasattr(os, "sched_setaffinity"):
                cpus = sorted(os.sched_getaffinity(0))[: args.threads]
                command = ["taskset", "-c", ",".join(map(str, cpus)), *command]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            times[library] = merged(times[library], json.loads(done.stdout.splitlines()[-1]))
    report(times)


if __name__ == "__main__":
    main()
