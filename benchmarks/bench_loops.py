# SPDX-License-Identifier: BSD-3-Clause
"""A character LSTM by dlscan, unrolled, and by JAX's lax.scan: one training step (loss, gradients, gradient descent).

    python benchmarks/bench_loops.py [--jax-python PYTHON] [--units 128] [--batch 1] [--repeats 10] [--threads 2]

Each row runs in a process of its own, with an empty cache of kernels. `first` is the time from the import of the
library to the end of the first replay, or of JAX's first call; `step` is the least time of a later step. Losses must
agree. Times of a busy machine say little: --cpu gives the CPU time of the process (then use --threads 1).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

LETTERS = 64
ROWS = (("scan", 512), ("unrolled", 512), ("jax", 512), ("scan", 8192), ("jax", 8192))


def data(length: int, units: int, batch: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the parameters and the characters, as rows of an identity matrix."""
    rng = np.random.default_rng(0)
    shapes = {
        "in": (LETTERS, 4 * units), "again": (units, 4 * units), "bias": (4 * units,), "out": (units, LETTERS),
        "last": (LETTERS,),
    }  # fmt: skip
    params = {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    return params, np.eye(LETTERS, dtype=np.float32)[rng.integers(0, LETTERS, (length + 1, batch))]


def cell(xp: Any, sigmoid: Any, params: Any, hidden: Any, memory: Any, x: Any) -> tuple[Any, Any]:
    """Return the next state of an LSTM."""
    gates = x @ params["in"] + hidden @ params["again"] + params["bias"]
    units = params["again"].shape[0]
    enter, forget, new, leave = (gates[:, k * units : (k + 1) * units] for k in range(4))
    memory = sigmoid(forget) * memory + sigmoid(enter) * xp.tanh(new)
    return sigmoid(leave) * xp.tanh(memory), memory


def loss_of(xp: Any, params: Any, hiddens: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of the next characters."""
    scores = hiddens @ params["out"] + params["last"]
    logs = scores - xp.log(xp.exp(scores).sum(axis=-1, keepdims=True))
    return -(targets * logs).mean() * LETTERS


def ours(kind: str, length: int, units: int, batch: int) -> Any:
    """Return a function that makes one step and returns its loss."""
    import tracejit as tj

    arrays, characters = data(length, units, batch)
    state = {"params": {name: tj.dlarray(array) for name, array in arrays.items()}}
    text = tj.dlarray(characters)
    zeros = tj.dlarray(np.zeros((batch, units), np.float32))

    @tj.dlaccelerate
    def step(params: Any, zeros: Any, text: Any) -> Any:
        def next_state(carry: Any, x: Any) -> Any:
            carry = cell(tj, tj.sigmoid, params, *carry, x)
            return carry, carry[0]

        if kind == "scan":
            _, hiddens = tj.dlscan(next_state, (zeros, zeros), text[:-1])
        else:
            carry, listed = (zeros, zeros), []
            for t in range(length):
                carry, hidden = next_state(carry, text[t])
                listed.append(hidden)
            hiddens = tj.stack(listed)
        loss = loss_of(tj, params, hiddens, text[1:])
        slopes = tj.dlgradient(loss, params)
        return {name: params[name] - 0.1 * slopes[name] for name in params}, loss

    def run() -> float:
        state["params"], loss = step(state["params"], zeros, text)
        return float(loss.item())

    return run


def jaxs(length: int, units: int, batch: int) -> Any:
    """Return the same function by JAX."""
    import jax
    import jax.numpy as jnp

    arrays, characters = data(length, units, batch)
    state = {"params": {name: jnp.asarray(array) for name, array in arrays.items()}}
    text, zeros = jnp.asarray(characters), jnp.zeros((batch, units), jnp.float32)

    def loss(params: Any, text: Any) -> Any:
        def next_state(carry: Any, x: Any) -> Any:
            carry = cell(jnp, jax.nn.sigmoid, params, *carry, x)
            return carry, carry[0]

        _, hiddens = jax.lax.scan(next_state, (zeros, zeros), text[:-1])
        return loss_of(jnp, params, hiddens, text[1:])

    @jax.jit
    def step(params: Any, text: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, text)
        return {name: params[name] - 0.1 * slopes[name] for name in params}, value

    def run() -> float:
        state["params"], value = step(state["params"], text)
        return float(value)

    return run


def work(kind: str, length: int, options: Any) -> None:
    """Make steps, and print the time to the first replay, the least time of a step, and the third loss."""
    clock = time.process_time if options.cpu else time.perf_counter
    begin = clock()
    make = jaxs if kind == "jax" else lambda *sizes: ours(kind, *sizes)
    run = make(length, options.units, options.batch)
    warm = 1 if kind == "jax" else 3
    losses = [run() for _ in range(warm)]
    first = clock() - begin
    losses += [run() for _ in range(3 - warm)]
    times = []
    for _ in range(options.repeats):
        before = clock()
        run()
        times.append(clock() - before)
    print(json.dumps({"first": first, "step": min(times), "loss": losses[2]}))


def main() -> None:
    """Run all rows, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--jax-python", default="", help="a Python that has JAX; without it those rows are left out"
    )
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--work", nargs=2, metavar=("KIND", "LENGTH"))
    options = parser.parse_args()
    if options.work:
        work(options.work[0], int(options.work[1]), options)
        return
    print(f"{'row':24}{'first, s':>10}{'step, ms':>10}{'us/char':>10}{'loss':>12}")
    for kind, length in ROWS:
        python = options.jax_python if kind == "jax" else sys.executable
        if not python:
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {
                "TRACEJIT_CACHE_DIR": folder, "TRACEJIT_THREADS": options.threads, "OMP_NUM_THREADS": options.threads,
            }  # fmt: skip
            sizes = [
                "--units",
                str(options.units),
                "--batch",
                str(options.batch),
                "--repeats",
                str(options.repeats),
            ]
            command = [python, __file__, "--work", kind, str(length), *sizes, *["--cpu"] * options.cpu]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        name = f"{kind}, {length} characters"
        step = found["step"]
        print(
            f"{name:24}{found['first']:10.2f}{step * 1e3:10.2f}{step * 1e6 / length:10.1f}{found['loss']:12.5f}"
        )


if __name__ == "__main__":
    main()
