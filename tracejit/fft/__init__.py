# SPDX-License-Identifier: BSD-3-Clause
"""Transforms under the names of scipy.fft: ``tj.fft.dct(x)``.

In: dlarrays, ndarrays or lists, of any number of axes. Out: Fourier, cosine and sine transforms, with derivatives of
any order. Functions of scipy.fft itself convert their operands to ndarrays, and refuse traced arrays; those of np.fft
take dlarrays, and are here under the same names.
May import: functions/.
"""

from tracejit.fft.cosines import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from tracejit.fft.exponentials import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)
from tracejit.util.missing import refusal

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "idct", "idctn", "idst",
    "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn",
]  # fmt: skip

__getattr__ = refusal("fft", __all__)
