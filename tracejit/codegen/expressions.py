# SPDX-License-Identifier: BSD-3-Clause
"""The text of an op on numbers or vectors: expressions of elementwise ops, and of folds."""

import numpy as np

from tracejit.aval import FLOAT32
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.target import vector_bytes
from tracejit.ir import Node
from tracejit.ops.op import Fold, Scalar

OF_HALVES = ("half_bits", "half_round", "half_value")
# Folds that targets define, free to reassociate, by the name of the op.
FAST_FOLDS = {"sum": "sum", "sum_add": "sum", "max": "max", "min": "min"}


# By way of larger or signed integers, as C compilers do for NumPy: -1.0 keeps its last bits. A conversion of a number
# that does not fit gives a result that depends on the processor, and vectors may give a different one.
_TO_INTEGERS = {
    **{np.dtype(name): "{R}(i32({0}))" for name in ("int8", "int16", "uint8", "uint16")},
    np.dtype(np.uint32): "u32(i64({0}))",
    np.dtype(np.uint64): (
        "where({0} >= {T}(9223372036854775808.0), u64(i64({0} - {T}(9223372036854775808.0))) + u64(1 << 63), "
        "u64(i64({0})))"
    ),
}


def expression(node: Node, operands: list[str], width: str = "") -> str:
    """Return the expression of an elementwise node, of numbers or, with a `width` such as x16, of vectors."""
    emit = node.op.emit
    assert isinstance(emit, Scalar)
    source, result = node.inputs[0].dtype, node.output.dtype
    template = emit.for_bool if emit.for_bool is not None and source.kind == "b" else emit.template
    if node.op.name == "cast" and source.kind == "f":
        template = _TO_INTEGERS.get(result, template)
    to_result = SUFFIXES[result] + width
    text = template.format(*operands, T=SUFFIXES[source], R=to_result)
    if node.op.name in OF_HALVES and source == FLOAT32 and vector_bytes() >= 32:
        text = f"fast_{text}"  # x86-64-v3, which has vectors of 32 bytes, has instructions for these
    # Numba widens small integers to 64 bits; the result has to wrap as NumPy's does.
    return f"{to_result}({text})" if _wraps(result) and node.op.name != "cast" else text


def combine(node: Node, accumulator: str, element: str, width: str = "") -> str:
    """Return the expression that folds an element into an accumulator, both numbers or vectors of a `width`."""
    emit = node.op.emit
    assert isinstance(emit, Fold)
    source, result = node.inputs[0].dtype, node.output.dtype
    to_result = SUFFIXES[result] + width
    if source != result:
        element = f"{to_result}({element})"
    if result.kind == "f" and node.op.name in FAST_FOLDS:
        return f"fold_{FAST_FOLDS[node.op.name]}_{SUFFIXES[result]}({accumulator}, {element})"
    text = emit.combine.format(accumulator, element, T=SUFFIXES[source], R=SUFFIXES[result])
    return f"{to_result}({text})" if _wraps(result) else text


def _wraps(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" and dtype != np.int64
