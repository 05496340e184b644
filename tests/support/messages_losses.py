# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of activations, dense layers, encodings and losses."""

from collections.abc import Callable

import numpy as np
from messages_shared import M, V, X

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    DimsError,
    DTypeError,
)

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    # functions/layers/activations
    (
        lambda: tj.softmax(tj.dlarray(V, "B")),
        DimsError,
        "softmax: an array of size 3(B) has no channels (C) to sum over; name the axis instead, with axis=.",
    ),
    (
        lambda: tj.gelu(X, approximation="erf"),
        ArgumentError,
        'gelu: approximation must be "none" or "tanh", not \'erf\'.',
    ),
    (
        lambda: tj.softmax(X, axis=0, data_format="BC"),
        ArgumentError,
        "softmax: axis=0 and data_format='BC' both say where the channels are; pass one of them.",
    ),
    # functions/layers/losses
    (
        lambda: tj.crossentropy(None, X),
        ArgumentError,
        "crossentropy: expected an array, a number or a (nested) list of numbers as y, not None.",
    ),
    (
        lambda: tj.mse(M, M, data_format="BX"),
        DimsError,
        "mse: data_format 'BX' has the label 'X'; labels are S (spatial), C (channel), B (batch), T (time) and U "
        "(unspecified).",
    ),
    (
        lambda: tj.l1loss(X, M, M, weights_format="B"),
        DimsError,
        "l1loss: weights_format 'B' labels 1 axes, but the data has 2; give one label for each axis (U where an axis "
        "has no meaning).",
    ),
    (
        lambda: tj.crossentropy(X, 1j * M),
        DTypeError,
        "crossentropy: targets of complex128 numbers would lose their imaginary parts as float64, in a function of "
        "real numbers; pass x.real, x.imag or abs(x).",
    ),
    (
        lambda: tj.huber(X, M, transition_point=np.inf),
        ArgumentError,
        "huber: transition_point must be one positive, finite number, not inf.",
    ),
    (
        lambda: tj.huber(X, M, transition_point=tj.dlarray(V)),
        ArgumentError,
        "huber: transition_point must be one positive, finite number, not 3 dlarray float64 [1. 1. 1.].",
    ),
    # functions/layers/dense
    (
        lambda: tj.fullyconnect(tj.dlarray(V, "B"), M, 0),
        DimsError,
        "fullyconnect: X ('B', 3) has no channels to sum over; expected a label C, S or U.",
    ),
    (
        lambda: tj.fullyconnect(X, np.ones((3, 2)), None),
        DimsError,
        "fullyconnect: weights have 2 columns but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Pass weights.T?",
    ),
    (
        lambda: tj.fullyconnect(X, M.T[:1], None),
        DimsError,
        "fullyconnect: weights have 2 columns but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Check both sizes.",
    ),
    (
        lambda: tj.fullyconnect(X, V, None),
        DimsError,
        "fullyconnect: weights are of size 3 but X ('BC', 2x3) has 3 channels; weights must be (outputs, "
        "channels). Check both sizes.",
    ),
    (
        lambda: tj.fullyconnect(X, M, V),
        DimsError,
        "fullyconnect: bias is of size 3, but weights have 2 rows; bias must be (outputs,).",
    ),
    # functions/layers/encoding
    (
        lambda: tj.onehotdecode(X, 4),
        DimsError,
        "onehotdecode: y (2(B) x 3(C)) has size 3 along axis='C', but there are 4 classes; these must be "
        "equal.",
    ),
    (
        lambda: tj.onehotencode([1], "C", []),
        ArgumentError,
        "onehotencode: class_names must be a number of classes or a sequence of numbers or strings, not [].",
    ),
    (
        lambda: tj.onehotencode([1], "C", [1, 1]),
        ArgumentError,
        "onehotencode: class_names contains 1 more than once; name each class once.",
    ),
    (
        lambda: tj.onehotencode(["eel"], "C", ["cat", "dog"]),
        ArgumentError,
        "onehotencode: labels contains 'eel', which is not one of the 2 classes ['cat', 'dog']; add it to "
        "class_names.",
    ),
    (
        lambda: tj.onehotencode([1], "C", 2, dtype="number"),
        ArgumentError,
        "onehotencode: dtype must be a NumPy dtype such as np.float32, not 'number'.",
    ),
    (
        lambda: tj.onehotencode([1], "C", ["cat"]),
        ArgumentError,
        "onehotencode: labels are numbers (int64), but class_names are strings; give the classes as numbers.",
    ),
    (
        lambda: tj.onehotencode([1], "X", 2),
        DimsError,
        "onehotencode: axis='X' is not a label; expected a number or one of S, C, B, T, U.",
    ),
    (
        lambda: tj.onehotencode([3], "C", 2),
        ArgumentError,
        "onehotencode: labels contains 3, which is not one of the 2 classes [0, 1]; add it to class_names.",
    ),
    (
        lambda: tj.onehotencode(tj.dlarray([[0, 1]], "BC"), "C", 2),
        DimsError,
        "onehotencode: labels of size 1(B) x 2(C) have an axis C of size 2; it must be of size 1 to hold "
        "the classes. Give the place of a new axis as a number.",
    ),
    # functions/layers/losses
    (
        lambda: tj.l2loss(X, M, np.ones((4, 5))),
        DimsError,
        "l2loss: weights of 4x5 cannot be applied to y of 2(B) x 3(C); expected the sizes of y, or labels "
        "of y (as a dlarray) and its sizes or 1.",
    ),
    (
        lambda: tj.crossentropy(X, M, classification_mode="single"),
        ArgumentError,
        'crossentropy: classification_mode must be "single-label" or "multilabel", not \'single\'.',
    ),
    (
        lambda: tj.huber(X, M, transition_point=0),
        ArgumentError,
        "huber: transition_point must be one positive, finite number, not 0.",
    ),
    (
        lambda: tj.mse(X, V),
        DimsError,
        "mse: y is of size 2(B) x 3(C), but targets are of size 3; they must have the same sizes and "
        "labels. Sizes are not broadcast: (2, 3) against (3,) would give 6 differences.",
    ),
    (
        lambda: tj.crossentropy(X, V),
        DimsError,
        "crossentropy: y is of size 2(B) x 3(C), but targets are of size 3; they must have the same sizes "
        "and labels. For classes as numbers use indexcrossentropy, or onehotencode.",
    ),
    (
        lambda: tj.l1loss(X, M, reduction="mean"),
        ArgumentError,
        'l1loss: reduction must be "sum" or "none", not \'mean\'.',
    ),
    (
        lambda: tj.l1loss(X, M, normalization_factor="all"),
        ArgumentError,
        "l1loss: normalization_factor must be one of batch-size, all-elements, mask-included, none, not "
        "'all'.",
    ),
    (
        lambda: tj.crossentropy(tj.dlarray(M, "BT"), M),
        DimsError,
        "crossentropy: y is of 2(B) x 3(T), without classes (C); label them, or use "
        'classification_mode="multilabel" for elements that are independent probabilities.',
    ),
    (
        lambda: tj.crossentropy(X, M, tj.dlarray(V, "C"), weights_format="C"),
        DimsError,
        "crossentropy: weights_format='C' is given for weights of size 3(C), which have labels of their "
        "own; leave weights_format out.",
    ),
    (
        lambda: tj.crossentropy(X, M, weights_format="C"),
        ArgumentError,
        "crossentropy: weights_format='C' is given without weights; pass both.",
    ),
    (
        lambda: tj.l1loss(X, M, normalization_factor="mask-included"),
        ArgumentError,
        'l1loss: normalization_factor="mask-included" needs mask, which says what is included.',
    ),
)
