# SPDX-License-Identifier: BSD-3-Clause
"""Generators that recorded code makes: of constant seeds, of seeds that vary, and of none."""

import copy
import random
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj

X = np.array([0.5, -1.25, 2.0])


def drawn(rng: Any, x: Any) -> Any:
    return x * rng.normal() + rng.uniform(1, 2)


def follow(body: str, calls: int = 24, **options: Any) -> Any:
    """Compare an accelerated function of an array and a number with the plain one, and return it."""
    functions = []
    for _ in range(2):
        names: dict[str, Any] = {
            "np": np, "tj": tj, "random": random, "copy": copy, "drawn": drawn, "held": SimpleNamespace(), "kept": [],
        }  # fmt: skip
        lines = body.split("; ")
        exec("\n    ".join(["def function(x, n):", *lines[:-1], f"return {lines[-1]}"]), names)
        functions.append(names["function"])
    plain, fast = functions[0], tj.dlaccelerate(functions[1], **{"audit": False, **options})
    for n in range(calls):
        x = X * (1 + n)
        want, got = plain(x, n), fast(x, n)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, err_msg=f"call {n}")
    return fast


OF_CONSTANTS = (
    "drawn(np.random.default_rng(3), x)", "rng = np.random.RandomState(4); [x * rng.rand() for _ in range(2)]",
    "drawn(np.random.Generator(np.random.PCG64(3)), x)", "r = random.Random(5); x * r.gauss(0, 1) + r.random()",
    "rng = np.random.Generator(np.random.Philox(key=7)); x + rng.random(3)",
    "x + np.random.default_rng([1, 2]).random()",
    "held.seed = 3; drawn(np.random.default_rng(held.seed), x)", "x * random.Random('abc').random()",
)  # fmt: skip
OF_NUMBERS = (
    "drawn(np.random.default_rng(n), x)", "rng = np.random.default_rng(n + 1); x * rng.random(3) + rng.integers(0, 9)",
    "x * np.random.default_rng([n, 7]).standard_normal(3)",
    "rng = np.random.default_rng(seed=n); rng.permutation(3) * x",
    "r = random.Random(n); x * r.gauss(0, 1) + sum([r.random() for _ in range(3)])",
    "x * random.Random(n * 2).uniform(-1, 1)",
    "a, b = np.random.default_rng(n), np.random.default_rng(n + 5); x * a.normal() + b.normal() - a.random()",
    "rng = np.random.default_rng(int(x[2]) + n); rng.normal(x, 1.0)",
    "f = np.random.default_rng(n).normal; x * f() + f()",
    "rng = np.random.default_rng(n); x * 2 if rng.random() < 0.5 else x * rng.normal()",
    "rng = np.random.default_rng(n); rng.poisson(np.abs(x)) + np.random.RandomState(3).rand(3)",
    "rng = np.random.default_rng(n); rng.choice(3, 2, replace=False) + x[:2]",
    "rng = np.random.default_rng(n); g = (rng.normal() for _ in range(9)); x * next(g) + next(g)",
)  # fmt: skip


@pytest.mark.parametrize("body", OF_CONSTANTS)
def test_constant_seeds_give_constants(body: str) -> None:
    fast = follow(body)
    assert not fast.stats.uncompiled and fast.stats.hits >= 15


@pytest.mark.parametrize("body", OF_NUMBERS)
def test_programs_make_generators_of_numbers_that_vary(body: str) -> None:
    fast = follow(body)
    assert not fast.stats.uncompiled and fast.stats.hits >= 15
    follow(body, 6, check_mode="tolerance")
    follow(body, 6, confirm=0)


OTHERS = (
    "held.rng = np.random.default_rng(n); x * held.rng.normal()",
    "rng = np.random.default_rng(n); kept.append(rng); x * rng.normal()",
    "rng = np.random.default_rng(n); c = rng.spawn(2); x * c[0].normal() + c[1].normal()",
    "rng = np.random.default_rng(n); c = copy.deepcopy(rng); x * c.normal() + rng.normal()",
    "rng = np.random.default_rng(n); g = np.random.Generator(rng.bit_generator); x * g.normal() + rng.normal()",
    "r = random.Random(n); p = [1, 2, 3, 4]; r.shuffle(p); x * p[0] + r.random()",
    "r = random.Random(n); s = r.getstate(); a = r.random(); r.setstate(s); x * a + r.random()",
    "s = np.random.SeedSequence(n).spawn(2); x * np.random.default_rng(s[1]).normal()",
    "rng = np.random.RandomState(n); x * rng.normal()", "np.random.seed(n); x * np.random.rand(3)",
    "rng = np.random.Generator(np.random.Philox(n)); x * rng.normal()",
    "rng = np.random.default_rng(n); tj.dlscan(lambda c, _: (c + rng.normal(), c), x, None, length=3)[0]",
    "tj.dlscan(lambda c, _: (c + np.random.default_rng(n).normal(), c), x, None, length=3)[0]",
    "tj.dlcond(x[0] > 3, lambda: x * np.random.default_rng(n).normal(), lambda: x)",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::tracejit.TraceJitWarning")
@pytest.mark.parametrize("body", OTHERS)
def test_what_else_is_done_with_them_is_right_all_the_same(body: str) -> None:
    if "spawn" in body and not hasattr(np.random.Generator, "spawn"):
        pytest.skip("older releases of NumPy have no Generator.spawn")
    follow(body)


@pytest.mark.parametrize("make", ["np.random.default_rng()", "np.random.RandomState()", "random.Random()"])
def test_without_a_seed_each_call_draws_other_numbers(make: str) -> None:
    names: dict[str, Any] = {"np": np, "random": random}
    exec(
        f"def function(x):\n    return x * {make}.normal{'variate(0.0, 1.0)' if make[7] == 'R' else '()'}",
        names,
    )
    for confirm, reason in enumerate(("a generator without a seed", "two recordings differ")):
        fast = tj.dlaccelerate(names["function"], confirm=confirm)
        with pytest.warns(tj.NotAcceleratedWarning, match=reason):
            found = {fast(X)[0].item() for _ in range(6)}
        assert len(found) == 6


@pytest.mark.parametrize("make", ["np.random.default_rng", "random.Random"])
def test_an_error_that_is_handled_keeps_no_trace(make: str) -> None:
    names: dict[str, Any] = {"np": np, "random": random}
    exec(
        "def function(x, n):\n"
        "    try:\n"
        f"        return x * {make}(n - 5 if n > 4 else [[]] if n < 0 else n - 5).random()\n"
        "    except (ValueError, TypeError):\n"
        "        return x * 0",
        names,
    )
    plain, fast = names["function"], tj.dlaccelerate(names["function"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(14):
            np.testing.assert_array_equal(fast(X, n), plain(X, n))


def test_a_seed_of_numpy_stays_one() -> None:
    """Python's generators refuse it, except where its number has been taken out."""
    fast = tj.dlaccelerate(lambda x, k: x * random.Random(k).random())
    own = tj.dlaccelerate(lambda x, k: x * np.random.default_rng(k).random(), audit=False)
    for k in np.arange(3, 12):
        np.testing.assert_array_equal(own(X, k), X * np.random.default_rng(k).random())
        with pytest.raises(TypeError, match="supported seed types"):
            fast(X, k)
    assert own.stats.hits >= 4


def test_gradients_go_by_the_numbers_that_are_drawn() -> None:
    @tj.dlaccelerate(audit=False)
    def slope(x: Any, n: int) -> Any:
        y = (x**2 * np.random.default_rng(n).normal(size=3)).sum()
        return tj.dlgradient(y, x)

    for n in range(12):
        np.testing.assert_allclose(
            slope(tj.dlarray(X), n), 2 * X * np.random.default_rng(n).normal(size=3), rtol=1e-12
        )
    assert slope.stats.hits >= 6


def test_classes_are_themselves_afterwards() -> None:
    follow("drawn(np.random.default_rng(n), x)", 4)

    class Own(random.Random):
        def __init__(self, seed: int, more: str) -> None:
            super().__init__(seed)
            self.more = more

    assert Own(3, "more").random() == random.Random(3).random()
    assert (
        type(random.Random(3)) is random.Random and random.Random(x=3).random() == random.Random(3).random()
    )
    assert copy.copy(np.random.default_rng(3)).random() == np.random.default_rng(3).random()
    assert isinstance(random.SystemRandom().random(), float)
