# SPDX-License-Identifier: BSD-3-Clause
"""The names that the emitted code of an op needs."""

import ast

import numpy as np

from tracejit.aval import Aval
from tracejit.codegen.expressions import combine, expression
from tracejit.errors import DTypeError
from tracejit.ir import Builder, Graph, Node
from tracejit.ops import OPS, Op
from tracejit.ops.op import Fold, KernelCall, Scalar

CALLS = [(op.name, op.emit.name) for op in OPS.values() if isinstance(op.emit, KernelCall)]


def _text(node: Node, operands: list[str]) -> str:
    if isinstance(node.op.emit, Scalar):
        return f"({expression(node, operands)})"
    return f"({combine(node, 'v0', 'v1')})" if isinstance(node.op.emit, Fold) else "0"


def names_needed(op: Op, dtype: np.dtype) -> set[str]:
    """Return the names in what is emitted for an op on a dtype, or nothing if it does not accept that."""
    b = Builder(Graph())
    sample = op.samples[0]
    owns = sample.dtypes or (None,) * len(sample.shapes)
    inputs = [
        b.input(Aval(s, None, dtype if own is None else np.dtype(own)))
        for s, own in zip(sample.shapes, owns, strict=True)
    ]
    try:
        b.apply(op, inputs, dict(sample.params))
    except DTypeError:
        return set()
    text = " + ".join(_text(node, [f"v{i}" for i in range(len(node.inputs))]) for node in b.graph.nodes)
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return {name for name in names if not (name[0] == "v" and name[1:].isdigit())} - {"abs"}
