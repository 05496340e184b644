# SPDX-License-Identifier: BSD-3-Clause
"""Calls of NumPy's functions, as text, which dlarrays answer with NumPy's numbers; and what stands outside.

The names in a call: x, y, w vectors of floats (w positive), A, B matrices, C one that has as many rows as columns, T of
three axes, s a number in an array, z a vector with NaN and infinities, Z a matrix with NaN, e an empty vector, E an
empty matrix, r a sorted vector, n, m vectors of integers, N a matrix of them, k small ones that are not negative, u
unsigned ones, b, c conditions, f a vector of float32, F a matrix. `|` separates the calls of one function.
"""

import re
from typing import Any

import numpy as np

ELEMENTWISE = """
abs absolute fabs negative positive conj conjugate sign square reciprocal rint floor ceil trunc fix exp expm1 exp2 sin
cos tan sinh cosh tanh arcsinh asinh arctan atan deg2rad rad2deg radians degrees cbrt isnan isinf isfinite signbit
spacing logical_not sinc i0 nan_to_num isposinf isneginf real imag isreal iscomplex angle real_if_close modf frexp
"""
OF_POSITIVE = "sqrt log log2 log10 log1p"
OF_UNIT = "arcsin asin arccos acos arctanh atanh"
PAIRS = """
add subtract multiply divide true_divide floor_divide remainder mod fmod power pow float_power maximum minimum fmax fmin
arctan2 atan2 hypot logaddexp logaddexp2 copysign nextafter heaviside equal not_equal less less_equal greater
greater_equal logical_and logical_or logical_xor divmod
"""
OF_INTEGERS = (
    "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift bitwise_left_shift bitwise_right_shift"
)

WITHOUT = {
    ("positive", "b"),  # NumPy refuses it
    # Refused, because NumPy computes them in float16.
    ("spacing", "u"),
    ("spacing", "b"),
    ("nextafter", "u, u"),
    ("nextafter", "b, c"),
}
"""Functions and operands that are left out."""

CALLS = """
np.arccosh(w + 1) | np.arccosh(f * f + 1) | np.acosh(w + 1) | np.invert(n) | np.invert(u) | np.invert(b)
np.bitwise_invert(n) | np.bitwise_not(n) | np.bitwise_count(n) | np.bitwise_count(u) | np.bitwise_count(N)
np.ldexp(x, k) | np.ldexp(f, n) | np.ldexp(A, N[:, :1]) | np.matmul(A, B) | np.matmul(T, B[:, :2])
np.matmul(N, N.T) | np.vecdot(A, A) | np.vecdot(T, T, axis=1) | np.vecdot(N, N) | np.matvec(A, x[:4])
np.matvec(T, x[:4]) | np.vecmat(x[:3], A) | np.vecmat(x[:3], T) | np.clip(x, -0.5, 0.5) | np.clip(A, None, x[:4])
np.clip(n, 1, 3) | np.clip(x, min=0.1) | np.round(x, 1) | np.round(n, -1) | np.round(f) | np.around(x, 2)
np.isclose(x, y) | np.isclose(x, x + 1e-9) | np.isclose(z, z, equal_nan=True) | np.isclose(n, 2) | np.isclose(z, z)
np.allclose(x, x + 1e-9) | np.allclose(x, y) | np.array_equal(x, x) | np.array_equal(x, y) | np.array_equiv(x, A[0])
np.array_equiv(C[0] * 0 + 1, C * 0 + 1) | np.astype(x, np.float32) | np.astype(n, np.float64) | np.astype(x, np.float64)
np.angle(x * (1 + 2j) + 1j) | np.imag(x * (2 + 3j))

np.sum(A) | np.sum(T, axis=(0, -1)) | np.sum(A, axis=0, keepdims=True) | np.sum(A, where=A > 0)
np.sum(n, initial=5) | np.sum(A, 1, where=b[:4], initial=2.0) | np.sum(u) | np.sum(b) | np.sum(F, dtype=np.float64)
np.sum(s) | np.sum(e) | np.prod(A, axis=1) | np.prod(n) | np.prod(A, where=A > 0) | np.prod(x, initial=2.0)
np.prod(u) | np.prod(E, axis=0) | np.max(A, axis=0) | np.max(T, axis=(0, 2)) | np.max(x, initial=0.5)
np.max(A, axis=1, where=A > 0, initial=-9.0) | np.max(n) | np.max(E, axis=0, initial=1.0) | np.amax(A, axis=-1)
np.min(A, axis=1) | np.min(A, initial=0.0) | np.min(n, where=n > 1, initial=9) | np.amin(A) | np.ptp(A, axis=1)
np.ptp(n) | np.ptp(T, axis=None, keepdims=True) | np.mean(A) | np.mean(A, axis=0) | np.mean(n)
np.mean(A, axis=1, where=A > 0) | np.mean(F, axis=0, dtype=np.float64) | np.mean(b) | np.var(A, axis=0)
np.var(A, ddof=1) | np.var(n) | np.var(A, axis=1, where=A > -0.5) | np.var(x, correction=1)
np.var(A, axis=0, mean=np.mean(A, axis=0, keepdims=True)) | np.std(A, axis=1, ddof=1) | np.std(F)
np.std(A, where=A > 0) | np.any(b) | np.any(A > 1, axis=0) | np.any(A > 0, where=A > 5) | np.any(x) | np.all(b)
np.all(A > -9, axis=1, keepdims=True) | np.all(A, where=A > 0) | np.argmax(x) | np.argmax(A, axis=0)
np.argmax(A, axis=-1, keepdims=True) | np.argmin(x) | np.argmin(T, axis=1) | np.count_nonzero(n)
np.count_nonzero(A > 0, axis=1) | np.nansum(z[:3]) | np.nansum(Z, axis=0) | np.nansum(n)
np.nansum(Z, axis=1, keepdims=True, initial=1.0) | np.nanprod(Z) | np.nanprod(Z, axis=1) | np.nanmax(Z)
np.nanmax(Z, axis=0) | np.nanmax(n) | np.nanmax(Z, axis=1, initial=0.5) | np.nanmin(Z)
np.nanmin(Z, axis=1, keepdims=True) | np.nanmean(Z) | np.nanmean(Z, axis=0) | np.nanmean(n) | np.nanvar(Z, axis=0)
np.nanvar(Z, ddof=1) | np.nanstd(Z) | np.nanstd(Z, axis=1, ddof=1) | np.nanargmax(Z) | np.nanargmax(Z, axis=1)
np.nanargmin(Z, axis=0) | np.nanargmin(n) | np.nanmedian(Z) | np.nanmedian(Z, axis=0)
np.nanmedian(Z, axis=1, keepdims=True) | np.nanmedian(n) | np.nanquantile(Z, 0.3)
np.nanquantile(Z, [0.2, 0.7], axis=0) | np.nanquantile(Z, 0.4, axis=1, method="midpoint") | np.nanpercentile(Z, 30)
np.nanpercentile(Z, [10, 90], axis=1) | np.nancumsum(Z, axis=0) | np.nancumsum(Z) | np.nancumprod(Z, axis=1)
np.nancumprod(z[:3]) | np.average(A) | np.average(A, axis=1, weights=w[:4]) | np.average(A, weights=A * A)
np.average(A, axis=0, returned=True) | np.average(n, weights=k + 1) | np.average(A, axis=(0, 1), keepdims=True)
np.median(x) | np.median(x[:5]) | np.median(A, axis=0) | np.median(T, axis=(0, 2), keepdims=True) | np.median(n)
np.median(F, axis=1) | np.median(z) | np.quantile(x, 0.3) | np.quantile(A, [0.25, 0.5], axis=1)
np.quantile(n, 0.4) | np.quantile(x, 1.0) | np.quantile(x, 0) | np.quantile(F, 0.3, axis=0)
np.quantile(T, [[0.1, 0.9]], axis=(0, 1), keepdims=True) | np.quantile(z, 0.5) | np.quantile(x, y * y / 9)
np.quantile(x, [0.1, 0.35, 0.8], method="inverted_cdf")
np.quantile(x, [0.1, 0.35, 0.5], method="averaged_inverted_cdf")
np.quantile(x, [0.1, 0.35], method="closest_observation")
np.quantile(x, [0.1, 0.35], method="interpolated_inverted_cdf") | np.quantile(x, [0.1, 0.35], method="hazen")
np.quantile(x, [0.0, 0.35, 1.0], method="weibull") | np.quantile(x, [0.1, 0.35], method="median_unbiased")
np.quantile(x, [0.1, 0.35], method="normal_unbiased") | np.quantile(x, [0.1, 0.35], method="lower")
np.quantile(n, [0.1, 0.35], method="higher") | np.quantile(x, [0.1, 0.35], method="midpoint")
np.quantile(x, [0.1, 0.35], method="nearest") | np.quantile(x, [0.1, 0.6], method="inverted_cdf", weights=w)
np.percentile(x, 30) | np.percentile(A, [5, 95], axis=0) | np.percentile(x, 50, method="nearest") | np.cov(A)
np.cov(A, rowvar=False, bias=True) | np.cov(x, y) | np.cov(A, aweights=w[:4]) | np.cov(A, fweights=k[:4] + 1)
np.cov(x) | np.cov(A, ddof=0, aweights=w[:4], fweights=k[:4] + 1) | np.corrcoef(A) | np.corrcoef(x, y)
np.corrcoef(A, rowvar=False) | np.corrcoef(x)

np.cumsum(x) | np.cumsum(A, axis=0) | np.cumsum(n, dtype=np.float64) | np.cumsum(T, axis=-2) | np.cumsum(b)
np.cumprod(x) | np.cumprod(A, axis=1) | np.cumprod(n) | np.cumprod(A) | np.cumprod(f)
np.cumprod(x, dtype=np.float32) | np.cumprod(e) | np.cumulative_sum(x)
np.cumulative_sum(A, axis=1, include_initial=True) | np.cumulative_prod(x)
np.cumulative_prod(A, axis=0, include_initial=True) | np.diff(x) | np.diff(A, n=2, axis=0)
np.diff(x, prepend=0.0, append=y[:2]) | np.diff(b) | np.diff(n, n=0) | np.diff(x, n=9) | np.diff(u) | np.ediff1d(x)
np.ediff1d(A, to_begin=1.0, to_end=y[:2]) | np.ediff1d(n) | np.gradient(x) | np.gradient(x, 0.5) | np.gradient(x, r)
np.gradient(A, axis=1, edge_order=2) | np.gradient(A) | np.gradient(x, r, edge_order=2) | np.gradient(n)
np.gradient(A, 0.5, r[:4]) | np.gradient(F, axis=0) | np.trapezoid(x) | np.trapezoid(A, r[:4])
np.trapezoid(A, dx=0.1, axis=0) | np.trapezoid(A, A * A, axis=1) | np.trapezoid(n) | np.interp(x, r, y)
np.interp(A, r, y, left=-1.0, right=2.0) | np.interp(x, r, y, period=3.0) | np.interp(s, r, y) | np.interp(f, r, y)
np.interp(z, r, y) | np.interp(n, r, y) | np.interp(r, r, y) | np.interp(0.3, r, y) | np.interp(x, r[:1], y[:1])
np.convolve(x, y[:3]) | np.convolve(x, y[:3], "same") | np.convolve(y[:2], x, "valid") | np.convolve(n, m)
np.convolve(x, y[:4], "same") | np.convolve(np.tile(x, 4), np.tile(y, 3), "same") | np.correlate(x, y[:3])
np.correlate(x, y[:3], "full") | np.correlate(y[:2], x, "same") | np.correlate(n, m[:3], "full")
np.correlate(x[:2], y[:5], "valid") | np.correlate(x[:4], y, "full") | np.unwrap(x * 9) | np.unwrap(A * 9, axis=0)
np.unwrap(n * 3, period=4) | np.unwrap(x * 9, discont=4.0) | np.trim_zeros(x * (x > 0))
np.trim_zeros(n - n[0], "f") | np.trim_zeros(x)

np.sort(x) | np.sort(A, axis=0) | np.sort(T, axis=None) | np.sort(n) | np.sort(z) | np.sort(e) | np.sort(F)
np.sort(b) | np.sort(u) | np.argsort(x) | np.argsort(A, axis=0) | np.argsort(n, kind="stable")
np.argsort(A, axis=None) | np.argsort(z, kind="stable") | np.partition(x, 2)[2]
np.partition(A, 1, axis=0)[1] | np.partition(n, (1, 3))[3] | np.take_along_axis(x, np.argpartition(x, 2), 0)[2]
np.argpartition(x, 0)[0] | np.lexsort((x, k)) | np.lexsort((n, m)) | np.lexsort(A) | np.searchsorted(r, x)
np.searchsorted(r, r, side="right") | np.searchsorted(np.sort(n), N) | np.searchsorted(r, 0.3)
np.searchsorted(x, y, sorter=np.argsort(x)) | np.searchsorted(np.sort(z), z) | np.searchsorted(np.sort(n), x)
np.digitize(x, r) | np.digitize(x, r[::-1]) | np.digitize(A, r, right=True) | np.digitize(r, r) | np.unique(n)
np.unique(N, return_index=True, return_inverse=True, return_counts=True) | np.unique(z) | np.unique(x)
np.unique(z, equal_nan=False) | np.unique(e) | np.unique(b) | np.unique_all(n) | np.unique_counts(N)
np.unique_all(x)[0] | np.unique_counts(x)[0] | np.unique_inverse(x)[0] | np.sort(np.unique_values(x))
np.unique_inverse(N) | np.sort(np.unique_values(n)) | np.packbits(b) | np.packbits(A > 0, axis=0, bitorder="little")
np.packbits(n) | np.unpackbits(u) | np.unpackbits(u, count=11, bitorder="little")
np.unpackbits(u.reshape(2, 3), axis=1) | np.isin(n, m) | np.isin(N, [1, 2], invert=True) | np.isin(x, y)
np.isin(x, x[:2]) | np.isin(n, []) | np.intersect1d(n, m) | np.intersect1d(n, m, return_indices=True)
np.intersect1d(x, x[::2]) | np.union1d(n, m) | np.union1d(x, y) | np.setdiff1d(n, m) | np.setdiff1d(x, x[:2])
np.setxor1d(n, m) | np.setxor1d(x, x[:2]) | np.nonzero(n) | np.nonzero(A > 0) | np.flatnonzero(N > 1)
np.argwhere(A > 0) | np.argwhere(s) | np.argwhere(n) | np.bincount(k) | np.bincount(k, minlength=9)
np.bincount(k, weights=x) | np.bincount(u) | np.bincount(k, x, 2) | np.histogram(x, r) | np.histogram(x, 4)
np.histogram(A, 3, range=(-1, 1)) | np.histogram(x, r, weights=y) | np.histogram(x, 5, density=True)
np.histogram(n, 3) | np.histogram(f, 3) | np.histogram_bin_edges(x, 4) | np.histogram_bin_edges(n, 3, (0, 4))
np.histogram2d(x, y, 3) | np.histogram2d(x, y, [r, r]) | np.histogram2d(x, y, (2, 3), density=True, weights=w)
np.histogramdd(A, 2) | np.histogramdd([x, y], [r, 3])
np.histogramdd(A[:, :2], (2, 3), range=((-1, 1), (-1, 1)), density=True)

np.dot(A, B) | np.dot(x, y) | np.dot(A, x[:4]) | np.dot(2.0, x) | np.vdot(A, A) | np.vdot(x, y) | np.inner(A, A)
np.inner(x, y) | np.inner(2.0, x) | np.outer(x, y) | np.outer(A, n) | np.tensordot(A, B, 1)
np.tensordot(T, A, ([1, 2], [0, 1])) | np.tensordot(x, y, 0) | np.einsum("ij,jk->ik", A, B) | np.einsum("ii->i", C)
np.einsum("ij,ij->", A, A) | np.einsum("i,j", x, y) | np.einsum(A, [0, 1], B, [1, 2]) | np.einsum(A, [0, 1], [1, 0])
np.einsum("i->", x, dtype=np.float64) | np.einsum("...j->...", T) | np.einsum_path("ij,jk->ik", A, B)[0]
np.kron(A, B) | np.kron(x, A) | np.kron(n, n) | np.cross(x[:3], y[:3]) | np.cross(C, C.T)
np.cross(A, A[::-1], axis=0) | np.cross(n[:3], m[:3]) | np.cross(C, y[:3], axisa=0, axisc=0) | np.trace(C)
np.trace(T, offset=1, axis1=1, axis2=2) | np.trace(N) | np.trace(C, -1, dtype=np.float32) | np.diag(x)
np.diag(C, 1) | np.diag(n, -1) | np.diagflat(A) | np.diagflat(x[:2], -1) | np.diagonal(C) | np.diagonal(T, 1, 2, 0)
np.diagonal(A, -1) | np.tril(C) | np.tril(T, -1) | np.triu(C, 1) | np.triu(N) | np.triu(A, -1) | np.vander(x)
np.vander(x, 3, increasing=True) | np.vander(n, 2) | np.vander(f, 3) | np.tril_indices_from(C)
np.triu_indices_from(A, 1) | np.diag_indices_from(C) | np.triu_indices_from(C) | np.diag_indices_from(C)

np.reshape(A, (4, 3)) | np.reshape(A, -1, order="F") | np.reshape(A, (2, 6), order="F") | np.ravel(A)
np.ravel(A, order="F") | np.transpose(T, (2, 0, 1)) | np.transpose(A) | np.permute_dims(T, (1, 0, 2))
np.permute_dims(A) | np.matrix_transpose(T) | np.swapaxes(T, 0, -1) | np.moveaxis(T, 0, -1) | np.rollaxis(T, 2)
np.rollaxis(T, 0, 3) | np.rollaxis(T, 1, 1) | np.broadcast_to(x, (2, 6)) | np.broadcast_arrays(x[:4], A)
np.squeeze(A[:1]) | np.expand_dims(A, (0, 2)) | np.expand_dims(x, 0) | np.concatenate([A, A], axis=1)
np.concatenate([A, x], axis=None) | np.concatenate((n, x))
np.concatenate((x, y), dtype=np.float32, casting="same_kind")
np.concat([x, y]) | np.stack([x, y], axis=1)
np.vstack([x, y]) | np.hstack([A, A]) | np.dstack([A, A]) | np.column_stack([x, y, n]) | np.dstack([x, y])
np.stack([x, y], dtype=np.float32) | np.vstack([x, n], dtype=np.float64)
np.hstack([n, m], dtype=np.int32)
np.column_stack([A, x[:3]]) | np.block([[A, A], [A, A * 2]]) | np.block([x, y])
np.block([[x[:2], s], [y[:3]]]) | np.block(x) | np.split(x, 3) | np.array_split(x, 4) | np.hsplit(A, 2)
np.vsplit(A, [1]) | np.dsplit(T, 2) | np.hsplit(x, 2) | np.array_split(A, 2, axis=1) | np.vsplit(A, 3)
np.unstack(A) | np.unstack(T, axis=1) | np.dsplit(T, [1, 2]) | np.flip(A) | np.flip(A, 1) | np.fliplr(A)
np.flipud(A) | np.fliplr(T) | np.roll(A, 2) | np.roll(A, (1, 2), (0, 1)) | np.rot90(A) | np.rot90(T, 3, (1, 2))
np.rot90(A, 2) | np.rot90(A, k=4) | np.flipud(x) | np.tile(A, (2, 1)) | np.repeat(A, 2, axis=0)
np.repeat(x, [1, 0, 2, 1, 1, 3]) | np.repeat(A, 3) | np.pad(x, 2) | np.pad(A, ((1, 0), (2, 1)), mode="reflect")
np.pad(x, 3, mode="wrap") | np.pad(A, 1, mode="symmetric")
np.pad(x, (2, 1), mode="linear_ramp", end_values=(5.0, -4.0)) | np.pad(A, 2, mode="mean")
np.pad(A, 1, mode="maximum", stat_length=2) | np.pad(A, ((1, 2), (0, 1)), mode="median")
np.pad(x, 2, mode="minimum") | np.pad(x, 2, mode="edge") | np.pad(x, 2, mode="reflect", reflect_type="odd")
np.pad(n, 2, mode="mean") | np.pad(n, 2, mode="linear_ramp") | np.append(x, y) | np.append(A, A[:1], axis=0)
np.append(n, 2.5) | np.insert(x, 2, 5.0) | np.insert(A, 1, 2.0, axis=1) | np.insert(x, [1, 3], y[:2])
np.insert(A, 1, x[:4], axis=0) | np.insert(x, slice(0, 3), 1.0) | np.insert(A, [0, 2, 2], 7.0, axis=0)
np.insert(n, -1, 4) | np.insert(A, [1], x[:3, None], axis=1) | np.delete(x, 2) | np.delete(A, [0, 2], axis=0)
np.delete(A, slice(None, None, 2), axis=1) | np.delete(x, [True, False, True, False, False, False])
np.delete(A, -1) | np.resize(x, 9) | np.resize(A, (2, 3)) | np.resize(x, (3, 5)) | np.resize(e, 3)
np.atleast_1d(s) | np.atleast_2d(x) | np.atleast_3d(A) | np.atleast_1d(s, x)
np.apply_along_axis(lambda row: row[0] * row, 1, A) | np.apply_along_axis(np.sum, 0, A)
np.apply_along_axis(lambda row: np.stack([row, row]), 1, T) | np.apply_over_axes(np.sum, T, [0, 2])

np.where(b, x, y) | np.where(A > 0, A, 0.0) | np.where(n) | np.where(b[:4], A, n[:4])
np.select([x > 1, x < 0], [x, -x], 5.0) | np.select([b, c], [n, y]) | np.select([A > 0], [A])
np.select([b, c], [n, m], 7) | np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])
np.piecewise(x, [x < 0], [3.0, lambda v: v - 1]) | np.piecewise(x, [x > 0], [lambda v: v - np.mean(v), -1.0])
np.piecewise(n, [n > 1], [lambda v: v * 1.5]) | np.choose(k % 2, [x, y]) | np.choose(k, [x, y, 5.0], mode="wrap")
np.choose(k, (n, m, n), mode="clip") | np.choose(k % 3, np.stack([x, y, w])) | np.compress(b, x)
np.compress(b[:3], A, axis=0) | np.compress(b, A) | np.extract(A > 0, A) | np.extract(b, n) | np.take(x, [0, 2])
np.take(A, k % 3, axis=0) | np.take(x, n + 40, mode="wrap") | np.take(A, [-7, 9], axis=1, mode="clip")
np.take(x, N % 6) | np.take_along_axis(A, np.argsort(A, axis=1), axis=1) | np.take_along_axis(x, k % 6, 0)
np.ravel_multi_index((k % 3, k % 4), (3, 4)) | np.ravel_multi_index((n, m), (3, 4), mode="wrap")
np.ravel_multi_index((n, m), (3, 4), mode=("clip", "wrap"), order="F") | np.unravel_index(k, (3, 4))
np.unravel_index(k, (3, 4), order="F") | np.ix_(k, b) | np.meshgrid(x, y) | np.meshgrid(x, n, indexing="ij")
np.meshgrid(x, y, w[:2], sparse=True) | np.meshgrid(x) | np.linspace(s, 3.0, 5) | np.linspace(x, y, 3, axis=1)
np.linspace(0, s, 4, endpoint=False, retstep=True) | np.linspace(s, 9, 4, dtype=int) | np.linspace(n, m, 3)
np.linspace(s, 1, 1) | np.logspace(s, 2.0, 4) | np.logspace(x, y, 3, base=2.0) | np.geomspace(w, 9.0, 4)
np.geomspace(s * s + 1, 2.0, 5, endpoint=False) | np.zeros_like(A) | np.ones_like(n) | np.full_like(x, 3.0)
np.empty_like(A).shape | np.ones_like(A, dtype=np.float32) | np.full_like(x, s) | np.empty_like(x).dtype
np.full_like(n, 2) | np.copy(A) | np.shape(A) | np.ndim(A) | np.size(A, 1) | np.result_type(f, x)
np.common_type(x, f) | np.common_type(n)
np.iscomplexobj(x) | np.isrealobj(n) | np.ndim(s) | np.size(T) | np.isrealobj(x) | np.iscomplexobj(n)
np.result_type(n, f)

np.sort_complex(x) | np.sort_complex(u) | np.sort_complex(f) | np.real(np.sort_complex(x * (2 - 1j)))
np.fft.fft(x) | np.fft.fft(A, 5, axis=0) | np.fft.fft(f) | np.fft.fft(n) | np.fft.fft(T, axis=1, norm="forward")
np.fft.ifft(x, norm="ortho") | np.fft.ifft(A, 3) | np.fft.rfft(x, 9, norm="forward") | np.fft.rfft(F, axis=0)
np.fft.irfft(x, 7) | np.fft.irfft(A) | np.fft.irfft(f, axis=-1, norm="ortho") | np.fft.hfft(x) | np.fft.hfft(A, 5, 0)
np.fft.ihfft(x) | np.fft.ihfft(x, 4, norm="forward") | np.fft.fft2(T) | np.fft.ifft2(A, s=(2, 3)) | np.fft.rfft2(T)
np.fft.irfft2(A) | np.fft.irfft2(A, s=(2, 5)) | np.fft.fftn(T) | np.fft.fftn(T, axes=(0, 2), norm="ortho")
np.fft.ifftn(A) | np.fft.rfftn(T) | np.fft.rfftn(A, axes=(0,)) | np.fft.irfftn(T) | np.fft.irfftn(T, norm="forward")
np.fft.fftshift(x) | np.fft.fftshift(A, axes=1) | np.fft.ifftshift(x[:5]) | np.fft.ifftshift(T)

np.polyval(y[:3], x) | np.polyval(n[:2], A) | np.polyval([1.0, 2.0], x) | np.polyval(x, 2.0) | np.polyadd(x, y[:2])
np.polyadd(n, x) | np.polysub(x[:3], y) | np.polymul(x, y[:3]) | np.polysub(n, m) | np.polymul(n, m)
np.polydiv(x, y[:3]) | np.polydiv(x[:2], y) | np.polydiv(n[:4], [1, 2]) | np.polyder(x) | np.polyder(x, 2)
np.polyder(n) | np.polyint(x) | np.polyint(n, 2, [1, 2]) | np.polyint(x, 3, 0.5) | np.poly(x[:3]) | np.poly(n)
np.poly(e) | np.polyfit(r, y, 2) | np.polyfit(r, y, 1, w=w) | np.polyfit(r, np.stack([x, y], 1), 2)
np.polyfit(r, y, 2, cov=True) | np.polyfit(r, y, 2, cov="unscaled") | np.polyfit(n, y, 1)
"""

METHODS = """
np.add.reduce(A) | np.add.reduce(A, axis=(0, 1)) | np.add.reduce(x, initial=2.0) | np.add.reduce(A, where=A > 0)
np.add.reduce(n, dtype=np.float32) | np.multiply.reduce(A, 1, keepdims=True) | np.maximum.reduce(A)
np.minimum.reduce(x, initial=0.0) | np.logical_and.reduce(A > 0) | np.logical_or.reduce(b)
np.logical_xor.reduce(b) | np.bitwise_and.reduce(N, axis=1) | np.bitwise_or.reduce(N, axis=(0, 1))
np.bitwise_xor.reduce(n, keepdims=True) | np.subtract.reduce(x) | np.divide.reduce(A, axis=1)
np.hypot.reduce(A, axis=0) | np.logaddexp.reduce(A, axis=1) | np.fmax.reduce(Z, axis=0) | np.gcd.reduce(n)
np.lcm.reduce(k + 1) | np.fmin.reduce(Z, axis=1) | np.multiply.reduce(e)
np.logaddexp.reduce(e) | np.subtract.reduce(n[:1]) | np.add.accumulate(A, axis=1) | np.multiply.accumulate(A)
np.maximum.accumulate(A, axis=1) | np.minimum.accumulate(z) | np.maximum.accumulate(n) | np.subtract.accumulate(x)
np.logical_or.accumulate(b) | np.bitwise_xor.accumulate(N, axis=0) | np.fmax.accumulate(z)
np.divide.accumulate(A, axis=1) | np.logaddexp.accumulate(x) | np.multiply.accumulate(u) | np.add.outer(x, y)
np.subtract.outer(x, n) | np.maximum.outer(A, y) | np.less.outer(x, y) | np.power.outer(w, n)
np.arctan2.outer(x, y) | np.divmod.outer(x, w) | np.add.reduceat(x, [0, 3, 1])
np.multiply.reduceat(A, [0, 2], axis=1) | np.maximum.reduceat(x, [1, 4]) | np.add(x, y, dtype=np.float32)
np.sqrt(w, dtype=np.float32) | np.multiply(n, m, dtype=np.float64) | np.add(n, 1, dtype=np.int64)
np.divide(f, f, dtype=np.float64)
"""


def _listed(text: str) -> list[str]:
    return [call.strip() for line in text.splitlines() for call in line.split(" | ") if call.strip()]


def _made() -> list[str]:
    calls = []
    for name in ELEMENTWISE.split():
        operands = ("x", "A", "n", "z", "f", "b", "u", "s", "e")
        calls += [f"np.{name}({operand})" for operand in operands if (name, operand) not in WITHOUT]
    for name in OF_POSITIVE.split():
        calls += [f"np.{name}({operand})" for operand in ("w", "k", "f * f", "z", "b")]
    for name in OF_UNIT.split():
        calls += [f"np.{name}({operand})" for operand in ("np.tanh(x)", "np.tanh(f)", "b")]
    for name in PAIRS.split():
        pairs = (
            "x, y",
            "w, x",
            "A, x[:4]",
            "n, k",
            "n, x",
            "u, u",
            "f, 2",
            "3, n",
            "b, c",
            "z, 1.5",
            "f, x",
            "w, y * 3",
        )
        calls += [f"np.{name}({pair})" for pair in pairs if (name, pair) not in WITHOUT]
    for name in OF_INTEGERS.split():
        calls += [
            f"np.{name}({pair})" for pair in ("n, m", "u, u", "n, 2", "N, n[:4]", "b, c", "n, u", "3, k")
        ]
    return calls


def _found(name: str) -> Any:
    """Return what NumPy has under a dotted name, None where this release does not have it."""
    found: Any = np
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def name_of(call: str) -> str:
    """Return the function that a call is of: ``diff`` of ``np.diff(x)``, ``add.reduce`` of ``np.add.reduce(x)``."""
    return call.partition("(")[0].removeprefix("np.")


def _by_function() -> dict[str, list[str]]:
    """Return the calls of each function that this release of NumPy has; some call others on the way."""
    table: dict[str, list[str]] = {}
    for call in [*_made(), *_listed(CALLS), *_listed(METHODS)]:
        if all(_found(name) is not None for name in re.findall(r"np(?:\.\w+)+", call)):
            table.setdefault(WRAPPED.get(call, name_of(call)), []).append(call)
    return table


WRAPPED = {
    "np.sort(np.unique_values(n))": "unique_values",
    "np.sort(np.unique_values(x))": "unique_values",
    "np.real(np.sort_complex(x * (2 - 1j)))": "sort_complex",
}
"""The functions that calls are about whose outermost function is another one."""
BY_FUNCTION = _by_function()


def values(seed: int) -> dict[str, Any]:
    """Return the arrays of the calls; other numbers for another seed, but NaN at the same places."""
    rng = np.random.default_rng(seed)
    step = seed % 2
    x, y = rng.permutation(6) * 0.7 - 1.9 + rng.uniform(0, 0.3, 6), rng.normal(size=6)
    a = rng.normal(size=(3, 4))
    hole = a.copy()
    hole[0, 1] = hole[2, 2] = np.nan
    return {
        "x": x,
        "y": y,
        "w": rng.uniform(0.3, 2.0, 6),
        "A": a,
        "B": rng.normal(size=(4, 3)),
        "C": rng.normal(size=(3, 3)),
        "T": rng.normal(size=(2, 3, 4)),
        "s": np.array(0.7 + 0.1 * step),
        "z": np.array([1.5 + step, np.nan, -0.0, np.inf, -2.5, -np.inf]),
        "Z": hole,
        "e": np.zeros(0),
        "E": np.zeros((0, 3)),
        "r": np.cumsum(rng.uniform(0.3, 0.9, 6)) - 1.7,
        "n": rng.integers(-4, 6, 6),
        "m": rng.integers(-3, 5, 6),
        "N": rng.integers(-3, 5, (3, 4)),
        "k": rng.integers(0, 6, 6),
        "u": rng.integers(0, 200, 6).astype(np.uint8),
        "b": rng.integers(0, 2, 6).astype(bool) | (np.arange(6) == 1),
        "c": rng.integers(0, 2, 6).astype(bool),
        "f": rng.normal(size=6).astype(np.float32),
        "F": rng.normal(size=(3, 4)).astype(np.float32),
    }


def _each(change: Any, kinds: str = "f") -> dict[str, Any]:
    """Return the arrays of the calls with those of some kinds of dtypes changed."""
    return {name: change(array) if array.dtype.kind in kinds else array for name, array in values(0).items()}


def _whole(array: np.ndarray) -> np.ndarray:
    return np.nan_to_num(3 * array, posinf=9, neginf=-9)


def _with_holes() -> dict[str, Any]:
    arrays = values(0)
    for name in "xyw":
        arrays[name][2] = np.nan
    for name in "ABCTF":
        arrays[name].flat[1], arrays[name].flat[3], arrays[name].flat[4] = np.nan, -0.0, np.inf
    return arrays


VARIANTS: dict[str, Any] = {
    "int8": lambda: _each(lambda array: array.astype(np.int8), "iu"),
    "uint64": lambda: _each(lambda array: np.abs(array).astype(np.uint64), "iu"),
    "int16 for floats": lambda: _each(lambda array: _whole(array).astype(np.int16)),
    "uint8 for floats": lambda: _each(lambda array: np.abs(_whole(array)).astype(np.uint8)),
    "bool for floats": lambda: _each(lambda array: array > 0),
    "float32": lambda: _each(lambda array: array.astype(np.float32)),
    "empty": lambda: _each(lambda array: array[:0] if array.ndim else array, "fiub"),
    "one row": lambda: _each(lambda array: array[:1] if array.ndim else array, "fiub"),
    "no axes": lambda: _each(lambda array: array.ravel()[0].reshape(()) if array.size else array, "fiub"),
    "columns": lambda: _each(np.asfortranarray, "fiub"),
    "NaN and infinities": _with_holes,
    "ties": lambda: _each(np.round),
}
"""Other arrays for the calls: dtypes, sizes, layouts and numbers at the edges."""

UNLIKE_NUMPY = {
    "np.lcm(n, u)": "NumPy's least common multiples of int8 and uint8 have signs",
    'np.unpackbits(u, count=11, bitorder="little")': "NumPy leaves what it pads an empty array with as it was",
    "np.nanpercentile(Z, [10, 90], axis=1)": "NumPy's result for an empty array lacks the axis of the quantiles",
    "np.nanquantile(Z, [0.2, 0.7], axis=0)": "as above",
    "np.cov(A, rowvar=False, bias=True)": "before 2.2 NumPy takes a matrix of one row for a vector",
    "np.corrcoef(A, rowvar=False)": "as above",
    "np.argsort(A, axis=None)": "equal elements keep their order here",
}
"""Calls whose numbers differ from NumPy's for one of the variants, and why."""

BY_LABEL = ("np.cross(C, C.T)", 'np.einsum("ii->i", C)', "np.inner(A, A)", "np.matmul(N, N.T)")
"""Calls that labels align in another way than positions do, or that would repeat a label."""
