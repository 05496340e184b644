# SPDX-License-Identifier: BSD-3-Clause
"""depthtospace, spacetodepth and crop against loops over elements, NumPy's slices and PyTorch."""

import itertools

import numpy as np
import pytest
from peers import pytorch

import tracejit as tj
from tracejit import dlarray

FORMATS = ("BCSS", "BSSC", "SSCB", "SCSB", "CS", "SC", "BCSSS", "BCST")


def value(x) -> np.ndarray:
    return tj.extractdata(x)


def larger(x: np.ndarray, format: str, block: tuple[int, ...], mode: str) -> np.ndarray:
    """Return what depthtospace makes of an array, element by element."""
    axes = [i for i, label in enumerate(format) if label == "S"]
    channel = format.index("C")
    last = np.moveaxis(x, [*axes, channel], range(-len(axes) - 1, 0))  # images, then channels
    count = last.shape[-1] // int(np.prod(block))
    extents = last.shape[-len(axes) - 1 : -1]
    y = np.zeros(
        (*last.shape[: -len(axes) - 1], *(n * b for n, b in zip(extents, block, strict=True)), count)
    )
    for at in itertools.product(*map(range, extents)):
        for place in itertools.product(*map(range, block)):
            number = int(np.ravel_multi_index(place, block))
            for c in range(count):
                source = number * count + c if mode == "dcr" else c * int(np.prod(block)) + number
                to = [n * b + p for n, b, p in zip(at, block, place, strict=True)]
                y[(..., *to, c)] = last[(..., *at, source)]
    return np.moveaxis(y, range(-len(axes) - 1, 0), [*axes, channel])


@pytest.mark.parametrize("mode", ["dcr", "crd"])
@pytest.mark.parametrize("format", FORMATS)
def test_blocks(format: str, mode: str) -> None:
    count = format.count("S")
    for block in ((2,) * count, tuple(range(1, count + 1)), (1,) * count):
        channels = 3 * int(np.prod(block))
        shape = [{"B": 2, "C": channels, "T": 2}.get(label, 2 + i % 2) for i, label in enumerate(format)]
        x = np.random.default_rng(0).normal(size=shape)
        y = tj.depthtospace(dlarray(x, format), block, mode=mode)
        np.testing.assert_array_equal(value(y), larger(x, format, block, mode))
        assert y.format == format
        back = tj.spacetodepth(y, block, mode=mode)
        np.testing.assert_array_equal(value(back), x)
        assert back.format == format
        plain = tj.depthtospace(x, block, mode=mode, data_format=format)
        assert plain.format is None and plain.shape == y.shape


@pytest.mark.parametrize("mode", ["dcr", "crd"])
def test_derivatives(mode: str) -> None:
    x = dlarray(np.random.default_rng(0).normal(size=(2, 4, 2, 2)), "BCSS")
    tj.testing.check_gradients(lambda z: tj.depthtospace(z, 2, mode=mode) ** 3, x, order=2)
    tj.testing.check_gradients(lambda z: tj.spacetodepth(z, 2, mode=mode) ** 3, x, order=2)
    tj.testing.check_gradients(lambda z: tj.crop(z, ((0, 1), (1, 0))) ** 3, x, order=2)


@pytest.mark.parametrize("format", ["BCSS", "SSCB", "SCS", "CT"])
def test_crop(format: str) -> None:
    x = np.random.default_rng(0).normal(size=[4 + i for i in range(len(format))])
    spatial = [i for i, label in enumerate(format) if label in "ST"]
    for cropping, pairs in (
        (1, ((1, 1),) * 2),
        ((0, 2), ((0, 0), (2, 2))),
        (((1, 2), (0, 1)), ((1, 2), (0, 1))),
    ):
        own = cropping if len(spatial) == 2 else (cropping if isinstance(cropping, int) else (pairs[0],))
        want = x
        for axis, (before, after) in zip(spatial, pairs, strict=False):
            want = want.take(range(before, x.shape[axis] - after), axis)
        y = tj.crop(dlarray(x, format), own)
        np.testing.assert_array_equal(value(y), want)
        assert y.format == format
    assert tj.crop(x, 0, data_format=format).shape == x.shape


def test_pytorch() -> None:
    torch = pytorch()
    x = np.random.default_rng(0).normal(size=(2, 12, 3, 4))
    y = torch.nn.functional.pixel_shuffle(torch.tensor(x), 2).numpy()
    np.testing.assert_array_equal(value(tj.depthtospace(dlarray(x, "BCSS"), 2, mode="crd")), y)
    np.testing.assert_array_equal(value(tj.spacetodepth(dlarray(y, "BCSS"), 2, mode="crd")), x)


@pytest.mark.parametrize("mode", ["dcr", "crd"])
@pytest.mark.parametrize(
    ("function", "format", "shape", "block"),
    [
        (tj.depthtospace, "BCSS", (2, 4, 1, 1), 2),
        (tj.depthtospace, "BCSS", (2, 4, 3, 3), 1),
        (tj.depthtospace, "SC", (2, 4), 2),
        (tj.spacetodepth, "BCSS", (2, 4, 2, 2), 2),
        (tj.spacetodepth, "BSSC", (2, 2, 2, 4), 2),
        (tj.spacetodepth, "BCSS", (2, 4, 3, 3), 1),
    ],
)
def test_no_size_of_blocks_gives_a_view(
    function, format: str, shape: tuple[int, ...], block: int, mode
) -> None:
    x = np.ones(shape)

    def written(x):
        y = function(x, block, mode=mode, data_format=format)
        y += 1
        return y

    for found in (written(x), tj.dlfeval(written, x), *[tj.dlaccelerate(written)(x) for _ in range(3)]):
        assert (value(found) == 2).all() and (x == 1).all()
