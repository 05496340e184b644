# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of functions that differentiate functions: the arguments by position, and those by name."""

from typing import Any

import numpy as np

import tracejit as tj

X = np.array([[0.3, 0.1, 0.7], [0.2, 0.5, 0.4]])


def _square(*args: Any) -> Any:
    x = args[0] if args else None
    return tj.multiply(x, x)


def _total(*args: Any) -> Any:
    return tj.sum(_square(*args))


CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    **{
        name: [((tj.dlarray(X), tj.dlarray(X), 0), {"enable_higher_derivatives": True})]
        for name in ("dldivergence", "dljacobian", "dllaplacian")
    },
    "dljvp": [((tj.dlarray(X), tj.dlarray(X), X), {})],
    "dlhessian": [((tj.dlarray(2.0), tj.dlarray(X)), {})],
    "dlmap": [((_square,), {"over": (0,)})],
    "jvp": [((_square, (X,), (X,)), {})],
    "vjp": [((_square, (X,), X), {})],
    "hvp": [((_total, X, X, 1.0), {})],
    "jacobian": [((_square, X, 1.0), {"mode": "forward"})],
    "hessian": [((_total, X, 1.0), {})],
}
