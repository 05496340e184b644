# SPDX-License-Identifier: BSD-3-Clause
"""Views that show what an ndarray shows of the memory of another one."""

import random

import numpy as np
import pytest
from effort import sweep

from tracejit.array import wrap
from tracejit.functions.parts import part


def chosen(rng: random.Random, data: np.ndarray) -> np.ndarray:
    """Return a random view by a slice, an index, other axes, or a new axis."""
    kind = rng.randrange(5)
    if kind == 0 and data.ndim:
        return data.transpose(rng.sample(range(data.ndim), data.ndim))
    if kind == 1 and data.ndim < 4:
        return np.expand_dims(data, rng.randint(0, data.ndim))
    if kind == 2 and data.ndim > 1:
        axis = rng.randrange(data.ndim)
        return np.moveaxis(data, axis, 0)[rng.randrange(data.shape[axis])]
    key = []
    for extent in data.shape:
        start = rng.randrange(extent)
        step = rng.choice([1, 1, 2, -1, -2, 3])
        key.append(slice(start, None, step) if rng.random() < 0.6 else slice(None, None, step))
    return data[(..., *key)]


@pytest.mark.parametrize("seed", range(sweep(150, 5000)))
def test_views_by_slices_and_axes(seed: int) -> None:
    rng = random.Random(seed)
    whole = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)
    if seed % 3:
        whole = chosen(rng, whole)
    if seed % 5 == 1:
        whole = np.asfortranarray(whole)
    data = whole
    for _ in range(rng.randint(1, 4)):
        data = chosen(rng, data)
    if not data.size:
        return
    found = part(wrap(whole), whole, data)
    assert found is not None
    assert found._data.shape == data.shape
    assert np.shares_memory(found._data, data)
    np.testing.assert_array_equal(found._data, data)
    found._data[...] = -1.0  # the same elements
    assert (data == -1.0).all() and (whole == -1.0).sum() == data.size


def test_elements_that_have_moved() -> None:
    """The view is of the array, whose elements may lie elsewhere by now."""
    whole = np.arange(12.0).reshape(3, 4)
    moved = wrap(whole * 10)
    found = part(moved, whole, whole.T[1:3, 1])
    assert found is not None and found._data.tolist() == [50.0, 60.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.diagonal(), lambda x: np.broadcast_to(x[0], (3, 4)),
        lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 2), lambda x: x.view(np.int64),
        lambda x: x.reshape(-1)[3:11].reshape(2, 4).T, lambda x: x.reshape(-1)[2:10:5],
    ],
)  # fmt: skip
def test_what_slices_do_not_show(view) -> None:
    whole = np.arange(12.0).reshape(3, 4)
    assert part(wrap(whole), whole, view(whole)) is None


@pytest.mark.parametrize(
    "whole", [np.arange(12.0).reshape(3, 4), np.arange(12.0), np.arange(12.0).reshape(2, 3, 2)]
)
@pytest.mark.parametrize("shape", [(12,), (4, 3), (2, 2, 3), (3, 4), (6,), (2, 3), (3, 1, 2), (1,), ()])
def test_elements_that_follow_one_another(whole: np.ndarray, shape: tuple[int, ...]) -> None:
    """Parameters in one vector, for instance."""
    whole = whole.copy()
    for start in range(13 - int(np.prod(shape))):
        data = whole.reshape(-1)[start : start + int(np.prod(shape))].reshape(shape)
        found = part(wrap(whole), whole, data)
        assert found is not None and np.shares_memory(found._data, whole)
        np.testing.assert_array_equal(found._data, data)
        moved = part(wrap(np.asfortranarray(whole.reshape(3, 4)) * 2), whole.reshape(3, 4), data)
        assert moved is None or (moved._data == 2 * data).all()


def test_elements_before_the_array() -> None:
    whole = np.arange(12.0)
    assert part(wrap(whole[4:]), whole[4:], whole[2:6]) is None
    found = part(wrap(whole[4:]), whole[4:], whole[5:7])
    assert found is not None and found._data.tolist() == [5.0, 6.0]
