# SPDX-License-Identifier: BSD-3-Clause
"""simplify: an equivalent graph with less to do.

Removes what no output needs, computes equal things once, folds small constants, and rewrites the few
patterns that recording and differentiation leave behind. Results keep NumPy's values, NaN, infinities
and signed zeros included: x + 0 stays (it turns -0.0 into 0.0), x * 1 goes. Only a sum of one number is that
number, where NumPy's sum of -0.0 is 0.0.
"""

from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import OPS, Kind

_FOLD_LIMIT = 64  # elements; larger constants would cost memory to save a cheap broadcast
_NO_OP_WHEN_SAME_SHAPE = frozenset({"reshape", "broadcast_to", "slice"})
_POWERS = {1.0: "itself", 2.0: "square", 3.0: "cube", -1.0: "reciprocal"}


def simplify(graph: Graph, keep_stops: bool = False) -> Graph:
    """Return a graph with the same inputs and outputs as `graph` and no more nodes than it needs.

    `keep_stops` is for a graph that will be differentiated: stop_gradient stays.
    """
    return _Simplifier(graph, keep_stops).run()


def live_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that some output depends on, in order."""
    needed: set[Value] = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    kept.reverse()
    return kept


class _Simplifier:
    def __init__(self, graph: Graph, keep_stops: bool) -> None:
        self.old = graph
        self.keep_stops = keep_stops
        self.new = Graph()
        self.b = Builder(self.new)
        self.map: dict[Value, Value] = {}
        self.seen: dict[Any, tuple[Value, ...]] = {}
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
            if len(node.outputs) == 1:
                mapping[node.output] = self.node(node.op, inputs, node.params, node.output.aval)
            else:
                outputs = self.b.append(node.op, inputs, node.params, tuple(v.aval for v in node.outputs))
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

    def node(self, op: Any, inputs: tuple[Value, ...], params: dict[str, Any], aval: Aval) -> Value:
        """Return a value equal to `op` of `inputs`, appending what is needed."""
        if op.kind is Kind.ELEMENTWISE and len(inputs) > 1:
            inputs = self.without_broadcasts(inputs, aval.shape)
        simpler = self.rewrite(op.name, inputs, params, aval)
        if simpler is not None:
            return simpler
        # As text, because 0.0 == -0.0 == False.
        key = (op.name, *map(id, inputs), str(params)) if params else (op.name, *map(id, inputs))
        found = self.seen.get(key)
        if found is not None:
            return found[0]
        if (
            aval.size <= max([1, *[v.aval.size for v in inputs]])  # never unfold a broadcast
            and aval.size <= _FOLD_LIMIT
            and all(v.node is None and v.data is not None for v in inputs)
            and op.kind is not Kind.HOST
        ):
            with np.errstate(all="ignore"):
                folded = np.asarray(op.numpy(*[v.data for v in inputs], **params))
            if folded.dtype == aval.dtype:
                return self.constant(np.array(folded))
        value = self.b.append(op, inputs, params, aval)
        self.seen[key] = (value,)
        return value  # type: ignore[no-any-return]

    def again(self, name: str, *inputs: Value, **params: Any) -> Value:
        op = OPS[name]
        aval = op.infer(*[v.aval for v in inputs], **params)
        assert type(aval) is Aval
        return self.node(op, inputs, params, aval)

    def without_broadcasts(self, inputs: tuple[Value, ...], shape: tuple[int, ...]) -> tuple[Value, ...]:
        """Return operands with explicit broadcasts undone where the op broadcasts by itself."""
        result = list(inputs)
        for i, value in enumerate(inputs):
            node = value.node
            if node is not None and node.op.name == "broadcast_to":
                others = [v.shape for j, v in enumerate(result) if j != i]
                if np.broadcast_shapes(node.inputs[0].shape, *others) == shape:
                    result[i] = node.inputs[0]
        return tuple(result)

    def rewrite(
        self, name: str, inputs: tuple[Value, ...], params: dict[str, Any], aval: Aval
    ) -> Value | None:
        x = inputs[0]
        same = x.aval == aval
        if name in _NO_OP_WHEN_SAME_SHAPE:
            if same and (name != "slice" or all(step == 1 for step in params["steps"])):
                return x
            if name == "reshape" and x.node is not None and x.node.op.name == "reshape":
                return self.again("reshape", x.node.inputs[0], **params)
        elif name == "cast":
            if same:
                return x
        elif name == "stop_gradient":
            return None if self.keep_stops else x
        elif name == "transpose":
            axes = params["axes"]
            if axes == tuple(range(len(axes))):
                return x
            if x.node is not None and x.node.op.name == "transpose":
                inner = x.node.params["axes"]
                return self.again("transpose", x.node.inputs[0], axes=tuple(inner[a] for a in axes))
        elif name == "neg":
            if x.node is not None and x.node.op.name == "neg":
                return x.node.inputs[0]
        elif name == "mul":
            y = inputs[1]
            if same and _is_scalar(y, 1.0):
                return x
            if y.aval == aval and _is_scalar(x, 1.0):
                return y
            if x is y and aval.dtype.kind == "f":
                return self.again("square", x)
        elif name == "div" or name == "sub":
            if same and _is_scalar(inputs[1], 1.0 if name == "div" else 0.0):
                return x
        elif name == "pow":
            return self.power(x, inputs[1], aval)
        elif name == "where":
            return self.choice(x, inputs, aval)
        elif "axes" in params and all(x.shape[axis] == 1 for axis in params["axes"]):
            return self.trivial_reduction(x, aval)
        return None

    def power(self, x: Value, exponent: Value, aval: Aval) -> Value | None:
        if exponent.node is not None or exponent.data is None or exponent.shape != () or x.aval != aval:
            return None
        how = _POWERS.get(float(exponent.data))
        if how is None or (how == "reciprocal" and aval.dtype.kind != "f"):
            return None
        if how == "itself":
            return x
        if how == "cube":
            return self.again("mul", self.again("square", x), x)
        return self.again(how, x)

    def choice(self, condition: Value, inputs: tuple[Value, ...], aval: Aval) -> Value | None:
        if condition.node is not None or condition.data is None or condition.shape != ():
            return None
        chosen = inputs[1] if condition.data else inputs[2]
        return chosen if chosen.aval == aval else self.again("broadcast_to", chosen, shape=aval.shape)

    def trivial_reduction(self, x: Value, aval: Aval) -> Value:
        value = x if x.dtype == aval.dtype else self.again("cast", x, dtype=aval.dtype)
        return value if value.shape == aval.shape else self.again("reshape", value, shape=aval.shape)


def _is_scalar(value: Value, number: float) -> bool:
    """Return whether `value` is a constant of one element equal to `number` (and not -0.0 for 0.0)."""
    if value.node is not None or value.data is None or value.data.size != 1:
        return False
    item = value.data.item()
    return bool(item == number and not (number == 0.0 and np.signbit(item)))
