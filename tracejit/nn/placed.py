# SPDX-License-Identifier: BSD-3-Clause
"""Layers in a network: the attributes of each, with its arrays in the network's tuple of arrays."""

import copy
import enum
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit import containers, tree
from tracejit.array import as_array, dlarray
from tracejit.aval import is_inexact
from tracejit.errors import ArgumentError, DTypeError
from tracejit.nn.fields import LearnableField, StateField, field_names, field_of
from tracejit.nn.layer import Layer
from tracejit.nn.layout import DataLayout
from tracejit.util.arguments import is_real
from tracejit.util.named_tuples import NamedTuple

LEARNABLE, STATE, CONSTANT = "learnable", "state", "constant"

_FIXED = (
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.ModuleType, type, np.dtype, np.generic, np.ufunc, enum.Enum, range, slice, frozenset,
    containers.Fixed, DataLayout,
)  # fmt: skip
_FACTORS = ("learn_rate_factors", "l2_factors")


class ArrayPlace(NamedTuple):
    """The place of an array among the attributes of a layer: its group, and its number in the group."""

    group: str
    number: int


class Attribute(NamedTuple):
    """An attribute of a layer: its name, and the leaves of its value, with an ArrayPlace for each array."""

    name: str
    treedef: tree.TreeDef
    leaves: tuple[Any, ...]


class PlacedLayer(NamedTuple):
    """A layer of a network without its arrays."""

    name: str
    kind: type[Layer]
    attributes: tuple[Attribute, ...]

    def layer(self, arrays: dict[str, Sequence[Any]], copies: bool = False) -> Layer:
        """Return the layer with arrays, which are given by group, or with copies of them."""
        layer: Any = object.__new__(self.kind)
        own = layer.__dict__
        own["name"] = self.name
        for name, treedef, leaves in self.attributes:
            values = [
                arrays[leaf.group][leaf.number] if type(leaf) is ArrayPlace else leaf for leaf in leaves
            ]
            if copies:
                values = [
                    as_array(value).copy() if type(leaf) is ArrayPlace else value
                    for value, leaf in zip(values, leaves, strict=True)
                ]
            own[name] = values[0] if treedef.structure is tree.LEAF else tree.unflatten(treedef, values)
        return layer  # type: ignore[no-any-return]

    def places(self, group: str) -> list[int]:
        """Return the numbers of the arrays of a group that belong to the layer, in the order of its attributes."""
        found = [
            leaf.number
            for attribute in self.attributes
            for leaf in attribute.leaves
            if type(leaf) is ArrayPlace and leaf.group == group
        ]
        return list(dict.fromkeys(found))

    @property
    def others(self) -> list[Any]:
        """The values among the attributes that are no arrays."""
        return [
            leaf for attribute in self.attributes for leaf in attribute.leaves if type(leaf) is not ArrayPlace
        ]

    @property
    def description(self) -> str:
        """The layer in words, for messages."""
        return f"layer {self.name!r} ({self.kind.__name__})"


class Collected:
    """The arrays of layers, which are taken out of them one layer after the other.

    Attributes:
        arrays: by group.
        names: of the rows of learnables and of state: pairs of layer and parameter.
        factors: of each learnable: of the learning rate, and of the L2 regularisation.
        per_observation: whether the size of each array of the state depends on the observations.
    """

    def __init__(self, ties: dict[tuple[str, str], tuple[str, str]]) -> None:
        self.arrays: dict[str, list[Any]] = {LEARNABLE: [], STATE: [], CONSTANT: []}
        self.names: dict[str, list[tuple[str, str]]] = {LEARNABLE: [], STATE: [], CONSTANT: []}
        self.factors: list[tuple[float, float]] = []
        self.per_observation: list[bool] = []
        self._ties = ties

    def take(self, name: str, layer: Layer) -> PlacedLayer:
        """Return a layer, under its name in the network, without its arrays."""
        attributes = []
        own = {key: value for key, value in vars(layer).items() if key != "name"}
        fields = [key for key in field_names(type(layer)) if key in own]
        for key in [*fields, *sorted(own.keys() - {*fields})]:
            if isinstance(field_of(type(layer), key), LearnableField | StateField) and own[key] is None:
                continue  # not set, or left out
            attributes.append(self._attribute(name, layer, key, own[key]))
        return PlacedLayer(name, type(layer), tuple(attributes))

    def _attribute(self, name: str, layer: Layer, key: str, value: Any) -> Attribute:
        field = field_of(type(layer), key)
        if field is not None and _is_of_numbers(value):
            value = _array(name, layer, key, value)
        parts, outer = tree.flatten(value, is_leaf=lambda part: isinstance(part, tree.TreeNode))
        paths = tree.paths(outer, "")
        leaves: list[Any] = []
        for path, part in zip(paths, parts, strict=True):
            if isinstance(part, tree.TreeNode):
                leaves += self._inner(name, layer, part, key if key != "network" else "")
            elif not _is_array(part) and field is None:
                leaves.append(_fixed(name, layer, key, part))
            else:
                array = _array(name, layer, key, part)
                if isinstance(field, LearnableField) and not is_inexact(array.dtype):
                    raise DTypeError(
                        f"dlnetwork: {key + path} of layer {name!r} ({type(layer).__name__}) is of {array.dtype}, but "
                        "gradients are taken by a learnable; pass an array of floating point (x.astype(np.float32))."
                    )
                leaves.append(self._place(name, layer, key + path, field, array))
        return Attribute(key, tree.flatten(value)[1], tuple(leaves))

    def _place(self, name: str, layer: Layer, parameter: str, field: Any, array: Any) -> ArrayPlace:
        if isinstance(field, LearnableField):
            factors = _factors(layer, parameter, field.learn_rate_factor, field.l2_factor)
            return self.add(LEARNABLE, (name, parameter), array, factors)
        if isinstance(field, StateField):
            return self.add(STATE, (name, parameter), array, field.per_observation)
        return self.add(CONSTANT, (name, parameter), array)

    def _inner(self, name: str, layer: Layer, node: Any, prefix: str) -> list[ArrayPlace]:
        """Return places for the arrays of a network within a layer, which may have other factors for them."""
        places = []
        for (group, inner, parameter, more), array in zip(node._fixed.rows(), node._leaves, strict=True):
            full = "/".join(part for part in (prefix, inner, parameter) if part)
            if group == LEARNABLE:
                more = _factors(layer, full, *more)
            places.append(self.add(group, (name, full), array, more))
        return places

    def add(self, group: str, row: tuple[str, str], array: Any, more: Any = None) -> ArrayPlace:
        """Return the place of an array, which is that of another one if they are tied."""
        source = self._ties.get(row)
        if group == LEARNABLE and source is not None:
            return ArrayPlace(group, self.names[group].index(source))
        self.arrays[group].append(array)
        self.names[group].append(row)
        if group == LEARNABLE:
            self.factors.append(more)
        elif group == STATE:
            self.per_observation.append(more)
        return ArrayPlace(group, len(self.arrays[group]) - 1)


def _factors(layer: Layer, parameter: str, *otherwise: float) -> tuple[float, ...]:
    """Return the factors of the learning rate and of the L2 regularisation that a layer has for a learnable."""
    given = [getattr(layer, factors, None) or {} for factors in _FACTORS]
    return tuple([own.get(parameter, other) for own, other in zip(given, otherwise, strict=True)])


def with_own_arrays(layer: Layer) -> Layer:
    """Return a layer like another one, with copies of its arrays, into which nobody else writes."""
    own: Any = object.__new__(type(layer))
    for name, value in vars(layer).items():
        leaves, treedef = tree.flatten(value, is_leaf=lambda part: isinstance(part, tree.TreeNode))
        leaves = [as_array(leaf).copy() if _is_array(leaf) else leaf for leaf in leaves]
        own.__dict__[name] = tree.unflatten(treedef, leaves)
    return own  # type: ignore[no-any-return]


def _is_array(value: Any) -> bool:
    return type(value) is dlarray or (isinstance(value, np.ndarray) and value.dtype.kind in "fiub")


def _is_of_numbers(value: Any) -> bool:
    """Return whether a value is a list of numbers, or of such lists: an array to be."""
    return isinstance(value, (list, tuple)) and all(is_real(part) or _is_of_numbers(part) for part in value)


def _array(name: str, layer: Layer, key: str, value: Any) -> dlarray:
    try:
        array: dlarray = as_array(value, f"dlnetwork: layer {name!r} ({type(layer).__name__})", key)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"dlnetwork: {key} of layer {name!r} ({type(layer).__name__}) must be an array or None, not "
            f"{type(value).__name__}."
        ) from error
    return array


def _fixed(name: str, layer: Layer, key: str, value: Any) -> Any:
    """Return an attribute that is no array as the network keeps it: nobody else can change it."""
    if isinstance(value, _FIXED):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise ArgumentError(
            f"dlnetwork: {key} of layer {name!r} ({type(layer).__name__}) is a {type(value).__name__}, which cannot be "
            "copied; keep numbers, strings, functions, arrays or containers of them in a layer."
        ) from error


def is_known_by_value(value: Any) -> bool:
    """Return whether a fixed attribute never changes, so that layers with equal ones are alike."""
    return isinstance(value, _FIXED) or type(value) is ArrayPlace
