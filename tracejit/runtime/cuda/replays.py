# SPDX-License-Identifier: BSD-3-Clause
"""PlacedLaunches: launches of a program as graphs, each for the addresses of some calls.

Note [graphs]
A graph has the addresses of its arrays in it. Replacing them takes the driver a microsecond for each launch, and making
a graph takes longer. A loop comes back to the same addresses (Note [memory is used again] in driver.py). So a program
has a graph for each of the latest few calls whose addresses came twice; other addresses replace those of the graph that
was made or moved longest ago. A graph with products of the library at addresses that change is made again, because what
the library puts on a stream is known for the given addresses only.
"""

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from tracejit.kernels.executor.state import MOST_GRAPHS
from tracejit.runtime.cuda.cublas_products import Routines
from tracejit.runtime.cuda.driver import Driver
from tracejit.runtime.cuda.graph import GraphPlan
from tracejit.runtime.cuda.launches import DeviceGraph, NodeParameters

_MOST_SEEN = 256  # addresses of calls that are remembered

Place = tuple[str, int]  # what lies there, such as "input", and its number
WORKSPACE: Place = ("workspace", 0)  # of products that the library computes


class PlacedLaunches:
    """Launches on the device as graphs with some addresses from a call's arrays (Note [graphs]).

    In loops that the host runs, the numbers of their turns follow the addresses.

    Args:
        on: the device.
        plan: the launches.
        functions: of the device, by the names of kernels.
        fixed: addresses that are the same in each call, by what lies there.
        moving: the numbers of the others in a call's addresses.
        routines: of products that the library computes.
    """

    def __init__(
        self, on: Driver, plan: GraphPlan, functions: dict[str, int], fixed: Mapping[Place, int],
        moving: Mapping[Place, int], routines: Routines,
    ) -> None:  # fmt: skip
        self._on, self._plan = on, plan
        self._parameters: list[NodeParameters] = []
        # Of each word: node, slot, number of the address or None, offset, and what it moves by in loops of the host.
        self._moving: list[tuple[int, int, int | None, int, tuple[int, ...]]] = []
        self._arrays = len(moving)
        for number, node in enumerate(plan.nodes):
            words = np.zeros(max(1, node.kernel.words), np.int64)
            words[: len(node.words)] = node.words
            for patch in node.patches:
                place, offset = (patch.kind, patch.number), patch.offset
                if place not in fixed:
                    self._moving.append((number, patch.slot, moving[place], offset, patch.steps))
                elif patch.steps:
                    self._moving.append((number, patch.slot, None, fixed[place] + offset, patch.steps))
                else:
                    words[patch.slot] = fixed[place] + offset
            routine = routines.of(node)
            function = functions[node.kernel.name] if routine is None else 0
            self._parameters.append(
                NodeParameters(
                    function, node.grid.blocks, node.grid.threads, words, routine=routine,
                    workspace=0 if routine is None else fixed[WORKSPACE],
                )
            )  # fmt: skip
        self._graphs: dict[tuple[int, ...], DeviceGraph] = {}  # the one made or moved longest ago is first
        self._seen: set[tuple[int, ...]] = set()

    def at(self, addresses: tuple[int, ...]) -> list[NodeParameters]:
        """Return the launches on the arrays of a call."""
        parameters = [part._replace(words=part.words.copy()) for part in self._parameters]
        self._move(parameters, addresses)
        return parameters

    def another(self) -> "PlacedLaunches":
        """Return the same launches with graphs of their own."""
        other = copy.copy(self)
        other._graphs, other._seen = {}, set()
        return other

    def place(self, addresses: tuple[int, ...]) -> dict[tuple[int, ...], DeviceGraph]:
        """Make or move a graph to addresses that there is no graph of; return all graphs by their addresses."""
        self._placed(addresses)
        return self._graphs

    def launch(self, addresses: tuple[int, ...]) -> None:
        """Launch the graph of the addresses of a call."""
        graph = self._graphs.get(addresses)
        if graph is None:
            if not self._parameters:
                return
            graph = self._placed(addresses)
        graph.launch()

    def _placed(self, addresses: tuple[int, ...]) -> DeviceGraph:
        """Return the graph of addresses that there is no graph of."""
        graphs = self._graphs
        if not graphs or (addresses in self._seen and len(graphs) < MOST_GRAPHS):
            graph = DeviceGraph(self._on, self.at(addresses), self._plan.dependencies)
        else:
            graph = graphs.pop(next(iter(graphs)))
            changed = self._move(graph.parameters, addresses)
            if any(self._parameters[number].routine is not None for number in changed):
                graph = DeviceGraph(self._on, graph.parameters, self._plan.dependencies)
            else:
                for number in changed:
                    graph.update(number)
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(addresses)
        graphs[addresses] = graph
        return graph

    def _move(self, parameters: Sequence[NodeParameters], addresses: tuple[int, ...]) -> list[int]:
        """Put the addresses into the words of launches; return the numbers of those that change."""
        changed = set()
        turns = addresses[self._arrays :]
        for number, slot, place, offset, steps in self._moving:
            words, address = parameters[number].words, offset
            if place is not None:
                address += addresses[place]
            for step, turn in zip(steps, turns, strict=False):
                address += step * turn
            if words[slot] != address:
                words[slot] = address
                changed.add(number)
        return sorted(changed)
