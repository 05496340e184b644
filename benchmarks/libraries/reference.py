# SPDX-License-Identifier: BSD-3-Clause
"""What a step has to compute: NumPy's loss in float64, and its gradient.

The gradient of each element is that of tracejit, uncompiled, where NumPy runs each operation. It is compared with what
NumPy's loss does when each array of the parameters is moved a little, both ways, in a random direction.
"""

from typing import Any

import numpy as np

import tracejit as tj
from benchmarks.libraries import Results
from benchmarks.nested import leaves, mapped
from benchmarks.workload import Tree, Workload

CHANGE = (
    1e-6  # of the loss along a direction, as a share of it: far from the next kink, and far above rounding
)
AGREE = 1e-5  # the share of a change by which difference and gradient may differ


def reference(workload: Workload, data: tuple[Tree, Tree], seed: int = 0) -> Results:
    """Return the results that a workload's step has to have.

    Raises:
        ValueError: if NumPy's loss and tracejit's differ, or NumPy's differences and tracejit's gradient.
    """
    params, batch = mapped(lambda array: np.asarray(array, np.float64), data)
    loss = workload.losses["numpy"]()
    if workload.kind == "forward":
        return {name: np.asarray(array) for name, array in leaves(loss(params, batch), "output").items()}
    value, gradients = uncompiled(workload, params, batch)
    expected = float(loss(params, batch))
    if not abs(value - expected) <= 1e-9 * abs(expected):
        raise ValueError(f"{workload.name}: NumPy's loss is {expected!r}, tracejit's {value!r}")
    rng = np.random.default_rng(seed)
    for name, array in leaves(params, "gradient").items():
        # Each element moves along its gradient, so that the change is no sum of random signs, in which errors get lost.
        direction = np.sign(gradients[name]) * rng.uniform(0.5, 1.5, array.shape)
        change = CHANGE * abs(expected)
        direction *= change / (gradients[name] * direction).sum()
        sides = []
        for side in (1, -1):
            array += side * direction
            sides.append(float(loss(params, batch)))
            array -= side * direction
        found = (sides[0] - sides[1]) / 2
        if not abs(found - change) <= AGREE * change:
            raise ValueError(
                f"{workload.name}: along {name} NumPy's loss changes by {found:.6e}, but by {change:.6e} according to "
                "tracejit's gradient"
            )
    return {"loss": np.asarray(expected), **gradients}


def uncompiled(workload: Workload, params: Tree, batch: Tree) -> tuple[float, Results]:
    """Return loss and gradients by tracejit, where NumPy runs each operation."""
    loss = workload.losses["tracejit"]()

    def step(params: Tree, batch: Tree) -> tuple[Any, Any]:
        value = loss(params, batch)
        return value, tj.dlgradient(value, params)

    value, found = tj.dlfeval(step, *mapped(tj.dlarray, (params, batch)))
    return value.item(), {name: tj.extractdata(array) for name, array in leaves(found, "gradient").items()}
