# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which each library runs a workload. A module imports its library, so only a worker imports it."""

from typing import Protocol

import numpy as np

from benchmarks.workload import Tree, Workload

Results = dict[str, np.ndarray]  # by path: the loss and the gradients, or the outputs


class Job(Protocol):
    """A workload in one library, with its data."""

    def first(self) -> Results:
        """Run from the start until one step has run as all later ones will; return what that step computed."""

    def run(self, count: int) -> None:
        """Run a number of steps, and wait for the last one."""


def make_job(run: str, workload: Workload, data: tuple[Tree, Tree]) -> Job:
    """Return a workload as the way `run` of running it, a key of the workload's losses or "torch compile".

    Raises:
        ImportError: if the library is not installed.
    """
    library = run.partition(" ")[0]
    if library == "tracejit":
        from benchmarks.libraries.ours import TraceJit

        return TraceJit(run, workload, data)
    if library == "jax":
        from benchmarks.libraries.jax import Jax

        return Jax(run, workload, data)
    from benchmarks.libraries.torch import Torch

    return Torch(run, workload, data)


def resized(batch: Tree, count: int) -> Tree:
    """Return a batch of another number of observations, the given ones again and again."""
    return {name: np.resize(array, (count, *array.shape[1:])) for name, array in batch.items()}
