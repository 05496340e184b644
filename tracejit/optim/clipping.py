# SPDX-License-Identifier: BSD-3-Clause
"""Gradients that are made shorter: clipgradients."""

import math
from typing import Any

from tracejit import tree
from tracejit.aval import FLOAT64
from tracejit.errors import ArgumentError, ArgumentValueError
from tracejit.functions import reductions
from tracejit.functions.elementwise import clip, minimum
from tracejit.functions.formats import in_dtype
from tracejit.optim.parameters import floating
from tracejit.optim.scalars import Cast, scalar, square_root
from tracejit.util.arguments import is_option
from tracejit.util.text import brief


def clipgradients(grads: Any, threshold: Any, method: str = "l2norm") -> Any:
    """Return gradients that are not longer than a threshold; those that are longer keep their direction.

        g = g min(1, threshold / norm(g))

    Args:
        grads: gradients, as dlgradient returns them.
        threshold: number of more than 0, or scalar array; math.inf for none.
        method: "l2norm" for the norm of each array; "global-l2norm" for that of all arrays together, as
            optax.clip_by_global_norm and torch.nn.utils.clip_grad_norm_ take it; "absolute-value" to clip each element.

    Returns:
        Gradients in the same containers. Norms are computed in float64.

    Raises:
        ArgumentError: if `threshold` is no number or not more than 0, or `method` is none of these.
        DTypeError: if a gradient is not of floating point.

    Examples:
        >>> import tracejit as tj
        >>> grads = {"w": tj.dlarray([3.0, 4.0]), "b": tj.dlarray([0.0])}
        >>> tj.clipgradients(grads, 1)["w"].tolist()
        [0.6000000000000001, 0.8]
    """
    where = "clipgradients"
    if not is_option(method, ("l2norm", "global-l2norm", "absolute-value")):
        raise ArgumentError(
            f'{where}: method must be "l2norm", "global-l2norm" or "absolute-value", not {brief(method)}.'
        )
    most = scalar(where, "threshold", threshold)
    if type(most) is float and not most > 0:
        raise ArgumentValueError(f"{where}: threshold must be more than 0, not {brief(threshold)}.")
    parameters, put_back = tree.parameters(grads, where)
    leaves, treedef = tree.flatten(parameters, function=where)
    arrays = floating(where, "grads", treedef, leaves)
    if type(most) is float and most == math.inf:
        return grads
    if method == "absolute-value":
        bound = Cast(most)
        clipped = [clip(g, -bound[g._data.dtype], bound[g._data.dtype]) for g in arrays]
    else:
        squares = [_sum_of_squares(g) for g in arrays]
        if method == "global-l2norm":
            squares = [sum(squares)] * len(squares)
        clipped = [
            g * in_dtype(minimum(most / square_root(square), 1.0), g._data.dtype)
            for g, square in zip(arrays, squares, strict=True)
        ]
    return put_back(tree.unflatten(treedef, clipped))


def _sum_of_squares(g: Any) -> Any:
    """Return the sum of squares, as float64: those of a gradient that explodes would be infinite, and it would be 0."""
    wide = in_dtype(g, FLOAT64)
    return reductions.sum(wide * wide)
