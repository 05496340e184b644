# SPDX-License-Identifier: BSD-3-Clause
"""The Fourier transform extension of the standard."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import wanted_dtype
from tracejit.errors import DTypeError
from tracejit.xp.arrays import array, beyond_standard, check_device, operand

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip


def _along_one(name: str, summary: str) -> Callable[..., Any]:
    """Return a transform of NumPy along one axis as the standard spells it."""
    transform = getattr(np.fft, name)

    def applied(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return array(transform(operand(x), n, axis, norm))

    return _described(applied, name, summary)


def _along_several(name: str, summary: str) -> Callable[..., Any]:
    """Return a transform of NumPy along several axes as the standard spells it."""
    transform = getattr(np.fft, name)

    def applied(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return array(transform(operand(x), s, axes, norm))

    return _described(applied, name, summary)


def _described(function: Callable[..., Any], name: str, summary: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


fft = _along_one("fft", "Return sums of x e**(-2 pi i k t / n) along an axis.")
ifft = _along_one("ifft", "Return means of x e**(2 pi i k t / n) along an axis.")
rfft = _along_one("rfft", "Return the first n // 2 + 1 elements of the transform of real numbers.")
irfft = _along_one("irfft", "Return the n real numbers whose transform begins with x.")
hfft = _along_one(
    "hfft", "Return the transform, which is real, of n numbers: x, and the conjugates of x after it."
)
ihfft = _along_one(
    "ihfft", "Return the first n // 2 + 1 numbers whose transform, with their conjugates, is x."
)
fftn = _along_several("fftn", "Return the transform along several axes.")
ifftn = _along_several("ifftn", "Return the inverse transform along several axes.")
rfftn = _along_several(
    "rfftn", "Return the transform of real numbers along several axes, half of it in the last one."
)
irfftn = _along_several("irfftn", "Return the real numbers whose transform along several axes is x.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of the elements of a transform, in cycles per unit of the spacing `d`."""
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of the elements of a transform of real numbers."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any) -> Any:
    check_device(f"fft.{name}", device)
    wanted = wanted_dtype(f"xp.fft.{name}", np.float64 if dtype is None else dtype)
    if wanted.kind != "f":
        raise DTypeError(f"xp.fft.{name}: dtype is {wanted}, expected one of real floating-point numbers.")
    return dlarray(getattr(np.fft, name)(n, d).astype(wanted))


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Return the elements with that of frequency 0 in the middle."""
    return array(np.fft.fftshift(operand(x), axes))


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Return the elements with that of frequency 0 at the start, as before ``fftshift``."""
    return array(np.fft.ifftshift(operand(x), axes))


__getattr__ = beyond_standard(__name__, np.fft)
