# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of samples and tests of means against scipy.stats, with derivatives, in replays and in float32."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from accelerated import dlaccelerate

import tracejit as tj

RNG = np.random.default_rng(5)
X, Y = RNG.gamma(2.0, size=(5, 7)) + 0.2, RNG.gamma(3.0, size=(5, 7)) + 0.1
W = RNG.uniform(0.2, 1.0, 7)
CALLS = """
zscore(x) | zscore(x, axis=1, ddof=1) | zscore(x, axis=None) | zmap(x, y) | zmap(x[0], y[1], ddof=1) | sem(x)
sem(x, axis=None) | sem(x, axis=1, ddof=0, keepdims=True) | variation(x) | variation(x, axis=1, ddof=1)
moment(x) | moment(x, order=2) | moment(x, order=5, axis=1, keepdims=True) | moment(x, order=3, axis=None)
moment(x, order=3, center=0.5) | moment(x, order=0)
skew(x) | skew(x, axis=1, bias=False) | skew(x, axis=None, keepdims=True) | skew(x[:2], bias=False) | kurtosis(x)
kurtosis(x, axis=1, bias=False) | kurtosis(x, axis=None, fisher=False) | kurtosis(x[:3], bias=False) | gmean(x)
gmean(x, axis=1, weights=w) | gmean(x, axis=None) | hmean(x) | hmean(x, axis=1, weights=w, keepdims=True)
hmean(x - 0.5) | pmean(x, 3) | pmean(x, -0.5, axis=1, weights=w) | pmean(x, 0) | gstd(x) | gstd(x, axis=1, ddof=0)
entropy(x) | entropy(x, axis=1, base=2) | entropy(x, y) | entropy(x[0], y[0], base=3.0)
entropy(x, w) | entropy(x, w, axis=1) | entropy(x, y[:, :1], axis=-1) | pearsonr(x[0], y[0])
pearsonr(x[0], x[0] + 0.05 * y[0]) | pearsonr(x[0], y[0], alternative="less")
pearsonr(x[0], y[0], alternative="greater") | pearsonr(x[0, :2], y[0, :2])
pearsonr(x[0, :2], y[0, :2], alternative="less") | pearsonr(x[0, :2], y[0, :2], alternative="greater")
linregress(x[0], y[0]) | linregress(x[0], y[0], alternative="greater") | ttest_1samp(x, 1.0)
ttest_1samp(x, 2.5, axis=1, alternative="less") | ttest_rel(x, y) | ttest_rel(x, y, axis=1, alternative="greater")
ttest_ind(x, y) | ttest_ind(x[:3], y) | ttest_ind(x[:3], y, equal_var=False)
ttest_ind(x, y, axis=1, alternative="less")
iqr(x) | iqr(x, axis=1, scale="normal") | iqr(x, axis=0, rng=(10, 60)) | median_abs_deviation(x)
median_abs_deviation(x, axis=None) | median_abs_deviation(x, axis=1, scale="normal")
"""
ROWS = [row.strip() for row in CALLS.replace("|", "\n").splitlines() if row.strip()]


def computed(row: str, package: Any, x: Any, y: Any, w: Any) -> list[Any]:
    """Return the numbers of a call, in the order of its result."""
    found = eval(f"m.{row}", {"m": package, "x": x, "y": y, "w": w})
    if not isinstance(found, tuple) and hasattr(found, "statistic"):
        found = (found.statistic, found.pvalue)
    if hasattr(found, "intercept_stderr"):
        found = (*tuple(found)[:5], found.intercept_stderr)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.sampled
@pytest.mark.parametrize("row", ROWS)
def test_values_are_those_of_scipy(row: str) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's, of negative numbers that have no mean
        want = computed(row, scipy.stats, X, Y, W)
        step = dlaccelerate(lambda *values: computed(row, tj.stats, *values))
        eager = computed(row, tj.stats, *map(tj.dlarray, (X, Y, W)))
        for have in (eager, *(step(X, Y, W) for _ in range(3))):
            assert len(have) == len(want)
            for ours, theirs in zip(have, want, strict=True):
                assert ours.shape == np.shape(theirs)
                np.testing.assert_allclose(tj.extractdata(ours), theirs, rtol=1e-11, atol=1e-13)
        assert step.stats.hits > 0
        narrow = computed(row, tj.stats, *[np.float32(z) for z in (X, Y, W)])
    # SciPy's function calls np.cov, which gives double precision.
    assert {z.dtype for z in narrow} == {np.dtype(np.float64 if row.startswith("linregress") else np.float32)}


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if "[0, :2]" not in row and "- 0.5)" not in row])
def test_derivatives(row: str) -> None:
    def loss(*values: Any) -> Any:
        return sum((np.sin(y) * y).sum() for y in computed(row, tj.stats, *values))

    tj.testing.check_gradients(loss, X, Y, W)
    if (
        "iqr" in row or "median" in row or "equal_var" in row
    ):  # betainc has no second derivatives by degrees of freedom
        return
    by = [RNG.normal(size=z.shape) for z in (X, Y, W)]

    def slope(*values: Any) -> Any:
        return sum((g * d).sum() for g, d in zip(tj.dlgradient(loss(*values), values), by, strict=True))

    near = [
        tj.dlfeval(slope, *[z + k * 1e-4 * d for z, d in zip((X, Y, W), by, strict=True)]).item()
        for k in (-2, -1, 1, 2)
    ]
    want = (8 * (near[2] - near[1]) - near[3] + near[0]) / 12e-4
    have = tj.dlfeval(
        lambda *v: sum((g * d).sum() for g, d in zip(tj.dlgradient(slope(*v), v), by, strict=True)), X, Y, W
    )
    assert abs(have.item() - want) <= 1e-5 * max(1.0, abs(want))


def test_samples_that_are_equal_have_no_scores() -> None:
    x = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])
    for name in ("zscore", "skew", "kurtosis"):
        function = getattr(tj.stats, name)
        found = tj.extractdata(function(x))
        assert np.isnan(found[..., 0]).all() and np.isfinite(found[..., 1]).all()
        slope = tj.dlfeval(lambda x, f=function: tj.dlgradient(f(x)[..., 1].sum(), x), x)
        assert np.isfinite(tj.extractdata(slope)).all()


@pytest.mark.parametrize("equal_var", [True, False])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_a_t_of_too_few_samples_is_nan(sizes: tuple[int, int], equal_var: bool) -> None:
    samples = [np.arange(float(size)) for size in sizes]
    found = tj.stats.ttest_ind(*samples, equal_var=equal_var)
    assert np.isnan(found.statistic.item()) and np.isnan(found.pvalue.item())


SHAPES = [(4,), (3, 4), (4, 4), (3, 1), (1, 4), (1,), (2, 3, 4)]
OF_TWO = {
    "ttest_ind": lambda package, x, y, axis: package.ttest_ind(x, y, axis=axis),
    "welch": lambda package, x, y, axis: package.ttest_ind(x, y, axis=axis, equal_var=False),
    "ttest_1samp": lambda package, x, y, axis: package.ttest_1samp(x, y, axis=axis),
    "ttest_rel": lambda package, x, y, axis: package.ttest_rel(x, y, axis=axis),
    "gmean": lambda package, x, y, axis: package.gmean(x, weights=y, axis=axis),
    "pmean": lambda package, x, y, axis: package.pmean(x, 2.0, weights=y, axis=axis),
    "entropy": lambda package, x, y, axis: package.entropy(x, y, axis=axis),
    "moment": lambda package, x, y, axis: package.moment(x, order=2, center=y, axis=axis),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(by=lambda case: case["name"])
@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", OF_TWO)
def test_two_samples_of_any_sizes(
    name: str, axis: int, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    """They give SciPy's numbers, or raise an error; in a recorded function SciPy's numbers, or its error."""
    if name == "entropy" and (len(first) < len(second) or 1 in first):
        pytest.skip("versions of SciPy differ")
    fun, rng = OF_TWO[name], np.random.default_rng(3)
    x, y = rng.random(first) + 0.2, rng.random(second) + 0.2
    try:
        expected: Any = parts(fun(scipy.stats, x, y, axis))
    except Exception as error:
        expected = error
    for run in (
        lambda: fun(tj.stats, x, y, axis),
        lambda: dlaccelerate(lambda x, y: fun(scipy.stats, x, y, axis))(x, y),
    ):
        try:
            found = parts(run())
        except tj.TraceJitError:
            continue
        except Exception as error:
            assert type(error) is type(expected)
            continue
        assert not isinstance(expected, Exception)
        for have, want in zip(found, expected, strict=True):
            assert have.shape == want.shape
            np.testing.assert_allclose(have, want, rtol=1e-8, atol=1e-12)


def parts(found: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


def test_labels_leave_with_their_axes() -> None:
    x = tj.dlarray(X, "CB")
    assert tj.stats.skew(x, axis="B").format == "C" and tj.stats.zscore(x, axis="C").format == "CB"
    assert tj.stats.gmean(x, axis=0).format == "B" and tj.stats.sem(x, axis=None).shape == ()
