# SPDX-License-Identifier: BSD-3-Clause
"""Rosenbrock's function: its gradient and its Hessian, and Newton's method with both.

Shows dlgradient, a gradient of a gradient, and an accelerated function that returns several arrays.
"""

import numpy as np

import tracejit as tj


@tj.dlaccelerate
def derivatives(x: tj.dlarray) -> tuple[tj.dlarray, tj.dlarray, tj.dlarray]:
    """Return the value, the gradient and the Hessian at x, which has two elements."""
    y = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    gradient = tj.dlgradient(y, x)
    # A gradient is a traced array like any other, so its elements have gradients: the rows of the Hessian.
    hessian = tj.stack([tj.dlgradient(element, x) for element in gradient])
    return y, gradient, hessian


def minimize(start: list[float], tolerance: float = 1e-10) -> list[tuple[np.ndarray, float]]:
    """Return the points and values that Newton's method visits."""
    visited = []
    x = np.asarray(start)
    for _ in range(50):
        y, gradient, hessian = derivatives(tj.dlarray(x))
        visited.append((x, y.item()))
        if tj.norm(gradient).item() < tolerance:
            break
        x = x - np.linalg.solve(tj.extractdata(hessian), tj.extractdata(gradient))
    return visited


def main() -> None:
    y, gradient, hessian = derivatives(tj.dlarray([-1.0, 2.0]))
    print(f"at [-1, 2]: value {y.item():g}, gradient {gradient.tolist()}, Hessian {hessian.tolist()}")
    for x, value in minimize([-1.0, 2.0]):
        print(f"x = [{x[0]: .6f}, {x[1]: .6f}]   value {value:.3e}")
    print(f"{derivatives.hit_rate:.0f} % of the calls were replayed")


if __name__ == "__main__":
    main()
