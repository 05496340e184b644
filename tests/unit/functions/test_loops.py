# SPDX-License-Identifier: BSD-3-Clause
"""dlscan and dlcheckpoint: the loop in Python is the reference; in an accelerated function the loop stays a loop."""

import collections
from typing import Any

import complex_loops
import numpy as np
import pytest
from counted_runs import counts_runs
from effort import by_turns, sweep
from loops import agree, array, check_functions_of_python, loops_of
from random_loops import check

import tracejit as tj
from tracejit.errors import TraceError

Pair = collections.namedtuple("Pair", "a b")
W = tj.dlarray(np.array([[0.5, -0.2], [0.3, 0.4]]))


def decay(state: Any, x: Any) -> Any:
    state = tj.tanh(state @ W + x)
    return state, state.sum()


@pytest.mark.slow
@pytest.mark.parametrize("case", range(sweep(12, 120)))
@pytest.mark.sampled(share=60)
def test_random_loops(case: int) -> None:
    """Gradients of first order, and of second order in every other case."""
    accelerated = check(case // 2, twice=case % 2 == 1)
    assert accelerated.stats.programs == 1
    assert loops_of(accelerated)


def test_a_loop_of_numpy_is_the_reference() -> None:
    xs = np.random.default_rng(0).uniform(-1, 1, (6, 3, 2))
    for order in (1, -1):
        state, sums = np.zeros((3, 2)), []
        for x in xs[::order]:
            state = np.tanh(state @ np.asarray(W) + x)
            sums.append(state.sum())
        last, found = tj.dlscan(decay, np.zeros((3, 2)), xs, reverse=order < 0)
        assert np.allclose(last, state, rtol=1e-14) and np.allclose(found, sums[::order], rtol=1e-14)


def test_containers() -> None:
    def step(carry: Any, x: Any) -> Any:
        pair, (total,) = carry
        return (Pair(pair.b, pair.a + x["p"]), [total + x["q"][0].sum()]), {"y": [pair.a, None], "n": total}

    xs = {"p": array(5, 2), "q": (array(5, 3),)}
    for fun in (
        lambda c, xs: tj.dlscan(step, c, xs),
        lambda c, xs: tj.dlgradient(tj.dlscan(step, c, xs)[1]["n"].sum(), (c, xs)),
    ):
        agree(fun, (Pair(array(2), array(2) * 2), [tj.dlarray(0.5)]), xs)
    last, results = tj.dlscan(step, (Pair(array(2), array(2)), [0.0]), xs)
    assert type(last[0]) is Pair and results["y"][1] is None and results["y"][0].shape == (5, 2)


def test_numbers_and_dtypes() -> None:
    def step(carry: Any, x: Any) -> Any:
        count, total, flag = carry
        return (count + 1, total + x, total > 1.0), (count, flag)

    agree(lambda xs: tj.dlscan(step, (0, np.float32(0.0), False), xs), array(5).astype(np.float32))
    last, (counts, flags) = tj.dlscan(step, (0, 0.0, False), np.ones(4))
    assert [x.item() for x in last] == [4, 4.0, True]
    assert counts.tolist() == [0, 1, 2, 3] and flags.dtype == bool


def test_a_length_without_xs_and_loops_without_carry() -> None:
    agree(lambda x: tj.dlscan(lambda c, _: (c * 0.5 + 1.0, c), x, length=6), array(2, 2))
    agree(lambda x: tj.dlscan(lambda c, row: (c, row * 2.0), None, x)[1], array(4, 3))
    agree(lambda x: tj.dlgradient((tj.dlscan(lambda c, row: (c, row**2), (), x)[1]).sum(), x), array(4, 3))


def test_labels() -> None:
    """An array with labels is scanned along T, which results get as their last axis."""
    x = array(3, 2, 5, format="CBT")

    def step(carry: Any, x: Any) -> Any:
        assert x.format == "CB"
        carry = tj.tanh(carry * 0.5 + x)
        return carry, (carry, carry.sum(axis=0))

    def fun(x: Any) -> Any:
        return tj.dlscan(step, tj.dlarray(np.zeros((3, 2)), "CB"), x)

    agree(fun, x)
    agree(fun, array(5, 3, 2, format="TCB"))
    last, (states, sums) = fun(x)
    assert (
        last.format == "CB" and states.format == "CBT" and states.shape == (3, 2, 5) and sums.format == "BT"
    )
    agree(lambda x: tj.dlgradient(fun(x)[1][0].sum(), x), x, loops=2)


@pytest.mark.parametrize("length", [1, 2])
def test_short_loops_are_unrolled(length: int) -> None:
    agree(lambda xs: tj.dlscan(decay, np.zeros((3, 2)), xs), array(length, 3, 2), loops=0)


@counts_runs
def test_a_long_loop_is_recorded_as_two_steps() -> None:
    """A program for 1,000 steps is that for 10, but for a number; nothing else depends on it."""
    steps, texts, counts = [], [], []

    def loss(w: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            steps.append(1)
            state = tj.tanh(state @ w + x)
            return state, state.sum()

        last, sums = tj.dlscan(step, tj.dlarray(np.zeros((3, 2))), xs)
        total = last.sum() + sums.sum()
        return total, tj.dlgradient(total, w)

    for length in (10, 1000):
        fun = tj.dlaccelerate(loss)
        xs = array(length, 3, 2) * 0.1
        del steps[:]
        for _ in range(2):
            fun(W, xs)
        counts.append(len(steps))
        fun(W, xs)
        assert fun.stats.hits == 1
        texts.append(fun.source().replace(str(length), "n"))
        kernels = sorted(line for line in texts[-1].splitlines() if line.startswith("def "))
    assert counts == [4, 4]
    assert [sorted(line for line in text.splitlines() if line.startswith("def ")) for text in texts] == [
        kernels
    ] * 2


def test_gradients_by_what_the_steps_read_around() -> None:
    """Closures over traced values, captured arrays and numbers have their gradients."""
    captured = tj.dlarray(np.array([0.3, -0.6]))

    def fun(scale: Any, xs: Any) -> Any:
        doubled = tj.exp(scale) * 2.0

        def step(state: Any, x: Any) -> Any:
            state = tj.tanh(state * captured + x * doubled)
            return state, None

        last, nothing = tj.dlscan(step, tj.dlarray(np.zeros(2)), xs)
        assert nothing is None
        return last, tj.dlgradient(last.sum(), (scale, captured))

    fun_of = agree(fun, tj.dlarray(0.25), array(7, 2), loops=2)
    captured[:] = 0.1
    assert np.allclose(
        fun_of(tj.dlarray(0.25), array(7, 2))[0], tj.dlfeval(fun, tj.dlarray(0.25), array(7, 2))[0]
    )


def test_a_gradient_inside_a_step() -> None:
    """Gradient descent as a loop, differentiated by where it began."""

    def fun(w: Any, data: Any) -> Any:
        def step(w: Any, x: Any) -> Any:
            loss = ((w * x - 1.0) ** 2).sum()
            return w - 0.05 * tj.dlgradient(loss, w), loss

        last, losses = tj.dlscan(step, w, data)
        return last, losses, tj.dlgradient(losses[-1] + last.sum(), w)

    agree(fun, array(3), array(6, 3), loops=2)


def test_random_numbers_differ_in_each_step() -> None:
    def fun(x: Any) -> Any:
        before = tj.rand(2)
        _, drawn = tj.dlscan(lambda c, _: (c, tj.rand(3) + x), None, length=5)
        return before, drawn, tj.rand(2)

    accelerated = tj.dlaccelerate(fun)
    tj.rng(0)
    expected = [tj.dlfeval(fun, tj.dlarray(0.0)) for _ in range(4)]
    tj.rng(0)
    for call in expected:
        for one, other in zip(accelerated(tj.dlarray(0.0)), call, strict=True):
            assert one.tolist() == other.tolist()
    assert len(np.unique(expected[0][1])) == 15
    assert loops_of(accelerated)


def drop(x: Any) -> Any:
    return tj.dropout(x, 0.3)


def drop_in_steps(x: Any) -> Any:
    return tj.dlscan(lambda carry, y: (drop(carry) + y, None), x, np.arange(4.0))[0]


@pytest.mark.parametrize(
    "within",
    [
        tj.dlcheckpoint(drop),
        drop_in_steps,
        tj.dlcheckpoint(drop_in_steps),
        lambda x: tj.dlcheckpoint(lambda x: tj.dlcheckpoint(drop)(x) + drop(x))(x),
        lambda x: drop(tj.dlcheckpoint(drop)(drop_in_steps(x))),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_checkpoints_and_loops_in_steps_draw_what_the_plain_loop_draws(within: Any, before: bool) -> None:
    def fun(x: Any) -> Any:
        first = tj.rand(3) if before else 0.0
        last, sums = tj.dlscan(lambda carry, y: (within(carry) + y, carry.sum()), x + first, np.arange(5.0))
        return last, tj.dlgradient((last**2).sum() + sums.sum(), x), tj.rand(3)

    accelerated = tj.dlaccelerate(fun)
    for seed in range(4):
        with tj.rng(seed):
            expected, state = tj.dlfeval(fun, np.ones(3)), tj.rng()
        with tj.rng(seed):
            found = accelerated(np.ones(3))
            assert tj.rng() == state
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert accelerated.stats.hits == 2
    assert loops_of(accelerated)


def branching(carry: Any, x: Any) -> Any:
    carry = carry * 2.0 if carry.sum() < 3.0 else carry - x
    return carry, carry


class Counted:
    """A step that uses how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, carry: Any, x: Any) -> Any:
        self.calls += 1
        return carry + x * self.calls, None


def test_steps_that_are_no_body_are_made_one_by_one() -> None:
    """What a value decides, what a step writes around it, and what differs in each step, as in Python."""
    agree(lambda xs: tj.dlscan(branching, tj.dlarray([0.4, 0.3]), xs), array(5, 2), loops=0)

    def writing(xs: Any) -> Any:
        seen = tj.dlarray(np.zeros(3)) + xs[0, 0]
        log = np.zeros(4)

        def step(carry: Any, x: Any) -> Any:
            seen[1] += x[0]
            log[0] += 1.0
            return carry + seen.sum() + log[0], None

        return tj.dlscan(step, 0.0, xs)[0], seen, tj.dlarray(log)

    agree(writing, array(5, 2), loops=0)
    agree(lambda xs: tj.dlscan(Counted(), 0.0, xs[:, 0]), array(5, 2), loops=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "derivative"),
    by_turns(range(sweep(9, 20)), [complex_loops.first, complex_loops.second, complex_loops.forward]),
)
@pytest.mark.sampled(share=30)
def test_random_loops_of_complex_numbers(seed: int, derivative: Any) -> None:
    accelerated = complex_loops.check(seed, derivative)
    assert accelerated.stats.programs == 1
    assert loops_of(accelerated)


def test_a_carry_that_is_the_real_part_of_a_transform() -> None:
    """Its new contents lie in the memory of complex numbers, where every second one is a real part."""
    rotation = tj.dlarray(np.exp([[0.3j, 0.7j]]) * [[0.5], [0.7]])

    def fun(xs: Any) -> Any:
        last, ys = tj.dlscan(
            lambda c, x: (np.fft.fft(c * rotation).real + x, c), tj.dlarray(np.zeros((2, 2))), xs
        )
        return last, ys, tj.dlgradient((last**2).sum() + ys.sum(), xs)

    agree(fun, array(5, 2, 2), loops=2)


def test_a_checkpoint_of_a_transform_of_real_numbers() -> None:
    def fun(x: Any) -> Any:
        smooth = tj.dlcheckpoint(lambda x: np.fft.irfft(np.fft.rfft(x) * np.arange(1.0, 6.0)))
        value = (smooth(x) ** 2).sum()
        return value, tj.dlgradient(value, x)

    agree(fun, array(8), loops=2)


def test_functions_of_python() -> None:
    check_functions_of_python()


def test_writes_inside_a_step() -> None:
    """The carry that a step gets is its own; a part is a view of xs."""

    def step(carry: Any, x: Any) -> Any:
        carry += x
        carry[0] = x[1]
        local = np.zeros(2)
        local[0] = 1.0
        return carry, carry * local

    start = array(2)
    before = start.tolist()
    agree(lambda c, xs: tj.dlscan(step, c, xs), start, array(5, 2))
    agree(lambda c, xs: tj.dlgradient(tj.dlscan(step, c, xs)[1].sum(), (c, xs)), start, array(5, 2))
    assert start.tolist() == before

    def writes_part(carry: Any, x: Any) -> Any:
        x *= 2.0
        return carry + x.sum(), None

    def fun(xs: Any) -> Any:
        xs = xs * 1.0
        return tj.dlscan(writes_part, 0.0, xs)[0], xs

    agree(fun, array(5, 2), loops=0)


def test_what_leaves_a_step_is_an_error() -> None:
    kept = []

    def step(carry: Any, x: Any) -> Any:
        kept.append(tj.exp(x))
        return carry + x, None

    def fun(xs: Any) -> Any:
        kept.clear()
        last, _ = tj.dlscan(step, 0.0, xs)
        return last + kept[0]

    with pytest.raises(
        TraceError, match="while a step of dlscan was evaluated is used after that evaluation ended"
    ):
        tj.dlaccelerate(fun)(array(4))


def test_a_view_that_a_step_reads_first_is_recorded_before_it() -> None:
    def fun(x: Any) -> Any:
        x = x * 1.0
        row = x[0]
        x += 1.0
        last, _ = tj.dlscan(lambda c, _: (c + row, None), tj.dlarray(np.zeros(2)), length=4)
        return last, row

    agree(fun, array(3, 2))


def test_an_index_out_of_range_is_found_in_each_step() -> None:
    table = array(4, 2)

    def fun(places: Any) -> Any:
        return tj.dlscan(lambda c, place: (c + table[place].sum(), place), 0.0, places)[0]

    accelerated = tj.dlaccelerate(fun)
    for _ in range(3):
        assert np.allclose(accelerated(np.array([0, 3, 2, 1])), fun(np.array([0, 3, 2, 1])))
    with pytest.raises(tj.BoundsError):
        accelerated(np.array([0, 3, 2, 9]))
    assert np.allclose(accelerated(np.array([1, 1, 1, 1])), fun(np.array([1, 1, 1, 1])))


def test_inside_an_evaluation() -> None:
    """An accelerated function with a loop is an op of the tape around it."""
    inner = tj.dlaccelerate(
        lambda w, xs: tj.dlscan(lambda s, x: (tj.tanh(s * w + x), None), w * 0.0, xs)[0].sum()
    )
    plain = inner.function

    def outer(fun: Any, w: Any, xs: Any) -> Any:
        return tj.dlgradient(fun(w, xs) ** 2, w)

    w, xs = array(2), array(6, 2)
    for _ in range(4):
        found = tj.dlfeval(lambda w, xs: outer(inner, w, xs), w, xs)
        assert np.allclose(found, tj.dlfeval(lambda w, xs: outer(plain, w, xs), w, xs), rtol=1e-12)


@pytest.mark.slow
def test_a_checkpoint_saves_the_carry_only() -> None:
    """A loop with a checkpoint takes the memory of one carry for each step."""

    def loss(fun: Any, w: Any, xs: Any) -> Any:
        last, _ = tj.dlscan(fun, tj.dlarray(np.zeros(50)), xs)
        return tj.dlgradient(last.sum(), w)

    def make(checkpoints: bool) -> Any:
        def fun(w: Any, xs: Any) -> Any:
            def step(state: Any, x: Any) -> Any:
                for _ in range(4):
                    state = tj.tanh(tj.sin(state * w) + x)
                return state, None

            return loss(tj.dlcheckpoint(step) if checkpoints else step, w, xs)

        return agree(fun, array(50), array(100, 50), loops=2)

    sizes = [int(make(checkpoints).source().split("arena ")[1].split()[0]) for checkpoints in (False, True)]
    row = 100 * 50 * 8
    assert sizes[0] >= 8 * row
    assert row <= sizes[1] <= row + 8192


def test_a_checkpoint_of_a_function() -> None:
    def block(x: Any, w: Any) -> Any:
        y = tj.dropout(tj.tanh(x @ w), 0.4)
        return {"y": y * 2.0, "n": 3}

    def fun(x: Any, w: Any) -> Any:
        out = tj.dlcheckpoint(block)(x, w)
        out = tj.dlcheckpoint(block)(out["y"], w)
        return out["n"], out["y"], tj.dlgradient((out["y"] ** 2).sum(), (x, w))

    accelerated = tj.dlaccelerate(fun)
    x, w = array(4, 3), array(3, 3)
    for _ in range(3):
        state = tj.rng()
        expected = tj.dlfeval(fun, x, w)
        tj.rng(state)
        found = accelerated(x, w)
        assert found[0] == expected[0] == 3
        assert np.allclose(found[1], expected[1]) and np.allclose(found[2][1], expected[2][1], rtol=1e-12)
    assert tj.dlcheckpoint(block).__name__ == "block"


def test_a_checkpoint_of_a_function_that_a_value_decides_is_none() -> None:
    def block(x: Any) -> Any:
        return x * 2.0 if x.sum() > 0 else x - 1.0

    agree(lambda x: tj.dlgradient(tj.dlcheckpoint(block)(x).sum(), x), array(3), loops=0)
