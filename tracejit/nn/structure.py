# SPDX-License-Identifier: BSD-3-Clause
"""The fixed part of a network: its layers without arrays, their connections, and where each array belongs."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tracejit import containers
from tracejit.nn.graph import Connection, Port, ordered, text_of
from tracejit.nn.layer import Layer
from tracejit.nn.layout import DataLayout
from tracejit.nn.placed import CONSTANT, LEARNABLE, STATE, Collected, PlacedLayer, is_known_by_value
from tracejit.nn.tables import RowNames
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count

Ties = tuple[tuple[tuple[str, str], tuple[str, str]], ...]
"""Pairs of rows of learnables: the array of the second is that of the first too."""


class NetworkContent(NamedTuple):
    """The content of a structure.

    layers      in the order in which they run
    ports       for each layer the names of its inputs and of its outputs
    names       of the arrays, by group
    factors     of each learnable: of the learning rate, and of the L2 regularisation
    layouts     of the outputs of each layer, None before the network is initialised
    """

    layers: tuple[PlacedLayer, ...]
    ports: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    connections: tuple[Connection, ...]
    learnables: RowNames
    state: RowNames
    constants: RowNames
    factors: tuple[tuple[float, float], ...]
    per_observation: tuple[bool, ...]
    ties: Ties
    layouts: tuple[tuple[DataLayout, ...], ...] | None
    input_layouts: tuple[DataLayout, ...]


class NetworkStructure(containers.Fixed):
    """The fixed part of a network. Networks with equal content have the same object.

    Attributes:
        content: what it is made of.
        functions: accelerated functions of the network, by what they compute.
        whole: those that compute all outputs in one call, by "forward" and "predict".
    """

    content: NetworkContent
    functions: dict[Any, Any]
    whole: dict[str, Any]

    def __init__(self, content: NetworkContent) -> None:
        self.content = content
        self.functions = {}
        self.whole = {}

    def __reduce__(self) -> Any:
        return structure_of, (self.content,)

    def __copy__(self) -> "NetworkStructure":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "NetworkStructure":
        return self

    @property
    def title(self) -> str:
        """The network in words."""
        layers = self.content.layers
        ends = f", {layers[0].name!r} to {layers[-1].name!r}" if layers else ""
        return f"a network of {count(len(layers), 'layer')}{ends}"

    def places(self, kind: type) -> Sequence[str]:
        """Return the place of each array."""
        content = self.content
        return [
            *[f".learnables{place}" for place in content.learnables.places(kind)],
            *[f".state{place}" for place in content.state.places(kind)],
            *[f".layer({layer!r}).{name}" for layer, name in content.constants.names],
        ]

    def rows(self) -> Iterator[tuple[str, str, str, Any]]:
        """Return for each array its group, layer, parameter, and what else is known of it (see Collected)."""
        content = self.content
        for (layer, parameter), factors in zip(content.learnables.names, content.factors, strict=True):
            yield LEARNABLE, layer, parameter, factors
        for (layer, parameter), varies in zip(content.state.names, content.per_observation, strict=True):
            yield STATE, layer, parameter, varies
        for layer, parameter in content.constants.names:
            yield CONSTANT, layer, parameter, None

    def groups(self, leaves: Sequence[Any]) -> dict[str, Sequence[Any]]:
        """Return the arrays of the network by group."""
        first = len(self.content.learnables.names)
        second = first + len(self.content.state.names)
        return {LEARNABLE: leaves[:first], STATE: leaves[first:second], CONSTANT: leaves[second:]}

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of each layer by name."""
        return {layer.name: number for number, layer in enumerate(self.content.layers)}

    @cached_property
    def sources(self) -> dict[Port, Port]:
        """The output that each connected input takes."""
        return {target: source for source, target in self.content.connections}

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of layers that take the inputs of the network.

        Inputs of input layers come first, in the order of the layers.
        """
        every = [
            (layer.name, name)
            for layer, (names, _) in zip(self.content.layers, self.content.ports, strict=True)
            for name in names
        ]
        return tuple([place for place in every if place not in self.sources])

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of layers that no layer takes."""
        taken = {source for source, _ in self.content.connections}
        return tuple([
            (layer.name, name)
            for layer, (_, names) in zip(self.content.layers, self.content.ports, strict=True)
            for name in names
            if (layer.name, name) not in taken
        ])  # fmt: skip

    @cached_property
    def rates(self) -> tuple[float, ...] | None:
        """The factors of the learning rate, None if all are 1."""
        rates = tuple([rate for rate, _ in self.content.factors])
        return None if all(rate == 1 for rate in rates) else rates

    def text_of(self, place: Port, is_input: bool) -> str:
        """Return an input or output of a layer as text."""
        inputs, outputs = self.content.ports[self.number_of[place[0]]]
        return text_of(place, inputs if is_input else outputs)


_known: weakref.WeakValueDictionary[Any, NetworkStructure] = weakref.WeakValueDictionary()


def structure_of(content: NetworkContent) -> NetworkStructure:
    """Return the structure with some content: the same object for equal contents, if they can be compared.

    Note [one object for equal structures]
    A call compares the structure of a network by identity. Networks that are made alike, or read from a file, have to
    meet the traces of each other, so equal structures become one object. An attribute of a layer that can change
    later keeps its structure apart.
    """
    leaves = [leaf for layer in content.layers for attribute in layer.attributes for leaf in attribute.leaves]
    if not all(map(is_known_by_value, leaves)):
        return NetworkStructure(content)
    token = (
        tuple([
            (layer.name, layer.kind,
             tuple([(a.name, a.treedef.structure, tuple(map(repr, a.treedef.orders)),
                     tuple([(type(leaf), repr(leaf) if isinstance(leaf, float) else leaf) for leaf in a.leaves]))
                    for a in layer.attributes]))
            for layer in content.layers
        ]),
        *content[1:],
    )  # fmt: skip
    try:
        known = _known.get(token)
        return _known.setdefault(token, NetworkStructure(content)) if known is None else known
    except TypeError:  # an attribute that is not hashable
        return NetworkStructure(content)


def _in_order(ties: Ties, names: Sequence[str], layers: Mapping[str, Layer]) -> Ties:
    """Return ties of rows that exist; the one that stands first in the table stands for all that are tied to it."""
    collected = Collected({})
    for name in names:
        collected.take(name, layers[name])
    place_of = {row: number for number, row in enumerate(collected.names[LEARNABLE])}
    alike: list[set[tuple[str, str]]] = []
    for pair in ties:
        met = [rows for rows in alike if not rows.isdisjoint(pair)]
        alike = [rows for rows in alike if rows not in met] + [set(pair).union(*met)]
    orders = [sorted(rows & {*place_of}, key=place_of.__getitem__) for rows in alike]
    return tuple([(later, order[0]) for order in orders for later in order[1:]])


def build(
    layers: Mapping[str, Layer],
    connections: Sequence[Connection],
    ties: Ties = (),
    layouts: Mapping[str, tuple[DataLayout, ...]] | None = None,
    input_layouts: Sequence[DataLayout] = (),
) -> tuple[NetworkStructure, tuple[Any, ...]]:
    """Return the structure of a network, and its arrays.

    Args:
        layers: with their arrays, by name.
        connections: between them.
        ties: learnables that are one.
        layouts: of the outputs of each layer, if the network is initialised.
        input_layouts: of the inputs of the network, if it is.

    Raises:
        ArgumentError: if layers are connected in a circle, or an attribute of a layer cannot be kept.
    """
    names = ordered(layers, connections)
    if ties:
        ties = _in_order(ties, names, layers)
    collected = Collected(dict(ties))
    placed = tuple([collected.take(name, layers[name]) for name in names])
    content = NetworkContent(
        placed,
        tuple([(tuple(layers[name].input_names), tuple(layers[name].output_names)) for name in names]),
        tuple(connections),
        RowNames(tuple(collected.names[LEARNABLE])),
        RowNames(tuple(collected.names[STATE])),
        RowNames(tuple(collected.names[CONSTANT])),
        tuple(collected.factors),
        tuple(collected.per_observation),
        ties,
        None if layouts is None else tuple([layouts[name] for name in names]),
        tuple(input_layouts),
    )
    arrays = collected.arrays
    return structure_of(content), (*arrays[LEARNABLE], *arrays[STATE], *arrays[CONSTANT])
