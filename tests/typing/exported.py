# SPDX-License-Identifier: BSD-3-Clause
"""A loaded function takes the type that it is declared to have; what a path leads to is known when the program runs."""

from typing import Any, assert_type

import tracejit as tj
from tracejit import LoadedFunction, dlarray


@tj.dlaccelerate
def layer(x: dlarray, w: dlarray) -> dlarray:
    """Return a layer."""
    return tj.tanh(x @ w)


def results(x: dlarray) -> None:
    """Check what calls return."""
    tj.export(layer, "layer.tj", args=(x, x))
    assert_type(tj.load("layer.tj"), LoadedFunction[..., Any])
    assert_type(tj.load("layer.tj")(x, x), Any)
    loaded: LoadedFunction[[dlarray, dlarray], dlarray] = tj.load("layer.tj")
    assert_type(loaded(x, x), dlarray)
    assert_type(loaded.path, str)


def mistakes(x: dlarray) -> None:
    """Make each mistake that the types are there for."""
    loaded: LoadedFunction[[dlarray, dlarray], dlarray] = tj.load("layer.tj")
    loaded(x)  # type: ignore[call-arg]
    loaded(x, "w")  # type: ignore[arg-type]
    number: float = loaded(x, x)  # type: ignore[assignment]
    tj.export(lambda x: x, "f.tj")  # type: ignore[arg-type]
    print(number)
