# SPDX-License-Identifier: BSD-3-Clause
"""Reductions: values against NumPy, labels, adjoints against independent derivatives, messages, kernels."""

import functools
import math

import numpy as np
import pytest
from bits import same_bits
from tracejit.kernels.loops import scan, search

import tracejit as tj
from tracejit.array import dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, DimsError, DTypeError
from tracejit.functions import axes as axes_module
from tracejit.functions import norms, reductions
from tracejit.functions.evaluate import dlfeval, dlgradient
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS
from tracejit.ops.op import Fold

NUMBERS = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "ptp": np.ptp,
    "count_nonzero": np.count_nonzero,
}
DTYPES = ("float64", "float32", "bool", "int8", "int32", "int64", "uint8", "uint64")
CASES = (
    ((2, 3), None),
    ((2, 3), 0),
    ((2, 3), -1),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), (-1, -3)),
    ((2, 1, 3), 1),
    ((1,), 0),
    ((), None),
    ((2, 3), ()),
    ((0, 3), 1),
)


def draw(shape, dtype="float64", seed=0):
    """Return numbers of a dtype, with zeros, repetitions and (where there are) negative numbers."""
    dtype = np.dtype(dtype)
    low = 0 if dtype.kind in "bu" else -3
    numbers = np.random.default_rng(seed).integers(low, 4, shape).astype(dtype)
    return numbers / dtype.type(2) if dtype.kind == "f" else numbers


def same(expected, result):
    """Assert that a dlarray holds the expected values, up to rounding, in their shape and dtype."""
    expected = np.asarray(expected)
    assert type(result) is dlarray
    assert result._data.shape == expected.shape
    assert result._data.dtype == expected.dtype
    if same_bits(result._data, expected):
        return
    if expected.dtype.kind == "f":
        digits = 1e-13 if expected.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(result._data, expected, rtol=digits, atol=digits)
    else:
        np.testing.assert_array_equal(result._data, expected)


def gradient(function, x, weight):
    """Return the gradient of sum(weight * function(x))."""
    return dlfeval(lambda x: dlgradient(reductions.sum(function(x) * weight), x), dlarray(x))._data


def second(function, x, weight, direction):
    """Return the gradient of the derivative along `direction` of sum(weight * function(x))."""

    def along(x):
        first = dlgradient(reductions.sum(function(x) * weight), x)
        return dlgradient(reductions.sum(first * direction), x)

    return dlfeval(along, dlarray(x))._data


def complex_step(function, x, weight):
    """Return the gradient of sum(weight * function(x)) of an analytic NumPy function, to rounding."""
    slopes = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-30j
        slopes[place] = np.sum(np.asarray(function(moved)).imag * weight) / 1e-30
    return slopes


def second_difference(function, x, weight, direction):
    """Return the central difference along `direction` of the gradient by complex step."""
    step = 1e-5 * direction
    ahead, behind = (complex_step(function, x + s, weight) for s in (step, -step))
    return (ahead - behind) / 2e-5


@pytest.mark.sampled
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_those_of_numpy(name, dtype):
    """Values, shapes and dtypes over shapes with size-1, empty and no axes."""
    if name == "ptp" and dtype == "bool":
        with pytest.raises(DTypeError, match="subtract: not defined for bool, bool"):
            reductions.ptp(draw((2, 3), dtype))
        return
    for shape, axis in CASES:
        if shape == (0, 3) and name in ("mean", "var", "std"):
            continue  # empty result; covered without NumPy's dtype quirks below
        x = draw(shape, dtype)
        for keepdims in (False, True):
            expected = NUMBERS[name](x, axis=axis, keepdims=keepdims)
            same(expected, getattr(tj, name)(x, axis, keepdims))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_first_extremum_is_that_of_numpy(name, dtype):
    """Ties go to the first; axis=None counts in C order."""
    for shape, axis in (((2, 3), 1), ((5, 4, 3), -2), ((7,), 0), ((2, 3), None), ((), None), ((0, 3), 1)):
        x = draw(shape, dtype, seed=1)
        for keepdims in (False, True):
            same(
                getattr(np, name)(x, axis=axis, keepdims=keepdims),
                getattr(tj, name)(x, axis, keepdims),
            )


@pytest.mark.sampled
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "argmax", "argmin"])
def test_special_values_are_those_of_numpy(name, special):
    """NaN and infinities pass as in NumPy, at each place."""
    for place in range(3):
        x = np.array([1.0, -2.0, 0.5])
        x[place] = special
        result = getattr(tj, name)(x)
        np.testing.assert_array_equal(result._data, getattr(np, name)(x))


def test_two_nans_count_from_the_first():
    """The first NaN is the place of both extrema."""
    x = np.array([1.0, np.nan, 5.0, np.nan])
    assert int(reductions.argmax(x)) == 1
    assert int(reductions.argmin(x)) == 1


def test_nothing_sums_to_0_and_multiplies_to_1():
    """Empty axes have a sum, a product, truth values, and no mean."""
    x = np.zeros((2, 0), np.float32)
    same(np.zeros(2, np.float32), reductions.sum(x, 1))
    same(np.ones(2, np.float32), reductions.prod(x, 1))
    same(np.zeros(2, bool), reductions.any(x, 1))
    same(np.ones(2, bool), reductions.all(x, 1))
    same(np.full(2, np.nan, np.float32), reductions.mean(x, 1))
    same(np.full(2, np.nan, np.float32), reductions.var(x, 1))
    same(np.full(2, -np.inf, np.float32), reductions.logsumexp(x, 1))
    same(np.zeros(2, np.float32), norms.norm(x, math.inf, 1))
    same(np.zeros((2, 0), np.float32), reductions.cumsum(x, 1))


def test_dtype_argument():
    """sum, prod, mean and cumsum compute in the dtype that is asked for."""
    x = draw((2, 3), "int32")
    for name in ("sum", "prod", "mean", "cumsum"):
        same(getattr(np, name)(x, axis=0, dtype=np.float32), getattr(tj, name)(x, 0, dtype=np.float32))
    same(np.sum(x, dtype=np.int8), reductions.sum(x, dtype="int8"))
    with pytest.raises(DTypeError, match="sum: data of type timedelta64"):
        reductions.sum(x, dtype="m8[s]")


def test_degrees_of_freedom():
    """ddof is taken off the divisor, which is never below 0."""
    x = draw((4, 3))
    same(np.var(x, axis=0, ddof=1), reductions.var(x, 0, ddof=1))
    same(np.std(x, ddof=1), reductions.std(x, ddof=1))
    assert np.isnan(reductions.var(np.ones(2), ddof=2)._data)
    assert np.isinf(reductions.var(np.array([1.0, 2.0]), ddof=3)._data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumsum_is_that_of_numpy(dtype):
    """Running sums along each axis and over all elements."""
    for shape, axis in (((2, 3), 0), ((2, 3), -1), ((2, 3), None), ((), None), ((3, 0), 1)):
        x = draw(shape, dtype)
        same(np.cumsum(x, axis), reductions.cumsum(x, axis))


@pytest.mark.parametrize(
    ("axis", "keepdims", "format"),
    [("C", False, "SSB"), ("SS", False, "CB"), ("S", True, "SSCB"), ("sb", False, "C"), (-1, False, "SSC"),
     ((1, 0), False, "CB"), (None, False, None), (None, True, "SSCB")],
)  # fmt: skip
def test_labels_of_reduced_axes_go_away(axis, keepdims, format):
    """An axis named by label or number takes its label with it, unless it is kept."""
    x = dlarray(draw((2, 3, 4, 5)), "SSCB")
    numbers = {"C": 2, "SS": (0, 1), "S": (0, 1), "sb": (0, 1, 3)}.get(axis, axis)
    for name in ("sum", "max", "mean", "std", "logsumexp", "any", "norm"):
        result = getattr(tj, name)(x, axis=axis, keepdims=keepdims)
        assert result._format == format
        assert result._data.shape == np.sum(x._data, axis=numbers, keepdims=keepdims).shape
    same(np.sum(x._data, axis=numbers, keepdims=keepdims), reductions.sum(x, axis, keepdims))


def test_labels_of_places_and_running_sums():
    """argmax drops or keeps the label of its axis, cumsum keeps all."""
    x = dlarray(draw((2, 3)), "BC")
    assert reductions.argmax(x, "C")._format == "B"
    assert reductions.argmax(x, "C", True)._format == "BC"
    assert reductions.argmin(x, keepdims=True)._format == "BC"
    assert reductions.argmin(x)._format is None
    assert reductions.cumsum(x, "C")._format == "BC"
    assert reductions.cumsum(x)._format is None


# Adjoints


def logsumexp(x, axis=None):
    return np.log(np.sum(np.exp(x), axis))


def root(x, axis=None):
    return np.sqrt(np.sum(x * x, axis))


ANALYTIC = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": lambda x, axis: np.mean((x - np.mean(x, axis, keepdims=True)) ** 2, axis),
    "std": lambda x, axis: np.sqrt(np.mean((x - np.mean(x, axis, keepdims=True)) ** 2, axis)),
    "logsumexp": logsumexp,
    "norm": root,
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", ANALYTIC)
@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 1), ((2, 3, 4), (0, 2)), ((5,), 0), ((2, 1, 3), None)])
def test_gradients_against_complex_step(name, shape, axis):
    """First derivatives to rounding, second ones to the accuracy of a difference."""
    generator = np.random.default_rng(2)
    x, direction = generator.normal(size=(2, *shape))
    weight = generator.normal(size=np.sum(x, axis).shape)
    reference = functools.partial(ANALYTIC[name], axis=axis)

    def function(x):
        return getattr(tj, name)(x, axis=axis)

    np.testing.assert_allclose(
        gradient(function, x, weight), complex_step(reference, x, weight), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        second(function, x, weight, direction),
        second_difference(reference, x, weight, direction),
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9])
def test_prod_of_any_length(count):
    """The tree of products pairs odd and even counts."""
    x = np.random.default_rng(3).normal(size=(2, count))
    expected = complex_step(lambda x: np.prod(x, 1), x, np.array([1.0, 2.0]))
    np.testing.assert_allclose(
        gradient(lambda x: reductions.prod(x, 1), x, np.array([1.0, 2.0])), expected, rtol=1e-12
    )


def test_prod_at_zeros():
    """One zero leaves one slope, two leave none, and their mixed second derivative is the rest."""
    x = np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 2.0], [0.0, 0.0, 0.0, 1.0]])
    slopes = gradient(lambda x: reductions.prod(x, 1), x, np.ones(3))
    np.testing.assert_array_equal(slopes, [[0, 24, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    direction = np.array([1.0, 0.0, 0.0, 0.0])
    curves = second(lambda x: reductions.prod(x, 1), x, np.ones(3), direction)
    np.testing.assert_array_equal(curves, [[0, 12, 0, 0], [0, 0, 10, 0], [0, 0, 0, 0]])


def test_prod_third_derivative():
    """d3/dx dy dz (x y z) is 1, also at 0."""

    def third(x):
        slope = dlgradient(reductions.prod(x), x)
        slope = dlgradient(reductions.sum(slope * np.array([1.0, 0.0, 0.0])), x)
        return dlgradient(reductions.sum(slope * np.array([0.0, 1.0, 0.0])), x)

    np.testing.assert_array_equal(dlfeval(third, dlarray(np.zeros(3)))._data, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum"])
def test_gradient_of_nothing_is_empty(name):
    """Empty arrays have empty gradients."""
    x = np.zeros((2, 0))
    weight = np.ones((2, 0)) if name == "cumsum" else np.ones(2)
    assert gradient(lambda x: getattr(tj, name)(x, axis=1), x, weight).shape == (2, 0)


@pytest.mark.parametrize(("name", "sign"), [("max", 1.0), ("min", -1.0)])
def test_ties_share_the_cotangent_equally(name, sign):
    """Two of three attain the extremum: each gets half of the cotangent."""
    x = sign * np.array([[1.0, 3.0, 3.0], [4.0, 0.0, 1.0]])
    slopes = gradient(lambda x: getattr(tj, name)(x, 1), x, np.array([2.0, 5.0]))
    np.testing.assert_array_equal(slopes, [[0.0, 1.0, 1.0], [5.0, 0.0, 0.0]])


def test_second_derivative_through_max():
    """max is piecewise linear: only what follows it bends."""
    x = np.array([1.0, 3.0, 2.0])
    curve = second(lambda x: reductions.max(x) ** 3.0, x, 1.0, np.ones(3))
    np.testing.assert_allclose(curve, [0.0, 18.0, 0.0])


def test_cumsum_gradient():
    """The cotangent runs back."""
    x = np.random.default_rng(4).normal(size=(2, 3))
    weight = np.arange(6.0).reshape(2, 3)
    slopes = gradient(lambda x: reductions.cumsum(x, 1), x, weight)
    np.testing.assert_array_equal(slopes, [[3, 3, 2], [12, 9, 5]])
    curve = second(lambda x: reductions.cumsum(x * x, 1), x, weight, np.ones((2, 3)))
    np.testing.assert_allclose(curve, 2.0 * slopes)


@pytest.mark.parametrize("name", ["any", "all", "argmax", "argmin", "count_nonzero"])
def test_no_derivative_through_counts(name):
    """Places and truth values are constant where they are defined."""
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gradient(lambda x: getattr(tj, name)(x) + x[0], x, 1.0), [1, 0, 0])


# logsumexp and norm


def test_logsumexp_against_scipy():
    """Stable for large numbers, right for infinities and NaN."""
    from scipy.special import logsumexp as reference

    rows = np.array(
        [
            [1000.0, 1000.0, 999.0],
            [-1000.0, -1001.0, -1002.0],
            [-np.inf, -np.inf, -np.inf],
            [-np.inf, 0.0, 1.0],
            [np.inf, 0.0, -np.inf],
            [np.inf, np.inf, 1.0],
            [np.nan, 0.0, np.inf],
        ]
    )
    same(reference(rows, axis=1), reductions.logsumexp(rows, 1))
    same(reference(rows, axis=1, keepdims=True), reductions.logsumexp(rows, 1, True))
    same(
        reference(rows[:2].astype(np.float32), axis=1).astype(np.float32),
        reductions.logsumexp(rows[:2].astype("f4"), 1),
    )
    same(reference(np.arange(3)), reductions.logsumexp(np.arange(3)))


def test_logsumexp_gradient_is_softmax_also_at_infinity():
    """Rows of -inf have the gradient 0, not NaN; -inf within a row has 0."""
    rows = np.array([[1000.0, 1000.0], [-np.inf, 0.0], [-np.inf, -np.inf]])
    slopes = gradient(lambda x: reductions.logsumexp(x, 1), rows, np.ones(3))
    np.testing.assert_array_equal(slopes, [[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]])


@pytest.mark.sampled
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "ord", "axis"),
    [((2, 3), None, None), ((2, 3, 4), None, None), ((3,), 1, None), ((3,), 2, None), ((3,), np.inf, None),
     ((2, 3), 1, 0), ((2, 3), 2, 1), ((2, 3), np.inf, -1), ((2, 3), 1, None), ((2, 3), np.inf, None),
     ((2, 3), "fro", None), ((2, 3, 4), 1, (0, 2)), ((2, 3, 4), 1, (2, 0)), ((2, 3, 4), np.inf, (-1, 0)),
     ((2, 3, 4), "fro", (1, 2)), ((2, 3, 4), None, (0, 1))],
)  # fmt: skip
def test_norms_are_those_of_numpy(shape, ord, axis, keepdims):
    """Vector and matrix norms; integers in float64."""
    for dtype in ("float64", "float32", "int32"):
        x = draw(shape, dtype)
        expected = np.linalg.norm(x, ord, axis, keepdims)
        same(
            np.asarray(expected, dtype if dtype != "int32" else "float64"),
            norms.norm(x, ord, axis, keepdims),
        )


@pytest.mark.parametrize("ord", [1, np.inf])
def test_norm_slopes_away_from_kinks(ord):
    """The derivatives of the other norms by their definition."""
    x = np.array([1.0, -3.0, 2.0])
    expected = np.sign(x) if ord == 1 else [0.0, -1.0, 0.0]
    np.testing.assert_array_equal(gradient(lambda x: norms.norm(x, ord), x, 1.0), expected)


@pytest.mark.parametrize("name", ["norm", "std"])
def test_roots_have_the_derivative_0_at_0(name):
    """A row of zeros does not make NaN, at first or second order."""
    x = np.array([[0.0, 0.0], [3.0, 4.0]])

    def function(x):
        return getattr(tj, name)(x, axis=1)

    slopes = gradient(function, x, np.ones(2))
    np.testing.assert_array_equal(slopes[0], [0.0, 0.0])
    np.testing.assert_allclose(slopes[1], [0.6, 0.8] if name == "norm" else [-0.5, 0.5])
    curves = second(function, x, np.ones(2), np.ones((2, 2)))
    np.testing.assert_array_equal(curves[0], [0.0, 0.0])
    assert np.isfinite(curves).all()


# Messages

X = dlarray(np.zeros((2, 0, 3)), "SBC")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: reductions.sum(X, 3), DimsError,
         "sum: axis 3 is out of range for an array of 2(S) x 0(B) x 3(C); axes are -3 to 2."),
        (lambda: reductions.mean(1.0, 0), DimsError,
         "mean: axis 0 is out of range for an array of scalar; a scalar has no axes."),
        (lambda: reductions.mean(X, (0, -3)), DimsError,
         "mean: axis=(0, -3) names axis 0 twice in an array of 2(S) x 0(B) x 3(C); name each axis once."),
        (lambda: reductions.sum(X, "T"), DimsError,
         "sum: axis='T' names the label T, but the array is of 2(S) x 0(B) x 3(C); "
         "name labels of its format 'SBC'."),
        (lambda: reductions.sum(X, "Q"), DimsError,
         "sum: axis='Q' is not a string of labels; labels are S (spatial), C (channel), B (batch), T (time) "
         "and U (unspecified)."),
        (lambda: reductions.sum(np.ones((2, 3)), "C"), DimsError,
         "sum: axis='C' names axes by label, but the array of 2x3 is unformatted; give numbers, or label it "
         "with dlarray(x, format)."),
        (lambda: reductions.sum(X, 1.5), ArgumentError,
         "sum: axis must be an integer, a tuple of integers, a string of labels or None, not 1.5."),
        (lambda: reductions.sum(X, True), ArgumentError,
         "sum: axis must be an integer, a tuple of integers, a string of labels or None, not True."),
        (lambda: reductions.argmax(X, "SC"), DimsError,
         "argmax: axis='SC' names 2 axes of an array of 2(S) x 0(B) x 3(C), but one is needed; give its "
         "number."),
        (lambda: reductions.max(X, "B"), DimsError,
         "max: axis 1 of an array of 2(S) x 0(B) x 3(C) is empty, so it has no maximum; reduce "
         "axes that hold elements, or pad this one first."),
        (lambda: reductions.argmin(X, "B"), DimsError,
         "argmin: axis 1 of an array of 2(S) x 0(B) x 3(C) is empty, so it has no minimum; reduce "
         "axes that hold elements, or pad this one first."),
        (lambda: reductions.argmax(X), DimsError,
         "argmax: an array of 2(S) x 0(B) x 3(C) is empty, so it has no extremum; pass at least one element."),
        (lambda: norms.norm(np.ones(2), 3), ArgumentError,
         "norm: ord must be None, 1, 2, inf or 'fro', not 3."),
        (lambda: norms.norm(np.ones(2), "nuc"), ArgumentError,
         "norm: ord must be None, 1, 2, inf or 'fro', not 'nuc'."),
        (lambda: norms.norm(np.ones((2, 3)), 2), ArgumentError,
         "norm: ord=2 of a matrix is its largest singular value, which is not supported; use ord='fro' for "
         "the root of the sum of squares, or give one axis for the norms of vectors."),
        (lambda: norms.norm(np.ones((2, 3, 4)), 1), DimsError,
         "norm: ord=1 applies to vectors and matrices, but axis=None of an array of 2x3x4 names 3 axes; give "
         "axis, or ord=None for the root of the sum of all squares."),
        (lambda: norms.norm(np.ones(3), "fro"), DimsError,
         "norm: ord='fro' applies to matrices, but axis=None of an array of 3 names 1 axes; give axis, or "
         "ord=None for the root of the sum of all squares."),
    ],
)  # fmt: skip
def test_messages(call, error, message):
    """Every message names function, sizes with labels, and what to do."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def test_axes_are_sorted_and_not_negative():
    """The normaliser's results go into params, which are hashed."""
    assert axes_module.normalize_axes("f", X, [-1, np.int64(0)]) == (0, 2)
    assert axes_module.normalize_axes("f", X, np.int64(1)) == (1,)
    assert axes_module.normalize_axes("f", X, None) == (0, 1, 2)
    assert axes_module.normalize_axis("f", X, -1) == 2
    assert axes_module.normalize_axis("f", X, "b") == 1


# What the code generator reads


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_compute_what_the_reference_does(name, dtype):
    """init and combine, as they are emitted, give the reference's value, at NaN too."""
    op = OPS[name]
    assert isinstance(op.emit, Fold)
    rows = [draw((5,), dtype, seed) for seed in range(4)]
    if np.dtype(dtype).kind == "f":
        rows += [
            np.array(row, dtype)
            for row in ([np.nan, 1, 2], [1, np.nan, 2], [1, 2, np.nan], [-np.inf, -np.inf])
        ]
    combine = compile(op.emit.combine.format("accumulator", "element"), "combine", "eval")
    for row in rows:
        out = op.infer(Aval(row.shape, None, row.dtype), axes=(0,), keepdims=False).dtype
        accumulator = op.emit.init(out)
        assert out.type(accumulator) == accumulator
        for element in row.astype(out).tolist():
            names = {"accumulator": accumulator, "element": element, "where": lambda c, x, y: x if c else y}
            accumulator = eval(combine, names)
        np.testing.assert_array_equal(op.numpy(row, axes=(0,), keepdims=False), out.type(accumulator))


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_compute_what_the_reference_does(name, dtype):
    """The loops in kernels/, run as plain Python over flat memory."""
    op = OPS[name]
    for sample in op.samples:
        for special in (None, np.nan):
            x = draw(sample.shapes[0], dtype, seed=5)
            if special is not None:
                if x.dtype.kind != "f":
                    continue
                x.flat[1::3] = special
            if op.promote is not None:
                x = x.astype(op.promote(x.dtype)[0])
            aval = Aval(x.shape, None, x.dtype)
            out_aval = op.infer(aval, **sample.params)
            out = np.full(out_aval.size, 99, out_aval.dtype)
            if name == "cumsum":
                scan.cumsum(*op.emit.numbers(out_aval, aval, **sample.params), x.ravel(), out)
            else:  # the place of what another kernel has found
                best = getattr(np, name[3:])(x, **sample.params)
                found = OPS["first_place"].emit.numbers(
                    out_aval, aval, Aval(best.shape, None, best.dtype), **sample.params
                )
                search.first_place(*found, x.ravel(), np.ravel(best), out)
            np.testing.assert_array_equal(out.reshape(out_aval.shape), op.numpy(x, **sample.params))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumsum"])
def test_records_in_a_graph(name):
    """Each sample of a record makes a legal graph whose value is the reference's."""
    for sample in OPS[name].samples:
        x = draw(sample.shapes[0], (sample.dtypes or ("float64",))[0])
        graph = Graph()
        b = Builder(graph)
        graph.outputs.append(b.apply(OPS[name], [b.input(Aval(x.shape, None, x.dtype))], dict(sample.params)))
        verify(graph)
        (result,) = evaluate(graph, [x])
        assert (result.shape, result.dtype) == (graph.outputs[0].shape, graph.outputs[0].dtype)
        np.testing.assert_array_equal(result, OPS[name].numpy(x, **sample.params))


def test_what_a_sum_is_added_to_is_as_large_as_it():
    """sum_add is made by the compiler, and does not broadcast."""
    x = Aval((2, 3), None, np.dtype("f4"))
    for z in (Aval((1,), None, np.dtype("f4")), Aval((3,), None, np.dtype("f8"))):
        with pytest.raises(DimsError) as caught:
            OPS["sum_add"].infer(x, z, axes=(0,), keepdims=False)
        assert str(caught.value) == (
            f"sum_add: z is {z.dtype} of size {z.shape[0]}, but the sum that is added to it is float32 of size 3; "
            "use sum and add, which broadcast and promote."
        )
