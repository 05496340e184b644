# SPDX-License-Identifier: BSD-3-Clause
"""Executable graphs of launches, by the driver."""

from collections.abc import Callable, Sequence
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

import numpy as np

from tracejit.runtime.cuda.cublas_products import BlasRoutine
from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.library import KernelNode

_NON_BLOCKING, _RELAXED = 1, 2  # flag of a stream, mode of a capture


class NodeParameters(NamedTuple):
    """A launch in a graph.

    function, blocks, threads   the kernel's function, how many blocks run it, and the threads of each
    words                       of its argument
    kept                        what has to live as long as it
    routine, workspace          what computes a product instead of the function, and the address of its workspace
    """

    function: int
    blocks: int
    threads: int
    words: np.ndarray
    kept: Any = None
    routine: BlasRoutine | None = None
    workspace: int = 0


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
            before = (c_void_p * len(needed))(*[self._nodes[number].value for number in needed])
            self._nodes.append(new_node(driver, self._graph, parameters, before))
        driver.call("cuGraphInstantiateWithFlags", byref(self._executable), self._graph, 0)
        self.handle = self._executable.value or 0

    def update(self, number: int) -> None:
        """Give a launch of a kernel the words that its parameters have now, for the next replay."""
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


def new_node(driver: Driver, graph: c_void_p, parameters: NodeParameters, before: Any) -> c_void_p:
    """Add a launch to a graph and return its node.

    Args:
        driver: of the device.
        graph: of the driver.
        parameters: of the launch.
        before: an array of the nodes that have to be done before.

    Raises:
        DeviceError: if it fails.
    """
    node = c_void_p()
    if parameters.routine is None:
        structure, _kept = structure_of(parameters)
        driver.call("cuGraphAddKernelNode_v2", byref(node), graph, before, len(before), byref(structure))
        return node
    routine, words, workspace = parameters.routine, parameters.words, parameters.workspace
    child = captured(driver, lambda stream: routine.enqueue(words, workspace, stream))
    try:  # the node has a copy of it
        driver.call("cuGraphAddChildGraphNode", byref(node), graph, before, len(before), child)
    finally:
        driver.release("cuGraphDestroy", child)
    return node


def captured(driver: Driver, work: Callable[[int], None]) -> c_void_p:
    """Return the graph of what `work` puts on a stream, which does not run.

    Other threads may call what they like meanwhile, and so may libraries that load their kernels late.

    Raises:
        DeviceError: if it fails.
    """
    stream, graph = c_void_p(), c_void_p()
    driver.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
    try:
        driver.call("cuStreamBeginCapture_v2", stream, _RELAXED)
        try:
            work(stream.value or 0)
        except BaseException:
            driver.release(
                "cuStreamEndCapture", stream, byref(graph)
            )  # its status only tells of the same error
            if graph.value:
                driver.release("cuGraphDestroy", graph)
            raise
        driver.call("cuStreamEndCapture", stream, byref(graph))
    finally:
        driver.release("cuStreamDestroy_v2", stream)
    return graph


def structure_of(parameters: NodeParameters) -> tuple[KernelNode, Any]:
    """Return the driver's structure for a launch, and what has to live while it is read."""
    pointers = (c_void_p * 1)(parameters.words.ctypes.data)
    structure = KernelNode(
        parameters.function, parameters.blocks, 1, 1, parameters.threads, 1, 1, 0, pointers, None, None, None
    )
    return structure, (pointers, parameters.words)
