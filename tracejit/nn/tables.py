# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the arrays of a network: layer, parameter, value."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracejit import containers, tree
from tracejit.aval import describe_shape
from tracejit.errors import ArgumentError
from tracejit.util import html
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief, count, table

_MOST_SHOWN = 60  # rows


class TableRow(NamedTuple):
    """A row of a table of arrays."""

    layer: str
    parameter: str
    value: Any


class RowNames(containers.Fixed):
    """The layer and the parameter of each row of a table: one object for all tables with the same rows.

    Attributes:
        names: pairs of layer and parameter.
        place_of: the number of the row of each pair.
    """

    __slots__ = ("__weakref__", "names", "place_of")

    names: tuple[tuple[str, str], ...]
    place_of: dict[tuple[str, str], int]

    def __new__(cls, names: tuple[tuple[str, str], ...]) -> "RowNames":
        """Return the object for these names."""
        known = _known.get(names)
        if known is None:
            known = super().__new__(cls)
            known.names = names
            known.place_of = {name: number for number, name in enumerate(names)}
            known = _known.setdefault(names, known)
        return known

    def __reduce__(self) -> Any:
        return RowNames, (self.names,)

    def __copy__(self) -> "RowNames":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "RowNames":
        return self

    @property
    def title(self) -> str:
        """The table in words."""
        if not self.names:
            return "a table without rows"
        return f"a table of {count(len(self.names), 'row')} ({brief('/'.join(self.names[0]))} first)"

    def places(self, kind: type) -> Sequence[str]:
        """Return the place of each value."""
        return [f"[{layer!r}, {parameter!r}]" for layer, parameter in self.names]


_known: weakref.WeakValueDictionary[tuple[tuple[str, str], ...], RowNames] = weakref.WeakValueDictionary()


class ArrayTable(tree.TreeNode):
    """A table of arrays with the columns layer, parameter and value, which are attributes; rows are iterated over.

    It is a container: of gradients, of moments, among the arguments of an accelerated function. A value is found by
    ``table["conv", "weights"]``; ``table["conv"]`` is a dict of the parameters of a layer.
    """

    __slots__ = ("__weakref__",)

    @property
    def layer(self) -> tuple[str, ...]:
        """The name of the layer, for each row."""
        return tuple([layer for layer, _ in self._fixed.names])

    @property
    def parameter(self) -> tuple[str, ...]:
        """The name of the parameter, for each row."""
        return tuple([parameter for _, parameter in self._fixed.names])

    @property
    def value(self) -> tuple[Any, ...]:
        """The array of each row."""
        return self._leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def __iter__(self) -> Iterator[TableRow]:
        for (layer, parameter), value in zip(self._fixed.names, self._leaves, strict=True):
            yield TableRow(layer, parameter, value)

    def __contains__(self, name: object) -> bool:
        return name in self._fixed.place_of

    def __getitem__(self, name: Any) -> Any:
        if type(name) is tuple and name in self._fixed.place_of:
            return self._leaves[self._fixed.place_of[name]]
        of_layer = {row.parameter: row.value for row in self if row.layer == name}
        if not of_layer:
            raise ArgumentError(
                f"table: there is no row {brief(name)}; index by a layer, or by a layer and a parameter: "
                f"{brief(sorted(set(self._fixed.names)))}."
            )
        return of_layer

    def with_value(self, layer: str, parameter: str, value: Any) -> Any:
        """Return a table in which a row has another value.

        Args:
            layer: name of a layer.
            parameter: name of one of its parameters.
            value: the new value.

        Raises:
            ArgumentError: if there is no such row.
        """
        place = self._fixed.place_of.get((layer, parameter))
        if place is None:
            raise ArgumentError(
                f"with_value: there is no row {brief((layer, parameter))}; the rows are "
                f"{brief(list(self._fixed.names))}."
            )
        values = [*self._leaves]
        values[place] = value
        return tree.rebuild_node(type(self), self._fixed, tuple(values))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the values in dicts: by layer, then by parameter."""
        result: dict[str, dict[str, Any]] = {}
        for row in self:
            result.setdefault(row.layer, {})[row.parameter] = row.value
        return result

    def _cells(self) -> list[tuple[str, str, str]]:
        return [(row.layer, row.parameter, _in_words(row.value)) for row in self]

    def __repr__(self) -> str:
        cells = self._cells()
        text = table(["layer", "parameter", "value"], cells[:_MOST_SHOWN])
        hidden = len(cells) - _MOST_SHOWN
        more = f"\n... and {count(hidden, 'more row')}" if hidden > 0 else ""
        return f"{type(self).__name__} of {count(len(cells), 'row')}" + (f"\n{text}{more}" if cells else "")

    def _repr_html_(self) -> str:
        cells = self._cells()
        shown = html.table(["layer", "parameter", "value"], cells, _MOST_SHOWN, "rows") if cells else ""
        return html.block(f"{type(self).__name__} of {count(len(cells), 'row')}", "", shown)


def _in_words(value: Any) -> str:
    """Return size and dtype of an array, or another value itself."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{describe_shape(value.shape, getattr(value, 'format', None)) or 'scalar'} {value.dtype}"
    return brief(value)


class LearnablesTable(ArrayTable):
    """The table of the learnable arrays of a network, or of their gradients or moments.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.FullyConnected(3)])
        >>> isinstance(net.learnables, nn.LearnablesTable), net.learnables["fc", "weights"].shape
        (True, (3, 4))
    """

    __slots__ = ()


class StateTable(ArrayTable):
    """The table of the state of a network, which forward returns anew.

    Examples:
        >>> import tracejit as tj
        >>> from tracejit import nn
        >>> net = tj.dlnetwork([nn.FeatureInput(4), nn.BatchNormalization()])
        >>> isinstance(net.state, nn.StateTable), net.state["batchnorm", "trained_mean"].shape
        (True, (4,))
    """

    __slots__ = ()


def table_of(kind: type[ArrayTable], names: RowNames, values: Sequence[Any]) -> Any:
    """Return a table of a class."""
    return tree.rebuild_node(kind, names, tuple(values))


def values_for(function: str, argument: str, names: RowNames, given: Any) -> tuple[Any, ...]:
    """Return the values of a table, or of dicts by layer and parameter, in the order of some rows.

    Raises:
        ArgumentError: if the rows differ.
    """
    if isinstance(given, ArrayTable) and given._fixed is names:
        return given._leaves
    if not isinstance(given, (ArrayTable, Mapping)):
        raise ArgumentError(
            f"{function}: {argument} must be a table of the network, or dicts by layer and parameter, not "
            f"{brief(given)}."
        )
    values: dict[tuple[str, str], Any] = {}
    if isinstance(given, ArrayTable):
        values = {(row.layer, row.parameter): row.value for row in given}
    else:
        for layer, parameters in given.items():
            if not isinstance(parameters, Mapping):
                raise ArgumentError(
                    f"{function}: {argument} must be dicts by layer and parameter; that of layer {brief(layer)} is "
                    f"{brief(parameters)}."
                )
            for parameter, value in parameters.items():
                values[layer, parameter] = value
    missing = [name for name in names.names if name not in values]
    others = [name for name in values if name not in names.place_of]
    if missing or others:
        lacks = f"it lacks {'/'.join(missing[0])}" if missing else f"it has {'/'.join(map(str, others[0]))}"
        raise ArgumentError(
            f"{function}: {argument} belongs to a different network: {lacks}, which this network "
            f"{'has' if missing else 'does not have'}; pass what a network with the same layers gave."
        )
    return tuple([values[name] for name in names.names])
