# SPDX-License-Identifier: BSD-3-Clause
"""Messages of functions of sequences: how to provoke them, their types and texts. messages.py has them in its table."""

import numpy as np

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ArgumentValueError,
    BoundsError,
    DimsError,
    DTypeError,
    GradientError,
)

X = tj.dlarray(np.ones((2, 3, 4)), "BTC")  # two observations of three steps, with four channels
PLAIN = np.ones((2, 3, 4))
GRU_OF_PYTORCH = "recurrent-bias-after-multiplication"
LSTM = (np.ones((8, 4)), np.ones((8, 2)), None)


def _twice(x: tj.dlarray) -> tj.dlarray:
    y = tj.lstm(x, None, None, np.ones((4, 2)), np.ones((4, 1)), None)[0]
    return tj.dlgradient(tj.dlgradient(y.sum(), x).sum(), x)


ROWS = (
    (
        lambda: tj.attention(PLAIN, X, X, 2),
        DimsError,
        "attention: an array of size 2x3x4 has no labels, but attention goes along the time (T); label it with "
        'dlarray(x, format), or pass data_format (for example "CB").',
    ),
    (
        lambda: tj.attention(X, tj.dlarray(PLAIN, "BSU"), X, 2),
        DimsError,
        "attention: k is of size 2(B) x 3(S) x 4(U), but its labels must be C (channels), T (time; or one S) and B if "
        "it has several observations, each once; relabel it with dlarray(x, format).",
    ),
    (
        lambda: tj.attention(X, X, X, 3),
        DimsError,
        "attention: q has 4 channels, which do not divide into num_heads = 3 equal heads.",
    ),
    (
        lambda: tj.attention(X, tj.dlarray(PLAIN[:1], "BTC"), X, 2),
        DimsError,
        "attention: q, k and v have 2, 1 and 2 observations (B), which must be equal.",
    ),
    (
        lambda: tj.attention(X, tj.dlarray(PLAIN[:, :2], "BTC"), X, 2),
        DimsError,
        "attention: k has length 2 and v length 3; each key needs its value.",
    ),
    (
        lambda: tj.attention(X, tj.dlarray(PLAIN[:, :, :3], "BTC"), X, 2),
        DimsError,
        "attention: k has 3 channels, but a head of q has 2; k must have 4, or 2 times a divisor of num_heads = 2.",
    ),
    (
        lambda: tj.attention(X, X, tj.dlarray(PLAIN[:, :, :3], "BTC"), 2),
        DimsError,
        "attention: v has 3 channels, which do not divide into the 2 heads of k.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, scale="half"),
        ArgumentError,
        "attention: scale must be a number or \"auto\", not 'half'.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, attention_mask="Causal"),
        ArgumentError,
        'attention: attention_mask must be "none", "causal" or an array, not \'Causal\'.',
    ),
    (
        lambda: tj.attention(X, X, X, 2, attention_mask=np.ones(3, int)),
        DTypeError,
        "attention: attention_mask is an array of int64, which could mean two things; pass booleans (mask != 0) for "
        "the keys that take part, or floating-point numbers to be added to scores.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, attention_mask=np.ones(3, complex)),
        DTypeError,
        "attention: attention_mask of complex128 numbers would lose their imaginary parts as float64, in a function of "
        "real numbers; pass x.real, x.imag or abs(x).",
    ),
    (
        lambda: tj.attention(X, X, X, 2, attention_mask=tj.dlarray(np.ones((3, 3)), "BT")),
        DimsError,
        "attention: attention_mask is of size 3(B) x 3(T), but its axes are (batch, heads, queries, keys), aligned "
        "from the last one; pass a mask of observations and keys as padding_mask, or remove the labels with "
        "stripdims(attention_mask).",
    ),
    (
        lambda: tj.lstm(X, None, None, *LSTM, mask=tj.dlarray(np.ones((2, 3)), "UB")),
        DimsError,
        "lstm: mask is of size 2(U) x 3(B), but must be (batch, steps) = (2, 3), or have the labels B and T.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, attention_mask=np.ones((2, 3))),
        DimsError,
        "attention: attention_mask is of size 2x3, but must broadcast to (batch, heads, queries, keys) = (2, 2, 3, 3).",
    ),
    (
        lambda: tj.attention(X, X, X, 2, padding_mask=np.ones((3, 2))),
        DimsError,
        "attention: padding_mask is of size 3x2, but must be (batch, keys) = (2, 3), or have the labels B and T.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, dropout_probability=1.0),
        ArgumentError,
        "attention: dropout_probability must be a probability, 0 <= p < 1, not 1.0.",
    ),
    (
        lambda: tj.attention(X, X, X, 2, scale=np.ones(2)),
        ArgumentError,
        'attention: scale must be a number or "auto", not array([1., 1.]).',
    ),
    (
        lambda: tj.lstm(X, None, None, *LSTM, direction="backward"),
        ArgumentError,
        'lstm: direction must be "forward", "reverse" or "bidirectional", not \'backward\'.',
    ),
    (
        lambda: tj.lstm(X, None, None, np.ones((8, 4)), np.ones((6, 2)), None),
        DimsError,
        "lstm: recurrent_weights are of size 6x2, but must be (4 H, H) for H hidden units, direction 'forward'.",
    ),
    (
        lambda: tj.lstm(X, None, None, np.ones((8, 3)), np.ones((8, 2)), None),
        DimsError,
        "lstm: weights are of size 8x3, but x has 4 channels and recurrent_weights have 8 rows; weights must be "
        "(8, 4).",
    ),
    (
        lambda: tj.lstm(X, None, None, *LSTM[:2], np.ones(6)),
        DimsError,
        "lstm: bias is of size 6, but must be (8,) for 2 hidden units.",
    ),
    (
        lambda: tj.lstm(X, np.ones((3, 2)), None, *LSTM),
        DimsError,
        "lstm: h0 is of size 3x2, but must be (2,) or have 2 channels (C) and 2 observations (B), as x has them.",
    ),
    (
        lambda: tj.lstm(X, None, None, *LSTM, mask=np.ones(3)),
        DimsError,
        "lstm: mask is of size 3, but must be (batch, steps) = (2, 3), or have the labels B and T.",
    ),
    (
        lambda: tj.gru(X, None, np.ones((6, 4)), np.ones((6, 2)), None, reset_gate_mode="after"),
        ArgumentError,
        "gru: reset_gate_mode must be 'after-multiplication', 'before-multiplication' or "
        "'recurrent-bias-after-multiplication', not 'after'.",
    ),
    (
        lambda: tj.gru(X, None, np.ones((6, 4)), np.ones((6, 2)), np.ones(12)),
        DimsError,
        "gru: bias is of size 12, but must be (6,) for 2 hidden units. One of 12 elements is for "
        "reset_gate_mode='recurrent-bias-after-multiplication'.",
    ),
    (
        lambda: tj.gru(X, None, np.ones((6, 4)), np.ones((6, 2)), np.ones(6), reset_gate_mode=GRU_OF_PYTORCH),
        DimsError,
        "gru: bias is of size 6, but must be (12,) for 2 hidden units. One of 6 elements is for "
        "reset_gate_mode='after-multiplication' or 'before-multiplication'.",
    ),
    (
        lambda: tj.gru(X, None, np.ones((6, 4)), np.ones((6, 2)), np.ones(5)),
        DimsError,
        "gru: bias is of size 5, but must be (6,) for 2 hidden units.",
    ),
    (
        lambda: tj.rnn(X, None, np.ones((2, 4)), np.ones((2, 2)), None, activation="sigmoid"),
        ArgumentError,
        'rnn: activation must be "tanh" or "relu", not \'sigmoid\'.',
    ),
    (
        lambda: tj.dlfeval(_twice, tj.dlarray(np.ones((2, 3)), "CT")),
        GradientError,
        "lstm: there are no second derivatives; differentiate once, or write the steps as a loop of matrix products "
        "and activations, which can be differentiated to any order.",
    ),
    (
        lambda: tj.ctc(X, [[1], [1]], reduction="sum"),
        ArgumentError,
        'ctc: reduction must be "mean" or "none", not \'sum\'.',
    ),
    (
        lambda: tj.ctc(X, [[1], [1]], blank_index="middle"),
        ArgumentError,
        'ctc: blank_index must be "first", "last" or an integer, not \'middle\'.',
    ),
    (
        lambda: tj.ctc(X, [[1], [1]], blank_index=4),
        ArgumentError,
        "ctc: blank_index is 4, but y has 4 classes, 0 to 3.",
    ),
    (
        lambda: tj.ctc(X, [1, 1, 1]),
        DimsError,
        "ctc: targets are of size 3, but must be (batch, labels) for 2 observations, or have the labels B and T.",
    ),
    (
        lambda: tj.ctc(X, [[True], [True]]),
        ArgumentError,
        "ctc: targets are bool, but must be numbers of classes.",
    ),
    (
        lambda: tj.ctc(X, [[1], [4]]),
        BoundsError,
        "ctc: targets are 1 to 4, but there are 4 classes; they must be 0 to 3.",
    ),
    (
        lambda: tj.ctc(X, [[1], [0]]),
        BoundsError,
        "ctc: targets hold the blank class, 0, which no label is; leave padding out by target_mask, or choose another "
        "blank_index.",
    ),
    (
        lambda: tj.ctc(X, [[1.0], [1.5]]),
        ArgumentValueError,
        "ctc: targets have fractions, but must be numbers of classes.",
    ),
    (
        lambda: tj.ctc(X, [[1], [1]], [3, 4]),
        BoundsError,
        "ctc: y_mask counts 3 to 4 steps of y, of which there are 3; the numbers must be 0 to 3.",
    ),
)
