# SPDX-License-Identifier: BSD-3-Clause
"""Normalisation against its formulas in float64 and PyTorch: formats, statistics, accuracy, derivatives."""

import effort
import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray

EXTENTS = {"B": 3, "C": 4, "S": 5, "T": 2, "U": 2}
FORMATS = ("BC", "CB", "BCSS", "BSSC", "SSCB", "BCS", "CBT", "BTC", "C", "CS")
RNG = np.random.default_rng(0)


def data(format: str, dtype: str = "float64", **extents: int) -> np.ndarray:
    shape = [{**EXTENTS, **extents}[label] + (label == "S") * i for i, label in enumerate(format)]
    return np.random.default_rng(len(format)).normal(2.0, 1.5, shape).astype(dtype)


def spread(values: np.ndarray, format: str) -> np.ndarray:
    shape = [1] * len(format)
    shape[format.index("C")] = len(values)
    return values.reshape(shape)


def reference(x: np.ndarray, axes, epsilon: float, format: str, offset, scale) -> np.ndarray:
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True)
    var = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + epsilon) * spread(scale, format) + spread(offset, format)


def axes_of(format: str, kept: str) -> tuple[int, ...]:
    return tuple(i for i, label in enumerate(format) if label not in kept)


def extract(x) -> np.ndarray:
    return tj.extractdata(x)


def parameters(channels: int = 4, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    return RNG.normal(size=channels).astype(dtype), RNG.uniform(0.5, 2, channels).astype(dtype)


def close(found, want: np.ndarray, dtype: str) -> None:
    eps = np.finfo(dtype).eps
    assert found.dtype == dtype
    np.testing.assert_allclose(extract(found), want, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("format", FORMATS)
def test_batchnorm(format: str, dtype: str) -> None:
    x, (offset, scale) = data(format, dtype), parameters(dtype=dtype)
    y, mean, variance = tj.batchnorm(dlarray(x, format), offset, scale)
    axes = axes_of(format, "C")
    close(y, reference(x, axes, 1e-5, format, offset, scale), dtype)
    assert y.format == format and mean.format is None and mean.shape == variance.shape == (4,)
    close(mean, x.astype(np.float64).mean(axes), dtype)
    close(variance, x.astype(np.float64).var(axes), dtype)
    inferred = tj.batchnorm(dlarray(x, format), offset, scale, mean, variance)
    close(inferred, reference(x, axes, 1e-5, format, offset, scale), dtype)
    so_far = parameters(dtype=dtype)
    trained = tj.batchnorm(dlarray(x, format), offset, scale, *so_far, mean_decay=0.25)
    np.testing.assert_array_equal(extract(trained[0]), extract(y))
    close(trained[1], 0.25 * extract(mean) + 0.75 * so_far[0], dtype)
    close(trained[2], 0.1 * extract(variance) + 0.9 * so_far[1], dtype)
    unformatted = tj.batchnorm(x, offset, scale, data_format=format)[0]
    assert unformatted.format is None
    np.testing.assert_array_equal(extract(unformatted), extract(y))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("format", FORMATS)
def test_layernorm_and_rmsnorm(format: str, dtype: str) -> None:
    x, (offset, scale) = data(format, dtype), parameters(dtype=dtype)
    auto = "SC" if "S" in format and "T" not in format else "C"
    summed = {"auto": auto, "channel-only": "C", "spatial-channel": "SC", "batch-excluded": "SCTU"}
    for option, labels in summed.items():
        axes = tuple(i for i, label in enumerate(format) if label in labels)
        y = tj.layernorm(dlarray(x, format), offset, scale, epsilon=1e-3, operation_dimension=option)
        close(y, reference(x, axes, 1e-3, format, offset, scale), dtype)
        y = tj.rmsnorm(dlarray(x, format), scale, epsilon=1e-3, operation_dimension=option)
        square = np.square(x.astype(np.float64)).mean(axes, keepdims=True)
        close(y, x / np.sqrt(square + 1e-3) * spread(scale, format), dtype)
        assert y.format == format


def by_group(x: np.ndarray, format: str, groups: int) -> np.ndarray:
    """Return mean and variance of each group and observation, for each element of `x`."""
    x = x.astype(np.float64)
    at = format.index("C")
    split = x.reshape(*x.shape[:at], groups, -1, *x.shape[at + 1 :])
    axes = tuple(i + (i > at) for i, label in enumerate(format) if label not in "BC")
    axes += (at + 1,)
    both = [
        np.broadcast_to(f(split, axes, keepdims=True), split.shape).reshape(x.shape)
        for f in (np.mean, np.var)
    ]
    return np.array(both)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("groups", [1, 2, 4, "all-channels", "channel-wise"])
def test_groupnorm(format: str, groups, dtype: str) -> None:
    if groups in (4, "channel-wise") and not axes_of(format, "BC"):
        return  # every element is its own mean
    x, (offset, scale) = data(format, dtype), parameters(dtype=dtype)
    y = tj.groupnorm(dlarray(x, format), groups, offset, scale, epsilon=1e-3)
    mean, var = by_group(x, format, {"all-channels": 1, "channel-wise": 4}.get(groups, groups))
    close(y, (x - mean) / np.sqrt(var + 1e-3) * spread(scale, format) + spread(offset, format), dtype)
    assert y.format == format


@pytest.mark.parametrize("format", [format for format in FORMATS if axes_of(format, "BC")])
def test_instancenorm(format: str) -> None:
    x, (offset, scale) = data(format), parameters()
    y = tj.instancenorm(dlarray(x, format), offset, scale)
    close(y, reference(x, axes_of(format, "BC"), 1e-5, format, offset, scale), "float64")


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 11])
@pytest.mark.parametrize("format", ["BC", "BCSS", "BSSC", "CS"])
def test_crosschannelnorm(window: int, format: str) -> None:
    x = data(format)
    y = tj.crosschannelnorm(dlarray(x, format), window, alpha=0.3, beta=0.6, k=1.5)
    at = format.index("C")
    squares = np.moveaxis(x**2, at, 0)
    first, end = (window - 1) // 2, window // 2 + 1
    sums = np.moveaxis(np.array([squares[max(0, c - first) : c + end].sum(0) for c in range(4)]), 0, at)
    close(y, x / (1.5 + 0.3 / window * sums) ** 0.6, "float64")
    assert y.format == format


@pytest.mark.parametrize("mean", [0.0, 1e3, -1e5])
@pytest.mark.parametrize("format", ["BCSS", "BSSC", "SSCB", "CB"])
def test_a_mean_that_is_large_beside_the_deviation(format: str, mean: float) -> None:
    """float32 statistics of 32768 pixels, against float64 on the same numbers."""
    extents = {"B": 32, "C": 2, "S": 32} if "S" in format else {"B": 32768, "C": 2}
    shape = [extents[label] for label in format]
    x = (np.random.default_rng(1).normal(mean, 1.0, shape)).astype(np.float32)
    y, _, variance = tj.batchnorm(dlarray(x, format), 0, 1)
    axes = axes_of(format, "C")
    want = reference(x, axes, 1e-5, format, np.zeros(2), np.ones(2))
    assert abs(extract(y) - want).max() <= 1e-5
    np.testing.assert_allclose(extract(variance), x.astype(np.float64).var(axes), rtol=1e-6)
    if "S" in format:
        for groups in (1, 2):
            y = tj.groupnorm(dlarray(x, format), groups, 0, 1)
            m, v = by_group(x, format, groups)
            assert abs(extract(y) - (x - m) / np.sqrt(v + 1e-5)).max() <= 1e-5
        y = tj.layernorm(dlarray(x, format), 0, 1)
        want = reference(x, axes_of(format, "B"), 1e-5, format, np.zeros(2), np.ones(2))
        assert abs(extract(y) - want).max() <= 1e-5


@pytest.mark.parametrize(
    ("format", "shape"),
    [("BCSS", (2, 3, 70, 60)), ("BSSC", (2, 3, 300, 2)), ("BSC", (1, 9, 3)), ("SSCB", (31, 33, 2, 5)),
     ("BCS", (3, 2, 5000)), ("BC", (7, 2)), ("CB", (2, 5000))],
)  # fmt: skip
def test_float32_statistics_of_lines_and_images_of_any_length(format: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(30.0, 2.0, shape).astype(np.float32)
    offset, scale = parameters(shape[format.index("C")], "float32")
    y, mean, variance = tj.batchnorm(dlarray(x, format), offset, scale)
    axes = axes_of(format, "C")
    want = reference(x, axes, 1e-5, format, offset, scale)
    np.testing.assert_allclose(extract(y), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(extract(mean), x.astype(np.float64).mean(axes), rtol=1e-7)
    np.testing.assert_allclose(extract(variance), x.astype(np.float64).var(axes), rtol=1e-6)


def test_the_first_element_may_be_far_from_all_others() -> None:
    x = np.random.default_rng(1).normal(0.0, 1.0, (4, 64, 2)).astype(np.float32)
    x[0, 0] = 1e4
    y = tj.batchnorm(dlarray(x, "BSC"), 0, 1)[0]
    np.testing.assert_allclose(
        extract(y), reference(x, (0, 1), 1e-5, "BSC", np.zeros(2), np.ones(2)), atol=1e-6
    )


@pytest.mark.parametrize("place", [1, 3, 5])
def test_an_element_of_a_group_may_be_far_from_all_others(place: int) -> None:
    """Rows of groups are first moved by an element near their mean (Note [rows in two passes])."""
    x = np.random.default_rng(1).normal(100.0, 1.0, (2, 6, 30, 30)).astype(np.float32)
    for first in (0, 3):
        x[:, first + 3 * place // 6, 5 * place, 5 * place] = 0
    m, v = by_group(x, "BCSS", 2)
    y = extract(tj.groupnorm(dlarray(x, "BCSS"), 2, 0, 1))
    np.testing.assert_allclose(y, (x - m) / np.sqrt(v + 1e-5), rtol=1e-5, atol=1e-6)


def test_groups_of_constants_and_nan() -> None:
    x = np.full((1, 3, 60, 60), 7.3, np.float32)
    x[0, 2, 4, 4] = np.nan
    y = extract(tj.groupnorm(dlarray(x, "BCSS"), 3, 0, 1))
    assert (y[:, :2] == 0).all() and np.isnan(y[:, 2]).all()


@pytest.mark.parametrize("extent", [14, 28, 30])
def test_rows_of_one_large_number(extent: int) -> None:
    """The rounded mean of such a row is not its number, and the square of the difference is rounded too."""
    x = np.repeat(np.geomspace(1e3, 1e9, 300).astype(np.float32)[:, None], extent, 1)
    for epsilon in (1e-5, 1e-12):
        for y in (
            tj.layernorm(dlarray(x, "BC"), 0, 1, epsilon=epsilon),
            tj.groupnorm(dlarray(x, "BC"), 1, 0, 1, epsilon=epsilon),
            tj.instancenorm(dlarray(x, "CS"), 0, 1, epsilon=epsilon),
        ):
            bound = 1e-2 if epsilon == 1e-5 else 1e2  # what is left of x - mean(x), over the root of epsilon
            assert (np.abs(extract(y)) <= bound).all()


FUNCTIONS = {
    "batchnorm": lambda x, o, s: tj.batchnorm(x, o, s)[0],
    "mean and variance": lambda x, o, s: tj.batchnorm(x, o, s)[1:],
    "inference": lambda x, o, s: tj.batchnorm(x, o, s, o + 1, s * s),
    "updated": lambda x, o, s: tj.batchnorm(x, o, s, o, s, mean_decay=0.2),
    "layernorm": lambda x, o, s: tj.layernorm(x, o, s),
    "layernorm of channels": lambda x, o, s: tj.layernorm(x, o, s, operation_dimension="channel-only"),
    "rmsnorm": lambda x, o, s: tj.rmsnorm(x, s) * (1 + 0 * o.sum()),
    "groupnorm": lambda x, o, s: tj.groupnorm(x, 2, o, s),
    "instancenorm": lambda x, o, s: tj.instancenorm(x, o, s),
    "crosschannelnorm": lambda x, o, s: tj.crosschannelnorm(x, 3, alpha=0.5),
}


@pytest.mark.slow
def test_derivatives_of_long_rows() -> None:
    x, (offset, scale) = RNG.normal(size=(1, 4, 8, 8)), parameters()
    weights = dlarray(RNG.normal(size=x.shape), "BCSS")
    for function in (tj.groupnorm, lambda x, _, o, s: tj.instancenorm(x, o, s)):
        tj.testing.check_gradients(
            lambda x, o, s, function=function: (function(x, 2, o, s) * weights).sum(),
            dlarray(x, "BCSS"), dlarray(offset), dlarray(scale + 0.5), order=2, rtol=1e-5,
        )  # fmt: skip


@pytest.mark.parametrize("format", effort.sweep(("BCS", "BSC"), ("BCS", "BSC", "SCB", "CBT", "BCSS")))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str, format: str) -> None:
    x, (offset, scale) = data(format, B=2, S=2), parameters()
    scale = scale + 0.5
    tj.testing.check_gradients(
        FUNCTIONS[name], dlarray(x, format), dlarray(offset), dlarray(scale), order=2, rtol=1e-5
    )


def test_one_number_for_all_channels() -> None:
    x = data("BC")
    y = tj.batchnorm(dlarray(x, "BC"), 0, 1)[0]
    np.testing.assert_array_equal(
        extract(y), extract(tj.batchnorm(dlarray(x, "BC"), np.zeros(4), np.ones(4))[0])
    )
    np.testing.assert_array_equal(extract(y), extract(tj.batchnorm(dlarray(x, "BC"), [0.0], dlarray(1.0))[0]))


def test_integers_and_nothing() -> None:
    assert tj.layernorm(dlarray([[1, 2, 4]], "BC"), 0, 1).dtype == np.float64
    for shape in ((0, 3), (2, 0)):
        for function in ("layernorm", "groupnorm", "rmsnorm", "crosschannelnorm"):
            arguments = {
                "layernorm": (0, 1),
                "groupnorm": (1, 0, 1),
                "rmsnorm": (1,),
                "crosschannelnorm": (3,),
            }
            y = getattr(tj, function)(dlarray(np.zeros(shape), "BC"), *arguments[function])
            assert y.shape == shape
    assert tj.batchnorm(dlarray(np.zeros((0, 3)), "BC"), 0, 1, np.zeros(3), np.ones(3)).shape == (0, 3)


def test_constant_channels_and_nan() -> None:
    x = np.full((2, 3, 4), 7.0)
    x[:, 1] = [1.0, 2.0, 3.0, 4.0]
    x[0, 2, 1] = np.nan
    y = extract(tj.batchnorm(dlarray(x, "BCS"), 0, 1)[0])
    assert (y[:, 0] == 0).all() and np.isfinite(y[:, 1]).all() and np.isnan(y[:, 2]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_pytorch(dtype: str) -> None:
    torch = pytorch()
    functional = torch.nn.functional
    x, (offset, scale) = data("BCSS", dtype), parameters(dtype=dtype)
    ct = RNG.normal(size=x.shape).astype(dtype)
    pairs = {
        "batchnorm": lambda t, o, s: functional.batch_norm(t, None, None, s, o, True),
        "groupnorm": lambda t, o, s: functional.group_norm(t, 2, s, o),
        "instancenorm": lambda t, o, s: functional.instance_norm(t, None, None, s, o),
        "crosschannelnorm": lambda t, o, s: (
            functional.local_response_norm(t, 3, 0.5, 0.75, 2.0) + 0 * (o + s).sum()
        ),
    }
    for name, peer in pairs.items():
        tensors = [torch.tensor(a, requires_grad=True) for a in (x, offset, scale)]
        y = peer(*tensors)
        (y * torch.tensor(ct)).sum().backward()

        def loss(x, o, s, name=name):
            y = (
                tj.crosschannelnorm(x, 3, alpha=0.5) + 0 * (o + s).sum()
                if name == "crosschannelnorm"
                else FUNCTIONS[name](x, o, s)
            )
            return y, tj.dlgradient((tj.stripdims(y) * ct).sum(), x, o, s)

        ours, gradients = tj.dlfeval(loss, dlarray(x, "BCSS"), dlarray(offset), dlarray(scale))
        tolerance = 1e-11 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(extract(ours), y.detach().numpy(), rtol=tolerance, atol=tolerance)
        for found, tensor in zip(gradients, tensors, strict=True):
            np.testing.assert_allclose(
                extract(found), tensor.grad.numpy(), rtol=tolerance, atol=10 * tolerance
            )


def test_accelerated() -> None:
    @tj.dlaccelerate
    def step(x, offset, scale, mean, variance):
        y, mean, variance = tj.batchnorm(x, offset, scale, mean, variance, mean_decay=0.1)
        z = tj.groupnorm(y, 2, offset, scale)
        z = tj.layernorm(z, offset, scale)
        return z, mean, variance, tj.dlgradient((z**2).sum(), offset, scale)

    offset, scale = parameters(dtype="float32")
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=(3, 4, 5)).astype(np.float32)
        arguments = [dlarray(x, "BCS"), *map(dlarray, (offset, scale, offset, scale))]
        found, want = step(*arguments), tj.dlfeval(step.function, *arguments)
        for have, expected in zip(tj.tree.flatten(found)[0], tj.tree.flatten(want)[0], strict=True):
            np.testing.assert_allclose(extract(have), extract(expected), rtol=1e-4, atol=1e-5)
    assert step.hit_rate > 0


def test_the_mean_of_one_observation_is_no_view_of_it() -> None:
    x = np.ones(3)
    mean = tj.batchnorm(x, 0, 1, data_format="C")[1]
    mean *= 0.9
    assert x.tolist() == [1, 1, 1]
