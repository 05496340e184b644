# SPDX-License-Identifier: BSD-3-Clause
"""Two names for the same elements, through views of their own: each is followed when it gets another array."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize("moved", ["first", "second"])
@pytest.mark.filterwarnings("ignore::tracejit.ChangedTraceWarning")
def test_either_name_gets_another_array(moved: str) -> None:
    base = np.arange(48.0)
    owner, items = SimpleNamespace(array=base[28:32]), {"array": base[24:28]}

    def weighted(x: Any) -> Any:
        return x * owner.array + items["array"] * 3

    accelerated, x = tj.dlaccelerate(weighted), base[:4]
    accelerated(x)
    owner.array = base[2:6]
    accelerated(x)
    items["array"] = base[2:6]
    for _ in range(17):  # an audit is among them
        assert accelerated(x).tolist() == weighted(x).tolist()
    if moved == "first":
        owner.array = base[6:10]
    else:
        items["array"] = base[4:8]
    for _ in range(3):
        assert accelerated(x).tolist() == weighted(x).tolist()


@pytest.mark.parametrize("made", [lambda array: array, tj.dlarray, lambda array: tj.dlarray(array)[:]])
@pytest.mark.parametrize(
    "is_one", [lambda n: n % 2, lambda n: n < 5, lambda n: n < 1, lambda n: 5 < n < 8, lambda n: n > 6]
)
@pytest.mark.parametrize("confirm", [1, 2])
@pytest.mark.filterwarnings("error")
def test_two_names_lead_to_one_array_at_times(made: Any, is_one: Any, confirm: int) -> None:
    owner = SimpleNamespace()

    def weighted(x: Any) -> Any:
        return (x + owner.first) * owner.second

    accelerated, x = tj.dlaccelerate(weighted, confirm=confirm), np.arange(3.0)
    for n in range(20):  # two audits are among them
        owner.first = made(np.full(3, float(n)))
        owner.second = owner.first if is_one(n) else made(np.full(3, n + 0.5))
        assert accelerated(x).tolist() == np.asarray(weighted(x)).tolist()
    assert accelerated.stats.hits > 8
    assert not accelerated.stats.uncompiled


@pytest.mark.parametrize("audit", [False, True])
@pytest.mark.parametrize("moved", ["first", "second"])
@pytest.mark.filterwarnings("error")
def test_two_dlarrays_over_one_memory(moved: str, audit: bool) -> None:
    base = np.array([1.0, 2.0])
    owner = SimpleNamespace(first=tj.dlarray(base), second=tj.dlarray(base))

    def weighted(x: Any) -> Any:
        return (x + owner.first) * owner.second

    accelerated, x = tj.dlaccelerate(weighted, audit=audit), np.ones(2)
    for n in range(16):
        if n in (5, 9):
            setattr(owner, moved, tj.dlarray(np.array([5.0, n])))
        if n == 12:
            owner.first = owner.second
        assert accelerated(x).tolist() == np.asarray(weighted(x)).tolist()
    assert accelerated.stats.hits > 6


def _gradients(owner: Any, x: Any) -> Any:
    return tj.dlgradient((x * owner.first * owner.second).sum(), [owner.first, owner.second])


def _one_gradient(owner: Any, x: Any) -> Any:
    return tj.dlgradient((x * owner.first * owner.second).sum(), owner.second)


def _tangent(owner: Any, x: Any) -> Any:
    return tj.dljvp(x * owner.first * owner.second, owner.first, x)


def _hessian(owner: Any, x: Any) -> Any:
    return tj.dlhessian((x * owner.first * owner.second).sum(), owner.first)


def _in_a_loop(owner: Any, x: Any) -> Any:
    return tj.dlscan(
        lambda total, row: (total + _one_gradient(owner, row), None), x * 0, tj.zeros((4, 2)) + x
    )[0]


def _of_what_does_not_depend(owner: Any, x: Any) -> Any:
    return tj.dlgradient((x * owner.second).sum(), owner.first)


class Weights:
    def __init__(self) -> None:
        self.first, self.second = tj.dlarray([1.0, 2.0]), tj.dlarray([3.0, 4.0])


_DERIVATIVES = [_gradients, _one_gradient, _tangent, _hessian, _in_a_loop, _of_what_does_not_depend]


@pytest.mark.parametrize("derivative", _DERIVATIVES)
@pytest.mark.parametrize("is_tied_first", [False, True])
@pytest.mark.filterwarnings("error")
def test_weights_that_are_tied_later_have_one_derivative(derivative: Any, is_tied_first: bool) -> None:
    owner, x = Weights(), np.array([1.0, -2.0])
    accelerated = tj.dlaccelerate(derivative)
    for n in range(24):
        is_tied = (n // 5 % 2 == 1) != is_tied_first
        owner.second = owner.first if is_tied else tj.dlarray([3.0, n])
        expected = [np.asarray(part).tolist() for part in tj.dlfeval(derivative, owner, x)]
        assert [np.asarray(part).tolist() for part in accelerated(owner, x)] == expected
    assert accelerated.stats.hits > 14
    assert not accelerated.stats.uncompiled


@pytest.mark.filterwarnings("error")
def test_one_of_many_weights_is_tied_later() -> None:
    weights, x = [tj.dlarray([1.0, n]) for n in range(5)], np.array([1.0, -2.0])

    @tj.dlaccelerate
    def gradients(x: Any) -> Any:
        product = x
        for w in weights:
            product = product * w
        return tj.dlgradient(product.sum(), weights[:2])

    for n in range(12):
        if n == 4:
            weights[4] = weights[1]
        if n == 8:
            weights[3] = weights[4] = tj.dlarray([2.0, 5.0])  # no derivative is taken by it
        expected = [gradient.tolist() for gradient in tj.dlfeval(gradients.function, x)]
        assert [gradient.tolist() for gradient in gradients(x)] == expected


@pytest.mark.filterwarnings("error")
def test_networks_that_become_one() -> None:
    def network(seed: int) -> Any:
        return tj.dlnetwork([tj.nn.FeatureInput(2), tj.nn.FullyConnected(2)], seed=seed)

    owner, x = (
        SimpleNamespace(first=network(0), second=network(1)),
        tj.dlarray(np.ones((3, 2), np.float32), "BC"),
    )

    @tj.dlaccelerate
    def gradients(x: Any) -> Any:
        loss = (owner.first.forward(x)[0] * owner.second.forward(x)[0]).sum()
        return tj.dlgradient(loss, owner.first.learnables)

    for n in range(8):
        if n == 4:
            owner.second = owner.first
        expected = tj.dlfeval(gradients.function, x)
        for one, other in zip(gradients(x).value, expected.value, strict=True):
            assert np.allclose(one, other)


@pytest.mark.filterwarnings("error")
def test_a_target_behind_stop_gradient_may_be_tied() -> None:
    owner, x = Weights(), np.array([1.0, -2.0])

    @tj.dlaccelerate
    def gradient(x: Any) -> Any:
        error = x * owner.first - tj.stop_gradient(x * owner.second)
        return tj.dlgradient((error**2).sum(), owner.first)

    for n in range(8):
        owner.second = owner.first if n % 3 == 2 else tj.dlarray([3.0, n])
        assert gradient(x).tolist() == tj.dlfeval(gradient.function, x).tolist()
    assert gradient.stats.traces == 3  # recorded, confirmed and audited


@pytest.mark.filterwarnings("error")
def test_arrays_of_the_evaluation_around_a_call_are_tied_later() -> None:
    owner, y = SimpleNamespace(), np.array([1.0, -2.0])
    gradient = tj.dlaccelerate(lambda y: tj.dlgradient((y * owner.first * owner.second).sum(), owner.first))

    def around(first: Any, second: Any, is_tied: bool) -> Any:
        owner.first, owner.second = first, first if is_tied else second
        return gradient(y)

    first, second = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for n in range(18):
        is_tied = n % 6 > 3
        found = tj.dlfeval(around, first, second, is_tied)
        assert found.tolist() == (2 * y * first if is_tied else y * second).tolist()
    assert gradient.stats.hits > 10
