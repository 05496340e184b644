# SPDX-License-Identifier: BSD-3-Clause
"""The words of JAX."""

from collections.abc import Callable
from typing import Any

import jax  # type: ignore[import-not-found, unused-ignore]
import jax.numpy as jnp  # type: ignore[import-not-found, unused-ignore]
import jax.scipy  # type: ignore[import-not-found, unused-ignore]


class Jaxs:
    """Loops are lax.scan, or unrolled as Python does."""

    np = jnp
    special = jax.scipy.special
    linalg = jax.scipy.linalg

    def __init__(self, unroll: bool = False) -> None:
        self.unroll = unroll

    def loop(self, step: Callable[[Any], Any], state: Any, count: int) -> Any:
        return self.scan(lambda state, _: (step(state), None), state, jnp.arange(count))[0]

    def scan(self, step: Callable[[Any, Any], Any], state: Any, xs: Any, reverse: bool = False) -> Any:
        return jax.lax.scan(step, state, xs, reverse=reverse, unroll=8 if self.unroll else 1)

    def added(self, x: Any, place: Any, values: Any) -> Any:
        return x.at[place].add(values)

    def spline(self, knots: Any, heights: Any) -> Any:
        """Return the spline by its second derivatives at the knots, which a tridiagonal system has."""
        wide = jnp.diff(knots)
        rises = jnp.diff(heights) / wide
        below = jnp.concatenate([jnp.zeros(1), wide[1:-1]])
        above = jnp.concatenate([wide[1:-1], jnp.zeros(1)])
        right = 6 * jnp.diff(rises)[:, None]
        inner = jax.lax.linalg.tridiagonal_solve(below, 2 * (wide[1:] + wide[:-1]), above, right)[:, 0]
        bends = jnp.concatenate([jnp.zeros(1), inner, jnp.zeros(1)])

        def curve(x: Any, order: int) -> Any:
            i = jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
            h, t = wide[i], x - knots[i]
            if order == 2:
                return bends[i] + (bends[i + 1] - bends[i]) * t / h
            slope = rises[i] - h * (2 * bends[i] + bends[i + 1]) / 6
            return heights[i] + t * (slope + t * (bends[i] / 2 + t * (bends[i + 1] - bends[i]) / (6 * h)))

        return curve

    def with_gradients(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        return jax.value_and_grad(loss)

    def along(self, fun: Callable[[Any], Any], x: Any, v: Any) -> Any:
        return jax.jvp(fun, (x,), (v,))
