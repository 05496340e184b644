# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers that a recording can reach, and whether numbers were drawn from one."""

import pickle
import random
import sys
import types
from typing import Any

LOOKING_AT_STATES = frozenset({"bit_generator", "get_state", "getstate", "__getstate__"})
"""Names of what tells the state of a generator without drawing from it."""
# Functions that give other numbers at each call, by module and name.
_NEVER_THE_SAME = frozenset({
    ("posix", "urandom"), ("nt", "urandom"), ("posix", "getrandom"), ("uuid", "uuid1"), ("uuid", "uuid4"),
    *[("secrets", name) for name in ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice", "randbits")],
})  # fmt: skip


class Generators:
    """Generators of NumPy and of Python, with their states when they were first observed."""

    def __init__(self) -> None:
        self._noted: list[tuple[Any, bytes, tuple[str, int]]] = []
        self._drawn: tuple[str, tuple[str, int]] | None = None  # from what has no state

    def note(self, value: Any, where: tuple[str, int]) -> None:
        """Note a generator, or the one that a method belongs to; anything else is ignored."""
        is_method = type(value) in (types.MethodType, types.BuiltinMethodType)
        name = (getattr(value, "__module__", ""), getattr(value, "__name__", "")) if callable(value) else None
        is_of_system = isinstance(value.__self__ if is_method else value, random.SystemRandom)
        if is_of_system or name in _NEVER_THE_SAME:
            self._drawn = self._drawn or (f"{name[0]}.{name[1]}" if name else "random.SystemRandom", where)
        for candidate in (value, value.__self__ if is_method else None):
            state = state_of(candidate)
            if state is not None and all(candidate is not generator for generator, _, _ in self._noted):
                self._noted.append((candidate, state, where))

    def drawn_from(self) -> tuple[str, tuple[str, int]] | None:
        """Return in words the generator that random numbers were drawn from, if any were, and where it is read."""
        for generator, state, where in self._noted:
            if state_of(generator) != state:
                return f"a {type(generator).__module__}.{type(generator).__name__}", where
        return self._drawn


def state_of(value: Any) -> bytes | None:
    """Return the state of a generator of random numbers, or None for any other object."""
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return pickle.dumps(value.getstate())
    kinds = sys.modules.get("numpy.random")
    if kinds is None or not issubclass(type(value), (kinds.Generator, kinds.RandomState, kinds.BitGenerator)):
        return None
    if issubclass(type(value), kinds.RandomState):
        return pickle.dumps(value.get_state(legacy=False))
    return pickle.dumps(getattr(value, "bit_generator", value).state)
