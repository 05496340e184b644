# SPDX-License-Identifier: BSD-3-Clause
"""Generators of random numbers: a key and a position, which every draw moves on, uncompiled and in replays."""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from tracejit.array import wrap
from tracejit.errors import ArgumentError
from tracejit.record import recorder as recorders
from tracejit.record.state import State
from tracejit.util.arguments import is_real
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

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


class _Own:
    """The part of the generators' state that belongs to one thread.

    states      the states to draw from in place of the generators' own, or None (see apart)
    pending     the draws of a replay whose results are not accepted yet: the blocks taken from each generator, and
                the states before; or None
    accepted    the draws of the last accepted replay
    """

    __slots__ = ("accepted", "pending", "states")

    def __init__(self) -> None:
        self.states: dict[Generator, np.ndarray] | None = None
        self.pending: tuple[list[tuple[Generator, int]], list[np.ndarray]] | None = None
        self.accepted: tuple[list[tuple[Generator, int]], list[np.ndarray]] | None = None


class _Thread(threading.local):
    # One object: its attributes are looked up several times faster than those of a threading.local.
    def __init__(self) -> None:
        self.own = _Own()


_thread = _Thread()


@final
class Generator:
    """An independent source of random numbers, for the argument `generator` of functions that draw.

    Numbers come from Philox 4x32-10, a function of the seed and of a counter: two generators with one seed give
    the same numbers, and those of different seeds are independent.

    Args:
        seed: integer, 0 to 2**64 - 1; "default" for 0, "shuffle" for one that the operating system gives.

    Raises:
        ArgumentError: for any other argument.

    Examples:
        >>> import tracejit as tj
        >>> g = tj.Generator(1)
        >>> tj.randi(10, 5, generator=g).tolist() == tj.randi(10, 5, generator=tj.Generator(1)).tolist()
        True
        >>> g.state
        RngState(seed=1, position=3)
    """

    moved_by_replays = ("_state", "_lock")  # Note [draws of a replay]

    def __init__(self, seed: Any = "default") -> None:
        self._state = _as_array(RngState(seed_of("Generator", seed), 0))
        self._lock = new_lock()
        recorder = recorders.recorder()
        if recorder is not None and recorder.accelerating:
            # Uncompiled, each call makes one: what it begins with is a constant of the trace.
            recorder.draws[self] = None

    @property
    def state(self) -> RngState:
        """The state that the next draw starts from.

        A function that reads or sets it cannot be accelerated.

        Raises:
            ArgumentError: if it is set to anything that is not a state.
        """
        _refuse_replays("read")
        _take_back()
        with self._lock:
            seed, position = self._current().tolist()
        return RngState(seed & _LONG, position)

    @state.setter
    def state(self, value: RngState) -> None:
        _refuse_replays("set")
        _take_back()
        if not isinstance(value, RngState):
            raise ArgumentError(
                f"state: expected an RngState, as rng() and .state return, not {brief(value)}."
            )
        if type(value.position) is not int or not 0 <= value.position < 1 << 63:
            raise ArgumentError(
                f"state: a position is an integer from 0 to 2**63 - 1, not {brief(value.position)}."
            )
        state = _as_array(RngState(seed_of("state", value.seed), value.position))
        with self._lock:
            self._current()[:] = state

    def advance(self, blocks: int) -> np.ndarray:
        """Move on by some blocks and return, as a new array, the state from before."""
        own = _thread.own
        if own.pending is not None:
            _take_back()
        state = self._state if own.states is None else self._current()
        with self._lock:
            before = state.copy()
            state[1] = state.item(1) + blocks
        return before

    def take_back(self, before: np.ndarray, blocks: int) -> None:
        """Undo a move, if nothing else was drawn since."""
        with self._lock:
            state = self._current()
            if state[0] == before[0] and state[1] == before[1] + blocks:
                state[1] = before[1]

    def _current(self) -> np.ndarray:
        states = _thread.own.states
        if states is None:
            return self._state
        state = states.get(self)
        if state is None:
            state = states[self] = self._state.copy()
        return state

    def __repr__(self) -> str:
        # Without the position, which explain() would show as it once was.
        return f"<Generator with seed {self._state.item(0) & _LONG}>"

    def __reduce__(self) -> Any:
        return (_restored, (self.state,))


def _as_array(state: RngState) -> np.ndarray:
    # The low 64 bits of the seed, read as a signed number.
    return np.array([(state.seed ^ 1 << 63) - (1 << 63), state.position])


def _restored(state: RngState) -> Generator:
    generator = Generator()
    generator.state = state
    return generator


def seed_of(where: str, seed: Any) -> int:
    """Return a seed as a number.

    Raises:
        ArgumentError: in the name of `where`, if it is not a seed.
    """
    if isinstance(seed, str) and seed == "default":
        return 0
    if isinstance(seed, str) and seed == "shuffle":
        return secrets.randbits(64)
    if (
        isinstance(seed, (int, np.integer))
        and is_real(seed)
        and not isinstance(seed, bool)
        and 0 <= seed <= _LONG
    ):
        return int(seed)
    raise ArgumentError(
        f'{where}: a seed is an integer from 0 to 2**64 - 1, "default" (0) or "shuffle" (new each time), not '
        f"{brief(seed)}."
    )


def _refuse_replays(what: str) -> None:
    """Note that a function which is being recorded does something that a replay would not do."""
    recorder = recorders.recorder()
    if recorder is not None and recorder.accelerating:
        recorder.refuse(
            f"the state of a generator of random numbers is {what}, which a replay would not do,",
            recorders.user_location(),
            "do it outside; for the same numbers at each call draw from a generator that is made inside: rand(size, "
            "generator=Generator(seed))",
        )


default = Generator()
"""The generator of draws that name none."""


# Note [draws of a replay]
# A recording notes for each generator the state that it began with, which becomes an input of the graph, and how many
# blocks were drawn: a draw is an op of that input, with a constant number of blocks as its offset. A replay takes as
# many blocks at once, before it runs, so that no two threads get the same ones; the input is the state from before.
# If the trace then turns out not to apply, the function runs uncompiled and has to draw the same numbers, so the
# blocks are given back: by the next use of a generator in this thread, which is that one.


class Draw:
    """The draws of one recording from one generator."""

    __slots__ = ("blocks", "input", "start", "value")

    def __init__(self, start: np.ndarray, input: Any) -> None:
        self.start = start
        self.input = input
        self.value = input._value
        self.blocks = 0


def draw(generator: Generator, blocks: int) -> tuple[Any, int]:
    """Advance a generator by some blocks; return the state that the draw is an op of, and its offset in blocks."""
    recorder = recorders.recorder()
    if recorder is not None:
        for mapping in recorder.maps:  # whose observations draw numbers of their own
            blocks *= mapping.count
    before = generator.advance(blocks)
    if recorder is None or not recorder.accelerating:
        return wrap(before), 0
    drawn: Draw | None = recorder.draws.get(generator)
    if drawn is None:
        if generator in recorder.draws:  # made while recording
            return wrap(before), 0
        drawn = recorder.draws[generator] = Draw(before, recorder.input(wrap(before)))
    offset = drawn.blocks
    drawn.blocks += blocks
    if before[0] != drawn.start[0] or before[1] != drawn.start[1] + offset:
        # Another thread drew from it meanwhile: right for this call, but not what a replay would draw. Or it was set.
        recorder.replayable = recorder.refusal is not None
        return wrap(before), 0
    return drawn.input, offset


class Draws(State):
    """The captured state of a trace that draws random numbers: the generators' states are its last inputs.

    Attributes:
        reads: the state that it captured otherwise.
        blocks: the number of blocks drawn from each generator.
    """

    fetches = accepts = True

    def __init__(self, reads: State, draws: Mapping[Generator, Draw]) -> None:
        self.reads = reads
        self.blocks = [(generator, draw.blocks) for generator, draw in draws.items()]
        self.layouts = (*reads.layouts, *[None] * len(draws))
        self.names = (*reads.names, *draws)
        self.objects = reads.objects
        self.take_notes(reads)

    def fetch(self) -> tuple[np.ndarray, ...] | None:
        """Return the arrays to launch with, for which the generators have moved on, or None."""
        return self._drawing(self.reads.fetch())

    def fetch_checked(self) -> tuple[np.ndarray, ...] | None:
        """Return the arrays of fetch(), or None if the size, dtype or layout of one differs."""
        return self._drawing(self.reads.fetch_checked())

    def fetch_within(self) -> tuple[Any, ...] | None:
        """Return what fetch_checked() does for a call inside an evaluation."""
        return self._drawing(self.reads.fetch_within())

    def fetch_located(self, within: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return what fetch_checked() or fetch_within() does, and the objects that the function stores to."""
        found = self.reads.fetch_located(within)
        read = self._drawing(None if found is None else found[0])
        return None if found is None or read is None else (read, found[1])

    def _drawing(self, read: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if read is None:
            return None
        before = [generator.advance(blocks) for generator, blocks in self.blocks]
        _thread.own.pending = (self.blocks, before)
        return (*read, *before)

    def loosen(self, is_same: Callable[[], bool]) -> bool:
        """Stop comparing contents that turn out not to matter; return whether it stopped."""
        return self.reads.loosen(is_same)

    def failed(self) -> Any:
        """Return the first guard that does not hold now, or None."""
        return self.reads.failed()

    def applies(self) -> bool:
        """Return whether fetch() would give arrays, without drawing."""
        return self.reads.applies()

    def accepted(self) -> None:
        """Go on after a replay whose results are returned."""
        own = _thread.own
        own.accepted, own.pending = own.pending, None
        self.reads.accepted()

    def drawn(self) -> Mapping[Generator, np.ndarray]:
        """Return the states that this thread's last accepted replay began with."""
        accepted = _thread.own.accepted
        assert accepted is not None
        return {generator: before for (generator, _), before in zip(*accepted, strict=True)}

    def guards(self) -> list[Any]:
        """Return the guards that each call compares."""
        return self.reads.guards()


def _take_back() -> None:
    """Undo what a replay has drawn that was not accepted."""
    own = _thread.own
    pending, own.pending = own.pending, None
    if pending is not None:
        for (generator, blocks), before in zip(*pending, strict=True):
            generator.take_back(before, blocks)


def joined(reads: State, recorder: recorders.Recorder) -> State:
    """Return the captured state of a trace with the draws of its recording, whose inputs become the graph's last."""
    draws = {generator: draw for generator, draw in recorder.draws.items() if draw is not None}
    if not draws:
        return reads
    own = [draw.value for draw in draws.values()]
    recorder.graph.inputs = [value for value in recorder.graph.inputs if value not in own] + own
    return Draws(reads, draws)


def without_draws(state: State) -> tuple[State, list[tuple[Generator, int]]]:
    """Return captured state without random numbers, and the number of blocks that are drawn from each generator."""
    return (state.reads, state.blocks) if isinstance(state, Draws) else (state, [])


@contextmanager
def apart(states: Mapping[Generator, np.ndarray] | None = None) -> Iterator[None]:
    """Let this thread draw from `states`, and from copies of those of other generators, while the block runs.

    What the generators themselves give next is not changed by what is drawn inside.
    """
    own = _thread.own
    kept = own.states
    inside = {**(kept or {}), **(states or {})}
    own.states = {generator: state.copy() for generator, state in inside.items()}
    try:
        yield
    finally:
        own.states = kept
