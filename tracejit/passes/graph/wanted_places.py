# SPDX-License-Identifier: BSD-3-Clause
"""wanted_places: limits sorting to the places that something reads.

Note [wanted places]
The op `sort` gives elements in order and in the opposite order. Compiled programs have `partition` instead, which takes
half the memory: the opposite order is a view of it, backwards. Its readers are mostly slices, as in a median, the ten
largest elements, or np.partition(x, 7)[7]. The places from the first to the last that is read are in order; others are
not (Note [sorting in vectors]). NaN come last however little is sorted. So a quantile can ask whether the last element
is NaN, without wanting the largest element at that place.

Vectors sort numbers of 32 and 64 bits with a sign. Other integers, and bools, are cast to these, which keeps their
order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops.op import Strided

Places = range

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_SORTED_AS = {
    "b": _INT32, "B": _INT32, "h": _INT32, "H": _INT32, "?": _INT32, "I": _INT64, "L": _INT64, "Q": _INT64,
}  # fmt: skip
_HIGHEST_BIT = np.uint64(1 << 63)


def wanted_places(graph: Graph) -> Graph:
    """Return a graph with `partition` instead of `sort` (Note [wanted places])."""
    return _Sorts(graph).run()


class _Sorts:
    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.new = Graph()
        self.b: Any = Builder(self.new)
        self.values: dict[Value, Value] = {}
        self.apart: set[Value] = set()  # pairs of halves, which are not made
        self.outputs = set(graph.outputs)
        self.uses: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self.uses.setdefault(value, []).append(node)

    def run(self) -> Graph:
        old, b = self.old, self.b
        self.new.inputs, self.new.constants = list(old.inputs), list(old.constants)
        self.values.update((value, value) for value in (*old.inputs, *old.constants))
        for node in old.nodes:
            b.location = node.where
            if node.output in self.values or (node.inputs[:1] and node.inputs[0] in self.apart):
                continue  # a reader of what is sorted, which comes with it
            operands = tuple([self.values[value] for value in node.inputs])
            if node.op.name == "sort":
                self.sort(node, operands[0])
                continue
            if node.op.name == "order":
                operands = (self.with_sign(operands[0]),)
            avals = [value.aval for value in node.outputs]
            made = b.node(node.op, operands, node.params, avals[0] if len(avals) == 1 else tuple(avals))
            self.values.update(zip(node.outputs, (made,) if isinstance(made, Value) else made, strict=True))
        self.new.outputs = [self.values[value] for value in old.outputs]
        return self.new

    def sort(self, node: Node, x: Value) -> None:
        """Append the partition for a node that sorts, and those of its readers that take one of its halves."""
        axis = node.params["axis"]
        n = x.shape[axis]
        halves = self.halves(node.output)
        wanted = Places(0, n)
        if halves is not None:
            read = [self.read(half, axes.index(axis + 1) - 1) for half, axes in halves]
            wanted = _joined(read) if n else wanted
        ordered, _ = self.b.partition(self.with_sign(x), axis=axis, least=wanted.start, most=wanted.stop)
        ordered = self.without_sign(ordered, x.dtype)
        if halves is None:
            both = [
                self.b.reshape(each, shape=(1, *x.shape)) for each in (ordered, self.backwards(ordered, axis))
            ]
            self.values[node.output] = self.b.concatenate(*both, axis=0)
            return
        self.apart.add(node.output)
        for half, axes in halves:
            self.apart.add(half.inputs[0])
            part = self.backwards(ordered, axis) if half.params["starts"][0] else ordered
            if axes != tuple(range(len(axes))):
                part = self.b.transpose(part, axes=tuple(each - 1 for each in axes[1:]))
            params = {name: half.params[name][1:] for name in ("starts", "stops", "steps")}
            self.values[half.output] = self.b.reshape(self.b.slice(part, **params), shape=half.output.shape)

    def with_sign(self, x: Value) -> Value:
        """Return elements as integers that vectors sort, or as they are."""
        wide = _SORTED_AS.get(x.dtype.char)
        if wide is None:
            return x
        found: Value = self.b.cast(
            self.b.bitwise_xor(x, _HIGHEST_BIT) if x.dtype == np.uint64 else x, dtype=wide
        )
        return found

    def without_sign(self, x: Value, dtype: np.dtype) -> Value:
        """Return what with_sign was given."""
        if x.dtype == dtype:
            return x
        narrow: Value = self.b.cast(x, dtype=dtype)
        return self.b.bitwise_xor(narrow, _HIGHEST_BIT) if dtype == np.uint64 else narrow

    def backwards(self, x: Value, axis: int) -> Value:
        n = x.shape[axis]
        if not n:
            return x
        starts, stops, steps = ([at] * x.ndim for at in (0, 0, 1))
        stops[:] = x.shape
        starts[axis], stops[axis], steps[axis] = n - 1, -1, -1
        found: Value = self.b.slice(x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))
        return found

    def halves(self, both: Value) -> list[tuple[Node, tuple[int, ...]]] | None:
        """Return the slices that take one half each, with the axes of `both` in their order; None for other readers."""
        found = []
        waiting = [(both, tuple(range(both.ndim)))]
        while waiting:
            value, axes = waiting.pop()
            if value in self.outputs:
                return None
            for use in self.uses.get(value, ()):
                if use.op.name == "transpose" and use.params["axes"][0] == 0 and axes[0] == 0:
                    waiting.append((use.output, tuple([axes[each] for each in use.params["axes"]])))
                elif use.op.name == "slice" and axes[0] == 0 and use.output.shape[0] == 1:
                    found.append((use, axes))
                else:
                    return None
        return found

    def read(self, half: Node, axis: int) -> Places:
        """Return the places of the ordered elements that are read of a half, whose rows lie along an axis."""
        n = half.inputs[0].shape[axis + 1]
        start, stop, step = (half.params[name][axis + 1] for name in ("starts", "stops", "steps"))
        places = range(start, stop, step)
        within = self.within(half.output, axis + 1, n) if places == range(n) else None
        if within is None:
            within = _joined([places]) if places else Places(0, 0)
        if half.params["starts"][0]:
            return Places(n - within.stop, n - within.start) if within else within
        return within

    def within(self, value: Value, axis: int, n: int) -> Places | None:
        """Return the places along an axis that the readers of all elements read, None for all of them."""
        found: list[Places] = []
        waiting = [(value, axis)]
        while waiting:
            value, axis = waiting.pop()
            if value in self.outputs:
                return None
            for use in self.uses.get(value, ()):
                if use.op.name == "reshape" and (moved := _axis_after(use, axis)) is not None:
                    waiting.append((use.output, moved))
                elif use.op.name == "slice":
                    places = range(*(use.params[name][axis] for name in ("starts", "stops", "steps")))
                    if not (places == range(n - 1, n) and self.is_asked_for_nan(use.output)):
                        found.append(_joined([places]) if places else Places(0, 0))
                elif (
                    use.op.name == "take_along_axis" and use.inputs[0] is value and use.params["axis"] == axis
                ):
                    index = _constant(use.inputs[1])
                    if index is None or use.inputs[1] is value:
                        return None
                    found.append(Places(min(index), max(index) + 1))
                else:
                    return None
        return _joined(found)

    def is_asked_for_nan(self, value: Value) -> bool:
        """Return whether readers of a value only ask whether it is NaN."""
        if value in self.outputs:
            return False
        return all(
            use.op.name == "isnan"
            or (use.op.name in ("reshape", "broadcast_to") and self.is_asked_for_nan(use.output))
            for use in self.uses.get(value, ())
        )


def _joined(places: Sequence[Places]) -> Places:
    """Return the places from the first to the last of some; those of a step of -1 are the same backwards."""
    some = [each for each in places if each]
    if not some:
        return Places(0, 0)
    ends = [end for each in some for end in (each[0], each[-1])]
    return Places(min(ends), max(ends) + 1)


def _axis_after(reshape: Node, axis: int) -> int | None:
    """Return where an axis is after a reshape that only adds or drops axes of one place, None after any other."""
    x, emit = reshape.inputs[0], reshape.op.emit
    assert isinstance(emit, Strided) and emit.axes is not None
    axes = emit.axes(x.ndim, x.shape, **reshape.params)
    return None if axes is None else axes[axis]


def _constant(index: Value) -> list[int] | None:
    """Return the numbers of an index that is known, None for any other."""
    while index.node is not None and index.node.op.name in ("reshape", "transpose", "broadcast_to"):
        index = index.node.inputs[0]
    if index.node is not None or index.data is None or not index.is_constant or not index.data.size:
        return None
    numbers = [int(number) for number in index.data.ravel()]
    return numbers if min(numbers) >= 0 else None
