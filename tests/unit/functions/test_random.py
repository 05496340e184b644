# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: the generator against published vectors, distributions against SciPy, and what errors say."""

import copy
import pickle
import re
import threading

import numpy as np
import pytest

import tracejit as tj
from tracejit import ArgumentError, DimsError, DTypeError
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph
from tracejit.ops import OPS
from tracejit.ops.random import philox
from tracejit.passes import cost
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

# The lines "philox4x32 10" of tests/kat_vectors of Random123: counter, key, and what they give.
KNOWN = (
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
)


def integer(words: str) -> list[int]:
    """Return pairs of words, the low one first, as signed numbers of 64 bits."""
    pairs = np.array([int(word, 16) for word in words.split()], "<u4").view("<i8")
    return pairs.tolist()


@pytest.fixture(autouse=True)
def _seeded():
    with tj.rng(0):
        yield


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_published_vectors(counter, key, expected):
    (position, stream), (seed,) = integer(counter), integer(key)
    assert " ".join(f"{word:08x}" for word in philox(seed, position, stream, 1)[0]) == expected


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
@pytest.mark.parametrize("name", ["uniform32", "uniform64"])
def test_published_vectors_by_the_ops(name, counter, key, expected):
    (position, stream), (seed,) = integer(counter), integer(key)
    words = np.array([int(word, 16) for word in expected.split()], "<u4")
    bits = words >> 8 if name == "uniform32" else words.view("<u8") >> 11
    state = np.array([seed, position])
    params = {"shape": (bits.size,), "offset": 0, "stream": stream}
    for found in (OPS[name].numpy(state, **params), by_python_backend(name, state, **params)):
        assert (found * 2.0 ** (24 if name == "uniform32" else 53)).astype(
            np.uint64
        ).tolist() == bits.tolist()


def graph_of(name, state, params):
    graph = Graph()
    b = Builder(graph)
    graph.outputs = [b.apply(OPS[name], [b.input(Aval((2,), None, state.dtype))], params)]
    return graph


def by_python_backend(name, state, **params):
    return PythonExecutable(build(graph_of(name, state, params)))([state])[0]


@pytest.mark.parametrize("name", ["uniform32", "uniform64"])
def test_a_number_depends_on_the_seed_and_its_place_only(name):
    op = OPS[name]
    per_block = 4 if name == "uniform32" else 2
    whole = op.numpy(np.array([7, 2**32 - 3]), shape=(100_000,), offset=0, stream=0)
    for size in (0, 1, 2, 3, 5, 1000):
        part = op.numpy(np.array([7, 2**32 - 3]), shape=(size,), offset=0, stream=0)
        np.testing.assert_array_equal(part, whole[:size])
    # Across a carry into the second word of the counter, and a border of the chunks that are made at a time.
    for blocks in (1, 5, 4096, 4097):
        for state, offset in (([7, 2**32 - 3 + blocks], 0), ([7, 2**32 - 3], blocks)):
            part = op.numpy(np.array(state), shape=(10,), offset=offset, stream=0)
            np.testing.assert_array_equal(part, whole[blocks * per_block :][:10])
    assert not np.intersect1d(
        whole[:1000], op.numpy(np.array([8, 2**32 - 3]), shape=(1000,), offset=0, stream=0)
    ).size
    assert not np.intersect1d(
        whole[:1000], op.numpy(np.array([7, 2**32 - 3]), shape=(1000,), offset=0, stream=1)
    ).size


@pytest.mark.parametrize("size", [1, 64, 200, 1001])
@pytest.mark.parametrize("name", ["uniform32", "uniform64"])
def test_parts_in_any_order(name, size, monkeypatch):
    monkeypatch.setattr(cost, "LEAST_SPLIT_NS", 0.0)
    monkeypatch.setattr(cost, "PART_NS", 1e-9)
    monkeypatch.setattr(cost, "MOST_PARTS", 3)
    state, params = np.array([5, 2**32 - 7]), {"shape": (size,), "offset": 3, "stream": 1}
    program = build(graph_of(name, state, params))
    assert program.rows[0].parts == len(program.rows) == max(1, min(3, size // 64))
    (found,) = PythonExecutable(program._replace(rows=program.rows[::-1]))([state])
    np.testing.assert_array_equal(found, OPS[name].numpy(state, **params))


def test_the_state_moves_on_by_whole_blocks():
    found = []
    for draw in (
        lambda: tj.rand(5),
        lambda: tj.rand(5, dtype=np.float32),
        tj.rand,
        lambda: tj.rand(0, 3),
        lambda: tj.randn(4),
        lambda: tj.randn(4, dtype="float32"),
        lambda: tj.randi(3, 7),
        lambda: tj.randi(3, 7, dtype=np.int8),
        lambda: tj.randperm(6, 2),
        lambda: tj.dropout(tj.zeros(8)),
        lambda: tj.dropout(tj.zeros(8), 0),
    ):
        before = tj.rng().position
        draw()
        found.append(tj.rng().position - before)
    assert found == [3, 2, 1, 0, 2, 1, 4, 4, 3, 2, 2]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32", "float64", "bool"])
def test_integers_of_any_dtype(dtype):
    x = tj.randi(2, 3, 5, dtype=dtype)
    assert x.dtype == dtype and x.shape == (3, 5)
    np.testing.assert_array_equal(x, tj.extractdata(in_new_state(lambda: tj.randi(2, 3, 5))).astype(dtype))


def in_new_state(draw, seed=0):
    with tj.rng(seed):
        return draw()


def test_dropout():
    x = tj.dlarray(np.linspace(1, 2, 100_000).reshape(10, -1).astype(np.float32), "CB")
    y = tj.dropout(x, 0.2)
    assert y.format == "CB" and y.dtype == np.float32
    kept = tj.extractdata(y) != 0
    assert abs(kept.mean() - 0.8) < 4 * np.sqrt(0.16 / x.size)
    np.testing.assert_array_equal(y, np.where(kept, tj.extractdata(x) * np.float32(1.25), 0))
    np.testing.assert_array_equal(tj.dropout(x, 0), x)
    assert tj.dropout([1, 2], 0).dtype == np.float64
    # NaN and infinities that are dropped are gone.
    assert set(tj.dropout(np.full(100, np.inf)).tolist()) == {0.0, np.inf}


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_a_probability_that_keeps_changing_is_an_input(kind):
    accelerated = tj.dlaccelerate(lambda x, p: tj.dropout(x, p))
    x = np.ones((3, 5), np.float32)
    for i in range(6):
        p = kind(0.1 * i)
        found = in_new_state(lambda p=p: accelerated(x, p))
        np.testing.assert_array_equal(found, in_new_state(lambda p=p: tj.dropout(x, p)))
        assert found.dtype == np.float32
    assert accelerated.stats.hits == 2


def test_the_gradient_of_dropout_goes_through_its_mask():
    def both(x):
        y = tj.dropout(x, 0.25)
        return y, tj.dlgradient((y * 3).sum(), x)

    y, gradient = tj.dlfeval(both, tj.ones(1000))
    np.testing.assert_array_equal(gradient, 3 * y)
    assert 0 < (y == 0).sum().item() < 1000


def test_derivatives_of_what_is_random():
    def noisy(x):
        y = tj.dropout(tj.tanh(x) * tj.rand(x.shape, like=x), 0.4) + tj.randn(x.shape, like=x)
        return (y**2).sum()

    tj.testing.check_gradients(noisy, np.linspace(-1, 1, 12).reshape(3, 4), order=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_probability_in_an_array_is_as_good_as_a_number(dtype):
    x = tj.dlarray(np.linspace(1, 2, 1000).astype(dtype))
    for p in (0.0, 0.1, 0.5, 0.9):
        expected = in_new_state(lambda p=p: tj.dropout(x, p))
        found = in_new_state(lambda p=p: tj.dropout(x, tj.dlarray(p)))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert not tj.dropout(x, tj.dlarray(1.0)).any()


def test_seeds():
    first = in_new_state(lambda: tj.rand(5))
    np.testing.assert_array_equal(first, in_new_state(lambda: tj.rand(5), "default"))
    assert not (first == in_new_state(lambda: tj.rand(5), 1)).any()
    assert not (
        in_new_state(lambda: tj.rand(5), "shuffle") == in_new_state(lambda: tj.rand(5), "shuffle")
    ).any()
    largest = in_new_state(tj.rng, 2**64 - 1)
    assert largest == (2**64 - 1, 0) and in_new_state(tj.rng, np.uint8(3)) == (3, 0)


def test_a_state_is_returned_and_restored():
    tj.rand(3)
    state = tj.rng()
    assert isinstance(state, tj.RngState) and state == (0, 2)
    first = tj.randn(4)
    assert tj.rng(5) == (0, 4)
    assert tj.rng(state) == (5, 0)
    np.testing.assert_array_equal(tj.randn(4), first)
    with tj.rng(9) as before:
        assert before == (0, 4)
        inside = tj.rand(2)
        with tj.rng(8):
            tj.rand(100)
        np.testing.assert_array_equal(tj.rng(), (9, 1))
    assert tj.rng() == (0, 4)
    np.testing.assert_array_equal(inside, in_new_state(lambda: tj.rand(2), 9))
    with pytest.raises(ZeroDivisionError), tj.rng(1):
        tj.rand(1 // 0)
    assert tj.rng() == (0, 4)


def test_a_generator_is_a_source_of_its_own():
    g = tj.Generator(0)
    here = [tj.rand(3), tj.rand(3, generator=g), tj.rand(3), tj.rand(3, generator=g)]
    np.testing.assert_array_equal(here[0], here[1])
    np.testing.assert_array_equal(here[2], here[3])
    assert g.state == (0, 4)
    for other in (copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert other.state == g.state and other is not g
    g.state = tj.Generator(7).state
    for draw in (
        lambda **options: tj.randn(3, **options),
        lambda **options: tj.randi(9, 3, **options),
        lambda **options: tj.randperm(5, **options),
        lambda **options: tj.dropout(tj.ones(50), **options),
    ):
        np.testing.assert_array_equal(draw(generator=tj.Generator(7)), in_new_state(draw, 7))
    assert repr(tj.Generator(3)) == "<Generator with seed 3>"
    assert tj.rng() == (0, 4)


def test_sizes_dtypes_and_formats():
    x = tj.zeros((2, 3), np.float32, "BC")
    for draw in (tj.rand, tj.randn, lambda *size, **options: tj.randi(3, *size, **options)):
        assert (
            draw().shape == () and draw(4).shape == (4,) and draw(2, 3).shape == draw((2, 3)).shape == (2, 3)
        )
        assert draw([2, np.int64(3)]).shape == (2, 3) and draw(()).shape == ()
        like = draw(x.shape, like=x)
        assert like.format == "BC" and like.dtype == np.float32
        assert draw(5, like=x).format is None and draw(5, like=x).dtype == np.float32
        assert draw(2, 3, format="SB").format == "SB"
        assert draw(2, 3, like=x, format="CB", dtype=np.float64).format == "CB"
    assert tj.rand(2).dtype == tj.randn(2).dtype == np.float64 and tj.randi(2).dtype == np.int64


def test_threads_draw_different_numbers():
    found = [[] for _ in range(4)]

    def work(mine):
        for _ in range(200):
            mine.append(tj.rand(2).tolist())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = np.array(found).ravel()
    assert sorted(numbers) == sorted(in_new_state(lambda: tj.rand(1600)).tolist())
    assert tj.rng() == (0, 800)


ERRORS = [
    (lambda: tj.rng(-1), ArgumentError, 'rng: a seed is an integer from 0 to 2**64 - 1, "default" (0) or "shuffle"'),
    (lambda: tj.rng(1.5), ArgumentError, "(new each time), not 1.5."),
    (lambda: tj.rng(True), ArgumentError, "not True."),
    (lambda: tj.rng(2**64), ArgumentError, "not 18446744073709551616."),
    (lambda: tj.Generator("x"), ArgumentError, "Generator: a seed is"),
    (lambda: setattr(tj.Generator(), "state", 3), ArgumentError, "state: expected an RngState, as rng() and"),
    (lambda: tj.rng(tj.RngState(-1, 0)), ArgumentError, "state: a seed is an integer from 0 to 2**64 - 1,"),
    (lambda: tj.rng(tj.RngState(0, -1)), ArgumentError, "state: a position is an integer from 0 to 2**63 - 1, not -1."),
    (lambda: tj.rng(tj.RngState(0, 1.0)), ArgumentError, "2**63 - 1, not 1.0."),
    (lambda: tj.rand(2, generator=3), ArgumentError, "rand: generator must be a tj.Generator, not int."),
    (lambda: tj.randperm(2, generator=np.random.default_rng()), ArgumentError, "randperm: generator must be a"),
    (lambda: tj.rand(2.5), DimsError, "rand: size must be an integer or a tuple of integers, not 2.5."),
    (lambda: tj.randn(2, -1), DimsError, "randn: sizes must not be negative, found (2, -1) as size."),
    (lambda: tj.rand(2, format="BC"), DimsError, "rand: "),
    (lambda: tj.rand(2, dtype=int), DTypeError, "rand: the numbers are of floating point, so the dtype must"),
    (lambda: tj.randn(2, like=tj.zeros(2, bool)), DTypeError, "or float32, not bool; randi draws integers."),
    (lambda: tj.randi(0, 2), ArgumentError, "randi: the limits 0 (included) and 0 (excluded) must have 1 to 2**53"),
    (lambda: tj.randi((0, 2**53 + 1)), ArgumentError, "randi: the limits 0 (included) and 9007199254740993 (excluded)"),
    (lambda: tj.randi((3, 1)), ArgumentError, "randi: the limits 3 (included) and 1 (excluded)"),
    (lambda: tj.randi(2.0), ArgumentError, "randi: limits must be an integer `high` or a tuple (low, high) of"),
    (lambda: tj.randi((1, 2, 3)), ArgumentError, "not (1, 2, 3)."),
    (lambda: tj.randi(129, dtype=np.int8), DTypeError, "randi: int8 does not hold all integers from 0 to 128;"),
    (lambda: tj.randi((-1, 2), dtype=np.uint8), DTypeError, "randi: uint8 does not hold all integers from -1 to 1;"),
    (lambda: tj.randi(2**24 + 2, dtype="float32"), DTypeError, "randi: float32 does not hold all integers from 0 to"),
    (lambda: tj.randi((2**63, 2**63 + 5)), DTypeError, "randi: int64 does not hold all integers from 922337203685477"),
    (lambda: tj.randi((2**63, 2**63 + 5), dtype="uint64"), DTypeError, "randi: uint64 does not hold"),
    (lambda: tj.randi(3, dtype=bool), DTypeError, "randi: bool does not hold all integers from 0 to 2;"),
    (lambda: tj.randperm(3, 4), DimsError, "randperm: k=4 different integers cannot be chosen from n=3."),
    (lambda: tj.randperm(-1), DimsError, "randperm: sizes must not be negative"),
    (lambda: tj.randperm("a"), DimsError, "randperm: n must be an integer"),
    (lambda: tj.randperm(3, 0.5), DimsError, "randperm: k must be an integer"),
    (lambda: tj.dropout(tj.ones(2), 1), ArgumentError, "dropout: p must be a probability, 0 <= p < 1, not 1."),
    (lambda: tj.dropout(tj.ones(2), -0.1), ArgumentError, "dropout: p must be a probability, 0 <= p < 1, not -0.1."),
    (lambda: tj.dropout(tj.ones(2), float("nan")), ArgumentError, "not nan."),
    (lambda: tj.dropout(tj.ones(2), "0.5"), ArgumentError, "dropout: p must be a probability"),
]  # fmt: skip


@pytest.mark.whole("messages")
@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    state = tj.rng()
    with pytest.raises(error, match=re.escape(text)):
        call()
    assert tj.rng() == state  # nothing was drawn


@pytest.mark.parametrize("state", [np.zeros(3, np.int64), np.zeros(2)])
def test_the_op_refuses_anything_but_a_state(state):
    with pytest.raises(
        DimsError, match=re.escape("uniform32: the state of a generator is (key, position) in int64")
    ):
        tj.record.recorder.apply("uniform32", state, shape=(2,), offset=0, stream=0)


@pytest.mark.parametrize("u", [np.zeros((2, 2)), np.zeros(2, np.float32)])
def test_the_op_refuses_anything_but_a_vector(u):
    with pytest.raises(DimsError, match="permutation: expected a vector of float64 numbers, not 2"):
        tj.record.recorder.apply("permutation", u)


def noisy(x, weights):
    x += tj.randn(3, like=x)
    weights[1:] *= tj.dropout(weights[1:], 0.5)
    buffer = np.zeros(3)
    buffer[0] = tj.rand(1, like=x)[0]
    return buffer + x


def test_draws_are_written_into_arguments_as_without_acceleration():
    accelerated, results = tj.dlaccelerate(noisy), []
    for run in (accelerated, lambda *given: tj.dlfeval(noisy, *given)):
        tj.rng(3)
        calls = [(np.full(3, float(n)), np.ones(3)) for n in range(5)]
        results.append([np.stack([tj.extractdata(run(*call)), *call]) for call in calls])
    np.testing.assert_array_equal(*results)
    assert accelerated.stats.hits == 3 and len({result.tobytes() for result in results[0]}) == 5


# Lines of a step with state that varies, beside draws of our own generators.
VARYING = {
    "a counter": "o.n += 1; x = x * o.n",
    "a decaying rate": "o.rate *= 0.9; x = x * o.rate",
    "a tuple": "m, n = o.state; o.state = (m * 0.9 + x, n + 1); x = o.state[0] / o.state[1]",
    "an ndarray": "o.w *= 0.5; o.w += x; x = o.w * 1.0",
    "a ring buffer": "o.ring[o.n % 3] = x.sum(); o.n += 1; x = x + o.ring.sum()",
    "a window": "o.window.append(x.sum().item()); o.window.pop(0); x = x + np.mean(o.window)",
    "a history": "o.history.append(x.sum().item())",
    "patience": "o.patience = 0 if x[0] > 0.5 else o.patience + 1; x = x * (1 + o.patience)",
}
DRAWS = {
    "rand": "x * tj.rand(3)",
    "dropout": "tj.dropout(x, 0.25)",
    "a generator": "x + tj.randn(3, generator=o.generator)",
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("line", VARYING)
def test_draws_beside_state_that_varies(line: str, draw: str) -> None:
    """The places that vary were lost where a function drew numbers, too: it ran uncompiled for ever."""

    class Model:
        def __init__(self) -> None:
            self.n, self.rate, self.state, self.patience = 0, 1.0, (np.zeros(3), 0), 0
            self.w, self.ring = np.zeros(3), np.zeros(3)
            self.window, self.history = [0.0, 0.0, 0.0], []
            self.generator = tj.Generator(3)

    names = {"tj": tj, "np": np}
    exec(f"def step(o, x):\n    {VARYING[line]}\n    return {DRAWS[draw]}", names)
    found = []
    for run in (names["step"], tj.dlaccelerate(names["step"])):
        o = Model()
        with tj.rng(5):
            results = [np.asarray(run(o, np.array([0.5, 1.0, n % 3]))) for n in range(14)]
        found.append((results, {name: value for name, value in vars(o).items() if name != "generator"}))
    (plain, before), (mine, after) = found
    np.testing.assert_allclose(mine, plain, rtol=1e-12)
    for name, value in before.items():
        for have, want in zip(
            np.ravel(after[name] if name != "state" else after[name][0]),
            np.ravel(value if name != "state" else value[0]),
            strict=True,
        ):
            assert have == pytest.approx(want, rel=1e-12)
    assert run.stats.hits >= 3 and run.stats.uncompiled == 0
