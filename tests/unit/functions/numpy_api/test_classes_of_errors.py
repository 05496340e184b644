# SPDX-License-Identifier: BSD-3-Clause
"""What NumPy refuses, dlarrays refuse with an error of the same class, and an option's default changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

E, X, N = np.zeros(0), np.arange(4.0) + 1, np.arange(4)


def put(y: Any, value: Any) -> Any:
    y[0] = value
    return y


def put_slice(y: Any, value: Any) -> Any:
    y[:2] = value
    return y


def put_mask(y: Any, values: Any) -> Any:
    np.putmask(y, y > 1, values)
    return y


REFUSED: tuple[tuple[Callable[..., Any], np.ndarray], ...] = (
    (lambda x: np.convolve(x, np.ones(2)), E),
    (lambda x: np.correlate(x, np.ones(2)), E),
    (lambda x: np.gradient(x), X[:1]),
    (lambda x: np.delete(x, 9), X),
    (lambda x: np.insert(x, 9, 1), X),
    (lambda x: np.percentile(x, 50), E),
    (lambda x: np.quantile(x, 0.5), E),
    (lambda x: np.geomspace(0, x[0], 3), X),
    (lambda x: np.geomspace(x[0], x[0] * 0, 3), X),
    (lambda x: np.polyfit(x, x, -1), X),
    (lambda x: np.interp(X, x, x), E),
    (lambda x: np.percentile(x, 101), X),
    (lambda x: np.percentile(x, 50, method="other"), X),  # type: ignore[call-overload]
    (lambda x: np.linspace(0, x[0], -1), X),
    (lambda x: np.logspace(0, x[0], -1), X),
    (lambda x: np.histogram(x, 0), X),
    (lambda x: np.histogram(x, 3, range=(1, 0)), X),
    (lambda x: np.histogram(x, [1, 0]), X),
    (lambda x: np.digitize(x, [1, 0, 2]), X),
    (lambda x: np.searchsorted(x, 1, side="other"), X),  # type: ignore[call-overload]
    (lambda x: np.cross(x, x), X),
    (lambda x: np.diff(x, -1), X),
    (lambda x: np.pad(x, 1, mode="other"), X),  # type: ignore[call-overload]
    (lambda x: np.partition(x, 9), X),
    (lambda x: np.vander(x, -1), X),
    (lambda x: np.bincount(x - 1), N),
    (lambda x: np.unravel_index(x + 4, (2,)), N),
    (lambda x: np.ravel_multi_index((x + 4,), (2,)), N),
    (lambda x: np.nanargmax(x * np.nan), X),
    (lambda x: np.fft.fft(x, 0), X),
    (lambda x: np.linalg.norm(x, axis=()), X),
    (lambda x: np.linalg.norm(x.reshape(1, 2, 2), axis=(0, 1, 2)), X),
    (lambda y: put(y, float("nan")), N),
    (lambda y: put(y, np.float64("nan")), N),
    (lambda y: put(y, float("inf")), N),
    (lambda y: put(y, 1e30), N),
    (lambda y: put_slice(y, float("-inf")), N),
    (lambda y: put(y, 300.0), N.astype(np.int8)),
    (lambda y: put(y, -1.0), N.astype(np.uint8)),
    (lambda y: put(y, 1 + 2j), N),
    (lambda y: put(y, 1 + 2j), X),
    (lambda y: y.fill(float("nan")), N),
    (lambda y: put_mask(y, np.array([1.5, 2.5])), N),
    (lambda y: put_mask(y, np.array([1.5, 2.5])), X.astype(np.float32)),
    (lambda y: np.argmax(y.reshape(2, 2), axis=0, out=np.zeros(2)), N),
    (lambda y: y.reshape(2, 2).argmin(axis=0, out=np.zeros(2)), N),
    (lambda x: np.add.accumulate(x, out=np.zeros((2, 4))), X),
    (lambda x: np.cumsum(x, out=np.zeros((2, 4))), X),
    (lambda x: np.sum(x, out=np.zeros(2)), X),
    (lambda x: np.max(x, out=np.zeros(2)), X),
    (lambda x: np.add.reduce(x, out=np.zeros(2)), X),
    (lambda x: round((x * 1j)[0]), X),
    (lambda x: np.average(x, weights=x * 0), X),
    (lambda x: np.average(x.reshape(2, 2), axis=1, weights=np.array([1.0, -1.0])), X),
    (lambda x: np.cov(x, ddof=1.5), X),  # type: ignore[arg-type]
    (lambda x: np.cov(x, ddof=np.nan), X),  # type: ignore[arg-type]
    (lambda x: np.tensordot(x, x, 2), X),
    (lambda x: np.cov(x, fweights=[1.5, 2, 2, 2]), X),
    (lambda x: np.cov(x, fweights=[-1, 2, 2, 2]), X),
    (lambda x: np.cov(x, aweights=x - 2), X),
    (lambda x: np.cov(x, fweights=[1, 2]), X),
    (lambda x: np.cov(x.reshape(1, 2, 2)), X),
    (lambda x: np.average(x.reshape(2, 2), axis=1, weights=x[:3]), X),
    (lambda x: np.convolve(x, x, "bad"), X),  # type: ignore[call-overload]
    (lambda x: np.sort(x, kind="bad"), X),  # type: ignore[call-overload]
    (lambda x: np.take(x, [1], mode="bad"), X),  # type: ignore[call-overload]
    (lambda x: np.rot90(x.reshape(2, 2), axes=(0, 0)), X),
    (lambda x: np.einsum("i->j", x), X),
    (lambda x: np.linalg.norm(x.reshape(2, 2), "bad"), X),  # type: ignore[call-overload]
    (lambda x: np.linalg.multi_dot([x]), X),
    (lambda x: np.linalg.multi_dot([x, x[:2]]), X),
    (lambda x: np.where(x > 1, x), X),  # type: ignore[call-overload]
    (lambda x: np.gradient(x, x[:2]), X),
    (lambda x: np.histogram(x, "bad"), X),  # type: ignore[call-overload]
    (lambda x: np.digitize(x, x.reshape(2, 2)), X),  # type: ignore[call-overload]
    (lambda x: np.delete(x, 1.5), X),  # type: ignore[arg-type]
    (lambda x: np.fft.fft(x, norm="bad"), X),  # type: ignore[arg-type]
    (lambda x: np.meshgrid(x, indexing="bad"), X),  # type: ignore[call-overload]
    (lambda x: np.broadcast_arrays(x, x[:3]), X),
    (lambda x: x.reshape(2, 2, order="Z"), X),
    (lambda x: np.ix_(x.reshape(2, 2)), X),
    (lambda x: np.select([x > 1], [x, x]), X),
    (lambda x: np.fill_diagonal(x, 1), X),
    (lambda x: np.triu_indices_from(x), X),
    (lambda x: np.dsplit(x, 1), X),
    (lambda x: np.hsplit(x[0], 1), X),
    (lambda x: np.linalg.outer(x.reshape(2, 2), x), X),
    (lambda x: np.linalg.eigh(x.reshape(2, 2), "upper"), X),  # type: ignore[arg-type]
    (lambda x: np.linalg.pinv(x.reshape(2, 2), rcond=0.5, rtol=0.5), X),  # type: ignore[call-overload]
    (lambda x: np.linalg.matrix_rank(x.reshape(2, 2), tol=0.5, rtol=0.5), X),  # type: ignore[call-overload]
    (lambda x: np.searchsorted(x, 1, sorter=[0, 1]), X),
    (lambda x: np.searchsorted(x, 1, sorter=[0, 1, -1, 3]), X),
    (lambda x: np.bincount(x, minlength=-1), N),
    (lambda x: np.bincount(x.reshape(2, 2)), N),
    (lambda x: np.isin(x, x, kind="quicksort"), X),  # type: ignore[arg-type]
    (lambda x: np.sort(x, kind="stable", stable=True), X),
    (lambda x: np.put_along_axis(x.reshape(2, 2), np.array([[0], [1]]), 9, None), X),
    (lambda x: np.ravel_multi_index((x, x), (2, 0), mode="wrap"), N),
    (lambda x: np.ravel_multi_index((x, x), (5, 5), mode="other"), N),  # type: ignore[call-overload]
    (lambda x: np.rollaxis(x, 0, 5), X),
    (lambda x: np.nanvar(x, ddof=1, correction=1), X),  # type: ignore[call-overload]
    (lambda x: np.max(x, where=x > 1), X),
    (lambda x: np.divide.reduce(x.reshape(2, 2), axis=(0, 1)), X),
    (lambda x: np.divide.reduce(x), E),
    (lambda x: np.histogram(x), np.array([1.0, np.nan])),
    (lambda x: np.vecdot(x, x, axes=[0]), X),
    *([(lambda x: np.clip(x, 2, 3, max=3), X)] if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else []),
)
WITHOUT_AXIS: tuple[Callable[[Any], Any], ...] = (
    *[
        lambda x, name=name, axis=axis: getattr(np, name)(x, axis=axis)
        for name in ("sum", "mean", "max", "argmax", "cumsum", "sort", "argsort", "diff", "flip", "squeeze",
                     "expand_dims", "median", "nansum", "nanstd", "unwrap", "gradient", "unique", "average",
                     "ptp", "count_nonzero")
        for axis in (5, -5)
    ],
    lambda x: np.sum(x, axis=(0, 5)),
    lambda x: x.sum(axis=5),
    lambda x: x.take([0], 5),
    lambda x: np.concatenate([x, x], 5),
    lambda x: np.stack([x, x], 5),
    lambda x: np.transpose(x, (0, 5)),
    lambda x: x.transpose(0, 5),
    lambda x: np.swapaxes(x, 0, 5),
    lambda x: np.moveaxis(x, 0, 5),
    lambda x: np.moveaxis(x, 5, 0),
    lambda x: np.rollaxis(x, 5),
    lambda x: np.roll(x, 1, axis=5),
    lambda x: np.diagonal(x, 0, 0, 5),
    lambda x: np.linalg.norm(x, axis=5),
    lambda x: np.fft.fft(x, axis=5),
    lambda x: np.add.reduce(x, 5),
    lambda x: np.add.accumulate(x, 5),
    lambda x: np.maximum.reduce(x, 5),
    lambda x: np.apply_along_axis(np.sum, 5, x),
    lambda x: np.quantile(x, 0.5, axis=5),
    lambda x: np.repeat(x, 2, axis=5),
    lambda x: np.split(x, 1, axis=5),
    lambda x: np.mean(x[0, 0], axis=0),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 5),
)  # fmt: skip


@pytest.mark.parametrize("function", WITHOUT_AXIS)
def test_an_axis_that_there_is_not(function: Callable[[Any], Any]) -> None:
    with pytest.raises(IndexError) as numpys:
        function(X.reshape(2, 2))
    with pytest.raises(tj.AxisError) as ours:
        tj.dlfeval(function, X.reshape(2, 2))
    assert isinstance(ours.value, numpys.type) and isinstance(ours.value, tj.DimsError)

    def handled(x: Any) -> Any:
        try:
            return function(x)
        except np.exceptions.AxisError:
            return x[0] * 2

    step = tj.dlaccelerate(handled)
    for _ in range(3):
        np.testing.assert_array_equal(step(X.reshape(2, 2)), X[:2] * 2)


TAKEN: tuple[tuple[Callable[..., Any], np.ndarray], ...] = (
    (lambda y: put(y, 1.7), N),
    (lambda y: put(y, -128.9), N.astype(np.int8)),
    (lambda y: put(y, np.float64(300.0)), N.astype(np.uint8)),
    (lambda y: put_slice(y, np.array([1.0, 300.0])), N.astype(np.int8)),
    (lambda y: put(y, 1e300), X),
    (lambda y: put(y, np.nan), X),
    (lambda y: put_mask(y, 1.5), N),
    (lambda y: put_mask(y, [1.5, 2.5]), N),
    (lambda y: put_mask(y, np.array([True])), N),
    (lambda y: np.argmax(y.reshape(2, 2), axis=0, out=np.zeros_like(y[:2], dtype=np.int32)), N),
    (lambda x: np.add(x, x, out=np.zeros((2, 4))), X),
    (lambda x: np.percentile(x, 50, out=np.zeros(2)), X),
    (lambda x: np.clip(x, 1, 2, out=np.zeros((2, 4))), X),
    (lambda x: np.add(x, x, casting="same_kind", order="K", subok=True, where=True), X),
    (lambda x: np.sqrt(x, casting="same_kind", where=True), X),
    (lambda x: np.vecdot(x, x, casting="same_kind", order="K"), X),
    (lambda x: np.matmul(x, x, casting="same_kind"), X),
    (lambda x: np.modf(x, casting="same_kind")[1], X),
    (lambda x: np.clip(x, 2, 3, where=True, order="K"), X),
    (lambda x: np.einsum("i,i->", x, x, casting="same_kind"), X),
    (lambda x: np.cov(x, ddof=1.0), X),  # type: ignore[arg-type]
    (lambda x: np.cov(x, fweights=[1.0, 2.0, 2.0, 0.0], aweights=x), X),
)


@pytest.mark.parametrize(("function", "array"), REFUSED)
def test_the_class_of_an_error(function: Callable[..., Any], array: np.ndarray) -> None:
    with pytest.raises((ValueError, IndexError, TypeError, ArithmeticError, RuntimeError)) as numpys:
        function(array.copy())
    with pytest.raises(numpys.type) as ours:
        tj.dlfeval(function, tj.dlarray(array.copy()))
    assert isinstance(ours.value, tj.TraceJitError)
    with pytest.raises(numpys.type):
        tj.dlaccelerate(function)(array.copy())


@pytest.mark.parametrize(("function", "array"), TAKEN)
def test_what_numpy_takes(function: Callable[..., Any], array: np.ndarray) -> None:
    expected = function(array.copy())
    accelerated = tj.dlaccelerate(function)
    for found in (
        tj.dlfeval(function, tj.dlarray(array.copy())),
        *[accelerated(array.copy()) for _ in range(3)],
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected)
