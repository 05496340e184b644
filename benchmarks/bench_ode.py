# SPDX-License-Identifier: BSD-3-Clause
"""A neural differential equation by dlode45, diffrax and torchdiffeq: one training step of a network 2-64-64-2.

    python benchmarks/bench_ode.py [--peers-python PYTHON] [--repeats 100] [--rounds 3] [--threads 1]

64 states, 20 times, float32, relative tolerance 1e-3, absolute tolerance 1e-6: the loss, its gradient by the steps of
the solver, and a step of gradient descent. Each row runs in a process of its own, one after the other in each
round, so that all meet the same load of the machine; `step` is the least time of all rounds. Losses must agree.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

STATES, TIMES, RATE = 64, 20, 1e-2
TOLERANCES = {"relative": 1e-3, "absolute": 1e-6}


def data() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """Return the parameters, the times, the first states, and the states that are to be met."""
    rng = np.random.default_rng(0)
    sizes = ((2, 64), (64, 64), (64, 2))
    params: dict[str, np.ndarray] = {}
    for layer, (rows, columns) in enumerate(sizes):
        params[f"w{layer}"] = (rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
        params[f"b{layer}"] = np.zeros(columns, np.float32)
    times = np.linspace(0.0, 1.0, TIMES)
    start = rng.standard_normal((STATES, 2)).astype(np.float32)
    turn = np.stack([np.cos(times), np.sin(times)], -1)[1:, None, :].astype(np.float32)
    return params, times, start, start * turn


def field(xp: Any, y: Any, p: Any) -> Any:
    """Return the derivative of a state: a network with two hidden layers."""
    return xp.tanh(xp.tanh(y @ p["w0"] + p["b0"]) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def ours() -> Any:
    import tracejit as tj

    arrays, times, start, target = data()
    state = {name: tj.dlarray(array) for name, array in arrays.items()}
    first, wanted = tj.dlarray(start), tj.dlarray(target)

    def slope(t: Any, y: Any, p: Any) -> Any:
        return field(tj, y, p)

    @tj.dlaccelerate
    def step(p: Any, first: Any, wanted: Any) -> Any:
        found = tj.dlode45(slope, times, first, p)
        loss = ((found - wanted) ** 2).mean()
        gradients = tj.dlgradient(loss, p)
        return {name: p[name] - RATE * gradients[name] for name in p}, loss

    def run() -> float:
        nonlocal state
        state, loss = step(state, first, wanted)
        return float(loss.item())

    return run


def diffrax() -> Any:
    import diffrax
    import jax
    import jax.numpy as jnp

    arrays, times, start, target = data()
    state = {name: jnp.asarray(array) for name, array in arrays.items()}
    first, wanted, saved = jnp.asarray(start), jnp.asarray(target), jnp.asarray(times[1:], jnp.float32)
    controller = diffrax.PIDController(rtol=TOLERANCES["relative"], atol=TOLERANCES["absolute"])

    def loss(p: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, p: field(jnp, y, p)), diffrax.Dopri5(), 0.0, 1.0, None, first, p,
            saveat=diffrax.SaveAt(ts=saved), stepsize_controller=controller,
        )  # fmt: skip
        return ((found.ys - wanted) ** 2).mean()

    @jax.jit
    def step(p: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(p)
        return {name: p[name] - RATE * gradients[name] for name in p}, value

    def run() -> float:
        nonlocal state
        state, value = step(state)
        return float(value)

    return run


def torchdiffeq() -> Any:
    import torch
    from torchdiffeq import odeint

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    arrays, times, start, target = data()
    state = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    first, wanted = torch.tensor(start), torch.tensor(target)
    at = torch.tensor(times, dtype=torch.float32)

    def run() -> float:
        found = odeint(
            lambda t, y: field(torch, y, state), first, at, method="dopri5", rtol=TOLERANCES["relative"],
            atol=TOLERANCES["absolute"],
        )  # fmt: skip
        loss = ((found[1:] - wanted) ** 2).mean()
        gradients = torch.autograd.grad(loss, list(state.values()))
        with torch.no_grad():
            for value, gradient in zip(state.values(), gradients, strict=True):
                value -= RATE * gradient
        return float(loss.detach())

    return run


ROWS = {"tracejit": ours, "diffrax": diffrax, "torchdiffeq": torchdiffeq}


def work(row: str, repeats: int) -> None:
    """Make steps, and print the least and the middle time of one, and the fifth loss."""
    run = ROWS[row]()
    loss = [run() for _ in range(5)][-1]
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    print(json.dumps({"least": min(times), "middle": float(np.median(times)), "loss": loss}))


def main() -> None:
    """Run all rows in turn, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", default="", help="a Python that has diffrax and torchdiffeq")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--work", choices=ROWS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.repeats)
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TRACEJIT_THREADS"), options.threads)
    found: dict[str, list[Any]] = {}
    for _ in range(options.rounds):
        for row in ROWS:
            python = sys.executable if row == "tracejit" else options.peers_python
            if python:
                command = [python, __file__, "--work", row, "--repeats", str(options.repeats)]
                done = subprocess.run(
                    command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True
                )
                found.setdefault(row, []).append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{'row':14}{'step, ms':>10}{'middle, ms':>12}{'loss':>12}")
    for row, measured in found.items():
        least, middle = (min(each[name] for each in measured) * 1e3 for name in ("least", "middle"))
        print(f"{row:14}{least:10.3f}{middle:12.3f}{measured[0]['loss']:12.6f}")


if __name__ == "__main__":
    main()
