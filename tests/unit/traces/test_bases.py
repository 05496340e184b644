# SPDX-License-Identifier: BSD-3-Clause
"""Views of ndarrays that a function assigns: replays make them of the array that is there then."""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj

VIEWS: dict[str, Callable[[np.ndarray], Any]] = {
    "transposed": lambda w: w.T,
    "reshaped": lambda w: w.reshape(-1),
    "a row": lambda w: w[1],
    "a column": lambda w: w[:, 1],
    "reversed": lambda w: w[::-1, ::-2],
    "some, with a new axis": lambda w: w.reshape(-1)[1:5, None],
    "read-only": lambda w: np.broadcast_to(w[0], (4, 3)),
    "in a tuple": lambda w: (w.T, w[0]),
    "in a dict": lambda w: {"w": w.T, "b": w[:1]},
    "of another dtype": lambda w: w.view(np.int64)[0],
}
MADE: dict[str, Callable[[], Any]] = {
    "reshaped": lambda: np.arange(6).reshape(2, 3),
    "transposed": lambda: np.linspace(0, 1, 6).reshape(3, 2).T,
    "two of one array": lambda: np.split(np.arange(6.0).reshape(2, 3), 2),
    "no elements": lambda: np.arange(6)[:0],
}
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.copy,
    "F": np.asfortranarray,
    "a part": lambda w: np.concatenate([w, w], axis=1)[:, :3],
    "a part of columns": lambda w: np.asfortranarray(np.concatenate([w, w]))[1:3],
}


def parts(value: Any) -> list[np.ndarray]:
    return (
        [*value.values()]
        if isinstance(value, dict)
        else [*value]
        if type(value) in (tuple, list)
        else [value]
    )


def follow(view: Callable[[np.ndarray], Any], arrays: list[np.ndarray], is_used: bool, calls: int = 3) -> Any:
    """Call a function with each array as its state, and compare what it keeps; return the function."""
    layer = SimpleNamespace(w=None, kept=None)

    @tj.dlaccelerate
    def forward(x):
        layer.kept = view(layer.w)
        used = (x.sum() * parts(layer.kept)[0]).sum() if is_used else 0.0
        return (x @ layer.w).sum() + used

    for w in arrays:
        for n in range(calls):
            layer.w = w
            x = np.array([1.0, n])
            found, wanted = forward(x), parts(view(w))
            used = (x.sum() * wanted[0]).sum() if is_used else 0.0
            assert float(found) == pytest.approx((x @ w).sum() + used)
            for one, other in zip(parts(layer.kept), wanted, strict=True):
                assert type(one) is np.ndarray
                assert np.array_equal(one, other)
                assert one.dtype == other.dtype
                assert one.flags.writeable == other.flags.writeable
                assert np.shares_memory(one, w) == np.shares_memory(other, w)
    return forward


@pytest.mark.parametrize("layout", [*LAYOUTS])
@pytest.mark.parametrize("name", [*VIEWS])
def test_views_of_an_array_that_is_replaced(name, layout):
    w = np.arange(6.0).reshape(2, 3)
    forward = follow(VIEWS[name], [LAYOUTS[layout](w) for _ in range(4)], is_used=False)
    assert forward.stats.hits == 9


@pytest.mark.parametrize("name", ["transposed", "reshaped", "read-only", "in a tuple"])
@pytest.mark.parametrize("is_used", [False, True])
def test_views_of_an_array_whose_contents_change(name, is_used):
    w = np.arange(6.0).reshape(2, 3)
    forward = follow(VIEWS[name], [w + n for n in range(4)], is_used)
    assert forward.stats.hits >= 8


def test_an_array_of_another_layout_is_recorded():
    w = np.arange(6.0).reshape(2, 3)
    arrays = [LAYOUTS[layout](w) for layout in ("C", "F", "C", "a part", "F", "a part of columns")]
    layer = SimpleNamespace(w=None, kept=None)

    @tj.dlaccelerate
    def forward(x):
        layer.kept = layer.w.T
        return x * 2

    for w in [*arrays, *arrays]:
        layer.w = w
        for _ in range(3):
            forward(np.ones(2))
            assert np.array_equal(layer.kept, w.T)
            assert np.shares_memory(layer.kept, w)
    assert forward.stats.hits >= 24


@pytest.mark.parametrize("name", [*MADE])
@pytest.mark.parametrize("is_used", [False, True])
def test_views_of_arrays_that_the_function_makes(name, is_used):
    layer = SimpleNamespace(kept=None)

    @tj.dlaccelerate
    def forward(x):
        layer.kept = MADE[name]()
        return x + parts(layer.kept)[0] if is_used and x.size else x

    for _ in range(6):
        layer.kept = None
        forward(np.ones((2, 3)) if name != "no elements" else np.ones(0))
        for one, other in zip(parts(layer.kept), parts(MADE[name]()), strict=True):
            assert np.array_equal(one, other)
            one[...] = 7  # in a replay, an array of its own
    assert forward.stats.hits == 4


def test_the_view_that_was_kept_before_is_not_taken_for_its_array():
    class Layer:
        def __init__(self) -> None:
            self.w, self.columns = np.arange(6.0).reshape(2, 3), None

        @tj.dlaccelerate
        def forward(self, x):
            self.columns = self.w.T
            return x @ self.columns

    layer = Layer()
    for n in range(8):
        layer.w = np.full((2, 3), float(n))
        assert layer.forward(np.ones(3)).tolist() == [3.0 * n] * 2
        assert layer.columns.tolist() == layer.w.T.tolist()
    assert layer.forward.stats.hits >= 5


def test_a_view_of_its_own_array():
    state = SimpleNamespace(k=np.arange(3.0))

    @tj.dlaccelerate
    def turn(x):
        state.k = state.k[::-1]
        return x + state.k

    expected = np.arange(3.0)
    for _ in range(7):
        expected = expected[::-1]
        assert turn(np.zeros(3)).tolist() == expected.tolist() == state.k.tolist()


def test_two_arrays_that_can_be_meant():
    """Either could get other memory."""
    flat = np.arange(6.0)
    layer = SimpleNamespace(flat=flat, w=flat[:4].reshape(2, 2), kept=None)

    @tj.dlaccelerate
    def forward(x):
        layer.kept = layer.w.T
        return x * layer.flat[0] + layer.w.sum()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in range(6):
            layer.w = np.full((2, 2), float(n)) if n == 4 else layer.w
            forward(np.ones(2))
            assert layer.kept.tolist() == layer.w.T.tolist()
    (warning,) = found
    assert "it assigns to closure layer.kept a view of an array that a replay could not find at " in str(
        warning.message
    )
    assert "Assign a copy (v.copy()), or read the array by a name or an attribute that no other array" in str(
        warning.message
    )


def test_a_view_of_an_array_that_something_else_holds():
    table = iter([np.arange(6.0) + n for n in range(20)])
    held = []
    layer = SimpleNamespace(kept=None)

    def fresh():
        held.append(next(table))
        return held[-1]

    @tj.dlaccelerate
    def forward(x):
        layer.kept = fresh().reshape(2, 3)
        return x * 2

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in range(6):
            forward(np.ones(2))
            assert layer.kept[0, 0] == n
    assert found
