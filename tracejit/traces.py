# SPDX-License-Identifier: BSD-3-Clause
"""A trace: what one recording of a function gave, and how its result is put together from a replay."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import dlarray
from tracejit.callpath import MISS, generate
from tracejit.ir import Graph
from tracejit.ops import Op
from tracejit.replay import Replay, call_op
from tracejit.signature import Key, layouts
from tracejit.state import NOTHING, State


class Trace:
    """One recording: its graph, and how outputs are put together again."""

    def __init__(
        self, graph: Graph, results: list[Any], treedef: tree.TreeDef, title: str, key: Key,
        state: State = NOTHING,
    ) -> None:  # fmt: skip
        self.graph = graph
        # For each leaf of the result: the format of an array (the next output of the graph), or the constant itself.
        self.results = results
        self.treedef = treedef
        self.title = title
        self.key = key
        self.state = state
        self.replay = Replay(graph, title, [*layouts(key), *state.layouts])
        self.used = 0  # the call that used it last
        self._op: tuple[Op, list[Replay]] | None = None
        self._lock = threading.Lock()

    def assemble(self, arrays: list[Any]) -> Any:
        """Return the function's result, given the arrays among its leaves."""
        each = iter(arrays)
        leaves = [
            next(each) if type(leaf) is ArrayLeaf else leaf.copy() if isinstance(leaf, np.ndarray) else leaf
            for leaf in self.results
        ]
        return tree.unflatten(self.treedef, leaves)

    @property
    def formats(self) -> list[str | None]:
        """The formats of the arrays of the result."""
        return [leaf.format for leaf in self.results if type(leaf) is ArrayLeaf]

    def run(self, arrays: list[dlarray]) -> Any:
        """Return the result of a replay, or MISS if what the trace reads besides the arguments has changed."""
        read = self.state.fetch()
        if read is None:
            return MISS
        outputs = self.replay([*[a._data for a in arrays], *read])
        self.state.accepted()
        wrap = dlarray._wrap
        made = [wrap(data, format, None) for data, format in zip(outputs, self.formats, strict=True)]
        return self.assemble(made)

    def call_path(self) -> Callable[[Any], Any] | None:
        """Return the generated call path, or None where there can be none."""
        launch = self.replay.launch
        if launch is None:
            return None
        outputs = list(zip(self.replay.program.outputs, self.formats, strict=True))
        return generate(
            self.key,
            outputs,
            self.results,
            self.treedef,
            lambda leaf: type(leaf) is ArrayLeaf,
            launch,
            self.state,
        )

    def op(self) -> Op:
        """Return the trace as one op for an outer evaluation."""
        with self._lock:
            if self._op is None:
                self._op = call_op(self.title, self.graph, self.formats)
        return self._op[0]

    def replays(self) -> list[Replay]:
        """Return the programs that this trace has been run by, or its own if it has not been run yet."""
        if self._op is None:
            return [self.replay]
        return [*self._op[1], *([self.replay] if self.replay.is_built else [])]


class ArrayLeaf:
    """Stands for an array among the leaves of a result."""

    __slots__ = ("format",)

    def __init__(self, format: str | None) -> None:
        self.format = format
