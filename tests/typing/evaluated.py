# SPDX-License-Identifier: BSD-3-Clause
"""dlfeval returns what the function returns; gradients have the type of what they are taken by."""

from dataclasses import dataclass
from typing import Any, assert_type

import tracejit as tj
from tracejit import dlarray


@dataclass
class Layer:
    """The parameters of a layer."""

    w: dlarray
    b: dlarray


def gradients(layer: Layer, weights: dict[str, dlarray], pair: tuple[dlarray, Layer], x: dlarray) -> dlarray:
    """Take gradients by containers of all kinds."""
    y = (x @ layer.w + layer.b).sum()
    assert_type(tj.dlgradient(y, x), dlarray)
    assert_type(tj.dlgradient(y, layer), Layer)
    assert_type(tj.dlgradient(y, weights), dict[str, dlarray])
    assert_type(tj.dlgradient(y, pair, retain_data=True), tuple[dlarray, Layer])
    assert_type(tj.dlgradient(y, x, layer), tuple[dlarray, Layer])
    assert_type(tj.dlgradient(y, x, layer, weights), tuple[dlarray, Layer, dict[str, dlarray]])
    assert_type(tj.dlgradient(y, x, x, x, layer), tuple[dlarray, dlarray, dlarray, Layer])
    assert_type(tj.dlgradient(y, x, x, x, x, x), Any)
    assert_type(tj.dlgradient(y, *[x, x]), Any)
    return y


def value(x: dlarray, power: int = 2) -> tuple[dlarray, dlarray]:
    """Return a function of an array, and its gradient."""
    y = (x**power).sum()
    return y, tj.dlgradient(y, x)


def results(layer: Layer, x: dlarray) -> None:
    """Check what dlfeval returns."""
    assert_type(tj.dlfeval(value, x), tuple[dlarray, dlarray])
    assert_type(tj.dlfeval(value, x, power=3), tuple[dlarray, dlarray])
    assert_type(tj.dlfeval(gradients, layer, {"w": x}, (x, layer), x), dlarray)
    assert_type(tj.dlfeval(tj.dlaccelerate(value), x, 3), tuple[dlarray, dlarray])
    assert_type(tj.dlfeval(lambda: x), dlarray)


def mistakes(layer: Layer, x: dlarray) -> None:
    """Make each mistake that the types are there for."""
    tj.dlfeval(value)  # type: ignore[call-arg]
    tj.dlfeval(value, x, "3")  # type: ignore[arg-type]
    tj.dlfeval(value, x, pover=3)  # type: ignore[call-arg]
    tj.dlfeval(3, x)  # type: ignore[arg-type]
    number: float = tj.dlfeval(value, x)  # type: ignore[assignment]
    weights: Layer = tj.dlgradient(x, x)  # type: ignore[assignment]
    print(number, weights)
