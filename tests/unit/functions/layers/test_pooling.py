# SPDX-License-Identifier: BSD-3-Clause
"""Pooling against loops over windows and PyTorch: sizes, strides, padding, formats, NaN, indices, derivatives."""

import itertools
import math
from typing import Any

import effort
import numpy as np
import pytest
from accelerated import dlaccelerate
from peers import pytorch

import tracejit as tj
from tracejit import dlarray

GRID = [  # sizes of the spatial axes, window, stride, padding
    ((4,), (2,), (2,), ((0, 0),)),
    ((7,), (3,), (2,), ((1, 2),)),
    ((1,), (1,), (1,), ((0, 0),)),
    ((1,), (3,), (1,), ((2, 0),)),
    ((4, 6), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((5, 7), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((5, 7), (2, 2), (2, 2), ((1, 1), (0, 1))),
    ((5, 6), (3, 2), (1, 3), ((2, 0), (1, 1))),
    ((6, 5), (3, 3), (2, 2), ((1, 1), (1, 1))),
    ((3, 4), (3, 4), (1, 1), ((0, 0), (0, 0))),
    ((3, 2, 4), (2, 1, 3), (1, 1, 2), ((1, 0), (0, 0), (1, 2))),
    ((2, 4, 4), (1, 2, 2), (2, 2, 2), ((0, 0), (0, 0), (0, 0))),
]
FORMATS = {
    1: ("BCS", "BSC", "SCB", "SBC"),
    2: ("BCSS", "BSSC", "SSCB", "SBSC"),
    3: ("BCSSS", "BSSSC", "SSSCB"),
}
CASES = [(*case, format) for case in GRID for format in FORMATS[len(case[0])]]


def shape_of(format: str, extents: tuple[int, ...], others: tuple[int, int] = (2, 3)) -> tuple[int, ...]:
    spatial = iter(extents)
    return tuple(next(spatial) if label == "S" else others["BC".index(label)] for label in format)


def windows(x: np.ndarray, format: str, size, stride, padding):
    """Give, for each place of the result, the elements of its window in the image of each channel, and their places."""
    axes = [i for i, label in enumerate(format) if label == "S"]
    image = np.moveaxis(x, axes, range(-len(axes), 0))
    extents = image.shape[-len(axes) :]
    counts = [(n + sum(p) - k) // s + 1 for n, k, s, p in zip(extents, size, stride, padding, strict=True)]
    for at in itertools.product(*map(range, counts)):
        taps = [
            [t for t in range(i * s - p[0], i * s - p[0] + k) if 0 <= t < n]
            for i, n, k, s, p in zip(at, extents, size, stride, padding, strict=True)
        ]
        places = [np.ravel_multi_index(tap, extents) for tap in itertools.product(*taps)]
        yield at, image.reshape(*image.shape[: -len(axes)], -1)[..., places], np.array(places)


def pooled(function, x: np.ndarray, format: str, size, stride, padding) -> np.ndarray:
    """Return what a function makes of the elements of each window, and of their places."""
    axes = [i for i, label in enumerate(format) if label == "S"]
    found = {
        at: function(elements, places) for at, elements, places in windows(x, format, size, stride, padding)
    }
    counts = [max(at[i] for at in found) + 1 for i in range(len(axes))]
    first = next(iter(found.values()))
    image = np.empty((*first.shape, *counts), first.dtype)
    for at, value in found.items():
        image[(..., *at)] = value
    return np.moveaxis(image, range(-len(axes), 0), axes)


def data(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    # No two elements are equal, so that differences do not meet a tie.
    rng = np.random.default_rng(0)
    return (rng.permutation(math.prod(shape)).reshape(shape) / 7 - 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_of_every_window(case, dtype: str) -> None:
    extents, size, stride, padding, format = case
    x = data(shape_of(format, extents), dtype)
    options = {"stride": stride, "padding": padding}
    largest, indices, sizes = tj.maxpool(dlarray(x, format), size, return_indices=True, **options)
    assert largest.format == indices.format == format and sizes == x.shape
    want = pooled(lambda e, p: e.max(-1), x, format, size, stride, padding)
    np.testing.assert_array_equal(extract(largest), want, strict=True)
    places = pooled(lambda e, p: p[e.argmax(-1)], x, format, size, stride, padding)
    np.testing.assert_array_equal(extract(indices), places, strict=True)
    eps = np.finfo(dtype).eps
    for value, divisor in ((0, math.prod(size)), ("mean", None)):
        mean = tj.avgpool(dlarray(x, format), size, padding_value=value, **options)
        want = pooled(lambda e, p, d=divisor: e.sum(-1) / (d or len(p)), x, format, size, stride, padding)
        np.testing.assert_allclose(extract(mean), want, rtol=8 * eps, atol=8 * eps)
        assert mean.dtype == dtype and mean.format == format
    for p in (1, 2, 3.5):
        norm = tj.lppool(dlarray(x, format), p, size, **options)
        want = pooled(lambda e, _, p=p: (abs(e) ** p).sum(-1) ** (1 / p), x, format, size, stride, padding)
        np.testing.assert_allclose(extract(norm), want, rtol=64 * eps)


def extract(x: dlarray) -> np.ndarray:
    return tj.extractdata(x)


@pytest.mark.parametrize("case", CASES[:: effort.sweep(3, 1)], ids=str)
def test_unformatted_arrays(case) -> None:
    extents, size, stride, padding, format = case
    x = data(shape_of(format, extents))
    for function in (tj.maxpool, tj.avgpool):
        with_labels = function(dlarray(x, format), size, stride=stride, padding=padding)
        without = function(x, size, stride=stride, padding=padding, data_format=format)
        assert without.format is None
        np.testing.assert_array_equal(extract(without), extract(with_labels))


def test_options_for_all_axes() -> None:
    x = dlarray(data((2, 3, 5, 6)), "BCSS")
    same = [tj.maxpool(x, (2, 2), stride=(1, 1), padding=((1, 1), (1, 1))), tj.maxpool(x, 2, padding=1)]
    same.append(tj.maxpool(x, np.int64(2), stride=[1, 1], padding=(1, 1)))
    for other in same[1:]:
        np.testing.assert_array_equal(extract(other), extract(same[0]))
    assert tj.maxpool(x, 2).shape == (2, 3, 4, 5)


def test_one_axis_takes_a_pair_without_a_list_around_it() -> None:
    series = dlarray(data((4,)), "T")
    pair, listed = (tj.maxpool(series, 2, padding=given) for given in ((1, 0), ((1, 0),)))
    np.testing.assert_array_equal(extract(pair), extract(listed))


@pytest.mark.parametrize(
    ("extent", "size", "stride"), [(5, 2, 2), (5, 3, 1), (6, 4, 3), (1, 3, 2), (4, 1, 3), (7, 2, 5)]
)
def test_same_padding(extent: int, size: int, stride: int) -> None:
    x = dlarray(data((extent,)), "S")
    total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
    pairs = ((total // 2, total - total // 2),)
    for function in (tj.maxpool, tj.avgpool):
        y = function(x, size, stride=stride, padding="same")
        assert y.shape == (-(-extent // stride),)
        np.testing.assert_array_equal(extract(y), extract(function(x, size, stride=stride, padding=pairs)))


@pytest.mark.parametrize("format", ["BCSS", "BSSC", "SSCB", "CBT", "SCS"])
def test_global(format: str) -> None:
    x = data(tuple(range(2, 2 + len(format))))
    axes = tuple(i for i, label in enumerate(format) if label in "ST")
    y, indices, _ = tj.maxpool(dlarray(x, format), "global", return_indices=True)
    np.testing.assert_array_equal(extract(y), x.max(axes, keepdims=True))
    assert y.format == format
    flat = np.moveaxis(x, axes, range(-len(axes), 0))
    flat = flat.reshape(*flat.shape[: -len(axes)], -1)
    np.testing.assert_array_equal(extract(indices).reshape(flat.shape[:-1]), flat.argmax(-1))
    np.testing.assert_allclose(extract(tj.avgpool(dlarray(x, format), "global")), x.mean(axes, keepdims=True))


def test_nan_and_infinities() -> None:
    x = np.array([[1, np.nan, 2, 3], [-np.inf, -np.inf, -np.inf, 0], [np.nan, np.nan, np.inf, 1]])
    y, indices, _ = tj.maxpool(dlarray(x, "BS"), 2, stride=2, return_indices=True)
    np.testing.assert_array_equal(extract(y), [[np.nan, 3], [-np.inf, 0], [np.nan, np.inf]])
    assert (extract(indices)[:, 1] == [3, 3, 2]).all() and set(extract(indices)[:, 0]) <= {0, 1}
    y = tj.maxpool(dlarray(x, "BS"), 3, padding=1)
    np.testing.assert_array_equal(np.isnan(extract(y)), [[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
    gradient = by_x(lambda z: tj.maxpool(z, 2, stride=2).sum(), x, "BS")
    np.testing.assert_array_equal(gradient.sum(1), 2)


@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_the_derivative_of_a_norm_that_is_nan_is_nan(p: float) -> None:
    x = np.array([[1.0, np.nan, 0.0, 0.0, 3.0, 4.0]])
    gradient = by_x(lambda z: tj.lppool(z, p, 2, stride=2).sum(), x, "BS")
    np.testing.assert_array_equal(np.isnan(gradient), [[1, 1, 0, 0, 0, 0]])
    assert (gradient[0, 2:4] == 0).all() and (gradient[0, 4:] > 0).all()


def by_x(function, x: np.ndarray, format: str | None = None) -> np.ndarray:
    return extract(tj.dlfeval(lambda z: tj.dlgradient(function(z), z), dlarray(x, format)))


def test_integers() -> None:
    x = np.arange(8).reshape(2, 4)
    y = tj.maxpool(dlarray(x, "BS"), 2)
    assert y.dtype == np.int64 and y.tolist() == [[1, 2, 3], [5, 6, 7]]
    assert tj.avgpool(dlarray(x, "BS"), 2).dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4)])
def test_no_observations_or_channels(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    for function in (tj.maxpool, tj.avgpool):
        assert function(dlarray(x, "BCSS"), 2, stride=2).shape == (*shape[:2], 2, 2)
        assert by_x(lambda z, f=function: f(z, 2, stride=2).sum(), x, "BCSS").shape == shape
    assert tj.adaptiveavgpool(dlarray(x, "BCSS"), 3).shape == (*shape[:2], 3, 3)


@pytest.mark.parametrize("case", CASES[:: effort.sweep(2, 1)], ids=str)
@pytest.mark.parametrize("name", ["maxpool", "avgpool", "avgpool mean", "lppool"])
def test_derivatives(name: str, case) -> None:
    extents, size, stride, padding, format = case
    x = data(shape_of(format, extents, (1, 2)))
    weights = None

    def loss(z):
        nonlocal weights
        if name == "lppool":
            y = tj.lppool(z, 2, size, stride=stride, padding=padding)
        elif name == "avgpool mean":
            y = tj.avgpool(z, size, stride=stride, padding=padding, padding_value="mean")
        else:
            y = getattr(tj, name)(z, size, stride=stride, padding=padding)
        if weights is None:
            weights = np.random.default_rng(1).uniform(0.5, 1.5, y.shape)
        return (tj.stripdims(y) * weights).sum() + (tj.stripdims(y) ** 2).sum()

    tj.testing.check_gradients(loss, dlarray(x, format), order=2)


@pytest.mark.parametrize(("extent", "parts"), [(5, 2), (7, 3), (4, 4), (3, 5), (6, 3), (1, 1), (1, 4)])
@pytest.mark.parametrize("format", ["BCS", "BSC", "SCB"])
def test_adaptive_means(extent: int, parts: int, format: str) -> None:
    x = data(shape_of(format, (extent,)))
    y = tj.adaptiveavgpool(dlarray(x, format), parts)
    axis = format.index("S")
    want = [
        x.take(range(i * extent // parts, -(-(i + 1) * extent // parts)), axis).mean(axis)
        for i in range(parts)
    ]
    np.testing.assert_allclose(extract(y), np.stack(want, axis), rtol=1e-13, atol=1e-14)
    tj.testing.check_gradients(lambda z: (tj.adaptiveavgpool(z, parts) ** 2).sum(), dlarray(x, format))


@pytest.mark.parametrize("case", CASES[:: effort.sweep(2, 1)], ids=str)
def test_unpooling(case) -> None:
    extents, size, _, _, format = case
    if any(k > n for k, n in zip(size, extents, strict=True)):
        return
    x = data(shape_of(format, extents))
    y, indices, sizes = tj.maxpool(dlarray(x, format), size, stride=size, return_indices=True)
    back = tj.maxunpool(y, indices, sizes)
    assert back.format == format
    np.testing.assert_array_equal(extract(back), np.where(np.isin(x, extract(y)), x, 0))
    only = tuple(n for n, label in zip(sizes, format, strict=True) if label == "S")
    np.testing.assert_array_equal(extract(tj.maxunpool(y, indices, only)), extract(back))
    tj.testing.check_gradients(lambda v: (tj.maxunpool(v, indices, sizes) ** 2).sum(), y, order=2)


def test_unpooling_of_repeated_places() -> None:
    y = np.array([[1.0, 2.0, 3.0]])
    indices = np.array([[1, 1, 3]])
    assert tj.maxunpool(dlarray(y, "BS"), indices, 4).tolist() == [[0, 2, 0, 3]]
    gradient = by_x(lambda z: (tj.maxunpool(z, indices, 4) * np.arange(1.0, 5)).sum(), y, "BS")
    assert gradient.tolist() == [[0, 2, 4]]


@pytest.mark.parametrize("case", [case for case in CASES if case[4].startswith("BCS")], ids=str)
def test_pytorch(case) -> None:
    torch = pytorch()
    extents, size, stride, padding, format = case
    if any(a != b or 2 * a > k for (a, b), k in zip(padding, size, strict=True)):
        return
    pads = tuple(a for a, _ in padding)
    x = data(shape_of(format, extents))
    names = f"{len(extents)}d"
    tensor = torch.tensor(x, requires_grad=True)
    y, indices = getattr(torch.nn.functional, f"max_pool{names}")(
        tensor, size, stride, pads, return_indices=True
    )
    (y**2).sum().backward()
    ours, places, _ = tj.maxpool(dlarray(x, format), size, stride=stride, padding=pads, return_indices=True)
    np.testing.assert_array_equal(extract(ours), y.detach().numpy())
    np.testing.assert_array_equal(extract(places), indices.numpy())
    found = by_x(lambda z: (tj.maxpool(z, size, stride=stride, padding=pads) ** 2).sum(), x, format)
    np.testing.assert_allclose(found, tensor.grad.numpy())
    tensor = torch.tensor(x, requires_grad=True)
    y = getattr(torch.nn.functional, f"avg_pool{names}")(tensor, size, stride, pads)
    (y**2).sum().backward()
    found = by_x(lambda z: (tj.avgpool(z, size, stride=stride, padding=pads) ** 2).sum(), x, format)
    np.testing.assert_allclose(found, tensor.grad.numpy(), rtol=1e-12, atol=1e-12)


def test_accelerated() -> None:
    @tj.dlaccelerate
    def step(x):
        y = tj.maxpool(x, 3, stride=2, padding=1)
        z = tj.avgpool(y, 2)
        return z, tj.dlgradient((z**2).sum(), x)

    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((2, 3, 7, 6)).astype("f")
        y, gradient = step(dlarray(x, "BCSS"))
        want = tj.avgpool(tj.maxpool(dlarray(x, "BCSS"), 3, stride=2, padding=1), 2)
        np.testing.assert_allclose(extract(y), extract(want), rtol=1e-6, atol=1e-6)
        slow = by_x(lambda z: (tj.avgpool(tj.maxpool(z, 3, stride=2, padding=1), 2) ** 2).sum(), x, "BCSS")
        np.testing.assert_allclose(extract(gradient), slow, rtol=1e-5, atol=1e-6)
    assert step.hit_rate > 0


def test_parts_see_nothing_of_what_is_beside_them() -> None:
    x = np.arange(9.0)
    x[[4, 8]] = np.inf, np.nan

    def step(x: Any, ct: Any) -> Any:
        y = tj.adaptiveavgpool(x, 4, data_format="S")
        return y, tj.dlgradient(y, x, seed=ct)

    parts = [slice(0, 3), slice(2, 5), slice(4, 7), slice(6, 9)]
    accelerated = dlaccelerate(step)
    for call in (lambda *arrays: tj.dlfeval(step, *arrays), accelerated, accelerated, accelerated):
        y, gradient = call(x, np.array([1.0, np.inf, 2.0, 3.0]))
        np.testing.assert_allclose(y, [x[part].mean() for part in parts])
        np.testing.assert_allclose(
            gradient, [1 / 3, 1 / 3, np.inf, np.inf, np.inf, 2 / 3, 5 / 3, 1, 1], rtol=1e-12
        )
