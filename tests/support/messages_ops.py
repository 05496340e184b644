# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of ops."""

import dataclasses
from collections.abc import Callable

import numpy as np
from messages_shared import M, N, V, X

import tracejit as tj
from tracejit.array import apply
from tracejit.errors import (
    AxisError,
    BoundsError,
    DimsError,
    DTypeError,
    KeyTypeError,
)
from tracejit.ops import OPS, linear
from tracejit.ops.op import Scalar, Table

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # ops/elementwise
    (
        lambda: -tj.dlarray([True]),
        DTypeError,
        "negative: not defined for bool; cast the operands first (x.astype(np.float64)).",
    ),
    # ops/indexing
    (
        lambda: tj.take(X, [0.5], 0),
        KeyTypeError,
        "take: index has dtype float64, expected integers. Round and cast it (index.astype(np.int64)), or "
        "turn a mask into indices with nonzero.",
    ),
    (
        lambda: apply("take", V, N, axis=1),
        AxisError,
        "take: axis 1 is out of range for x of 3; axes are 0 to 0, and a scalar has none.",
    ),
    (
        lambda: tj.scatter_add(tj.dlarray([True]), [0], [True]),
        DTypeError,
        "scatter_add: x has dtype bool, which cannot hold sums; cast it (x.astype(np.int64)).",
    ),
    (
        lambda: tj.take(X, [5], 0),
        BoundsError,
        "take: index 5 is out of range for an axis of size 2; valid indices are -2 to 1.",
    ),
    (
        lambda: tj.scatter_add(V, [0, 1], [1.0, 2.0, 3.0]),
        DimsError,
        "scatter_add: v has size 3, but the indexed elements have size 2 (x of 3 at an index of 2 along "
        "axis 0); broadcast v to that size.",
    ),
    (
        lambda: tj.take_along_axis(X, [0], 0),
        DimsError,
        "take_along_axis: index has size 1 and x 2(B) x 3(C); all sizes except along axis 0 must be equal.",
    ),
    (
        lambda: apply("add_along_axis", M, np.zeros((2, 3), int), V, axis=0),
        DimsError,
        "add_along_axis: v has size 3 and index 2x3; one number is added for each index, so broadcast v "
        "to that size.",
    ),
    # ops/linear
    (
        lambda: tj.dlarray(np.ones((1, 1, 1)), "BSS") @ tj.dlarray(np.ones((1, 1, 1)), "TSS"),
        DimsError,
        "matmul: an axis labelled B meets an axis labelled T in operands of 1(B) x 1(S) x 1(S) and 1(T) x "
        "1(S) x 1(S); transpose one of them, or drop the labels with stripdims.",
    ),
    (
        lambda: apply("matmul", M, M),
        DimsError,
        "matmul: x has 3 columns but y has 2 rows in operands of 2x3 and 2x3; these must be equal. "
        "Transpose y (x @ y.T)?",
    ),
    (
        lambda: apply("matmul_add", M, np.ones((3, 2)), V),
        DimsError,
        "matmul_add: z is float64 of size 3, but the product that is added to it is float64 of size 2x2; "
        "sizes and dtypes must be equal. Use matmul and add, which broadcasts.",
    ),
    (
        lambda: tj.outer(tj.dlarray(V, "C"), tj.dlarray(V, "C")),
        DimsError,
        "outer: the result of operands of 3(C) and 3(C) would be labelled 'CC', with C 2 times, but C, B "
        "and T occur once; drop the labels of one operand with stripdims.",
    ),
    (
        lambda: linear._loop(np.dtype("M8[s]"), np.dtype("M8[s]")),
        DTypeError,
        "matmul: not defined for datetime64[s] and datetime64[s]; cast the operands first "
        "(x.astype(np.float64)).",
    ),
    (
        lambda: apply("matmul", V, M),
        DimsError,
        "matmul: x (3) has 1 axes, but a matrix has at least 2; reshape it to one row or one column.",
    ),
    (
        lambda: tj.matmul(np.ones((2, 3, 3)), np.ones((4, 3, 3))),
        DimsError,
        "matmul: the batch axes (all but the last two) of operands of 2x3x3 and 4x3x3 do not align; "
        "aligned from the last, their sizes must be equal or 1.",
    ),
    # ops/movement
    (
        lambda: apply("reshape", M, shape=(4,)),
        DimsError,
        "reshape: x has 6 elements (2x3), but shape=(4,) holds 4; the sizes must have the same product.",
    ),
    (
        lambda: apply("transpose", M, axes=(0, 0)),
        DimsError,
        "transpose: axes=(0, 0) is not an order of the 2 axes of x (2x3); name each of 0 to 1 once.",
    ),
    (
        lambda: tj.broadcast_to(M, (3, 2)),
        DimsError,
        "broadcast_to: x of size 2x3 does not broadcast to shape=(3, 2); aligned from the last axis, each "
        "size of x must be 1 or equal.",
    ),
    (
        lambda: apply("slice", M, starts=(0,), stops=(1,), steps=(1,)),
        DimsError,
        "slice: starts=(0,), stops=(1,) and steps=(1,) must have one entry for each of the 2 axes of x "
        "(2x3).",
    ),
    (
        lambda: apply("slice", V, starts=(0,), stops=(9,), steps=(1,)),
        DimsError,
        "slice: range(0, 9, 1) leaves axis 0 of x (3); indices must lie in 0 to 2, and a step is not 0.",
    ),
    (
        lambda: apply("setslice", V, M, starts=(0,), stops=(1,), steps=(1,)),
        DimsError,
        "setslice: a value of size 2x3 does not broadcast to the 1 places of x (3) that are assigned; "
        "aligned from the last axis, each size must be 1 or equal.",
    ),
    (
        lambda: tj.concatenate([M, np.ones((2, 4))]),
        DimsError,
        "concatenate: array 0 has size 2x3 and array 1 2x4; all sizes except along axis 0 must be equal.",
    ),
    (
        lambda: apply("concatenate", 1.0, 2.0, axis=0),
        AxisError,
        "concatenate: axis 0 is out of range for arrays of scalar; a scalar has no axes, so reshape it to "
        "(1,) first.",
    ),
    (
        lambda: tj.concatenate([X, tj.dlarray(M, "CB")]),
        DimsError,
        "concatenate: the arrays have the formats 'BC' and 'CB'; joined axes must have the same labels. "
        "Permute or relabel one of them.",
    ),
    (
        lambda: apply("assemble", V, shape=(2,), places=(((0,), (2,), (1,)),)),
        DimsError,
        "assemble: a value of size 3 is to fill 2 places; the sizes must be equal.",
    ),
    (
        lambda: apply("pad", V, widths=(), value=0.0),
        DimsError,
        "pad: widths=() must be one pair (before, after) of sizes >= 0 for each of the 1 axes of x (3).",
    ),
    # ops/op
    (
        lambda: dataclasses.replace(OPS["exp"], emit=None),
        TypeError,
        "op 'exp' of kind ELEMENTWISE has emit=None",
    ),
    (
        lambda: dataclasses.replace(OPS["exp"], doc=""),
        TypeError,
        "op 'exp' lacks its doc or its samples",
    ),
    (
        lambda: dataclasses.replace(OPS["exp"], emit=Scalar("{0} if {0} else 0")),
        TypeError,
        "op 'exp': its template chooses with if, and, or or; choose with where(condition, a, b), because "
        "operands may be vectors",
    ),
    (
        lambda: Table([[OPS["exp"]], [dataclasses.replace(OPS["exp"], doc="another")]]),
        ValueError,
        "two ops are named 'exp'",
    ),
    (lambda: OPS["nothing"], KeyError, "'nothing'"),
    # ops/random
    (
        lambda: apply("permutation", M),
        DimsError,
        "permutation: expected a vector of float64 numbers, not 2x3 float64.",
    ),
    (
        lambda: apply("uniform32", V, shape=(2,), offset=0, stream=0),
        DimsError,
        "uniform32: the state of a generator is (key, position) in int64, not 3 float64.",
    ),
    # ops/reduce
    (
        lambda: apply("sum_add", M, M, axes=(0,), keepdims=False),
        DimsError,
        "sum_add: z is float64 of size 2x3, but the sum that is added to it is float64 of size 3; use sum "
        "and add, which broadcast and promote.",
    ),
    (
        lambda: tj.max(np.ones((2, 0)), 1),
        DimsError,
        "max: axis 1 of an array of 2x0 is empty, so it has no maximum; reduce axes that hold elements, "
        "or pad this one first.",
    ),
)
