# SPDX-License-Identifier: BSD-3-Clause
"""dlresize against interpolation one place at a time and PyTorch: methods, transforms, formats, derivatives."""

import math
from fractions import Fraction

import effort
import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray

PAIRS = ((1, 1), (1, 4), (4, 1), (3, 6), (6, 3), (5, 7), (7, 5), (4, 4), (2, 9), (9, 2))
METHODS = ("nearest", "linear", "cubic")
TRANSFORMS = ("half-pixel", "asymmetric", "align-corners")


def value(x) -> np.ndarray:
    return tj.extractdata(x)


def place(j: int, n: int, m: int, transform: str) -> Fraction:
    if transform == "half-pixel":
        return Fraction(2 * j + 1, 2) * Fraction(n, m) - Fraction(1, 2)
    return Fraction(j * n, m) if transform == "asymmetric" else Fraction(j * (n - 1), max(m - 1, 1))


def keys(d: float) -> float:
    d, a = abs(d), -0.75
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def along(x: np.ndarray, m: int, method: str, transform: str, rounding: str) -> np.ndarray:
    """Return the last axis resized, one place after the other."""
    n = x.shape[-1]
    y = np.zeros((*x.shape[:-1], m))
    for j in range(m):
        at = place(j, n, m, transform)
        if method == "nearest":
            rounded = {"round": math.floor(at + Fraction(1, 2)), "floor": math.floor(at)}.get(rounding)
            if rounded is None:
                rounded = math.ceil(at) if m < n else math.floor(at)
            y[..., j] = x[..., min(max(rounded, 0), n - 1)]
            continue
        for k in range(math.floor(at) - 1, math.floor(at) + 3):
            weight = max(0.0, float(1 - abs(at - k))) if method == "linear" else keys(float(at - k))
            y[..., j] += weight * x[..., min(max(k, 0), n - 1)]
    return y


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("method", METHODS)
def test_one_axis(method: str, transform: str, dtype: str) -> None:
    for n, m in PAIRS:
        x = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
        for rounding in ("round", "floor", "onnx-10") if method == "nearest" else ("round",):
            y = tj.dlresize(dlarray(x, "BS"), output_size=m, method=method, geometric_transform_mode=transform,
                            nearest_rounding_mode=rounding)  # fmt: skip
            eps = 32 * np.finfo(dtype).eps
            want = along(x.astype("float64"), m, method, transform, rounding)
            np.testing.assert_allclose(value(y), want, rtol=eps, atol=eps, err_msg=f"{n} {m} {rounding}")
            assert y.dtype == dtype and y.format == "BS"


@pytest.mark.parametrize("format", ["BCSS", "BSSC", "SSCB", "SCS", "BCSSS", "CBT"])
@pytest.mark.parametrize("method", METHODS)
def test_several_axes(format: str, method: str) -> None:
    shape = [{"B": 2, "C": 3, "S": 3 + i, "T": 5}[label] for i, label in enumerate(format)]
    x = np.random.default_rng(0).normal(size=shape)
    axes = [i for i, label in enumerate(format) if label == ("T" if "S" not in format else "S")]
    sizes = [7, 2, 5][: len(axes)]
    want = x
    for axis, size in zip(axes, sizes, strict=True):
        want = np.moveaxis(along(np.moveaxis(want, axis, -1), size, method, "half-pixel", "round"), -1, axis)
    y = tj.dlresize(dlarray(x, format), output_size=tuple(sizes), method=method)
    np.testing.assert_allclose(value(y), want, rtol=1e-12, atol=1e-12)
    assert y.format == format
    plain = tj.dlresize(x, output_size=tuple(sizes), method=method, data_format=format)
    assert plain.format is None
    np.testing.assert_array_equal(value(plain), value(y))


def test_sizes() -> None:
    x = dlarray(np.zeros((2, 5, 8)), "BSS")
    for options, shape in (
        ({"scale": 2}, (10, 16)),
        ({"scale": 1.5}, (7, 12)),
        ({"scale": (0.4, np.float32(1))}, (2, 8)),
        ({"scale": np.array([2.0, 0.5])}, (10, 4)),
        ({"output_size": 3}, (3, 3)),
        ({"output_size": (None, 4)}, (2, 4)),
        ({"output_size": [10, None]}, (10, 16)),
    ):
        assert tj.dlresize(x, **options).shape == (2, *shape)
    assert tj.dlresize(dlarray(np.zeros((0, 3, 4)), "BCS"), scale=2).shape == (0, 3, 8)
    assert tj.dlresize(dlarray([1, 2], "S"), scale=2).dtype == np.float64


@pytest.mark.parametrize("transform", effort.sweep(("half-pixel",), TRANSFORMS))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("format", ["BCSS", "BSSC"])
def test_derivatives(format: str, method: str, transform: str) -> None:
    shape = [{"B": 1, "C": 2}.get(label, 3 + i) for i, label in enumerate(format)]
    x = np.random.default_rng(0).normal(size=shape)
    for size in ((7, 2), (1, 9)):
        options = {"output_size": size, "method": method, "geometric_transform_mode": transform}
        tj.testing.check_gradients(
            lambda z, options=options: tj.dlresize(z, **options) ** 2, dlarray(x, format), order=2
        )


@pytest.mark.parametrize(
    "mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "bilinear corners", "bicubic corners"]
)
def test_pytorch(mode: str) -> None:
    torch = pytorch()
    name, _, corners = mode.partition(" ")
    options = {"method": {"bilinear": "linear", "bicubic": "cubic"}.get(name, "nearest")}
    if mode == "nearest":
        options |= {"geometric_transform_mode": "asymmetric", "nearest_rounding_mode": "floor"}
    if corners:
        options["geometric_transform_mode"] = "align-corners"
    for sizes in ((8, 12), (3, 4), (5, 9)):
        x = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
        tensor = torch.tensor(x, requires_grad=True)
        more = {"align_corners": bool(corners)} if name.startswith("bi") else {}
        y = torch.nn.functional.interpolate(tensor, sizes, mode=name, **more)
        (y**2).sum().backward()
        ours = tj.dlresize(dlarray(x, "BCSS"), output_size=sizes, **options)
        np.testing.assert_allclose(value(ours), y.detach().numpy(), rtol=1e-10, atol=1e-12)
        gradient = tj.dlfeval(
            lambda z, sizes=sizes: tj.dlgradient(
                (tj.dlresize(z, output_size=sizes, **options) ** 2).sum(), z
            ),
            dlarray(x, "BCSS"),
        )
        np.testing.assert_allclose(value(gradient), tensor.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_accelerated() -> None:
    @tj.dlaccelerate
    def step(x):
        y = tj.dlresize(x, scale=2, method="cubic")
        return y, tj.dlgradient((tj.dlresize(y, output_size=(3, 5), method="linear") ** 2).sum(), x)

    for seed in range(4):
        x = dlarray(np.random.default_rng(seed).normal(size=(2, 3, 4, 5)), "BCSS")
        for have, want in zip(step(x), tj.dlfeval(step.function, x), strict=True):
            np.testing.assert_allclose(value(have), value(want), rtol=1e-12, atol=1e-12)
    assert step.hit_rate > 0


def test_the_size_that_an_array_has_gives_no_view_of_it() -> None:
    x = np.ones((2, 3, 4))

    def written(x, size):
        y = tj.dlresize(x, output_size=size, data_format="BCS")
        y += 1
        return y

    for size in (8, 4):
        for found in (written(x, size), tj.dlfeval(written, x, size), tj.dlaccelerate(written)(x, size)):
            assert found.shape == (2, 3, size) and (tj.extractdata(found) == 2).all() and (x == 1).all()
