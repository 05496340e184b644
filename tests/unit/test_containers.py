# SPDX-License-Identifier: BSD-3-Clause
"""Containers that functions take apart: as arguments, results and what gradients are taken by, and changed in place."""

import copy
import pickle
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, WriteError


class Plain(dict):
    pass


class ByAttribute(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class ItsOwn(dict):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Upper(dict):
    """A dict whose keys are read in upper case."""

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key.lower())


class Ordered(OrderedDict):
    pass


class Defaults(defaultdict):
    pass


class Names(types.SimpleNamespace):
    def total(self) -> Any:
        return self.w.sum() + self.b.sum()


class Elements(list):
    pass


class Pair(tuple):
    __slots__ = ()


@attrs.define
class Slotted:
    w: Any
    b: Any


@attrs.frozen(slots=False)
class Unchanging:
    w: Any
    b: Any


@attrs.define(slots=False, eq=False)
class WithDict:
    w: Any
    b: Any


class Line:
    def __init__(self, w: Any, b: Any, power: int = 2) -> None:
        self.w, self.b, self.power = w, b, power


class Both:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b

    def tree_flatten(self) -> Any:
        return [self.w, self.b], None

    @classmethod
    def tree_unflatten(cls, data: None, children: Any) -> Any:
        return cls(*children)


tj.tree.register(Line, lambda x: ((x.w, x.b), x.power), lambda power, parts: Line(*parts, power))
tj.tree.register(Both)

BY_KEY: dict[str, Callable[[Any, Any], Any]] = {
    kind.__name__: lambda w, b, kind=kind: kind(w=w, b=b)
    for kind in (Plain, ByAttribute, ItsOwn, Upper, Ordered)
}
BY_KEY["defaultdict"] = lambda w, b: defaultdict(list, w=w, b=b)
BY_KEY["Defaults"] = lambda w, b: Defaults(list, w=w, b=b)
BY_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Elements": lambda w, b: Elements([w, b]),
    "deque": lambda w, b: deque([w, b]),
    "deque of two": lambda w, b: deque([w, b], 2),
}
BY_NAME: dict[str, Callable[[Any, Any], Any]] = {
    "SimpleNamespace": lambda w, b: types.SimpleNamespace(w=w, b=b),
    "Names": lambda w, b: Names(w=w, b=b),
    "Slotted": Slotted,
    "WithDict": WithDict,
}
FIXED: dict[str, Callable[[Any, Any], Any]] = {
    "Pair": lambda w, b: Pair([w, b]),
    "Unchanging": Unchanging,
    "Line": Line,
    "Both": Both,
}
ALL = {**BY_KEY, **BY_PLACE, **BY_NAME, **FIXED}
W, B = np.array([1.0, -2.0, 3.0]), np.array([[0.5], [2.0]])


def parts(container: Any) -> tuple[Any, Any]:
    """Return the two parts of a container as a user's function reads them."""
    if isinstance(container, dict):
        return container["w"], container["b"]
    return (container.w, container.b) if hasattr(container, "w") else (container[0], container[1])


def inside(value: Any) -> Any:
    """Return a value as lists of numbers, with the classes of containers."""
    if isinstance(value, (dict, list, tuple, deque)):
        held = {key: inside(part) for key, part in value.items()} if isinstance(value, dict) else None
        return (
            type(value),
            held or [inside(part) for part in value],
            value.maxlen if type(value) is deque else None,
        )
    if hasattr(value, "w"):
        names = list(vars(value)) if hasattr(value, "__dict__") else ["w", "b"]
        return type(value), [(name, inside(getattr(value, name))) for name in names]
    return np.asarray(value).tolist()


def agree(function: Callable[..., Any], make: Callable[..., Any], calls: int = 4, traces: int = 1) -> Any:
    """Compare results, and arguments after the call, of plain Python, dlfeval and an accelerated function."""
    accelerated = tj.dlaccelerate(function)
    for call in range(calls):
        runs: list[Any] = []
        for run in (function, lambda *given: tj.dlfeval(function, *given), accelerated):
            container = make(W + call, B * (call + 1))
            result = run(container, np.array(float(call)))
            runs.append((inside(result), inside(container)))
        assert runs[1] == runs[0]
        assert runs[2] == runs[0]
    assert (accelerated.occupancy, accelerated.stats.uncompiled) == (2.0 * traces, 0)
    assert accelerated.stats.hits >= calls - 2 * traces
    return accelerated


@pytest.mark.parametrize("name", ALL)
def test_arrays_are_read(name: str) -> None:
    def function(p: Any, x: Any) -> Any:
        w, b = parts(p)
        return ((w * x + b) ** 2).sum()

    agree(function, ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_class(name: str) -> None:
    agree(lambda p, x: (ALL[name](parts(p)[0] * x, parts(p)[1] + 1), p), ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_gradients_have_the_class(name: str) -> None:
    def step(p: Any, x: Any) -> Any:
        w, b = parts(p)
        return tj.dlgradient(((w * x + b) ** 3).sum(), p)

    expected = tj.dlfeval(lambda w, b: tj.dlgradient(((w * 2.0 + b) ** 3).sum(), (w, b)), W, B)
    accelerated = tj.dlaccelerate(step)
    for run in (lambda *given: tj.dlfeval(step, *given), accelerated, accelerated, accelerated):
        found = run(ALL[name](W, B), np.float64(2.0))
        assert inside(found) == inside(ALL[name](*expected))


@pytest.mark.parametrize("name", ALL)
def test_a_step_returns_its_next_state(name: str) -> None:
    def step(p: Any, x: Any) -> Any:
        gradients = tj.dlgradient((parts(p)[0] * x + parts(p)[1]).sum() ** 2, p)
        return tj.tree.map(lambda a, g: a - 0.001 * g, p, gradients)

    accelerated, state, plain = tj.dlaccelerate(step), ALL[name](W, B), (W, B)
    for call in range(5):
        state = accelerated(state, np.array(float(call)))
        slope = 0.002 * (plain[0] * call + plain[1]).sum()
        plain = (plain[0] - slope * call * len(B), plain[1] - slope * len(W))
    assert type(state) is type(ALL[name](W, B))
    np.testing.assert_allclose(np.asarray(parts(state)[0]), plain[0], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(parts(state)[1]), plain[1], rtol=1e-12)
    assert accelerated.occupancy <= 4.0  # ndarrays at first


@pytest.mark.parametrize("name", ALL)
def test_elements_of_arrays_are_written(name: str) -> None:
    def function(p: Any, x: Any) -> Any:
        w, b = parts(p)
        w[0] = x
        b *= 2
        return w.sum()

    agree(function, ALL[name])


@pytest.mark.parametrize("name", BY_KEY)
def test_items_are_put_deleted_and_moved(name: str) -> None:
    def put(p: Any, x: Any) -> Any:
        p["w"] = p["w"] * x
        p["new"] = p["b"].sum()

    def delete(p: Any, x: Any) -> Any:
        w = p["w"]
        del p["w"]
        p["z"] = w + x
        p.update(w=w)

    agree(put, BY_KEY[name])
    agree(delete, BY_KEY[name])


@pytest.mark.parametrize("name", BY_PLACE)
def test_elements_are_put_appended_and_moved(name: str) -> None:
    def put(p: Any, x: Any) -> Any:
        p[0] = p[1] * x

    def append(p: Any, x: Any) -> Any:
        p.append(p[0] + x)
        p[0], p[1] = p[1], p[0]

    agree(put, BY_PLACE[name])
    agree(append, BY_PLACE[name])


@pytest.mark.parametrize("name", BY_NAME)
def test_attributes_are_assigned(name: str) -> None:
    def function(p: Any, x: Any) -> Any:
        p.w = p.w * x
        p.b += 1
        return p

    agree(function, BY_NAME[name])


def test_attributes_of_namespaces_are_new_or_deleted() -> None:
    def function(p: Any, x: Any) -> Any:
        del p.w
        p.total = p.b.sum() * x
        p.w = p.b

    agree(function, BY_NAME["SimpleNamespace"])
    agree(lambda p, x: p.total() * x, BY_NAME["Names"])


def test_containers_lie_in_containers() -> None:
    def make(w: Any, b: Any) -> Any:
        return types.SimpleNamespace(w=Plain(x=deque([w, {"y": b}])), b=Elements([Slotted(w, b)]))

    def function(p: Any, x: Any) -> Any:
        p.w["x"].append(p.b[0].w * x)
        p.b[0].w = p.w["x"][1]["y"]
        p.b.append(Line(x, p.w["x"][0]))
        return p.b

    agree(function, make)


def test_missing_items_are_made_by_the_factory() -> None:
    def function(p: Any, x: Any) -> Any:
        p["losses"].append(p["w"].sum() * x)

    agree(function, BY_KEY["defaultdict"])
    accelerated = tj.dlaccelerate(lambda p: p["none"] + p["w"])
    for factory in (int, lambda: 5, int):
        made = defaultdict(factory, w=np.ones(2))
        assert accelerated(made).tolist() == [1.0 + factory()] * 2
    assert accelerated.occupancy == 2.0 * 2


def test_other_keys_names_and_lengths_have_other_traces() -> None:
    accelerated = tj.dlaccelerate(lambda p: sum(tj.tree.leaves(p)) * len(tj.tree.leaves(p)))
    one, two = np.ones(2), np.full(2, 2.0)
    for container in (
        Plain(a=one), Plain(b=one), Plain(a=one, b=two), Plain(b=two, a=one), Plain({1: one}), Plain({True: one}),
        Elements([one]), Elements([one, two]), deque([one]), deque([one], 3), Names(a=one), Names(b=one),
    ):  # fmt: skip
        leaves = tj.tree.leaves(container)
        for _ in range(2):
            assert (
                accelerated(copy.copy(container)).tolist()
                == [3.0 * (len(leaves) - 1) * 2 + (2 - len(leaves))] * 2
            )
    assert accelerated.occupancy == 2.0 * 12


class Counted(dict):
    count = 0


class WithSlots(list):
    __slots__ = ("name",)


@pytest.mark.parametrize("kind", [Counted, WithSlots])
def test_containers_that_hold_more_are_leaves(kind: Any) -> None:
    container = kind()
    if kind is Counted:
        container.count = 3
    assert tj.tree.leaves([container])[0] is container
    accelerated = tj.dlaccelerate(lambda p, x: x + len(p))
    for _ in range(3):
        assert accelerated(container, np.ones(2)).tolist() == [1.0, 1.0]


def test_objects_without_hash_select_a_trace_by_identity() -> None:
    class Model:
        def __init__(self, w: Any) -> None:
            self.w = w

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Model)

        __hash__ = None  # type: ignore[assignment]

    accelerated = tj.dlaccelerate(lambda model, x: model.w * x)
    one, two = Model(2.0), Model(3.0)
    for model in (one, two, one, two):
        assert accelerated(model, np.ones(1)).tolist() == [model.w]
    one.w = 7.0
    assert accelerated(one, np.ones(1)).tolist() == [7.0]


@pytest.mark.parametrize("name", ALL)
def test_trees_of_containers(name: str) -> None:
    container = ALL[name](W, B)
    leaves, treedef = tj.tree.flatten(container)
    assert len(leaves) == 2
    assert leaves[0] is W or leaves[1] is W
    assert inside(tj.tree.unflatten(treedef, leaves)) == inside(container)
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef
    assert hash(again) == hash(treedef)
    assert inside(tj.tree.map(lambda x: x + 1, container)) == inside(ALL[name](W + 1, B + 1))
    assert repr(treedef) == f"TreeDef({tj.tree.unflatten(treedef, ['*'] * 2)!r})" or name in ("Line", "Both")
    other = tj.tree.flatten({"w": W})[1]
    assert (
        tj.tree.difference(treedef, other, "p")
        == f"p is a {type(container).__name__} in one and a dict in the other"
    )


def test_differences_of_containers_are_told() -> None:
    one, two = tj.tree.flatten(Plain(a=1, b=2))[1], tj.tree.flatten(Plain(a=1))[1]
    assert tj.tree.difference(one, two, "p") == (
        "p is a Plain with the keys ['a', 'b'] in one and a Plain with the keys ['a'] in the other"
    )
    one, two = tj.tree.flatten(Names(a=1, b=2))[1], tj.tree.flatten(Names(a=1))[1]
    assert tj.tree.difference(one, two, "p") == (
        "p is a Names with the attributes [a, b] in one and a Names with the attributes [a] in the other"
    )
    one, two = tj.tree.flatten(deque([1]))[1], tj.tree.flatten(deque([1, 2]))[1]
    assert tj.tree.difference(one, two, "p") == (
        "p is a deque of 1 element in one and a deque of 2 elements in the other"
    )


def test_registered_containers_are_not_changed() -> None:
    def function(p: Line) -> None:
        p.w = p.w * 2

    for run in (tj.dlaccelerate(function), lambda p: tj.dlfeval(function, p)):
        with pytest.raises(
            WriteError,
            match=r"the function changes (p|args\[0\]), a Line, whose class was registered by tj\.tree\.register, and "
            r"which the caller would not see changed\. Return a new one from the function\.",
        ):
            run(Line(W, B))


def test_registered_containers_that_make_their_parts_anew() -> None:
    class Computed:
        def __init__(self, w: Any) -> None:
            self.w = w

    tj.tree.register(Computed, lambda x: ((x.w * 1.0,), None), lambda _, parts: Computed(*parts))
    accelerated = tj.dlaccelerate(lambda p: p.w.sum())
    for call in range(3):
        assert float(accelerated(Computed(np.ones(2) * call))) == 2.0 * call


def test_registered_data_select_a_trace() -> None:
    accelerated = tj.dlaccelerate(lambda p: (p.w**p.power).sum())
    for power in (2, 3, 2, 3):
        assert float(accelerated(Line(W, B, power))) == (W**power).sum()
    assert accelerated.occupancy == 2.0 * 2


def test_what_cannot_be_registered() -> None:
    class Nothing:
        pass

    class Half:
        def tree_flatten(self) -> Any:
            return (), None

    with pytest.raises(ArgumentError, match=r"^register: kind must be a class, not 3\."):
        tj.tree.register(3)
    for kind in (dict, Plain, Line, Slotted, tj.nn.dlnetwork):
        with pytest.raises(
            ArgumentError,
            match=rf"^register: instances of {kind.__name__} are containers already; leave the call out\.",
        ):
            tj.tree.register(kind, lambda x: ((), None), lambda data, parts: None)
    with pytest.raises(
        ArgumentError, match=r"^register: Nothing has no method tree_flatten; pass flatten=, or write"
    ):
        tj.tree.register(Nothing)
    with pytest.raises(
        ArgumentError, match=r"^register: Half has no method tree_unflatten; pass unflatten=, or write"
    ):
        tj.tree.register(Half)
    with pytest.raises(ArgumentError, match=r"^register: flatten "):
        tj.tree.register(Nothing, 3, lambda data, parts: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("returned", [None, 3, ((1.0,),), ((1.0,), [2]), (1.0, None)])
def test_wrong_results_of_flatten_are_told(returned: Any) -> None:
    class Wrong:
        pass

    tj.tree.register(Wrong, lambda x: returned, lambda data, parts: Wrong())
    with pytest.raises(
        ArgumentError,
        match=r"^register: the flatten function of Wrong returned .*, expected a tuple \(children, data\)",
    ):
        tj.tree.flatten(Wrong())


def test_a_container_that_is_passed_twice_is_not_changed() -> None:
    def function(p: Any, q: Any) -> None:
        p["w"] = q["w"] + 1

    both = Plain(w=W)
    with pytest.raises(
        WriteError, match=r"p and q are the same Plain, and the function puts something into one"
    ):
        tj.dlaccelerate(function)(both, both)


def test_outlines_are_not_kept() -> None:
    import gc
    import weakref

    def used() -> Any:
        return weakref.ref(tj.tree.flatten(Plain({object(): 1.0}))[1].structure[1])

    outline = used()
    tj.tree.flatten(Plain({object(): 1.0}))  # the latest one is kept
    gc.collect()
    assert outline() is None


def test_optimisers_and_checks_take_them() -> None:
    @tj.dlaccelerate(check_mode="tolerance")
    def step(p: Any, velocity: Any) -> Any:
        gradients = tj.dlgradient((p.w**2).sum() + (p.b**2).sum(), p)
        return tj.sgdmupdate(p, gradients, velocity)

    state, velocity = Names(w=W, b=B), Names(w=0 * W, b=0 * B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            state, velocity = step(state, velocity)
    assert type(state) is type(velocity) is Names
