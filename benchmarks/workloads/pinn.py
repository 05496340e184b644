# SPDX-License-Identifier: BSD-3-Clause
"""A physics-informed network for Burgers' equation: the loss holds second derivatives of the network."""

from itertools import pairwise

import numpy as np

from benchmarks.workload import Loss, Tree, Workload, dense

NU = 0.05


def pinn(name: str, points: int = 1000, dtype: str = "float32", target_us: float | None = None) -> Workload:
    """Return the training step of u(x, t) with four hidden layers of 20, in float32 or float64."""

    def data(rng: np.random.Generator) -> tuple[Tree, Tree]:
        params = [dense(rng, *pair, dtype) for pair in pairwise((2, 20, 20, 20, 20, 1))]
        return params, {name: rng.uniform(-1, 1, (points, 1)).astype(dtype) for name in ("x", "t")}

    def in_numpy() -> Loss:
        def loss(params: Tree, batch: Tree) -> np.ndarray:
            # z and its derivatives z_x, z_t, z_xx, carried through the layers.
            z = np.concatenate([batch["x"], batch["t"]], axis=1)
            z_x, z_t, z_xx = np.zeros((3, *z.shape))
            z_x[:, 0] = z_t[:, 1] = 1
            for layer in params[:-1]:
                z, z_x, z_t, z_xx = (part @ layer["w"] for part in (z, z_x, z_t, z_xx))
                y = np.tanh(z + layer["b"])
                slope = 1 - y**2
                z, z_xx = y, slope * z_xx - 2 * y * slope * z_x**2
                z_x, z_t = slope * z_x, slope * z_t
            w = params[-1]["w"]
            return ((z_t @ w + (z @ w + params[-1]["b"]) * (z_x @ w) - NU * (z_xx @ w)) ** 2).mean()

        return loss

    def in_tracejit() -> Loss:
        import tracejit as tj

        def network(params: Tree, x: tj.dlarray, t: tj.dlarray) -> tj.dlarray:
            z = tj.concatenate([x, t], axis=1)
            for layer in params[:-1]:
                z = tj.tanh(z @ layer["w"] + layer["b"])
            return z @ params[-1]["w"] + params[-1]["b"]

        def loss(params: Tree, batch: Tree) -> tj.dlarray:
            x, t = batch["x"], batch["t"]
            u = network(params, x, t)
            u_x, u_t = tj.dlgradient(u.sum(), x, t)
            u_xx = tj.dlgradient(u_x.sum(), x)
            return ((u_t + u * u_x - NU * u_xx) ** 2).mean()

        return loss

    def in_jax() -> Loss:
        import jax
        import jax.numpy as jnp

        def network(params: Tree, x: jax.Array, t: jax.Array) -> jax.Array:
            z = jnp.stack([x, t])
            for layer in params[:-1]:
                z = jnp.tanh(z @ layer["w"] + layer["b"])
            return (z @ params[-1]["w"] + params[-1]["b"])[0]

        def residual(params: Tree, x: jax.Array, t: jax.Array) -> jax.Array:
            u, (u_x, u_t) = jax.value_and_grad(network, (1, 2))(params, x, t)
            u_xx = jax.grad(jax.grad(network, 1), 1)(params, x, t)
            return u_t + u * u_x - NU * u_xx

        def loss(params: Tree, batch: Tree) -> jax.Array:
            at_all = jax.vmap(residual, (None, 0, 0))
            return (at_all(params, batch["x"][:, 0], batch["t"][:, 0]) ** 2).mean()

        return loss

    def in_jax_forward() -> Loss:
        import jax
        import jax.numpy as jnp

        def network(params: Tree, x: jax.Array, t: jax.Array) -> jax.Array:
            z = jnp.concatenate([x, t], axis=1)
            for layer in params[:-1]:
                z = jnp.tanh(z @ layer["w"] + layer["b"])
            return z @ params[-1]["w"] + params[-1]["b"]

        def loss(params: Tree, batch: Tree) -> jax.Array:
            x, t = batch["x"], batch["t"]
            one = jnp.ones_like(x)

            def slope(x: jax.Array) -> tuple[jax.Array, jax.Array]:
                u, u_x = jax.jvp(lambda x: network(params, x, t), (x,), (one,))
                return u_x, u

            u_x, u_xx, u = jax.jvp(slope, (x,), (one,), has_aux=True)
            u_t = jax.jvp(lambda t: network(params, x, t), (t,), (one,))[1]
            return ((u_t + u * u_x - NU * u_xx) ** 2).mean()

        return loss

    def in_torch() -> Loss:
        import torch

        def network(params: Tree, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            z = torch.cat([x, t], dim=1)
            for layer in params[:-1]:
                z = torch.tanh(torch.addmm(layer["b"], z, layer["w"]))
            return torch.addmm(params[-1]["b"], z, params[-1]["w"])

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            x, t = (batch[name].detach().requires_grad_(True) for name in ("x", "t"))
            u = network(params, x, t)
            u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
            (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
            return ((u_t + u * u_x - NU * u_xx) ** 2).mean()

        return loss

    def in_torch_compile() -> Loss:
        import torch
        from torch.func import grad

        def network(params: Tree, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            z = torch.cat([x, t], dim=1)
            for layer in params[:-1]:
                z = torch.tanh(torch.addmm(layer["b"], z, layer["w"]))
            return torch.addmm(params[-1]["b"], z, params[-1]["w"])

        def loss(params: Tree, batch: Tree) -> torch.Tensor:
            # torch.compile has no derivatives of autograd.grad, but those of torch.func.
            x, t = batch["x"], batch["t"]

            def total(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
                return network(params, x, t).sum()

            u = network(params, x, t)
            u_x, u_t = grad(total, (0, 1))(x, t)
            u_xx = grad(lambda x: grad(total)(x, t).sum())(x)
            return ((u_t + u * u_x - NU * u_xx) ** 2).mean()

        return loss

    losses = {
        "numpy": in_numpy,
        "tracejit": in_tracejit,
        "jax": in_jax,
        "jax forward": in_jax_forward,
        "torch": in_torch,
        "torch compile": in_torch_compile,
    }
    return Workload(
        name=name,
        title=f"Burgers PINN 2-20x4-1, {points} points, {dtype}",
        kind="train",
        data=data,
        losses=losses,
        tolerance=1e-3 if dtype == "float32" else 1e-10,
        target_us=target_us,
    )
