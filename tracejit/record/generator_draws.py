# SPDX-License-Identifier: BSD-3-Clause
"""Draws from generators of NumPy's and Python's that a recording notes, and that replays make again.

Note [draws of generators]
The result of ``rng.normal(size=3)`` is an input of the trace. A replay makes the same calls in the same order, before
the program runs, with the generators that the names of the recording lead to by then. So it gives the numbers that the
plain function would give. If the trace then turns out not to apply, the generators get their states back, and the next
trace, or the function itself, draws the same numbers.

To note the state of a generator takes longer than to draw a few numbers. A call path that compares all arguments before
it draws, for a program without guards, does not note it.
"""

import random
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import repeat
from typing import Any

import numpy as np

from tracejit.ir import Value
from tracejit.record.generator_states import copy_of, mark_of, restore
from tracejit.record.pools import Taken, Taking
from tracejit.record.state import State
from tracejit.util.locks import new_lock
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.threads import is_alone


class GeneratorDraw(NamedTuple):
    """A call of a method of a generator that replays make again.

    generator   of NumPy's or Python's
    name        of the method
    method      the function of the class
    args        its arguments, which nobody else has
    kwargs      those by name
    value       the input of the trace that its result is; None if the method sets the state, or the program draws
    in_program  whether the program makes the call: Note [draws in programs] in functions/numpy_api
    is_of_made  whether the program makes the generator, too
    taken       what it took out of a pool, in place of a value (Note [pools] in pools.py)
    """

    generator: Any
    name: str
    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Value | None
    in_program: bool = False
    is_of_made: bool = False
    taken: Taken | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The inputs of the trace that its result is."""
        if self.taken is not None:
            return self.taken.values
        return () if self.value is None else (self.value,)

    def __str__(self) -> str:
        pool = [] if self.taken is None else [f"a {type(self.taken.pool).__name__}"]
        parts = [
            *pool,
            *map(_shown, self.args),
            *[f"{name}={_shown(value)}" for name, value in self.kwargs.items()],
        ]
        return f"{self.name}({', '.join(parts)})"


def _shown(value: Any) -> str:
    return f"{value!r} {value.dtype}" if isinstance(value, np.ndarray) else repr(value)


def drawn_array(generator: Any, method: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, np.ndarray]:
    """Return the result of a draw, and the array of it whose elements lie one after the other."""
    result = method(generator, *args, **kwargs)
    array = np.asarray(result)
    return result, array if array.flags.c_contiguous else array.copy()


_lock = new_lock()
_alone = nullcontext()


def undisturbed() -> AbstractContextManager[Any]:
    """Return the context in which no other thread draws by way of tracejit."""
    return _alone if is_alone() else _lock


class RepeatedDraw(NamedTuple):
    """A call of a method of a generator that a replay makes.

    number     of the generator
    method     the function of the class
    args       its arguments; the place of a pool among what the trace finds, if it draws out of one
    kwargs     those by name
    is_input   whether the result is an input
    taking     the draw out of a pool
    """

    number: int
    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_input: bool
    taking: Taking | None = None


def _repeated(draw: GeneratorDraw, number: int, places: Mapping[int, int]) -> RepeatedDraw:
    """Return a draw as replays make it, given the places of pools by their ids."""
    taken = draw.taken
    args, taking = (draw.args, None) if taken is None else ((places[id(taken.pool)],), taken.taking)
    return RepeatedDraw(number, draw.method, args, draw.kwargs, bool(draw.values), taking)


class _LatestDraws(threading.local):
    """The draws of a thread's last replay: generators, and the states before and after, None where it was not noted.

    Attributes:
        pending: until the replay is accepted, or not.
        accepted: afterwards.
        generators: of the trace, in the order of their first draws.
    """

    pending: Sequence[tuple[Any, Any, Any]] | None = None
    accepted: Sequence[tuple[Any, Any, Any]] | None = None
    generators: Any = ()


_thread = _LatestDraws()


class GeneratorDraws(State):
    """The captured state of a trace that draws from generators: what they give are its last inputs.

    Args:
        reads: the state that it captured otherwise.
        draws: in their order.
        found: the generators of draws, and the pools, that replays find again, behind the objects that they store to.
        fixed: those that are always the same.
        written: the places among the arrays of `reads` of those that the trace writes.

    Attributes:
        reads: that other state.
        calls: the draws that are made before the program runs.
        are_first: whether these are all draws, and none depends on anything but the state of its generator.
    """

    fetches = accepts = True

    def __init__(
        self, reads: State, draws: Sequence[GeneratorDraw], found: Sequence[Any], fixed: Sequence[Any],
        written: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.reads = reads
        self._written = tuple(written)
        self._missed: set[int] = set()  # ids of threads
        self._fixed = tuple(fixed)
        self._made = (None,) * len(made_of(draws))  # by the program, which puts them in these places
        self._stored = len(reads.objects) - len(found)
        self._is_in_program = any(draw.in_program for draw in draws)
        # In the order of their first draws: the places of the generators among those that are found and the others.
        made = made_of(draws)
        places = {id(one): place for place, one in enumerate((*found, *fixed, *made))}
        numbers = {id(generator): number for number, generator in enumerate(in_order(draws))}
        self._order = [places[ident] for ident in numbers]
        self.calls = [_repeated(d, numbers[id(d.generator)], places) for d in draws if not d.in_program]
        self._takes = any(draw.taken is not None for draw in draws)
        self.are_first = not (self._takes or self._is_in_program)
        self.drawn_numbers = sum(value.aval.size for draw in draws for value in draw.values)
        self.generator_draws = tuple(map(str, draws))
        inputs = [str(draw) for draw in draws for _ in draw.values]
        self.layouts = (*reads.layouts, *[None] * len(inputs))
        self.names = (*reads.names, *inputs)
        self.objects = reads.objects[: self._stored]
        self.take_notes(reads)
        self.inlined = self._with_draws(reads.inlined_with_sizes, self._draw)
        for_good = self._draw_or_none if self._takes else self._draw_for_good
        self.inlined_for_good = self._with_draws(reads.inlined_with_sizes, for_good)

    def _with_draws(
        self, inlined: Any, draw: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any] | None]
    ) -> Any:
        if inlined is None:
            return None
        lines, names, arrays = inlined
        found = "".join(f"{variable}, " for variable in self.reads.objects[self._stored :])
        written = "".join(f"{arrays[place]}, " for place in self._written) if self._takes else ""
        lines = [*lines, f"drawn = draw(({found}), ({written}))"]
        lines += ["if drawn is None: return MISS"] if self._takes else []
        return lines, {**names, "draw": draw}, [*arrays, "*drawn"]

    def _draw_for_good(self, found: Sequence[Any], written: Sequence[Any]) -> list[np.ndarray] | None:
        """Return the draws of a replay that applies; None if what a pool gives does not fit.

        Args:
            found: what the replay finds.
            written: arrays that the trace writes.
        """
        places = (*found, *self._fixed, *self._made)
        generators = _thread.generators = self.generators_of(found)
        arrays: list[np.ndarray] = []
        for number, method, args, kwargs, is_input, taking in self.calls:
            if taking is not None:
                columns = taking.columns(method, generators[number], places[args[0]], kwargs, written)
                if columns is None:
                    return None
                arrays += columns
            elif is_input:
                arrays.append(drawn_array(generators[number], method, args, kwargs)[1])
            else:
                method(generators[number], *args, **kwargs)
        return arrays

    def generators_of(self, found: Sequence[Any]) -> list[Any]:
        """Return the generators in the order of their first draws, given what a replay finds."""
        places = (*found, *self._fixed, *self._made)
        return [places[place] for place in self._order]

    def _draw_or_none(self, found: Sequence[Any], written: Sequence[Any]) -> list[np.ndarray] | None:
        """Return the draws of a replay that applies unless what a pool gives does not fit."""
        with undisturbed():
            return self._drawn(found, written)[0]

    def _draw(self, found: Sequence[Any], written: Sequence[Any]) -> list[np.ndarray] | None:
        """Return the draws of a replay that may turn out not to apply."""
        # If another thread draws, too, before the replay is dropped, the states must not come back. What the program
        # draws later cannot be told from that.
        if is_alone() or self._is_in_program:
            drawn, before = self._drawn(found, written)
            after: Iterable[Any] = repeat(None)
        else:
            with _lock:
                drawn, before = self._drawn(found, written)
                after = [mark_of(generator) for generator, _ in before]
        if drawn is not None:
            note_pending([(*one, state) for one, state in zip(before, after, strict=False)])
        return drawn

    def _drawn(
        self, found: Sequence[Any], written: Sequence[Any]
    ) -> tuple[list[np.ndarray] | None, list[tuple[Any, Any]]]:
        """Return the draws of a replay, or None, and the generators with the states that they had before."""
        existing = (*found, *self._fixed)
        before = [
            (existing[place], copy_of(existing[place])) for place in self._order if place < len(existing)
        ]
        drawn = self._draw_for_good(found, written)
        if drawn is None:
            for generator, state in before:
                restore(generator, state)
            self._missed.add(threading.get_ident())
        elif self._takes:
            self._missed.discard(threading.get_ident())
        return drawn, before

    def _drawing(self, located: tuple[tuple[Any, ...], tuple[Any, ...]] | None) -> Any:
        if located is None:
            return None
        read, objects = located
        drawn = self._draw(objects[self._stored :], [read[place] for place in self._written])
        return None if drawn is None else ((*read, *drawn), objects[: self._stored])

    def fetch(self) -> tuple[Any, ...] | None:
        """Return the arrays to launch with, the last of which are drawn, or None."""
        return self.fetch_checked()

    def fetch_checked(self) -> tuple[Any, ...] | None:
        """Return the arrays of fetch(), or None if the size, dtype or layout of one differs."""
        found = self.fetch_located()
        return None if found is None else found[0]

    def fetch_within(self) -> tuple[Any, ...] | None:
        """Return what fetch_checked() does for a call inside an evaluation."""
        found = self.fetch_located(within=True)
        return None if found is None else found[0]

    def fetch_located(self, within: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        """Return what fetch_checked() or fetch_within() does, and the objects that the function stores to."""
        return self._drawing(self.reads.fetch_located(within))  # type: ignore[no-any-return]

    @property
    def has_missed(self) -> bool:
        """True if this thread's last replay did not apply because of elements that it drew."""
        return threading.get_ident() in self._missed

    def rejected(self) -> None:
        """Give the generators their states back, because the trace does not apply."""
        pending, _thread.pending = _thread.pending, None
        with undisturbed():
            restored(pending or ())
        self.reads.rejected()

    def accepted(self) -> None:
        """Go on after a replay whose results are returned."""
        _thread.accepted, _thread.pending = _thread.pending, None
        self.reads.accepted()

    def loosen(self, is_same: Callable[[], bool]) -> bool:
        """Stop comparing contents that turn out not to matter; return whether it stopped."""
        return self.reads.loosen(is_same)

    def failed(self) -> Any:
        """Return the first guard that does not hold now, or None."""
        return self.reads.failed()

    def applies(self) -> bool:
        """Return whether fetch() would give arrays, without drawing."""
        return self.reads.applies()

    def drawn(self) -> Mapping[Any, np.ndarray]:
        """Return the states of tracejit's generators that this thread's last accepted replay began with."""
        return self.reads.drawn()

    @contextmanager
    def drawing_again(self) -> Iterator[None]:
        """Have the generators give once more what the last accepted replay has drawn, while the block runs."""
        states = _thread.accepted or ()
        now = [(generator, copy_of(generator)) for generator, _, _ in states]
        for generator, state, _ in states:
            restore(generator, state)
        try:
            with self.reads.drawing_again():
                yield
        finally:
            for generator, state in now:
                restore(generator, state)

    def guards(self) -> list[Any]:
        """Return the guards that each call compares."""
        return self.reads.guards()


def joined(
    reads: State, draws: Sequence[GeneratorDraw], found: Sequence[Any], graph: Any, arguments: int = 0,
    written: Collection[Value] = (),
) -> State:  # fmt: skip
    """Return the captured state of a trace with its draws, whose results become the graph's last inputs.

    Args:
        reads: the state that it captured otherwise, which has ended.
        draws: of the recording.
        found: the generators of draws, and the pools, that replays find, behind the other objects of `reads`.
        graph: of the trace.
        arguments: how many of its inputs are arguments of the function.
        written: the inputs that the trace writes.
    """
    if not draws:
        return reads
    own = [value for draw in draws for value in draw.values]
    others = [value for value in graph.inputs if value not in own]
    graph.inputs = others + own
    places = [place for place, value in enumerate(others[arguments:]) if value in written]
    located = [*found, *made_of(draws)]
    fixed = [generator for generator in in_order(draws) if all(generator is not other for other in located)]
    return GeneratorDraws(reads, draws, found, fixed, places)


def restored(noted: Iterable[tuple[Any, Any, Any]]) -> list[Any]:
    """Give generators the states from before, unless another thread has drawn from them; return those that have theirs.

    Args:
        noted: generators, the states before and after, None where no other thread could draw.
    """
    alone = [one for one in noted if one[2] is None or mark_of(one[0]) == one[2]]
    for generator, state, _ in alone:
        restore(generator, state)
    return [generator for generator, _, _ in alone]


def note_pending(drawn: Sequence[tuple[Any, Any, Any]]) -> None:
    """Note the generators that a replay of this thread has drawn from, with the states before and after."""
    _thread.pending = drawn


def found_generator(number: int) -> Any:
    """Return a generator that the last fetch of this thread has found, by its number among those of the trace."""
    return _thread.generators[number]


def put_generator(number: int, generator: Any) -> None:
    """Put a generator that a program has made in its place among those of the trace."""
    _thread.generators[number] = generator


def made_of(draws: Sequence[GeneratorDraw]) -> list[Any]:
    """Return the generators of draws that the program makes."""
    return in_order([draw for draw in draws if draw.is_of_made])


def in_order(draws: Sequence[GeneratorDraw]) -> list[Any]:
    """Return the generators of draws, in the order of the first draws from each."""
    return [*{id(draw.generator): draw.generator for draw in draws}.values()]


def found_by(draws: Sequence[GeneratorDraw]) -> list[Any]:
    """Return what a replay has to find: pools, and generators other than those behind np.random and random."""
    module = sys.modules.get("numpy.random")
    fixed = [module and module.mtrand._rand, getattr(random, "_inst", None), *made_of(draws)]
    pools = {id(draw.taken.pool): draw.taken.pool for draw in draws if draw.taken is not None}
    found = [generator for generator in in_order(draws) if all(generator is not other for other in fixed)]
    return [*found, *pools.values()]
