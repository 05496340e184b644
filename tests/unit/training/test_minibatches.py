# SPDX-License-Identifier: BSD-3-Clause
"""Queues of mini-batches: every observation once in each pass, in an order that can be restored."""

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from effort import sweep
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import tracejit as tj

pytestmark = pytest.mark.usefixtures("python_backend")
X = np.arange(60.0).reshape(10, 3, 2)
T = np.arange(10)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with tj.rng(0):
        yield


def numbers(queue: tj.minibatchqueue) -> list[list[int]]:
    """Return the observations of the mini-batches that are left, whose last result is their numbers."""
    return [batch[-1].tolist() if isinstance(batch, tuple) else batch.tolist() for batch in queue]


@given(
    n=st.integers(0, 40),
    size=st.integers(1, 45),
    discards=st.booleans(),
    shuffles=st.integers(0, 2),
    parts=st.integers(1, 4),
)
def test_each_observation_comes_once(n: int, size: int, discards: bool, shuffles: int, parts: int) -> None:
    x = np.arange(n)
    whole = tj.minibatchqueue(x, mini_batch_size=size, partial_mini_batch="discard" if discards else "return")
    for queue in [whole, *[whole.partition(parts, i) for i in range(parts)]]:
        for _ in range(shuffles):
            queue.shuffle()
        found = numbers(queue)
        assert len(found) == len(queue) == queue.num_mini_batches
        assert all(len(batch) == size for batch in found[:-1])
        taken = [number for batch in found for number in batch]
        dropped = queue.num_observations - len(taken)
        assert len(set(taken)) == len(taken) and dropped == (queue.num_observations % size if discards else 0)
        if not shuffles:
            assert taken == sorted(taken)
    together = sorted(n for i in range(parts) for b in numbers(whole.partition(parts, i)) for n in b)
    if not discards:
        assert together == x.tolist()


@given(data=st.data(), n=st.integers(1, 30), size=st.integers(1, 8))
def test_a_restored_queue_goes_on_as_before(data: Any, n: int, size: int) -> None:
    queue = tj.minibatchqueue(np.arange(n), mini_batch_size=size)
    for _ in range(data.draw(st.integers(0, sweep(2, 4)))):
        queue.shuffle(tj.Generator(data.draw(st.integers(0, 9))) if data.draw(st.booleans()) else None)
    for _ in range(data.draw(st.integers(0, len(queue)))):
        queue.next()
    state = json.loads(json.dumps(queue.state))
    copied, pickled = copy.copy(queue), pickle.loads(pickle.dumps(queue))
    before = tj.rng()
    other = tj.minibatchqueue(np.arange(n), mini_batch_size=size)
    other.shuffle()
    after = tj.rng()
    other.restore(state)
    assert tj.rng() == after != before
    if queue.hasdata():
        assert numbers(queue) == numbers(other) == numbers(copied) == numbers(pickled)
    queue.reset()
    other.reset()
    assert numbers(queue) == numbers(other)


def test_one_seed_gives_one_order() -> None:
    def orders(seed: int) -> list[list[list[int]]]:
        with tj.rng(seed):
            queue = tj.minibatchqueue(X, T, mini_batch_size=4)
            found = []
            for _ in range(3):
                queue.shuffle()
                found.append(numbers(queue))
            return found

    first = orders(1)
    assert first == orders(1) != orders(2)
    assert first[0] != first[1]
    queue = tj.minibatchqueue(T, mini_batch_size=4)
    before = tj.rng()
    queue.shuffle(tj.Generator(5))
    assert tj.rng() == before
    again = tj.minibatchqueue(T, mini_batch_size=4)
    again.shuffle(tj.Generator(5))
    assert numbers(queue) == numbers(again)


def test_results_are_arrays_of_their_own() -> None:
    for data in (X.astype(np.float32), tj.dlarray(X.astype(np.float32), "BSC")):
        queue = tj.minibatchqueue(data, mini_batch_size=4)
        batch = queue.next()
        batch += 1
        queue.reset()
        np.testing.assert_array_equal(queue.next(), X[:4])


def test_labels_dtypes_and_kinds() -> None:
    queue = tj.minibatchqueue(X, T, mini_batch_size=4, mini_batch_format=("BSC", "B"))
    x, t = queue.next()
    assert (x.format, x.dtype, t.format, t.dtype) == ("BSC", np.float32, "B", np.int64)
    np.testing.assert_array_equal(x, X[:4])
    for cast, dtypes in (
        (None, (np.float64, np.int64)),
        ("float64", (np.float64, np.int64)),
        ((None, "float32"), (np.float64, np.float32)),
        (("float32", np.int8), (np.float32, np.int8)),
    ):
        results = tj.minibatchqueue(X, T, output_cast=cast).next()
        assert tuple(result.dtype for result in results) == dtypes
    plain = tj.minibatchqueue(X, T, output_as_dlarray=False, mini_batch_format="B").next()
    assert all(type(result) is np.ndarray for result in plain)
    both = tj.minibatchqueue(T, T + 0.5, mini_batch_format="B").next()
    assert [result.format for result in both] == ["B", "B"]


def test_observations_of_a_labelled_array_lie_along_b() -> None:
    queue = tj.minibatchqueue(tj.dlarray(X, "SCB"), mini_batch_size=1)
    assert len(queue) == 2
    for number, x in enumerate(queue):
        assert x.format == "SCB"
        np.testing.assert_array_equal(x, X[..., number : number + 1])


class DataSet:
    """A data set whose items are made when they are asked for."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        assert type(number) is int
        self.asked.append(number)
        return np.full((2, 2), float(number)), number


def test_data_sets() -> None:
    data = DataSet(5)
    queue = tj.minibatchqueue(data, mini_batch_size=2, mini_batch_format=("BSS", "B"))
    x, t = queue.next()
    assert data.asked == [0, 1] and x.shape == (2, 2, 2) and t.tolist() == [0, 1]
    queue.shuffle()
    assert sorted(n for batch in numbers(queue) for n in batch) == [*range(5)]
    assert [x.shape for x in tj.minibatchqueue([np.ones(3)] * 5, mini_batch_size=3)] == [(3, 3), (2, 3)]


def test_items_have_the_same_parts() -> None:
    with pytest.raises(
        tj.DimsError, match=r"^minibatchqueue: observations 0 and 2 have 2 parts and 3; the tuples"
    ):
        tj.minibatchqueue([(1, 2), (3, 4), (5, 6, 7)]).next()


def test_a_sparse_matrix_has_no_length() -> None:
    with pytest.raises(
        tj.ArgumentError, match=r"^minibatchqueue: data must be an array, a list of observations, or"
    ):
        tj.minibatchqueue(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize("position", [1.5, "1", None, -1, 4])
def test_a_position_is_an_integer(position: Any) -> None:
    queue = tj.minibatchqueue(T, mini_batch_size=4)
    with pytest.raises(
        tj.ArgumentError, match=r"^minibatchqueue.restore: state must be that of a queue of 3 mini-"
    ):
        queue.restore({"position": position, "shuffle": None})
    queue.restore({"position": np.int64(2), "shuffle": None})
    assert queue.next().tolist() == [8, 9]


def test_sequences_of_many_lengths_are_padded() -> None:
    sequences = [np.arange(1.0, n + 1) for n in (3, 1, 4, 2)]

    def padded(found: list[np.ndarray], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        longest = max(map(len, found))
        x = np.stack([np.pad(sequence, (0, longest - len(sequence))) for sequence in found])
        return x, x != 0, classes

    queue = tj.minibatchqueue(
        sequences,
        np.array([0, 1, 0, 1]),
        mini_batch_size=2,
        mini_batch_fcn=padded,
        mini_batch_format=("BT", "BT", "B"),
    )
    x, mask, classes = queue.next()
    assert x.tolist() == [[1, 2, 3], [1, 0, 0]] and mask.tolist() == [[True] * 3, [True, False, False]]
    assert (x.format, mask.dtype, classes.tolist()) == ("BT", bool, [0, 1])
    assert queue.next()[0].shape == (2, 4)


def test_a_loop_goes_on_and_starts_over() -> None:
    queue = tj.minibatchqueue(T, mini_batch_size=4)
    assert queue.next().tolist() == [0, 1, 2, 3]
    assert numbers(queue) == [[4, 5, 6, 7], [8, 9]]
    assert not queue.hasdata()
    assert numbers(queue) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_training_loop_compiles_each_size_once() -> None:
    @tj.dlaccelerate
    def step(w: Any, x: Any, t: Any) -> Any:
        loss = ((x @ w - t) ** 2).mean()
        return loss, w - 0.1 * tj.dlgradient(loss, w)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3))
    queue = tj.minibatchqueue(x, x @ [1.0, -2.0, 3.0], mini_batch_size=16, output_cast=None)
    w = tj.dlarray(np.zeros(3))
    for _ in range(40):
        queue.shuffle()
        for batch in queue:
            _, w = step(w, *batch)
    np.testing.assert_allclose(w, [1.0, -2.0, 3.0], atol=1e-6)
    assert step.stats.programs == 2  # of 16 and of 2 observations


def test_repr() -> None:
    queue = tj.minibatchqueue(X, T, mini_batch_size=4)
    queue.next()
    assert repr(queue) == (
        "minibatchqueue of 10 observations (3x2 float64, int64) in 3 mini-batches of 4, 2 left"
    )
    assert repr(tj.minibatchqueue(tj.dlarray(X, "BSC"))) == (
        "minibatchqueue of 10 observations (3(S) x 2(C) float64) in 1 mini-batch of 128, 1 left"
    )
    assert repr(tj.minibatchqueue([1.0])) == (
        "minibatchqueue of 1 observation (list of items) in 1 mini-batch of 128, 1 left"
    )
