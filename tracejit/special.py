# SPDX-License-Identifier: BSD-3-Clause
"""scipy.special on dlarrays, under SciPy's names: ``tj.special.gammaln(x)``.

SciPy's ufuncs take dlarrays themselves: ``scipy.special.gammaln(x)`` is the same function. SciPy's functions in Python
(`logsumexp`, `softmax`, `polygamma`, ...) refuse traced arrays; only the ones here take them.

Long because of the docstrings of its functions.

Examples:
    >>> import numpy as np, tracejit as tj
    >>> x = np.array([0.5, 1.5, 4.0])
    >>> slope = tj.dlfeval(lambda x: tj.dlgradient(tj.special.gammaln(x).sum(), x), x)
    >>> bool(np.allclose(slope, tj.special.digamma(x)))
    True
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from tracejit.array import apply, as_array, dlarray
from tracejit.aval import FLOAT64
from tracejit.errors import ArgumentError
from tracejit.functions import elementwise, reductions, special_ufuncs
from tracejit.functions.axes import normalize_axes
from tracejit.functions.elementwise import where
from tracejit.functions.formats import floating, in_dtype
from tracejit.functions.layers.activations import logsoftmax_over, softmax_over
from tracejit.functions.movement import relabel
from tracejit.functions.numpy_api import in_python
from tracejit.functions.numpy_api.elementary import sinc
from tracejit.functions.numpy_api.host_rules import faddeeva, lambert
from tracejit.util.arguments import flag, integer
from tracejit.util.missing import refusal

__all__ = list(special_ufuncs.NAMES) + [  # noqa: RUF005
    "comb", "factorial", "hankel1", "hankel2", "ivp", "jvp", "kvp", "lambertw", "log_softmax", "logsumexp",
    "multigammaln", "perm", "polygamma", "sinc", "softmax", "sph_harm_y", "wofz", "softplus", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "yvp", "zeta",
]  # fmt: skip

_DOC = """Return ``scipy.special.{name}`` of {operands}, element by element.

    Args:
        operands: {operands}; dlarrays of any format, ndarrays or numbers. Formatted ones are aligned by label.

    Returns:
        {results}; sizes are broadcast, formats merged; dtype as SciPy's.

    Raises:
        DTypeError: for operands that SciPy does not define it for, such as complex numbers.
        GradientError: from `dlgradient`, by an operand for which there is no formula.

    Examples:
        >>> import numpy as np, scipy.special, tracejit as tj
        >>> found, expected = tj.special.{name}({call}), scipy.special.{name}({call})
        >>> bool(np.allclose(found, expected, equal_nan=True))
        True
    """


def _ufunc(name: str) -> Callable[..., Any]:
    known = special_ufuncs.ALIASES.get(name, name)
    count, results = special_ufuncs.OPERANDS[known], special_ufuncs.results_of(known)

    def function(*operands: Any) -> Any:
        if len(operands) != count:
            raise ArgumentError(
                f"special.{name}: {len(operands)} operands, expected {count}; see the documentation of SciPy."
            )
        return special_ufuncs.call(known, operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        name=name,
        operands="1 operand" if count == 1 else f"{count} operands",
        call=", ".join(["1"] * (count - 1) + ["0.5"]),
        results="dlarray" if results == 1 else f"tuple of {results} dlarrays",
    )
    return function


globals().update({name: _ufunc(name) for name in special_ufuncs.NAMES})


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return log(sum(b exp(a))) over axes, without overflow.

    Args:
        a: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.
        b: factors of the exponentials, of any sign, which broadcast with `a`; None for 1.
        keepdims: keep the reduced axes with size 1.
        return_sign: return the logarithm of the magnitude, and the sign, as a pair.

    Returns:
        dlarray of floating-point dtype; NaN where the sum is negative, unless `return_sign`.

    Examples:
        >>> import tracejit as tj
        >>> f"{tj.special.logsumexp([0.0, 0.0], b=[3.0, -1.0]).item():.6f}"
        '0.693147'
    """
    signed = flag("special.logsumexp", "return_sign", return_sign)
    if b is None and not signed:
        return reductions.logsumexp(a, axis, keepdims)
    keepdims = flag("special.logsumexp", "keepdims", keepdims)
    array = floating("special.logsumexp", a)
    if b is not None:
        factor = as_array(b, "special.logsumexp", "b")
        array = where(factor == 0, -math.inf, array)
    axes = normalize_axes("special.logsumexp", array, axis)
    largest = elementwise.stop_gradient(reductions.max(array, axes, True))
    shift = where(elementwise.isfinite(largest), largest, 0)
    terms = elementwise.exp(array - shift)
    if b is not None:
        terms = terms * in_dtype(factor, array.dtype)
    total, shift = (reductions.sum(part, axes, keepdims) for part in (terms, shift))
    sign = elementwise.sign(total)
    size = elementwise.abs(total) if signed else total
    empty = size == 0
    result = where(empty, -math.inf, elementwise.log(where(empty, 1, size)) + shift)
    return (result, sign) if signed else result


def softmax(x: Any, axis: Any = None) -> dlarray:
    """Return exp(x) / sum(exp(x)) over axes, without overflow.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.

    Returns:
        dlarray of the sizes and the format of `x`.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.softmax([0.0, 0.0, 0.0, 0.0]).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    array = floating("special.softmax", x)
    return softmax_over(array, normalize_axes("special.softmax", array, axis))


def log_softmax(x: Any, axis: Any = None) -> dlarray:
    """Return the logarithm of softmax, exact where softmax is 0.

    Args:
        x: dlarray of any format, ndarray or number.
        axis: None (all axes), an integer, a tuple of integers, or a string of labels.

    Returns:
        dlarray of the sizes and the format of `x`.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.log_softmax([1000.0, 0.0]).tolist()
        [0.0, -1000.0]
    """
    array = floating("special.log_softmax", x)
    return logsoftmax_over(array, normalize_axes("special.log_softmax", array, axis))


def softplus(x: Any) -> dlarray:
    """Return log(1 + exp(x)) without overflow.

    Args:
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the sizes and the format of `x`.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.softplus(1000.0).item()
        1000.0
    """
    return apply("softplus", x)


def polygamma(n: Any, x: Any) -> dlarray:
    """Return the n-th derivative of digamma, (-1)**(n+1) n! zeta(n + 1, x).

    Args:
        n: integers that are not negative.
        x: dlarray of any format, ndarray or number.

    Returns:
        dlarray of the broadcast sizes, NaN for an `n` that is no integer.

    Examples:
        >>> import tracejit as tj
        >>> f"{tj.special.polygamma(1, 1.0).item():.6f}"
        '1.644934'
    """
    if isinstance(n, int) and n == 0:
        found: dlarray = special_ufuncs.call("psi", (x,))
        return found
    order = elementwise.stop_gradient(floating("special.polygamma", n))
    factor = special_ufuncs.call("gamma", (order + 1,)) * where(order % 2 == 0, -1.0, 1.0)
    derivative = factor * special_ufuncs.call("_zeta", (order + 1, x))
    if not isinstance(n, int):
        derivative = where(order % 1 == 0, derivative, math.nan)
    return where(order == 0, special_ufuncs.call("psi", (x,)), derivative)


def lambertw(z: Any, k: int = 0) -> dlarray:
    """Return a branch of Lambert's W, the inverse function of w exp(w).

    Args:
        z: dlarray of any format, ndarray or number, real or complex.
        k: the branch, an integer. The branches 0, for z >= -1/e, and -1, for -1/e <= z < 0, are real.

    Returns:
        dlarray of complex numbers, as SciPy's; the real part (``.real``) is what real branches give. SciPy's own
        function runs, in programs as a call of Python; derivatives of any order are computed by the program.

    Examples:
        >>> import tracejit as tj
        >>> w = tj.special.lambertw([1.0, 2.0]).real
        >>> w.round(6).tolist()
        [0.567143, 0.852606]
    """
    branch = integer("special.lambertw", "k", k)
    array = as_array(z, "special.lambertw", "z")
    if array.dtype.kind not in "fc":
        array = in_dtype(array, FLOAT64)
    found = in_python.call("special.lambertw", lambert, (array, branch), {})
    return relabel(found, array._format)


def multigammaln(a: Any, d: int) -> dlarray:
    """Return the logarithm of the multivariate gamma function of dimension `d`.

    Args:
        a: dlarray of any format, ndarray or number, greater than (d - 1) / 2.
        d: the dimension, at least 1.

    Returns:
        dlarray of the sizes and the format of `a`.

    Examples:
        >>> import tracejit as tj
        >>> f"{tj.special.multigammaln(3.0, 2).item():.6f}"
        '1.550195'
    """
    d = integer("special.multigammaln", "d", d)
    if d < 1:
        raise ArgumentError(f"special.multigammaln: d is {d}, expected a positive dimension.")
    array = floating("special.multigammaln", a)
    terms = [special_ufuncs.call("gammaln", (array - j / 2,)) for j in range(d)]
    total: dlarray = reduce(elementwise.add, terms)
    return total + d * (d - 1) / 4 * math.log(math.pi)


def zeta(x: Any, q: Any = None) -> dlarray:
    """Return the zeta function of Riemann, or of Hurwitz with `q`.

    Args:
        x: dlarray of any format, ndarray or number.
        q: likewise.

    Returns:
        dlarray of the broadcast sizes; there is no derivative by `x`.

    Examples:
        >>> import tracejit as tj
        >>> f"{tj.special.zeta(2.0).item():.6f}"
        '1.644934'
    """
    if q is None:
        return special_ufuncs.call("_riemann_zeta", (x,))  # type: ignore[no-any-return]
    return special_ufuncs.call("_zeta", (x, q))  # type: ignore[no-any-return]


def comb(n: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> dlarray:
    """Return the number of ways to choose k of n things, 0 where there are none.

    Args:
        n, k: dlarrays of any format, ndarrays or numbers.
        exact: must be False: dlarrays hold no integers of more than 64 bits.
        repetition: whether a thing may be chosen again.

    Returns:
        dlarray of floating-point dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.comb([5, 2], 3).tolist()
        [10.0, 0.0]
    """
    if flag("special.comb", "exact", exact):
        raise ArgumentError("special.comb: exact=True is not supported on dlarrays; use math.comb.")
    n, k = as_array(n, "special.comb", "n"), as_array(k, "special.comb", "k")
    if flag("special.comb", "repetition", repetition):
        return where((k == 0) & (n >= 0), 1.0, comb(n + k - 1, k))  # nothing can be chosen of nothing
    possible = (k <= n) & (n >= 0) & (k >= 0)
    return where(possible, special_ufuncs.call("binom", (n, k)), 0.0)


def perm(n: Any, k: Any, exact: bool = False) -> dlarray:
    """Return the number of sequences of k of n things, 0 where there are none.

    Args:
        n, k: dlarrays of any format, ndarrays or numbers.
        exact: must be False: dlarrays hold no integers of more than 64 bits.

    Returns:
        dlarray of floating-point dtype.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.perm(5, 3).item()
        60.0
    """
    if flag("special.perm", "exact", exact):
        raise ArgumentError("special.perm: exact=True is not supported on dlarrays; use math.perm.")
    n, k = as_array(n, "special.perm", "n"), as_array(k, "special.perm", "k")
    possible = (k <= n) & (n >= 0) & (k >= 0)
    return where(possible, special_ufuncs.call("poch", (n - k + 1, k)), 0.0)


def factorial(n: Any, exact: bool = False) -> dlarray:
    """Return n!, the gamma function at n + 1, and 0 for negative n.

    Args:
        n: dlarray of any format, ndarray or number.
        exact: must be False: dlarrays hold no integers of more than 64 bits.

    Returns:
        dlarray of float64.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.factorial([0, 3, -1]).tolist()
        [1.0, 6.0, 0.0]
    """
    if flag("special.factorial", "exact", exact):
        raise ArgumentError("special.factorial: exact=True is not supported on dlarrays; use math.factorial.")
    number = in_dtype(floating("special.factorial", n), FLOAT64)
    negative = number < 0
    return where(negative, 0.0, special_ufuncs.call("gamma", (where(negative, 0.0, number) + 1.0,)))


def wofz(z: Any) -> dlarray:
    """Return Faddeeva's function exp(-z^2) erfc(-i z), whose real part is Voigt's profile.

    Args:
        z: dlarray of any format, ndarray or number, real or complex.

    Returns:
        dlarray of complex numbers. SciPy's own function runs, in programs as a call of Python; derivatives of any order
        are computed by the program.

    Examples:
        >>> import tracejit as tj
        >>> tj.special.wofz(0.0).item()
        (1+0j)
    """
    array = as_array(z, "special.wofz", "z")
    if array.dtype.kind not in "fc":
        array = in_dtype(array, FLOAT64)
    found = in_python.call("special.wofz", faddeeva, (array,), {})
    return relabel(found, array._format)


def _half_turns(v: Any) -> tuple[Any, Any]:
    """Return the cosine and the sine of v half turns, without rounding errors for integers and halves."""
    if type(v) in (int, float):
        quarters = v % 2 * 2
        exact = {0: (1.0, 0.0), 1: (0.0, 1.0), 2: (-1.0, 0.0), 3: (0.0, -1.0)}
        return exact.get(quarters, (math.cos(math.pi / 2 * quarters), math.sin(math.pi / 2 * quarters)))
    degrees = as_array(v) % 2 * 180.0
    return special_ufuncs.call("cosdg", (degrees,)), special_ufuncs.call("sindg", (degrees,))


def _hankel(name: str, sign: complex) -> Callable[..., dlarray]:
    def function(v: Any, z: Any) -> dlarray:
        z = as_array(z, f"special.{name}", "z")
        size = z if z.dtype.kind in "bu" else where(z < 0, -z, z)
        first, second = (special_ufuncs.call(part, (v, size)) for part in ("jv", "yv"))
        found: dlarray = first + second * sign
        if size is z:
            return found
        # Beyond the branch point, above the cut (DLMF 10.11.4 and 10.11.5).
        cosine, sine = _half_turns(v)
        other = first - second * sign
        first_kind = other * (sine * 1j - cosine)
        mirrored = first_kind if sign == 1j else other * (cosine + sine * 1j) + found * (2 * cosine)
        return where(z < 0, mirrored, found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return Hankel's function ``{name}`` of real operands, jv and i yv added or subtracted.

    Args:
        v: the order: dlarray, ndarray or number.
        z: dlarray of any format, ndarray or number.

    Returns:
        dlarray of complex numbers, of the broadcast sizes.

    Examples:
        >>> import numpy as np, scipy.special, tracejit as tj
        >>> bool(np.isclose(tj.special.{name}(1, 0.5), scipy.special.{name}(1, 0.5)))
        True
    """
    return function


hankel1, hankel2 = _hankel("hankel1", 1j), _hankel("hankel2", -1j)


def sph_harm_y(n: int, m: int, theta: Any, phi: Any) -> dlarray:
    """Return a spherical harmonic, with the sign of Condon and Shortley.

    Args:
        n: the degree, an integer of at least 0.
        m: the order, an integer from -n to n; beyond that the result is 0.
        theta: polar angles: dlarray of any format, ndarray or number.
        phi: azimuths, likewise.

    Returns:
        dlarray of complex numbers, of the broadcast sizes. At the poles the derivative by `theta` is NaN.

    Raises:
        ArgumentError: if `n` is negative.

    Examples:
        >>> import tracejit as tj
        >>> f"{tj.special.sph_harm_y(1, 0, 0.0, 0.0).item().real:.6f}"
        '0.488603'
    """
    n, m = integer("special.sph_harm_y", "n", n), integer("special.sph_harm_y", "m", m)
    if n < 0:
        raise ArgumentError(f"special.sph_harm_y: n is {n}, expected a degree of at least 0.")
    theta, phi = floating("special.sph_harm_y", theta), floating("special.sph_harm_y", phi)
    turn = elementwise.cos(m * phi) + elementwise.sin(m * phi) * 1j
    order = abs(m)
    if order > n:
        return turn * theta * 0.0  # type: ignore[no-any-return]
    size = math.exp((math.lgamma(n - order + 1) - math.lgamma(n + order + 1)) / 2) * math.sqrt(
        (2 * n + 1) / (4 * math.pi)
    )
    size = size * (-1) ** order if m < 0 else size
    values = special_ufuncs.call("lpmv", (float(order), float(n), elementwise.cos(theta)))
    return values * size * turn  # type: ignore[no-any-return]


def _bessel_derivative(name: str, phase: float) -> Callable[..., dlarray]:
    """Return the function of the n-th derivative of a Bessel function (DLMF 10.6.7, 10.29.5)."""
    title = f"{name}p"

    def function(v: Any, z: Any, n: int = 1) -> dlarray:
        n = integer(f"special.{title}", "n", n)
        if n < 0:
            raise ArgumentError(f"special.{title}: n is {n}, expected the number of a derivative.")
        order = as_array(v, f"special.{title}", "v") if not isinstance(v, (int, float)) else v
        total, factor = special_ufuncs.call(name, (order - n, z)), 1.0
        for i in range(1, n + 1):
            factor = phase * factor * (n - i + 1) / i
            total = total + special_ufuncs.call(name, (order - n + 2 * i, z)) * factor
        return total * ((-0.5 if name == "kv" else 0.5) ** n)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = title
    function.__doc__ = f"""Return the n-th derivative of ``{name}(v, z)`` by z.

    Args:
        v: the order: dlarray, ndarray or number.
        z: dlarray of any format, ndarray or number.
        n: the number of the derivative.

    Returns:
        dlarray of the broadcast sizes.

    Raises:
        ArgumentError: if `n` is not an integer of at least 0.

    Examples:
        >>> import numpy as np, scipy.special, tracejit as tj
        >>> bool(np.isclose(tj.special.{title}(1, 0.5), scipy.special.{title}(1, 0.5)))
        True
    """
    return function


jvp = _bessel_derivative("jv", -1.0)
yvp = _bessel_derivative("yv", -1.0)
ivp = _bessel_derivative("iv", 1.0)
kvp = _bessel_derivative("kv", 1.0)


def _spherical(name: str) -> Callable[..., dlarray]:
    """Return the function of a spherical Bessel function, or of its derivative (DLMF 10.51)."""
    ufunc = f"_spherical_{name}"
    sign = 1.0 if name == "in" else -1.0

    def mirrored(n: Any, z: Any) -> dlarray:
        """Return the values, those of negative z by DLMF 10.47.14 to 16, because SciPy's loops give NaN for them."""
        z = as_array(z, f"special.spherical_{name}", "z")
        if z.dtype.kind not in "if":
            return special_ufuncs.call(ufunc, (n, z))  # type: ignore[no-any-return]
        size = where(z < 0, -z, z)
        values: dlarray = special_ufuncs.call(ufunc, (n, size))
        is_odd: Any = n % 2 if type(n) is int else as_array(n) % 2
        parity = in_dtype(as_array(1 - 2 * is_odd), values.dtype)
        other = values * (-parity if name in ("yn", "kn") else parity)
        if name == "kn":
            other = other - special_ufuncs.call("_spherical_in", (n, size)) * math.pi
        return where(z < 0, other, values)

    def function(n: Any, z: Any, derivative: bool = False) -> dlarray:
        values = mirrored(n, z)
        if not flag(f"special.spherical_{name}", "derivative", derivative):
            return values
        order = as_array(n, f"special.spherical_{name}", "n")
        z = floating(f"special.spherical_{name}", z)
        return in_dtype(order * values / z + mirrored(order + 1, z) * sign, values.dtype)

    function.__name__ = function.__qualname__ = f"spherical_{name}"
    function.__doc__ = f"""Return ``scipy.special.spherical_{name}``, element by element.

    Args:
        n: the order: integers that are not negative.
        z: dlarray of any format, ndarray or number.
        derivative: return the derivative by z, for z that are not 0.

    Returns:
        dlarray of the broadcast sizes.

    Examples:
        >>> import numpy as np, scipy.special, tracejit as tj
        >>> bool(np.isclose(tj.special.spherical_{name}(1, 0.5), scipy.special.spherical_{name}(1, 0.5)))
        True
    """
    return function


spherical_jn, spherical_yn = _spherical("jn"), _spherical("yn")
spherical_in, spherical_kn = _spherical("in"), _spherical("kn")


__getattr__ = refusal("special", __all__)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(name for name in __all__ if not name.startswith("_"))
