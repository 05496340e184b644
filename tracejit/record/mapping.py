# SPDX-License-Identifier: BSD-3-Clause
"""The recording of a function of one observation for all observations (functions/mapping.py).

Note [mapped functions]
The function runs once, on the first observation, within the recording that is going on. Then its nodes are appended
again for all observations, and those of the first one are removed. So nothing may depend on values of the first
observation: code that needs a value raises an error, and an array that is kept belongs to a recording that has ended
(record/ended.py).
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.errors import TraceError, WriteError
from tracejit.ir import Node, Value
from tracejit.ops.batch import drawn
from tracejit.record.memory import root_of
from tracejit.record.places import at_location, user_location
from tracejit.util.named_tuples import NamedTuple


class Demand(NamedTuple):
    """A condition that must hold for all observations, and what raises the error if it does not."""

    condition: Any
    what: str
    fail: Callable[[], None]


class _Around:
    """A stand-in for the recorder around a mapped function, for arrays that it kept."""

    closed = False
    name = "the function around dlmap"


class Mapping:
    """The recording of a mapped function: stands for the recorder of its values when it has ended.

    Args:
        name: that of the function.
        recorder: the recorder that is appended to.
        inputs: the Values of the first observation.
        count: the number of observations.

    Attributes:
        demands: conditions to check when all observations are there.
    """

    accelerating = False

    def __init__(self, name: str, recorder: Any, inputs: Sequence[Value], count: int) -> None:
        self.name = name
        self.count = count
        self.recorder = recorder
        self.inputs = set(inputs)
        self.start = len(recorder.graph.nodes)
        self.demands: list[Demand] = []
        self.closed = False
        self._before = recorder.memories.views[:]
        self._writes = len(recorder.memories.begun or ())

    @staticmethod
    def around() -> type[_Around]:
        """Return what is around the function."""
        return _Around

    def nodes(self) -> list[Node]:
        """Return the nodes that the function has recorded."""
        nodes: list[Node] = self.recorder.graph.nodes[self.start :]
        return nodes

    def different(self, nodes: Sequence[Node] | None = None) -> set[Value]:
        """Return the values that differ between observations, of nodes of the function or of all so far."""
        values = set(self.inputs)
        for node in self.nodes() if nodes is None else nodes:
            if node.op.batch is drawn or not values.isdisjoint(node.inputs):
                values.update(node.outputs)
        return values

    def check_write(self, array: Any) -> None:
        """Raise an error for a write into an array that the function did not make."""
        root = root_of(array)
        value = root._value
        if value is None:
            is_own = root._view is not None and all(root is not other for other in self._before)
        else:
            is_own = value.node is not None and value.node in self.nodes()
        if not is_own:
            raise WriteError(
                f"dlmap: {self.name} writes into an array that it did not make{at_location(user_location())}; which "
                "observation is to be in it is not defined. Write into a copy (x.copy()), and return it."
            )

    def end(self, nodes: Sequence[Node]) -> None:
        """Remove those of the function's nodes that were for the first observation."""
        different = self.different(nodes)
        stop = self.start + len(nodes)
        kept = [node for node in nodes if different.isdisjoint(node.outputs)]
        self.recorder.graph.nodes[self.start : stop] = kept
        removed = [self.start + i for i, node in enumerate(nodes) if not different.isdisjoint(node.outputs)]
        self.recorder.guards = [
            guard._replace(at=guard.at - bisect_left(removed, guard.at)) for guard in self.recorder.guards
        ]
        begun = self.recorder.memories.begun
        if begun is not None:  # a step of a loop around it: the function writes into arrays of its own only
            del begun[self._writes :]
        views = self.recorder.memories.views
        for view in views:
            if view._value in different:
                view._view = None
        views[:] = [view for view in views if view._value not in different]
        self.closed = True
        self._before = []  # the owner of Values that stay must not hold arrays that nobody else has any more
        for value in different:
            value.owner = self


def differing(recorder: Any, array: Any) -> Mapping | None:
    """Return the innermost mapped function between whose observations an array differs, or None."""
    for mapping in reversed(recorder.maps):
        if array._value in mapping.different():
            return mapping  # type: ignore[no-any-return]
    return None


def check_same(recorder: Any, array: Any, what: str) -> None:
    """Raise an error if an array, whose value is needed, differs between the observations of a mapped function."""
    mapping = differing(recorder, array)
    if mapping is not None:
        raise TraceError(
            f"dlmap: {what} needs the value of an array that differs between observations"
            f"{at_location(user_location())}; {mapping.name} is recorded once for all of them. Choose with "
            "where(condition, a, b), or call the function in a loop."
        )
