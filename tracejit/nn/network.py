# SPDX-License-Identifier: BSD-3-Clause
"""dlnetwork: layers, their connections and their arrays, as a value."""

from collections.abc import Iterable, Sequence
from typing import Any, Never, NoReturn

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.movement import relabel
from tracejit.nn import graph, initializing, running
from tracejit.nn.editing import EditedNetwork
from tracejit.nn.layer import Layer, is_acceleratable
from tracejit.nn.placed import CONSTANT, LEARNABLE, STATE
from tracejit.nn.structure import NetworkStructure, build
from tracejit.nn.tables import LearnablesTable, StateTable, table_of, values_for
from tracejit.record import recorder as recorders
from tracejit.record.guards import Decides
from tracejit.util.arguments import is_option
from tracejit.util.text import brief, count

_ARRAYS = frozenset({dlarray, np.ndarray})


class dlnetwork(EditedNetwork):
    """A network of layers: a value that holds its layers, their connections, learnable arrays and state.

    Nothing is changed in place. Every change gives a network that shares what stayed the same. A network is a
    container: of the arguments and results of an accelerated function, for dlgradient and for the updates.

    Long because all that a network does is a method.

    Args:
        layers: list of layers; each takes the output of the one before. None for none yet.
        examples: example data or nn.DataLayout for each input, if there is no input layer that tells.
        initialize: whether to set the arrays that are not set; by default if the inputs are known.
        seed: of the random numbers for that; None to go on with those of rng().

    Raises:
        ArgumentError: if something is no layer, layers do not connect, or two have the same name.
        DimsError: if sizes do not fit a layer.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(3), nn.Softmax()], seed=0)
        >>> net.predict(tj.dlarray(np.ones((2, 4), np.float32), "BC")).shape
        (2, 3)
        >>> net.learnables
        LearnablesTable of 2 rows
        layer  parameter  value
        fc     weights    3x4 float32
        fc     bias       3 float32
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        layers: Iterable[Layer] | None = None,
        *examples: Any,
        initialize: bool | None = None,
        seed: Any = None,
    ) -> None:
        given = graph.named(() if layers is None else layers)
        structure, leaves = build(given, graph.in_a_row(given))
        if initialize is None:
            initialize = bool(given) and (
                bool(examples) or all(hasattr(given[name], "layout") for name, _ in structure.inputs)
            )
        if initialize:
            structure, leaves = initializing.initialized(
                structure, _copies(structure, leaves), examples, seed
            )
        self._fixed = structure
        self._leaves = leaves

    # What it is made of.

    @property
    def learnables(self) -> LearnablesTable:
        """The table of learnable arrays: layer, parameter, value."""
        return table_of(LearnablesTable, self._fixed.content.learnables, self._groups()[LEARNABLE])  # type: ignore[no-any-return]

    @learnables.setter
    def learnables(self, value: Never) -> NoReturn:
        raise ArgumentError(
            "dlnetwork: learnables cannot be set, because a network is a value; write net = "
            "net.with_learnables(learnables)."
        )

    @property
    def state(self) -> StateTable:
        """The table of the state, which forward() returns anew: layer, parameter, value."""
        return table_of(StateTable, self._fixed.content.state, self._groups()[STATE])  # type: ignore[no-any-return]

    @state.setter
    def state(self, value: Never) -> NoReturn:
        raise ArgumentError(
            "dlnetwork: state cannot be set, because a network is a value; write net = net.with_state(state)."
        )

    @property
    def layers(self) -> list[Layer]:
        """Copies of the layers, with their arrays, in the order in which they run."""
        return list(self._by_name().values())

    @property
    def connections(self) -> list[tuple[str, str]]:
        """Pairs of an output and the input that takes it, such as ("conv", "add/in2")."""
        return initializing.connections_text(self._fixed, self._fixed.content.connections)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs, in the order of forward's and predict's arguments."""
        return tuple([self._fixed.text_of(port, True) for port in self._fixed.inputs])

    @property
    def output_names(self) -> tuple[str, ...]:
        """The outputs, in the order of forward's and predict's results."""
        return tuple([self._fixed.text_of(port, False) for port in self._fixed.outputs])

    @property
    def initialized(self) -> bool:
        """True if all arrays are set."""
        return self._fixed.content.layouts is not None

    @property
    def is_acceleratable(self) -> bool:
        """True if all layers can be part of an accelerated function."""
        return all(map(is_acceleratable, self.layers))

    def layer(self, name: str) -> Layer:
        """Return a copy of a layer, with its arrays.

        Args:
            name: of the layer.

        Raises:
            ArgumentError: if no layer has this name.
        """
        return self._fixed.content.layers[self._number("layer", name)].layer(self._groups())

    # Computing.

    def forward(self, *inputs: Any, outputs: Any = None, acceleration: str = "auto") -> Any:
        """Return the outputs as in training, and the new state after them.

        Args:
            inputs: labelled arrays, one for each of input_names.
            outputs: names of layers whose outputs are returned; by default output_names.
            acceleration: "auto": replayed, from the third call with arrays of the same sizes on; or "none".

        Returns:
            output, ..., state: arrays and a table.

        Raises:
            ArgumentError: if the network is not initialised, or inputs are missing.
            DimsError: if sizes or labels do not fit a layer.
        """
        results, state = self._run("forward", inputs, outputs, acceleration)
        return (*results, table_of(StateTable, self._fixed.content.state, state))

    def predict(
        self, *inputs: Any, outputs: Any = None, acceleration: str = "auto", return_state: bool = False
    ) -> Any:
        """Return the outputs as after training: one array, or a tuple of several.

        Args:
            inputs: labelled arrays, one for each of input_names.
            outputs: names of layers whose outputs are returned; by default output_names.
            acceleration: "auto": replayed, from the third call with arrays of the same sizes on; or "none".
            return_state: whether the new state follows, which recurrent layers change.

        Raises:
            ArgumentError: if the network is not initialised, or inputs are missing.
            DimsError: if sizes or labels do not fit a layer.
        """
        results, state = self._run("predict", inputs, outputs, acceleration)
        if return_state:
            return (*results, table_of(StateTable, self._fixed.content.state, state))
        return results[0] if len(results) == 1 else tuple(results)

    def _run(
        self, function: str, inputs: Sequence[Any], outputs: Any, acceleration: str
    ) -> tuple[list[Any], list[Any]]:
        structure = self._fixed
        if outputs is None and acceleration == "auto" and recorders.thread.recorder is None:
            replayed = structure.whole.get(function)
            are_arrays = _ARRAYS.issuperset(map(type, inputs))
            if replayed is not None and len(inputs) == replayed.inputs and are_arrays:
                return replayed(self._leaves, inputs)  # type: ignore[no-any-return]
        if not is_option(acceleration, ("auto", "none")):
            raise ArgumentError(
                f'{function}: acceleration must be "auto" or "none", not {brief(acceleration)}.'
            )
        if structure.content.layouts is None:
            raise ArgumentError(
                f"{function}: the network is not initialised; use net = net.initialize() if it begins with an input "
                "layer, or net = net.initialize(x) with example data."
            )
        if len(inputs) != len(structure.inputs):
            raise ArgumentError(
                f"{function}: {count(len(inputs), 'array')} given, but the network has "
                f"{count(len(structure.inputs), 'input')}: {', '.join(self.input_names)}."
            )
        wanted = structure.outputs
        if outputs is not None:
            names = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            wanted = tuple([self._output(function, name) for name in names])
        return running.run(structure, self._leaves, inputs, wanted, function, acceleration == "auto")

    def _output(self, function: str, text: Any) -> graph.Port:
        content, numbers = self._fixed.content, self._fixed.number_of
        if isinstance(text, str) and text in numbers and len(content.ports[numbers[text]][1]) == 1:
            return text, content.ports[numbers[text]][1][0]
        return graph.port(function, self._by_name(), text, is_input=False)

    # Changes.

    def initialize(self, *examples: Any, seed: Any = None) -> "dlnetwork":
        """Return the network with values for all arrays that are not set, random numbers where the layer asks for them.

        Args:
            examples: example data or nn.DataLayout for each input; by default input layers tell.
            seed: of the random numbers; None to go on with those of rng().

        Raises:
            ArgumentError: if nothing is known of an input.
            DimsError: if sizes do not fit a layer, naming it.
        """
        return self._made(*initializing.initialized(self._fixed, self._by_name(), examples, seed))

    def with_learnables(self, learnables: Any) -> "dlnetwork":
        """Return the network with other learnable arrays.

        Args:
            learnables: a table of the same rows, or dicts by layer and parameter. Arrays without labels, as files
                hold them, take those of the arrays in their places.

        Raises:
            ArgumentError: if they are of another network.
            DimsError: if sizes differ from those of the arrays in their places.
        """
        names = self._fixed.content.learnables
        values = values_for("with_learnables", "learnables", names, learnables)
        old = self._groups()[LEARNABLE]
        values = _fitting("with_learnables", names.names, old, values, [False] * len(values))
        return tree.rebuild_node(dlnetwork, self._fixed, (*values, *self._leaves[len(values) :]))  # type: ignore[no-any-return]

    def with_state(self, state: Any) -> "dlnetwork":
        """Return the network with another state, as forward() returned it.

        Args:
            state: a table of the same rows, or dicts by layer and parameter. Arrays without labels take those of
                the arrays in their places.

        Raises:
            ArgumentError: if it belongs to a different network.
            DimsError: if sizes differ from those of the arrays in their places.
        """
        content = self._fixed.content
        values = values_for("with_state", "state", content.state, state)
        groups = self._groups()
        values = _fitting("with_state", content.state.names, groups[STATE], values, content.per_observation)
        leaves = (*groups[LEARNABLE], *values, *groups[CONSTANT])
        return tree.rebuild_node(dlnetwork, self._fixed, leaves)  # type: ignore[no-any-return]

    def _with_state_for_others(self, state: Any) -> "dlnetwork":
        """Return the network with another state, without what layers keep of single observations."""
        content = self._fixed.content
        new = values_for("with_state", "state", content.state, state)
        rows = zip(self._groups()[STATE], new, content.per_observation, strict=True)
        values = [before if varies else after for before, after, varies in rows]
        return self.with_state(table_of(StateTable, content.state, values))

    def reset_state(self) -> "dlnetwork":
        """Return the network with the state that its layers begin with."""
        layers, groups = {}, self._groups()
        for placed in self._fixed.content.layers:
            layer = layers[placed.name] = placed.layer(groups, copies=placed.kind.may_write)
            with running.naming(placed, "reset_state", ()):
                layer.reset_state()
        return self._rebuilt(layers)

    # Looking at it.

    def summary(self) -> Any:
        """Return a table of the layers, their output sizes and numbers of learnables, and totals; printed as text.

        Raises:
            ArgumentError: if the network is not initialised.
        """
        from tracejit.nn.summary import summary

        return summary(self)

    def plot(self) -> Any:
        """Return a drawing of the layers and their connections: SVG in a notebook, Graphviz text as its `dot`."""
        from tracejit.nn.drawing import drawing

        return drawing(self)

    def __repr__(self) -> str:
        content = self._fixed.content
        rows = [
            ("layers", count(len(content.layers), "layer")),
            ("connections", count(len(content.connections), "connection")),
            ("learnables", count(len(content.learnables.names), "array")),
            ("state", count(len(content.state.names), "array")),
            ("input_names", ", ".join(self.input_names)),
            ("output_names", ", ".join(self.output_names)),
            ("initialized", str(self.initialized)),
        ]
        return "dlnetwork with\n" + "\n".join(f"{name:>14}: {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        from tracejit.nn.summary import network_html

        return network_html(self)

    def __eq__(self, other: object) -> bool:
        """Return whether two networks have the same layers, connections and elements of all arrays."""
        if not isinstance(other, dlnetwork):
            return NotImplemented
        if self._fixed is not other._fixed:
            return False
        return all(_equal(a, b) for a, b in zip(self._leaves, other._leaves, strict=True))

    __hash__ = None  # type: ignore[assignment]

    # What trees ask.

    def parameters(self) -> LearnablesTable:
        """Return the table of learnables."""
        return self.learnables

    def with_parameters(self, parameters: tree.TreeNode) -> "dlnetwork":
        """Return the network with other learnables; sizes are not checked."""
        values = [
            _labelled(as_array(old), as_array(new)) if type(new) in _ARRAYS else new
            for old, new in zip(self._groups()[LEARNABLE], parameters._leaves, strict=True)
        ]
        return tree.rebuild_node(dlnetwork, self._fixed, (*values, *self._leaves[len(values) :]))  # type: ignore[no-any-return]

    def rates(self) -> Sequence[float] | None:
        """Return the factor of the learning rate for each learnable, or None if all are 1."""
        return self._fixed.rates


def _copies(structure: NetworkStructure, leaves: tuple[Any, ...]) -> dict[str, Layer]:
    groups = structure.groups(leaves)
    return {placed.name: placed.layer(groups) for placed in structure.content.layers}


def _fitting(
    function: str,
    rows: Sequence[tuple[str, str]],
    old: Sequence[Any],
    new: Sequence[Any],
    varies: Sequence[bool],
) -> tuple[Any, ...]:
    """Return arrays that take the places of others, which have the same sizes but where these vary."""
    arrays = []
    for row, before, value, may_vary in zip(rows, old, new, varies, strict=True):
        array: dlarray = as_array(value, function, "/".join(row))
        if not may_vary and array._data.shape != as_array(before)._data.shape:
            raise DimsError(
                f"{function}: {'/'.join(row)} is of {recorders.describe(array)}, expected "
                f"{recorders.describe(as_array(before))}; does it belong to a different network?"
            )
        arrays.append(_labelled(as_array(before), array.copy() if isinstance(value, np.ndarray) else array))
    return tuple(arrays)


def _labelled(before: dlarray, array: dlarray) -> dlarray:
    """Return an array with the labels of the one whose place it takes, if it has none: layers find axes by them."""
    is_like = array._format is None and array._data.ndim == before._data.ndim
    return relabel(array, before._format) if is_like else array


def _equal(a: Any, b: Any) -> bool:
    first, second = (recorders.need_value(as_array(x), "==", Decides.VALUE) for x in (a, b))
    return first.dtype == second.dtype and a.format == b.format and np.array_equal(first, second)
