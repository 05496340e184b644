"""Attributes that code asks for by names that it computes: what is read of an object, and what only grows beside it."""

import builtins
import copy
import dataclasses
import functools
import inspect
import itertools
import operator
import types
import warnings
from operator import attrgetter as get_by

import numpy as np
import pytest

import tracejit as tj

SETTINGS = {"rate": 0.5}
MODULE = types.ModuleType("settings_by_name")


@dataclasses.dataclass
class Config:
    rate: float = 0.5
    size: int = 3


class Base:
    shared = 2.0

    @property
    def doubled(self):
        return 2 * self.k

    @property
    def over(self):
        return self.__dict__.get("over", 1.0)

    @over.setter
    def over(self, value):
        self.__dict__["over"] = value

    def scaled(self, factor):
        return self.k * factor


class State(Base):
    names = ("w", "b")

    def __init__(self):
        self.w, self.b, self.k, self.h, self.total = np.ones(2), np.zeros(2), 1.0, [], 0.0
        self.logs, self.config, self.parts = {"loss": []}, Config(), [Base(), Base()]
        for number, part in enumerate(self.parts):
            part.k = number + 1.0

    def parameters(self):
        for name in self.names:
            yield name, getattr(self, name)

    def updated(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


class Computed:
    def __init__(self, state):
        self.state = state

    def __getattr__(self, name):
        return getattr(self.state, name)


def number(s, x, name="k"):
    return x * getattr(s, name)


def missing(s, x):
    return x * sum(getattr(s, f"extra{i}", 1.0) for i in range(2))


def there(s, x):
    return x * (3.0 if all(hasattr(s, name) for name in ("k", "extra0")) else 2.0)


def assigned(s, x):
    for name in ("k", "total"):
        setattr(s, name, 4.0)
    return x


def assigned_in_parts(s, x):
    for part in s.parts:
        setattr(part, "k", 7.0)  # noqa: B010
    return x * s.parts[0].k


def deleted(s, x):
    for name in ("extra0", "extra1"):
        if hasattr(s, name):
            delattr(s, name)
    return x


def counted(s, x):
    for name in ("k",):
        setattr(s, name, getattr(s, name) + 1)
    return x * s.k


def descent(s, x):
    for name, value in dict(s.parameters()).items():
        setattr(s, name, value * 0.9 + x)
    return s.w + s.b


def in_place(s, x):
    for name in s.names:
        p = getattr(s, name)
        p *= 0.5
        p += x
    return s.w * 1


def by_its_own_state(s, x):
    return x * getattr(s, "w" if s.k > 2 else "b") + getattr(s, f"{'bw'[int(s.k) % 2]}")


def of_either(s, x):
    return x * getattr(s.config if s.k > 2 else s, "rate", s.k)


def of_parts(s, x):
    return x * sum(getattr(part, name) for part in s.parts for name in ("k",))


def through_an_alias(s, x):
    ask = getattr
    return x * ask(s, "".join("k")) * ask(s, "k")


def with_a_star(s, x):
    given = (s, "k")
    return x * getattr(*given)


def chosen_function(s, x):
    ask = getattr if x is not None else hasattr
    return x * ask(s, "k")


def chosen_for_a_map(s, x):
    return x * sum(map(getattr if x is not None else hasattr, (s,), ("k",)))


def copied_list(s, x):
    return x * len(copy.copy(s).h) + sum(copy.deepcopy(s).logs["loss"])


def copied_part(s, x):
    part = copy.deepcopy(s.parts)[1]
    return x * part.k


def through_vars(s, x):
    return x * sum(value for value in vars(s).values() if isinstance(value, float))


def lists_through_vars(s, x):
    return x * sum(len(value) for value in vars(s).values() if isinstance(value, list))


def own_dict(s, x):
    return x * s.__dict__["k"]


def stored_in_the_own_dict(s, x):
    s.__dict__["b"] = x * 2
    return s.b + 1


def counted_in_the_own_dict(s, x):
    vars(s)["k"] = vars(s)["k"] + 1
    return x * s.k


def counted_by_both_names(s, x):
    s.__dict__["k"] += 1
    s.k += 1
    return x * s.k


def counted_by_both_names_and_not_read(s, x):
    s.__dict__["k"] += 1
    s.k += 2
    return x * 2


def read_and_counted_in_the_own_dict(s, x):
    y = x * s.k
    s.__dict__["k"] += 1
    return y


def assigned_and_counted(s, x):
    s.__dict__["k"] = 5.0
    s.k += 2
    return x * 2


def read_by_one_name_and_counted_by_another(s, x):
    y = x * s.__dict__["k"]
    s.k += 1
    return y


def of_another_variable(s, x):
    if x is None:
        s = None
    return x * s.__dict__["k"] * vars(s)["k"]


def over_its_own_dict(s, x):
    s.over = s.over + x
    return s.over * 2


def own_dict_of_parts(s, x):
    return x * sum(part.__dict__["k"] for part in s.parts)


def numbers_in_the_own_dict(s, x):
    return x * sum(value for value in s.__dict__.values() if type(value) is float)


def kept_getters(s, x, get=operator.attrgetter("k")):
    return x * get(s) * sum(map(operator.attrgetter("k"), s.parts))


def computed_getter(s, x):
    return x * operator.attrgetter(*["k"])(s) + operator.attrgetter("config.rate")(s)


def getter_under_another_name(s, x, make=operator.attrgetter):
    return x * make("".join("k"))(s)


def made_by(make, *names):
    return make(*names)


def matched(s, x):
    match s.config:
        case Config(rate=rate):
            return x * rate


def defaults(s, x):
    return x * inspect.signature(number).parameters["name"].default.count("k")


READS = {
    "nothing": lambda s, x: x * 1,
    "a number": number,
    "missing ones": missing,
    "whether they are there": there,
    "numbers that are assigned": assigned,
    "numbers of parts that are assigned": assigned_in_parts,
    "deleted ones": deleted,
    "a counter": counted,
    "parameters": descent,
    "parameters in place": in_place,
    "by its own state": by_its_own_state,
    "of either object": of_either,
    "of parts": of_parts,
    "a property": lambda s, x: x * getattr(s, "".join("doubled")),
    "a method": lambda s, x: (getattr(s, "".join("updated"))(b=x * 2), s.b + 1)[1],
    "computed": lambda s, x: x * getattr(Computed(s), "".join("k")),
    "of the class": lambda s, x: x * getattr(type(s), "".join("shared")) * getattr(s, "".join("shared")),
    "of a module": lambda s, x: x * getattr(MODULE, "".join("rate")),
    "of NumPy": lambda s, x: getattr(np, "".join("sqrt"))(x * x + s.k),
    "of an array": lambda s, x: x * getattr(s.w, "".join("sum"))() + getattr(s.b, "".join("size")),
    "of the class above": lambda s, x: x * getattr(super(State, s), "".join("shared")),
    "a list": lambda s, x: x * len(getattr(s, "".join("h"))),
    "a list that grows": lambda s, x: (getattr(s, "".join("h")).append(s.k), x * 2)[1],
    "an alias": through_an_alias,
    "a star": with_a_star,
    "a chosen function": chosen_function,
    "a chosen function in a map": chosen_for_a_map,
    "a map": lambda s, x: x * sum(map(getattr, (s, s), ("k", "shared"))),
    "a partial": lambda s, x: x * functools.partial(getattr, s)("k"),
    "a table": lambda s, x: x * [getattr][0](s, "k"),
    "builtins": lambda s, x: x * builtins.getattr(s, "".join("k")),
    "starmap": lambda s, x: x * sum(itertools.starmap(getattr, [(s, "k")])),
    "vars": lambda s, x: x * vars(s)["k"],
    "vars of parts": lambda s, x: x * sum(vars(part)["k"] for part in s.parts),
    "all vars": through_vars,
    "lists in vars": lists_through_vars,
    "dir": lambda s, x: x * len([name for name in dir(s) if name.startswith("extra")]),
    "its dict": own_dict,
    "its parts' dicts": own_dict_of_parts,
    "numbers in its dict": numbers_in_the_own_dict,
    "stored in its dict": stored_in_the_own_dict,
    "counted in its dict": counted_in_the_own_dict,
    "counted by both names": counted_by_both_names,
    "read by one name and counted by another": read_by_one_name_and_counted_by_another,
    "counted by both names, not read": counted_by_both_names_and_not_read,
    "read, and counted in its dict": read_and_counted_in_the_own_dict,
    "assigned in its dict, and counted": assigned_and_counted,
    "counted in its dict, not read": lambda s, x: (vars(s).__setitem__("k", vars(s)["k"] + 1), x * 2)[1],
    "of another variable": of_another_variable,
    "over its dict": over_its_own_dict,
    "the class's dict": lambda s, x: x * (3.0 if "shared" in vars(type(s)) else 2.0) * len(type(s).__dict__),
    "the module's dict": lambda s, x: x * vars(MODULE)["rate"] * MODULE.__dict__["rate"],
    "set in its dict": lambda s, x: (s.__dict__.update(b=x * 2), s.b * 1)[1],
    "a copy of a dict": lambda s, x: x * copy.copy(SETTINGS)["rate"],
    "a deep copy of a dict": lambda s, x: x * copy.deepcopy(SETTINGS)["rate"],
    "a copy": lambda s, x: x * copy.copy(s).k,
    "a list in a copy": copied_list,
    "a part of a copy": copied_part,
    "copies in a map": lambda s, x: x * sum(part.k for part in map(copy.deepcopy, s.parts)),
    "replace": lambda s, x: x * dataclasses.replace(s.config, size=2).rate,
    "asdict": lambda s, x: x * dataclasses.asdict(s.config)["rate"],
    "fields": lambda s, x: x * sum(getattr(s.config, field.name) for field in dataclasses.fields(s.config)),
    "members": lambda s, x: x * dict(inspect.getmembers(s.config))["rate"],
    "static": lambda s, x: x * inspect.getattr_static(s, "".join("k")),
    "defaults": defaults,
    "an attrgetter": lambda s, x: x * operator.attrgetter("k")(s),
    "attrgetters": kept_getters,
    "a computed attrgetter": computed_getter,
    "an attrgetter by another name": getter_under_another_name,
    "an attrgetter in another namespace": lambda s, x: x * get_by("".join("k"))(s),
    "an attrgetter in a table": lambda s, x: x * [operator.attrgetter][0]("k")(s),
    "an attrgetter that is passed on": lambda s, x: x * made_by(operator.attrgetter, "k")(s),
    "attrgetters in a map": lambda s, x: x * sum(get(s) for get in map(operator.attrgetter, ("k", "shared"))),
    "a key": lambda s, x: x * sorted(s.parts, key=operator.attrgetter("k"))[-1].k,
    "a methodcaller": lambda s, x: x * operator.methodcaller("scaled", 2.0)(s),
    "an itemgetter": lambda s, x: x * operator.itemgetter("rate")(SETTINGS) + operator.itemgetter("k")(vars(s)),
    "a match": matched,
}  # fmt: skip


def total(s, y):
    s.total += y.sum().item()


EFFECTS = {
    "nothing": lambda s, y: None,
    "a number": lambda s, y: s.h.append(y.sum().item()),
    "an array": lambda s, y: s.h.append(y * 2),
    "in a dict": lambda s, y: s.logs["loss"].append(float(y[0])),
    "a total": total,
}
SHOWN = [
    "a number", "missing ones", "whether they are there", "numbers that are assigned", "deleted ones", "a counter",
    "parameters", "parameters in place", "of either object", "of parts", "a property", "a method", "computed",
    "of the class", "of a module", "of NumPy", "of an array", "of the class above", "vars", "vars of parts", "dir",
    "its dict", "stored in its dict", "counted in its dict",
    "a copy of a dict", "a deep copy of a dict", "a part of a copy", "copies in a map", "replace", "asdict", "fields",
    "members", "defaults", "an attrgetter", "attrgetters", "a key", "a methodcaller",
]  # fmt: skip
"""What does not read the list that grows."""


def changed(s, n):
    """Change a state from outside before call n."""
    if n == 6:
        s.k, s.config.rate, s.parts[1].k, MODULE.rate, SETTINGS["rate"] = 4.0, 0.25, 5.0, 3.0, 0.75
        State.shared = 1.5
    if n == 8:
        s.extra0, s.w, s.b[0] = 2.0, np.full(2, 3.0), 9.0
    if n == 10:
        s.total, s.h[:] = 1.0, s.h[1:]
    if n == 12:
        s.__dict__.pop("extra0", None)
        s.k = 2.0


def reset():
    MODULE.rate, SETTINGS["rate"] = 1.0, 0.5
    if "shared" in vars(State):
        del State.shared


def _plain(value):
    if isinstance(value, (Base, Config)):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [*map(_plain, value)]
    if isinstance(value, (tj.dlarray, np.ndarray, np.generic)):
        return np.asarray(value).round(12).tolist()
    return (type(value).__name__, round(value, 12)) if isinstance(value, float) else value


def _run(read, effect, accelerate, through):
    """Return the results of calls, with the state after each, and the function."""
    reset()
    state = State()

    def body(s, x):
        y = read(s, x)
        effect(s, y)
        return y

    function = accelerate(body if through == "an argument" else lambda x: body(state, x))
    found = []
    for n in range(15):
        changed(state, n)
        x = np.array([0.25 * n, 1.0 - n])
        result = function(state, x) if through == "an argument" else function(x)
        found.append((_plain(result), _plain(state)))
    reset()
    return found, function


@pytest.mark.sampled
@pytest.mark.parametrize("through", ["an argument", "a closure"])
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("read", READS)
def test_attributes_by_name(read, effect, through):
    """Replays follow what is read and changed by names, beside what grows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = _run(READS[read], EFFECTS[effect], lambda f: f, through)
        accelerate = functools.partial(tj.dlaccelerate, audit=False)
        found, _ = _run(READS[read], EFFECTS[effect], accelerate, through)
    for n, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, n


@pytest.mark.sampled
@pytest.mark.parametrize("through", ["an argument", "a closure"])
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("read", SHOWN)
def test_what_grows_beside_is_replayed(read, effect, through):
    """A call of getattr() reads the attribute that it gets, and a copy of one object reads that object only."""
    accelerate = functools.partial(tj.dlaccelerate, audit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tj.NotAcceleratedWarning)
        _, function = _run(READS[read], EFFECTS[effect], accelerate, through)
    assert function.stats.hits >= 4 and not function.stats.uncompiled


class Drawing:
    def __init__(self):
        self.w, self.source, self.h, self._state = np.ones(2), tj.Generator(1), [], 2.0

    def draw(self, x):
        return tj.rand(2, generator=self.source) * x


DRAWS = {
    "a computed name": lambda s, x: tj.rand(2, generator=getattr(s, "".join("source"))) * x,
    "other names": lambda s, x: s.draw(x) * sum(getattr(s, name)[0] for name in ("w",)),
    "all names": lambda s, x: s.draw(x) * len([*map(getattr, (s, s), ("w", "source"))]),
    "all vars": lambda s, x: s.draw(x) * len(vars(s)),
    "its dict": lambda s, x: s.draw(x) * len(s.__dict__),
    "a copy of a part": lambda s, x: s.draw(x) * copy.deepcopy(s.w),
    "an attribute of its own": lambda s, x: s.draw(x) * getattr(s.source, "".join("tag"), 3.0),
    "its own attribute's name": lambda s, x: s.draw(x) * sum(part._state for part in (s,)),
}


@pytest.mark.parametrize("draws", DRAWS.values(), ids=DRAWS)
def test_the_state_of_a_generator_is_not_read_by_names(draws):
    fast, plain = Drawing(), Drawing()
    accelerated = tj.dlaccelerate(lambda x: draws(fast, x), audit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tj.NotAcceleratedWarning)
        for n in range(15):
            x = np.array([0.25 * n, 1.0 - n])
            assert _plain(accelerated(x)) == _plain(tj.dlfeval(draws, plain, x))
            assert fast.source.state == plain.source.state
            for s in (fast, plain):
                if n == 6:
                    s.source, s._state = tj.Generator(5), 4.0
                if n == 10:
                    s.source.tag = 1.5
    assert accelerated.stats.hits >= 5
