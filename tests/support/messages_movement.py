# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of moves, indexing and products of matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
from messages_shared import M, V, X

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    AxisError,
    BoundsError,
    DimsError,
    DTypeError,
    KeyTypeError,
    RangeError,
)


def put(x: Any, key: Any, value: Any) -> None:
    """Assign to an element of a copy."""
    x.copy()[key] = value


ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # functions/indexing
    (
        lambda: put(tj.dlarray(np.arange(3)), 0, float("nan")),
        ArgumentValueError,
        "setitem: the value nan does not fit x of type int64, which has no NaN; cast x first (x.astype(np.float64)).",
    ),
    (
        lambda: put(tj.dlarray(np.arange(3, dtype=np.int8)), 0, 300.0),
        RangeError,
        "setitem: the value 300.0 does not fit x of type int8 (-128 to 127); cast x first.",
    ),
    (
        lambda: put(tj.dlarray(np.arange(3)), 0, float("inf")),
        RangeError,
        "setitem: the value inf does not fit x of type int64 (-9223372036854775808 to 9223372036854775807); cast x "
        "first.",
    ),
    (
        lambda: put(X[0], 0, 2j),
        DTypeError,
        "setitem: the value 2j is complex, and x is float64; cast x first (x.astype(np.complex128)), or set "
        "value.real.",
    ),
    (
        lambda: X[[0.5]],
        KeyTypeError,
        "getitem: an index array has dtype float64, expected integers or booleans. Round and cast it "
        "(index.astype(np.int64)).",
    ),
    (
        lambda: X[0, 0, 0],
        BoundsError,
        "getitem: the key indexes 3 axes, but x (2(B) x 3(C)) has 2; leave out indices, or add axes with "
        "None.",
    ),
    (
        lambda: X[np.ones(3, bool)],
        BoundsError,
        "getitem: a mask of 3 does not fit x (2(B) x 3(C)) from axis 0 on; it must have the sizes of the "
        "axes that it selects from.",
    ),
    (
        lambda: put(X, 0, tj.dlarray(V, "T")),
        DimsError,
        "setitem: the value is 3(T), but the assigned part of x is 3(C); labels must agree. Permute the "
        "value, or use stripdims.",
    ),
    (
        lambda: put(X, 0, np.ones(4)),
        DimsError,
        "setitem: a value of size 4 does not broadcast to the 3(C) places of x (2(B) x 3(C)) that are "
        "assigned; aligned from the last axis, each size must be 1 or equal.",
    ),
    (
        lambda: X[[0, 1], [0, 1, 2]],
        DimsError,
        "getitem: index arrays of sizes 2 and 3 do not broadcast together; their sizes, aligned from the "
        "last, must be equal or 1. Index one axis after the other, or reshape them.",
    ),
    (
        lambda: X[[0, 5], [0, 1]],
        BoundsError,
        "getitem: index 5 is out of range for an axis of size 2; valid indices are -2 to 1.",
    ),
    (
        lambda: X[2],
        BoundsError,
        "getitem: index 2 is out of range for axis 0 of x (2(B) x 3(C)); valid indices are -2 to 1.",
    ),
    (
        lambda: tj.dlarray(np.ones((0, 3)))[0],
        BoundsError,
        "getitem: index 0 is out of range for axis 0 of x (0x3); the axis is empty.",
    ),
    (
        lambda: put(tj.dlarray(np.zeros(2, np.int8)), 0, 300),
        RangeError,
        "setitem: the value 300 does not fit x of type int8 (-128 to 127); cast x first.",
    ),
    (
        lambda: X[0.5:],
        ArgumentError,
        "getitem: slice(0.5, None, None) is not an index of an axis: slice indices must be integers or "
        "None or have an __index__ method.",
    ),
    (
        lambda: X["C"],
        KeyTypeError,
        "getitem: 'C' is not an index; use integers, slices, ..., None, integer arrays or boolean masks.",
    ),
    (
        lambda: X[..., ...],
        BoundsError,
        "getitem: the key has two ellipses (...); one stands for all axes left out.",
    ),
    # functions/linear
    (
        lambda: tj.matmul(V, np.ones(4)),
        DimsError,
        "matmul: x (3) has 3 elements, but y (4) has 4 elements; these must be equal.",
    ),
    (
        lambda: tj.tensordot(M, M, ((0, 1), (0,))),
        DimsError,
        "tensordot: axes=((0, 1), (0,)) pairs the axes (0, 1) of x with (0,) of y; name the same number "
        "of each, none twice.",
    ),
    (
        lambda: tj.einsum(M, [0, 1]),
        ArgumentError,
        "einsum: subscripts come first, as a string such as 'ij,jk->ik', not ndarray; write lists of axis "
        "numbers as letters.",
    ),
    (
        lambda: tj.einsum("ij,jk", M),
        ArgumentError,
        "einsum: subscripts 'ij,jk' have 2 terms for 1 operands; separate one term for each operand by "
        "commas.",
    ),
    (
        lambda: tj.einsum("...i,...i->i", M, M),
        ArgumentError,
        "einsum: '...' stands for 1 axes in the operands of '...i,...i->i', but the result has none; add "
        "'...' to the result, or name the axes to sum over them.",
    ),
    (
        lambda: np.trace(tj.dlarray(V)),
        DimsError,
        "trace: x of 3 has 1 axes, but a matrix has at least 2.",
    ),
    (
        lambda: tj.diag(np.ones((2, 2, 2))),
        DimsError,
        "diag: x of 2x2x2 must be a vector or a matrix.",
    ),
    (
        lambda: tj.matmul(1.0, M),
        DimsError,
        "matmul: x is a scalar, but a product of matrices needs axes; use x * y.",
    ),
    (
        lambda: tj.tensordot(M, M, (1, 2, 3)),
        ArgumentError,
        "tensordot: axes must be a number or a pair (axes of x, axes of y), not (1, 2, 3).",
    ),
    (
        lambda: tj.tensordot(M, M, 3),
        BoundsError,
        "tensordot: axes=3, but the operands of 2x3 and 2x3 have 2 and 2 axes; give a number from 0 to "
        "the smaller.",
    ),
    (
        lambda: tj.dot(M, M),
        DimsError,
        "dot: axis 1 of x (2x3) has size 3, but axis 0 of y (2x3), over which they are multiplied and "
        "summed, has size 2; these must be equal.",
    ),
    (
        lambda: tj.einsum("i1->i", M),
        ArgumentError,
        "einsum: 'i1' in subscripts 'i1->i' is not made of letters with at most one '...'.",
    ),
    (
        lambda: tj.einsum("i->i", M),
        DimsError,
        "einsum: the term 'i' names 1 axes, but operand 0 is of 2x3, with 2 axes; write one letter for "
        "each axis, or '...' for further ones.",
    ),
    (
        lambda: tj.einsum("ij->ii", M),
        ArgumentValueError,
        "einsum: the letter 'i' of subscripts 'ij->ii' occurs twice in the result.",
    ),
    (
        lambda: tj.einsum("ij->k", M),
        ArgumentValueError,
        "einsum: the letter 'k' of subscripts 'ij->k' is in no operand.",
    ),
    (
        lambda: tj.tensordot(M, M, None),
        ArgumentError,
        "tensordot: axes must be a number or a pair (axes of x, axes of y), not None.",
    ),
    (
        lambda: tj.einsum("ij,ij->i", M, np.ones((2, 4))),
        DimsError,
        "einsum: axes of sizes 3 and 4 have the letter 'j' in operands of 2x3 and 2x4 with the letters "
        "ij,ij; axes of one letter must be equal in size.",
    ),
    (
        lambda: tj.einsum("...", np.ones((1,) * 53)),
        ArgumentError,
        "einsum: subscripts '...' and its '...' need more letters than there are.",
    ),
    # functions/movement
    (
        lambda: tj.moveaxis(M, 0, (0, 1)),
        DimsError,
        "moveaxis: source=0 and destination=(0, 1) must name the same number of axes, each once.",
    ),
    (
        lambda: tj.expand_dims(M, (0, 0)),
        AxisError,
        "expand_dims: axis=(0, 0) must name places of the result from -4 to 3, each once.",
    ),
    (
        lambda: tj.expand_dims(X, 0, label="TT"),
        DimsError,
        "expand_dims: label='TT' must be one label, or one for each of the 1 new axes.",
    ),
    (
        lambda: tj.concatenate([]),
        ArgumentError,
        "concatenate: arrays must be a list or tuple of at least one array, not [].",
    ),
    (
        lambda: tj.roll(M, (1, 2, 3), (0, 1)),
        DimsError,
        "roll: shift=(1, 2, 3) and axis=(0, 1) have different lengths; give one shift, or one for each axis.",
    ),
    (
        lambda: tj.pad(X, 1, "linear_ramp"),
        ArgumentError,
        "pad: mode='linear_ramp' is not supported; use one of constant, edge, reflect, symmetric, wrap.",
    ),
    (
        lambda: tj.pad(M, -1),
        DimsError,
        "pad: pad_width=-1 for x of 2x3 must be made of integers >= 0.",
    ),
    (
        lambda: tj.repeat(M, (1, 2, 3), 0),
        DimsError,
        "repeat: repeats=(1, 2, 3) must be one number >= 0, or one for each of the 2 places of axis 0 of "
        "x (2x3).",
    ),
    (
        lambda: tj.tile(M, -1),
        DimsError,
        "tile: reps=-1 must be made of integers >= 0.",
    ),
    (
        lambda: tj.reshape(M, 2.5),
        ArgumentError,
        "reshape: shape must be an integer or a tuple of integers, not 2.5.",
    ),
    (
        lambda: tj.reshape(M, (4, -1)),
        DimsError,
        "reshape: shape=(4, -1) does not fit the 6 elements of x (2x3); one size may be -1, and the "
        "others must divide the number of elements.",
    ),
    (
        lambda: tj.transpose(X, "BT"),
        DimsError,
        "transpose: axes='BT' is not an order of the labels of x (2(B) x 3(C)); name each of its labels "
        "once.",
    ),
    (
        lambda: tj.stack([V, np.ones(4)]),
        DimsError,
        "stack: arrays of sizes 3 and 4 are given; all must have the same sizes.",
    ),
    (
        lambda: tj.split(M, 2, 1),
        DimsError,
        "split: axis 1 of x (2x3) does not divide into 2 equal parts; use array_split, or give the places "
        "to cut at.",
    ),
    (
        lambda: tj.array_split(M, 0),
        DimsError,
        "array_split: the number of parts must be at least 1, not 0.",
    ),
    (
        lambda: tj.pad(M, ((1, 2, 3),)),
        ArgumentError,
        "pad: pad_width must be a number, a pair (before, after) or one pair for each of the 2 axes of x, "
        "not ((1, 2, 3),).",
    ),
    (
        lambda: tj.squeeze(M, 0),
        DimsError,
        "squeeze: axis 0 of x (2x3) has size 2; only axes of size 1 can be dropped. Use a reduction or an "
        "index instead.",
    ),
    (
        lambda: tj.pad(np.ones((0, 2)), 1, "edge"),
        DimsError,
        "pad: axis 0 of x (0x2) is empty, so mode='edge' has no value to repeat; use mode=\"constant\".",
    ),
)
