# SPDX-License-Identifier: BSD-3-Clause
"""A neural differential equation learns the motion of a spiral, from pieces of its path.

The network is the right-hand side of dy/dt = f(y). The gradient of its solution is that of the solver's steps
("direct"), or comes from an equation that is solved backwards ("adjoint"): the example trains by either, and compares
both.
(R. T. Q. Chen et al., Neural ordinary differential equations, NeurIPS 2018.)

    python examples/neural_ode.py [epochs] [picture.png] [gradient mode]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import tracejit as tj
from tracejit import nn

SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])  # dy/dt = y^3 times this
POINTS, END = 400, 10.0  # of the path
PIECE, BATCH = 10, 64  # points of a piece, pieces of a mini-batch
RATE = 1e-2  # at first


def path() -> tuple[np.ndarray, np.ndarray]:
    """Return the times, and the points of the path that begins at (2, 0)."""
    times = np.linspace(0, END, POINTS)
    start = np.array([2.0, 0.0])
    later = tj.dlode45(lambda t, y: y**3 @ SPIRAL, times, start, relative_tolerance=1e-8)
    return times, np.concatenate([start[None], np.asarray(later)])


def cube(y: Any) -> Any:
    """Return y^3: a function of the module, because networks with another function have traces of their own."""
    return y**3


def network(seed: int = 0) -> tj.dlnetwork:
    """Return the right-hand side before training."""
    cubes = tj.functionlayer(cube, acceleratable=True, name="cubes")
    return tj.dlnetwork(
        [nn.FeatureInput(2), cubes, nn.FullyConnected(50), nn.Tanh(), nn.FullyConnected(2)], seed=seed
    )


def model_loss(
    net: tj.dlnetwork, starts: tj.dlarray, targets: tj.dlarray, times: Any, mode: str, tolerance: float = 1e-3
) -> tuple[tj.dlarray, Any]:
    """Return how far solutions are from pieces of the path, and the gradient by the network.

    Args:
        net: the right-hand side.
        starts: the first points of pieces, labelled "BC".
        targets: the points after them, labelled "BCT".
        times: of the first point and those after it.
        mode: "direct", "adjoint" or "adjoint-seminorm".
        tolerance: the relative tolerance of the solver; the absolute one is a thousandth of it.
    """
    y = tj.dlode45(
        net, times, starts, gradient_mode=mode,
        relative_tolerance=tolerance, absolute_tolerance=1e-3 * tolerance,
    )  # fmt: skip
    loss = abs(y - targets).mean()
    return loss, tj.dlgradient(loss, net.learnables)


@tj.dlaccelerate
def step(
    net: tj.dlnetwork, m: Any, v: Any, iteration: Any, rate: Any, starts: tj.dlarray, targets: tj.dlarray,
    times: Any, mode: str,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the loss of a mini-batch, and network, moments and iteration after a step of Adam."""
    loss, gradients = model_loss(net, starts, targets, times, mode)
    return loss, *tj.adamupdate(net, gradients, m, v, iteration, rate), iteration + 1


def pieces(points: np.ndarray, chosen: np.ndarray) -> tuple[tj.dlarray, tj.dlarray]:
    """Return the first points of pieces of the path, and the points after them."""
    after = np.stack([points[first + 1 : first + PIECE] for first in chosen]).transpose(0, 2, 1)
    starts, targets = points[chosen].astype(np.float32), np.ascontiguousarray(after, np.float32)
    return tj.dlarray(starts, "BC"), tj.dlarray(targets, "BCT")


def train(
    epochs: int = 300, seed: int = 0, mode: str = "direct", most: int | None = None
) -> tuple[tj.dlnetwork, list[float]]:
    """Return the trained right-hand side and the mean loss of each epoch.

    Args:
        epochs: passes over the pieces.
        seed: of initial values and of the order of the pieces.
        mode: how gradients are computed.
        most: number of pieces; None for all.
    """
    times, points = path()
    net = network(seed)
    zeros = tj.tree.map(tj.zeros_like, net.learnables)
    state: Any = (net, zeros, zeros, tj.dlarray(np.float32(1)))
    rng = np.random.default_rng(seed)
    losses = []
    with tqdm(range(epochs), desc="training", unit="epoch") as progress:
        for epoch in progress:
            rate = tj.dlarray(np.float32(RATE * 0.02 ** (epoch / epochs)))  # falls to a fiftieth
            order, found = rng.permutation(POINTS - PIECE)[:most], []
            for first in range(0, len(order), BATCH):
                loss, *state = step(
                    *state, rate, *pieces(points, order[first : first + BATCH]), times[:PIECE], mode
                )
                found.append(loss.item())
            losses.append(float(np.mean(found)))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return state[0], losses


def difference(net: tj.dlnetwork, tolerance: float = 1e-10) -> float:
    """Return the largest difference of the gradients of "direct" and "adjoint", in units of the largest of both.

    It is that of the solutions: in float64 and with a small tolerance nothing is left of it.
    """
    times, points = path()
    net = tj.dlupdate(lambda p: p.astype(np.float64), net)
    starts, targets = (x.astype(np.float64) for x in pieces(points, np.arange(0, POINTS - PIECE, 40)))
    direct, adjoint = [
        np.concatenate([
            np.ravel(value)
            for value in tj.dlfeval(
                model_loss, net, starts, targets, times[:PIECE], mode, tolerance
            )[1].value
        ])
        for mode in ("direct", "adjoint")
    ]  # fmt: skip
    return float(np.abs(direct - adjoint).max() / np.abs(direct).max())


def draw(net: tj.dlnetwork, picture: Path) -> np.ndarray:
    """Write a picture of the path and of the solution of the network from its start; return the solution."""
    from matplotlib.figure import Figure

    times, points = path()
    found = np.asarray(tj.dlode45(net, times, tj.dlarray(points[:1].astype(np.float32), "BC")))[0]
    figure = Figure(figsize=(5, 5))
    axes = figure.subplots()
    axes.plot(*points.T, label="path")
    axes.plot(*found, "--", label="network")
    axes.legend()
    figure.savefig(picture, dpi=100)
    return found.T


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv[1:]))
    mode = arguments.get(2, "direct")
    trained, losses = train(int(arguments.get(0, 300)), mode=mode)
    picture = Path(arguments.get(1, "neural_ode.png"))
    miss = np.abs(draw(trained, picture) - path()[1][1:]).mean()
    print(f"{len(losses)} epochs by {mode}, loss {losses[0]:.4f} to {losses[-1]:.4f}; picture {picture}")
    print(f"mean distance from the path {miss:.3f}; {step.stats.kept} traces")
    print(f"gradients of both modes differ by {difference(trained):.1e}")
