# SPDX-License-Identifier: BSD-3-Clause
"""State in the class of an object, reached by type(self), in classes of named tuples, and in frozen dataclasses.

Frozen dataclasses take each other's place.
"""

import collections
import dataclasses
import random
import typing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj


class Counted:
    """A class with a count and a factor, which functions reach by type(self)."""

    count, factor = 0, 2.0

    def direct(self, x):
        type(self).count += 1
        return x * 2

    def by_variable(self, x):
        kind = type(self)
        kind.count += 1
        return x * kind.factor

    def read(self, x):
        return x * type(self).factor + type(self).count

    def named(self, x):
        return x * len(type(self).__name__)

    def made(self, x):
        return x * type(self)().factor

    def told(self, x):
        return x * (2 if type(self) is Counted else 3)

    def of_a_number(self, x):
        return x * type(x.sum())(2) * type(self.factor)(3)


class Other(Counted):
    """A class derived from it."""

    count, factor = 10, 5.0


def worlds(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Any, Any]:
    """Return a method as it is and accelerated, each of an object of classes of its own, and the objects."""
    objects = []
    for _ in range(2):
        kind = type("Counted", (Counted,), {"count": 0, "factor": 2.0})
        objects.append(kind())
    plain, accelerated = getattr(Counted, name), tj.dlaccelerate(getattr(Counted, name))
    return (lambda x: plain(objects[0], x)), (lambda x: accelerated(objects[1], x)), *objects


@pytest.mark.parametrize(
    "name", [name for name in vars(Counted) if name[0] != "_" and callable(vars(Counted)[name])]
)
def test_what_the_plain_function_does(name: str) -> None:
    plain, fast, one, other = worlds(name)
    for call in range(12):
        x = np.arange(3.0) + call
        if call == 6:
            type(one).factor = type(other).factor = 7.0
        if call == 8:
            type(one).count = type(other).count = 100
        if call == 10:
            one.__class__, other.__class__ = (type("Counted2", (Other,), {"count": 4}) for _ in range(2))
        np.testing.assert_array_equal(np.asarray(fast(x)), plain(x))
        assert type(one).count == type(other).count


@pytest.mark.parametrize("name", ["direct", "by_variable"])
def test_counts_are_replayed(name: str) -> None:
    class Own(Counted):
        count = 0
        step = tj.dlaccelerate(getattr(Counted, name))

    own = Own()
    for _ in range(12):
        own.step(np.ones(2))
    assert Own.count == 12 and own.step.stats.hits >= 8


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A state with an array and a number."""

    x: np.ndarray
    n: int


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    """The same, in slots."""

    x: np.ndarray
    n: int


STEPS = {
    "made": lambda state, x: type(state)(state.x + x, state.n + 1),
    "replace": lambda state, x: dataclasses.replace(state, x=state.x + x, n=state.n + 1),
    "replace a number": lambda state, x: dataclasses.replace(state, n=state.n + 1),
}


@pytest.mark.parametrize("kind", [Frozen, Slotted])
@pytest.mark.parametrize("name", STEPS)
def test_frozen_dataclasses_with_numbers(kind: type, name: str) -> None:
    step = STEPS[name]

    class Model:
        def __init__(self) -> None:
            self.state = kind(np.zeros(3), 0)

        def plain(self, x):
            self.state = step(self.state, x)
            return self.state.x.sum() * self.state.n + x

        accelerated = tj.dlaccelerate(plain)

    one, other = Model(), Model()
    for call in range(20):
        x = np.arange(3.0) * call
        np.testing.assert_allclose(np.asarray(other.accelerated(x)), one.plain(x))
        assert other.state.n == one.state.n and type(other.state.n) is int
    assert other.accelerated.stats.hits >= 10


class Pair(typing.NamedTuple):
    """A named tuple with a method."""

    a: float
    b: float

    def total(self):
        return self.a + self.b


class Derived(collections.namedtuple("Derived", "a b")):
    """A class derived from one of named tuples, with a property."""

    @property
    def double(self):
        return 2 * self.b


OF_TUPLES = [
    "t.b",
    "t[1]",
    "t.a + t.b",
    "sum(t)",
    "t._replace(a=3.0).b",
    "(lambda a, b: b)(*t)",
    "getattr(t, 'b')",
]


@pytest.mark.parametrize("body", [*OF_TUPLES, "t.total()", "t.double", "type(t).b"])
@pytest.mark.parametrize("base", [collections.namedtuple("Plain", "a b"), Pair, Derived])
def test_a_field_of_a_class_of_named_tuples_is_replaced(base, body):
    kind = type(base.__name__, (base,), {})
    t = kind(1.0, 2.0)
    plain = eval(f"lambda x: x * ({body})", {"t": t})
    if not hasattr(t, body.removeprefix("t.").removesuffix("()")) and body in ("t.total()", "t.double"):
        return
    accelerated = tj.dlaccelerate(plain)
    x = np.ones(2)
    for value in (None, 5.0, property(lambda t: 7.0), None):
        if value is not None:
            kind.b = value
        elif "b" in vars(kind):
            del kind.b
        for _ in range(4) if body != "type(t).b" or type(value) is float else ():
            assert accelerated(x).tolist() == plain(x).tolist()
    assert accelerated.stats.uncompiled == 0


def unnamed(*bases, **entries):
    """Return a class that code without a name for its module has made."""
    kind = eval("type('K', bases, entries)", {"bases": bases, "entries": entries})
    assert not hasattr(kind, "__module__")
    return kind


WITHOUT_MODULE = {
    "written": "k.v = k.v * 0.5 + x.sum()",
    "read": "x = x * k.v",
    "its class": "K.v += 1.0; x = x * K.v",
    "an argument": "o.v += 1.0; x = x * o.v",
    "called": "x = k.step(x)",
    "made": "x = K().step(x)",
    "derived from list": "listed[0] += 1.0; x = x * sum(listed)",
    "derived from a generator": "x = x * drawing.random()",
    "an operand": "x = x + (k == 3)",
    "a number is passed": "float(x[0]); setattr(k, 'v', float(x[0]))",
}


@pytest.mark.parametrize("name", WITHOUT_MODULE)
def test_classes_without_a_module(name):
    def run(accelerate):
        kind = unnamed(v=1.0, step=lambda self, x: self.v * x)
        names = {
            "k": kind(),
            "K": kind,
            "listed": unnamed(list)([1.0, 2.0]),
            "drawing": unnamed(random.Random)(0),
        }
        names["__name__"] = __name__
        exec(f"def f(o, x):\n    {WITHOUT_MODULE[name]}\n    return x + 1", names)
        function = tj.dlaccelerate(names["f"]) if accelerate else names["f"]
        found = [np.asarray(function(names["k"], np.full(2, n + 1.0))).tolist() for n in range(5)]
        return found, float(names["k"].v)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        assert run(True) == run(False)
