# SPDX-License-Identifier: BSD-3-Clause
"""Relations of samples and tests of their means, under the names of scipy.stats: statistics and their p-values."""

import math
from typing import Any, NamedTuple

import numpy as np

from tracejit.array import dlarray
from tracejit.aval import FLOAT64
from tracejit.errors import DimsError
from tracejit.functions import elementwise as e
from tracejit.functions import movement, reductions
from tracejit.functions.axes import normalize_axis
from tracejit.functions.formats import floating, in_dtype, operand
from tracejit.functions.refusals import refuse
from tracejit.functions.special_ufuncs import call
from tracejit.util.arguments import flag, is_option
from tracejit.util.text import brief


class SignificanceResult(NamedTuple):
    """A statistic, and the probability of one at least as extreme if there is no relation."""

    statistic: dlarray
    pvalue: dlarray


class _Line(NamedTuple):
    slope: dlarray
    intercept: dlarray
    rvalue: dlarray
    pvalue: dlarray
    stderr: dlarray


class LinregressResult(_Line):
    """A line through points, how much of them it explains, and the standard errors of its coefficients.

    The standard error of the intercept is an attribute only, as in SciPy. An accelerated function that returns the
    whole result returns no attribute.
    """

    intercept_stderr: dlarray


def _pair(name: str, x: Any, y: Any, axis: Any, least: int) -> tuple[dlarray, dlarray, int]:
    """Return two samples of one size, and the axis.

    Raises:
        DimsError: if they differ in size, or are shorter than `least`.
    """
    first, second = floating(f"stats.{name}", x), floating(f"stats.{name}", y)
    if first.shape != second.shape or not first.ndim:
        raise DimsError(
            f"stats.{name}: x has shape {first.shape} and y {second.shape}, expected samples of one size."
        )
    place = normalize_axis(f"stats.{name}", first, axis)
    if first.shape[place] < least:
        raise DimsError(f"stats.{name}: there are {first.shape[place]} samples, expected at least {least}.")
    return first, second, place


def _p_value(name: str, lower: dlarray, upper: dlarray, alternative: Any) -> dlarray:
    """Return the probability of a statistic at least as extreme, from those of smaller and of larger ones."""
    if not is_option(alternative, ("two-sided", "less", "greater")):
        refuse(
            f"stats.{name}", f"alternative must be 'two-sided', 'less' or 'greater', not {brief(alternative)}"
        )
    if alternative == "two-sided":
        return 2.0 * e.minimum(lower, upper)
    return lower if alternative == "less" else upper


def _of_student(name: str, t: dlarray, df: Any, alternative: Any) -> SignificanceResult:
    return SignificanceResult(t, _p_value(name, call("stdtr", (df, t)), call("stdtr", (df, -t)), alternative))


def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", axis: Any = 0) -> SignificanceResult:
    """Return Pearson's coefficient of correlation, and its p-value for normal samples.

    Args:
        x, y: samples of one size, at least two.
        alternative: "two-sided", "less" or "greater": which correlations the p-value is for.
        axis: the axis of the samples.

    Returns:
        A named tuple of dlarrays: statistic and pvalue.

    Raises:
        DimsError: if the samples differ in size.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.pearsonr([1.0, 2.0, 4.0], [1.0, 3.0, 2.0]).statistic.round(6).item()
        0.327327
    """
    first, second, place = _pair("pearsonr", x, y, axis, 2)
    count = first.shape[place]
    first, second = (z - reductions.mean(z, place, True) for z in (first, second))
    squares = reductions.sum(first * first, place) * reductions.sum(second * second, place)
    r = e.clip(reductions.sum(first * second, place) / e.sqrt(squares), -1.0, 1.0)
    if count == 2:  # on a line
        certain, even = e.round(r), r * 0.0 + 0.5
        # No line of two points is unlikely, whichever correlations the p-value is for.
        return SignificanceResult(certain, _p_value("pearsonr", even, even, alternative) * 0.0 + 1.0)
    half = count / 2.0 - 1.0
    lower, upper = (call("betainc", (half, half, (1.0 + sign * r) * 0.5)) for sign in (1.0, -1.0))
    return SignificanceResult(r, _p_value("pearsonr", lower, upper, alternative))


def linregress(x: Any, y: Any, alternative: str = "two-sided") -> LinregressResult:
    """Return the line of least squares through points.

    Args:
        x, y: vectors of one size, at least three.
        alternative: "two-sided", "less" or "greater": which slopes the p-value is for.

    Returns:
        A named tuple of dlarrays: slope, intercept, rvalue, pvalue and stderr, with the attribute intercept_stderr.

    Raises:
        DimsError: if the vectors differ in size.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.linregress([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]).slope.item()
        2.0
    """
    first, second, place = _pair("linregress", x, y, 0, 3)
    first, second = in_dtype(first, FLOAT64), in_dtype(second, FLOAT64)  # as np.cov, which SciPy calls
    if first.ndim != 1:
        raise DimsError(f"stats.linregress: x has shape {first.shape}, expected vectors.")
    df = first.shape[0] - 2.0
    means = [reductions.mean(z, place) for z in (first, second)]
    first, second = first - means[0], second - means[1]
    xx, xy, yy = (reductions.mean(z, place) for z in (first * first, first * second, second * second))
    r = e.clip(xy / e.sqrt(xx * yy), -1.0, 1.0)
    slope = xy / xx
    t = r * e.sqrt(df / ((1.0 - r + 1e-20) * (1.0 + r + 1e-20)))
    error = e.sqrt((1.0 - r * r) * yy / xx / df)
    found = LinregressResult(
        slope,
        means[1] - slope * means[0],
        r,
        _of_student("linregress", t, df, alternative).pvalue,
        error,
    )
    found.intercept_stderr = error * e.sqrt(xx + means[0] * means[0])
    return found


def ttest_1samp(a: Any, popmean: Any, axis: Any = 0, alternative: str = "two-sided") -> SignificanceResult:
    """Return Student's t of samples whose mean is expected, and its p-value.

    Args:
        a: samples, at least two.
        popmean: the mean that is expected: a number, or an array with size 1 along the axis.
        axis: the axis of the samples.
        alternative: "two-sided", "less" or "greater": which means the p-value is for.

    Returns:
        A named tuple of dlarrays: statistic and pvalue.

    Raises:
        DimsError: if the array has no such axis, or `popmean` has other sizes.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.ttest_1samp([1.0, 3.0], 0.0).statistic.item()
        2.0
    """
    x = floating("stats.ttest_1samp", a)
    place = normalize_axis("stats.ttest_1samp", x, axis)
    count = x.shape[place]
    spread = reductions.std(x, place, ddof=1) / float(count) ** 0.5
    expected = operand("stats.ttest_1samp", "popmean", popmean)
    if np.shape(expected):
        if np.shape(expected) != tuple([1 if k == place else size for k, size in enumerate(x.shape)]):
            refuse(
                "stats.ttest_1samp",
                f"popmean has shape {np.shape(expected)} and the samples {x.shape}, expected a number, or the sizes of "
                "the samples with 1 along the axis",
                DimsError,
            )
        expected = movement.squeeze(expected, place)
    t = (reductions.mean(x, place) - expected) / spread
    return _of_student("ttest_1samp", t, count - 1.0, alternative)


def ttest_rel(a: Any, b: Any, axis: Any = 0, alternative: str = "two-sided") -> SignificanceResult:
    """Return Student's t of the differences of pairs, and its p-value.

    Args:
        a, b: samples of one size.
        axis, alternative: as in `ttest_1samp`.

    Returns:
        A named tuple of dlarrays: statistic and pvalue.

    Raises:
        DimsError: if the samples differ in size.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.ttest_rel([2.0, 5.0], [1.0, 2.0]).statistic.item()
        2.0
    """
    first, second, place = _pair("ttest_rel", a, b, axis, 2)
    return ttest_1samp(first - second, 0.0, place, alternative)


def _check_beside(name: str, samples: list[dlarray], axes: list[int]) -> None:
    """Check that samples differ in size along their axes only.

    Raises:
        DimsError: if they do not.
    """
    others = [x.shape[:place] + x.shape[place + 1 :] for x, place in zip(samples, axes, strict=True)]
    if axes[0] != axes[1] or others[0] != others[1]:
        raise DimsError(
            f"stats.{name}: samples have shapes {samples[0].shape} and {samples[1].shape}, expected sizes that differ "
            "along the axis only."
        )


def ttest_ind(
    a: Any, b: Any, *, axis: Any = 0, equal_var: bool = True, alternative: str = "two-sided"
) -> SignificanceResult:
    """Return the t of two independent samples, Student's or Welch's, and its p-value.

    Args:
        a, b: samples, whose sizes differ along the axis only.
        axis: the axis of the samples.
        equal_var: False for Welch's test, of samples whose variances may differ.
        alternative: "two-sided", "less" or "greater": which differences of the means the p-value is for.

    Returns:
        A named tuple of dlarrays: statistic and pvalue.

    Raises:
        DimsError: if the array has no such axis.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.ttest_ind([1.0, 3.0], [5.0, 7.0]).statistic.round(6).item()
        -2.828427
    """
    samples = [floating("stats.ttest_ind", x) for x in (a, b)]
    axes = [normalize_axis("stats.ttest_ind", x, axis) for x in samples]
    # Of no samples there is no t, as for SciPy.
    counts = [float(x.shape[place]) or math.nan for x, place in zip(samples, axes, strict=True)]
    _check_beside("ttest_ind", samples, axes)
    means = [reductions.mean(x, place) for x, place in zip(samples, axes, strict=True)]
    variances = [reductions.var(x, place, ddof=1) for x, place in zip(samples, axes, strict=True)]
    df: Any = counts[0] + counts[1] - 2.0
    if flag("stats.ttest_ind", "equal_var", equal_var):
        # A single sample has no variance, and no part in that of both.
        variances = [
            mean * 0.0 if count == 1 else variance
            for mean, variance, count in zip(means, variances, counts, strict=True)
        ]
        pooled = (variances[0] * (counts[0] - 1.0) + variances[1] * (counts[1] - 1.0)) / df
        square = pooled * (1.0 / counts[0] + 1.0 / counts[1])
    else:
        parts = [variance / count for variance, count in zip(variances, counts, strict=True)]
        square = parts[0] + parts[1]
        df = square * square / (parts[0] ** 2 / (counts[0] - 1.0) + parts[1] ** 2 / (counts[1] - 1.0))
    return _of_student("ttest_ind", (means[0] - means[1]) / e.sqrt(square), df, alternative)


def iqr(x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0) -> dlarray:
    """Return ranges between quantiles.

    Args:
        x: dlarray, ndarray or list.
        axis: the axis of the samples; None for the whole array.
        rng: the two quantiles, in percent.
        scale: a number that the ranges are divided by, or "normal" for the one of the normal distribution.

    Returns:
        dlarray.

    Raises:
        ArgumentError: for another `rng` than a pair.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.iqr([0.0, 1.0, 2.0, 3.0, 4.0]).item()
        2.0
    """
    if not isinstance(rng, (tuple, list)) or len(rng) != 2:
        refuse("stats.iqr", f"rng must be a pair of percentages, not {brief(rng)}")
    array: Any = floating("stats.iqr", x)
    width = np.percentile(array, max(rng), axis=axis) - np.percentile(array, min(rng), axis=axis)
    return _scaled("iqr", width, scale, 1.3489795003921634)


def median_abs_deviation(x: Any, axis: Any = 0, scale: Any = 1.0) -> dlarray:
    """Return the median distance from the median.

    Args:
        x: dlarray, ndarray or list.
        axis: the axis of the samples; None for the whole array.
        scale: a number that the distances are divided by, or "normal" for the one of the normal distribution.

    Returns:
        dlarray.

    Raises:
        ArgumentError: for another scale.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.median_abs_deviation([0.0, 1.0, 5.0]).item()
        1.0
    """
    array: Any = floating("stats.median_abs_deviation", x)
    middle = np.median(array, axis=axis, keepdims=True)
    return _scaled(
        "median_abs_deviation", np.median(abs(array - middle), axis=axis), scale, 0.6744897501960817
    )


def _scaled(name: str, found: Any, scale: Any, of_normal: float) -> dlarray:
    if isinstance(scale, str):
        if scale != "normal":
            refuse(f"stats.{name}", f"scale must be a number or 'normal', not {scale!r}")
        scale = of_normal
    result: dlarray = found / scale
    return result
