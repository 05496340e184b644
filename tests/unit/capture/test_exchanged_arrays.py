# SPDX-License-Identifier: BSD-3-Clause
"""State in ndarrays, in attributes and containers: programs of users run compiled, and do what NumPy does."""

import collections
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from state_programs import PROGRAMS, arrays, program

import tracejit as tj


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_users(name: str) -> None:
    have, want = program(name, tj.dlaccelerate), program(name)
    for call in range(20):
        x = np.random.default_rng(call).random(4)
        found, expected = have.step(x), want.step(x.copy())
        pairs = zip([*arrays(found), *arrays(have)], [*arrays(expected), *arrays(want)], strict=True)
        for mine, theirs in pairs:
            tolerance = 1e-6 if theirs.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=1e-13)
    assert have.step.stats.hits >= 10
    assert not have.step.stats.uncompiled


class Model:
    """State in two ndarrays, in a list."""

    def __init__(self) -> None:
        self.parts = [np.zeros(3), np.ones(3)]


Step = Callable[[Model, Any], Any]


def added(model: Model, x: Any, between: Callable[[Any], None] = lambda part: None) -> Any:
    for part in model.parts:
        part += x
        between(part)
    return model.parts[0].sum() + model.parts[1][0]


def followed(step: Step, calls: int = 8, models: int = 1) -> Any:
    """Call a function of the present Model and an array, and the plain one; return the accelerated function."""
    have, want = [Model() for _ in range(models)], [Model() for _ in range(models)]
    present = SimpleNamespace(model=have[0])
    accelerated = tj.dlaccelerate(lambda x: step(present.model, x))
    before = [[*model.parts] for model in have]
    for n in range(calls):
        x = np.arange(3.0) + n
        present.model = have[n // 3 % models]
        found = accelerated(x)
        expected = step(want[n // 3 % models], x.copy())
        assert float(found) == float(expected)
        for mine, theirs, parts in zip(have, want, before, strict=True):
            assert [part.tolist() for part in mine.parts] == [part.tolist() for part in theirs.parts]
            assert all(part is was for part, was in zip(mine.parts, parts, strict=True))
    return accelerated


def test_the_arrays_stay_what_they_are() -> None:
    assert followed(added).stats.hits == 4


def test_two_objects_by_turns() -> None:
    assert followed(added, 16, models=2).stats.hits >= 8


def test_arrays_that_change_outside_between_calls() -> None:
    model = Model()
    accelerated = tj.dlaccelerate(lambda x: x * np.sqrt(model.parts[1]).sum())
    for n in range(12):
        model.parts[1][:] = n
        assert accelerated(np.ones(3)).tolist() == [3 * np.sqrt(n)] * 3
    assert accelerated.stats.hits == 6
    model.parts[1] = np.full(4, 9.0)
    for n in range(12):
        model.parts[1][0] = n
        assert accelerated(np.ones(3)).tolist() == [9 + np.sqrt(n)] * 3


def test_what_belongs_to_an_array_by_its_id() -> None:
    def step(model: Model, x: Any) -> Any:
        for part in model.parts:
            momenta.setdefault(id(part), np.zeros(3))
            momenta[id(part)] += x
            part += momenta[id(part)]
        return model.parts[0].sum()

    momenta: dict[int, Any] = {}
    with pytest.warns(tj.NotAcceleratedWarning, match="which it also reads"):
        followed(step)


def test_functions_that_take_ndarrays_only() -> None:
    def counted(part: Any) -> None:
        if type(part) is not np.ndarray:
            raise TypeError("an ndarray is expected")
        memoryview(part)[0] += 1.0  # type: ignore[arg-type]

    with pytest.warns(tj.NotAcceleratedWarning, match="by traced values and by NumPy"):
        accelerated = followed(lambda model, x: added(model, x, counted))
    assert not accelerated.stats.hits


@pytest.mark.parametrize("kind", [TypeError, ValueError, KeyError])
def test_an_error_of_the_function_itself(kind: type[Exception]) -> None:
    calls: collections.Counter[str] = collections.Counter()

    def step(x: Any) -> Any:
        calls["step"] += 1
        result = added(model, x)
        if calls["step"] == 1:
            return result
        raise kind("wrong")

    model, accelerated = Model(), tj.dlaccelerate(step)
    accelerated(np.ones(3))
    parts = [*model.parts]
    for _ in range(4):
        with pytest.raises(kind, match="wrong") as caught:
            accelerated(np.ones(3))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert [part.tolist() for part in model.parts] == [[1.0] * 3, [2.0] * 3]
        assert all(part is was for part, was in zip(model.parts, parts, strict=True))


def test_random_numbers_are_drawn_once() -> None:
    def step(x: Any) -> Any:
        noise = rng.normal(size=3)
        for part in model.parts:
            part += x
            if type(part) is not np.ndarray:
                raise TypeError("an ndarray is expected")
        return model.parts[0].sum() + noise.sum()

    rng = np.random.default_rng(0)
    model, accelerated = Model(), tj.dlaccelerate(step)
    accelerated(np.ones(3))
    with pytest.raises(TypeError, match="an ndarray is expected"):
        accelerated(np.ones(3))


def test_a_tuple_in_two_places() -> None:
    pair = (np.zeros(2), np.ones(2))
    holder = SimpleNamespace(pair=pair, same=pair, nested=[pair, (pair, 3)])

    def step(x: Any) -> Any:
        first, second = holder.pair
        first += x
        second *= holder.same[0]
        return holder.nested[0][1].sum() + holder.nested[1][0][0].sum()

    accelerated, first, second = tj.dlaccelerate(step), np.zeros(2), np.ones(2)
    for n in range(9):
        x = np.array([1.0, 0.5]) * (n % 3 - 1)
        first += x
        second *= first
        assert float(accelerated(x)) == second.sum() + first.sum()
        assert holder.pair is pair is holder.same is holder.nested[0] is holder.nested[1][0]
        assert [part.tolist() for part in pair] == [first.tolist(), second.tolist()]
    assert accelerated.stats.hits >= 4
