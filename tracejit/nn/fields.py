# SPDX-License-Identifier: BSD-3-Clause
"""Fields of layers that hold arrays which training changes."""

from typing import Any

from tracejit.errors import ArgumentError
from tracejit.util.arguments import is_real
from tracejit.util.text import brief


class ArrayField:
    """An attribute of a layer that holds an array, None until it is set."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else None


class LearnableField(ArrayField):
    """An array that gradients are taken by and updates change.

    Args:
        learn_rate_factor: factor of the learning rate, at least 0.
        l2_factor: factor of the L2 regularisation, at least 0.

    Raises:
        ArgumentError: if a factor is negative or no number.

    Examples:
        >>> from tracejit import nn
        >>> class Scale(nn.Layer):
        ...     factor = nn.Learnable(l2_factor=0)
        >>> Scale().factor is None
        True
    """

    def __init__(self, *, learn_rate_factor: float = 1.0, l2_factor: float = 1.0) -> None:
        self.learn_rate_factor = factor_of("Learnable", "learn_rate_factor", learn_rate_factor)
        self.l2_factor = factor_of("Learnable", "l2_factor", l2_factor)


class StateField(ArrayField):
    """An array that forward() replaces: statistics, the last step of a sequence.

    Args:
        per_observation: whether its size depends on the observations of a batch.

    Examples:
        >>> from tracejit import nn
        >>> class Counter(nn.Layer):
        ...     count = nn.State()
        >>> Counter().count is None
        True
    """

    def __init__(self, *, per_observation: bool = False) -> None:
        self.per_observation = per_observation


def factor_of(function: str, argument: str, value: Any) -> float:
    """Return a factor as a float.

    Raises:
        ArgumentError: if it is negative, infinite or no number.
    """
    if not is_real(value) or not 0 <= value < float("inf"):
        raise ArgumentError(
            f"{function}: {argument} must be a number of at least 0, not {brief(value)}; 0 turns it off."
        )
    return float(value)


def field_of(kind: type, name: str) -> ArrayField | None:
    """Return the field that a class of layers has under a name, or None."""
    for base in kind.__mro__:
        if name in vars(base):
            field = vars(base)[name]
            return field if isinstance(field, ArrayField) else None
    return None


def field_names(kind: type, of: type[ArrayField] = ArrayField) -> tuple[str, ...]:
    """Return the names of the fields of a class of layers, in the order of the class statements."""
    names = {name: None for base in reversed(kind.__mro__) for name in vars(base)}
    return tuple([name for name in names if isinstance(field_of(kind, name), of)])
