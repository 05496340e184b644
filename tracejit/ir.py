# SPDX-License-Identifier: BSD-3-Clause
"""The linear op list: Value, Node, Graph; its builder, verifier, evaluator and printer.

A Graph is positional: its values have shapes and dtypes but no formats. Labels belong to arrays, and are resolved where
an operation is recorded (record.recorder.apply), so an adjoint need not maintain them.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracejit.aval import FLOAT32, Aval, Halves, is_half
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.halves import takes_halves
from tracejit.util import html
from tracejit.util.devices import OnDevice, computed, registered

Where = tuple[str, int] | None  # the user's file and line
_SHOWN = 60  # nodes of a graph in a notebook
asarray = np.asarray
"""NumPy's own: while something is recorded the name stands for a function that asks first who calls it."""


class Value:
    """A graph input, a constant, or an output of a node.

    `data` holds the array of a constant always, and that of any value while it is being recorded.
    """

    __slots__ = ("aval", "data", "is_constant", "node", "owner")

    def __init__(
        self, aval: Aval, owner: Any, node: "Node | None" = None, data: Any = None, is_constant: bool = False
    ) -> None:
        self.aval = aval
        self.owner = owner
        self.node = node
        self.data = data
        self.is_constant = is_constant

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)


class Node:
    """One application of an op; `output` is the first of its outputs, usually the only one."""

    __slots__ = ("inputs", "op", "output", "outputs", "params", "where")

    output: Value

    def __init__(self, op: Op, inputs: tuple[Value, ...], params: dict[str, Any], where: Where) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.where = where
        self.outputs: tuple[Value, ...] = ()

    def makes(self, outputs: tuple[Value, ...]) -> None:
        """Set the outputs, which are created after the node because they refer to it."""
        self.outputs = outputs
        if outputs:
            self.output = outputs[0]


class Graph:
    """A linear list of nodes in the order of execution, with its inputs, constants and outputs."""

    __slots__ = ("constants", "inputs", "nodes", "outputs")

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.constants: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []

    def make_constant(self, value: Value) -> None:
        """Have an input that has data be a constant."""
        self.inputs = [other for other in self.inputs if other is not value]
        value.is_constant = True
        self.constants.append(value)

    def __str__(self) -> str:
        return format_graph(self)

    def _repr_html_(self) -> str:
        names = _names(self)
        names |= {value: repr(value.data.item()) for value in self.constants if value.ndim == 0}
        rows = []
        for node in self.nodes:
            arguments = [names[v] for v in node.inputs] + [f"{k}={v}" for k, v in node.params.items()]
            rows.append((
                ", ".join(names[v] for v in node.outputs),
                f"{node.op.name}({', '.join(arguments)})",
                ", ".join(str(v.aval) for v in node.outputs),
                f"{node.where[0]}:{node.where[1]}" if node.where else "",
            ))  # fmt: skip
        lists = [
            ", ".join(f"{names[v]}: {v.aval}" for v in self.inputs) or "no inputs",
            f"results: {', '.join(names[v] for v in self.outputs) or 'none'}",
        ]
        title = f"Graph of {len(self.nodes)} ops"
        table = html.table(["value", "op", "size", "line"], rows, _SHOWN, "ops")
        return html.block(title, "; ".join(lists), table if rows else "")


class Builder:
    """Appends nodes to a graph; every op is a method: ``b.mul(x, 2.0)``, ``b.sum(x, axes=(0,))``.

    With `compute`, each node's outputs are computed by the op's reference as it is appended, so that
    values and nodes appear together.
    """

    def __init__(self, graph: Graph, compute: bool = False, owner: Any = None) -> None:
        self.graph = graph
        self.compute = compute
        self.owner = graph if owner is None else owner
        self.location: Where = None  # not `where`, which is an op
        self.active: Container[Value] | None = (
            None  # while it is differentiated: what depends on the variables
        )

    def input(self, aval: Aval, data: Any = None) -> Value:
        """Append an input."""
        value = Value(aval._replace(format=None), self.owner, None, data)
        self.graph.inputs.append(value)
        return value

    def constant(self, data: Any) -> Value:
        """Append a constant; `data` must not be written afterwards."""
        array = asarray(data)
        value = Value(Aval(array.shape, None, array.dtype), self.owner, None, array, is_constant=True)
        self.graph.constants.append(value)
        return value

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS.get(name)
        if op is None:
            raise AttributeError(f"there is no op named {name!r}")

        def append(*inputs: Any, **params: Any) -> Any:
            return self.apply(op, inputs, params)

        self.__dict__[name] = append  # so that __getattr__ is not called again
        return append

    def apply(self, op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Append `op` of `inputs` (Values, arrays or Python numbers) and return its output(s)."""
        values: Sequence[Any] = inputs
        for x in inputs:
            if type(x) is not Value:
                dtypes = [v.dtype for v in inputs if type(v) is Value]
                values = [v if type(v) is Value else self.constant(weak_array(v, dtypes)) for v in inputs]
                break
        if Halves.met and not takes_halves(op):  # an adjoint goes on in float32
            values = [self._cast(v, FLOAT32) if is_half(v.aval.dtype) else v for v in values]
        return self.append(op, values, params, op.infer(*[v.aval for v in values], **params))

    def append(self, op: Op, values: Sequence[Any], params: dict[str, Any], avals: Any) -> Any:
        """Append `op` of Values whose results have `avals`, casting inputs as the op requires."""
        if op.promote is not None:
            dtypes = _casts(op, tuple([v.aval.dtype for v in values]))
            if dtypes is not None:
                values = [self._cast(v, dtype) for v, dtype in zip(values, dtypes, strict=True)]
        result = None
        if self.compute:
            data = [v.data for v in values]
            result = computed(op, data, params) if registered.in_use else op.numpy(*data, **params)
        return self.node(op, tuple(values), params, avals, result)

    def node(
        self, op: Op, inputs: tuple[Value, ...], params: dict[str, Any], avals: Any, result: Any = None
    ) -> Any:
        """Append `op` of Values that need no casts; `result` is its value, if it has been computed."""
        node = Node(op, inputs, params, self.location)
        self.graph.nodes.append(node)
        if type(avals) is Aval:
            value = self._output(avals, node, result)
            node.makes((value,))
            return value
        results = [None] * len(avals) if result is None else result
        node.makes(tuple([self._output(aval, node, part) for aval, part in zip(avals, results, strict=True)]))
        return node.outputs

    def _output(self, aval: Aval, node: Node, data: Any) -> Value:
        if aval.format is not None:
            aval = aval._replace(format=None)
        if data is not None and type(data) is not np.ndarray and not isinstance(data, OnDevice):
            data = asarray(data)  # a ufunc gives a scalar for 0-d operands
        return Value(aval, self.owner, node, data)

    def _cast(self, value: Value, dtype: np.dtype) -> Value:
        if value.aval.dtype == dtype:
            return value
        if value.is_constant and value.aval.shape == ():
            return self.constant(value.data.astype(dtype))
        cast: Value = self.apply(OPS["cast"], (value,), {"dtype": dtype})
        return cast


@lru_cache(maxsize=4096)
def _casts(op: Op, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...] | None:
    """Return the dtypes that an op casts its inputs to, or None if it takes them as they are."""
    assert op.promote is not None
    wanted = op.promote(*dtypes)
    return None if wanted == dtypes else wanted


def weak_array(x: Any, dtypes: Sequence[np.dtype]) -> np.ndarray:
    """Return `x` as an array; a Python number takes its dtype from `dtypes` by NumPy's promotion.

    Raises:
        OverflowError: for an integer that does not fit that dtype.
    """
    kind = type(x)
    if kind is float or kind is int or kind is complex:
        for dtype in dtypes:
            if dtype.kind == "c" or (
                kind is not complex and (dtype.kind in "fV" or (kind is int and dtype.kind in "iu"))
            ):
                return asarray(x, dtype if len(dtypes) == 1 else np.result_type(*dtypes))
        if dtypes:
            return asarray(x, np.result_type(*dtypes, x))
    data = asarray(x)
    if data.dtype == object:
        raise OverflowError("the integer does not fit 64 bits")
    return data


def live(nodes: Sequence[Node], results: Iterable[Value]) -> list[Node]:
    """Return the nodes, of a list in order, that results depend on."""
    needed = set(results)
    kept: list[Node] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    kept.reverse()
    return kept


def verify(graph: Graph) -> None:
    """Check that a graph is legal: single assignment, no unbound values, shapes and dtypes as inferred.

    Raises:
        ValueError: naming the first offending node.
    """
    defined: set[Value] = set(graph.inputs) | set(graph.constants)
    for value in graph.constants:
        if value.data is None or value.data.shape != value.shape or value.data.dtype != value.dtype:
            raise ValueError(f"a constant of {value.aval} holds data of another type or size")
    for number, node in enumerate(graph.nodes):
        where = f"node {number} ({node.op.name})"
        for value in node.inputs:
            if value not in defined:
                raise ValueError(f"{where} uses a value that is not defined before it")
        avals = node.op.infer(*[v.aval for v in node.inputs], **node.params)
        expected: Any = (avals,) if type(avals) is Aval else avals
        if tuple(v.aval for v in node.outputs) != tuple(a._replace(format=None) for a in expected):
            raise ValueError(f"{where} has outputs {node.outputs}, but its op infers {expected}")
        if node.op.promote is not None:
            dtypes = tuple(v.dtype for v in node.inputs)
            if node.op.promote(*dtypes) != dtypes:
                raise ValueError(f"{where} has operands of {dtypes} without the casts that it needs")
        for value in node.outputs:
            if value in defined or value.node is not node:
                raise ValueError(f"{where} assigns a value twice")
            defined.add(value)
    for value in graph.outputs:
        if value not in defined:
            raise ValueError("a graph output is not defined in the graph")


def evaluate(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a graph on NumPy by the ops' references and return its outputs."""
    data: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    data.update((value, value.data) for value in graph.constants)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            result = node.op.numpy(*[data[v] for v in node.inputs], **node.params)
            if len(node.outputs) == 1 and not isinstance(result, tuple):
                data[node.outputs[0]] = asarray(result)
            else:
                data.update(zip(node.outputs, map(asarray, result), strict=True))
    return [data[v] for v in graph.outputs]


def _names(graph: Graph) -> dict[Value, str]:
    """Return the names of a graph's values: in0, c0, v0, ..."""
    results = [value for node in graph.nodes for value in node.outputs]
    groups = (("in", graph.inputs), ("c", graph.constants), ("v", results))
    return {value: f"{stem}{i}" for stem, values in groups for i, value in enumerate(values)}


def format_graph(graph: Graph) -> str:
    """Return the graph as text, one line for each input, constant and node."""
    names = _names(graph)

    def describe(value: Value) -> str:
        return f"{names[value]}:{value.dtype}[{','.join(map(str, value.shape))}]"

    lines = []
    lines.append(f"inputs  {' '.join(describe(v) for v in graph.inputs)}")
    for value in graph.constants:
        text = repr(value.data.item()) if value.data.ndim == 0 else "array"
        lines.append(f"const   {describe(value)} = {text}")
    for node in graph.nodes:
        arguments = [names[v] for v in node.inputs] + [f"{k}={v}" for k, v in node.params.items()]
        place = f"  # {node.where[0]}:{node.where[1]}" if node.where else ""
        results = ", ".join(describe(v) for v in node.outputs)
        lines.append(f"        {results} = {node.op.name}({', '.join(arguments)}){place}")
    lines.append(f"outputs {' '.join(names[v] for v in graph.outputs)}")
    return "\n".join(lines)


__all__ = ["Builder", "Graph", "Kind", "Node", "Value", "evaluate", "format_graph", "verify", "weak_array"]
