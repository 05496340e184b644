# SPDX-License-Identifier: BSD-3-Clause
"""simplify: an equivalent graph with less to compute.

Removes nodes that no output needs, computes equal expressions once, folds small constants, and rewrites the few
patterns that recording and differentiation leave behind. Results keep NumPy's values, including NaN, infinities and
signed zeros: x + 0 stays, because it turns -0.0 into 0.0; x * 1 becomes x. There is one exception: the sum of a single
number is that number, also where NumPy's sum of -0.0 is 0.0.

Note [largest elements]
The adjoint of max pooling brings the cotangent of each window to its largest element. Before the pooling there is often
an activation, whose adjoint asks at each element whether it is positive. At a largest element, that is the result of
the pooling. So the cotangents are masked by the result, which has a quarter as many elements for windows of 2 by 2, and
the operand of the pooling is not read again. As each cotangent goes to one element, the sum of all elements is the sum
of the cotangents: the gradient of a bias does not read the elements.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Node, Value, live
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.op import Passed
from tracejit.util.named_tuples import NamedTuple

Values = tuple[Value, ...]
Params = dict[str, Any]

_FOLD_LIMIT = 64  # elements; larger constants would cost memory to save a cheap broadcast
_BROADCAST = OPS["broadcast_to"]
_POWERS = {1.0: "itself", 2.0: "square", 3.0: "cube", -1.0: "reciprocal", 0.5: "sqrt"}


def simplify(graph: Graph, keep_stops: bool = False) -> Graph:
    """Return a graph with the same inputs and outputs as `graph` and no more nodes than it needs.

    With `keep_stops`, stop_gradient and what only an adjoint needs stay: the graph will be differentiated.
    """
    return _Simplifier(graph, keep_stops).run()


def live_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that some output depends on, in order."""
    return live(graph.nodes, graph.outputs)


class _Simplifier:
    def __init__(self, graph: Graph, keep_stops: bool) -> None:
        self.old = graph
        self.keep_stops = keep_stops
        self.new = Graph()
        self.b = Builder(self.new)
        self.map: dict[Value, Value] = {}
        self.seen: dict[Any, Value] = {}
        self.constants: dict[Any, Value] = {}

    def run(self) -> Graph:
        for value in self.old.inputs:
            self.map[value] = self.b.input(value.aval)
        mapping = self.map
        for value in self.old.constants:
            mapping[value] = self.constant(value.data)
        for node in live_nodes(self.old):
            self.b.location = node.where
            inputs = tuple([mapping[v] for v in node.inputs])
            if isinstance(node.op.emit, Passed) and not self.keep_stops:
                mapping.update(zip(node.outputs, inputs[node.params["first"] :], strict=False))
            elif len(node.outputs) == 1 and node.op.kind is not Kind.LOOP:
                mapping[node.output] = self.node(node.op, inputs, node.params, node.output.aval)
            else:
                outputs = self.b.node(node.op, inputs, node.params, tuple([v.aval for v in node.outputs]))
                mapping.update(zip(node.outputs, outputs, strict=True))
        self.new.outputs = [mapping[v] for v in self.old.outputs]
        self.new.nodes = live_nodes(self.new)
        used = {v for node in self.new.nodes for v in node.inputs} | set(self.new.outputs)
        self.new.constants = [v for v in self.new.constants if v in used]
        return self.new

    def constant(self, data: np.ndarray) -> Value:
        key: Any = id(data)
        if data.size <= _FOLD_LIMIT:
            key = (data.dtype, data.shape, data.tobytes())
        value = self.constants.get(key)
        if value is None:
            value = self.constants[key] = self.b.constant(data)
        return value

    def node(self, op: Op, inputs: Values, params: Params, aval: Aval) -> Value:
        """Return a value equal to `op` of `inputs`, appending the nodes that it needs."""
        if op.kind is Kind.ELEMENTWISE and len(inputs) > 1:
            inputs = self.without_broadcasts(inputs, aval.shape)
        rule = _RULES.get(op.name)
        if rule is None and "axes" in params:
            rule = _Simplifier.reduction
        if rule is not None:
            simpler = rule(self, inputs, params, aval)
            if simpler is not None:
                return simpler
        # As text, because 0.0 == -0.0 == False.
        key = (op, *inputs, str(params)) if params else (op, *inputs)
        equal = self.seen.get(key)
        if equal is not None:
            return equal
        if inputs and inputs[0].node is None and all(v.node is None and v.data is not None for v in inputs):
            folded = self.folded(op, inputs, params, aval)
            if folded is not None:
                return folded
        value: Value = self.b.node(op, inputs, params, aval)
        self.seen[key] = value
        return value

    def folded(self, op: Op, inputs: Values, params: Params, aval: Aval) -> Value | None:
        """Return `op` of constants as a constant, or None if it is too large, or would unfold a broadcast."""
        size = aval.size
        if size > _FOLD_LIMIT or size > max([1, *[v.aval.size for v in inputs]]) or op.kind is Kind.HOST:
            return None
        with np.errstate(all="ignore"):
            data = np.asarray(op.numpy(*[v.data for v in inputs], **params))
        return self.constant(np.array(data)) if data.dtype == aval.dtype else None

    def apply(self, name: str, *inputs: Value, **params: Any) -> Value:
        op = OPS[name]
        aval = op.infer(*[v.aval for v in inputs], **params)
        assert type(aval) is Aval
        return self.node(op, inputs, params, aval)

    def without_broadcasts(self, inputs: Values, shape: tuple[int, ...]) -> Values:
        """Return operands with explicit broadcasts undone where the op broadcasts by itself."""
        if _BROADCAST not in [v.node and v.node.op for v in inputs]:
            return inputs
        result = list(inputs)
        for i, value in enumerate(inputs):
            node = value.node
            if node is not None and node.op is _BROADCAST:
                others = [v.shape for j, v in enumerate(result) if j != i]
                if np.broadcast_shapes(node.inputs[0].shape, *others) == shape:
                    result[i] = node.inputs[0]
        return tuple(result)

    def unchanged(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        return inputs[0] if inputs[0].aval == aval else None

    def slice(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        return inputs[0] if inputs[0].aval == aval and all(step == 1 for step in params["steps"]) else None

    def reshape(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        (x,) = inputs
        if x.aval == aval:
            return x
        if x.node is not None and x.node.op.name == "reshape":
            return self.apply("reshape", x.node.inputs[0], **params)
        return None

    def concatenate(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        """Return parts of one array that lie one after the other as one part, as np.array([*x]) has them."""
        found = [_rows_of(value) for value in inputs] if params["axis"] == 0 and len(inputs) > 1 else []
        parts = [part for part in found if part is not None]
        if not parts or len(parts) < len(found) or any(part.source is not parts[0].source for part in parts):
            return None
        if any(one.stop != other.start for one, other in itertools.pairwise(parts)):
            return None
        x, rank = parts[0].source, parts[0].source.ndim
        bounds = {"starts": (parts[0].start, *[0] * (rank - 1)), "stops": (parts[-1].stop, *x.shape[1:])}
        rows = self.apply("slice", x, **bounds, steps=(1,) * rank)
        return rows if rows.aval == aval else self.apply("reshape", rows, shape=aval.shape)

    def stop_gradient(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        return None if self.keep_stops else inputs[0]

    def transpose(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        (x,), axes = inputs, params["axes"]
        if axes == tuple(range(len(axes))):
            return x
        if x.node is not None and x.node.op.name == "transpose":
            inner = x.node.params["axes"]
            return self.apply("transpose", x.node.inputs[0], axes=tuple(inner[a] for a in axes))
        return None

    def neg(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        node = inputs[0].node
        return node.inputs[0] if node is not None and node.op.name == "neg" else None

    def mul(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        x, y = inputs
        if _is_scalar(y, 1.0) and x.aval == aval:
            return x
        if _is_scalar(x, 1.0) and y.aval == aval:
            return y
        return self.apply("square", x) if x is y and aval.dtype.kind == "f" else None

    def div(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        return inputs[0] if _is_scalar(inputs[1], 1.0) and inputs[0].aval == aval else None

    def sub(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        return inputs[0] if _is_scalar(inputs[1], 0.0) and inputs[0].aval == aval else None

    def power(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        x, exponent = inputs
        if exponent.node is not None or exponent.data is None or exponent.shape != () or x.aval != aval:
            return None
        if exponent.dtype.kind == "c":
            return None
        how = _POWERS.get(float(exponent.data))
        if how is None or (how in ("reciprocal", "sqrt") and aval.dtype.kind != "f"):
            return None
        if how == "itself":
            return x
        if how == "cube":
            return self.apply("mul", self.apply("square", x), x)
        return self.apply(how, x)

    def choice(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        condition = inputs[0]
        if condition.node is not None or condition.data is None or condition.shape != ():
            return self.masked_places(*inputs) if inputs[2].aval == aval else None
        chosen = inputs[1] if condition.data else inputs[2]
        return chosen if chosen.aval == aval else self.apply("broadcast_to", chosen, shape=aval.shape)

    def masked_places(self, condition: Value, zero: Value, value: Value) -> Value | None:
        """Return cotangents at the places of maxima, masked before they go there (Note [largest elements])."""
        mask, adjoint = condition.node, value.node
        if adjoint is None or adjoint.op.name != "maxpool_adjoint" or not _is_scalar(zero, 0.0):
            return None
        ct, place = adjoint.inputs
        pool = place.node
        if mask is None or mask.op.name != "less_equal" or pool is None or pool.op.name != "maxpool":
            return None
        x, limit = mask.inputs
        largest = pool.outputs[0]
        if x is not pool.inputs[0] or limit.shape != () or largest.aval.size == x.aval.size:
            return None
        masked = self.apply("where", self.apply("less_equal", largest, limit), zero, ct)
        return (
            self.apply("maxpool_adjoint", masked, place, **adjoint.params) if masked.aval == ct.aval else None
        )

    def sum(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        adjoint = inputs[0].node
        if adjoint is not None and adjoint.op.name == "maxpool_adjoint":
            ct, axis = adjoint.inputs[0], adjoint.params["axis"]
            pooled = range(axis, axis + len(adjoint.params["size"]))
            if params["axes"] and set(pooled) <= set(params["axes"]) and ct.dtype == inputs[0].dtype:
                return self.apply("sum", ct, **params)
        return self.reduction(inputs, params, aval)

    def search(self, extremum: str, x: Value, params: Params) -> Value | None:
        """Return the place of an extremum, found where it is equal: an extremum alone is computed in vectors."""
        if self.keep_stops or x.dtype.kind == "c":
            return None
        best = self.apply(extremum, x, axes=(params["axis"],), keepdims=params["keepdims"])
        return self.apply("first_place", x, best, **params)

    def ordering(self, name: str, x: Value, params: Params, aval: Aval) -> Value | None:
        """Return a pair of results that are sorted along the last axis, whose elements lie side by side."""
        axis, last = params["axis"], x.ndim - 1
        if self.keep_stops or math.prod(x.shape[axis + 1 :]) == 1 or x.dtype.kind == "c":
            return None
        axes = (*[i for i in range(x.ndim) if i != axis], axis)
        sorted_rows = self.apply(name, self.apply("transpose", x, axes=axes), axis=last)
        return self.apply("transpose", sorted_rows, axes=(0, *[1 + axes.index(i) for i in range(x.ndim)]))

    def reduction(self, inputs: Values, params: Params, aval: Aval) -> Value | None:
        x = inputs[0]
        if any(x.shape[axis] != 1 for axis in params["axes"]):
            return None
        value = x if x.dtype == aval.dtype else self.apply("cast", x, dtype=aval.dtype)
        return value if value.shape == aval.shape else self.apply("reshape", value, shape=aval.shape)


# Rewrites by the name of an op. Other ops with axes are reductions.
_RULES: dict[str, Callable[[_Simplifier, Values, Params, Aval], Value | None]] = {
    "argmax": lambda some, inputs, params, _: some.search("max", inputs[0], params),
    "argmin": lambda some, inputs, params, _: some.search("min", inputs[0], params),
    "broadcast_to": _Simplifier.unchanged,
    "cast": _Simplifier.unchanged,
    "concatenate": _Simplifier.concatenate,
    "div": _Simplifier.div,
    "mul": _Simplifier.mul,
    "neg": _Simplifier.neg,
    "order": lambda some, inputs, params, aval: some.ordering("order", inputs[0], params, aval),
    "pow": _Simplifier.power,
    "reshape": _Simplifier.reshape,
    "slice": _Simplifier.slice,
    "sort": lambda some, inputs, params, aval: some.ordering("sort", inputs[0], params, aval),
    "stop_gradient": _Simplifier.stop_gradient,
    "sub": _Simplifier.sub,
    "sum": _Simplifier.sum,
    "transpose": _Simplifier.transpose,
    "where": _Simplifier.choice,
}


class _Rows(NamedTuple):
    """Rows of an array that lie one after the other."""

    source: Value
    start: int
    stop: int


def _rows_of(value: Value) -> _Rows | None:
    """Return the rows that a value has the elements of, in their order; None if it is no such part."""
    node = value.node
    if node is not None and node.op.name == "reshape":
        node = node.inputs[0].node
    if (
        node is None
        or node.op.name != "slice"
        or not node.inputs[0].ndim
        or any(step != 1 for step in node.params["steps"])
    ):
        return None
    source, starts, stops = node.inputs[0], node.params["starts"], node.params["stops"]
    if (*starts[1:],) != (0,) * (source.ndim - 1) or (*stops[1:],) != source.shape[1:]:
        return None
    return _Rows(source, starts[0], stops[0])


def _is_scalar(value: Value, number: float) -> bool:
    """Return whether `value` is a constant of one element equal to `number` (and not -0.0 for 0.0)."""
    # Complex numbers have no such rules: z * 1 is not z where a part is infinite.
    if value.node is not None or value.data is None or value.data.size != 1 or value.data.dtype.kind == "c":
        return False
    item = value.data.item()
    return bool(item == number and not (number == 0.0 and np.signbit(item)))
