# SPDX-License-Identifier: BSD-3-Clause
"""Initialisation of a network: the layouts of all outputs, and values for arrays that are not set."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from tracejit.array import as_array
from tracejit.errors import ArgumentError, DimsError
from tracejit.functions.random import rng
from tracejit.nn.graph import Connection, Port
from tracejit.nn.layer import Layer
from tracejit.nn.layout import DataLayout, layout_of
from tracejit.nn.placed import Collected
from tracejit.nn.running import Groups, call, naming
from tracejit.nn.structure import NetworkStructure, build
from tracejit.record import recorder as recorders
from tracejit.record.sizes_only import sizes_only
from tracejit.util.text import count

Layouts = dict[str, tuple[DataLayout, ...]]


def layouts_of_inputs(
    structure: NetworkStructure, layers: Mapping[str, Layer], given: Sequence[Any]
) -> list[Any]:
    """Return the layout of each input of a network: of example data or layouts, or as its input layers say.

    Raises:
        ArgumentError: if there are more or fewer.
    """
    own = [getattr(layers[name], "layout", None) for name, _ in structure.inputs]
    if structure.content.layouts is not None:  # initialised before
        own = [*structure.content.input_layouts]
    if not given:
        missing = [
            structure.text_of(port, True)
            for port, own in zip(structure.inputs, own, strict=True)
            if own is None
        ]
        if missing:
            raise ArgumentError(
                f"initialize: nothing is known of the data for {', '.join(map(repr, missing))}; begin with an input "
                "layer "
                "such as nn.ImageInput, or pass example data or nn.DataLayout(size, format) for each input."
            )
        return own
    if len(given) != len(own):
        raise ArgumentError(
            f"initialize: there are {count(len(given), 'example')}, but the network has {count(len(own), 'input')}: "
            f"{', '.join(structure.text_of(port, True) for port in structure.inputs)}."
        )
    return [
        part if isinstance(part, DataLayout) else layout_of(as_array(part, "initialize"), "B")
        for part in given
    ]


def initialized(
    structure: NetworkStructure, layers: dict[str, Layer], given: Sequence[Any], seed: Any
) -> tuple[NetworkStructure, tuple[Any, ...]]:
    """Return the structure and the arrays of a network whose layers are initialised.

    Args:
        structure: of the network.
        layers: with the arrays that are set, by name; what they lack is set in them.
        given: example data or layouts, or nothing.
        seed: of the random numbers, None to go on with those of rng().

    Raises:
        ArgumentError: if inputs are not known.
        DimsError: if sizes do not fit a layer, naming it.
    """
    layouts = layouts_of_inputs(structure, layers, given)
    with recorders.suspended(), nullcontext() if seed is None else rng(seed):
        outputs = _outputs(structure, layers, layouts)
    content = structure.content
    return build(layers, content.connections, content.ties, outputs, layouts)


def _outputs(structure: NetworkStructure, layers: dict[str, Layer], layouts: Sequence[DataLayout]) -> Layouts:
    """Initialise layers; return the layouts of the outputs of each."""
    known: dict[Port, tuple[DataLayout, int]] = {}
    waiting = iter(layouts)
    result: Layouts = {}
    for number, placed in enumerate(structure.content.layers):
        name, (inputs, outputs) = placed.name, structure.content.ports[number]
        taken = []
        least = getattr(layers[name], "min_length", 1)
        for own in inputs:
            source = structure.sources.get((name, own))
            taken.append((next(waiting), least) if source is None else known[source])
        result[name] = outputs_of(name, layers[name], [layout for layout, _ in taken], len(outputs), least=max(
            (least for _, least in taken), default=1
        ))  # fmt: skip
        least = max((least for _, least in taken), default=1)
        for own, layout in zip(outputs, result[name], strict=True):
            known[name, own] = layout, least
    return result


def outputs_of(
    name: str, layer: Layer, inputs: Sequence[DataLayout], num_outputs: int, least: int = 1
) -> tuple[DataLayout, ...]:
    """Initialise a layer; return the layouts of its outputs.

    Args:
        name: of the layer.
        layer: is changed.
        inputs: the layouts of its inputs.
        num_outputs: number of its outputs.
        least: the length that stands for an unknown one.
    """
    examples = [layout.zeros(least) for layout in inputs]
    placed = Collected({}).take(name, layer)
    with naming(placed, "initialize", examples):
        layer.initialize(*inputs)
    collected = Collected({})
    placed = collected.take(name, layer)
    arrays: Groups = {group: [_untraced(array) for array in own] for group, own in collected.arrays.items()}
    with rng(), sizes_only(f"predict of {name}"):
        with _telling_of_lengths(inputs, least):
            results, _ = call(placed, arrays, examples, num_outputs, "predict")
        unknown = "".join({
            label for layout in inputs
            for size, label in zip(layout.size, layout.format or "", strict=False) if size is None
        })  # fmt: skip
        return tuple([layout_of(result, unknown) for result in results])


def _untraced(array: Any) -> Any:
    """Return an array, or one of its size if it belongs to the recording around the initialisation."""
    given = as_array(array)
    return given if given._value is None else layout_of(given).zeros()


@contextmanager
def _telling_of_lengths(inputs: Sequence[DataLayout], least: int) -> Iterator[None]:
    """Add to an error of sizes that an unknown length counts as some number."""
    try:
        yield
    except DimsError as error:
        unknown = {
            label for layout in inputs
            for size, label in zip(layout.size, layout.format or "", strict=False) if size is None
        } & {"T", "S"}  # fmt: skip
        if not unknown:
            raise
        hint = (
            f" Axes {' and '.join(sorted(unknown))} of unknown length count as {least} here: give the least length of "
            "the data, as in nn.SequenceInput(..., min_length=), or example data."
        )
        names, found, text = error.in_layer  # type: ignore[attr-defined]
        told = DimsError(f"{error}{hint}")
        told.in_layer = names, found, text + hint  # type: ignore[attr-defined]
        raise told from None


def connections_text(structure: NetworkStructure, connections: Sequence[Connection]) -> list[tuple[str, str]]:
    """Return connections as pairs of texts."""
    return [
        (structure.text_of(source, False), structure.text_of(target, True)) for source, target in connections
    ]
