# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of a recording that are tried: where one fails, what it has noted is forgotten.

Note [what a failed attempt leaves]
A call of SciPy's can be recorded in several ways, which are tried in turn. What a way that fails has asked values for
is no guard. But objects of the user's code that it met may have changed meanwhile, in reliance on these guards. So what
can be undone is undone: a number that became a true one varies again. What cannot be undone stays, and its guards are
noted again: a selection whose elements were gathered keeps its size, and an array that became an ndarray keeps the
numbers that it was computed from. Arrays that the failed way has made itself are of no use to anybody.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.ir import Graph, Node

_Call = Callable[[], object]


class _Attempt:
    """An attempt that is open: what follows if it fails, and if it and those around it succeed.

    Args:
        start: the number of operations that were recorded before it.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.undo: list[_Call] = []
        self.repeat: list[tuple[Node | None, _Call]] = []
        self.lasting: list[tuple[Node | None, list[Node]]] = []
        self.settle: list[_Call] = []


class Attempts:
    """The attempts of a recording that are open, one within the other.

    Args:
        graph: of the recording.

    Attributes:
        is_lasting: whether what happens now cannot be undone.
        in_vain: the operations that attempts which failed have recorded.
    """

    def __init__(self, graph: Graph) -> None:
        self.is_lasting = False
        self.in_vain: set[Node] = set()
        self._graph = graph
        self._open: list[_Attempt] = []
        self._changed: Node | None = None

    def __bool__(self) -> bool:
        return bool(self._open)

    def changed(self, undo: _Call, settle: _Call | None = None) -> None:
        """Note how a change is undone if an attempt fails, and what follows if all of them succeed."""
        if self._open:
            self._open[-1].undo.append(undo)
            if settle is not None:
                self._open[-1].settle.append(settle)

    def noted(self, repeat: _Call) -> None:
        """Note how a note is made again if an attempt fails, because something that cannot be undone relies on it."""
        if self._open:
            self._open[-1].repeat.append((self._changed, repeat))

    @contextmanager
    def lasting(self, array: Any) -> Iterator[None]:
        """Mark what a block does to a traced array as something that cannot be undone: its guards are noted again."""
        around, begin = (self.is_lasting, self._changed), len(self._graph.nodes)
        self.is_lasting, self._changed = bool(self._open), getattr(array._value, "node", None)
        try:
            yield
        finally:
            if self._open:
                self._open[-1].lasting.append((self._changed, self._graph.nodes[begin:]))
            self.is_lasting, self._changed = around

    @contextmanager
    def attempt(self, forget: _Call) -> Iterator[None]:
        """Run a block; if it raises an error, call `forget`, undo what can be undone, and note the rest again."""
        attempt = _Attempt(len(self._graph.nodes))
        self._open.append(attempt)
        try:
            yield
        except BaseException:
            self._open.pop()
            forget()
            self._leave(attempt)
            raise
        self._open.pop()
        self._keep(attempt)

    def _leave(self, attempt: _Attempt) -> None:
        for undo in reversed(attempt.undo):
            undo()
        made = {*self._graph.nodes[attempt.start :]}
        attempt.lasting = [(changed, nodes) for changed, nodes in attempt.lasting if changed not in made]
        self.in_vain |= made.difference(*[nodes for _, nodes in attempt.lasting])
        attempt.repeat = [(changed, repeat) for changed, repeat in attempt.repeat if changed not in made]
        for _, repeat in attempt.repeat:
            repeat()
        self._repeat_around(attempt)

    def _keep(self, attempt: _Attempt) -> None:
        self._repeat_around(attempt)
        if self._open:
            self._open[-1].undo += attempt.undo
            self._open[-1].settle += attempt.settle
            return
        for settle in attempt.settle:
            settle()

    def _repeat_around(self, attempt: _Attempt) -> None:
        if self._open:
            self._open[-1].repeat += attempt.repeat
            self._open[-1].lasting += attempt.lasting
