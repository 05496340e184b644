# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers that a recording can reach, and whether numbers were drawn from one."""

import pickle
import random
import sys
import types
from typing import Any


class Generators:
    """Generators of NumPy and of Python, with their states when they were first observed."""

    def __init__(self) -> None:
        self._noted: list[tuple[Any, bytes, tuple[str, int]]] = []

    def note(self, value: Any, where: tuple[str, int]) -> None:
        """Note a generator, or the one that a method belongs to; anything else is ignored."""
        is_method = type(value) in (types.MethodType, types.BuiltinMethodType)
        for candidate in (value, value.__self__ if is_method else None):
            state = _state_of(candidate)
            if state is not None and all(candidate is not generator for generator, _, _ in self._noted):
                self._noted.append((candidate, state, where))

    def drawn_from(self) -> tuple[str, tuple[str, int]] | None:
        """Return in words the generator that random numbers were drawn from, if any were, and where it is read."""
        for generator, state, where in self._noted:
            if _state_of(generator) != state:
                return f"a {type(generator).__module__}.{type(generator).__name__}", where
        return None


def _state_of(value: Any) -> bytes | None:
    """Return the state of a generator of random numbers, or None for any other object."""
    if type(value) is random.Random:
        return pickle.dumps(value.getstate())
    kinds = sys.modules.get("numpy.random")
    if kinds is None or not issubclass(type(value), (kinds.Generator, kinds.RandomState, kinds.BitGenerator)):
        return None
    if issubclass(type(value), kinds.RandomState):
        return pickle.dumps(value.get_state(legacy=False))
    return pickle.dumps(getattr(value, "bit_generator", value).state)
