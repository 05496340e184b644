# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of 16 bits in compiled programs: all casts bit by bit, fused loops, moves, products, derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import dlarray

HALF = np.dtype(np.float16)
ALL = np.arange(2**16, dtype=np.uint16).view(HALF)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def replayed(function: Any, *arrays: np.ndarray) -> Any:
    """Return what the replay of a function gives, and what the function itself does."""
    step = dlaccelerate(function)
    step(*map(dlarray, arrays))
    have = step(*map(dlarray, arrays))
    assert step.hit_rate == 50
    want = function(*map(dlarray, arrays))
    parts = [x if isinstance(x, (tuple, list)) else (x,) for x in (have, want)]
    return [[tj.extractdata(x) for x in part] for part in parts]


def assert_same_bits(have: np.ndarray, want: np.ndarray) -> None:
    assert have.dtype == want.dtype
    unknown = np.isnan(want)
    assert np.array_equal(np.isnan(have), unknown)
    bits = np.dtype(f"u{want.itemsize}")
    np.testing.assert_array_equal(have[~unknown].view(bits), want[~unknown].view(bits))


@pytest.mark.parametrize("target", ["float32", "float64"])
def test_every_number_is_widened(target: str) -> None:
    (have,), _ = replayed(lambda x: x.astype(target), ALL)
    assert_same_bits(have, ALL.astype(target))


def near(dtype: str) -> np.ndarray:
    """Return all numbers of 16 bits, those halfway between neighbours, their neighbours, and random bits."""
    kind = np.dtype(dtype)
    finite = ALL[np.isfinite(ALL)]
    numbers = finite.astype(kind)
    middle = (numbers + np.nextafter(finite, HALF.type(np.inf)).astype(kind)) / 2
    middle[np.isinf(middle)] = 65520.0
    bits = np.random.default_rng(0).integers(
        0, 2 ** (8 * kind.itemsize) - 1, 100000, f"u{kind.itemsize}", True
    )
    special = [np.nan, np.inf, -np.inf, 65519.99, 65520.0, -65520.0, 1e30, -0.0, 1e-30, 2.0**-25, 2.0**-24]
    around = [np.nextafter(middle, kind.type(end)) for end in (np.inf, -np.inf)]
    return np.concatenate([numbers, middle, *around, bits.view(kind), np.array(special, kind)])


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(source: str) -> None:
    x = near(source)
    (have,), _ = replayed(lambda x: x.astype(np.float16), x)
    assert_same_bits(have, x.astype(HALF))


@pytest.mark.parametrize("other", ["int8", "uint16", "int32", "int64", "bool"])
def test_casts_of_integers(other: str) -> None:
    x = np.array([0, 1, 3, 100, 2049, 2051, 65504, 70000]).astype(other)
    (have, back), _ = replayed(lambda x: (x.astype(np.float16), x.astype(np.float16).astype(np.float32)), x)
    assert_same_bits(have, x.astype(HALF))
    assert_same_bits(back, x.astype(HALF).astype(np.float32))
    whole = np.array([0.0, 1.5, -3.0, 100.0], HALF)
    (have,), _ = replayed(lambda x: x.astype(np.int32), whole)
    np.testing.assert_array_equal(have, whole.astype(np.int32))


UNDONE: dict[str, Callable[[Any], Any]] = {
    "-a": lambda a: -a, "-1 * (-a)": lambda a: -1 * (-a), "a * 1": lambda a: a * 1.0, "a / 1": lambda a: a / 1.0,
    "a - 0": lambda a: a - 0.0, "a * -1": lambda a: a * -1.0, "b + (-a)": lambda a: a * 3 + (-a),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDONE)
@pytest.mark.parametrize("source", ["float64", "float32", "int32", "int64", "bool"])
def test_what_is_cast_and_hardly_changed(source: str, name: str) -> None:
    """LLVM joined both roundings into one from float64, for which x86 has no instruction."""
    x = np.array([1.5, 2.5, -1000.37, 7.7e-5, 65519.9, 0.33325195]).astype(source)
    function = tj.dlaccelerate(lambda x: UNDONE[name](x.astype(np.float16)))
    for _ in range(3):
        found = tj.extractdata(function(x))
        assert found.tobytes() == UNDONE[name](x.astype(np.float16)).tobytes()


def test_each_op_of_a_chain_rounds_as_in_numpy() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(37, 53)).astype(HALF) for _ in range(2))

    def chain(x: Any, y: Any) -> Any:
        z = x * y + x / (abs(y) + 0.1) - 3
        return z, np.maximum(z, y) * 0.3, np.where(z > x, z, -y), np.sqrt(abs(z)), z < 0.1

    have, want = replayed(chain, x, y)
    for own, eager, numpy in zip(have, want, chain(x, y), strict=True):
        assert_same_bits(own, numpy)
        assert_same_bits(eager, numpy)


def test_moves_keep_the_bits() -> None:
    x = ALL[~np.isnan(ALL)][:3200].reshape(40, 80).copy()

    def moved(x: Any) -> Any:
        y = np.concatenate([x[::2].T, np.pad(x, ((0, 0), (1, 2)), constant_values=0.5).T[:80, :20]])
        z = x.copy()
        z[3] = y[5, :1]
        z[4:6] = -1
        return y, z, x[[3, 1, 3]], np.take_along_axis(x, np.argsort(x, axis=1), 1), np.roll(x, 3, 1)

    for own, eager in zip(*replayed(moved, x), strict=True):
        assert_same_bits(own, eager)


@pytest.mark.parametrize("shape", [(5, 7, 3), (64, 32, 48)])
def test_products_are_summed_in_single(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(m, k)).astype(HALF), rng.normal(size=(k, n)).astype(HALF)
    (have,), _ = replayed(lambda a, b: a @ b, a, b)
    want = a.astype(float) @ b.astype(float)
    np.testing.assert_allclose(have.astype(float), want, rtol=2**-10, atol=1e-4 * k)
    assert have.dtype == HALF


def test_strided_and_written_arguments() -> None:
    x = np.arange(24, dtype=HALF).reshape(4, 6)

    def written(x: Any) -> Any:
        x *= 2
        x[0] += 0.5
        return x.sum()

    step, own, expected = dlaccelerate(written), x.copy()[:, ::2], x.copy()[:, ::2]
    for _ in range(3):
        total = step(own)
        assert tj.extractdata(total) == written(expected)
        assert_same_bits(own, expected)


def test_derivatives() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(8, 5)).astype(HALF), rng.normal(size=(5, 4)).astype(HALF)

    def step(x: Any, w: Any) -> Any:
        loss = np.mean(np.tanh(x @ w) ** 2)
        return loss, *tj.dlgradient(loss, [x, w])

    accelerated = dlaccelerate(lambda x, w: tj.dlfeval(step, x, w))
    for _ in range(2):
        found = accelerated(dlarray(x), dlarray(w))
    wide = tj.dlfeval(step, dlarray(x.astype(float)), dlarray(w.astype(float)))
    for have, want in zip(found, wide, strict=True):
        assert have.dtype == HALF
        want = tj.extractdata(want)
        np.testing.assert_allclose(tj.extractdata(have).astype(float), want, atol=4e-3 * np.abs(want).max())


def test_gradients_through_a_replay_within_an_evaluation() -> None:
    """The adjoint program takes its cotangents in 16 bits; those that the tape adds up have 32."""
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(3, 3)).astype(HALF), rng.normal(size=(3, 2)).astype(np.float32)
    product = dlaccelerate(lambda x, w: x @ w)

    def loss(x: Any, w: Any, dtype: Any) -> Any:
        y = product(x, w.astype(dtype))
        return tj.dlgradient((y**2).mean() + y.sum(), w)

    def again(x: Any, w: Any, dtype: Any) -> Any:
        return tj.dlgradient(tj.dlgradient((product(x, w.astype(dtype)) ** 2).mean(), w).sum(), w)

    for function in (loss, again):
        want = np.asarray(tj.dlfeval(function, dlarray(x.astype(float)), dlarray(w.astype(float)), float))
        for _ in range(3):
            found = tj.dlfeval(function, dlarray(x), dlarray(w), HALF)
            assert found.dtype == np.float32
            np.testing.assert_allclose(np.asarray(found), want, atol=4e-3 * np.abs(want).max())
    assert product.hit_rate > 50


def test_loops_carry_16_bits() -> None:
    x = (np.arange(12) / 8).astype(HALF).reshape(6, 2)

    def loss(x: Any) -> Any:
        last, steps = tj.dlscan(lambda c, row: (np.tanh(c * row) + row, c * 2), x[0], x)
        total = np.sum(last * last) + np.mean(steps)
        return last, steps, tj.dlgradient(total, x)

    have, _ = replayed(lambda x: tj.dlfeval(loss, x), x)
    for own, eager in zip(have, tj.dlfeval(loss, dlarray(x)), strict=True):
        eager = tj.extractdata(eager)
        assert own.dtype == eager.dtype == HALF
        np.testing.assert_allclose(own.astype(float), eager.astype(float), rtol=3e-3)
    step = dlaccelerate(lambda x: tj.dlwhile(lambda c: c.sum() < 100, lambda c: c * 2, x))
    for _ in range(2):
        found = step(dlarray(x))
    np.testing.assert_array_equal(tj.extractdata(found), x * HALF.type(16))


def test_an_exported_function_takes_16_bits(tmp_path: Any) -> None:
    w = dlarray(np.array([0.5, 1.0, 2.0], HALF))
    step = dlaccelerate(lambda x: (x * w + 1, x.sum()))
    x = dlarray(np.arange(6, dtype=HALF).reshape(2, 3))
    tj.export(step, tmp_path / "step", args=(x,), captured="constants")
    loaded = tj.load(tmp_path / "step")
    for have, want in zip(loaded(x), step(x), strict=True):
        assert_same_bits(tj.extractdata(have), tj.extractdata(want))
        assert have.dtype == HALF
