# SPDX-License-Identifier: BSD-3-Clause
"""Long recorded loops run as compiled programs, because NumPy takes microseconds for each op of a step."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit import config
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.ops import Op
from tracejit.passes.graph.bodies import Body, bodies_of, set_runner
from tracejit.record.recorder import suspended
from tracejit.traces.replay import Replay, in_order
from tracejit.util.locks import new_lock

_LONG = 20_000  # ops that NumPy would run, in 50 ms; a kernel is compiled in about that time
_KEPT = 32  # programs; the second recording of a function runs the loops of the first


class _LoopPrograms:
    """The programs of loops that were recorded last, by operands and body."""

    def __init__(self) -> None:
        self._replays: OrderedDict[Any, Replay] = OrderedDict()
        self._lock = new_lock()

    def run(
        self, op: Op, arrays: Sequence[np.ndarray], params: dict[str, Any], steps: int
    ) -> Sequence[np.ndarray] | None:
        """Return the results of a loop, or None if it is short."""
        size = sum(_size(body.graph) for body in params.values() if isinstance(body, Body))
        if steps * size < _LONG or config.settings.backend == "python":
            return None
        key = (op.name, str(params), *[(array.shape, array.dtype) for array in arrays])
        with self._lock:
            replay = self._replays.pop(key, None) or Replay(
                _alone(op, arrays, params), "a loop that is recorded"
            )
            self._replays[key] = replay
            if len(self._replays) > _KEPT:
                self._replays.popitem(last=False)
        with suspended():
            return replay([in_order(array) for array in arrays])


def _size(graph: Graph) -> int:
    """Return the number of ops of a body, those of loops inside it once for each step."""
    size = len(graph.nodes)
    for node in graph.nodes:
        size += sum(node.params.get("length", 1) * _size(body.graph) for body in bodies_of(node))
    return size


def _alone(op: Op, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Graph:
    """Return a graph of one loop."""
    b = Builder(Graph())
    inputs = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    b.graph.outputs = [*b.apply(op, inputs, params)]
    return b.graph


_programs = _LoopPrograms()


def install() -> None:
    """Have long loops that are recorded run as programs."""
    set_runner(_programs.run)
