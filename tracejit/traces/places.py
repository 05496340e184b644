# SPDX-License-Identifier: BSD-3-Clause
"""Guards of indices that nothing but their range is asked for.

``try: x[i]`` and ``except IndexError`` ask whether there is a place. A program computes only what results depend on, so
where nothing uses the element, its index is checked by a guard.
"""

import numpy as np

from tracejit.ir import Builder, Node, Value, live
from tracejit.record.guards import Decides, ValueGuard
from tracejit.record.recorder import Recorder
from tracejit.record.state import State

_BY_PLACES = frozenset({"take", "scatter_add", "put", "take_along_axis", "add_along_axis"})


def guard_places(recorder: Recorder, state: State, results: list[Value]) -> bool:
    """Guard the indices of operations that neither results nor guards depend on, if the function may handle errors.

    Returns:
        Whether it may.
    """
    if not state.handles_errors():
        return False
    nodes = recorder.graph.nodes
    places = [node for node in nodes if node.op.name in _BY_PLACES and not node.inputs[1].is_constant]
    computed = set(live(nodes, [*results, *[guard.value for guard in recorder.guards]]) if places else ())
    for node in places:
        if node not in computed:
            holds = _in_range(recorder.builder, node)
            what = "whether an index is in range"
            at = len(recorder.graph.nodes)
            recorder.guards.append(ValueGuard(holds, Decides.TRUTH, np.array(True), what, node.where, at))
    return True


def _in_range(b: Builder, node: Node) -> Value:
    x, index = node.inputs[:2]
    n = x.aval.shape[node.params["axis"]]
    b.location = node.where
    inside: Value = b.logical_and(b.greater_equal(index, -n), b.less(index, n))
    return b.all(inside, axes=tuple(range(inside.ndim)), keepdims=False) if inside.ndim else inside
