# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of two recordings of a function for one key.

They are compared in the order of execution. If a guard that both have has different outcomes, they diverge for a good
reason: they are variants of each other. If anything else differs, the function depends on something that no trace sees:
random numbers, the time, a counter, a file.
"""

from bisect import bisect_right
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.call.result import is_output
from tracejit.capture.guards import UNNAMED
from tracejit.ir import Node, Value, Where, live
from tracejit.record.guards import ValueGuard, same
from tracejit.traces.stores import NO_STORES
from tracejit.traces.trace import Trace
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import shown
from tracejit.util.uninterrupted import is_of_handler


class Difference(NamedTuple):
    """The first thing that differs.

    what        it, in words
    where       the user's line that it comes from
    cause       the likely cause
    remedy      what to do, None if what changes has to be passed as an argument
    """

    what: str
    where: Where
    cause: str
    remedy: str | None = None


class Divergence(NamedTuple):
    """The guard at which two recordings diverge, as the second one has it."""

    guard: ValueGuard


_Numbered = tuple[int, Node]

_KEPT = "it is kept where no name leads to it, or is a view of an array that is"
_CODE = "a random choice, a counter, or something that the function reads and changes"
_BY_VALUES = "values decide its dtype or its size"
OF_ONE_DTYPE = (
    "Let its dtype and its size be the same for all values (with complex operands, results are complex), or call it "
    "outside"
)
_OF_PARTS = "Return its arrays and numbers, in a tuple, a list or a dict"


def compare(first: Trace, second: Trace) -> Divergence | Difference | None:
    """Return how the second recording departs from the first, or None if they agree."""
    return _Comparison(first, second).run()


class _Operations:
    """The operations of a recording that are compared, with their numbers.

    Where SciPy's code was recorded in vain, and then called as a whole (`Recorder.attempt`), its operations are left
    over, without use, and values that are no guards any more may have decided which these are: they are left out. So
    no others are, because what one of two recordings does not use may be what the other one does after a guard.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        graph = trace.graph
        unused = trace.in_vain
        if unused:
            results = [*graph.outputs, *[guard.value for guard in trace.guards]]
            unused = unused - {*live(graph.nodes, results)}
        numbered = enumerate(graph.nodes[: trace.length], 1)
        self.nodes: list[_Numbered] = [(number, node) for number, node in numbered if node not in unused]

    def node(self, at: int) -> _Numbered | None:
        return self.nodes[at] if at < len(self.nodes) else None

    def guards(self) -> list[tuple[int, ValueGuard]]:
        """Return the guards, each with how many of these operations come before it."""
        numbers = [number for number, _ in self.nodes]
        return [(bisect_right(numbers, guard.at), guard) for guard in self._trace.guards]


class _Comparison:
    def __init__(self, first: Trace, second: Trace) -> None:
        self.first = first
        self.second = second
        # Inputs are matched by name: between two that both recordings read, one of them may have read others.
        inputs = _named(second)
        self.partner: dict[Value, Value] = {
            value: inputs[name] for name, value in _named(first).items() if name in inputs
        }
        self.used: set[Node] | None = None
        self.merged = self._merge()

    def _merge(self) -> int:
        """Match the arrays that the second recording found under another name too; return their number.

        Where two names lead to one array, it is an input of one name. A trace of two inputs gets it twice then, so that
        it holds for that call, too.
        """
        alone = [value for value in _read(self.first) if value not in self.partner]
        before, now = self.first.state, self.second.state
        if not alone or before.changed or before.unguarded or now.changed or now.unguarded:
            return 0
        of_first, of_second = before.looked_at(within=True), now.looked_at(within=True)
        if of_first is None or of_second is None:
            return 0
        named = {*self.partner.values()}
        second = zip(of_second, _read(self.second), strict=True)
        found = {_memory(array): value for array, value in second if value in named}
        for array, value in zip(of_first, _read(self.first), strict=True):
            if value not in self.partner and _memory(array) in found:
                self.partner[value] = found[_memory(array)]
        return sum(value in self.partner for value in alone)

    def run(self) -> Divergence | Difference | None:
        first, second = self.first, self.second
        of_first, of_second = _Operations(first), _Operations(second)
        pending = [of_first.guards(), of_second.guards()]
        guarded = {at for guards in pending for at, _ in guards}
        last = max(len(of_first.nodes), len(of_second.nodes))
        for at in range(last + 1):
            while at in guarded and any(guards and guards[0][0] == at for guards in pending):
                departure = self.guards(
                    *[guards[0][1] if guards and guards[0][0] == at else None for guards in pending]
                )
                if departure is not None:
                    return departure
                for guards in pending:
                    del guards[0]
            if at < last:
                difference = self.nodes(of_first.node(at), of_second.node(at))
                if difference is not None:
                    return difference
        if len(first.graph.inputs) - self.merged != len(second.graph.inputs):
            return Difference("it read different arrays", None, _CODE)
        return self.effects() or self.stores() or self.results()

    def guards(self, a: ValueGuard | None, b: ValueGuard | None) -> Divergence | Difference | None:
        """Compare the next guards of both, each None if there is none before the next operation."""
        if a is None or b is None or a.decides is not b.decides or not self.alike(a.value, b.value):
            guard = b or a
            assert guard is not None
            return Difference(f"only one of them took a value by {guard.what}", guard.where, _CODE)
        return None if same(a.outcome, b.outcome) else Divergence(b)

    def nodes(self, first: _Numbered | None, second: _Numbered | None) -> Difference | None:
        """Compare the next operations of both, each None if there is none."""
        if first is None or second is None:
            found = second or first
            assert found is not None
            _, node = found
            return Difference(f"only one of them recorded {node.op.name}", node.where, _CODE)
        (_, a), (number, b) = first, second
        difference = self.pair(a, b, number)
        if difference is not None and self.are_unused(a, b):
            difference = None
        if difference is None:
            self.partner.update(zip(a.outputs, b.outputs, strict=False))
        return difference

    def pair(self, a: Node, b: Node, number: int) -> Difference | None:
        """Return how two operations differ; the second has a number in its recording."""
        if a.op is not b.op or len(a.inputs) != len(b.inputs):
            return _other_op(a, b, number)
        if a.params and str(a.params) != str(b.params):
            return _params(a, b)
        partner = self.partner
        for x, y in zip(a.inputs, b.inputs, strict=True):
            if partner.get(x) is not y and not self.alike(x, y):
                return self.operand(x, y, b)
        return None

    def are_unused(self, a: Node, b: Node) -> bool:
        """Return whether two operations of one name have no part in what the traces compute."""
        if a.op.name != b.op.name:
            return False
        if self.used is None:
            graphs = (self.first.graph, self.second.graph)
            self.used = {node for graph in graphs for node in live(graph.nodes, graph.outputs)}
        return a not in self.used and b not in self.used

    def alike(self, x: Value, y: Value) -> bool:
        """Return whether two values are the same: the same input or result, or equal constants."""
        partner = self.partner.get(x)
        if partner is not None:
            return partner is y
        if x.data is None or y.data is None or x.node is not None or y.node is not None:
            return False
        equal = same(x.data, y.data)
        if equal:
            self.partner[x] = y
        return equal

    def operand(self, x: Value, y: Value, node: Node) -> Difference:
        if x.data is None or y.data is None:
            if _is_unnamed(self.first, x) and _is_unnamed(self.second, y):
                what = f"{node.op.name} received a different array in each call"
                return Difference(what, node.where, _KEPT)
            return Difference(f"{node.op.name} received a different operand", node.where, _CODE)
        if x.data.shape != y.data.shape or x.data.dtype != y.data.dtype:
            what = f"a constant of {node.op.name} was {x.aval}, is {y.aval}"
            return Difference(what, node.where, "data of a different size that the function makes or reads")
        before, after, more = _first(x.data, y.data)
        what = f"a constant of {node.op.name} was {before}, is {after}{more}"
        if x.data.ndim:
            what += ": an array that is created in each call has different contents each time"
        return Difference(what, node.where, _cause(x.data, y.data))

    def effects(self) -> Difference | None:
        """Compare what is written into inputs; the Values for it come behind those of the result."""
        first, second = self.first, self.second
        if first.effects != second.effects:
            return Difference("it wrote different arrays", None, _CODE)
        count = len(first.effects.targets)
        start = len(first.result.formats)
        pairs = zip(first.graph.outputs[start:], second.graph.outputs[start:], strict=False)
        for _, (a, b) in zip(range(count), pairs, strict=False):
            if not self.alike(a, b):
                return Difference("it wrote a different array", None, _CODE)
        return None

    def stores(self) -> Difference | None:
        """Compare what is stored, and how; the arrays for it are part of the result."""
        first, second = self.first.stores or NO_STORES, self.second.stores or NO_STORES
        differ = first.difference(second)
        return None if differ is None else Difference(differ, None, _CODE)

    def results(self) -> Difference | None:
        first, second = self.first.result, self.second.result
        structure = tree.difference(first.treedef, second.treedef, "the result")
        if structure is not None or first.treedef.orders != second.treedef.orders:
            order = "the keys of a dict of the result have a different order"
            return Difference(structure or order, None, _CODE)
        # The outputs of the guards, which come last, are left over.
        arrays = zip(self.first.graph.outputs, self.second.graph.outputs, strict=False)
        names = tree.paths(first.treedef, "result")
        if self.first.stores is not None and self.first.stores.returns:
            names = [_place(name) for name in names]
        for name, a, b in zip(names, first.leaves, second.leaves, strict=True):
            if is_output(a) and type(a) is type(b):
                x, y = next(arrays)
                if a != b or not self.alike(x, y):
                    if x.data is not None and y.data is not None and x.data.shape == y.data.shape:
                        before, after, more = _first(x.data, y.data)
                        cause = _cause(x.data, y.data)
                        return Difference(f"{name}, a constant, was {before}, is {after}{more}", None, cause)
                    return Difference(f"{name} is a different array", None, _CODE)
            elif not _equal(a, b):
                compares: Any = type(a).__eq__
                what = f"{name} was {shown(a):.80}, is {shown(b):.80}"
                if type(a) is type(b) and compares is object.__eq__:
                    return Difference(what, None, "an object that is created in each call", _OF_PARTS)
                return Difference(what, None, _cause(a, b))
        return None


def _other_op(a: Node, b: Node, number: int) -> Difference:
    """Return how two operations differ; those that call Python may have the same name."""
    if a.op.name != b.op.name:
        return Difference(f"operation {number} was {a.op.name}, is {b.op.name}", b.where, _CODE)
    was, now = (" and ".join(str(value.aval) for value in node.outputs) for node in (a, b))
    if was == now:
        return Difference(f"operation {number}, {a.op.name}, was that of another object", b.where, _CODE)
    what = f"operation {number}, {a.op.name}, gave {was}, now gives {now}"
    return Difference(what, b.where, _BY_VALUES, OF_ONE_DTYPE)


def _params(a: Node, b: Node) -> Difference:
    """Return how two calls of an op with different params differ."""
    name = b.op.name
    if a.params.get("results") != b.params.get("results"):  # of a call of Python, whose replays look at them
        before, after = (" and ".join(map(str, node.params["results"])) for node in (a, b))
        what = f"the result of {name} was {before}, is {after}"
        return Difference(what, b.where, _BY_VALUES, OF_ONE_DTYPE)
    names = [key for key in {**a.params, **b.params} if str(a.params.get(key)) != str(b.params.get(key))]
    before, after = (", ".join(f"{key}={_param(node.params.get(key))}" for key in names) for node in (a, b))
    return Difference(f"{name} was called with {before}, then with {after}", b.where, _CODE)


def _param(value: Any) -> str:
    return value.name if isinstance(value, np.dtype) else str(value)


def _place(path: str) -> str:
    """Return the name of a part of a result whose second part is stored."""
    start = "result[0]"
    return f"result{path.removeprefix(start)}" if path.startswith(start) else "an array that is assigned"


def _named(trace: Trace) -> dict[Any, Value]:
    """Return the inputs of a trace: arguments by number, arrays that it reads by name, of one name by their order."""
    inputs, names = trace.graph.inputs, trace.state.names
    read = [(name, names[:at].count(name)) for at, name in enumerate(names)]
    return dict(zip([*range(len(inputs) - len(names)), *read], inputs, strict=True))


def _read(trace: Trace) -> list[Value]:
    """Return the inputs of a trace that it reads besides its arguments."""
    inputs = trace.graph.inputs
    return inputs[len(inputs) - len(trace.state.names) :]


def _memory(array: Any) -> tuple[Any, ...]:
    """Return what tells an array from others: where its elements lie, and how."""
    data = getattr(array, "_data", array)
    return data.__array_interface__["data"][0], data.shape, data.strides, data.dtype, data.size or id(data)


def _is_unnamed(trace: Trace, value: Value) -> bool:
    """Return whether an array is an input of a trace by reference, without a name."""
    names = zip(_read(trace), trace.state.names, strict=True)
    return any(value is one and name.endswith(UNNAMED) for one, name in names)


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
    """Return whether two constants of a result are equal; NaN equals NaN, and -0.0 differs from 0.0."""
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
    except Exception as error:
        if is_of_handler(error):
            raise
        return False
