# SPDX-License-Identifier: BSD-3-Clause
"""Draws of traces that take turns: a call makes each draw once, however many of the traces it tries.

Note [shared draws]
Where a drawn number decides what a step does, all of its traces begin with that draw. A trace that does not apply by
itself gives the generators their states back, and the next one draws the same number again. So a call path of several
traces notes the states before its first draw, and keeps what it draws. The next trace takes what it would draw in the
same way, from the first draw on, and goes on from there. Where it draws something else, the states are restored, and
the draws before that are made again.

Traces that draw less are tried first, so that most others only have to go on.
"""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.record.generator_draws import (
    GeneratorDraws,
    RepeatedDraw,
    drawn_array,
    note_pending,
    restored,
    undisturbed,
)
from tracejit.record.generator_states import copy_of, mark_of
from tracejit.util.threads import is_alone

Before = list[tuple[Any, Any, Any]]
"""Generators, the states that they had before a call drew, and those after, None where another thread cannot draw."""

Made = list[tuple[int, Any, RepeatedDraw, np.ndarray]]
"""Draws of a call: a number that equal draws of all traces have, the generator, the draw, and what it gave."""


class SharedDraws:
    """The draws of several traces."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, state: GeneratorDraws) -> Callable[[Before, Made, Sequence[Any]], list[np.ndarray]]:
        """Return the function that gives the draws of one trace.

        It takes what the call has noted and drawn, to which it adds, and what the trace has found.
        """
        calls = [(self._numbers.setdefault(_content(call), len(self._numbers)), call) for call in state.calls]

        def draw(before: Before, made: Made, found: Sequence[Any]) -> list[np.ndarray]:
            generators = state.generators_of(found)
            with undisturbed():
                for generator in generators:
                    if all(generator is not noted for noted, _, _ in before):
                        before.append((generator, copy_of(generator), None))
                known = 0
                for (number, generator, _, _), (wanted, call) in zip(made, calls, strict=False):
                    if number != wanted or generator is not generators[call.number]:
                        break
                    known += 1
                if known < len(made):
                    _cut(before, made, known)
                for number, call in calls[known:]:
                    generator = generators[call.number]
                    array = drawn_array(generator, call.method, call.args, call.kwargs)[1]
                    made.append((number, generator, call, array))
                if not is_alone():
                    before[:] = [(generator, state, mark_of(generator)) for generator, state, _ in before]
            note_pending(before)
            return [array for _, _, call, array in made if call.is_input]

        return draw


def undo(before: Before) -> None:
    """Give generators the states that they had before a call drew, unless another thread has drawn from them since."""
    with undisturbed():
        restored(before)


def _cut(before: Before, made: Made, length: int) -> None:
    """Undo all draws but the first `length`."""
    again = restored(before)
    del made[length:]
    for _, generator, call, _ in made:
        if any(generator is one for one in again):
            call.method(generator, *call.args, **call.kwargs)


def _content(call: RepeatedDraw) -> Any:
    """Return what two draws have in common that give the same from the same state."""
    try:
        return call.method, pickle.dumps((call.args, call.kwargs))
    except Exception:  # an argument that cannot be pickled, such as a local function
        return id(call)
