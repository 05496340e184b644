# SPDX-License-Identifier: BSD-3-Clause
"""Functions of matrices that a power series defines: exponentials, logarithms, roots, signs."""

import math
from typing import Any

import numpy as np

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64, complex_dtype
from tracejit.errors import DimsError
from tracejit.functions import elementwise, joining, linear, movement, reductions
from tracejit.functions.formats import in_dtype
from tracejit.functions.linalg import inv, require, solve
from tracejit.functions.numpy_api import scipy_matrices
from tracejit.linalg.numbers import alike, in_double, is_complex, matrix, routine
from tracejit.record import recorder
from tracejit.record.guards import Decides
from tracejit.util.arguments import flag, real

_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_RADIUS = 5.371920351148152  # up to which norm the approximant is right to 2**-53
_LEFT_OUT = 113250775606021113483283660800000000.0 * 2.0**-53  # of the approximant's first error term
_UNDERFLOW = 1e-30  # the tenth power of less is none
_STEPS = 26  # of the iteration for a square root: enough where eigenvalues differ by a factor of 1e12


def expm(a: Any) -> dlarray:
    """Return the exponentials of matrices, the sum of A^k / k!.

    Args:
        a: square matrices, (..., n, n), real or complex.

    Returns:
        dlarray as large as `a`.

    Raises:
        DimsError: if the matrices are not square.

    The matrix is halved until its powers are small, then a Pade approximant of degree 13 is squared as often (N.
    Higham, The scaling and squaring method for the matrix exponential revisited, 2005). How often is guarded.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    x = matrix("expm", "a", a)
    if not x.size:
        return x
    levels = _levels(elementwise.stop_gradient(_norms(x)))
    halvings = 0
    if bool(recorder.need_value(reductions.any(levels > 0), "linalg.expm", Decides.TRUTH)):
        levels = _fewer_levels(elementwise.stop_gradient(x), levels)
        halvings = int(recorder.need_value(reductions.max(levels), "linalg.expm"))
    x = x * in_dtype(0.5**levels, x.dtype)[..., None, None]
    one = as_array(np.eye(x.shape[-1], dtype=x.dtype))
    second = linear.matmul(x, x)
    fourth = linear.matmul(second, second)
    powers = (one, second, fourth, linear.matmul(second, fourth))
    odd, even = (
        linear.matmul(powers[3], _combined(powers[1:], _PADE[8 + first :: 2]))
        + _combined(powers, _PADE[first:8:2])
        for first in (1, 0)
    )
    odd = linear.matmul(x, odd)
    result = solve(even - odd, even + odd)
    for k in range(halvings):
        squared = linear.matmul(result, result)
        result = squared if x.ndim == 2 else elementwise.where((levels > k)[..., None, None], squared, result)
    return result


def _norms(x: dlarray) -> dlarray:
    """Return the largest sum of magnitudes of a column, for each matrix."""
    return reductions.max(reductions.sum(elementwise.abs(x), -2), -1)


def _levels(norms: dlarray) -> dlarray:
    """Return how often matrices have to be halved until their norms are within the radius of the approximant."""
    ratio = elementwise.maximum(norms / _RADIUS, 1.0)
    return elementwise.ceil(elementwise.log2(elementwise.where(elementwise.isfinite(ratio), ratio, 1.0)))


def _fewer_levels(x: dlarray, levels: dlarray) -> dlarray:
    """Return how often matrices have to be halved, by the norms of their powers.

    A triangular matrix of a large element beside its diagonal, such as [[1, 1e6], [0, -1]], has powers far smaller than
    its norm says. Each halving too many costs a bit of the elements on the diagonal, which are squared once more (A.
    Al-Mohy and N. Higham, A new scaling and squaring algorithm for the matrix exponential, 2009, algorithm 5.1). The
    powers are those of the halved matrix, which do not overflow.
    """
    n = x.shape[-1]
    levels = in_dtype(levels, FLOAT64)
    x = in_double(x) * (0.5**levels)[..., None, None]
    second = linear.matmul(x, x)
    fourth = linear.matmul(second, second)
    sixth, eighth = linear.matmul(second, fourth), linear.matmul(fourth, fourth)
    powers = ((4, fourth), (6, sixth), (8, eighth), (10, linear.matmul(fourth, sixth)))
    d4, d6, d8, d10 = (_norms(power) ** (1 / k) for k, power in powers)
    highest = elementwise.minimum(elementwise.maximum(d6, d8), elementwise.maximum(d8, d10))
    radius = elementwise.minimum(elementwise.maximum(d4, d6), highest)
    saved = elementwise.floor(elementwise.log2(_RADIUS / elementwise.maximum(radius, _UNDERFLOW)))
    fewer = elementwise.clip(levels - saved, 0, levels)
    # The approximant of so large a matrix must not lose digits either: the first term that it leaves out is bounded by
    # the 27th power of the magnitudes, which do not cancel.
    power = elementwise.abs(x) * (2.0 ** (levels - fewer))[..., None, None]
    norm = elementwise.maximum(_norms(power), _UNDERFLOW)
    row = as_array(np.ones((1, n)))
    for k in range(5):
        row = row if k == 2 else linear.matmul(row, power)  # 27 is 1 + 2 + 8 + 16
        power = linear.matmul(power, power) if k < 4 else power
    left_out = reductions.max(row[..., 0, :], -1) / norm / _LEFT_OUT
    more = elementwise.ceil(elementwise.log2(elementwise.maximum(left_out, 1.0)) / 26)
    total = elementwise.minimum(fewer + more, levels)
    return elementwise.where(elementwise.isfinite(total), total, levels)


def _combined(parts: tuple[dlarray, ...], factors: tuple[float, ...]) -> dlarray:
    terms = [part * factor for part, factor in zip(parts, factors, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def sqrtm(a: Any) -> dlarray:
    """Return the principal square roots of matrices, whose eigenvalues have positive real parts.

    Args:
        a: square matrices, (..., n, n), real without negative eigenvalues, or complex; not singular.

    Returns:
        dlarray as large as `a`: X with X X = A.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if a real matrix has no such real root, or is singular.

    For real matrices the iteration is that of Denman and Beavers in products, M' = (2 I + M + M^-1) / 4 and
    X' = X (I + M^-1) / 2 from M = X = A (S. Cheng, N. Higham, C. Kenney, A. Laub, Approximating the logarithm of a
    matrix, 2001). For complex ones SciPy's own routine runs, in programs as a call of Python. SciPy's result is complex
    where a real matrix has negative eigenvalues; so it is for ``a.astype(complex)``.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).round(12).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    x = matrix("sqrtm", "a", a)
    if not x.size:
        return x
    if is_complex(x):
        found: dlarray = routine("sqrtm", scipy_matrices.sqrtm, x)
        return found
    # Near 1, so that few steps are enough.
    size = elementwise.stop_gradient(elementwise.sqrt(reductions.mean(x * x, (-2, -1), keepdims=True)))
    size = size * math.sqrt(x.shape[-1])
    one = as_array(np.eye(x.shape[-1], dtype=x.dtype))
    m = root = x / size
    for _ in range(_STEPS):
        other = inv(m)
        root = linear.matmul(root, one + other) * 0.5
        m = (one * 2.0 + m + other) * 0.25
    near = reductions.max(elementwise.abs(m - one)) < math.sqrt(np.finfo(x.dtype).eps)
    require(
        near,
        "linalg.sqrtm",
        "the matrix, or one of the matrices, has no real root without negative real parts; a complex one is that of "
        "a.astype(complex)",
    )
    return root * elementwise.sqrt(size)


def logm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the principal logarithms of matrices, whose eigenvalues have imaginary parts between -pi and pi.

    Args:
        A: square matrices, (..., n, n), not singular.

    Returns:
        dlarray as large as `A`, complex where a real matrix has negative eigenvalues.

    Raises:
        DimsError: if the matrices are not square.

    SciPy's own routine runs, in programs as a call of Python. So it does for derivatives, on matrices of twice the size
    (A. Al-Mohy, N. Higham, S. Relton, Computing the Frechet derivative of the matrix logarithm, 2013).

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.logm([[1.0, 1.0], [0.0, 1.0]]).round(12).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    return _by_scipy("logm", A)


def _by_scipy(name: str, a: Any) -> dlarray:
    x = matrix(name, "A", a)
    x = in_double(x) if name == "logm" else x
    found: dlarray = routine(name, getattr(scipy_matrices, name), x) if x.size else x
    return found


def signm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the signs of matrices: with the same eigenvectors, and eigenvalues 1 or -1 for those right or left of 0.

    Args:
        A: square matrices, (..., n, n), without eigenvalues on the imaginary axis.

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.

    Newton's iteration runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.signm([[2.0, 0.0], [0.0, -3.0]]).tolist()
        [[1.0, 0.0], [0.0, -1.0]]
    """
    return _by_scipy("signm", A)


def fractional_matrix_power(A: Any, t: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return matrices to a power that need not be whole.

    Args:
        A: square matrices, (..., n, n).
        t: the power, a number.

    Returns:
        dlarray as large as `A`, complex where a real matrix has negative eigenvalues.

    Raises:
        DimsError: if the matrices are not square.

    SciPy's own routine runs, in programs as a call of Python.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.fractional_matrix_power([[4.0, 0.0], [0.0, 9.0]], 0.5).round(12).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    x = in_double(matrix("fractional_matrix_power", "A", A))
    power = float(real("linalg.fractional_matrix_power", "t", t))
    found: dlarray = routine("fractional_matrix_power", scipy_matrices.powers, x, t=power) if x.size else x
    return found


def _turned(x: dlarray) -> dlarray:
    """Return expm(i A)."""
    return expm(in_dtype(x, complex_dtype(x.dtype)) * 1j)


def cosm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the cosines of matrices, (e^iA + e^-iA) / 2.

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.cosm([[0.0, 0.0], [0.0, 0.0]]).round(12).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    x = matrix("cosm", "A", A)
    if not is_complex(x):
        return apply("real", _turned(x))
    return (_turned(x) + _turned(-x)) * 0.5


def sinm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the sines of matrices, (e^iA - e^-iA) / 2i.

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.sinm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    x = matrix("sinm", "A", A)
    if not is_complex(x):
        return apply("imag", _turned(x))
    return (_turned(x) - _turned(-x)) * -0.5j


def tanm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the tangents of matrices, cosm(A)^-1 sinm(A).

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if the cosine is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.tanm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    return solve(cosm(A), sinm(A))


def coshm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the hyperbolic cosines of matrices, (e^A + e^-A) / 2.

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.coshm([[0.0, 0.0], [0.0, 0.0]]).round(12).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    matrix("coshm", "A", A)
    x = as_array(A)  # small integers wrap in -A, as in SciPy
    return (expm(x) + expm(-x)) * 0.5


def sinhm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the hyperbolic sines of matrices, (e^A - e^-A) / 2.

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.sinhm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    matrix("sinhm", "A", A)
    x = as_array(A)  # small integers wrap in -A, as in SciPy
    return (expm(x) - expm(-x)) * 0.5


def tanhm(A: Any) -> dlarray:  # noqa: N803 (SciPy's name)
    """Return the hyperbolic tangents of matrices, coshm(A)^-1 sinhm(A).

    Args:
        A: square matrices, (..., n, n).

    Returns:
        dlarray as large as `A`.

    Raises:
        DimsError: if the matrices are not square.
        numpy.linalg.LinAlgError: if the hyperbolic cosine is singular.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.tanhm([[0.0, 1.0], [0.0, 0.0]]).round(12).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    return solve(coshm(A), sinhm(A))


def expm_frechet(A: Any, E: Any, compute_expm: bool = True) -> Any:  # noqa: N803 (SciPy's names)
    """Return the exponentials of matrices, and their derivatives along others.

    Args:
        A: square matrices, (..., n, n).
        E: directions, as large.
        compute_expm: False for the derivatives alone.

    Returns:
        dlarrays expm(A) and its derivative along `E`, the blocks of expm([[A, E], [0, A]]).

    Raises:
        DimsError: if the matrices are not square, or not of one size.

    Examples:
        >>> import tracejit as tj
        >>> tj.linalg.expm_frechet([[0.0]], [[2.0]])[1].round(12).tolist()
        [[2.0]]
    """
    x, e = alike(*(in_double(matrix("expm_frechet", name, given)) for name, given in (("A", A), ("E", E))))
    if x.shape != e.shape:
        raise DimsError(f"linalg.expm_frechet: A has shape {x.shape} and E {e.shape}, expected the same.")
    n = x.shape[-1]
    rows = joining.concatenate([x, e], -1), joining.concatenate([x * 0, x], -1)
    whole = expm(joining.concatenate(rows, -2))
    value, slope = (
        movement.sliced(whole, {whole.ndim - 2: slice(0, n), whole.ndim - 1: slice(*ends)})
        for ends in ((0, n), (n, 2 * n))
    )
    return (value, slope) if flag("linalg.expm_frechet", "compute_expm", compute_expm) else slope
