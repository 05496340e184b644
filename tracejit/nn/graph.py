# SPDX-License-Identifier: BSD-3-Clause
"""The graph of a network: names of layers, connections between outputs and inputs, and the order of layers."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tracejit.errors import ArgumentError
from tracejit.nn.layer import Layer
from tracejit.nn.placed import with_own_arrays
from tracejit.util.text import brief

Port = tuple[str, str]
"""A layer and one of its inputs or outputs, by name."""

Connection = tuple[Port, Port]
"""An output, and an input that takes it."""


def named(layers: Any, taken: Iterable[str] = ()) -> dict[str, Layer]:
    """Return copies of layers by name; those without a name get that of their class, numbered from the second on.

    Raises:
        ArgumentError: if something is no layer, or a name is given twice.
    """
    if isinstance(layers, (str, Layer)) or not isinstance(layers, Iterable):
        raise ArgumentError(f"dlnetwork: layers must be a list of layers, not {brief(layers)}.")
    layers = list(layers)
    for number, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            hint = "; call the class" if isinstance(layer, type) and issubclass(layer, Layer) else ""
            raise ArgumentError(
                f"dlnetwork: layers[{number}] must be a layer, such as nn.Relu(), not {brief(layer)}{hint}."
            )
    names = {*taken}
    for layer in layers:
        if not isinstance(layer.name, str):
            raise ArgumentError(
                f"dlnetwork: the name of a layer must be a string, not {brief(layer.name)}; leave it out for one of "
                "the class."
            )
        if layer.name in names:
            raise ArgumentError(
                f"dlnetwork: two layers have the name {layer.name!r}; give each a name of its own, or none."
            )
        if "/" in layer.name:
            raise ArgumentError(
                f"dlnetwork: the name {layer.name!r} has a slash, which separates a layer from its inputs; leave it "
                "out."
            )
        if layer.name:
            names.add(layer.name)
    result = {}
    for layer in layers:
        name = layer.name or _free(layer.default_name, names)
        names.add(name)
        result[name] = with_own_arrays(layer)
    return result


def _free(stem: str, taken: set[str]) -> str:
    name, number = stem, 0
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def in_a_row(layers: Mapping[str, Layer]) -> list[Connection]:
    """Return the connections of layers that each take the outputs of the one before.

    Raises:
        ArgumentError: if a layer has no or several inputs or outputs that would have to be connected.
    """
    connections = []
    names = list(layers)
    for before, after in pairwise(names):
        outputs, inputs = layers[before].output_names, layers[after].input_names
        if not inputs:
            raise ArgumentError(
                f"dlnetwork: layer {after!r} ({type(layers[after]).__name__}) takes no input, but stands after "
                f"{before!r}; put it first, or add it with add_layers."
            )
        connections.append(((before, outputs[0]), (after, inputs[0])))
    return connections


def port(function: str, layers: Mapping[str, Layer], text: Any, is_input: bool) -> Port:
    """Return an input or output that is given as "layer" or "layer/name".

    Raises:
        ArgumentError: if there is no such input or output.
    """
    what = "input" if is_input else "output"
    if not isinstance(text, str):
        raise ArgumentError(f"{function}: an {what} is named by a string, not {brief(text)}.")
    name, _, own = text.partition("/")
    if name not in layers:
        raise ArgumentError(
            f"{function}: the network has no layer {name!r}; its layers are {brief(', '.join(layers))}."
        )
    ports = layers[name].input_names if is_input else layers[name].output_names
    if not own and len(ports) == 1:
        own = ports[0]
    if own not in ports:
        several = f"several {what}s; name one, as in {name}/{ports[0]}" if len(ports) > 1 else ""
        raise ArgumentError(
            f"{function}: layer {name!r} ({type(layers[name]).__name__}) has "
            f"{(several if not own else '') or f'no {what} {own!r}; it has {brief(list(ports))}'}."
        )
    return name, own


def text_of(place: Port, ports: Sequence[str]) -> str:
    """Return an input or output as text: the name of the layer alone if it has one."""
    return place[0] if len(ports) == 1 else f"{place[0]}/{place[1]}"


def ordered(layers: Mapping[str, Layer], connections: Sequence[Connection]) -> list[str]:
    """Return the names of layers so that each stands after those whose outputs it takes, otherwise as given.

    Raises:
        ArgumentError: if layers are connected in a circle.
    """
    before: dict[str, set[str]] = {name: set() for name in layers}
    for (source, _), (target, _) in connections:
        before[target].add(source)
    result: list[str] = []
    done: set[str] = set()
    waiting = list(layers)
    while waiting:
        ready = [name for name in waiting if before[name] <= done]
        if not ready:
            raise ArgumentError(
                f"dlnetwork: the layers {brief(', '.join(waiting))} are connected in a circle; remove a connection "
                "with "
                "disconnect_layers."
            )
        for name in ready:
            if before[name] <= done:
                result.append(name)
                done.add(name)
        waiting = [name for name in waiting if name not in done]
    return result
