# SPDX-License-Identifier: BSD-3-Clause
"""Changed networks: layers added, removed, connected, replaced; learnables tied and frozen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from tracejit import tree
from tracejit.errors import ArgumentError, DimsError
from tracejit.nn import graph
from tracejit.nn.fields import factor_of
from tracejit.nn.graph import Connection
from tracejit.nn.layer import Layer
from tracejit.nn.structure import NetworkStructure, build
from tracejit.nn.tables import LearnablesTable, table_of
from tracejit.record import recorder as recorders
from tracejit.util.text import brief


class EditedNetwork(tree.TreeNode):
    """The base class of networks, with the methods that change their layers."""

    __slots__ = ()

    _fixed: NetworkStructure

    def add_layers(self, layers: Layer | Iterable[Layer]) -> Self:
        """Return the network with more layers, connected with each other but not with those it has.

        Args:
            layers: a layer, or a list of layers; each takes the output of the one before.

        Raises:
            ArgumentError: if something is no layer, or a name is taken.
        """
        own = self._by_name()
        more = graph.named([layers] if isinstance(layers, Layer) else layers, own)
        connections = [*self._fixed.content.connections, *graph.in_a_row(more)]
        return self._edited({**own, **more}, connections)

    def remove_layers(self, names: str | Iterable[str]) -> Self:
        """Return the network without some layers and their connections.

        Args:
            names: of the layers.

        Raises:
            ArgumentError: if no layer has a name.
        """
        gone = {
            self._number("remove_layers", name)
            for name in (names if isinstance(names, (list, tuple, set)) else [names])
        }
        removed = {self._fixed.content.layers[number].name for number in gone}
        layers = {name: layer for name, layer in self._by_name().items() if name not in removed}
        kept = [
            c for c in self._fixed.content.connections if c[0][0] not in removed and c[1][0] not in removed
        ]
        return self._edited(layers, kept)

    def connect_layers(self, source: str, destination: str) -> Self:
        """Return the network in which an input takes an output.

        Args:
            source: an output: the name of a layer, or "layer/output" if it has several.
            destination: an input: the name of a layer, or "layer/input" if it has several.

        Raises:
            ArgumentError: if there is no such output or input, or the input takes an output already.
        """
        layers = self._by_name()
        begin = graph.port("connect_layers", layers, source, is_input=False)
        end = graph.port("connect_layers", layers, destination, is_input=True)
        if end in self._fixed.sources:
            taken = self._fixed.text_of(self._fixed.sources[end], False)
            raise ArgumentError(
                f"connect_layers: {destination} takes the output of {taken!r} already; disconnect_layers first."
            )
        return self._edited(layers, [*self._fixed.content.connections, (begin, end)])

    def disconnect_layers(self, source: str, destination: str) -> Self:
        """Return the network in which an input no longer takes an output.

        Args:
            source: an output, as in connect_layers.
            destination: an input.

        Raises:
            ArgumentError: if they are not connected.
        """
        layers = self._by_name()
        pair = (
            graph.port("disconnect_layers", layers, source, is_input=False),
            graph.port("disconnect_layers", layers, destination, is_input=True),
        )
        if pair not in self._fixed.content.connections:
            raise ArgumentError(
                f"disconnect_layers: {source} and {destination} are not connected; net.connections lists what is."
            )
        return self._edited(layers, [c for c in self._fixed.content.connections if c != pair])

    def replace_layer(self, name: str, layers: Layer | Iterable[Layer]) -> Self:
        """Return the network with one layer replaced by a new one, or by several in a row.

        Args:
            name: of the layer that goes.
            layers: what takes its place: the first takes what it took, the last gives what it gave.

        Raises:
            ArgumentError: if there is no such layer, or an input or output that is connected has no counterpart.
        """
        self._number("replace_layer", name)
        own = self._by_name()
        others = [other for other in own if other != name]
        if isinstance(layers, (list, tuple)) and len(layers) == 1:
            (layers,) = layers
        if isinstance(layers, Layer):
            layers = [layers if layers.name else _renamed(layers, name)]
        more = graph.named(layers, others)
        if not more:
            raise ArgumentError(
                f"replace_layer: there is no layer to take the place of {name!r}; pass one, or nn.Identity()."
            )
        first, last = next(iter(more)), list(more)[-1]
        connections: list[Connection] = graph.in_a_row(more)
        for (source, output), (target, port) in self._fixed.content.connections:
            if target == name and port not in more[first].input_names:
                port = _counterpart("input", port, own[name].input_names, first, more[first].input_names)
            if source == name and output not in more[last].output_names:
                output = _counterpart("output", output, own[name].output_names, last, more[last].output_names)
            connections.append((
                (last if source == name else source, output),
                (first if target == name else target, port),
            ))  # fmt: skip
        replaced: dict[str, Layer] = {}
        for other, layer in own.items():
            replaced.update(more if other == name else {other: layer})
        return self._edited(replaced, connections)

    def tie(self, parameter: tuple[str, str], other: tuple[str, str]) -> Self:
        """Return the network in which two learnables are one array: the one that stands first in the table.

        Args:
            parameter: layer and parameter, as in the table of learnables.
            other: layer and parameter of the same size.

        Raises:
            ArgumentError: if there is no such learnable.
            DimsError: if their sizes differ.
        """
        for row in (parameter, other):
            if type(row) is not tuple or row not in self._fixed.content.learnables.place_of:
                raise ArgumentError(
                    f"tie: there is no learnable {brief(row)}; pass layer and parameter of rows of net.learnables: "
                    f"{brief(list(self._fixed.content.learnables.names))}."
                )
        if parameter == other:
            raise ArgumentError(
                f"tie: {'/'.join(parameter)} is given twice; pass two rows of net.learnables."
            )
        place_of = self._fixed.content.learnables.place_of
        values = [self._leaves[place_of[row]] for row in (parameter, other)]
        if values[0].shape != values[1].shape:
            raise DimsError(
                f"tie: {'/'.join(parameter)} is of {recorders.describe(values[0])}, but {'/'.join(other)} is of "
                f"{recorders.describe(values[1])}; they must have the same sizes."
            )
        return self._rebuilt(self._by_name(), (*self._fixed.content.ties, (tuple(other), tuple(parameter))))

    def freeze(self, *names: str) -> Self:
        """Return the network whose updates leave some layers as they are: factors of the learning rate are 0.

        Args:
            names: of the layers; none for all.

        Raises:
            ArgumentError: if no layer has a name.
        """
        return self._with_factors("freeze", names, None, "learn_rate_factors", 0.0)

    def unfreeze(self, *names: str) -> Self:
        """Return the network whose updates change some layers: factors of the learning rate are 1.

        Args:
            names: of the layers; none for all.

        Raises:
            ArgumentError: if no layer has a name.
        """
        return self._with_factors("unfreeze", names, None, "learn_rate_factors", 1.0)

    def with_learn_rate_factor(self, layer: str, parameter: str, factor: float) -> Self:
        """Return the network with a new factor of the learning rate for a learnable.

        Args:
            layer: name of the layer.
            parameter: name of the learnable.
            factor: at least 0; 0 freezes it.

        Raises:
            ArgumentError: if there is no such learnable, or `factor` is no such number.
        """
        return self._with_factors("with_learn_rate_factor", (layer,), parameter, "learn_rate_factors", factor)

    def with_l2_factor(self, layer: str, parameter: str, factor: float) -> Self:
        """Return the network with a new factor of the L2 regularisation for a learnable.

        Args:
            layer: name of the layer.
            parameter: name of the learnable.
            factor: at least 0.

        Raises:
            ArgumentError: if there is no such learnable, or `factor` is no such number.
        """
        return self._with_factors("with_l2_factor", (layer,), parameter, "l2_factors", factor)

    @property
    def learn_rate_factors(self) -> LearnablesTable:
        """The table of the factors of the learning rate, which updates apply."""
        content = self._fixed.content
        return table_of(LearnablesTable, content.learnables, [rate for rate, _ in content.factors])  # type: ignore[no-any-return]

    @property
    def l2_factors(self) -> LearnablesTable:
        """The table of the factors of the L2 regularisation, for ``dlupdate(fun, gradients, learnables, factors)``."""
        content = self._fixed.content
        return table_of(LearnablesTable, content.learnables, [l2 for _, l2 in content.factors])  # type: ignore[no-any-return]

    def _with_factors(
        self, function: str, names: Sequence[str], parameter: str | None, attribute: str, factor: Any
    ) -> Self:
        layers = self._by_name()
        rows = self._fixed.content.learnables.names
        for name in names or layers:
            self._number(function, name)
            own = [row for layer, row in rows if layer == name and parameter in (None, row)]
            if parameter is not None and not own:
                raise ArgumentError(
                    f"{function}: layer {name!r} has no learnable {brief(parameter)}; the learnables are "
                    f"{brief(list(rows))}."
                )
            factors = dict(getattr(layers[name], attribute, None) or {})
            factors.update(dict.fromkeys(own, factor_of(function, "factor", factor)))
            if own:
                setattr(layers[name], attribute, factors)
        return self._rebuilt(layers)

    def _groups(self) -> dict[str, Sequence[Any]]:
        return self._fixed.groups(self._leaves)

    def _by_name(self) -> dict[str, Layer]:
        groups = self._groups()
        return {placed.name: placed.layer(groups) for placed in self._fixed.content.layers}

    def _number(self, function: str, name: Any) -> int:
        numbers = self._fixed.number_of
        if not isinstance(name, str) or name not in numbers:
            raise ArgumentError(
                f"{function}: the network has no layer {brief(name)}; its layers are {brief(', '.join(numbers))}."
            )
        return numbers[name]

    def _rebuilt(self, layers: Mapping[str, Layer], ties: Any = None) -> Self:
        """Return the network with changed layers, which have the same layouts."""
        content = self._fixed.content
        layouts = None
        if content.layouts is not None:
            layouts = {layer.name: own for layer, own in zip(content.layers, content.layouts, strict=True)}
        ties = content.ties if ties is None else ties
        return self._made(*build(layers, content.connections, ties, layouts, content.input_layouts))

    def _edited(self, layers: Mapping[str, Layer], connections: Sequence[Connection]) -> Self:
        return self._made(*build(layers, connections, self._fixed.content.ties))

    def _made(self, structure: NetworkStructure, leaves: tuple[Any, ...]) -> Self:
        return tree.rebuild_node(type(self), structure, leaves)  # type: ignore[no-any-return]


def _renamed(layer: Layer, name: str) -> Layer:
    copied: Any = object.__new__(type(layer))
    copied.__dict__.update(vars(layer), name=name)
    return copied  # type: ignore[no-any-return]


def _counterpart(what: str, port: str, old: Sequence[str], name: str, new: Sequence[str]) -> str:
    """Return the input or output that replaces one with a different name: the only one of a layer."""
    if len(old) == 1 and len(new) == 1:
        return new[0]
    raise ArgumentError(
        f"replace_layer: the {what} {port!r} is connected, and layer {name!r} has the {what}s {brief(list(new))}; "
        "disconnect it first, or give the layer one of this name."
    )
