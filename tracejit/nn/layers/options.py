# SPDX-License-Identifier: BSD-3-Clause
"""Options that several layers have."""

from collections.abc import Mapping
from typing import Any

from tracejit.errors import ArgumentError, DimsError
from tracejit.nn.fields import LearnableField, factor_of, field_names
from tracejit.nn.layout import DataLayout
from tracejit.util.arguments import as_index, is_real
from tracejit.util.text import brief

MOST = 1 << 40  # of anything that a layer counts
MOST_PORTS = 1000  # inputs or outputs of a layer


def number_of(layer: str, argument: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Return an argument that is a number of things.

    Raises:
        DimsError: if it is no integer, below `least` or above `most`.
    """
    number = as_index(value)
    if number is None or not least <= number <= most:
        raise DimsError(f"{layer}: {argument} must be an integer from {least} to {most}, not {brief(value)}.")
    return number


def sizes_of(layer: str, argument: str, value: Any, count: int | None = None) -> tuple[int, ...]:
    """Return sizes as a tuple: one integer for all of `count` axes, or one for each.

    Raises:
        DimsError: if it holds other things, or not as many as axes.
    """
    number = as_index(value)
    if number is not None:
        result = (number,) * (count or 1)
    else:
        try:
            result = tuple([number_of(layer, argument, part) for part in value])
        except TypeError:
            raise DimsError(
                f"{layer}: {argument} must be an integer or a tuple of integers, not {brief(value)}."
            ) from None
    if (count is not None and len(result) != count) or min(result, default=0) < 1:
        raise DimsError(
            f"{layer}: {argument} must be {'an integer or ' if count else ''}"
            f"{f'{count} integers' if count else 'integers'} of at least 1, not {brief(value)}."
        )
    return result


def probability_of(layer: str, argument: str, value: Any) -> float:
    """Return an argument that is a probability of being dropped.

    Raises:
        DimsError: if it is no number of at least 0 and less than 1.
    """
    if not is_real(value) or not 0 <= value < 1:
        raise DimsError(f"{layer}: {argument} must be at least 0 and less than 1, not {brief(value)}.")
    return float(value)


def set_factors(layer: Any, learn_rate_factor: Any, l2_factor: Any) -> None:
    """Keep factors of the learning rate and of the L2 regularisation with a layer: one, or one by parameter.

    Raises:
        ArgumentError: if a factor is no number of at least 0, or the layer has no such parameter.
    """
    kind = type(layer)
    learnables = field_names(kind, LearnableField)
    for argument, given in (("learn_rate_factor", learn_rate_factor), ("l2_factor", l2_factor)):
        if given is None:
            continue
        factors = given if isinstance(given, Mapping) else dict.fromkeys(learnables, given)
        for name in factors:
            if name not in learnables:
                raise ArgumentError(
                    f"{kind.__name__}: {argument} has a factor for {name!r}; the learnables are "
                    f"{', '.join(learnables)}."
                )
        checked = {name: factor_of(kind.__name__, argument, value) for name, value in factors.items()}
        setattr(layer, f"{argument}s", checked)


def channels_of(layer: str, layout: DataLayout) -> int:
    """Return the number of channels of a layout.

    Raises:
        DimsError: if there is no axis C, or its size is unknown.
    """
    size = layout.size_of("C")
    if size is None:
        raise DimsError(
            f"{layer}: the input {layout!r} has no channels (C) of a known size; label an axis C, and give its size."
        )
    return size
