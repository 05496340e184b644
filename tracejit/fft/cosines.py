# SPDX-License-Identifier: BSD-3-Clause
"""Cosine and sine transforms of the types 1 to 4, by Fourier transforms.

Labels: they stay, also that of an axis whose size changes.

Note [cosine transforms by Fourier transforms]
With the even elements first and the odd ones behind them backwards, the Fourier transform V of N real numbers has the
cosine transform of type 2 in the real and imaginary parts of z_k = V_k e^(-i pi k / 2N): y_k = 2 Re z_k and
y_(N-k) = -2 Im z_k (J. Makhoul, A fast cosine transform in one and two dimensions, 1980). Type 3 is the inverse, times
2N. Type 1 is the transform of the sequence and its mirror image, type 4 that of 2N numbers. Sine transforms are cosine
transforms of the numbers with signs that alternate, or in the opposite order.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import complex_dtype, is_half
from tracejit.errors import DimsError
from tracejit.functions import joining, movement
from tracejit.functions.axes import normalize_axes, normalize_axis
from tracejit.functions.formats import in_dtype
from tracejit.functions.refusals import refuse
from tracejit.util.arguments import integer, integers, is_option
from tracejit.util.text import brief

_FFT: Any = np.fft  # whose functions return dlarrays of dlarrays
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _turns(count: int, last: int, x: dlarray) -> Any:
    """Return e^(-i pi k / last) for the first `count` k, in the precision of `x`."""
    return np.exp(np.arange(count) * (-1j * np.pi / last)).astype(complex_dtype(x.dtype))


def _signs(x: dlarray) -> dlarray:
    """Return 1 and -1 by turns along the last axis."""
    n = x.shape[-1]
    return as_array(np.where(np.arange(n) % 2, -1.0, 1.0).astype(x.dtype))


def _real(z: Any) -> dlarray:
    part: dlarray = apply("real", z)
    return part


def _imaginary(z: Any) -> dlarray:
    part: dlarray = apply("imag", z)
    return part


def _flipped(x: dlarray) -> dlarray:
    found: dlarray = x[..., ::-1]
    return found


def _joined(*parts: dlarray) -> dlarray:
    return joining.concatenate(list(parts), -1)


def _first(x: dlarray) -> dlarray:
    return _real(_FFT.rfft(_joined(x, x[..., -2:0:-1])))


def _second(x: dlarray) -> dlarray:
    n = x.shape[-1]
    z = _FFT.rfft(_joined(x[..., ::2], _flipped(x[..., 1::2]))) * _turns(n // 2 + 1, 2 * n, x)
    return _joined(_real(z), _flipped(-_imaginary(z)[..., 1 : (n + 1) // 2])) * 2.0


def _third(x: dlarray) -> dlarray:
    n = x.shape[-1]
    half = n // 2 + 1
    imaginary = _joined(x[..., :1] * 0.0, -_flipped(x[..., n - half + 1 :])) if n > 1 else x * 0.0
    spectrum = apply("complex_of", x[..., :half], imaginary) * np.conj(_turns(half, 2 * n, x))
    v = _FFT.irfft(spectrum, n)
    found: dlarray = v[..., np.argsort([*range(0, n, 2), *range(1, n, 2)[::-1]])] * float(n)
    return found


def _fourth(x: dlarray) -> dlarray:
    n = x.shape[-1]
    z = _FFT.fft(x * _turns(n, 2 * n, x), 2 * n)[..., :n] * _turns(2 * n, 4 * n, x)[1::2]
    return _real(z) * 2.0


def _first_sine(x: dlarray) -> dlarray:
    none = x[..., :1] * 0.0
    found: dlarray = _imaginary(_FFT.rfft(_joined(none, x, none, -_flipped(x))))[..., 1 : x.shape[-1] + 1]
    return -found


def _second_sine(x: dlarray) -> dlarray:
    return _flipped(_second(x * _signs(x)))


def _third_sine(x: dlarray) -> dlarray:
    return _third(_flipped(x)) * _signs(x)


def _fourth_sine(x: dlarray) -> dlarray:
    return _fourth(_flipped(x)) * _signs(x)


_COSINES = {1: _first, 2: _second, 3: _third, 4: _fourth}
_SINES = {1: _first_sine, 2: _second_sine, 3: _third_sine, 4: _fourth_sine}


def _ends(is_sine: bool, kind: int) -> tuple[int, ...]:
    """Return which elements an orthogonal transform multiplies or divides by the root of 2."""
    if kind == 1:
        return () if is_sine else (0, -1)
    return () if kind == 4 else (-1,) if is_sine else (0,)


def _scaled(x: dlarray, places: tuple[int, ...], factor: float) -> dlarray:
    if not places:
        return x
    factors = np.ones(x.shape[-1], x.dtype)
    factors[list(places)] = factor
    return x * factors


def _checked(name: str, x: Any, kind: Any, norm: Any) -> tuple[dlarray, int]:
    """Return an array of floating-point numbers and the type of a transform.

    Raises:
        ArgumentError: for another type or norm than there is.
    """
    array = as_array(x, f"fft.{name}", "x")
    if array.dtype.kind not in "fc":
        array = in_dtype(array, np.dtype(np.float64))
    elif is_half(array.dtype):
        array = in_dtype(array, np.dtype(np.float32))  # in which SciPy computes
    number = integer(f"fft.{name}", "type", kind)
    if number not in _INVERSE:
        refuse(f"fft.{name}", f"type must be 1, 2, 3 or 4, not {number}")
    if norm is not None and not is_option(norm, ("backward", "ortho", "forward")):
        refuse(f"fft.{name}", f"norm must be 'backward', 'ortho', 'forward' or None, not {brief(norm)}")
    return array, number


def _sized(name: str, x: dlarray, n: Any) -> dlarray:
    """Return an array cut, or with zeros behind it, to n elements along the last axis.

    Raises:
        DimsError: for fewer than one element.
    """
    size = x.shape[-1] if n is None else integer(f"fft.{name}", "n", n)
    if size < 1:
        raise DimsError(f"fft.{name}: there are {size} elements along the axis, expected at least 1.")
    if size <= x.shape[-1]:
        return x if size == x.shape[-1] else x[..., :size]
    zeros = np.zeros((*x.shape[:-1], size - x.shape[-1]), x.dtype)
    return _joined(x, movement.relabel(as_array(zeros), x.format))


def _along(name: str, x: dlarray, kind: int, n: Any, axis: int, norm: Any, orthogonalize: Any) -> dlarray:
    """Return the transform of a name along one axis."""
    is_sine, is_inverse = "dst" in name, name.startswith("i")
    moved = _sized(name, movement.moveaxis(x, axis, -1), n)
    size = moved.shape[-1]
    if kind == 1 and not is_sine and size < 2:
        raise DimsError(f"fft.{name}: there is 1 element along the axis, expected at least 2 for type 1.")
    if moved.dtype.kind == "c":
        parts = [
            _along(name, apply(part, x), kind, n, axis, norm, orthogonalize) for part in ("real", "imag")
        ]
        return apply("complex_of", *parts)
    own = _INVERSE[kind] if is_inverse else kind
    period = 2.0 * (size + (0 if kind != 1 else 1 if is_sine else -1))
    scale = period**-0.5 if norm == "ortho" else 1.0 / period if (norm == "forward") != is_inverse else 1.0
    transform: Callable[[dlarray], dlarray] = (_SINES if is_sine else _COSINES)[own]
    is_orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    ends = _ends(is_sine, own) if is_orthogonal else ()
    moved = _scaled(moved, ends if own in (1, 3) else (), 2.0**0.5)
    found = _scaled(transform(moved), ends if own in (1, 2) else (), 0.5**0.5)
    return movement.moveaxis(found if scale == 1.0 else found * scale, -1, axis)


_DOC = """Return the {what} transform of numbers along {axes}.

    Args:
        x: dlarray, ndarray or list, real or complex.
        type: 1, 2, 3 or 4.
        {sizes}
        norm: "backward", the default, divides by the period in the inverse transform, "forward" in the other one,
            "ortho" by its root in both.
        overwrite_x, workers: not used.
        orthogonalize: whether the ends are scaled so that the transform is orthogonal; None for norm="ortho" only.

    Returns:
        dlarray, complex if `x` is.

    Raises:
        ArgumentError: for another type or norm.
        DimsError: if the array has no such axis, or no elements along it.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> x = np.array([[1.0, 2.0], [4.0, 3.0]])
        >>> bool(np.allclose(tj.fft.i{plain}(tj.fft.{plain}(x)), x))
        True
    """


def _documented(function: Callable[..., dlarray], name: str, axes: str, sizes: str) -> Callable[..., dlarray]:
    what = ("inverse " if name.startswith("i") else "") + ("sine" if "dst" in name else "cosine")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(what=what, axes=axes, sizes=sizes, plain=name.removeprefix("i"))
    return function


def _of_one_axis(name: str) -> Callable[..., dlarray]:
    def function(
        x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> dlarray:  # fmt: skip
        array, kind = _checked(name, x, type, norm)
        return _along(name, array, kind, n, normalize_axis(f"fft.{name}", array, axis), norm, orthogonalize)

    sizes = "n: the elements that are transformed, cut or with zeros behind them; None for all.\n"
    sizes += "        axis: the axis."
    return _documented(function, name, "an axis", sizes)


def _of_several(name: str) -> Callable[..., dlarray]:
    def function(
        x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> dlarray:  # fmt: skip
        array, kind = _checked(name, x, type, norm)
        sizes = None if s is None else integers(f"fft.{name}", "s", s)
        if axes is None and sizes is not None:
            axes = tuple(range(-len(sizes), 0))
        given = (axes,) if isinstance(axes, int) else axes
        places = [normalize_axis(f"fft.{name}", array, axis) for axis in given or ()]
        places = places or list(normalize_axes(f"fft.{name}", array, None))
        if sizes is not None and len(sizes) != len(places):
            raise DimsError(f"fft.{name}: s has {len(sizes)} sizes for {len(places)} axes, expected as many.")
        for number, place in enumerate(places):
            size = None if sizes is None else sizes[number]
            array = _along(name.removesuffix("n"), array, kind, size, place, norm, orthogonalize)
        return array

    sizes = "s: the elements that are transformed along each axis; None for all.\n        axes: the axes; None for all."
    return _documented(function, name, "several axes", sizes)


dct, idct, dst, idst = (_of_one_axis(name) for name in ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = (_of_several(name) for name in ("dctn", "idctn", "dstn", "idstn"))
