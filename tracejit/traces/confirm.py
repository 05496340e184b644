# SPDX-License-Identifier: BSD-3-Clause
"""Whether two recordings of a function for one key are the same, and if not, what differs.

They are compared in the order of execution. Where a guard of both has another outcome they part for a good reason:
they are variants of each other. Where anything else differs, the function depends on something that no trace
sees: random numbers, the time, a counter, a file.
"""

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.capture.guards import UNNAMED
from tracejit.ir import Node, Value, Where
from tracejit.record.guards import Guard, same
from tracejit.traces.trace import ArrayLeaf, NumberLeaf, Trace
from tracejit.util.text import shown


class Verdict(Enum):
    """How two recordings relate."""

    SAME = "same"
    VARIANT = "variant"


class Difference(NamedTuple):
    """The first thing that differs, and the user's line that it comes from."""

    what: str
    where: Where
    cause: str


class Parting(NamedTuple):
    """The guard at which two recordings part, as the second one has it."""

    guard: Guard


_KEPT = "it is kept where no name leads to it, or is a view of an array that is"
_CODE = "a random choice, a counter, or something that the function reads and changes"


def compare(first: Trace, second: Trace) -> Verdict | Parting | Difference:
    """Return how the second recording relates to the first: SAME, the Parting of two variants, or a Difference."""
    return _Comparison(first, second).run()


class _Comparison:
    def __init__(self, first: Trace, second: Trace) -> None:
        self.first = first
        self.second = second
        # By name: on another way through the function, others are read between two that both read.
        theirs = _named(second)
        self.partner: dict[Value, Value] = {
            value: theirs[name] for name, value in _named(first).items() if name in theirs
        }

    def run(self) -> Verdict | Parting | Difference:
        mine, theirs = self.first, self.second
        guards = [list(mine.guards), list(theirs.guards)]
        guarded = {guard.at for guard in (*mine.guards, *theirs.guards)}
        for at in range(max(mine.length, theirs.length) + 1):
            while at in guarded and any(left and left[0].at == at for left in guards):
                a, b = (left[0] if left and left[0].at == at else None for left in guards)
                if a is None or b is None or a.decides is not b.decides or not self.alike(a.value, b.value):
                    found = b or a
                    assert found is not None
                    return Difference(f"{found.what} took a value in one of them only", found.where, _CODE)
                if not same(a.outcome, b.outcome):
                    return Parting(b)
                for left in guards:
                    del left[0]
            if at < max(mine.length, theirs.length):
                difference = self.nodes(at)
                if difference is not None:
                    return difference
        if len(mine.graph.inputs) != len(theirs.graph.inputs):
            return Difference("the arrays that it read are others", None, _CODE)
        return self.results() or Verdict.SAME

    def nodes(self, at: int) -> Difference | None:
        a = self.first.graph.nodes[at] if at < self.first.length else None
        b = self.second.graph.nodes[at] if at < self.second.length else None
        if a is None or b is None:
            found = b or a
            assert found is not None
            return Difference(f"{found.op.name} was recorded in one of them only", found.where, _CODE)
        if a.op is not b.op or len(a.inputs) != len(b.inputs):
            return Difference(f"operation {at + 1} was {a.op.name}, is {b.op.name}", b.where, _CODE)
        if a.params and str(a.params) != str(b.params):
            return Difference(f"{b.op.name} was called with {a.params}, is with {b.params}", b.where, _CODE)
        partner = self.partner
        for x, y in zip(a.inputs, b.inputs, strict=True):
            if partner.get(x) is not y and not self.alike(x, y):
                return self.operand(x, y, b)
        partner.update(zip(a.outputs, b.outputs, strict=True))
        return None

    def alike(self, x: Value, y: Value) -> bool:
        """Return whether two values are the same: the same input or result, or equal constants."""
        known = self.partner.get(x)
        if known is not None:
            return known is y
        if x.data is None or y.data is None or x.node is not None or y.node is not None:
            return False
        equal = same(x.data, y.data)
        if equal:
            self.partner[x] = y
        return equal

    def operand(self, x: Value, y: Value, node: Node) -> Difference:
        if x.data is None or y.data is None:
            if _is_unnamed(self.first, x) and _is_unnamed(self.second, y):
                what = "an array that is made or found in each call"
                return Difference(f"an operand of {node.op.name}, {what}, is another", node.where, _KEPT)
            return Difference(f"an operand of {node.op.name} is another", node.where, _CODE)
        if x.data.shape != y.data.shape or x.data.dtype != y.data.dtype:
            what = f"a constant of {node.op.name} was {x.aval}, is {y.aval}"
            return Difference(what, node.where, "data of another size that the function makes or reads")
        before, after, more = _first(x.data, y.data)
        what = f"a constant of {node.op.name} was {before}, is {after}{more}"
        if x.data.ndim:
            what += ": an array that is made in each call has other contents each time"
        return Difference(what, node.where, _cause(x.data, y.data))

    def results(self) -> Difference | None:
        mine, theirs = self.first, self.second
        found = tree.difference(mine.treedef, theirs.treedef, "the result")
        if found is not None or mine.treedef.orders != theirs.treedef.orders:
            return Difference(found or "the keys of a dict of the result have another order", None, _CODE)
        arrays = zip(mine.graph.outputs, theirs.graph.outputs, strict=False)  # which guards follow
        names = tree.paths(mine.treedef, "the result")
        for name, a, b in zip(names, mine.results, theirs.results, strict=True):
            if type(a) in (ArrayLeaf, NumberLeaf) and type(a) is type(b):
                x, y = next(arrays)
                if a != b or not self.alike(x, y):
                    if x.data is not None and y.data is not None and x.data.shape == y.data.shape:
                        before, after, more = _first(x.data, y.data)
                        cause = _cause(x.data, y.data)
                        return Difference(f"{name}, a constant, was {before}, is {after}{more}", None, cause)
                    return Difference(f"{name} is another array", None, _CODE)
            elif not _equal(a, b):
                compares: Any = type(a).__eq__
                new = type(a) is type(b) and compares is object.__eq__
                cause = "an object that is made anew in each call" if new else _cause(a, b)
                return Difference(f"{name} was {shown(a):.80}, is {shown(b):.80}", None, cause)
        return None


def _named(made: Trace) -> dict[Any, Value]:
    """Return the inputs of a trace: arguments by number, what it reads by name, of one name by their order."""
    inputs, names = made.graph.inputs, made.state.names
    read = [(name, names[:at].count(name)) for at, name in enumerate(names)]
    return dict(zip([*range(len(inputs) - len(names)), *read], inputs, strict=True))


def _is_unnamed(made: Trace, value: Value) -> bool:
    """Return whether an array is an input of a trace by reference, without a name."""
    names = made.state.names
    read = made.graph.inputs[len(made.graph.inputs) - len(names) :]
    return any(value is one and name.endswith(UNNAMED) for one, name in zip(read, names, strict=True))


def _first(x: np.ndarray, y: np.ndarray) -> tuple[str, str, str]:
    """Return the first elements that differ, and how many do."""
    if not x.ndim:
        return str(x), str(y), ""
    differ = np.flatnonzero(~((x == y) | ((x != x) & (y != y))))  # noqa: PLR0124 (NaN)
    at = int(differ[0]) if differ.size else 0
    return str(x.flat[at]), str(y.flat[at]), f" ({max(1, differ.size)} of {x.size} elements differ)"


def _cause(x: Any, y: Any) -> str:
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind not in "iuf" or y.dtype.kind not in "iuf":
        return _CODE
    if x.ndim == 0 and x == np.trunc(x) and abs(float(y) - float(x)) == 1:
        return "a counter"
    if x.ndim == 0 and float(x) < float(y) and float(y) > 1e6:
        return "the time"
    return "random numbers that NumPy or Python drew, the time, or a file"


def _equal(a: Any, b: Any) -> bool:
    """Return whether two leaves that are no arrays of the trace are equal, NaN to NaN, -0.0 not to 0.0."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(same(a, b) if a.dtype.kind in "fiub" else np.array_equal(a, b))
    if isinstance(a, (float, complex, np.inexact)):
        return repr(a) == repr(b)
    try:
        return bool(a == b)
    except Exception:
        return False
