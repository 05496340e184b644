# SPDX-License-Identifier: BSD-3-Clause
"""Traps: classes that the function makes itself, whose methods read its variables, and what they derive from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracejit as tj


class Other:
    rate = 0.5


class Base:
    rate = 2.0

    def step(self, x: Any) -> Any:
        return x * self.rate


class Derived(Base):
    pass


class Settings:
    base: type = Base
    scale = 1.0


registry: list[type] = []


def variable(x: Any) -> Any:
    class Rule:
        def power(self, k: int) -> Any:
            return self.power(k - 1) * 0.5 + x if k else np.ones(3)

    return Rule().power(2)


def made_in_init(x: Any) -> Any:
    class Rule:
        def __init__(self) -> None:
            self.y = x * 2

        def sum(self) -> Any:
            return self.y + x

    return Rule().sum()


def in_the_body(x: Any) -> Any:
    class Rule:
        y = x * 2

        def sum(self) -> Any:
            return self.y + x

    return Rule().sum() + Rule.y


def of_a_dataclass(x: Any) -> Any:
    @dataclass
    class Rule:
        y: Any

        def sum(self) -> Any:
            return self.y + x * Settings.scale

    return Rule(x * 2).sum()


def derived(x: Any) -> Any:
    class Rule(Derived):
        def twice(self) -> Any:
            return self.step(self.step(x)) + x

    return Rule().twice()


def by_super(x: Any) -> Any:
    class Rule(Derived):
        def step(self, y: Any) -> Any:
            return super().step(y) + x * super().rate

    return Rule().step(x)


def of_two(x: Any) -> Any:
    class Rule(Other, Derived):
        def twice(self) -> Any:
            return self.step(x) + x

    return Rule().twice()


def by_a_property(x: Any) -> Any:
    class Rule(Settings.base):  # type: ignore[name-defined, misc]
        @property
        def twice(self) -> Any:
            return x * 2

        @staticmethod
        def scaled() -> Any:
            return x * Settings.scale

        @classmethod
        def made(cls) -> Any:
            return cls().twice

    return Rule().twice + Rule.scaled() + Rule.made()


def kept_before(x: Any) -> Any:
    """The class that it reads is one that an earlier call made by the same statement."""

    class Rule:
        rate = 3.0

        def value(self) -> Any:
            return x * self.rate

    if not registry:
        registry.append(Rule)
    return Rule().value() * registry[0].rate


PROGRAMS = (
    variable, made_in_init, in_the_body, of_a_dataclass, derived, by_super, of_two, by_a_property, kept_before,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_replays(program: Callable[[Any], Any]) -> None:
    registry.clear()
    program(np.ones(3))
    accelerated = tj.dlaccelerate(program)
    for call in range(5):
        x = np.arange(3.0) + call
        np.testing.assert_allclose(np.asarray(accelerated(x)), program(x))
    assert accelerated.stats.hits == 3


def _another_step(self: Any, x: Any) -> Any:
    return x * self.rate + 1


CHANGES = (
    (Base, "rate", 3.0), (Derived, "rate", 4.0), (Other, "rate", 5.0), (Base, "step", _another_step),
    (Derived, "step", _another_step), (Settings, "scale", 2.0),
)  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "value"), CHANGES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_the_bases_have_is_compared(
    program: Callable[[Any], Any], owner: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.clear()
    program(np.ones(3))
    accelerated = tj.dlaccelerate(program)
    x = np.arange(3.0)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(accelerated(x)), program(x))
    monkeypatch.setattr(owner, name, value)
    np.testing.assert_allclose(np.asarray(accelerated(x)), program(x))


def test_a_class_made_before_is_compared() -> None:
    registry.clear()
    kept_before(np.ones(3))
    accelerated = tj.dlaccelerate(kept_before)
    x = np.arange(3.0)
    for _ in range(3):
        accelerated(x)
    registry[0].rate = 7.0  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.asarray(accelerated(x)), kept_before(x))
