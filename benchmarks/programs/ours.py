# SPDX-License-Identifier: BSD-3-Clause
"""The words of tracejit: NumPy itself, and SciPy's names under `tj`."""

from collections.abc import Callable
from typing import Any

import tracejit as tj
from benchmarks.programs.plain import Plain


class Ours(Plain):
    """Loops are kept by dlscan, or unrolled as Python does."""

    special = tj.special
    linalg = tj.linalg

    def __init__(self, unroll: bool = False) -> None:
        self.unroll = unroll

    def loop(self, step: Callable[[Any], Any], state: Any, count: int) -> Any:
        if self.unroll:
            return super().loop(step, state, count)
        return tj.dlscan(lambda state, _: (step(state), None), state, None, length=count)[0]

    def scan(self, step: Callable[[Any, Any], Any], state: Any, xs: Any, reverse: bool = False) -> Any:
        return (super().scan if self.unroll else tj.dlscan)(step, state, xs, reverse=reverse)

    def spline(self, knots: Any, heights: Any) -> Any:
        return tj.interpolate.CubicSpline(knots, heights, bc_type="natural")

    def with_gradients(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        def both(x: Any, *rest: Any) -> Any:
            value = loss(x, *rest)
            return value, tj.dlgradient(value, x)

        return lambda *arguments: tj.dlfeval(both, *arguments)

    def along(self, fun: Callable[[Any], Any], x: Any, v: Any) -> Any:
        return tj.jvp(fun, (x,), (v,))
