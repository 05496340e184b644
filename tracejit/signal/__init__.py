# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions and filters under the names of scipy.signal: ``tj.signal.fftconvolve(x, kernel, mode="same")``.

In: dlarrays, ndarrays or lists, of any number of axes. Out: convolutions, correlations and filtered signals, with
derivatives of any order by all operands. Functions of scipy.signal itself convert
their operands to ndarrays, and refuse traced arrays.
Transforms of segments are `tj.stft` and `tj.istft`.
May import: functions/.
"""

from tracejit.signal.convolutions import convolve, correlate, fftconvolve, oaconvolve
from tracejit.signal.filters import convolve2d, correlate2d, detrend, hilbert, lfilter, resample, sosfilt
from tracejit.util.missing import refusal

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "detrend",
    "fftconvolve",
    "hilbert",
    "lfilter",
    "oaconvolve",
    "resample",
    "sosfilt",
]

__getattr__ = refusal("signal", __all__)
