# SPDX-License-Identifier: BSD-3-Clause
"""The scale of a loss in training with numbers of 16 bits."""

import math
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array
from tracejit.aval import FLOAT32
from tracejit.errors import ArgumentError
from tracejit.functions import reductions
from tracejit.functions.elementwise import isfinite, logical_and, logical_not, where
from tracejit.functions.formats import in_dtype
from tracejit.util.arguments import is_real
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief


class LossScale(NamedTuple):
    """The scale of a loss in training with numbers of 16 bits, which adapts itself.

    Gradients below 6e-8, the smallest number of float16, would be 0. Those of the loss times a scale are not, and
    are divided by the scale in float32. Where one of them is infinite or NaN the step is left out and the scale
    becomes smaller; after a number of steps without, it grows. (P. Micikevicius and others, Mixed precision
    training, ICLR 2018.)

    Attributes:
        scale: scalar array of float32, the factor.
        steps: scalar array of int32, how many steps with finite gradients are behind since the scale changed.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> def gradients(w, x, scaling):
        ...     loss = tj.mean(1e-7 * w.astype(np.float16) * x)
        ...     return tj.dlgradient(scaling.scaled(loss), w)
        >>> w, x = tj.dlarray(np.ones(2, np.float32)), tj.dlarray(np.array([0.01, 0.02], np.float16))
        >>> scaling = tj.LossScale.of(2.0**16)
        >>> found = tj.dlfeval(gradients, w, x, scaling)
        >>> found, finite, scaling = scaling.unscaled(found)
        >>> finite.item(), scaling.steps.item()
        (True, 1)
    """

    scale: Any
    steps: Any

    @classmethod
    def of(cls, scale: float = 2.0**16) -> "LossScale":
        """Return the state before the first step.

        Args:
            scale: the first factor, which is positive and finite; a power of two rounds nothing.

        Raises:
            ArgumentError: for any other factor.
        """
        if not is_real(scale) or not 0 < scale < math.inf:
            raise ArgumentError(f"LossScale.of: scale must be positive and finite, not {brief(scale)}.")
        return cls(as_array(np.array(scale, np.float32)), as_array(np.array(0, np.int32)))

    def scaled(self, loss: Any) -> Any:
        """Return the loss in float32 times the scale: what to differentiate."""
        return in_dtype(as_array(loss, "LossScale.scaled", "loss"), FLOAT32) * self.scale

    def unscaled(
        self, grads: Any, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000
    ) -> tuple[Any, Any, "LossScale"]:
        """Return gradients of a scaled loss over the scale, whether all are finite, and the state of the next step.

        Args:
            grads: gradients of the scaled loss: a dlarray, or a container of such arrays.
            growth: the factor of the scale after `interval` steps with finite gradients.
            backoff: the factor of the scale after gradients that are not finite.
            interval: a number of steps.

        Returns:
            Gradients in float32, a scalar array of bool, and a LossScale.
        """
        leaves, structure = tree.flatten(grads)
        wide = [in_dtype(as_array(leaf, "LossScale.unscaled", "grads"), FLOAT32) for leaf in leaves]
        finite = as_array(np.array(True))
        for leaf in wide:
            finite = logical_and(finite, reductions.all(isfinite(leaf)))
        grown = self.steps + 1 >= interval
        larger = where(grown, self.scale * np.float32(growth), self.scale)
        scale = where(finite, where(isfinite(larger), larger, self.scale), self.scale * np.float32(backoff))
        steps = where(logical_and(finite, logical_not(grown)), self.steps + 1, 0 * self.steps)
        return (
            tree.unflatten(structure, [leaf / self.scale for leaf in wide]),
            finite,
            LossScale(scale, steps),
        )

    def chosen(self, finite: Any, new: Any, old: Any) -> Any:
        """Return the new parameters, or the old ones where gradients were not finite.

        Args:
            finite: the second result of `unscaled`.
            new: parameters after the update: a dlarray, or a container of such arrays.
            old: those before, of the same structure.
        """
        leaves, structure = tree.flatten(new)
        before, _ = tree.flatten(old)
        return tree.unflatten(structure, [where(finite, *pair) for pair in zip(leaves, before, strict=True)])
