# SPDX-License-Identifier: BSD-3-Clause
"""What a program is, and the words that it is written in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Words(Protocol):
    """The functions of one library: NumPy's by NumPy's names, and what NumPy has no name for."""

    np: Any  # numpy, or jax.numpy
    special: Any  # ndtr, logsumexp, expit
    linalg: Any  # solve_triangular, cho_factor, cho_solve

    def loop(self, step: Callable[[Any], Any], state: Any, count: int) -> Any:
        """Return what a state becomes in some steps."""

    def scan(self, step: Callable[[Any, Any], Any], state: Any, xs: Any, reverse: bool = False) -> Any:
        """Return the last state, and what the steps gave, as arrays with a new first axis."""

    def added(self, x: Any, place: Any, values: Any) -> Any:
        """Return a copy of x to which values are added at a place."""

    def spline(self, knots: Any, heights: Any) -> Any:
        """Return a natural cubic spline: a function of points and of the order of a derivative."""

    def with_gradients(self, loss: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that gives a loss, and its gradients by the first argument, which may be a container."""

    def along(self, fun: Callable[[Any], Any], x: Any, v: Any) -> Any:
        """Return the value of a function, and its derivative along v."""


@dataclass(frozen=True)
class Program:
    """A function of the words and of arguments, which returns a value and derivatives."""

    name: str
    run: Callable[..., Any]
    data: Callable[[np.random.Generator], tuple[Any, ...]]
    loops: bool = False  # it has steps, which a library may unroll or keep as a loop
    loss: Callable[..., Any] | None = None  # what `run` differentiates by the first argument


def gradients(name: str, loss: Callable[..., Any], data: Callable[..., Any], loops: bool = False) -> Program:
    """Return the program that gives a loss and its gradients by the first argument."""

    def run(words: Words, *arguments: Any) -> Any:
        return words.with_gradients(lambda *given: loss(words, *given))(*arguments)

    return Program(name, run, data, loops, loss)
