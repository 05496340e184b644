# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of samples: means, scores, and measures of spread and shape, under the names of scipy.stats.

Labels: reduced axes take theirs with them.
"""

from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import DimsError
from tracejit.functions import elementwise as e
from tracejit.functions import movement, reductions
from tracejit.functions.axes import normalize_axes
from tracejit.functions.formats import floating, in_dtype, operand
from tracejit.functions.refusals import refuse
from tracejit.functions.special_ufuncs import call
from tracejit.util.arguments import flag, integer, real
from tracejit.util.text import brief


def _samples(
    name: str, a: Any, axis: Any, nan_policy: Any = "propagate"
) -> tuple[dlarray, tuple[int, ...], int]:
    """Return samples, the axes that `axis` names, and how many samples lie along them.

    Raises:
        DTypeError: for complex numbers.
        DimsError: if the array has no such axis.
        ArgumentError: for another way with NaN than to keep it.
    """
    if not isinstance(nan_policy, str) or nan_policy != "propagate":
        refuse(
            f"stats.{name}",
            f"nan_policy must be 'propagate', not {brief(nan_policy)}; leave NaN out, as x[~np.isnan(x)]",
        )
    x = floating(f"stats.{name}", a)
    axes = normalize_axes(f"stats.{name}", x, axis)
    return x, axes, reductions.number_of(x, axes)


def _of_one_shape(name: str, *samples: Any, axis: Any) -> list[dlarray]:
    """Return samples of the sizes that they broadcast to, of which `axis` names one; labelled ones as they are."""
    found = [floating(f"stats.{name}", x) for x in samples]
    if any(x.format is not None for x in found) or len({x.shape for x in found}) == 1:
        return found
    if axis is None:
        found = [movement.reshape(x, (-1,)) for x in found]
    try:
        shape = np.broadcast_shapes(*[x.shape for x in found])
    except ValueError:
        sizes = " and ".join(str(x.shape) for x in found)
        refuse(f"stats.{name}", f"samples of sizes {sizes} do not broadcast", DimsError)
    return [x if x.shape == shape else movement.broadcast_to(x, shape) for x in found]


def _without_axes(x: dlarray, axes: tuple[int, ...], keepdims: Any, name: str) -> dlarray:
    return x if flag(f"stats.{name}", "keepdims", keepdims) or not axes else movement.squeeze(x, axes)


def _central(x: dlarray, axes: tuple[int, ...], orders: tuple[int, ...]) -> tuple[dlarray, list[dlarray]]:
    """Return means, and central moments of some orders, with the axes."""
    mean = reductions.mean(x, axes, True)
    return mean, [reductions.mean((x - mean) ** k, axes, True) for k in orders]


def _is_constant(mean: dlarray, variance: dlarray) -> dlarray:
    """Return where samples are equal, up to rounding; a quotient by their spread is NaN there."""
    found: dlarray = variance <= e.square(mean * float(np.finfo(mean.dtype).eps))
    return found


def zscore(a: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> dlarray:
    """Return samples minus their mean, divided by their standard deviation.

    Args:
        a: dlarray of any format, ndarray or list.
        axis: the axis of the samples, or its label; None for the whole array.
        ddof: what is subtracted from the number of samples that the variance is divided by.
        nan_policy: "propagate": results of samples with NaN are NaN.

    Returns:
        dlarray as large as `a`, NaN where samples are equal.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.zscore([1.0, 3.0]).tolist()
        [-1.0, 1.0]
    """
    return _scores("zscore", a, a, axis, ddof, nan_policy)


def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0, nan_policy: str = "propagate") -> dlarray:
    """Return scores minus the mean of other samples, divided by the standard deviation of these.

    Args:
        scores: dlarray, ndarray or list.
        compare: the other samples.
        axis, ddof, nan_policy: as in `zscore`, for `compare`.

    Returns:
        dlarray, NaN where the samples are equal.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.zmap([4.0], [1.0, 3.0]).tolist()
        [2.0]
    """
    return _scores("zmap", scores, compare, axis, ddof, nan_policy)


def _scores(name: str, scores: Any, compare: Any, axis: Any, ddof: Any, nan_policy: Any) -> dlarray:
    x, axes, _ = _samples(name, compare, axis, nan_policy)
    mean = reductions.mean(x, axes, True)
    variance = reductions.var(x, axes, True, ddof=real(f"stats.{name}", "ddof", ddof))
    is_constant = _is_constant(mean, variance)
    scaled = (floating(f"stats.{name}", scores) - mean) / e.sqrt(e.where(is_constant, 1.0, variance))
    return e.where(is_constant, np.nan, scaled)


def sem(
    a: Any, axis: Any = 0, ddof: Any = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> dlarray:
    """Return the standard error of the mean.

    Args:
        a, axis, ddof, nan_policy: as in `zscore`.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.sem([1.0, 3.0]).item()
        1.0
    """
    x, axes, count = _samples("sem", a, axis, nan_policy)
    kept = flag("stats.sem", "keepdims", keepdims)
    spread = reductions.std(x, axes, kept, ddof=real("stats.sem", "ddof", ddof))
    found: dlarray = spread / float(count) ** 0.5
    return found


def variation(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: Any = 0, *, keepdims: bool = False
) -> dlarray:
    """Return the coefficient of variation, the standard deviation over the mean.

    Args:
        a, axis, nan_policy, ddof: as in `zscore`.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.variation([1.0, 3.0]).item()
        0.5
    """
    x, axes, _ = _samples("variation", a, axis, nan_policy)
    kept = flag("stats.variation", "keepdims", keepdims)
    spread = reductions.std(x, axes, kept, ddof=real("stats.variation", "ddof", ddof))
    return spread / reductions.mean(x, axes, kept)


def moment(
    a: Any,
    order: Any = 1,
    axis: Any = 0,
    nan_policy: str = "propagate",
    *,
    center: Any = None,
    keepdims: bool = False,
) -> dlarray:
    """Return a central moment of samples, the mean of (a - center) ** order.

    Args:
        a, axis, nan_policy: as in `zscore`.
        order: an integer of at least 0.
        center: the number that is subtracted; None for the mean.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        ArgumentError: for another order.
        DimsError: if `center` is no number.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.moment([1.0, 3.0], order=2).item()
        1.0
    """
    x, axes, _ = _samples("moment", a, axis, nan_policy)
    power = integer("stats.moment", "order", order)
    if power < 0:
        refuse("stats.moment", f"order is {power}, expected at least 0")
    middle = reductions.mean(x, axes, True) if center is None else operand("stats.moment", "center", center)
    if center is not None and np.shape(middle):
        refuse("stats.moment", f"center has shape {np.shape(middle)}, expected a number", DimsError)
    return _without_axes(reductions.mean((x - middle) ** power, axes, True), axes, keepdims, "moment")


def skew(
    a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False
) -> dlarray:
    """Return the skewness of samples, the third central moment over the standard deviation's cube.

    Args:
        a, axis, nan_policy: as in `zscore`.
        bias: False to correct what is expected for normal samples; that needs three of them.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray, NaN where samples are equal.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.skew([0.0, 0.0, 3.0]).round(6).item()
        0.707107
    """
    x, axes, count = _samples("skew", a, axis, nan_policy)
    mean, (second, third) = _central(x, axes, (2, 3))
    is_constant = _is_constant(mean, second)
    found = third / e.where(is_constant, 1.0, second) ** 1.5
    if not flag("stats.skew", "bias", bias) and count > 2:
        found = found * (((count - 1.0) * count) ** 0.5 / (count - 2.0))
    return _without_axes(e.where(is_constant, np.nan, found), axes, keepdims, "skew")


def kurtosis(
    a: Any,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> dlarray:
    """Return the kurtosis of samples, the fourth central moment over the variance's square.

    Args:
        a, axis, nan_policy: as in `zscore`.
        fisher: subtract 3, the kurtosis of the normal distribution.
        bias: False to correct what is expected for normal samples; that needs four of them.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray, NaN where samples are equal.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.kurtosis([1.0, 3.0], fisher=False).item()
        1.0
    """
    x, axes, count = _samples("kurtosis", a, axis, nan_policy)
    mean, (second, fourth) = _central(x, axes, (2, 4))
    is_constant = _is_constant(mean, second)
    found = fourth / e.square(e.where(is_constant, 1.0, second))
    if not flag("stats.kurtosis", "bias", bias) and count > 3:
        corrected = (count * count - 1.0) * found - 3.0 * (count - 1.0) ** 2
        found = corrected / ((count - 2.0) * (count - 3.0)) + 3.0
    if flag("stats.kurtosis", "fisher", fisher):
        found = found - 3.0
    return _without_axes(e.where(is_constant, np.nan, found), axes, keepdims, "kurtosis")


def _weighted(name: str, x: dlarray, axes: tuple[int, ...], weights: Any) -> dlarray:
    """Return means, with weights if there are some, with the axes.

    Raises:
        DimsError: for weights of other sizes than the samples, and than a vector of these along the last axis.
    """
    if weights is None:
        return reductions.mean(x, axes, True)
    w = floating(f"stats.{name}", weights)
    if w.shape != x.shape and not (w.shape == x.shape[-1:] and axes == (x.ndim - 1,)):
        refuse(
            f"stats.{name}",
            f"weights have shape {w.shape} and the samples {x.shape}, expected the same, or a vector for the last axis",
            DimsError,
        )
    return reductions.sum(x * w, axes, True) / reductions.sum(w + x * 0.0, axes, True)


def _asked_dtype(x: dlarray, dtype: Any) -> dlarray:
    return x if dtype is None else in_dtype(x, np.dtype(dtype))


def gmean(
    a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> dlarray:  # fmt: skip
    """Return geometric means, the exponential of the mean logarithm.

    Args:
        a, axis, nan_policy: as in `zscore`.
        dtype: the dtype that is computed in.
        weights: as large as `a`, or a vector where the axis is the last one; None for equal ones.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        DTypeError: for complex numbers.
        DimsError: for weights of other sizes.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.gmean([1.0, 4.0]).round(12).item()
        2.0
    """
    x, axes, _ = _samples("gmean", a, axis, nan_policy)
    found = e.exp(_weighted("gmean", e.log(_asked_dtype(x, dtype)), axes, weights))
    return _without_axes(found, axes, keepdims, "gmean")


def hmean(
    a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> dlarray:  # fmt: skip
    """Return harmonic means, the inverse of the mean inverse.

    Args:
        a, axis, dtype, weights, nan_policy, keepdims: as in `gmean`.

    Returns:
        dlarray, NaN where a number is negative.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.hmean([1.0, 3.0]).item()
        1.5
    """
    return _power_mean("hmean", a, -1.0, axis, dtype, weights, nan_policy, keepdims)


def pmean(
    a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> dlarray:  # fmt: skip
    """Return power means, the root of the mean power; of the power 0 geometric means.

    Args:
        a, axis, dtype, weights, nan_policy, keepdims: as in `gmean`.
        p: the power, a number.

    Returns:
        dlarray, NaN where a number is negative.

    Raises:
        ArgumentError: if `p` is no number.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.pmean([1.0, 7.0], 2).item()
        5.0
    """
    power = float(real("stats.pmean", "p", p))
    if power == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    return _power_mean("pmean", a, power, axis, dtype, weights, nan_policy, keepdims)


def _power_mean(
    name: str, a: Any, power: float, axis: Any, dtype: Any, weights: Any, nan_policy: Any, keepdims: Any
) -> dlarray:
    x, axes, _ = _samples(name, a, axis, nan_policy)
    x = _asked_dtype(x, dtype)
    if power == -1.0:
        found = 1.0 / _weighted(name, 1.0 / x, axes, weights)
    else:
        found = _weighted(name, x**power, axes, weights) ** (1.0 / power)
    found = e.where(reductions.any(x < 0, axes, True), np.nan, found)
    return _without_axes(found, axes, keepdims, name)


def gstd(
    a: Any, axis: Any = 0, ddof: Any = 1, *, keepdims: bool = False, nan_policy: str = "propagate"
) -> dlarray:
    """Return geometric standard deviations, the exponential of the logarithm's standard deviation.

    Args:
        a, axis, ddof, nan_policy: as in `zscore`.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        DTypeError: for complex numbers.

    Examples:
        >>> import numpy as np, tracejit as tj
        >>> tj.stats.gstd(np.exp([1.0, 3.0]), ddof=0).round(6).item()
        2.718282
    """
    x, axes, _ = _samples("gstd", a, axis, nan_policy)
    kept = flag("stats.gstd", "keepdims", keepdims)
    return e.exp(reductions.std(e.log(x), axes, kept, ddof=real("stats.gstd", "ddof", ddof)))


def entropy(
    pk: Any,
    qk: Any = None,
    base: Any = None,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> dlarray:
    """Return the entropy of probabilities, or that of a distribution relative to another one.

    Args:
        pk: probabilities, or weights, which are divided by their sum.
        qk: those of the other distribution: the result is the sum of pk log(pk / qk).
        base: the base of the logarithm, a number; None for e.
        axis, nan_policy: as in `zscore`.
        keepdims: keep the reduced axes with size 1.

    Returns:
        dlarray.

    Raises:
        ArgumentError: for a base that is not positive.

    Examples:
        >>> import tracejit as tj
        >>> tj.stats.entropy([1.0, 1.0], base=2).item()
        1.0
    """
    if qk is not None:
        pk, qk = _of_one_shape("entropy", pk, qk, axis=axis)
    x, axes, _ = _samples("entropy", pk, axis, nan_policy)
    kept = flag("stats.entropy", "keepdims", keepdims)
    shares = x / reductions.sum(x, axes, True)
    if qk is None:
        terms = call("entr", (shares,))
    else:
        y, other_axes, _ = _samples("entropy", qk, axis, nan_policy)
        terms = call("rel_entr", (shares, y / reductions.sum(y, other_axes, True)))
    total: dlarray = reductions.sum(terms, axes, kept)
    if base is None:
        return total
    if real("stats.entropy", "base", base) <= 0:
        refuse("stats.entropy", f"base is {base}, expected a positive number or None")
    return total / float(np.log(base))
