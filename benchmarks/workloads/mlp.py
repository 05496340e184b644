# SPDX-License-Identifier: BSD-3-Clause
"""Multilayer perceptrons that classify: the loss is the cross-entropy of one-hot targets."""

from itertools import pairwise

import numpy as np

from benchmarks.workload import Loss, Tree, Workload, dense


def mlp(
    sizes: tuple[int, ...],
    batch: int,
    *,
    name: str,
    title: str = "",
    activation: str = "relu",
    scale: float = 1.0,
    target_us: float | None = None,
    sweep: bool = False,
) -> Workload:
    """Return the training step of a perceptron.

    Args:
        sizes: of the input, the hidden layers and the output.
        batch: observations.
        name: of the workload.
        title: its row; by default the sizes and the batch.
        activation: "relu" or "tanh".
        scale: multiplies the loss; a tiny one makes squared gradients denormal.
        target_us: what DESIGN.md asks for.
        sweep: without torch.compile, which would compile for each row.
    """

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        params = [dense(rng, *pair) for pair in pairwise(sizes)]
        x = rng.standard_normal((batch, sizes[0])).astype(np.float32)
        labels = rng.integers(0, sizes[-1], batch)
        return params, {"x": x, "targets": np.eye(sizes[-1], dtype=np.float32)[labels]}

    def in_numpy() -> Loss:
        def loss(params: Tree, batch: Tree) -> np.ndarray:
            x = batch["x"]
            for layer in params[:-1]:
                z = x @ layer["w"] + layer["b"]
                x = np.tanh(z) if activation == "tanh" else np.maximum(z, 0)
            z = x @ params[-1]["w"] + params[-1]["b"]
            chosen = (batch["targets"] * z).sum(axis=1)
            return scale * (np.log(np.exp(z).sum(axis=1)) - chosen).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        activate = {"relu": tj.relu, "tanh": tj.tanh}[activation]

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            x = batch["x"]
            for layer in params[:-1]:
                x = activate(x @ layer["w"] + layer["b"])
            z = x @ params[-1]["w"] + params[-1]["b"]
            value = tj.crossentropy(z, batch["targets"], from_logits=True, data_format="BC")
            return value if scale == 1 else value * scale

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        activate = {"relu": jax.nn.relu, "tanh": jnp.tanh}[activation]

        def loss(params: Tree, batch: Tree) -> jax.Array:
            x = batch["x"]
            for layer in params[:-1]:
                x = activate(x @ layer["w"] + layer["b"])
            z = x @ params[-1]["w"] + params[-1]["b"]
            value = -(batch["targets"] * jax.nn.log_softmax(z)).sum(axis=1).mean()
            return value if scale == 1 else value * scale

        return loss

    def in_torch() -> Loss:
        import torch

        activate = {"relu": torch.relu, "tanh": torch.tanh}[activation]

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            x = batch["x"]
            for layer in params[:-1]:
                x = activate(torch.addmm(layer["b"], x, layer["w"]))
            z = torch.addmm(params[-1]["b"], x, params[-1]["w"])
            value = torch.nn.functional.cross_entropy(z, batch["targets"])
            return value if scale == 1 else value * scale

        return loss

    return Workload(
        name=name,
        title=title or f"MLP {'-'.join(map(str, sizes))}, batch {batch}",
        kind="train",
        data=data,
        losses={"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch},
        target_us=target_us,
        keep_compiler=not sweep,
    )
