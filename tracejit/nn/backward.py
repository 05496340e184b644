# SPDX-License-Identifier: BSD-3-Clause
"""Layers with their own backward method, as differentiable functions of their inputs and arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray, wrap
from tracejit.errors import ArgumentError, DimsError, GradientError
from tracejit.functions.differentiable import DifferentiableFunction
from tracejit.functions.movement import in_order_of, relabel
from tracejit.nn.placed import CONSTANT, LEARNABLE, STATE, PlacedLayer
from tracejit.record import recorder as recorders
from tracejit.util.text import count


class LayerFunction(DifferentiableFunction):
    """A layer whose derivative is its own backward: a function of the inputs, and then of the arrays of the layer.

    Args:
        placed: the layer.
        num_outputs: of the layer.
        function: "forward" or "predict", which is called.
        formats: labels of the inputs and of the arrays, None for those without.
    """

    def __init__(
        self, placed: PlacedLayer, num_outputs: int, function: str, formats: tuple[str | None, ...]
    ) -> None:
        super().__init__(num_outputs, save_inputs_for_backward=True, save_outputs_for_backward=True)
        self.placed = placed
        self.function = function
        self.formats = formats
        self.result_formats: tuple[str | None, ...] = ()  # known once forward has run
        self.places = places_of(placed)

    def forward(self, *arrays: np.ndarray) -> Any:
        inputs, layer = self._parts(arrays)
        returned = getattr(layer, self.function)(*inputs)
        results = [as_array(x) for x in (returned if isinstance(returned, (tuple, list)) else (returned,))]
        self.result_formats = tuple([x._format for x in results])
        if len(results) != self.num_outputs:
            raise ArgumentError(
                f"{self.function}: {self.placed.description} returned {count(len(results), 'result')}; expected "
                f"{count(self.num_outputs, 'output')}, because a layer with backward keeps no state."
            )
        return tuple([x._data for x in results])

    def backward(self, *arguments: Any) -> Any:
        n, of_inputs = self.num_outputs, len(self.formats)
        cotangents, needed, rest = arguments[:n], arguments[n], arguments[n + 1 :]
        inputs, layer = self._parts(rest[:of_inputs])
        outputs = [wrap(y, format) for y, format in zip(rest[of_inputs:], self.result_formats, strict=True)]
        slopes = [wrap(ct, format) for ct, format in zip(cotangents, self.result_formats, strict=True)]
        try:
            returned = layer.backward(*inputs, *outputs, *slopes)
        except Exception as error:
            error.add_note(f"in backward of {self.placed.description} of a network")
            raise
        gradients = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        learnables = len(self.placed.places(LEARNABLE))
        if len(gradients) != len(inputs) + learnables:
            raise ArgumentError(
                f"backward: {self.placed.description} returned {count(len(gradients), 'gradient')}; expected one for "
                "each of "
                f"{count(len(inputs), 'input')} and {count(learnables, 'learnable')}, in this order."
            )
        others = [np.zeros_like(x) for x in rest[len(gradients) : of_inputs]]
        found = zip([*gradients, *others], self.formats, rest[:of_inputs], needed, strict=True)
        return [
            self._gradient(number, gradient, wrap(x, format)) if wanted else None
            for number, (gradient, format, x, wanted) in enumerate(found)
        ]

    def _gradient(self, number: int, gradient: Any, by: dlarray) -> Any:
        """Return the elements of a gradient, its axes in the order of the labels of what it is by."""
        array = None if gradient is None else in_order_of(by.format, gradient)
        if array is not None and array._data.shape == by._data.shape:
            return array._data
        inputs = len(self.formats) - len(self.places)
        which = f"input {number + 1}" if number < inputs else f"learnable {number - inputs + 1}"
        wrong = "no gradient" if array is None else f"a gradient of size {recorders.describe(array)}"
        error = GradientError if array is None else DimsError
        raise error(
            f"backward: {self.placed.description} returned {wrong} by {which}, which is {recorders.describe(by)} and "
            "whose gradient is needed; return an array of its size, zeros if no output depends on it."
        )

    def _parts(self, arrays: Sequence[np.ndarray]) -> tuple[list[dlarray], Any]:
        """Return the inputs with their labels, and the layer with its arrays."""
        first = len(self.formats) - len(self.places)
        labelled = [wrap(x, format) for x, format in zip(arrays, self.formats, strict=True)]
        groups: dict[str, Any] = {LEARNABLE: {}, STATE: {}, CONSTANT: {}}
        for (group, number), array in zip(self.places, labelled[first:], strict=True):
            groups[group][number] = array
        return labelled[:first], self.placed.layer(groups)


def places_of(placed: PlacedLayer) -> list[tuple[str, int]]:
    """Return the places of the arrays of a layer, in the order in which they follow its inputs."""
    return [(group, number) for group in (LEARNABLE, STATE, CONSTANT) for number in placed.places(group)]


def with_backward(
    placed: PlacedLayer, groups: Mapping[str, Any], num_outputs: int, function: str, known: dict[Any, Any]
) -> Callable[..., Any]:
    """Return a layer that has backward as a function of its inputs.

    Args:
        placed: the layer.
        groups: the arrays of the network.
        num_outputs: of the layer.
        function: "forward" or "predict".
        known: differentiable functions of the network that were made before, to which a new one is added.
    """

    def call(*inputs: Any) -> Any:
        arrays = [as_array(x) for x in inputs]
        arrays += [as_array(groups[group][number]) for group, number in places_of(placed)]
        formats = tuple([x._format for x in arrays])
        key = ("backward", placed.name, function, formats)
        if key not in known:
            known[key] = LayerFunction(placed, num_outputs, function, formats)
        of_layer = known[key]
        results = of_layer(*[relabel(x, None) for x in arrays])
        parts = results if isinstance(results, tuple) else (results,)
        return tuple([relabel(x, format) for x, format in zip(parts, of_layer.result_formats, strict=True)])

    return call
