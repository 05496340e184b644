# SPDX-License-Identifier: BSD-3-Clause
"""Workloads in PyTorch: backward() and the fused Adam, eager or with the loss under torch.compile."""

import os
from typing import Any

import numpy as np
import torch

from benchmarks.libraries import Results, resized
from benchmarks.nested import leaves, mapped
from benchmarks.workload import DECAY, EPSILON, RATE, SQUARE_DECAY, Tree, Workload


class Torch:
    """A workload in PyTorch."""

    def __init__(self, run: str, workload: Workload, data: tuple[Tree, Tree]) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self._params, self._batch = mapped(torch.tensor, data)
        self._leaves = leaves(self._params)
        loss = workload.losses[run if run in workload.losses else "torch"]()
        self._loss = torch.compile(loss) if run.endswith("compile") else loss
        self._kind = workload.kind
        self._data = data
        self._size = 0
        if workload.kind == "forward":
            return
        for leaf in self._leaves.values():
            leaf.requires_grad_(True)
        if workload.kind != "gradient":
            self._adam = torch.optim.Adam(
                list(self._leaves.values()), RATE, (DECAY, SQUARE_DECAY), EPSILON, fused=True
            )

    def _step(self, batch: Tree) -> Any:
        if self._kind == "forward":
            with torch.no_grad():
                return self._loss(self._params, batch)
        loss = self._loss(self._params, batch)
        if self._kind == "gradient":
            return loss, torch.autograd.grad(loss, list(self._leaves.values()))
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        self._adam.step()
        return loss

    def first(self) -> Results:
        """Run the first step, which compiles where that was asked for."""
        outputs = self._step(self._batch)
        if self._kind == "forward":
            found = leaves(outputs, "output")
        elif self._kind == "gradient":
            gradients = dict(zip(leaves(self._params, "gradient"), outputs[1], strict=True))
            found = {"loss": outputs[0]} | gradients
        else:
            gradients = {name: leaf.grad for name, leaf in leaves(self._params, "gradient").items()}
            found = {"loss": outputs} | gradients
        return {name: np.array(array.detach()) for name, array in found.items()}

    def run(self, count: int) -> None:
        """Run a number of steps."""
        step, batch = self._step, self._batch
        if self._kind != "sizes":
            for _ in range(count):
                step(batch)
            return
        for _ in range(count):
            self._size += 1
            other = mapped(torch.tensor, resized(self._data[1], len(batch["x"]) + self._size))
            for _ in range(2):
                step(other)
