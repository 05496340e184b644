# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers that a recording can reach, and whether numbers were drawn from one."""

import pickle
import random
import sys
import types
from typing import Any

from tracejit.record import generator_states
from tracejit.record.monitor import is_library
from tracejit.record.places import user_location
from tracejit.util.text import module_of
from tracejit.util.threads import is_alone

LOOKING_AT_STATES = frozenset({"bit_generator", "get_state", "getstate", "__getstate__"})
"""Names of what tells the state of a generator without drawing from it."""
# Functions of np.random that draw from its generator, or seed it, and are no methods of it.
_OF_RANDOM = frozenset(
    (module, name)
    for module in ("numpy.random", "numpy.random.mtrand")
    for name in ("ranf", "sample", "seed")
)
# Functions that give other numbers at each call, by module and name.
_NEVER_THE_SAME = frozenset({
    ("posix", "urandom"), ("nt", "urandom"), ("posix", "getrandom"), ("uuid", "uuid1"), ("uuid", "uuid4"),
    *[("secrets", name) for name in ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice", "randbits")],
})  # fmt: skip


class Generators:
    """Generators of NumPy and of Python, with their states when they were first observed."""

    def __init__(self) -> None:
        self._noted: list[tuple[Any, Any, tuple[str, int]]] = []
        self._recorded: dict[int, Any] = {}  # states after draws that the recording has noted
        self._left: dict[int, Any] = {}  # states after calls of methods by the recorded code, noted or not
        self._unnoted: dict[int, Any] = {}  # the lines of the first draws that are not noted
        self._set: list[Any] = []  # generators whose state the code sets, or looks at
        # By the call itself, with whether their numbers are the same in each call.
        self._made: dict[int, tuple[Any, bool]] = {}
        self._drawn: tuple[str, tuple[str, int]] | None = None  # from what has no state

    def note(self, value: Any, where: tuple[str, int]) -> None:
        """Note a generator, or the one that a method belongs to; anything else is ignored."""
        is_method = type(value) in (types.MethodType, types.BuiltinMethodType)
        name = (getattr(value, "__module__", ""), getattr(value, "__name__", "")) if callable(value) else None
        is_of_system = isinstance(value.__self__ if is_method else value, random.SystemRandom)
        if is_of_system or name in _NEVER_THE_SAME:
            self._drawn = self._drawn or (f"{name[0]}.{name[1]}" if name else "random.SystemRandom", where)
        for candidate in (value, value.__self__ if is_method else _behind(name)):
            if id(candidate) not in self._made and all(
                candidate is not generator for generator, _, _ in self._noted
            ):
                state = _mark_of(candidate)
                if state is not None:
                    self._noted.append((candidate, state, where))

    def note_made(self, generator: Any, is_seeded: bool = True) -> None:
        """Note a generator, or what one takes its bits from, that the call has made: its numbers are constants."""
        self._made[id(generator)] = generator, is_seeded

    def note_made_of(self, generator: Any, bits: Any) -> None:
        """Note a generator that the call has made, if it has made what it takes its bits from, too."""
        if id(bits) in self._made:
            self.note_made(generator, self._made[id(bits)][1])

    def note_computed(self, generator: Any, where: tuple[str, int] | None) -> None:
        """Note a generator that each replay makes."""
        self.note_made(generator)
        self._noted.append((generator, _mark_of(generator), where or ("", 0)))

    def drawn_from(self) -> tuple[str, tuple[str, int]] | None:
        """Return in words the generator that random numbers were drawn from, if any were, and where it is read."""
        for generator, state, where in self._noted:
            if _mark_of(generator) != self._recorded.get(id(generator), state):
                kind = type(generator)
                return f"a {module_of(kind)}.{kind.__name__}", self._unnoted.get(id(generator)) or where
        return self._drawn

    def may_draw(self, generator: Any) -> bool:
        """Return whether a generator was noted, as was all that was drawn from it since, and nothing sets its state."""
        if any(generator is other for other in self._set):
            return False
        if id(generator) in self._made and not self._made[id(generator)][1]:
            self._drawn = self._drawn or ("a generator without a seed", user_location() or ("", 0))
        for noted, state, _ in self._noted:
            if noted is generator:
                return bool(_mark_of(generator) == self._recorded.get(id(generator), state))
        return False

    def is_disturbed(self, generator: Any) -> bool:
        """Return whether another thread has drawn from a generator, from which the recording could draw.

        Its state is not the one that the latest call of the recorded code has left it in.
        """
        if is_alone() or any(generator is other for other in self._set):
            return False
        for noted, state, _ in self._noted:
            if noted is generator:
                known = self._recorded.get(id(generator), state)
                return bool(_mark_of(generator) != self._left.get(id(generator), known))
        return False

    @property
    def are_drawn_from(self) -> bool:
        """True if the recording has noted draws."""
        return bool(self._recorded)

    def note_state(self, generator: Any) -> None:
        """Note that code sets the state of a generator, or looks at it."""
        self._set.append(generator)

    def has_drawn(self, generator: Any) -> None:
        """Note that what a generator gave is noted by the recording."""
        self._recorded[id(generator)] = self._left[id(generator)] = _mark_of(generator)

    def leaves(self, generator: Any) -> None:
        """Note the state in which a call of the recorded code, that is not noted, has left a generator."""
        for noted, state, _ in self._noted:
            if noted is generator:
                mark, ident = _mark_of(generator), id(generator)
                drawn_at = user_location()
                if mark != self._recorded.get(ident, state) and drawn_at and not is_library(drawn_at[0]):
                    self._unnoted.setdefault(ident, drawn_at)
                self._left[ident] = mark

    def draws_again(self, value: Any) -> bool:
        """Return whether an object is a generator that replays draw from, so that any of its kind fits."""
        return id(value) in self._recorded

    def give_back(self) -> None:
        """Give the generators that the recording has drawn from the states that they had when they were noted."""
        for generator, state, _ in self._noted:
            if id(generator) in self._recorded:
                generator_states.restore_mark(generator, state)
        self._recorded.clear()


def _behind(name: tuple[Any, Any] | None) -> Any:
    """Return the generator that a function of NumPy's draws from (np.random.sample) or seeds, by module and name."""
    module = sys.modules.get("numpy.random")
    return module.mtrand._rand if module is not None and name in _OF_RANDOM else None


def _mark_of(value: Any) -> Any:
    """Return the state of a generator as something that can be compared, or None for any other object."""
    return generator_states.mark_of(value) if generator_states.is_generator(value) else state_of(value)


def state_of(value: Any) -> bytes | None:
    """Return the state of a generator of random numbers, or None for any other object."""
    if generator_states.is_generator(value):
        return pickle.dumps(generator_states.state_of(value))
    module = sys.modules.get("numpy.random")
    is_of_bits = module is not None and issubclass(type(value), module.BitGenerator)
    return pickle.dumps(value.state) if is_of_bits else None
