# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table of messages (messages.py) of convolutions and stft: a call, the error, its text."""

from collections.abc import Callable

import numpy as np

import tracejit as tj
from tracejit.errors import ArgumentError, DimsError, DTypeError

WAVE = np.ones((2, 12))

ROWS: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
    (
        lambda: tj.signal.convolve(WAVE, [1.0, 2.0]),
        DimsError,
        "signal.convolve: in1 has 2 axes and in2 1, expected as many; reshape one of them.",
    ),
    (
        lambda: tj.signal.correlate(WAVE, WAVE, "circular"),
        ArgumentError,
        "signal.correlate: mode must be 'full', 'same' or 'valid', not 'circular'.",
    ),
    (
        lambda: tj.signal.convolve(WAVE, WAVE, method="slow"),
        ArgumentError,
        "signal.convolve: method must be 'auto', 'direct' or 'fft', not 'slow'.",
    ),
    (
        lambda: tj.signal.fftconvolve(WAVE, np.ones((3, 4)), axes=1),
        DimsError,
        "signal.fftconvolve: in1 has size (2, 12) and in2 (3, 4), expected equal sizes, or 1, along axes that are not "
        "convolved: (0,).",
    ),
    (
        lambda: tj.signal.oaconvolve(WAVE, np.ones((3, 4)), "valid"),
        DimsError,
        "signal.oaconvolve: in1 has size (2, 12) and in2 (3, 4), expected for mode='valid' that one of them is at "
        "least as large along every axis.",
    ),
    (
        lambda: tj.stft(1.0),
        DimsError,
        "stft: an array without axes is no signal; pass a vector.",
    ),
    (
        lambda: tj.stft(WAVE),
        DimsError,
        "stft: x of size 2x12 has 12 steps along axis 1, fewer than the 128 of the window; use a shorter window, or "
        "pad the signal.",
    ),
    (
        lambda: tj.stft(WAVE, 0),
        DimsError,
        "stft: window has size 0, expected a vector of weights, or a length above 0.",
    ),
    (
        lambda: tj.stft(WAVE, np.ones(4, complex)),
        DTypeError,
        "stft: window has dtype complex128, expected real weights; pass window.real.",
    ),
    (
        lambda: tj.stft(WAVE, 4, overlap_length=4),
        DimsError,
        "stft: overlap_length is 4, expected 0 to 3: less than the window has.",
    ),
    (
        lambda: tj.istft(WAVE, 4, fft_length=3),
        DimsError,
        "istft: fft_length is 3, expected 4 or more, the length of the window.",
    ),
    (
        lambda: tj.istft(WAVE[0], 4),
        DimsError,
        "istft: y of size 12 has no axis of frequencies before axis 0, that of segments; pass what stft returns, or "
        "move the axes (np.moveaxis).",
    ),
    (
        lambda: tj.istft(WAVE, 4),
        DimsError,
        "istft: y has 2 frequencies in 12 segments, expected 3 in one segment or more, for fft_length=4 and "
        "one_sided=True; pass the lengths that stft had.",
    ),
)
