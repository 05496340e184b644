# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions that differentiate functions: the arguments by position, and those by name."""

from typing import Any

import numpy as np

X = np.array([[0.3, 0.1, 0.7], [0.2, 0.5, 0.4]])


def _square(x: Any, *args: Any) -> Any:
    return x * x


def _total(x: Any, *args: Any) -> Any:
    return (x * x).sum()


CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "jvp": [((_square, (X,), (X,)), {})],
    "vjp": [((_square, (X,), X), {})],
    "hvp": [((_total, X, X, 1.0), {})],
    "jacobian": [((_square, X, 1.0), {"mode": "forward"})],
    "hessian": [((_total, X, 1.0), {})],
}
