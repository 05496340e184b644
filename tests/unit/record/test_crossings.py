# SPDX-License-Identifier: BSD-3-Clause
"""Traps: numbers that vary where code asks for a true number, and code that keeps them."""

import array
import collections
import contextlib
import copy
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import heapq
import itertools
import json
import logging
import math
import numbers
import operator
import pickle
import queue
import random
import re
import statistics
import string
import struct
import sys
import threading
import types
import typing
import warnings

import numpy as np
import pytest
from counted_runs import counts_runs
from effort import sweep
from hypothesis import given, settings
from hypothesis import strategies as st
from numbers_in_turn import X, follow

import tracejit as tj
from tracejit import dlaccelerate
from tracejit.record import crossings, stack

FLOATS = [0.5, 0.25, 2.0, 3.0, -1.5, 7.25, 0.5, 2.0]
INTEGERS = [1, 2, 3, 4, 5, 6, 3, 4]
KINDS = sweep([float, np.int64], [float, int, np.float64, np.int64])
Pair = collections.namedtuple("Pair", "a b")
Size = enum.IntEnum("Size", "ONE TWO THREE FOUR FIVE SIX")


@dataclasses.dataclass
class Options:
    rate: float
    steps: int = 2


class Scaler:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k


class Kelvin(float):
    pass


class Typed(typing.NamedTuple):
    k: float


@functools.singledispatch
def kind_of(k):
    return "other"


kind_of.register(int, lambda k: "int")
kind_of.register(float, lambda k: "float")


@functools.singledispatch
def shown_by_type(k):
    return "other"


shown_by_type.register(float, json.dumps)


def matched(k):
    match k:
        case int(v):
            return ("int", v)
        case float(v):
            return ("float", v)
    return None


@contextlib.contextmanager
def scoped(k):
    yield k


def entered(scope, function=abs):
    with scope as k:
        return function(k)


def passed_on(*args, **kwargs):
    return args, kwargs


def later(call):
    return call()


def generated(k):
    yield k
    yield k * 2


def in_ctypes(k):
    pair = (ctypes.c_double * 2)()
    pair[0] = k
    return list(pair)


def in_queue(k):
    q = queue.SimpleQueue()
    q.put(k)
    q.put((k, [k]))
    return q.get(), q.get()


def in_thread(k):
    found = []
    thread = threading.Thread(target=lambda n: found.append(repr([n])), args=(k,))
    thread.start()
    thread.join()
    return found


ANY_KIND = [
    lambda k: (type(k)(3), type(k) is float, type(k) is int, type(k).__name__, k.__class__(3)),
    matched,
    kind_of,
    lambda k: list(map(type, [k, 2.0])),
    lambda k: {float: 1, int: 2, np.float64: 3, np.int64: 4}[type(k)],
    lambda k: (
        isinstance(k, numbers.Real),
        isinstance(k, numbers.Integral),
        isinstance(k, typing.SupportsFloat),
    ),
    lambda k: json.dumps(float(k)),
    lambda k: pickle.loads(pickle.dumps([k, k])),
    lambda k: copy.deepcopy([k, {k: k}]),
    lambda k: repr([k, (k,), {k}, {k: k}]),
    lambda k: "%s %.2f %5d" % (k, k, k),  # noqa: UP031
    lambda k: f"{k} {k:.1f}",
    lambda k: string.Template("$a").substitute(a=k),
    lambda k: re.sub("a", str(k), "xax"),
    lambda k: f"{k!r:>12}",
    lambda k: statistics.mean([k, 1]),
    lambda k: statistics.mean(k * i for i in range(3)),
    lambda k: math.fsum([k, 1]),
    lambda k: statistics.median([k, 2, 1]),
    lambda k: math.hypot(k, 1),
    lambda k: math.floor(k),
    lambda k: math.prod([k, k]),
    lambda k: fractions.Fraction(k) + 1,
    lambda k: k + fractions.Fraction(1, 3),
    lambda k: fractions.Fraction(1, 3) * k,
    lambda k: decimal.Decimal(1) < k,
    lambda k: k == decimal.Decimal(1),
    lambda k: fractions.Fraction(1, 2) < k,
    lambda k: struct.pack("d", k),
    lambda k: struct.Struct("2d").pack(*[k, k]),
    lambda k: array.array("d", [k, k]),
    lambda k: ctypes.c_double(k).value,
    in_ctypes,
    in_queue,
    in_thread,
    lambda k: list(generated(k)),
    lambda k: sorted([k, 1, 2]),
    lambda k: max([k, 2], key=lambda v: -v),
    lambda k: heapq.nsmallest(2, [k, 1, 2]),
    lambda k: functools.reduce(operator.add, [k, k, 1]),
    lambda k: list(itertools.accumulate([k, 1, k])),
    lambda k: sum(itertools.islice(itertools.count(k), 3)),
    lambda k: list(zip([k], itertools.repeat(k), strict=False)),
    lambda k: collections.Counter([k, k, 2]),
    lambda k: collections.ChainMap({"k": k})["k"],
    lambda k: list(collections.deque([k])),
    lambda k: Pair(k, 2)._replace(a=k),
    lambda k: Typed(k),
    lambda k: dataclasses.asdict(Options(k)),
    lambda k: Kelvin(k) + 1,
    lambda k: dataclasses.replace(Options(k), rate=k).rate,
    lambda k: types.SimpleNamespace(k=k).k,
    lambda k: Scaler(k).k,
    lambda k: Options(k).rate,
    lambda k: vars(Options(k)),
    lambda k: k in {1, 2, 3},
    lambda k: {k: 1}.get(2.0),
    lambda k: np.full(2, k).tolist(),
    lambda k: np.linspace(0, k, 3).tolist(),
    lambda k: np.array([k, 1]).dtype,
    lambda k: np.random.RandomState(0).normal(k),
    lambda k: np.random.default_rng(0).normal(k, 1.0, 2).tolist(),
    lambda k: random.Random(float(k)).random(),
    lambda k: random.Random(0).uniform(0, k),
    lambda k: complex(k, 1),
    lambda k: np.interp(k, [0, 1], [1.0, 2.0]),
    lambda k: np.polyval([1.0, 2.0], k),
    lambda k: divmod(k, 2),
    lambda k: pow(2, k),
    lambda k: contextlib.nullcontext(k).enter_result,
    lambda k: operator.truth(k),
    lambda k: operator.mul(k, 2),
    lambda k: sys.getsizeof(k) > 0,
    lambda k: hash((k, 1)),
    lambda k: round(k),
    lambda k: round(k, 1),
    lambda k: int(k),
    lambda k: float(k).hex(),
    lambda k: k.real + k.imag,
    lambda k: k.conjugate(),
    lambda k: bool(k) and not k - k,
    lambda k: np.float32(k),
    lambda k: np.sqrt(abs(k)),
    lambda k: min(k, 1.0),
    lambda k: [*[k]],
    lambda k: {"k": k},
    lambda k: typing.cast(float, k),
    lambda k: passed_on(k, n=k),
    lambda k: functools.partial(divmod, k)(2),
]
FLOAT_ONLY = [
    json.dumps,
    lambda k: json.dumps({"a": [k, {"b": k + 1}]}),
    lambda k: json.JSONEncoder().encode(k),
    decimal.Decimal,
    lambda k: json.dumps(obj=k),
    lambda k: json.dumps(obj=k),
    lambda k: json.dumps(Scaler(k).__dict__),
    lambda k: json.dumps(list(generated(k))),
    lambda k: list(map(json.dumps, [k])),
    lambda k: later(lambda: json.dumps(k)),
    lambda k: sorted([2, 1], key=lambda v: json.loads(json.dumps(v * k))),
    lambda k: k.is_integer(),
    lambda k: k.hex(),
    lambda k: k.as_integer_ratio(),
    float.hex,
    lambda k: float.__add__(k, 1.0),
    lambda k: decimal.Context().create_decimal(k),
    lambda k: datetime.timedelta(seconds=k),
    lambda k: datetime.timedelta(*[k]),
    lambda k: datetime.timedelta(1) * k,
    lambda k: datetime.datetime(2020, 1, 1) + datetime.timedelta(days=k),
    lambda k: datetime.timedelta(1) / k,
    lambda k: math.modf(k),
    lambda k: math.frexp(k),
    lambda k: math.nextafter(k, 9.0),
    lambda k: functools.partial(json.dumps)(k),
    lambda k: json.dumps(*[[1, k]]),
    lambda k: json.dumps(*iter([{"a": k}])),
    lambda k: json.dumps(*(v for v in ([k],)), **dict.fromkeys(["indent"], 1)),
    lambda k: json.dumps(json.dumps([1, json.dumps([k])])),
    lambda k: [json.dumps([v]) for v in [k] if json.dumps((2, v))],
]
INTEGER_ONLY = [
    json.dumps,
    decimal.Decimal,
    lambda k: math.ldexp(1.0, k),
    lambda k: functools.partial(math.ldexp, 1.0)(k),
    lambda k: list(map(math.ldexp, [1.0], [k])),
    lambda k: math.comb(9, k),
    lambda k: math.gcd(k, 6),
    math.factorial,
    lambda k: list(collections.deque(range(9), maxlen=k)),
    lambda k: list(collections.deque(range(9), k)),
    bytes,
    bytearray,
    lambda k: list(itertools.islice(range(9), k)),
    lambda k: list(range(k)),
    lambda k: list(range(9))[k:],
    operator.index,
    lambda k: "abc" * k,
    lambda k: [0] * k,
    lambda k: "abcdefghi"[k],
    lambda k: (1, 2, 3, 4, 5, 6, 7)[:k],
    lambda k: k.bit_length(),
    lambda k: k.to_bytes(2, "big"),
    lambda k: int.to_bytes(k, 2, "big"),
    lambda k: int.bit_length(k),
    lambda k: k.numerator,
    lambda k: np.random.default_rng(k).random(),
    lambda k: np.random.RandomState(k).rand(),
    lambda k: random.Random(k).random(),
    lambda k: random.Random(0).sample(range(9), k),
    lambda k: random.Random(0).randint(0, k),
    lambda k: Size(k).name,
    lambda k: np.arange(k).tolist(),
    lambda k: np.zeros(k).size,
    lambda k: np.eye(k).tolist(),
    lambda k: np.ones((k, 2)).shape,
    lambda k: datetime.date(2020, 1, k),
    lambda k: datetime.timedelta(k),
    lambda k: datetime.datetime(2020, 1, 1, hour=k),
    lambda k: struct.pack("i", k),
    lambda k: array.array("i", [k]),
    lambda k: ctypes.c_int(k).value,
    lambda k: pow(k, 2, 7),
    lambda k: pow(2, k, 7),
    lambda k: pow(2, 3, k),
    lambda k: f"{k:x} {k:b} {k:c}",
    lambda k: hex(k) + bin(k) + chr(k),
    lambda k: 1 << k,
    lambda k: format(k, "03d"),
    lambda k: str(k).zfill(3),
    lambda k: "{0:{1}}".format("a", k),
    lambda k: "a".center(k),
    lambda k: int(str(k)),
    lambda k: int("11", k + 1),
    lambda k: list(enumerate("ab", k)),
    lambda k: "abc".split("b", k),
    lambda k: re.compile("a").sub("b", "aaaaaaa", count=k),
    lambda k: memoryview(b"abcdefghi")[k],
    lambda k: slice(k).indices(9),
    lambda k: decimal.Decimal(2) * k,
    lambda k: decimal.Decimal(2) ** k,
    lambda k: fractions.Fraction(k, 7),
    lambda k: k.__index__(),
    lambda k: itertools.repeat(1, k).__length_hint__(),
    lambda k: list(itertools.combinations(range(6), k)),
    lambda k: round(5.55555, k),
    lambda k: {1: "a", 2: "b"}.get(k),
    lambda k: [5, 6, 7].insert(k, 1),
    lambda k: list("abcdefghij").pop(k),
    lambda k: statistics.mean([k]),
    lambda k: math.ldexp(*[1.0, k]),
    lambda k: pow(2, pow(3, k, 7), 7),
]


@pytest.fixture(autouse=True, scope="module")
def _small_heap():
    """Let the collector look at what the tests make only: a number that is kept has it run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class TestTrueNumbers:
    """Whoever asks for the type of a number gets a true one, and the value of the argument selects the trace."""

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("fun", ANY_KIND)
    def test_of_any_kind(self, fun, kind):
        follow(
            lambda x, k: (x * k, fun(k)),
            [kind(k) for k in (FLOATS if "float" in kind.__name__ else INTEGERS)],
            X,
        )

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("kind", [float, np.float64])
    @pytest.mark.parametrize("fun", FLOAT_ONLY)
    def test_floats(self, fun, kind):
        follow(lambda x, k: (x * k, fun(k)), [kind(k) for k in FLOATS], X)

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("kind", [int, np.int64])
    @pytest.mark.parametrize("fun", INTEGER_ONLY)
    def test_integers(self, fun, kind):
        follow(lambda x, k: (x * k, fun(k)), [kind(k) for k in INTEGERS], X)

    @pytest.mark.sampled
    @pytest.mark.parametrize("fun", [*FLOAT_ONLY[:12], *ANY_KIND[:4]])
    def test_of_what_was_computed(self, fun):
        follow(lambda x, k: (x * k, fun(k * 2 + 1.5)), FLOATS, X)

    def test_the_argument_is_named(self):
        fun = dlaccelerate(lambda x, k: (x * k, json.dumps(k)))
        for k in FLOATS[:4]:
            fun(X, k)
        where = f"{__file__}:{fun.function.__code__.co_firstlineno}"
        assert f"because dumps() at {where} needs k as a Python number" in fun.explain()


def step_with_all_sorts(x, k):
    """Return what code computes that calls much else, none of which asks for the number."""
    logging.getLogger(__name__).debug("step of %s", "a function")
    options, pair, scaler = Options(rate=k), Pair(k, 2), Scaler(k)
    with contextlib.suppress(ValueError), np.errstate(all="ignore"):
        re.match("a", "b")
    parts = [k * i for i in range(3)]
    parts.append(options.rate)
    settings_ = {"k": k}
    settings_.update(j=pair.a)
    total = sum(parts) + max(parts) + functools.reduce(operator.add, parts) + abs(k) + min(parts)
    scaled = functools.partial(np.multiply, k)(x) + scaler(x) * settings_["j"]
    options.steps = k
    try:
        raise ValueError(k)
    except ValueError:
        pass
    return np.maximum(scaled, k) * total + tj.tree.map(lambda v: v * options.steps, {"x": x})["x"]


class Odd(type):
    """A metaclass whose classes make no objects of their own."""

    def __call__(cls, *args):
        return args


class Strange(metaclass=Odd):
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, *args):
        return args


class TestFollowedCode:
    def test_odd_objects_are_called(self):
        strange = object.__new__(Strange)
        for call in (
            lambda k: Strange(k),
            lambda k: strange(k),
            lambda k: len([strange, k]),
            lambda k: id(strange) and k,
        ):
            accelerated = dlaccelerate(lambda x, k, call=call: (x * k, call(k)))
            warnings.simplefilter("ignore")  # what it reads cannot be looked at
            for k in FLOATS[:5]:
                np.testing.assert_array_equal(tj.extractdata(accelerated(X, k)[0]), tj.extractdata(X * k))

    def test_goes_on_varying(self):
        assert follow(step_with_all_sorts, [0.5, 0.25, 2.0, 3.0, 1.5, 7.25], X).stats.hits == 2

    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: logging.getLogger(__name__).debug("rate %s of %d", k, 3),
            lambda k: entered(scoped(k)),
            lambda k: dataclasses.replace(Options(1.0), rate=k).rate,
            lambda k: Pair(k, 2)._replace(b=k).b * 2,
            lambda k: copy.deepcopy({"k": [k]})["k"][0],
            lambda k: typing.cast(float, copy.copy(k)),
            lambda k: types.SimpleNamespace(k=k).k + 1,
            lambda k: collections.UserList([k])[0],
            lambda k: functools.partial(operator.add, k)(1),
            lambda k: collections.OrderedDict(a=k)["a"],
            lambda k: functools.singledispatch(lambda k: k * 2)(k),
            lambda k: heapq.nlargest(1, [k, 0.0])[0],
        ],
    )
    def test_functions_of_python_that_pass_numbers_on(self, fun):
        fun = follow(lambda x, k: (x * k, fun(k)), [0.5, 0.25, 2.0, 3.0, 1.5, 7.25], X)
        assert fun.stats.hits == 2

    @pytest.mark.parametrize(
        "fun",
        [
            lambda k: json.dumps(collections.Counter(a=k)),
            lambda k: functools.partial(json.dumps, k)(),
            lambda k: json.dumps(types.SimpleNamespace(k=k).__dict__),
            lambda k: functools.partial(json.dumps)(collections.OrderedDict(k=[k])),
            lambda k: json.dumps(collections.UserList([k]).data),
            lambda k: json.dumps(dict(collections.ChainMap({"k": k}))),
            lambda k: entered(scoped(k), json.dumps),
            lambda k: later(functools.partial(json.dumps, obj=k)),
            lambda k: functools.singledispatch(json.dumps)(k),
            shown_by_type,
            lambda k: json.dumps(copy.deepcopy([k])),
        ],
    )
    def test_and_then_to_those_that_do_not(self, fun):
        follow(lambda x, k: (x * k, fun(k)), FLOATS, X)

    @pytest.mark.parametrize(("most", "hits"), [(100, 2), (5, 0)])
    def test_a_large_object_that_holds_no_number(self, monkeypatch, most, hits):
        """Beyond some number of objects nobody looks: all numbers of the recording are true ones then."""
        monkeypatch.setattr(crossings, "_MOST_OBJECTS", most)
        fun = follow(lambda x, k: (x * k, len(pickle.dumps([[i] for i in range(20)]))), FLOATS[:6], X)
        assert fun.stats.hits == hits

    def test_a_debugger_stays(self):
        seen = []
        sys.settrace(outer := lambda frame, event, arg: seen.append(event))
        try:
            fun = dlaccelerate(lambda x, k: x * k)
            for k in FLOATS[:4]:
                fun(X, k)
            assert sys.gettrace() is outer
        finally:
            sys.settrace(None)

    def test_where_stacks_cannot_be_read(self, monkeypatch):
        monkeypatch.setattr(stack, "is_readable", lambda: False)
        assert follow(lambda x, k: (x * k, math.fsum([k])), FLOATS, X).stats.hits == 0
        fun = dlaccelerate(lambda x, k: (x * k, json.dumps(k)))
        for k in FLOATS[:2]:
            fun(X, k)
        with pytest.raises(TypeError, match="not JSON serializable"):
            fun(X, FLOATS[2])


class Kept:
    """Places that outlive a call, in which the code of a test keeps what it is given."""

    def __init__(self):
        self.log, self.memo, self.set = [], {}, set()
        self.last = None
        self.cells = []
        self.calls = 0

        @functools.lru_cache(maxsize=4)
        def remembered(k):
            self.calls += 1
            return k * 2

        self.remembered = remembered


def keep_in_memo(kept, k):
    if k not in kept.memo:
        kept.memo[k] = k * 3
    return kept.memo[k]


def keep_in_default(kept, k, *, seen=None):
    def inner(n=k):
        return n

    kept.log.append(inner)
    return inner()


def keep_in_closure(kept, k):
    kept.cells.append(lambda: k * 2)
    return kept.cells[-1]()


def keep_in_generator(kept, k):
    waiting = generated(k)
    kept.cells.append(lambda: [*waiting])
    return next(waiting)


def keep_in_error(kept, k):
    try:
        raise ValueError(k, [k])
    except ValueError as error:
        kept.last = error
    return 1


KEEPERS = [
    lambda kept, k: kept.log.append(k),
    lambda kept, k: kept.log.extend([k, k * 2, -k]),
    lambda kept, k: kept.log.append([[k]]),
    lambda kept, k: kept.log.append({"k": k}),
    lambda kept, k: kept.log.append((k, (k,))),
    lambda kept, k: kept.log.append({k}),
    lambda kept, k: kept.log.append(Pair(k, k)),
    lambda kept, k: kept.log.append(Options(k)),
    lambda kept, k: kept.set.add(k),
    lambda kept, k: setattr(kept, "last", k),
    lambda kept, k: setattr(kept, "last", [k + 1]),
    lambda kept, k: kept.memo.update(k=k),
    lambda kept, k: kept.memo.__setitem__("k", k),
    lambda kept, k: kept.memo.setdefault(k, k),
    lambda kept, k: kept.remembered(k),
    lambda kept, k: [kept.remembered(k), kept.log.append(kept.remembered(k + 1))][0],
    keep_in_memo,
    keep_in_default,
    keep_in_closure,
    keep_in_generator,
    keep_in_error,
    lambda kept, k: kept.log.append(iter([k, k])),
    lambda kept, k: kept.log.append(zip([k], [k], strict=True)),
    lambda kept, k: kept.log.append(functools.partial(max, k)),
    lambda kept, k: kept.log.append(types.SimpleNamespace(k=k)),
    lambda kept, k: kept.log.append(itertools.repeat(k)),
    lambda kept, k: kept.log.append(collections.deque([k], 2)),
    lambda kept, k: kept.log.insert(0, k),
    lambda kept, k: kept.log.append(map(abs, [k])),
    lambda kept, k: kept.log.append(slice(k)),
    lambda kept, k: kept.log.append(Scaler(k).__call__),
    lambda kept, k: kept.log.append(np.array([k, None], object)),
    lambda kept, k: kept.log.append(collections.OrderedDict(k=k)),
    lambda kept, k: kept.log.append(Kelvin(k)),
    lambda kept, k: kept.log.append(frozenset([k])),
    lambda kept, k: kept.log.append(reversed([k])),
    lambda kept, k: kept.log.sort(key=lambda v: k),
]


def seen_in(kept):
    """Return all that is kept, and the types of the numbers in it, however deep they lie."""
    calls = [cell() for cell in kept.cells]

    def shown(thing):
        if type(thing) is functools.partial:
            return ["partial", *map(shown, thing.args)]
        if callable(thing) and not isinstance(thing, Scaler):
            parts = thing.__defaults__ or [thing.__self__]
            return [type(thing).__name__, *map(shown, parts)]
        if type(thing) is itertools.repeat:
            return ["repeat", shown(next(thing))]
        if hasattr(thing, "__next__"):
            return ["iterator", *map(shown, copy.copy(thing) if type(thing) is not map else thing)]
        if isinstance(thing, slice):
            return ["slice", shown(thing.stop)]
        if isinstance(thing, dict):
            return {repr(key): (type(key), shown(value)) for key, value in thing.items()}
        if isinstance(thing, (list, tuple, set, frozenset, collections.deque, np.ndarray)):
            return [
                type(thing).__name__,
                *map(shown, sorted(thing) if isinstance(thing, (set, frozenset)) else thing),
            ]
        if isinstance(thing, Exception):
            return ["error", *map(shown, thing.args)]
        if hasattr(thing, "__dict__") and not isinstance(thing, (type, Kelvin)):
            return [type(thing).__name__, shown(vars(thing))]
        return (type(thing).__name__, repr(thing))

    state = {name: value for name, value in vars(kept).items() if name not in ("remembered", "cells")}
    return [shown(state), *map(shown, calls), kept.remembered.cache_info()]


class TestKept:
    """What the code keeps is a true number, kept once for each call that plain Python keeps it in."""

    @pytest.mark.sampled(by=lambda case: case["kind"])
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("keep", KEEPERS)
    @counts_runs
    def test_as_in_plain_python(self, keep, kind):
        mine, theirs = Kept(), Kept()

        def fun(x, k, kept):
            kept = mine if kept == "mine" else theirs
            found = keep(kept, k)
            return x * k + (found if isinstance(found, (int, float, np.generic)) else 0)

        fast = dlaccelerate(lambda x, k: fun(x, k, "mine"), audit=False)
        values = [1, 2, 3, 4, 5, 6, 7]
        for n in values:  # a number that is new runs the function, so all is kept
            k = kind(n) / kind(2) if "float" in kind.__name__ else kind(n)
            found, expected = fast(X, k), fun(X, k, "theirs")
            np.testing.assert_allclose(tj.extractdata(found), tj.extractdata(expected), rtol=1e-6)
            if keep in (keep_in_generator,):
                continue
            assert repr(seen_in(mine)) == repr(seen_in(theirs))

    def test_in_a_global_and_in_a_module(self):
        module = types.ModuleType("module")
        code = "def fun(x, k):\n    global last\n    last = k, k * 2\n    return x * k\n"
        exec(compile(code, __file__, "exec"), vars(module))
        fast = dlaccelerate(module.fun)
        for k in FLOATS[:6]:
            fast(X, k)
            assert module.last == (k, k * 2) and [type(part) for part in module.last] == [float, float]

    def test_after_state_has_changed(self):
        """A cache that is cleared, a scale that is set: between calls with numbers that recur and that are new."""
        warnings.simplefilter("ignore")  # it changes what it reads

        def world(accelerate):
            kept = Kept()
            scales = [1.0]

            def fun(x, k):
                return x * keep_in_memo(kept, k) * scales[0] * kept.remembered(k)

            fast = accelerate(fun)

            def call(n):
                if n % 5 == 4:
                    kept.memo.clear()
                    scales[0] += 1
                if n % 7 == 6:
                    kept.remembered.cache_clear()
                return fast(X, [0.5, 0.25, 2.0, 0.5, 4.0][n % 5] + n // 10), seen_in(kept)

            return call

        fast, plain = world(lambda f: dlaccelerate(f, audit=False, max_variants=99)), world(lambda f: f)
        for n in range(30):
            (found, mine), (expected, theirs) = fast(n), plain(n)
            np.testing.assert_allclose(tj.extractdata(found), tj.extractdata(expected), rtol=1e-6)
            assert all(kind != "Number" for kind in re.findall(r"'(\w+)'", repr(mine)))
            del theirs  # a replay need not call what plain Python calls

    def test_an_object_in_the_arguments(self):
        kept = []

        def fun(x, options):
            kept.append(options["rate"])
            options["seen"] = options["rate"] * 2
            return x * options["rate"]

        fast = dlaccelerate(fun)
        for k in FLOATS[:5]:
            given = {"rate": k}
            fast(X, given)
            assert type(given["seen"]) is float and given["seen"] == k * 2
        assert [type(part) for part in kept] == [float] * 5 and kept == FLOATS[:5]


operation = st.sampled_from(
    [
        "a = a + b",
        "a = a * 2 - b",
        "b = b / (abs(a) + 1)",
        "a, b = b, a",
        "a = max(a, b, 1)",
        "b = a if a < b else b + 1",
        "b = b % 3",
        "a = memo.setdefault(round(a, 3), b)",
        "b = remembered(b)",
        "log.append(a)",
        "log.append((b, [a]))",
        "y = y * a",
        "y = y + b",
        "y = y[::-1] * 0.5",
        "y = np.where(y > a, y, b)",
        "y = y + x[i]",
        "y = y + x[i:i + 2].sum()",
        "y = y + x[int(abs(b)) % 3]",
        "a = float(json.dumps(a))",
        "b = type(b)(a)",
        "a = statistics.mean([a, b])",
        "a = -a",
        "b = np.sin(b)",
        "y = y * math.cos(b)",
        "a = a if type(a) is float else float(a)",
        "i = i + 1 if i < 1 else 0",
        "memo[i] = a",
        "b = memo.get(i, b)",
        "b = b + len(log)",
        "y = np.maximum(y, -i)",
        "a = sum(k * a for k in range(3))",
    ]
)


class TestGenerated:
    @settings(max_examples=sweep(40, 2000, sample=4), deadline=None)
    @given(
        st.lists(operation, min_size=1, max_size=8),
        st.lists(
            st.tuples(st.integers(0, 2), st.sampled_from([0.5, -1.25, 2.0, 3.0, 0.1])), min_size=5, max_size=8
        ),
        st.sampled_from([float, np.float64, np.float32]),
    )
    @counts_runs
    def test_random_functions_of_numbers_arrays_and_caches(self, steps, given_numbers, kind):
        """Results are those of plain Python as long as no replay leaves out what the function keeps."""
        body = "\n    ".join(steps)
        source = (
            f"def fun(x, i, r):\n    a, b, y = r, r * 0.5 + i, x * 1\n    {body}\n    return y, a, b, i\n"
        )
        makers = []
        for enabled in (True, False):
            log, memo = [], {}
            names = {"np": np, "json": json, "math": math, "statistics": statistics, "log": log, "memo": memo,
                     "remembered": functools.lru_cache(lambda v: v * 2 + 1)}  # fmt: skip
            exec(compile(source, __file__, "exec"), names)
            makers.append((dlaccelerate(names["fun"], enabled=enabled, audit=False), log, memo))
        (fast, mine, my_memo), (plain, theirs, their_memo) = makers
        x = np.array([0.5, -1.5, 2.0])
        keeps = any("log" in step or "memo" in step for step in steps)
        seen = set()
        for i, r in given_numbers:
            if keeps and (i, r) in seen:
                continue  # it may be a replay, which would not keep it
            seen.add((i, r))
            outcomes = []
            for fun in (fast, plain):
                try:
                    with np.errstate(all="ignore"):
                        leaves, _ = tj.tree.flatten(fun(x, i, kind(r)))
                    outcomes.append([(type(leaf).__name__, np.array(leaf)) for leaf in leaves])
                except (ArithmeticError, TypeError, ValueError, IndexError) as error:
                    outcomes.append(type(error).__name__)
            found, expected = outcomes
            if isinstance(expected, str):
                assert found == expected
                continue
            assert [name for name, _ in found] == [name for name, _ in expected]
            for (_, have), (_, want) in zip(found, expected, strict=True):
                np.testing.assert_allclose(have, want, rtol=1e-5)
            assert "Number" not in repr([mine, my_memo])
            if keeps and not fast.stats.hits:
                assert repr((mine, my_memo)) == repr((theirs, their_memo))


class TestTheFunctionItself:
    """It may be no code of the user's."""

    @pytest.mark.parametrize(
        "fun", [json.dumps, functools.lru_cache(lambda k: k * 2), functools.partial(max, 1), Scaler]
    )
    def test_gets_true_numbers(self, fun):
        accelerated = dlaccelerate(fun)
        for k in FLOATS[:6]:
            found, expected = accelerated(k), fun(k)
            assert repr(vars(found) if fun is Scaler else found) == repr(
                vars(expected) if fun is Scaler else expected
            )

    def test_a_debugger_that_it_starts_goes_on(self):
        seen = []

        def stepped(frame, event, arg):
            seen.append(frame.f_code.co_name)
            return stepped

        def fun(x, k):
            sys.settrace(stepped)
            return later(lambda: x * k + 1)

        accelerated = dlaccelerate(fun)
        try:
            for k in FLOATS[:3]:
                accelerated(X, k)
                assert sys.gettrace() is stepped and "later" in seen
                sys.settrace(None)
                seen.clear()
        finally:
            sys.settrace(None)


class TestBesideArrays:
    """A number that is needed stands before, between and behind arrays, which are written or not."""

    @pytest.mark.parametrize(
        "needs", [json.dumps, math.sqrt, hash, lambda k: np.ones(2) * k, lambda k: [k].index(k)]
    )
    def test_in_any_place(self, needs):
        def fun(k, x, n, y, m, z):
            needs(k), needs(n), needs(m)
            y += x * n
            return z * k - m

        fast = dlaccelerate(fun, audit=False)
        for k in (1.0, 2.0, 3.0, 4.0, 5.0, 3.0, 3.0):
            mine, theirs = ([np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array(5.0)] for _ in range(2))
            found = fast(k, mine[0], k + 1, mine[1], k + 2, mine[2])
            np.testing.assert_allclose(
                tj.extractdata(found), fun(k, theirs[0], k + 1, theirs[1], k + 2, theirs[2])
            )
            for have, want in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(have, want)
