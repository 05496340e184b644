# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms: NumPy's functions, whose results are dlarrays for all kinds of operands."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray


def _transform(name: str, where: str) -> Callable[..., dlarray]:
    """Return a transform of NumPy along one axis ("n, axis"), or several ("s, axes")."""
    numpys: Any = getattr(np.fft, name)
    own = {
        "n=None, axis=-1": (None, -1),
        "s=None, axes=(-2, -1)": (None, (-2, -1)),
        "s=None, axes=None": (None, None),
    }

    def function(x: Any, *given: Any, **options: Any) -> dlarray:
        size, axes = own[where]
        named = dict(
            zip((where[0], "axis" if where[0] == "n" else "axes", "norm"), (size, axes, None), strict=True)
        )
        named.update(zip(named, given, strict=False))
        found: dlarray = numpys(as_array(x, f"fft.{name}", "x"), **{**named, **options})
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return ``np.fft.{name}(x, {where}, norm=None)`` as a dlarray."""
    return function


def _moved(name: str) -> Callable[..., dlarray]:
    numpys: Any = getattr(np.fft, name)

    def function(x: Any, axes: Any = None) -> dlarray:
        found: dlarray = numpys(as_array(x, f"fft.{name}", "x"), axes)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return ``np.fft.{name}(x, axes)`` as a dlarray."""
    return function


_ONE, _TWO, _ALL = "n=None, axis=-1", "s=None, axes=(-2, -1)", "s=None, axes=None"
fft, ifft, rfft, irfft, hfft, ihfft = (
    _transform(name, _ONE) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
)
fft2, ifft2, rfft2, irfft2 = (_transform(name, _TWO) for name in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_transform(name, _ALL) for name in ("fftn", "ifftn", "rfftn", "irfftn"))
fftshift, ifftshift = _moved("fftshift"), _moved("ifftshift")
fftfreq, rfftfreq = np.fft.fftfreq, np.fft.rfftfreq
