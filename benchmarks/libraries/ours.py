# SPDX-License-Identifier: BSD-3-Clause
"""Workloads in tracejit: the step is a function with dlaccelerate on it."""

from typing import Any

import numpy as np

import tracejit as tj
from benchmarks.libraries import Results, resized
from benchmarks.nested import leaves, mapped
from benchmarks.workload import DECAY, EPSILON, RATE, SQUARE_DECAY, Loss, Tree, Workload

State = tuple[Tree, Tree, Tree, tj.dlarray]  # parameters, Adam's two moments, iteration


def training_step(loss: Loss) -> tj.AcceleratedFunction:
    """Return a step of Adam."""

    @tj.dlaccelerate
    def step(state: State, batch: Tree) -> tuple[tj.dlarray, State]:
        params, mean, square, iteration = state
        value = loss(params, batch)
        gradients = tj.dlgradient(value, params)
        params, mean, square = tj.adamupdate(
            params, gradients, mean, square, iteration, RATE, DECAY, SQUARE_DECAY, EPSILON
        )
        return value, (params, mean, square, iteration + 1)

    return step


def value_and_gradient(loss: Loss) -> tj.AcceleratedFunction:
    """Return a function of parameters and batch that gives the loss and its gradients by the parameters."""

    @tj.dlaccelerate
    def gradient(params: Tree, batch: Tree) -> tuple[tj.dlarray, Tree]:
        value = loss(params, batch)
        return value, tj.dlgradient(value, params)

    return gradient


class TraceJit:
    """A workload in tracejit.

    Attributes:
        function: the accelerated function.
        arguments: what it is called with first.
    """

    def __init__(self, run: str, workload: Workload, data: tuple[Tree, Tree]) -> None:
        params, batch = mapped(tj.dlarray, data)
        loss = workload.losses[run]()
        self._kind = workload.kind
        self._data = data
        self._size = 0
        self.arguments: tuple[Any, Any] = (params, batch)
        if workload.kind in ("train", "sizes"):
            zeros = mapped(tj.zeros_like, params)
            self.arguments = ((params, zeros, zeros, tj.dlarray(np.float32(1))), batch)
            self.function = training_step(loss)
        elif workload.kind == "gradient":
            self.function = value_and_gradient(loss)
        else:
            self.function = tj.dlaccelerate(loss)

    def first(self) -> Results:
        """Record and confirm the first step, build it and replay it."""
        for _ in range(2):
            self.function(*self.arguments)
        outputs = self.function(*self.arguments)
        if self._kind in ("train", "sizes"):
            loss, (_, mean, _, _) = outputs
            found = {"loss": loss} | {k: v / (1 - DECAY) for k, v in leaves(mean, "gradient").items()}
        elif self._kind == "gradient":
            found = {"loss": outputs[0]} | leaves(outputs[1], "gradient")
        else:
            found = leaves(outputs, "output")
        return {name: tj.extractdata(array) for name, array in found.items()}

    def run(self, count: int) -> None:
        """Run a number of steps."""
        function = self.function
        state, batch = self.arguments
        if self._kind == "train":
            for _ in range(count):
                _, state = function(state, batch)
            self.arguments = (state, batch)
        elif self._kind == "sizes":
            for _ in range(count):
                self._size += 1
                size = len(batch["x"]) + self._size
                other = mapped(tj.dlarray, resized(self._data[1], size))
                for _ in range(2):
                    _, state = function(state, other)
            self.arguments = (state, batch)
        else:
            for _ in range(count):
                function(state, batch)
