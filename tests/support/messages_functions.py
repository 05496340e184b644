# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of functions of the toolbox."""

from collections.abc import Callable

import numpy as np
from messages_shared import M, V, X

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    AxisError,
    DimsError,
    DTypeError,
)

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # functions/axes
    (
        lambda: tj.sum(X, 0.5),
        ArgumentError,
        "sum: axis must be an integer, a tuple of integers, a string of labels or None, not 0.5.",
    ),
    (
        lambda: tj.sum(X, (0, 0)),
        DimsError,
        "sum: axis=(0, 0) names axis 0 twice in an array of 2(B) x 3(C); name each axis once.",
    ),
    (
        lambda: tj.sum(X, 2),
        AxisError,
        "sum: axis 2 is out of range for an array of 2(B) x 3(C); axes are -2 to 1.",
    ),
    (
        lambda: tj.mean(1.0, 0),
        AxisError,
        "mean: axis 0 is out of range for an array of scalar; a scalar has no axes.",
    ),
    (
        lambda: tj.sum(X, "X"),
        DimsError,
        "sum: axis='X' is not a string of labels; labels are S (spatial), C (channel), B (batch), T "
        "(time) and U (unspecified).",
    ),
    (
        lambda: tj.sum(M, "C"),
        DimsError,
        "sum: axis='C' names axes by label, but the array of 2x3 is unformatted; give numbers, or label "
        "it with dlarray(x, format).",
    ),
    (
        lambda: tj.cumsum(tj.dlarray(np.ones((2, 2)), "SS"), "S"),
        DimsError,
        "cumsum: axis='S' names 2 axes of an array of 2(S) x 2(S), but one is needed; give its number.",
    ),
    (
        lambda: tj.sum(X, "T"),
        DimsError,
        "sum: axis='T' names the label T, but the array is of 2(B) x 3(C); name labels of its format 'BC'.",
    ),
    # functions/creation
    (
        lambda: tj.zeros((2, -1)),
        DimsError,
        "zeros: sizes must not be negative, found (2, -1) as shape.",
    ),
    (
        lambda: tj.arange(0, 1, 0),
        ArgumentError,
        "arange: cannot go from 0 to 1 by 0: division by zero; give numbers, and a step that leads from "
        "start to stop.",
    ),
    (
        lambda: tj.zeros("two"),
        DimsError,
        "zeros: shape must be an integer or a tuple of integers, not 'two'.",
    ),
    (
        lambda: tj.zeros(2, dtype="number"),
        ArgumentError,
        "zeros: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    # functions/elementwise
    (
        lambda: tj.round(X, 0.5),
        ArgumentError,
        "round: decimals must be an integer, not 0.5.",
    ),
    (
        lambda: tj.cast(X, "number"),
        ArgumentError,
        "cast: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    # functions/formats
    (
        lambda: tj.softmax(M),
        DimsError,
        "softmax: an array of size 2x3 has no labels, but softmax sums over the channels (C); label it "
        'with dlarray(x, format), or pass data_format (for example "CB"), or pass axis.',
    ),
    (
        lambda: tj.softmax(X, data_format="BC"),
        DimsError,
        "softmax: data_format='BC' is given for x of size 2(B) x 3(C), which has labels of its "
        "own; leave data_format out, or remove the labels with stripdims(x).",
    ),
    # functions/labels
    (
        lambda: tj.finddim(X, "X"),
        DimsError,
        "finddim: label must be one of S, C, B, T, U, not 'X'.",
    ),
    (
        lambda: tj.dims(3.0),
        ArgumentError,
        "dims: x must be a dlarray, not float; make one with dlarray(x).",
    ),
    (
        lambda: tj.stripdims(X, "B"),
        DimsError,
        "stripdims: format 'B' has no place for every axis of 2(B) x 3(C); name each of its labels.",
    ),
    # functions/numpy_function
    (
        lambda: tj.numpy_function(M),
        ArgumentError,
        "numpy_function: expected a function, not ndarray; pass the function itself, f, not f(x).",
    ),
    (
        lambda: tj.numpy_function(abs, like={"n": np.arange(2)}),
        ArgumentError,
        "numpy_function: like['n'] is 2 int64, expected floating point; leave values that do not vary out of like.",
    ),
    (
        tj.numpy_function(abs, like=V),
        ArgumentError,
        "abs: the vector that stands for like is missing; pass it as the first argument.",
    ),
    (
        lambda: tj.numpy_function(abs, like={"w": V}).flatten([V]),
        ArgumentError,
        "flatten: parameters are TreeDef(['*']), expected TreeDef({'w': '*'}), as in like.",
    ),
    (
        lambda: tj.numpy_function(abs, like={"w": V}).flatten({"w": M}),
        DimsError,
        "flatten: parameters['w'] has shape (2, 3), expected (3,), as in like.",
    ),
    (
        lambda: tj.numpy_function(abs, like={"w": V}).unflatten(M),
        DimsError,
        "unflatten: x has shape (2, 3), expected (3,), the numbers of like.",
    ),
    (
        lambda: tj.numpy_function(abs).unflatten(V),
        ArgumentError,
        "numpy_function: without like there are no parameters to flatten; pass numpy_function(f, like=params).",
    ),
    # functions/random
    (
        lambda: tj.randperm(3, 4),
        DimsError,
        "randperm: k=4 different integers cannot be chosen from n=3.",
    ),
    (
        lambda: tj.rand(2, dtype=int),
        DTypeError,
        "rand: the numbers are of floating point, so the dtype must be float64 or float32, not int64; "
        "randi draws integers.",
    ),
    (
        lambda: tj.randi((3, 1)),
        ArgumentError,
        "randi: the limits 3 (included) and 1 (excluded) must have 1 to 2**53 integers between them.",
    ),
    (
        lambda: tj.randi((0, 300), dtype=np.int8),
        DTypeError,
        "randi: int8 does not hold all integers from 0 to 299; choose another dtype.",
    ),
    (
        lambda: tj.dropout(X, 1.0),
        ArgumentError,
        "dropout: p must be a probability, 0 <= p < 1, not 1.0.",
    ),
    (
        lambda: tj.rand(2, generator=3),
        ArgumentError,
        "rand: generator must be a tj.Generator, not int.",
    ),
    (
        lambda: tj.randi("x"),
        ArgumentError,
        "randi: limits must be an integer `high` or a tuple (low, high) of integers, not 'x'.",
    ),
    # functions/reductions
    (
        lambda: tj.argmax(np.ones((2, 0))),
        DimsError,
        "argmax: an array of 2x0 is empty, so it has no extremum; pass at least one element.",
    ),
    (
        lambda: tj.norm(V, 3),
        ArgumentValueError,
        "norm: ord must be None, 1, 2, inf or 'fro', not 3.",
    ),
    (
        lambda: tj.norm(V, "fro"),
        DimsError,
        "norm: ord='fro' applies to matrices, but axis=None of an array of 3 names 1 axes; give axis, or "
        "ord=None for the root of the sum of all squares.",
    ),
    (
        lambda: tj.norm(M, 2),
        ArgumentError,
        "norm: ord=2 of a matrix is its largest singular value, which is not supported; use ord='fro' for "
        "the root of the sum of squares, or give one axis for the norms of vectors.",
    ),
    # functions/rng
    (
        lambda: tj.rng(-1),
        ArgumentError,
        'rng: a seed is an integer from 0 to 2**64 - 1, "default" (0) or "shuffle" (new each time), not -1.',
    ),
    (
        lambda: setattr(tj.Generator(0), "state", 3),
        ArgumentError,
        "state: expected an RngState, as rng() and .state return, not 3.",
    ),
    (
        lambda: tj.rng(tj.RngState(0, -1)),
        ArgumentError,
        "state: a position is an integer from 0 to 2**63 - 1, not -1.",
    ),
)
