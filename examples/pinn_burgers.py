# SPDX-License-Identifier: BSD-3-Clause
"""A physics-informed network for Burgers' equation, u_t + u u_x = nu u_xx on x in [-1, 1], t in [0, 1].

The network u(x, t) is trained until it satisfies the equation at scattered points, u(x, 0) = -sin(pi x) and
u(-1, t) = u(1, t) = 0. Shows derivatives of the network by its inputs, inside the loss, dljacobian and dllaplacian; and
lbfgsupdate. The result is compared with the exact solution (Cole and Hopf), an integral.

    python examples/pinn_burgers.py [iterations] [picture.png]
"""

import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from tqdm import tqdm

import tracejit as tj

NU = 0.05
Params = list[dict[str, tj.dlarray]]


def init(sizes: tuple[int, ...], rng: np.random.Generator) -> Params:
    """Return the layers of a network, Glorot uniform."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        limit = np.float32(np.sqrt(6 / (inputs + outputs)))
        weights = limit * rng.uniform(-1, 1, (inputs, outputs)).astype(np.float32)
        layers.append({"w": tj.dlarray(weights), "b": tj.dlarray(np.zeros(outputs, np.float32))})
    return layers


def model(params: Params, x: tj.dlarray, t: tj.dlarray) -> tj.dlarray:
    """Return u at points (N, 1) and times (N, 1)."""
    z = tj.concatenate([x, t], axis=1)
    for layer in params[:-1]:
        z = np.tanh(z @ layer["w"] + layer["b"])  # NumPy's functions work on dlarrays
    return z @ params[-1]["w"] + params[-1]["b"]


def model_loss(params: Params, points: dict[str, tj.dlarray]) -> tj.dlarray:
    """Return the mean square by which the network misses the equation and the conditions."""
    x, t = points["x"], points["t"]
    u = model(params, x, t)
    u_x, u_t = tj.dljacobian(u, x, 1), tj.dljacobian(u, t, 1)  # of each point by its own coordinates
    u_xx = tj.dllaplacian(u, x, 1)
    residual = u_t + u * u_x - NU * u_xx
    miss = model(params, points["x0"], points["t0"]) - points["u0"]
    return (residual**2).mean() + (miss**2).mean()


@tj.dlaccelerate
def loss_and_gradients(params: Params, points: dict[str, tj.dlarray]) -> tuple[tj.dlarray, Params]:
    """Return what an iteration of L-BFGS asks for, once or a few times."""
    loss = model_loss(params, points)
    return loss, tj.dlgradient(loss, params)


def sample(count: int, rng: np.random.Generator) -> dict[str, tj.dlarray]:
    """Return points inside, and points with known values on the boundary and at the start."""
    edge = count // 4
    x0 = np.concatenate([rng.uniform(-1, 1, edge), np.repeat([-1.0, 1.0], edge // 2)])
    t0 = np.concatenate([np.zeros(edge), rng.uniform(0, 1, 2 * (edge // 2))])
    values = {
        "x": rng.uniform(-1, 1, count),
        "t": rng.uniform(0, 1, count),
        "x0": x0,
        "t0": t0,
        "u0": np.where(t0 == 0, -np.sin(np.pi * x0), 0),
    }
    return {name: tj.dlarray(v[:, None].astype(np.float32)) for name, v in values.items()}


def exact(x: np.ndarray, t: float) -> np.ndarray:
    """Return the exact solution at time t > 0 by Gauss-Hermite quadrature of Cole's and Hopf's integral."""
    nodes, weights = np.polynomial.hermite.hermgauss(80)
    y = x[:, None] - np.sqrt(4 * NU * t) * nodes
    f = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * NU))
    return -(np.sin(np.pi * y) * f).sum(axis=1) / f.sum(axis=1)


def train(iterations: int, count: int = 400, seed: int = 0) -> tuple[Params, list[float]]:
    """Return the trained network, and the loss after each iteration."""
    rng = np.random.default_rng(seed)
    params = init((2, 20, 20, 20, 1), rng)
    points = sample(count, rng)
    state = tj.lbfgsstate(history_size=20)
    losses = []
    for _ in tqdm(range(iterations), desc="training", unit="iteration"):
        params, state = tj.lbfgsupdate(
            params,
            lambda params: loss_and_gradients(params, points),
            state,
            line_search_method="strong-wolfe",
        )
        losses.append(state.loss)
        if state.line_search_status == "failed":  # nothing gets better
            break
    return params, losses


def solution(params: Params, x: np.ndarray, t: float) -> np.ndarray:
    """Return what the network says of u(x, t)."""
    points = tj.dlarray(x[:, None].astype(np.float32))
    return tj.extractdata(model(params, points, tj.full_like(points, t)))[:, 0]


def relative_error(params: Params) -> float:
    """Return how far the network is from u(x, 0.5), in units of it."""
    x = np.linspace(-1, 1, 201)
    expected = exact(x, 0.5)
    return float(np.linalg.norm(solution(params, x, 0.5) - expected) / np.linalg.norm(expected))


def draw(params: Params, path: Path) -> None:
    """Write a picture of the network and of the exact solution at four times."""
    from matplotlib.figure import Figure

    figure, x = Figure(figsize=(10, 2.6), layout="constrained"), np.linspace(-1, 1, 201)
    for axes, t in zip(figure.subplots(1, 4, sharey=True), (0.1, 0.4, 0.7, 1.0), strict=True):
        axes.plot(x, exact(x, t), label="exact")
        axes.plot(x, solution(params, x, t), "--", label="network")
        axes.set_title(f"t = {t}")
    axes.legend()
    figure.savefig(path, dpi=100)


def main(iterations: int = 1500, path: Path = Path("pinn_burgers.png")) -> None:
    started = time.perf_counter()
    params, losses = train(iterations)
    seconds = time.perf_counter() - started
    print(f"{len(losses)} iterations in {seconds:.1f} s: loss {losses[0]:.3f} to {losses[-1]:.6f}")
    draw(params, path)
    print(f"relative error of u(x, 0.5): {relative_error(params):.4f}; picture {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1500, Path(*sys.argv[2:] or ["pinn_burgers.png"]))
