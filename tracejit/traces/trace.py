# SPDX-License-Identifier: BSD-3-Clause
"""A trace: the graph of one recording of a function, its replays, and the structure of its result."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.call import tables
from tracejit.call.path import MISS, generate
from tracejit.call.recycle import MOST_BYTES, Recycler
from tracejit.call.signature import Key, layouts
from tracejit.ir import Graph
from tracejit.ops import Op
from tracejit.record import recorder
from tracejit.record.guards import Guard, GuardFailed
from tracejit.record.state import NOTHING, State
from tracejit.traces.replay import Listener, Replay, call_op
from tracejit.util.locks import new_lock


class Replayable:
    """The part of a trace that replays need: checks of the arguments, and the structure of the result.

    Args:
        results: for each leaf of the result an ArrayLeaf (the next output of the program), or the constant itself.
        treedef: of the result.
        key: of the call.
        state: the values that are read besides the arguments.
        guard: the number of the output that says whether the others count, if there is one.
    """

    replay: Any  # runs the program: a Replay, or something like it

    def __init__(
        self, results: list[Any], treedef: tree.TreeDef, key: Key, state: State, guard: int | None
    ) -> None:
        self.results = results
        self.treedef = treedef
        self.key = key
        self.state = state
        self._guard = guard
        self._path: Callable[[Any], Any] | None = None

    def assemble(self, arrays: list[Any]) -> Any:
        """Return the function's result, given the arrays among its leaves."""
        outputs = iter(arrays)
        leaves = [
            next(outputs) if type(leaf) is ArrayLeaf
            else leaf.kind(next(outputs)._data.item()) if type(leaf) is NumberLeaf
            else leaf.copy() if isinstance(leaf, np.ndarray) else leaf
            for leaf in self.results
        ]  # fmt: skip
        return tree.unflatten(self.treedef, leaves)

    @property
    def formats(self) -> list[str | None]:
        """The formats of the arrays of the result, of which some stand for numbers."""
        return [leaf.format for leaf in self.results if type(leaf) in (ArrayLeaf, NumberLeaf)]

    def run(self, arrays: list[dlarray]) -> Any:
        """Return the result of a replay, or MISS if the trace does not apply: a guard does not hold."""
        read = self.state.fetch_checked()
        if read is None:
            return MISS
        try:
            outputs = self.replay([*[a._data for a in arrays], *read])
        except GuardFailed:
            return MISS
        self.state.accepted()
        formats = self.formats
        arrays = [
            dlarray._wrap(data, format, None)
            for data, format in zip(outputs[: len(formats)], formats, strict=True)
        ]
        return self.assemble(arrays)

    def call_path(self) -> Callable[[Any], Any] | None:
        """Return the generated call path, or None where there can be none."""
        if self._path is None:
            launch = self.replay.launch
            if launch is not None:
                self._path = self._generate(launch)
        return self._path

    def _generate(self, launch: Any) -> Callable[[Any], Any] | None:
        formats = self.formats
        outputs = list(zip(self.replay.program.outputs[: len(formats)], formats, strict=True))
        guarded = self._guard is not None
        recycler = pattern = recipe = None
        if sum(aval.size * aval.dtype.itemsize for aval, _ in outputs) <= MOST_BYTES:
            pattern = tables.pattern(self.key)
            recipe = tables.recipe(self.results, self.treedef, _kind_of_output, dlarray)
            entry = self.replay.entry(formats, guarded, pattern, recipe)
            recycler = None if entry is None else Recycler(outputs, guarded, entry)
        return generate(
            self.key, outputs, self.results, self.treedef, _kind_of_output, launch,
            self.state, guarded, recycler, pattern, recipe,
        )  # fmt: skip


class Trace(Replayable):
    """One recording: its graph, and the structure of its result.

    Args:
        graph: what was recorded; if there are guards, its last output says whether all of them hold.
        results: for each leaf of the result an ArrayLeaf (the next output of the graph), or the constant itself.
        treedef: of the result.
        title: heads emitted modules: the name of the function.
        key: of the call.
        guards: the decisions that values of arrays made.
        state: the values that were read besides the arguments.
        refusal: why this cannot be replayed, or None.
        length: nodes of the graph that were recorded; the rest computes the guards.
    """

    def __init__(
        self, graph: Graph, results: list[Any], treedef: tree.TreeDef, title: str, key: Key,
        guards: Sequence[Guard] = (), state: State = NOTHING, refusal: recorder.Refusal | None = None,
        length: int | None = None,
    ) -> None:  # fmt: skip
        # An array that the function put into an argument and did not return.
        self.lost_change: tuple[int, tree.TreeDef] | None = None
        super().__init__(results, treedef, key, state, len(graph.outputs) - 1 if guards else None)
        self.graph = graph
        self.guards = guards
        self.refusal = refusal
        self.length = len(graph.nodes) if length is None else length
        self.agreed = 0  # number of later recordings that agreed with this one
        self.replayed = False
        self._title = title
        self.replay: Replay = Replay(graph, title, [*layouts(key), *state.layouts], guard=self._guard)
        self._op: tuple[Op, list[Replay]] | None = None
        self._lock = new_lock()

    def listen(self, listener: Listener) -> None:
        """Have `listener` told of the programs that this trace is run by."""
        self.replay.listener = listener

    def run_within(self, arrays: list[dlarray]) -> Any:
        """Return the result as run() does, computed by one op of the evaluation around the call."""
        read = self.state.fetch_within()
        if read is None:
            return MISS
        with self._lock:
            if self._op is None:
                formats = [*self.formats, *([] if self._guard is None else [None])]
                self._op = call_op(self._title, self.graph, formats, self._guard)
                for replay in self._op[1]:
                    replay.listener = self.replay.listener
        try:
            outputs = recorder.apply_op(
                self._op[0], [*arrays, *[x if type(x) is dlarray else recorder.wrap(x) for x in read]], {}
            )
        except GuardFailed:
            return MISS
        self.state.accepted()
        return self.assemble(list(outputs[: len(self.formats)]))

    def replays(self) -> list[Replay]:
        """Return the programs that this trace has been run by, or its own if it has not been run yet."""
        if self._op is None:
            return [self.replay]
        return [*self._op[1], *([self.replay] if self.replay.is_built else [])]


def _kind_of_output(leaf: Any) -> type | None:
    """Return what an output of the program becomes among the leaves of a result, or None for a constant."""
    return dlarray if type(leaf) is ArrayLeaf else leaf.kind if type(leaf) is NumberLeaf else None


class ArrayLeaf(NamedTuple):
    """Stands for an array among the leaves of a result."""

    format: str | None


class NumberLeaf(NamedTuple):
    """Stands for a number that is computed, among the leaves of a result."""

    kind: type
    format: str | None = None
