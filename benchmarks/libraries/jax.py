# SPDX-License-Identifier: BSD-3-Clause
"""Workloads in JAX: the step under jit, its state donated."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.libraries import Results, resized
from benchmarks.nested import leaves
from benchmarks.workload import DECAY, EPSILON, RATE, SQUARE_DECAY, Loss, Tree, Workload

State = tuple[Tree, Tree, Tree, jax.Array]  # parameters, Adam's two moments, iteration


def training_step(loss: Loss) -> Callable[[State, Tree], tuple[jax.Array, State]]:
    """Return a step of Adam."""

    def step(state: State, batch: Tree) -> tuple[jax.Array, State]:
        params, mean, square, iteration = state
        value, gradients = jax.value_and_grad(loss)(params, batch)
        mean = jax.tree.map(lambda m, g: DECAY * m + (1 - DECAY) * g, mean, gradients)
        square = jax.tree.map(lambda v, g: SQUARE_DECAY * v + (1 - SQUARE_DECAY) * g * g, square, gradients)
        of_mean, of_square = 1 - DECAY**iteration, 1 - SQUARE_DECAY**iteration
        params = jax.tree.map(
            lambda p, m, v: p - RATE * (m / of_mean) / (jnp.sqrt(v / of_square) + EPSILON),
            params, mean, square,
        )  # fmt: skip
        return value, (params, mean, square, iteration + 1)

    return jax.jit(step, donate_argnums=0)


class Jax:
    """A workload in JAX."""

    def __init__(self, run: str, workload: Workload, data: tuple[Tree, Tree]) -> None:
        wide = any(leaf.dtype == np.float64 for leaf in leaves(data).values())
        jax.config.update("jax_enable_x64", wide)
        params, batch = jax.tree.map(jnp.asarray, data)
        loss = workload.losses[run]()
        self._kind = workload.kind
        self._data = data
        self._size = 0
        self._arguments: tuple[Any, Any] = (params, batch)
        if workload.kind in ("train", "sizes"):
            mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
            self._arguments = ((params, mean, square, jnp.float32(1)), batch)
            self._function = training_step(loss)
        else:
            self._function = jax.jit(jax.value_and_grad(loss) if workload.kind == "gradient" else loss)

    def first(self) -> Results:
        """Compile and run the first step."""
        outputs = jax.block_until_ready(self._function(*self._arguments))
        if self._kind in ("train", "sizes"):
            loss, state = outputs
            self._arguments = (state, self._arguments[1])
            found = {"loss": loss} | {k: v / (1 - DECAY) for k, v in leaves(state[1], "gradient").items()}
        elif self._kind == "gradient":
            found = {"loss": outputs[0]} | leaves(outputs[1], "gradient")
        else:
            found = leaves(outputs, "output")
        return {name: np.array(array) for name, array in found.items()}

    def run(self, count: int) -> None:
        """Run a number of steps; calls return before their work is done, so the last one is waited for."""
        function = self._function
        state, batch = self._arguments
        if self._kind == "train":
            for _ in range(count):
                _, state = function(state, batch)
            jax.block_until_ready(state)
            self._arguments = (state, batch)
        elif self._kind == "sizes":
            for _ in range(count):
                self._size += 1
                size = len(batch["x"]) + self._size
                other = jax.tree.map(jnp.asarray, resized(self._data[1], size))
                for _ in range(2):
                    _, state = function(state, other)
            jax.block_until_ready(state)
            self._arguments = (state, batch)
        else:
            for _ in range(count):
                outputs = function(state, batch)
            jax.block_until_ready(outputs)
