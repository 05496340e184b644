# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of networks: layers, sizes of their outputs, numbers of learnables, memory."""

import math
from typing import Any

from tracejit.errors import ArgumentError
from tracejit.nn.placed import LEARNABLE, STATE
from tracejit.util import html
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count, size, table

_HEADER = ("name", "type", "output", "learnables", "state")
_NUMBERS = ("learnables", "state")
_MOST_SHOWN = 300  # rows


class LayerSummary(NamedTuple):
    """A row of a summary.

    name, type      of the layer
    outputs         the layout of each output
    learnables      number of learnable elements
    state           number of elements of state
    """

    name: str
    type: str
    outputs: tuple[Any, ...]
    learnables: int
    state: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        outputs = ", ".join(map(repr, self.outputs))
        return (self.name, self.type, outputs, f"{self.learnables or ''}", f"{self.state or ''}")


class Summary(NamedTuple):
    """A summary of a network; its repr is a table.

    layers              a row for each, in the order in which they run
    learnables          number of learnable elements
    state               number of elements of state
    bytes               memory of all arrays of the network
    activation_bytes    memory of the outputs of all layers, for one observation of one step
    """

    layers: tuple[LayerSummary, ...]
    learnables: int
    state: int
    bytes: int
    activation_bytes: int

    def __repr__(self) -> str:
        rows = [row.cells for row in self.layers]
        return f"{table(_HEADER, rows, _NUMBERS)}\n\n{self.totals}"

    @property
    def totals(self) -> str:
        """The totals in a line."""
        return (
            f"{count(len(self.layers), 'layer')}, {count(self.learnables, 'learnable element')} and {self.state} of "
            "state "
            f"in {size(self.bytes)}; outputs of {size(self.activation_bytes)} for each observation"
        )

    def _repr_html_(self) -> str:
        rows = [row.cells for row in self.layers]
        return html.block("Summary", self.totals, html.table(_HEADER, rows, _MOST_SHOWN, "layers"))


def summary(network: Any) -> Summary:
    """Return the summary of a network.

    Raises:
        ArgumentError: if it is not initialised.
    """
    content = network._fixed.content
    if content.layouts is None:
        raise ArgumentError("summary: the network is not initialised; use net = net.initialize(x) first.")
    groups = network._fixed.groups(network._leaves)

    def elements(group: str, numbers: list[int]) -> int:
        return sum(math.prod(groups[group][number].shape) for number in numbers)

    rows = tuple([
        LayerSummary(
            placed.name, placed.kind.__name__, layouts, elements(LEARNABLE, placed.places(LEARNABLE)),
            elements(STATE, placed.places(STATE)),
        )
        for placed, layouts in zip(content.layers, content.layouts, strict=True)
    ])  # fmt: skip
    outputs = [layout for row in rows for layout in row.outputs]
    return Summary(
        rows,
        elements(LEARNABLE, list(range(len(groups[LEARNABLE])))),
        elements(STATE, list(range(len(groups[STATE])))),
        sum(array.nbytes for array in network._leaves),
        sum(math.prod([part or 1 for part in layout.size]) * layout.dtype.itemsize for layout in outputs),
    )


def network_html(network: Any) -> str:
    """Return a network as HTML: its summary, or its layers."""
    if network.initialized:
        found = summary(network)
        rows = [row.cells for row in found.layers]
        return html.block("dlnetwork", found.totals, html.table(_HEADER, rows, _MOST_SHOWN, "layers"))
    names = [(placed.name, placed.kind.__name__) for placed in network._fixed.content.layers]
    return html.block(
        "dlnetwork", "not initialised", html.table(("name", "type"), names, _MOST_SHOWN, "layers")
    )
