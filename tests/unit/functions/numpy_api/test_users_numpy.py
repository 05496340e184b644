# SPDX-License-Identifier: BSD-3-Clause
"""NumPy as users write it: methods with all arguments, classes, lists, polynomials, windows, x.flat, assertions.

The names in a call are those of numpy_grid.py. Each call is computed by NumPy and by dlarrays, recorded, replayed with
other numbers, and differentiated.
"""

import re

import numpy as np
import pytest
from numpy_oracle import check_gradient, check_replayed

import tracejit as tj
from tracejit import dlaccelerate, dlarray, dlfeval, dlgradient

METHODS = """
A.sum(dtype=np.float32) | A.sum(0, np.float32) | n.sum(dtype=float) | A.sum(initial=2.0) | A.sum(where=A > 0)
A.sum(0, where=A > 0, initial=1.0) | A.mean(0, np.float32) | A.mean(axis=1, where=A > -9) | A.std(0, None, None, 1)
A.std(ddof=1, where=A > -9) | A.var(0, np.float64) | A.var(axis=0, mean=A.mean(axis=0, keepdims=True))
A.prod(dtype=np.float32) | A.prod(axis=1, initial=2.0) | A.cumsum(0, np.float32) | A.cumprod(1, np.float32)
A.max(initial=0.5) | A.max(0, None, True) | A.max(0, where=A > 0, initial=-9.0) | A.min(1, where=A > 0, initial=9.0)
A.any(where=A > 1) | A.all(axis=0, where=A > 1) | A.argmax(0, keepdims=True) | C.trace(offset=1, dtype=np.float32)
T.trace(0, 1, 2) | T.trace(axis1=1, axis2=2) | A.take([0, 7], axis=1, mode="wrap") | A.take([0, 7], 1, None, "clip")
A.dot(B, out=np.zeros((3, 2))) | (k % 2).choose(np.stack([x, y])) | k.choose((x, y, w, x, y), mode="clip")
x.compress([True, False, True]) | A.compress([True, False, True], axis=0) | r.searchsorted(x, "right")
x.searchsorted(y, sorter=x.argsort()) | x.argpartition(2)[2] | x.argsort(stable=True) | x.round(1, np.zeros(6))
A.ravel("F") | A.T.ravel("K") | A.T.ravel("A") | A.flatten("F") | A.T.flatten("K") | A.reshape(4, 3, order="F")
A.reshape((2, -1), order="F") | A.T.reshape((2, -1), order="A") | np.ravel(A.T, "K") | np.reshape(A, (2, 6), order="A")
x.view() | x.view(np.int64) | F.view(np.int32) | x.view(complex) | x.view(complex).view(float) | x.T.view(np.ndarray)
x.flat[3] | x.flat[[0, 2]] | A.flat[3:7] | A.flat[1] * [v * 2 for v in A.flat][3] | np.array(A.flat) | np.sum(A.flat)
A.flat.copy() | (A.flat == A.ravel()) | np.exp(A.flat) | A.flags.c_contiguous | A.T.strides
"""
CLASSES = """
np.float64(x[0]) * y | np.float32(x[0]) | np.float32(x) | np.float64(x) | np.float64(x.sum()) | np.complex128(x[0]) * y
np.int64(x[0]) | np.int32(n) | np.uint8(k) | np.bool_(x > 0) | np.float32([x[0], y[0]]) | np.float64(s) * x
np.array([v * 2 for v in np.nditer(x)]) | np.array([v * i[0] for i, v in np.ndenumerate(A)])
np.array([v for v in np.nditer(A.T)]) | np.array([a * b for a, b in np.nditer([A, x[:4]])])
np.fromiter((v * 2 for v in x), float) | np.fromiter((v * 2 for v in x), float, count=3)
np.vectorize(lambda v: v if v > 0 else -2 * v)(x[:3] ** 2) | np.arange(w[0], w[0] + 3) | np.asfortranarray(A)
np.arange(w[0] * 0 + 3) | np.require(A.T, requirements="C") | np.asarray_chkfinite(x) | np.isscalar(x[0])
np.pad(x, 1, constant_values=y[0])
"""
LISTS = """
np.exp([x[0], x[1]]) | np.add([x[0], x[1]], [y[0], 1.0]) | np.maximum([x[0], 0.0], [y[0], y[1]])
np.add.reduce([x[0], y[0], 1.0]) | np.multiply.outer([x[0], y[0]], [x[1], 2.0]) | np.add.accumulate((x[0], y[0]))
np.zeros_like([x[0], y[0]]) | np.full_like([x, y], 2.0)
np.empty_like([x[0], 1.0]).shape | np.lexsort([x, y])
np.exp.__name__ | isinstance(np.exp, np.ufunc) | np.exp.nin
"""
WINDOWS = """
np.lib.stride_tricks.sliding_window_view(x, 3).mean(axis=1) | np.lib.stride_tricks.sliding_window_view(A, (2, 2))
np.lib.stride_tricks.sliding_window_view(A, 2, axis=1)[::2] | np.lib.stride_tricks.as_strided(x, (4, 3), (8, 8))
np.lib.stride_tricks.as_strided(C, (3,), (32,)) | np.lib.stride_tricks.as_strided(x[::-1], (3, 2), (-16, -8))
"""
FUNCTIONS = """
np.emath.sqrt(x) | np.emath.sqrt(w) | np.emath.log(x) | np.emath.log2(w) | np.emath.log10(x) | np.emath.logn(2, w)
np.emath.power(x, 0.5) | np.emath.power(w, 2) | np.emath.arccos(x / 9) | np.emath.arcsin(w + 1)
np.emath.arctanh(x / 9) | np.isin(x + 1j, x[:2] + 1j) | np.setdiff1d(x + 1j, x[:2] + 1j)
np.setxor1d(x + 1j, x[:2] + 1j)
np.intersect1d(x + 1j, x[:2] + 1j, return_indices=True) | np.maximum.accumulate(x + 1j * y)
np.polyfit(r, x, 2, rcond=1e-10) | np.polyfit(r, x, 2, full=True)[:2] | np.polyfit(r, x + 1j * y, 2)
np.histogram(x, "sturges") | np.histogram(x, "sqrt") | np.histogram_bin_edges(x, "rice")
np.divmod(x, w, out=(np.zeros(6), np.zeros(6))) | np.modf(x, out=(np.zeros(6), None)) | np.common_type(x, f)
"""
POLYNOMIALS = """
np.polynomial.polynomial.polyval(x, y[:3]) | np.polynomial.polynomial.polyval2d(x, y, A)
np.polynomial.polynomial.polymul(x, y[:3]) | np.polynomial.polynomial.polydiv(x, y[:3])
np.polynomial.polynomial.polyder(x, 2) | np.polynomial.polynomial.polyint(x, 2, [1.0, 2.0])
np.polynomial.polynomial.polyfit(r, y, 2) | np.polynomial.polynomial.polyvander(x, 3)
np.polynomial.chebyshev.chebval(x, y[:4]) | np.polynomial.chebyshev.cheb2poly(y[:4])
np.polynomial.legendre.legval(x, y[:4]) | np.polynomial.legendre.legint(y[:4])
np.polynomial.hermite.hermval(x, y[:4]) | np.polynomial.laguerre.lagval(x, y[:4])
np.polynomial.Polynomial(y[:3])(x) | np.polynomial.Polynomial([y[0], y[1], 1.0])(x)
np.polynomial.Polynomial(y[:3]).deriv()(x) | np.polynomial.Polynomial(y[:3], domain=[-2, 2]).integ()(x)
(np.polynomial.Polynomial(y[:3]) * np.polynomial.Polynomial(x[:2]))(x) | (np.polynomial.Polynomial(y[:3]) ** 2).coef
np.polynomial.Polynomial.fit(r, y, 2).convert().coef | np.polynomial.Chebyshev.fit(r, y, 2)(x)
np.polynomial.Chebyshev(y[:4]).deriv()(x) | np.polynomial.Legendre(y[:4])(x) | np.polynomial.HermiteE(y[:4])(x)
"""


def calls(text):
    return [call.strip() for call in re.split(r" \| |\n", text.strip()) if call.strip()]


ALL = calls(METHODS + CLASSES + LISTS + WINDOWS + FUNCTIONS + POLYNOMIALS)


@pytest.mark.parametrize("call", ALL)
def test_a_call_is_recorded_and_replayed(call):
    check_replayed(call)


@pytest.mark.parametrize(
    "call",
    calls(WINDOWS + POLYNOMIALS + LISTS) + [call for call in calls(METHODS)[:36] if "choose" not in call],
)
def test_a_call_has_derivatives(call):
    check_gradient(call)


def the_same(function, *args):
    """Compare a function of NumPy with what is recorded and replayed, arguments included."""
    accelerated = dlaccelerate(function)
    for scale in (1.0, 2.0, 3.0, 4.0):
        given, expected = ([x * scale for x in args] for _ in range(2))
        want = function(*expected)
        have = accelerated(*given)
        for a, b in zip([have, *given], [want, *expected], strict=True):
            for part, wanted in zip(*(x if isinstance(x, tuple) else (x,) for x in (a, b)), strict=True):
                assert np.array_equal(np.asarray(part), wanted)
    assert accelerated.stats.hits == 2


X = np.array([0.5, -1.5, 2.5, 3.5, -4.5, 5.5])
A = np.arange(12.0).reshape(3, 4) - 5.5


def windows_see_writes(x):
    seen = np.lib.stride_tricks.sliding_window_view(x, 3)
    x[2] = 9.0
    return seen * 2


def windows_of_a_buffer(x):
    buffer = np.zeros(6)
    seen = np.lib.stride_tricks.sliding_window_view(buffer, 2)
    buffer[:] = x
    return seen.sum(axis=1)


def turned_buffer(x):
    buffer = np.zeros((2, 3))
    seen = (
        np.fliplr(buffer),
        np.rot90(buffer),
        np.hsplit(buffer, 3)[1],
        np.diagonal(buffer),
        np.atleast_3d(buffer),
    )
    buffer[0] = x[:3]
    return tuple([part * 2 for part in seen])


def windows_are_written(x):
    np.lib.stride_tricks.sliding_window_view(x[:3], 3, writeable=True)[0, 1] = 7.0
    return x * 2


def strides_are_written(x):
    matrix = x.reshape(2, 3)[:, :2].copy()
    np.lib.stride_tricks.as_strided(matrix, (2,), (24,))[:] = x[0]
    return matrix


def parts_are_written(x):
    numbers = x + 1j * x[::-1]
    numbers.view(float)[1] = x[2]
    seen = numbers.view(float)
    numbers[2] = x[3]
    return numbers, seen * 2


def bits_are_written(x):
    bits = x.view(np.int64)
    bits[0] = 0
    seen = bits * 1
    x[1] = 1.0
    return seen, bits * 1


def flat_is_written(x):
    matrix = x.reshape(2, 3)
    matrix.flat[3] = 7.0
    matrix.flat[:2] = x[4:]
    matrix.flat[[2, 5]] = 1.0
    other = np.eye(3)
    other.flat[::4] += x[:3]
    other.flat = [x[0], 2.0]
    return matrix, other


def elements_are_written(x):
    with np.nditer(x, op_flags=["readwrite"]) as elements:
        for element in elements:
            element[...] = element * 2
    it = np.nditer(x, flags=["multi_index"])
    total = 0.0
    while not it.finished:
        total += it[0] * it.multi_index[0]
        it.iternext()
    return total


def shape_is_set(x):
    matrix = x * 2
    row = matrix[:3]
    matrix.shape = (2, 3)
    matrix[0, 1] = 1.0
    buffer = np.zeros(6)
    buffer.shape = 3, 2
    buffer[1] = x[:2]
    return matrix, row * 1, buffer


@pytest.mark.parametrize(
    "function",
    [
        windows_see_writes, windows_of_a_buffer, turned_buffer, windows_are_written, strides_are_written,
        parts_are_written,
        bits_are_written, flat_is_written, elements_are_written, shape_is_set,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy 2.5: x.shape = ...
def test_what_shares_memory_is_written(function):
    the_same(function, X)


def test_a_class_stays_what_it_is_while_it_is_recorded():
    def asked(x):
        assert x.dtype.type is np.float64 and np.dtype(np.float32) == np.float32
        assert isinstance(np.float32(1.5), np.float32) and type(np.float64(2)) is np.float64
        assert issubclass(np.float32, np.floating) and np.zeros(2, np.float32).dtype.type is np.float32
        return x * np.float32(2)

    class Own(np.float64):
        """A class of the user's."""

    dlfeval(asked, dlarray(X))
    assert type(dlfeval(lambda x: Own(2.5), dlarray(X))) is Own and float(Own(1)) == 1.0
    assert type(np.float32(1.5)) is np.float32 and np.float64.__new__(np.float64, 2.0) == 2.0
    with pytest.raises(ValueError, match="could not convert"):
        np.float64("text")
    with pytest.raises(ValueError, match="could not convert"):
        dlfeval(lambda x: np.float64("text"), dlarray(X))


def test_a_number_of_another_type_varies():
    scaled = dlaccelerate(lambda x, rate: x * np.float64(rate) + np.float32(rate))
    for rate in (0.5, 0.25, 0.75, 0.125, 2.5, 3.5, 4.5):
        assert np.allclose(np.asarray(scaled(X, rate)), X * np.float64(rate) + np.float32(rate), rtol=1e-15)
    assert scaled.stats.hits == 3


def test_a_derivative_goes_through_a_class_of_numbers():
    slope = dlfeval(lambda x: dlgradient(np.float64(x[0]) * np.float32(x[1]) ** 2, x), dlarray(X[:2]))
    assert slope.tolist() == pytest.approx([X[1] ** 2, 2 * X[0] * X[1]])


@pytest.mark.parametrize("name", ["allclose", "array_equal", "equal", "almost_equal", "array_almost_equal"])
def test_an_assertion_is_a_guard(name):
    def checked(x, y):
        getattr(np.testing, f"assert_{name}")(x, y)
        return x * 2

    accelerated = dlaccelerate(checked)
    for scale in (1.0, 2.0, 3.0):
        accelerated(X * scale, X * scale)
    assert accelerated.stats.hits == 1
    with pytest.raises(AssertionError):
        accelerated(X, X + 1)


def test_another_number_of_bins_is_recorded_again():
    counted = dlaccelerate(lambda x: np.histogram(x, "fd"))
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=40)
        for have, want in zip(counted(x), np.histogram(x, "fd"), strict=True):
            assert np.allclose(np.asarray(have), want)


def test_an_assignment_to_numpy_while_it_is_recorded_stays(monkeypatch):
    own, kept = (lambda *args: 7.0), np.sum

    def patched(x):
        np.sum = own
        return x * 2

    try:
        dlfeval(patched, dlarray(X))
        assert np.sum is own
        dlfeval(lambda x: x * 2, dlarray(X))
        assert np.sum is own
    finally:
        np.sum = kept
    dlfeval(lambda x: x * 2, dlarray(X))
    assert np.sum is kept and type(np.exp) is np.ufunc


def test_a_polynomial_answers_an_operator_of_an_array():
    polynomial = np.polynomial.Polynomial([1.0, 2.0])
    assert isinstance(tj.dlarray(2.0) * polynomial, np.polynomial.Polynomial)
