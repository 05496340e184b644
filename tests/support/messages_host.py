# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions that run in Python: a call, the error, its text."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, GradientError

M = tj.dlarray(np.ones((2, 3)), "CB")


class Made(tj.DifferentiableFunction):
    """A function whose forward and backward return what it is made with."""

    def __init__(self, forward: Any = None, backward: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.found, self.gradients = forward, backward

    def forward(self, *inputs: Any) -> Any:
        return inputs[0] if self.found is None else self.found

    def backward(self, *arguments: Any) -> Any:
        return self.gradients


class Nothing(tj.DifferentiableFunction):
    """A function without forward and backward."""


class Same(tj.DifferentiableFunction):
    """A function without backward."""

    def forward(self, x: Any) -> Any:
        return x


class Square(tj.DifferentiableFunction):
    """A function whose second derivative is asked for."""

    def __init__(self) -> None:
        super().__init__(save_inputs_for_backward=True)

    def forward(self, x: Any) -> Any:
        return x * x

    def backward(self, dy: Any, compute_gradients: Any, x: Any) -> Any:
        return 2 * x * dy


def slope(function: Callable[..., Any], *inputs: Any) -> object:
    return tj.dlfeval(lambda x, *more: tj.dlgradient(function(x, *more).sum(), x), *inputs)


def curvature(x: Any) -> Any:
    return tj.dlgradient(tj.dlgradient(Square()(x).sum(), x).sum(), x)


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (Made(), ArgumentError, "Made: it was called without inputs; pass one array at least."),
    (
        lambda: Made("text")(1.0),
        tj.DTypeError,
        "Made.forward: data of type <U4 is not supported as value 1; use float64, float32, complex128, complex64, bool "
        "or an integer type (for example data.astype(np.float32)).",
    ),
    (
        lambda: Made(num_outputs=0),
        ArgumentError,
        "Made: num_outputs must be at least 1, not 0.",
    ),
    (
        lambda: Made((1.0, 2.0, 3.0), num_outputs=2, num_memory_values=2)(1.0),
        ArgumentError,
        "Made.forward: it returned 3 values, expected 4: 2 outputs and 2 memory values. Return that many, or change "
        "num_outputs and num_memory_values.",
    ),
    (
        lambda: Nothing()(1.0),
        ArgumentError,
        "Nothing: there is no forward; define forward(self, *inputs).",
    ),
    (
        lambda: slope(Same(), M),
        GradientError,
        "Same: there is no backward; define backward(self, *cotangents, compute_gradients, ...).",
    ),
    (
        lambda: slope(Made(None, (1.0, 2.0)), M),
        ArgumentError,
        "Made.backward: it returned 2 gradients, expected 1: one for each input of forward, in their order, None where "
        "compute_gradients is False.",
    ),
    (
        lambda: slope(Made(None, np.ones((3, 2))), M),
        DimsError,
        "Made.backward: gradient 1 is 3x2 float64, but input 1 of forward is 2(C) x 3(B) float64; a gradient has the "
        "size of its input. Sum over the axes that were broadcast.",
    ),
    (
        lambda: slope(Made(None, None), M),
        GradientError,
        "Made.backward: gradient 1 is None, but compute_gradients[0] is True; return an array of 2(C) x 3(B) float64, "
        "zeros if no output depends on the input.",
    ),
    (
        lambda: tj.dlfeval(curvature, M),
        GradientError,
        "Square: backward is Python code, which has no derivative of its own, so that second derivatives are not "
        "there; write backward of dlarray operations, with tj.custom_gradient.",
    ),
)
