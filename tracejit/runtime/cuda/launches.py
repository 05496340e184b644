# SPDX-License-Identifier: BSD-3-Clause
"""Executable graphs of launches, by the driver."""

from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

import numpy as np

from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.library import KernelNode


class NodeParameters(NamedTuple):
    """A launch in a graph.

    function, blocks, threads   the kernel's function, how many blocks run it, and the threads of each
    words                       of its argument
    kept                        what has to live as long as it
    """

    function: int
    blocks: int
    threads: int
    words: np.ndarray
    kept: Any = None


class DeviceGraph:
    """An executable graph of launches.

    Args:
        driver: of the device.
        nodes: the launches.
        dependencies: for each, the numbers of those that have to be done before.

    Attributes:
        parameters: of the launches.
        handle: of the executable graph.
    """

    def __init__(
        self, driver: Driver, nodes: Sequence[NodeParameters], dependencies: Sequence[Sequence[int]]
    ) -> None:
        self._driver = driver
        self.parameters = list(nodes)
        self._graph, self._executable = c_void_p(), c_void_p()
        self._nodes: list[c_void_p] = []
        driver.call("cuGraphCreate", byref(self._graph), 0)
        for parameters, needed in zip(nodes, dependencies, strict=True):
            node = c_void_p()
            before = (c_void_p * len(needed))(*[self._nodes[number].value for number in needed])
            structure, _kept = structure_of(parameters)
            driver.call(
                "cuGraphAddKernelNode_v2", byref(node), self._graph, before, len(needed), byref(structure)
            )
            self._nodes.append(node)
        driver.call("cuGraphInstantiateWithFlags", byref(self._executable), self._graph, 0)
        self.handle = self._executable.value or 0

    def update(self, number: int) -> None:
        """Give a launch the words that its parameters have now, for the next replay."""
        structure, _kept = structure_of(self.parameters[number])
        self._driver.call(
            "cuGraphExecKernelNodeSetParams_v2", self._executable, self._nodes[number], byref(structure)
        )

    def launch(self) -> None:
        """Put all launches on the stream."""
        self._driver.replay(self.handle)

    def __del__(self) -> None:
        for name, handle in (("cuGraphExecDestroy", self._executable), ("cuGraphDestroy", self._graph)):
            if handle.value:
                self._driver.release(name, handle)


def structure_of(parameters: NodeParameters) -> tuple[KernelNode, Any]:
    """Return the driver's structure for a launch, and what has to live while it is read."""
    pointers = (c_void_p * 1)(parameters.words.ctypes.data)
    structure = KernelNode(
        parameters.function, parameters.blocks, 1, 1, parameters.threads, 1, 1, 0, pointers, None, None, None
    )
    return structure, (pointers, parameters.words)
