# SPDX-License-Identifier: BSD-3-Clause
"""Identification of a damped pendulum: gravity, damping and the initial angle from a noisy record.

The model is integrated by Runge and Kutta's method in an ordinary Python loop, and the loss is differentiated
through all its steps: the trace is the unrolled loop and its adjoint, some thousands of operations.
"""

import sys
import time

import numpy as np

import tracejit as tj

DT = 0.1
TRUE = {"gravity": 9.81, "damping": 0.3, "angle": 1.2}
START = {"gravity": 6.0, "damping": 0.05, "angle": 1.0}


def slope(angle, speed, params):
    """Return the time derivatives of the angle and of its speed."""
    return speed, -params["gravity"] * np.sin(angle) - params["damping"] * speed


def simulate(params, steps: int) -> list:
    """Return the angles after each of `steps` steps; works on numbers and on dlarrays alike."""
    angle, speed = params["angle"], 0.0 * params["angle"]
    angles = []
    for _ in range(steps):
        a1, s1 = slope(angle, speed, params)
        a2, s2 = slope(angle + DT / 2 * a1, speed + DT / 2 * s1, params)
        a3, s3 = slope(angle + DT / 2 * a2, speed + DT / 2 * s2, params)
        a4, s4 = slope(angle + DT * a3, speed + DT * s3, params)
        angle = angle + DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        speed = speed + DT / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
        angles.append(angle)
    return angles


@tj.dlaccelerate
def step(params, moments, iteration, record):
    """Return the loss and everything that one step of Adam updates."""
    loss = ((tj.stack(simulate(params, len(record))) - record) ** 2).mean()
    gradients = tj.dlgradient(loss, params)
    params, *moments = tj.adamupdate(params, gradients, *moments, iteration, 0.02)
    return loss, params, tuple(moments), iteration + 1


def identify(iterations: int, steps: int = 30, seed: int = 0) -> tuple[dict[str, float], list[float]]:
    """Return the identified parameters and the losses on the way."""
    rng = np.random.default_rng(seed)
    record = tj.dlarray(np.array(simulate(TRUE, steps)) + 0.01 * rng.standard_normal(steps))
    params = {name: tj.dlarray(value) for name, value in START.items()}
    zeros = tj.tree.map(tj.zeros_like, params)
    moments, iteration = (zeros, zeros), tj.dlarray(1.0)
    losses = []
    for _ in range(iterations):
        loss, params, moments, iteration = step(params, moments, iteration, record)
        losses.append(loss.item())
    return {name: value.item() for name, value in params.items()}, losses


def main(iterations: int = 600, steps: int = 30) -> None:
    started = time.perf_counter()
    found, losses = identify(iterations, steps)
    elapsed_s = time.perf_counter() - started
    print(f"{iterations} iterations in {elapsed_s:.1f} s: loss {losses[0]:.4f} to {losses[-1]:.6f}")
    for name, value in found.items():
        print(f"{name:8s} {value:7.4f}   (true {TRUE[name]:.4f})")
    print(
        f"{step.stats.kernels} kernels were compiled for a trace of {len(step.source().splitlines())} lines"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
