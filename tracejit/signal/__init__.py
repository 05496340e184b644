# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions under the names of scipy.signal: ``tj.signal.fftconvolve(x, kernel, mode="same")``.

In: dlarrays, ndarrays or lists, of any number of axes. Out: convolutions and correlations, with derivatives of any
order by both operands. Functions of scipy.signal itself convert their operands to ndarrays, and refuse traced arrays.
Transforms of segments are `tj.stft` and `tj.istft`.
May import: functions/.
"""

from tracejit.signal.convolutions import convolve, correlate, fftconvolve, oaconvolve

__all__ = ["convolve", "correlate", "fftconvolve", "oaconvolve"]
