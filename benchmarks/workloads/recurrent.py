# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent networks, unrolled by a loop in Python.

JAX has two ways: the same loop, which it compiles for long, and lax.scan. PyTorch's own layers run the loop
in C++.
"""

import numpy as np

from benchmarks.workload import Kind, Loss, Tree, Workload

UNROLLED_AT_MOST = 100  # steps that XLA is given as a loop in Python: beyond it compiles for many seconds


def rnn(
    name: str, steps: int, width: int = 64, inputs: int = 16, batch: int = 32, target_us: float | None = None
) -> Workload:
    """Return value and gradient of a network of tanh over a number of steps."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        params = {
            "wx": rng.standard_normal((inputs, width)) / np.sqrt(inputs),
            "wh": 0.5 * rng.standard_normal((width, width)) / np.sqrt(width),
            "b": 0.1 * rng.standard_normal(width),
        }
        batch_data = {
            "x": rng.standard_normal((steps, batch, inputs)),
            "targets": rng.standard_normal((batch, width)),
        }
        return _single(params), _single(batch_data)

    def in_numpy() -> Loss:
        def loss(params: Tree, batch: Tree) -> np.ndarray:
            h = np.zeros_like(batch["targets"])
            for x in batch["x"]:
                h = np.tanh(x @ params["wx"] + h @ params["wh"] + params["b"])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            h = tj.zeros_like(batch["targets"])
            for t in range(steps):
                h = tj.tanh(batch["x"][t] @ params["wx"] + h @ params["wh"] + params["b"])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> jax.Array:
            def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
                return jnp.tanh(x @ params["wx"] + h @ params["wh"] + params["b"]), None

            h, _ = jax.lax.scan(cell, jnp.zeros_like(batch["targets"]), batch["x"])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_jax_unrolled() -> Loss:
        import jax
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> jax.Array:
            h = jnp.zeros_like(batch["targets"])
            for t in range(steps):
                h = jnp.tanh(batch["x"][t] @ params["wx"] + h @ params["wh"] + params["b"])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_torch() -> Loss:
        import torch

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            weights = [params["wx"].T, params["wh"].T, params["b"], torch.zeros_like(params["b"])]
            start = torch.zeros_like(batch["targets"])[None]
            # What torch.nn.RNN calls: has_biases, layers, dropout, training, bidirectional, batch_first.
            _, h = torch.rnn_tanh(batch["x"], start, weights, True, 1, 0.0, True, False, False)
            return ((h[0] - batch["targets"]) ** 2).mean()

        return loss

    return _recurrent(
        name, f"RNN, {steps} steps, H {width}, batch {batch}, gradient", "gradient", steps, data,
        {
            "numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "jax unrolled": in_jax_unrolled,
            "torch": in_torch,
        }, target_us,
    )  # fmt: skip


def gru(name: str, steps: int, width: int = 64, inputs: int = 16, batch: int = 32) -> Workload:
    """Return the training step of a gated recurrent unit over a number of steps."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        params = {
            "wx": rng.standard_normal((inputs, 3 * width)) / np.sqrt(inputs),
            "wh": rng.standard_normal((width, 3 * width)) / np.sqrt(width),
            "bx": 0.1 * rng.standard_normal(3 * width),
            "bh": 0.1 * rng.standard_normal(3 * width),
        }
        batch_data = {
            "x": rng.standard_normal((steps, batch, inputs)),
            "targets": rng.standard_normal((batch, width)),
        }
        return _single(params), _single(batch_data)

    def in_numpy() -> Loss:
        def sigmoid(x: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-x))

        def loss(params: Tree, batch: Tree) -> np.ndarray:
            h = np.zeros_like(batch["targets"])
            for x in batch["x"]:
                x_reset, x_update, x_new = np.split(x @ params["wx"] + params["bx"], 3, axis=1)
                h_reset, h_update, h_new = np.split(h @ params["wh"] + params["bh"], 3, axis=1)
                update = sigmoid(x_update + h_update)
                h = (1 - update) * np.tanh(x_new + sigmoid(x_reset + h_reset) * h_new) + update * h
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            h = tj.zeros_like(batch["targets"])
            for t in range(steps):
                of_x = batch["x"][t] @ params["wx"] + params["bx"]
                of_h = h @ params["wh"] + params["bh"]
                reset = tj.sigmoid(of_x[:, :width] + of_h[:, :width])
                update = tj.sigmoid(of_x[:, width : 2 * width] + of_h[:, width : 2 * width])
                new = tj.tanh(of_x[:, 2 * width :] + reset * of_h[:, 2 * width :])
                h = (1 - update) * new + update * h
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def cell(params: Tree, h: "jax.Array", x: "jax.Array") -> "jax.Array":  # noqa: F821
        import jax
        import jax.numpy as jnp

        x_reset, x_update, x_new = jnp.split(x @ params["wx"] + params["bx"], 3, axis=1)
        h_reset, h_update, h_new = jnp.split(h @ params["wh"] + params["bh"], 3, axis=1)
        update = jax.nn.sigmoid(x_update + h_update)
        new = jnp.tanh(x_new + jax.nn.sigmoid(x_reset + h_reset) * h_new)
        return (1 - update) * new + update * h

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> jax.Array:
            start = jnp.zeros_like(batch["targets"])
            h, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), start, batch["x"])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_jax_unrolled() -> Loss:
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> "jnp.ndarray":
            h = jnp.zeros_like(batch["targets"])
            for t in range(steps):
                h = cell(params, h, batch["x"][t])
            return ((h - batch["targets"]) ** 2).mean()

        return loss

    def in_torch() -> Loss:
        import torch

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            weights = [params["wx"].T, params["wh"].T, params["bx"], params["bh"]]
            start = torch.zeros_like(batch["targets"])[None]
            # What torch.nn.GRU calls: has_biases, layers, dropout, training, bidirectional, batch_first.
            _, h = torch.gru(batch["x"], start, weights, True, 1, 0.0, True, False, False)
            return ((h[0] - batch["targets"]) ** 2).mean()

        return loss

    return _recurrent(
        name, f"GRU cell, {steps} steps, H {width}, batch {batch}", "train", steps, data,
        {
            "numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "jax unrolled": in_jax_unrolled,
            "torch": in_torch,
        },
    )  # fmt: skip


def _single(tree: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.astype(np.float32) for name, array in tree.items()}


def _recurrent(
    name: str, title: str, kind: Kind, steps: int, data: object, losses: dict, target_us: float | None = None
) -> Workload:
    if steps > UNROLLED_AT_MOST:
        del losses["jax unrolled"]
    return Workload(name, title, kind, data, losses, target_us=target_us, keep_compiler=False)
