# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers: a key and a position, which every draw moves on."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, final

import numpy as np

from tracejit import trace
from tracejit.errors import ArgumentError

_LONG = 0xFFFFFFFFFFFFFFFF


class RngState(NamedTuple):
    """The state of a generator: what rng() returns and accepts.

    seed        the seed that the numbers come from
    position    the block of four words of 32 bits that the next draw begins with

    As a context manager it is restored when the block ends: ``with rng(0): ...`` draws with seed 0 inside and
    goes on outside as if nothing had been drawn.
    """

    seed: int
    position: int

    def __enter__(self) -> "RngState":
        return self

    def __exit__(self, *exc: Any) -> None:
        default.state = self


class _Private(threading.local):
    """States that draws of this thread use instead of the generators' own, while a block of `apart` runs."""

    states: "dict[Generator, np.ndarray] | None" = None


_private = _Private()


@final
class Generator:
    """A source of random numbers of its own, for the argument `generator` of the functions that draw.

    Numbers come from Philox 4x32-10, a function of the seed and of a counter: two generators with one seed give
    the same numbers, and those of different seeds have nothing to do with each other.

    Args:
        seed: integer, 0 to 2**64 - 1; "default" for 0, "shuffle" for one that the operating system gives.

    Raises:
        ArgumentError: for anything else.

    Examples:
        >>> import tracejit as tj
        >>> g = tj.Generator(1)
        >>> tj.randi(10, 5, generator=g).tolist() == tj.randi(10, 5, generator=tj.Generator(1)).tolist()
        True
        >>> g.state
        RngState(seed=1, position=3)
    """

    def __init__(self, seed: Any = "default") -> None:
        # An array, because programs read it where it is.
        self._state = np.zeros(2, np.int64)
        self._lock = threading.Lock()
        self._set(RngState(seed_of("Generator", seed), 0))

    @property
    def state(self) -> RngState:
        """What the next draw comes from."""
        seed, position = self._current().tolist()
        return RngState(seed & _LONG, position)

    @state.setter
    def state(self, value: RngState) -> None:
        if not isinstance(value, RngState):
            raise ArgumentError(f"state: expected what rng() or .state returned, not {value!r}.")
        self._set(value)

    def _set(self, value: RngState) -> None:
        with self._lock:
            # The low 64 bits, read as a signed number.
            self._current()[:] = (value.seed ^ 1 << 63) - (1 << 63), value.position

    def _current(self) -> np.ndarray:
        states = _private.states
        if states is None:
            return self._state
        found = states.get(self)
        if found is None:
            found = states[self] = self._state.copy()
        return found

    def advance(self, blocks: int) -> np.ndarray:
        """Move on by some blocks and return, as a new array, the state from before."""
        with self._lock:
            state = self._current()
            before = state.copy()
            state[1] += blocks
        return before

    def __repr__(self) -> str:
        return f"Generator with {self.state}"

    def __reduce__(self) -> Any:
        return (_restored, (self.state,))


def _restored(state: RngState) -> Generator:
    generator = Generator()
    generator.state = state
    return generator


def seed_of(where: str, seed: Any) -> int:
    """Return a seed as a number.

    Raises:
        ArgumentError: in the name of `where`, for what is no seed.
    """
    if isinstance(seed, str) and seed == "default":
        return 0
    if isinstance(seed, str) and seed == "shuffle":
        return secrets.randbits(64)
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed <= _LONG:
        return int(seed)
    raise ArgumentError(
        f'{where}: a seed is an integer from 0 to 2**64 - 1, "default" (0) or "shuffle" (new each time), not {seed!r}.'
    )


default = Generator()
"""What is drawn from where no generator is given."""


@contextmanager
def apart(states: "dict[Generator, np.ndarray]") -> Iterator[None]:
    """Let this thread draw from `states`, and from copies of those of other generators, while the block runs.

    What the generators themselves give next is not changed by what is drawn inside.
    """
    kept, _private.states = _private.states, {g: state.copy() for g, state in states.items()}
    try:
        yield
    finally:
        _private.states = kept


def draw(generator: Generator, blocks: int) -> tuple[Any, int]:
    """Move a generator on by some blocks, and return the state that they come from and how far into it they lie."""
    return trace.wrap(generator.advance(blocks)), 0
