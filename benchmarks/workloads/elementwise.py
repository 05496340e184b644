# SPDX-License-Identifier: BSD-3-Clause
"""Work without matrix products: a chain of tanh and sigmoid, rows, a Gaussian mixture, and next to no work."""

import numpy as np

from benchmarks.workload import Loss, Tree, Workload


def chain(name: str, size: int, target_us: float | None = None) -> Workload:
    """Return value and gradient of the sum of tanh and sigmoid, twice each, over a vector."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        return {"x": rng.standard_normal(size).astype(np.float32)}, {}

    def in_numpy() -> Loss:
        def sigmoid(x: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-x))

        return lambda params, batch: sigmoid(np.tanh(sigmoid(np.tanh(params["x"])))).mean()

    def in_tracejit() -> Loss:
        import tracejit as tj

        return lambda params, batch: tj.sigmoid(tj.tanh(tj.sigmoid(tj.tanh(params["x"])))).mean()

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        sigmoid = jax.nn.sigmoid
        return lambda params, batch: sigmoid(jnp.tanh(sigmoid(jnp.tanh(params["x"])))).mean()

    def in_torch() -> Loss:
        import torch

        sigmoid, tanh = torch.sigmoid, torch.tanh
        return lambda params, batch: sigmoid(tanh(sigmoid(tanh(params["x"])))).mean()

    losses = {"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch}
    title = f"tanh/sigmoid chain, {size} elements, gradient"
    return Workload(name, title, "gradient", data, losses, target_us=target_us)


def logsumexp_rows(name: str, rows: int, columns: int) -> Workload:
    """Return value and gradient of the mean logsumexp of rows."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        return {"x": rng.standard_normal((rows, columns)).astype(np.float32)}, {}

    def in_numpy() -> Loss:
        return lambda params, batch: np.log(np.exp(params["x"]).sum(axis=1)).mean()

    def in_tracejit() -> Loss:
        import tracejit as tj

        return lambda params, batch: tj.logsumexp(params["x"], axis=1).mean()

    def in_jax() -> Loss:
        import jax

        return lambda params, batch: jax.nn.logsumexp(params["x"], axis=1).mean()

    def in_torch() -> Loss:
        import torch

        return lambda params, batch: torch.logsumexp(params["x"], 1).mean()

    losses = {"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch}
    return Workload(name, f"logsumexp of {rows} rows of {columns}, gradient", "gradient", data, losses)


def layernorm_rows(name: str, rows: int, columns: int) -> Workload:
    """Return value and gradient of a mean square error behind layer normalisation."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        x, targets = rng.standard_normal((2, rows, columns)).astype(np.float32)
        scale, offset = rng.standard_normal((2, columns)).astype(np.float32)
        return {"x": x, "scale": scale, "offset": offset}, {"targets": targets}

    def in_numpy() -> Loss:
        def loss(params: Tree, batch: Tree) -> np.ndarray:
            x = params["x"]
            y = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
            return ((y * params["scale"] + params["offset"] - batch["targets"]) ** 2).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            x = params["x"]
            centred = x - x.mean(axis=1, keepdims=True)
            variance = (centred**2).mean(axis=1, keepdims=True)
            y = centred / tj.sqrt(variance + 1e-5) * params["scale"] + params["offset"]
            return ((y - batch["targets"]) ** 2).mean()

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> jax.Array:
            x = params["x"]
            centred = x - x.mean(axis=1, keepdims=True)
            variance = (centred**2).mean(axis=1, keepdims=True)
            y = centred / jnp.sqrt(variance + 1e-5) * params["scale"] + params["offset"]
            return ((y - batch["targets"]) ** 2).mean()

        return loss

    def in_torch() -> Loss:
        import torch.nn.functional as F

        def loss(params: Tree, batch: Tree) -> "F.Tensor":
            y = F.layer_norm(params["x"], (columns,), params["scale"], params["offset"], 1e-5)
            return F.mse_loss(y, batch["targets"])

        return loss

    losses = {"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch}
    return Workload(name, f"layer norm of {rows} rows of {columns}, gradient", "gradient", data, losses)


def mixture(name: str, points: int, components: int, dimensions: int) -> Workload:
    """Return the log-likelihood of a Gaussian mixture with diagonal covariances, and its gradient."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        means, scales = rng.standard_normal((2, components, dimensions)).astype(np.float32)
        params = {"means": means, "scales": 0.1 * scales, "logits": np.zeros(components, np.float32)}
        return params, {"x": rng.standard_normal((points, dimensions)).astype(np.float32)}

    def in_numpy() -> Loss:
        def loss(params: Tree, batch: Tree) -> np.ndarray:
            weights = np.exp(params["logits"]) / np.exp(params["logits"]).sum()
            z = (batch["x"][:, None, :] - params["means"]) / np.exp(params["scales"])
            densities = np.exp(-0.5 * (z**2).sum(axis=2)) / np.exp(params["scales"]).prod(axis=1)
            return -np.log(densities @ weights).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            z = (batch["x"][:, None, :] - params["means"]) * tj.exp(-params["scales"])
            inside = -0.5 * (z**2).sum(axis=2) - params["scales"].sum(axis=1)
            logits = params["logits"]
            return -tj.logsumexp(inside + logits - tj.logsumexp(logits), axis=1).mean()

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def loss(params: Tree, batch: Tree) -> jax.Array:
            z = (batch["x"][:, None, :] - params["means"]) * jnp.exp(-params["scales"])
            inside = -0.5 * (z**2).sum(axis=2) - params["scales"].sum(axis=1)
            return -jax.nn.logsumexp(inside + jax.nn.log_softmax(params["logits"]), axis=1).mean()

        return loss

    def in_torch() -> Loss:
        import torch

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            z = (batch["x"][:, None, :] - params["means"]) * torch.exp(-params["scales"])
            inside = -0.5 * (z**2).sum(dim=2) - params["scales"].sum(dim=1)
            return -torch.logsumexp(inside + torch.log_softmax(params["logits"], 0), 1).mean()

        return loss

    losses = {"numpy": in_numpy, "tracejit": in_tracejit, "jax": in_jax, "torch": in_torch}
    title = f"Gaussian mixture, {points} points, {components} of {dimensions}, gradient"
    return Workload(name, title, "gradient", data, losses)


def calls(name: str, count: int, target_us: float | None = None) -> Workload:
    """Return a function of `count` small arrays that gives as many: what a call costs."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        return [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(count)], {}

    def double() -> Loss:
        return lambda params, batch: [x * 2 for x in params]

    losses = {"numpy": double, "tracejit": double, "jax": double, "torch": double}
    return Workload(
        name, f"call overhead, {count} arrays in, {count} out", "forward", data, losses, target_us=target_us
    )
