# SPDX-License-Identifier: BSD-3-Clause
"""One run of a network: its layers in order, in accelerated functions where they can be replayed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracejit import tree
from tracejit.accelerate.function import AcceleratedFunction
from tracejit.array import as_array, dlarray
from tracejit.errors import ArgumentError, DimsError, TraceJitError
from tracejit.functions.movement import permuted, relabel
from tracejit.nn.backward import with_backward
from tracejit.nn.fields import StateField, field_names
from tracejit.nn.graph import Port
from tracejit.nn.layer import is_acceleratable, is_formattable
from tracejit.nn.placed import CONSTANT, LEARNABLE, STATE, PlacedLayer
from tracejit.nn.structure import NetworkStructure
from tracejit.record import monitor
from tracejit.record import recorder as recorders
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import count

_ORDER = "SCBTU"  # of the axes of arrays that layers get without labels

Groups = dict[str, Sequence[Any]]


class Segment(NamedTuple):
    """Layers that run one after the other, in one accelerated function or uncompiled.

    layers          their numbers in the network
    accelerated     whether they can be replayed
    takes, gives    outputs of layers before that they take, and outputs that layers after them, or the network, take
    """

    layers: tuple[int, ...]
    accelerated: bool
    takes: tuple[Port, ...]
    gives: tuple[Port, ...]


def segments(structure: NetworkStructure, wanted: Sequence[Port]) -> list[Segment]:
    """Return the layers that some outputs need, in runs of those that can be replayed and of those that cannot."""
    content = structure.content
    needed = _needed(structure, wanted)
    runs: list[list[int]] = []
    kinds: list[bool] = []
    empty: Groups = {LEARNABLE: (), STATE: (), CONSTANT: ()}
    for number in sorted(needed):
        kind = _is_replayed(content.layers[number], empty)
        if not runs or kinds[-1] is not kind:
            runs.append([])
            kinds.append(kind)
        runs[-1].append(number)
    result = []
    for at, run in enumerate(runs):
        taken = _taken(structure, run)
        later = {*wanted, *[place for other in runs[at + 1 :] for place in _taken(structure, other)]}
        own = {(content.layers[n].name, name) for n in run for name in content.ports[n][1]}
        takes = tuple([place for place in taken if place not in own])
        gives = tuple([
            (content.layers[n].name, name)
            for n in run for name in content.ports[n][1] if (content.layers[n].name, name) in later
        ])  # fmt: skip
        result.append(Segment(tuple(run), kinds[at], takes, gives))
    return result


def _is_replayed(placed: PlacedLayer, empty: Groups) -> bool:
    layer: Any = object.__new__(placed.kind)
    for attribute in placed.attributes:
        if attribute.name == "acceleratable":
            (layer.acceleratable,) = attribute.leaves
    return is_acceleratable(layer)


def _needed(structure: NetworkStructure, wanted: Sequence[Port]) -> set[int]:
    needed: set[int] = set()
    waiting = [structure.number_of[name] for name, _ in wanted]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += [
                structure.number_of[place[0]]
                for place in _taken(structure, [number])
                if place[0] in structure.number_of
            ]
    return needed


def _taken(structure: NetworkStructure, run: Sequence[int]) -> list[Port]:
    """Return what layers take: outputs of layers, and inputs of the network, which have no layer ("", input)."""
    content = structure.content
    taken: dict[Port, None] = {}
    for number in run:
        name = content.layers[number].name
        for own in content.ports[number][0]:
            source = structure.sources.get((name, own))
            taken[("", f"{name}/{own}") if source is None else source] = None
    return [*taken]


def run(
    structure: NetworkStructure,
    leaves: Sequence[Any],
    inputs: Sequence[Any],
    wanted: Sequence[Port],
    function: str,
    accelerate: bool,
) -> tuple[list[Any], list[Any]]:
    """Return some outputs of a network and its state afterwards.

    Args:
        structure: of the network.
        leaves: its arrays.
        inputs: of the network, in order.
        wanted: the outputs.
        function: "forward" or "predict", which is called of each layer.
        accelerate: whether runs of layers are replayed.
    """
    groups = structure.groups(leaves)
    values: dict[Port, Any] = {
        ("", f"{name}/{own}"): recorders.as_array(value, function, f"the input of {name}")
        for (name, own), value in zip(structure.inputs, inputs, strict=True)
    }
    state = list(groups[STATE])
    steps = plan(structure, tuple(wanted), function)
    if accelerate and len(steps) == 1 and steps[0][0].accelerated and tuple(wanted) == structure.outputs:
        _note_whole(structure, steps[0], function)
    current = recorders.recorder()
    if current is not None and current.accelerating:
        accelerate = False  # the function around it is recorded as a whole
    for segment, compute in steps:
        taken = [values[place] for place in segment.takes]
        if accelerate and segment.accelerated:
            results, updated = compute(tuple(leaves), tuple(taken))
        else:
            results, updated = run_segment(structure, segment, leaves, taken, function)
        values.update(zip(segment.gives, results, strict=True))
        for number, value in enumerate(updated):
            if value is not None:
                state[number] = value
    return [values[place] for place in wanted], state


class WholeNetwork:
    """All outputs of a network by one accelerated function: the short way of a call.

    Args:
        compute: the function.
        structure: of the network.
        order: the numbers of the inputs that the function takes.
    """

    __slots__ = ("_compute", "_first", "_last", "_order", "inputs")

    def __init__(
        self, compute: Callable[..., Any], structure: NetworkStructure, order: Sequence[int]
    ) -> None:
        self._compute = compute
        self._first = len(structure.content.learnables.names)
        self._last = self._first + len(structure.content.state.names)
        self.inputs = len(structure.inputs)
        self._order = None if [*order] == [*range(self.inputs)] else order

    def __call__(self, leaves: tuple[Any, ...], inputs: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the outputs and the state afterwards."""
        if self._order is not None:
            inputs = tuple([inputs[number] for number in self._order])
        results, updated = self._compute(leaves, inputs)
        state = leaves[self._first : self._last]
        return results, [old if new is None else new for old, new in zip(state, updated, strict=True)]


def _note_whole(structure: NetworkStructure, step: tuple[Segment, Callable[..., Any]], function: str) -> None:
    """Keep the short way of calls, if the network is one accelerated function."""
    segment, compute = step
    numbers = {("", f"{name}/{own}"): number for number, (name, own) in enumerate(structure.inputs)}
    if (
        function not in structure.whole
        and segment.gives == structure.outputs
        and {*segment.takes} <= {*numbers}
    ):
        order = [numbers[place] for place in segment.takes]
        structure.whole[function] = WholeNetwork(compute, structure, order)


def plan(
    structure: NetworkStructure, wanted: tuple[Port, ...], function: str
) -> list[tuple[Segment, Callable[..., Any]]]:
    """Return the segments of a run with a function for each."""
    known: list[tuple[Segment, Callable[..., Any]]] | None = structure.functions.get((function, wanted))
    if known is None:
        known = structure.functions[function, wanted] = [
            (segment, _function(structure, segment, function)) for segment in segments(structure, wanted)
        ]
    return known


def _function(structure: NetworkStructure, segment: Segment, function: str) -> Callable[..., Any]:
    if not segment.accelerated:
        return run_segment

    def compute(leaves: tuple[Any, ...], taken: tuple[Any, ...]) -> Any:
        return run_segment(structure, segment, leaves, taken, function)

    compute.__name__ = compute.__qualname__ = function
    return AcceleratedFunction(compute, write_arguments=False)


def run_segment(
    structure: NetworkStructure, segment: Segment, leaves: Sequence[Any], taken: Sequence[Any], function: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return what a segment gives, and the new state for each row of the network's state, None where it stays."""
    groups = structure.groups(leaves)
    values = dict(zip(segment.takes, taken, strict=True))
    state: list[Any] = [None] * len(groups[STATE])
    for number in segment.layers:
        placed = structure.content.layers[number]
        names, outputs = structure.content.ports[number]
        inputs = []
        for own in names:
            source = structure.sources.get((placed.name, own))
            inputs.append(values[("", f"{placed.name}/{own}") if source is None else source])
        results, updated = call(placed, groups, inputs, len(outputs), function, structure.functions)
        for own, value in zip(outputs, results, strict=True):
            values[placed.name, own] = value
        for place, value in updated:
            state[place] = value
    return tuple([values[place] for place in segment.gives]), tuple(state)


def call(
    placed: PlacedLayer, groups: Groups, inputs: Sequence[Any], num_outputs: int, function: str,
    known: dict[Any, Any] | None = None,
) -> tuple[list[Any], list[tuple[int, Any]]]:  # fmt: skip
    """Return the outputs of a layer, and its new state by the numbers of the rows.

    `known` keeps the differentiable functions of layers with a backward of their own.
    """
    for used in (placed.kind, *placed.others):
        monitor.note_used(used)
    layer: Any = placed.layer(groups, copies=placed.kind.may_write)
    compute = getattr(layer, function)
    if hasattr(layer, "backward"):
        compute = with_backward(placed, groups, num_outputs, function, {} if known is None else known)
    with naming(placed, function, inputs):
        if is_formattable(layer):
            returned = compute(*inputs)
        else:
            returned = _without_labels(placed, compute, inputs, num_outputs, function)
    results = list(returned) if type(returned) in (tuple, list) else [returned]
    outputs, state = results[:num_outputs], tree.flatten(results[num_outputs:])[0]
    places = _state_places(placed)
    if len(outputs) != num_outputs or (state and len(state) != len(places)):
        more = (
            f" and {count(len(places), 'array')} of state ({', '.join(field_names(placed.kind, StateField))})"
            if places
            else ""
        )
        raise ArgumentError(
            f"{function}: {placed.description} returned {count(len(outputs) + len(state), 'result')}; expected "
            f"{count(num_outputs, 'output')}{more}."
        )
    return _checked(placed, outputs, function), list(zip(places, state, strict=True)) if state else []


def _state_places(placed: PlacedLayer) -> list[int]:
    """Return the rows of the state of a layer: of its fields in their order, then of networks that it holds."""
    by_name = {attribute.name: attribute for attribute in placed.attributes}
    own = [
        leaf.number
        for name in field_names(placed.kind, StateField) if name in by_name
        for leaf in by_name[name].leaves
    ]  # fmt: skip
    return own + [number for number in placed.places(STATE) if number not in own]


def _checked(placed: PlacedLayer, results: list[Any], function: str) -> list[Any]:
    for result in results:
        if not (
            type(result) is dlarray or hasattr(type(result), "__dlpack__") or recorders.is_number(result)
        ):
            raise ArgumentError(
                f"{function}: {placed.description} returned a {type(result).__name__}; {function} of a layer must "
                "return "
                "arrays."
            )
    return [as_array(result) for result in results]


def _without_labels(
    placed: PlacedLayer, compute: Callable[..., Any], inputs: Sequence[Any], num_outputs: int, function: str
) -> Any:
    """Call a layer that takes no labels: with axes in one order, whatever order the data have."""
    plain = [_reordered(x)[0] for x in inputs]
    returned = compute(*plain)
    format, order = _reordered(inputs[0])[1:] if inputs else (None, ())
    if format is None:
        return returned
    results = list(returned) if type(returned) in (tuple, list) else [returned]
    back = tuple([order.index(axis) for axis in range(len(order))])
    for number, result in enumerate(_checked(placed, results[:num_outputs], function)):
        if result._data.ndim != len(order):
            raise DimsError(
                f"an input {inputs[0]._format!r} reached the layer without labels, and it returned "
                f"{result._data.ndim} axes, "
                f"expected {len(order)}; derive it from nn.Formattable too, and return labelled arrays."
            )
        results[number] = relabel(permuted(relabel(result, None), back), format)
    return tuple(results)


def _reordered(x: Any) -> tuple[Any, str | None, tuple[int, ...]]:
    """Return an array without labels, its axes in the order of _ORDER; its labels, and the order of its axes."""
    array = as_array(x)
    format = array._format
    if format is None:
        return array, None, ()
    order = tuple(sorted(range(len(format)), key=lambda axis: (_ORDER.index(format[axis]), axis)))
    return permuted(relabel(array, None), order), format, order


@contextmanager
def naming(placed: PlacedLayer, function: str, inputs: Sequence[Any]) -> Iterator[None]:
    """Name the layer, the layers that it is part of, and what reached it, in an error of the block."""
    try:
        yield
    except TraceJitError as error:
        found = ", ".join(recorders.describe(as_array(x)) for x in inputs)
        inner, found, text = getattr(error, "in_layer", ((), found or "nothing", str(error)))
        names = (*inner, placed.description)  # of a layer in a network that is a layer, the innermost first
        named = type(error)(f"{function}: {' of '.join(names)}, given {found}: {text}")
        named.in_layer = names, found, text  # type: ignore[attr-defined]
        named.__traceback__ = error.__traceback__
        raise named from None
    except Exception as error:
        error.add_note(f"in {function} of {placed.description} of a network")
        raise
