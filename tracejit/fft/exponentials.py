# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms: NumPy's functions, whose results are dlarrays for all kinds of operands."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import as_array, dlarray

_TRANSFORM = """Return ``np.fft.{name}(x, {where}, norm=None)`` as a dlarray.

    Args:
        x: dlarray of any format, ndarray or list.
{sizes}
        norm: "backward" (None), "ortho" or "forward": which of the two transforms is divided, as in NumPy.

    Returns:
        dlarray of NumPy's sizes and dtype; a transformed axis keeps its label.

    Raises:
        ArgumentError: if `x` is not an array or a list of numbers, or is complex where NumPy's function takes real
            numbers; for an unknown `norm`.
        DimsError: for an axis that `x` does not have.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = np.arange(8.0).reshape(2, 4)
        >>> bool(np.allclose(tj.fft.{name}(x), np.fft.{name}(x)))
        True
    """

_MOVED = """Return ``np.fft.{name}(x, axes)`` as a dlarray.

    Args:
        x: dlarray of any format, ndarray or list.
        axes: the axes, by number; None for all.

    Returns:
        dlarray of the sizes, the format and the dtype of `x`.

    Raises:
        ArgumentError: if `x` is not an array or a list of numbers.
        DimsError: for an axis that `x` does not have.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> bool((tj.fft.{name}(np.arange(5)) == np.fft.{name}(np.arange(5))).all())
        True
    """

_SIZES = {
    "n=None, axis=-1": """        n: the number of elements, as in NumPy; `x` is cut or padded with zeros.
        axis: the axis, by number.""",
    "s=None, axes=(-2, -1)": """        s: the numbers of elements along the axes; `x` is cut or padded with zeros.
        axes: the two axes, by number.""",
    "s=None, axes=None": """        s: the numbers of elements along the axes; `x` is cut or padded with zeros.
        axes: the axes, by number; None for all, or for the last len(s).""",
}


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
    function.__doc__ = _TRANSFORM.format(name=name, where=where, sizes=_SIZES[where])
    return function


def _moved(name: str) -> Callable[..., dlarray]:
    numpys: Any = getattr(np.fft, name)

    def function(x: Any, axes: Any = None) -> dlarray:
        found: dlarray = numpys(as_array(x, f"fft.{name}", "x"), axes)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _MOVED.format(name=name)
    return function


_ONE, _TWO, _ALL = "n=None, axis=-1", "s=None, axes=(-2, -1)", "s=None, axes=None"
fft, ifft, rfft, irfft, hfft, ihfft = (
    _transform(name, _ONE) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
)
fft2, ifft2, rfft2, irfft2 = (_transform(name, _TWO) for name in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_transform(name, _ALL) for name in ("fftn", "ifftn", "rfftn", "irfftn"))
fftshift, ifftshift = _moved("fftshift"), _moved("ifftshift")
fftfreq, rfftfreq = np.fft.fftfreq, np.fft.rfftfreq
