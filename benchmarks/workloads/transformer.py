# SPDX-License-Identifier: BSD-3-Clause
"""A transformer block: normalisation, self-attention and a perceptron, each with a residual connection."""

import numpy as np

from benchmarks.workload import Loss, Tree, Workload, dense


def transformer(name: str, width: int = 128, heads: int = 4, length: int = 64, batch: int = 8) -> Workload:
    """Return the training step of one block, written from matrix products except where PyTorch has more."""
    size = width // heads

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        def norm() -> Tree:
            return {"scale": np.ones(width, np.float32), "offset": np.zeros(width, np.float32)}

        params = {
            "norm1": norm(),
            "qkv": dense(rng, width, 3 * width),
            "out": dense(rng, width, width),
            "norm2": norm(),
            "up": dense(rng, width, 4 * width),
            "down": dense(rng, 4 * width, width),
        }
        x, targets = rng.standard_normal((2, batch, length, width)).astype(np.float32)
        return params, {"x": x, "targets": targets}

    def in_numpy() -> Loss:
        def norm(x: np.ndarray, params: Tree) -> np.ndarray:
            y = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
            return y * params["scale"] + params["offset"]

        def linear(x: np.ndarray, params: Tree) -> np.ndarray:
            return x @ params["w"] + params["b"]

        def loss(params: Tree, batch: Tree) -> np.ndarray:
            x = batch["x"]
            parts = np.split(linear(norm(x, params["norm1"]), params["qkv"]), 3, axis=2)
            q, k, v = (part.reshape(*x.shape[:2], heads, size).transpose(0, 2, 1, 3) for part in parts)
            weights = np.exp(q @ k.transpose(0, 1, 3, 2) / np.sqrt(size))
            weights /= weights.sum(axis=-1, keepdims=True)
            x = x + linear((weights @ v).transpose(0, 2, 1, 3).reshape(x.shape), params["out"])
            z = linear(norm(x, params["norm2"]), params["up"])
            gelu = z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
            return ((x + linear(gelu, params["down"]) - batch["targets"]) ** 2).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def norm(x: tj.dlarray, params: Tree) -> tj.dlarray:
            centred = x - x.mean(axis=-1, keepdims=True)
            variance = (centred**2).mean(axis=-1, keepdims=True)
            return centred / tj.sqrt(variance + 1e-5) * params["scale"] + params["offset"]

        def attention(x: tj.dlarray, params: Tree) -> tj.dlarray:
            qkv = x @ params["qkv"]["w"] + params["qkv"]["b"]
            q, k, v = (
                part.reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
                for part in tj.split(qkv, 3, axis=2)
            )
            scores = q @ k.transpose(0, 1, 3, 2) * size**-0.5
            weights = tj.exp(scores - tj.logsumexp(scores, axis=-1, keepdims=True))
            mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
            return mixed @ params["out"]["w"] + params["out"]["b"]

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            x = batch["x"]
            x = x + attention(norm(x, params["norm1"]), params)
            z = norm(x, params["norm2"]) @ params["up"]["w"] + params["up"]["b"]
            x = x + tj.gelu(z, approximation="tanh") @ params["down"]["w"] + params["down"]["b"]
            return ((x - batch["targets"]) ** 2).mean()

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def norm(x: jax.Array, params: Tree) -> jax.Array:
            centred = x - x.mean(axis=-1, keepdims=True)
            variance = (centred**2).mean(axis=-1, keepdims=True)
            return centred / jnp.sqrt(variance + 1e-5) * params["scale"] + params["offset"]

        def attention(x: jax.Array, params: Tree) -> jax.Array:
            qkv = x @ params["qkv"]["w"] + params["qkv"]["b"]
            q, k, v = (
                part.reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
                for part in jnp.split(qkv, 3, axis=2)
            )
            weights = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) * size**-0.5)
            mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
            return mixed @ params["out"]["w"] + params["out"]["b"]

        def loss(params: Tree, batch: Tree) -> jax.Array:
            x = batch["x"]
            x = x + attention(norm(x, params["norm1"]), params)
            z = norm(x, params["norm2"]) @ params["up"]["w"] + params["up"]["b"]
            x = x + jax.nn.gelu(z) @ params["down"]["w"] + params["down"]["b"]
            return ((x - batch["targets"]) ** 2).mean()

        return loss

    def in_torch() -> Loss:
        import torch
        import torch.nn.functional as F

        def linear(x: torch.Tensor, params: Tree) -> torch.Tensor:
            return F.linear(x, params["w"].T, params["b"])

        def norm(x: torch.Tensor, params: Tree) -> torch.Tensor:
            return F.layer_norm(x, (width,), params["scale"], params["offset"], 1e-5)

        def attention(x: torch.Tensor, params: Tree) -> torch.Tensor:
            q, k, v = (
                part.view(batch, length, heads, size).transpose(1, 2)
                for part in linear(x, params["qkv"]).chunk(3, dim=2)
            )
            mixed = F.scaled_dot_product_attention(q, k, v)
            return linear(mixed.transpose(1, 2).reshape(batch, length, width), params["out"])

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            x = batch["x"]
            x = x + attention(norm(x, params["norm1"]), params)
            z = linear(norm(x, params["norm2"]), params["up"])
            x = x + linear(F.gelu(z, approximate="tanh"), params["down"])
            return F.mse_loss(x, batch["targets"])

        return loss

    return Workload(
        name=name,
        title=f"transformer block, width {width}, {heads} heads, length {length}, batch {batch}",
        kind="train",
        data=data,
        losses={"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch},
    )
