# SPDX-License-Identifier: BSD-3-Clause
"""Traps: arguments that compare equal, and that Python code can tell apart all the same."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import weakref

import numpy as np
import pytest

import tracejit as tj
from tracejit import dlaccelerate
from tracejit.call.signature import key_call

X = np.array([1.0, -2.0, 3.0])


class Text(str):
    pass


class Whole(int):
    pass


class Number(float):
    pass


class Pair(tuple):
    pass


class Members(frozenset):
    pass


class Slotted(str):
    __slots__ = ("rate",)


class Config:
    """Equal to every other of its class."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __eq__(self, other):
        return type(other) is Config

    def __hash__(self):
        return 1


class Cell:
    """Equal to every other of its class, with a slot."""

    __slots__ = ("rate",)

    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return type(other) is Cell

    def __hash__(self):
        return 1


@dataclasses.dataclass(frozen=True)
class Options:
    rate: float
    note: str = dataclasses.field(default="", compare=False)


class One(enum.IntEnum):
    A = 1


class Uno(enum.IntEnum):
    A = 1


class Referent:
    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


REFERENTS = [Referent(1.0), Referent(2.0)]


def with_rate(value, rate):
    value.rate = rate
    return value


def zone(name):
    return datetime.timezone(datetime.timedelta(0), name)


# Values that are equal, each set of which a function can tell apart.
EQUAL = {
    "numbers": [
        1, True, 1.0, np.float64(1), np.float32(1), np.int64(1), np.bool_(True), One.A, Uno.A, Whole(1), Number(1),
    ],
    "zeros": [0.0, -0.0, 0, False, complex(0, 0.0), complex(0, -0.0), complex(-0.0, 0.0)],
    "texts": ["a", Text("a"), with_rate(Text("a"), 1.0), with_rate(Text("a"), 2.0), np.str_("a")],
    "slots of a text": [with_rate(Slotted("a"), 1.0), with_rate(Slotted("a"), 2.0), Slotted("a")],
    "attributes of an int": [with_rate(Whole(1), 1.0), with_rate(Whole(1), 2.0), Whole(1)],
    "attributes of a float": [with_rate(Number(1), 1.0), with_rate(Number(1), 2.0), Number(1)],
    "attributes of a tuple": [with_rate(Pair((1,)), 1.0), with_rate(Pair((1,)), 2.0), Pair((1,)), Pair((True,))],
    "attributes of a set": [with_rate(Members([1]), 1), with_rate(Members([1]), True), Members([1]), Members([True])],
    "bytes": [b"a", memoryview(b"a"), memoryview(b"a").cast("c")],
    "ranges": [range(0), range(2, 2), range(0, 1, -1), range(5, 0)],
    "ranges of one": [range(1), range(0, 1, 5), range(0, 3, 3)],
    "decimals": [decimal.Decimal(text) for text in ("1", "1.0", "1.00")],
    "zeros of decimals": [decimal.Decimal(text) for text in ("0", "-0", "0.0", "0E5")],
    "fractions": [fractions.Fraction(1), 1, 1.0, decimal.Decimal(1)],
    "fold": [datetime.datetime(2020, 1, 1, fold=0), datetime.datetime(2020, 1, 1, fold=1)],
    "fold of a time": [datetime.time(1, fold=0), datetime.time(1, fold=1)],
    "time zones": [datetime.datetime(2020, 1, 1, tzinfo=zone(name)) for name in ("a", "b")],
    "what __eq__ leaves out": [Config(), *[Config(rate=rate) for rate in (1.0, 2.0, 1, True)], Config(k=1.0)],
    "the order of attributes": [Config(a=1, b=2), Config(b=2, a=1)],
    "what __eq__ leaves out of slots": [Cell(1.0), Cell(2.0), Cell(-0.0), Cell(0.0)],
    "attributes of attributes": [Config(part=Config(rate=rate)) for rate in (1, 1.0, 2)],
    "containers in attributes": [Config(part=part) for part in ([1], [1.0], (1,), {1: 1}, {1: True}, {True: 1}, {1})],
    "arrays in attributes": [Config(part=X), Config(part=-X), Config(part=X.copy())],
    "targets of weak references": [weakref.ref(target) for target in REFERENTS],
}  # fmt: skip
ATOMS = [1, True, 1.0, 0.0, -0.0, 0, False, "1", b"1", None, float("nan"), (1,), (True,), (0.0,), (-0.0,)]


def key(value):
    return key_call("fun", ((value,), {}), lambda number, treedef: f"argument {number}").key


AROUND = {
    "itself": lambda value: value,
    "a list": lambda value: [value],
    "a tuple": lambda value: (1, value),
    "a set": lambda value: frozenset({value}),
    "a tuple in a set": lambda value: frozenset({(1, (value,))}),
    "a key": lambda value: {value: 1.0},
    "a tuple in a key": lambda value: {(1, (value,)): 1.0},
    "a key of an ordered dict": lambda value: collections.OrderedDict({value: 1.0}),
    "an attribute": lambda value: Config(value=value),
    "a field that is not compared": lambda value: frozenset({Options(1.0, value)}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("way", AROUND)
@pytest.mark.parametrize("name", EQUAL)
def test_keys_differ(name, way):
    around = AROUND[way]
    for first, second in itertools.combinations(EQUAL[name], 2):
        assert key(around(first)) != key(around(second)), (first, second)


@pytest.mark.sampled
@pytest.mark.parametrize("way", AROUND)
@pytest.mark.parametrize("name", EQUAL)
def test_keys_of_the_same_are_equal(name, way):
    around = AROUND[way]
    for value in EQUAL[name]:
        one, other = key(around(value)), key(around(value))
        assert one == other and hash(one) == hash(other)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(40))
def test_any_nesting(seed):
    """Containers at random: keys are equal just where the texts of the containers are."""
    rng = np.random.default_rng(seed)

    def made(depth):
        kind = rng.integers(0, 4 if depth else 1)
        if kind == 0:
            return ATOMS[rng.integers(len(ATOMS))]
        parts = [made(depth - 1) for _ in range(rng.integers(0, 3))]
        return (tuple, frozenset, lambda items: Config(parts=items))[kind - 1](parts)

    def text(value):
        if isinstance(value, Config):
            return f"Config({[text(part) for part in value.parts]})"
        if isinstance(value, tuple | frozenset):
            return f"{type(value).__name__}({[text(part) for part in value]})"
        return repr(value)

    values = [frozenset({made(2)}) for _ in range(8)]
    for a, b in itertools.product(values, values):
        assert (key(a) == key(b)) == (text(a) == text(b)), (text(a), text(b))


def test_nan_is_the_same_in_containers():
    for around in (lambda value: frozenset({(value,)}), lambda value: Config(value=value)):
        one, other = key(around(float("nan"))), key(around(float("nan")))
        assert one == other and hash(one) == hash(other)


def told(value):
    """Return a number that a function could compute to tell values apart."""
    if isinstance(value, weakref.ref):
        return value().rate
    if isinstance(value, dict | frozenset | tuple | list) and type(value) not in (Pair, Members):
        parts = [*value]
        return sum((i + 1) * told(part) for i, part in enumerate(parts)) + len(parts)
    attributes = [told(part) for part in vars(value).values()] if isinstance(value, Config) else []
    sign = float(np.copysign(1.0, value)) if isinstance(value, float) else 1.0
    fold, rate = getattr(value, "fold", 0), getattr(value, "rate", 0.5)
    return len(repr(value)[:40]) + len(type(value).__name__) + sign + fold + rate + sum(attributes)


@pytest.mark.sampled(by=lambda case: case["way"])
@pytest.mark.parametrize("way", ["itself", "a list", "a set", "a key", "a tuple in a key", "an attribute"])
@pytest.mark.parametrize(
    "name",
    [name for name in EQUAL if name not in ("arrays in attributes", "containers in attributes", "bytes")],
)
def test_results_are_those_of_the_argument(name, way):
    around = AROUND[way]
    accelerated = dlaccelerate(lambda x, value: x * told(value), audit=False)
    for n in range(3):  # recorded, confirmed, replayed
        for value in EQUAL[name]:
            given = around(value)
            assert accelerated(X, given).tolist() == (X * told(given)).tolist(), (n, value)


class TestAttributesOfArguments:
    """An attribute that changes between calls with the same object."""

    def follow(self, fun, argument, *changes):
        accelerated = dlaccelerate(fun, audit=False)
        for change in (lambda: None, *changes):
            change()
            for _ in range(4):
                before = accelerated.stats.hits
                assert accelerated(X, argument).tolist() == fun(X, argument).tolist()
            assert accelerated.stats.hits == before + 1
        return accelerated

    def test_of_an_object(self):
        config = Config(rate=1.0)
        self.follow(lambda x, c: x * c.rate, config, lambda: setattr(config, "rate", 2.0))

    def test_that_is_an_array(self):
        config = Config(w=np.ones(3))
        self.follow(
            lambda x, c: x * c.w + float(c.w.sum()),
            config,
            lambda: config.w.__setitem__(0, 5.0),
            lambda: setattr(config, "w", np.full(3, 7.0)),
        )

    def test_of_a_text(self):
        name = with_rate(Text("a"), 1.0)
        self.follow(lambda x, t: x * t.rate, name, lambda: setattr(name, "rate", 2.0))

    def test_of_a_member_of_an_enumeration(self):
        class Mode(enum.Enum):
            A = 1

        Mode.A.rate = 1.0
        self.follow(lambda x, m: x * m.rate, Mode.A, lambda: setattr(Mode.A, "rate", 2.0))

    def test_of_the_target_of_a_weak_reference(self):
        target = Referent(1.0)
        self.follow(lambda x, r: x * r().rate, weakref.ref(target), lambda: setattr(target, "rate", 2.0))

    @pytest.mark.parametrize(
        "around", [lambda c: frozenset({c}), lambda c: {c: 1.0}, lambda c: {(c, 1): 1.0}]
    )
    def test_of_an_object_in_a_container(self, around):
        config = Config(rate=1.0)
        argument = around(config)

        def fun(x, argument):
            for part in argument:
                x = x * (part[0] if isinstance(part, tuple) else part).rate
            return x

        self.follow(fun, argument, lambda: setattr(config, "rate", 2.0))

    def test_another_object_with_the_same_attributes_replays(self):
        accelerated = dlaccelerate(lambda x, c: x * c.rate)
        for _ in range(4):
            assert accelerated(X, Config(rate=2.0)).tolist() == (X * 2.0).tolist()
        assert accelerated.stats.hits == 2


def test_explain_names_what_looks_the_same():
    accelerated = tj.dlaccelerate(lambda x, c: x * c.rate)
    config = Config(rate=1.0)
    accelerated(X, config)
    config.rate = 2.0
    accelerated(X, config)
    assert "c has other attributes than before" in str(accelerated.explain())
