# SPDX-License-Identifier: BSD-3-Clause
"""vector_forms: the lines of a nest that can be written for vectors as they are for numbers."""

from tracejit.ir import Node
from tracejit.ops.op import Scalar
from tracejit.passes.loops.nest import Accumulate, Compute, Line

_CALLS = frozenset({"floordiv", "mod"})  # of floats they call the C library, number by number
_FOLDS = frozenset({"sum", "sum_add", "max", "min"})


def has_vector_form(line: Line) -> bool:
    """Return whether a line can be written for vectors."""
    if isinstance(line, Accumulate):
        source, result = line.node.inputs[0].dtype, line.node.output.dtype
        return line.node.op.name in _FOLDS and result.kind == "f" and source == result
    return not isinstance(line, Compute) or _op_has_vector_form(line.node)


def _op_has_vector_form(node: Node) -> bool:
    emit, source, target = node.op.emit, node.inputs[0].dtype, node.output.dtype
    assert isinstance(emit, Scalar)
    if node.op.name == "cast":
        return target.kind in "fb" or source.kind != "f"
    calls = "_{T}(" in emit.template
    return not calls or (source.kind == "f" and node.op.name not in _CALLS)
