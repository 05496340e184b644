# SPDX-License-Identifier: BSD-3-Clause
"""A workload: data, and a loss in the words of each library.

A workload's `losses` maps the name of a way to run it to a function without arguments that imports the
library and returns ``loss(params, batch)``. The first word of the name says which library it is:
"tracejit", "jax", "torch"; a further word names a variant ("jax unrolled"). "numpy" is not measured: it is
the loss in float64 with which the results of all others are compared. `kind` says what is done with
the loss:

train       loss, gradients and one step of Adam, which changes the parameters
gradient    loss and gradients by the parameters
forward     the function's results alone
sizes       as "train", but each step is the first two at a batch size that was not seen before
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

RATE = 1e-7  # of Adam: so small that the values, and with them the work, stay what they were
DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8

Tree = Any  # dicts and lists of arrays
Loss = Callable[[Tree, Tree], Any]
Kind = Literal["train", "gradient", "forward", "sizes"]


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    name            what the command line calls it
    title           what the table calls it
    kind            what is done with the loss
    data            parameters and batch, NumPy arrays, from a seeded generator
    losses          how each library computes the loss
    tolerance       largest difference of a loss and of gradients from NumPy's, over the largest magnitude in
                    the array
    target_us       what DESIGN.md asks for, or None
    keep_compiler   whether torch.compile is tried: not where it takes minutes
    """

    name: str
    title: str
    kind: Kind
    data: Callable[[np.random.Generator], tuple[Tree, Tree]]
    losses: dict[str, Callable[[], Loss]] = field(repr=False)
    tolerance: float = 1e-3
    target_us: float | None = None
    keep_compiler: bool = True

    @property
    def runs(self) -> list[str]:
        """The ways to run it, ours first."""
        names = [name for name in self.losses if name != "numpy"]
        if self.keep_compiler and "torch" in self.losses and "torch compile" not in self.losses:
            names.append("torch compile")
        return names


def dense(
    rng: np.random.Generator, inputs: int, outputs: int, dtype: str = "float32"
) -> dict[str, np.ndarray]:
    """Return weights (inputs, outputs) and a bias."""
    weights = rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)
    return {"w": weights.astype(dtype), "b": (0.1 * rng.standard_normal(outputs)).astype(dtype)}
