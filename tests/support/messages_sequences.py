# SPDX-License-Identifier: BSD-3-Clause
"""Messages of functions of sequences: how to provoke them, their types and texts. messages.py has them in its table."""

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError

X = tj.dlarray(np.ones((2, 3, 4)), "BTC")  # two observations of three steps, with four channels
PLAIN = np.ones((2, 3, 4))

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
)
