# SPDX-License-Identifier: BSD-3-Clause
"""State in ndarrays, in attributes and containers: programs of users run compiled, and do what NumPy does."""

import collections
from collections.abc import Callable, Hashable
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
    assert followed(added, 12).stats.hits == 7


def test_two_objects_by_turns() -> None:
    assert followed(added, 16, models=2).stats.hits >= 8


def test_arrays_that_change_outside_between_calls() -> None:
    model = Model()
    accelerated = tj.dlaccelerate(lambda x: x * np.sqrt(model.parts[1]).sum())
    for n in range(12):
        model.parts[1][:] = n
        assert accelerated(np.ones(3)).tolist() == [3 * np.sqrt(n)] * 3
    assert accelerated.stats.hits == 5
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
    """A call is not recorded again where they were drawn."""

    def step(x: Any) -> Any:
        order = [0.0, 1.0, 2.0]
        rng.shuffle(order)
        for part in model.parts:
            part += x
            if part[0] > 1.5 and f"{part}"[0] != "[":  # as the text of an ndarray begins
                raise TypeError("an ndarray is expected")
        return model.parts[0].sum() + order[0]

    rng = np.random.default_rng(0)
    model, accelerated = Model(), tj.dlaccelerate(step)
    with pytest.raises(TypeError, match="an ndarray is expected"):
        for _ in range(4):
            accelerated(np.ones(3))


KEEPING = {
    "a list": "s.log.append(len(s.log))\nfor p in s.ps:\n    p *= 0.9\nreturn sum([take(p) for p in s.ps])",
    "swallowed": "try:\n    t = [take(p) for p in s.ps]\nexcept TypeError:\n    t = [0.0]\nfor p in s.ps:\n    p -= x\n"
    "return sum(t)",
    "types": "t = {np.ndarray: 1.0}.get(type(s.ps[0]), 2.0) + sum([type(p) is np.ndarray for p in s.ps])\n"
    "for p in s.ps:\n    p *= x\nreturn t",
    "attributes": "t = sum([hasattr(p, 'ctypes') for p in s.ps])\nfor p in s.ps:\n    p *= x\nreturn t",
    "classes": "t = sum([isinstance(p, Hashable) for p in s.ps])\nfor p in s.ps:\n    p *= x\nreturn t",
    "kept": "s.kept = deque(s.ps)\nfor p in s.ps:\n    p *= x\nreturn s.kept[0].sum()",
    "a name of its own": "s.kept = dict(enumerate(s.ps))\nfor p in s.ps:\n    p *= x\nreturn s.kept[0].sum()",
    "exchanged": "s.u, s.w = s.w, s.u\ns.u += x\nreturn s.w.sum() - s.u[0]",
    "a view, exchanged": "s.view, s.w = s.w, s.view\ns.big[1:4] += x\nreturn s.w.sum()",
    "a list that shrinks": "s.u += s.ps[-1]\nif len(s.ps) > 1:\n    s.ps.pop()\ntaken(s.u, x)\nreturn s.u.sum()",
    "put": "s.w.put([0, 1], x[2])\nreturn s.w.sum()",
    "flat": "s.w.flat[1] = x[1]\ns.u.flat[:] = x\nreturn s.w.sum() + s.u.sum()",
    "parts of a vector": "s.matrix -= np.outer(x[:2], x)\ns.big[6:] *= 0.5\nreturn s.big.sum()",
}  # fmt: skip


@pytest.mark.parametrize("text", KEEPING.values(), ids=KEEPING)
@pytest.mark.filterwarnings("ignore::tracejit.NotAcceleratedWarning", "ignore::tracejit.LostChangeWarning")
def test_what_an_array_cannot_stand_for_is_left(text: str) -> None:
    """Where code could tell it from the ndarray, or keeps it, all is as in NumPy: values, types, and who is who."""

    def take(part: Any) -> float:
        return float(np.frombuffer(memoryview(part)).sum())

    def taken(part: Any, x: Any) -> None:
        part *= x

    def made(accelerated: Callable[[Any], Any]) -> tuple[Any, Any]:
        s = SimpleNamespace(
            ps=[np.ones(3), np.arange(3.0)], u=np.zeros(3), w=np.ones(3), log=[], big=np.ones(9)
        )
        s.view, s.matrix = s.big[1:4], s.big[:6].reshape(2, 3)
        names = {
            "np": np,
            "s": s,
            "take": take,
            "taken": taken,
            "deque": collections.deque,
            "Hashable": Hashable,
        }
        exec("def step(x):\n    " + text.replace("\n", "\n    "), names)
        return accelerated(names["step"]), s

    (function, have), (plain, want) = made(tj.dlaccelerate), made(lambda fun: fun)
    for n in range(8):
        x = np.array([0.5, 1.0, 0.25]) + n % 3
        assert float(function(x)) == pytest.approx(float(plain(x.copy())), rel=1e-12)
        mine, theirs = members(have), members(want)
        assert [type(part) for part in mine] == [type(part) for part in theirs]
        assert [[a is b for b in mine] for a in mine] == [[a is b for b in theirs] for a in theirs]
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def members(state: Any) -> list[Any]:
    """Return what lies in the attributes of an object, with the elements of containers."""
    found: list[Any] = []
    for value in vars(state).values():
        parts = value.values() if isinstance(value, dict) else value
        found += [*parts] if isinstance(value, (list, dict, collections.deque)) else [value]
    return [float(part) if type(part) is tj.dlarray and not part.ndim else part for part in found]


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


class Scaled:  # noqa: PLW1641
    """An object that is called, with == and so without a hash."""

    def __init__(self) -> None:
        self.by = np.full(3, 0.5)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaled)

    def __call__(self, x: Any) -> Any:
        return x * self.by


def test_an_object_without_a_hash_that_is_called_with_an_array_that_varies() -> None:
    scaled = Scaled()

    def step(model: Model, x: Any) -> Any:
        model.parts[0] = np.sort(model.parts[0] + 1)
        return (scaled(x) + model.parts[0]).sum()

    have, want = Model(), Model()
    accelerated = tj.dlaccelerate(lambda x: step(have, x))
    for n in range(8):
        assert float(accelerated(np.full(3, n))) == float(step(want, np.full(3, n)))
        assert [np.asarray(part).tolist() for part in have.parts] == [part.tolist() for part in want.parts]
    assert accelerated.stats.hits >= 2
