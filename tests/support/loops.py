# SPDX-License-Identifier: BSD-3-Clause
"""What tests of loops in unit/ and in compiled/ share."""

import re
from typing import Any

import numpy as np
import pytest

import tracejit as tj


def loops_of(accelerated: Any) -> list[str]:
    """Return the heads of the loops in the source of a program; those within kernels have no number."""
    return [line.strip() for line in accelerated.source().splitlines() if re.match(r" *for step\d", line)]


def agree(fun: Any, *arguments: Any, loops: int | None = 1, calls: Any = ()) -> Any:
    """Check that accelerated calls give what the function in Python gives, and that it keeps its loops.

    Args:
        fun: the function.
        arguments: of the first call.
        loops: the number of loops in its program; None if there are several programs.
        calls: further arguments.
    """
    accelerated = tj.dlaccelerate(fun)
    for _ in range(3):
        for given in (arguments, *calls):
            expected = tj.dlfeval(fun, *given)
            found = accelerated(*given)
            for one, other in zip(*(tj.tree.flatten(each)[0] for each in (found, expected)), strict=True):
                assert type(one) is type(other)
                if isinstance(one, tj.dlarray):
                    assert (one.shape, one.format, one.dtype) == (other.shape, other.format, other.dtype)
                    np.testing.assert_allclose(one._data, other._data, rtol=1e-10, atol=1e-12)
                else:
                    assert one == other
    if loops is not None:
        assert len(loops_of(accelerated)) == loops
        assert accelerated.stats.programs == 1
    return accelerated


def array(*shape: int, format: str | None = None) -> tj.dlarray:
    return tj.dlarray(np.random.default_rng(sum(shape)).uniform(-1, 1, shape), format)


class Cube(tj.DifferentiableFunction):
    """A function of NumPy's, which a program calls."""

    def __init__(self) -> None:
        super().__init__(1, save_inputs_for_backward=True)

    def forward(self, x: Any) -> Any:
        if x.max() > 50.0:
            raise ValueError("too large")
        return x**3

    def backward(self, ct: Any, compute_gradients: Any, x: Any) -> Any:
        return 3.0 * x**2 * ct


def check_functions_of_python() -> None:
    """A step may call Python; its errors end the loop, and the next call is right."""
    cube, other = Cube(), Cube()

    def fun(w: Any, xs: Any) -> Any:
        before = other(xs.sum() * 0.1)
        last, ys = tj.dlscan(lambda c, x: (tj.tanh(cube(c * w) + x), c.sum()), w * 0.1, xs)
        loss = last.sum() + ys.mean() + before
        return loss, tj.dlgradient(loss, (w, xs))

    accelerated = agree(fun, array(3), array(6, 3), loops=2)
    with pytest.raises(ValueError, match="too large"):
        accelerated(array(3) * 100.0, array(6, 3))
    found = [accelerated(array(3), array(6, 3))[0].item() for _ in range(2)]
    assert found == [found[0]] * 2
    assert np.isclose(found[0], tj.dlfeval(fun, array(3), array(6, 3))[0].item())


def check_a_loop_that_a_value_ends() -> None:
    """Each call makes as many steps as it needs, none too."""

    def root(x: Any, tolerance: Any) -> Any:
        return tj.dlwhile(
            lambda c: abs(c["x"] ** 2 - 2) > tolerance,
            lambda c: {"x": (c["x"] + 2 / c["x"]) / 2, "n": c["n"] + 1},
            {"x": x, "n": 0},
        )

    number = tj.dlarray
    calls = [(number(x), number(tolerance)) for x, tolerance in ((100.0, 1e-3), (1e9, 1e-9), (2**0.5, 1e-3))]
    agree(root, number(1.0), number(1e-10), calls=calls)


def check_branches() -> None:
    """Of two branches each step computes one, and its adjoint."""

    def fun(xs: Any, w: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = tj.dlcond(state.sum() > 0.3, lambda: state - x * w, lambda: tj.tanh(state * w + x))
            return state, state.sum()

        last, sums = tj.dlscan(step, tj.dlarray(np.zeros(2)), xs)
        loss = last.sum() + (sums**2).sum()
        return loss, tj.dlgradient(loss, (xs, w))

    agree(fun, array(9, 2), tj.dlarray(0.7), calls=[(array(9, 2) * -1.0, tj.dlarray(0.9))], loops=6)


def check_a_long_scan_compiles_what_a_short_one_does() -> None:
    """Programs for 10 and for 10,000 steps have the same kernels, and as many rows."""

    def loss(w: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = tj.tanh(state @ w + x)
            return state, state[0, 0]

        last, firsts = tj.dlscan(step, tj.dlarray(np.zeros((3, 2))), xs)
        return tj.dlgradient(last.sum() + firsts[-1], w)

    fun = tj.dlaccelerate(loss)
    counts = []
    for length in (10, 10_000):
        xs = tj.dlarray(np.full((length, 3, 2), 0.1))
        for _ in range(3):
            found = fun(tj.dlarray(np.full((2, 2), 0.2)), xs)
        assert np.isfinite(np.asarray(found)).all()
        counts.append((fun.stats.kernels, fun.stats.launches))
    assert counts[0][0] == counts[1][0]
    assert counts[1][1] == 2 * counts[0][1]
