# SPDX-License-Identifier: BSD-3-Clause
"""Plain NumPy writes numbers into an array of the state through another name: each call does what Python does."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import by_turns

import tracejit as tj


class Model:
    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.parts = [weights]


def add_one(part: Any) -> Any:
    part += 1
    return part


VIEWS: dict[str, Callable[[Any], Any]] = {
    "the array": lambda w: w,
    "a row": lambda w: w[0],
    "a slice": lambda w: w[1:],
    "reversed": lambda w: w[::-1],
    "reshaped": lambda w: w.reshape(-1),
    "transposed": lambda w: w.T,
    "raveled": np.ravel,
    "a diagonal": lambda w: w[None, ..., :2],
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda part: part.__iadd__(1),
    "an item": lambda part: part.__setitem__(..., part + 1),
    "a function": add_one,
    "a ufunc": lambda part: np.add(part, 1, out=part),
    "copyto": lambda part: np.copyto(part, part + 1),
    "fill": lambda part: part.fill(part.flat[0] + 1),
}
PLACES: dict[str, Callable[[Model], Any]] = {
    "an attribute": lambda model: model.weights,
    "an item": lambda model: model.parts[0],
}


@pytest.mark.filterwarnings("ignore::tracejit.TraceJitWarning")
@pytest.mark.parametrize(
    ("view", "write", "place", "shape_and_reads"),
    by_turns(
        [*VIEWS], [*WRITES], [*PLACES], [*product([(3, 4), (200, 100)], ["the view", "the array", "both"])]
    ),
    ids=str,
)
@pytest.mark.sampled
def test_each_call_does_what_python_does(
    view: str, write: str, place: str, shape_and_reads: tuple[tuple[int, int], str]
) -> None:
    shape, reads = shape_and_reads

    def calls(accelerate: Callable[..., Any]) -> list[list[float]]:
        model = Model(np.zeros(shape))
        find, look, change = PLACES[place], VIEWS[view], WRITES[write]

        @accelerate
        def step(x: Any) -> Any:
            part = look(find(model))
            change(part)
            total = x * 1.0
            if reads != "the array":
                total = total + part.ravel()[:3]
            return total if reads == "the view" else total + find(model)[:1, :3].ravel()

        return [[*map(float, step(tj.dlarray(np.ones(3))))] for _ in range(5)]

    assert calls(dlaccelerate) == calls(lambda function: function)
