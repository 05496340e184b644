# SPDX-License-Identifier: BSD-3-Clause
"""Containers flattened and unflattened."""

import dataclasses
import gc
import inspect
import pickle
import sys
import weakref
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tracejit import ArgumentError, tree


class Pair(namedtuple("Pair", "first second")):
    __slots__ = ()


@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: Any
    size: int = dataclasses.field(init=False, default=0)


TEXTS = st.text(
    "aB0_\"'\\\n\0\u00e9\u20ac\U0001f600", max_size=2
)  # all of Unicode is a table that takes seconds to make
KEYS = st.one_of(TEXTS, st.integers(0, 3))
TREES = st.recursive(
    st.one_of(st.integers(), st.none(), TEXTS),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(KEYS, children, max_size=3),
        st.dictionaries(KEYS, children, max_size=3).map(OrderedDict),
        st.builds(Pair, children, children),
        st.builds(Layer, children, children),
        st.builds(Frozen, children),
    ),
    max_leaves=10,
)


def with_reversed_dicts(x):
    if isinstance(x, OrderedDict):
        return x  # compares by order
    if isinstance(x, dict):
        return {key: with_reversed_dicts(x[key]) for key in reversed(x)}
    if isinstance(x, list):
        return [with_reversed_dicts(part) for part in x]
    if type(x) is tuple:
        return tuple(with_reversed_dicts(part) for part in x)
    if isinstance(x, Layer):
        return Layer(with_reversed_dicts(x.weights), with_reversed_dicts(x.bias))
    return x


@given(TREES)
def test_round_trip(x):
    leaves, treedef = tree.flatten(x)
    again = tree.unflatten(treedef, leaves)
    assert again == x and repr(again) == repr(x)  # repr shows the types and the order of keys
    assert treedef.size == len(leaves) == len(tree.paths(treedef, "x"))
    assert tree.difference(treedef, treedef, "x") is None


@given(TREES)
def test_the_order_of_keys_makes_no_difference(x):
    leaves, treedef = tree.flatten(x)
    turned = with_reversed_dicts(x)
    other_leaves, other = tree.flatten(turned)
    assert leaves == other_leaves
    assert treedef == other and hash(treedef) == hash(other)
    assert repr(tree.unflatten(other, leaves)) == repr(turned)


@given(TREES, TREES)
def test_difference_exists_exactly_where_treedefs_differ(x, y):
    first, second = tree.flatten(x)[1], tree.flatten(y)[1]
    difference = tree.difference(first, second, "x")
    assert (first == second) == (difference is None)


@given(TREES)
def test_paths_lead_to_the_leaves(x):
    leaves, treedef = tree.flatten(x)
    for path, leaf in zip(tree.paths(treedef, "x"), leaves, strict=True):
        assert eval(path, {"x": x}) is leaf


def test_leaves():
    class Custom:
        pass

    for leaf in (1, 1.0, "text", {1, 2}, Custom(), len, Layer):
        leaves, treedef = tree.flatten(leaf)
        assert leaves == [leaf] and tree.paths(treedef, "x") == ["x"]
    assert tree.flatten(None)[0] == []
    assert tree.flatten([1, (2, 3)], is_leaf=lambda x: type(x) is tuple)[0] == [1, (2, 3)]


def test_leaves_alone():
    nested = {"w": [1, (2, None)], "b": OrderedDict(z=3, a={})}
    assert tree.leaves(nested) == tree.flatten(nested)[0] == [3, 1, 2]
    assert tree.leaves(nested, is_leaf=lambda part: isinstance(part, list)) == [3, [1, (2, None)]]
    assert tree.leaves(5) == [5] and tree.leaves(None) == []
    loop = []
    loop.append(loop)
    with pytest.raises(ArgumentError, match="leaves: a container holds itself"):
        tree.leaves(loop)


def below(depth, function):
    """Return what a function gives so many calls below this one."""
    return function() if depth == 0 else below(depth - 1, function)


@pytest.mark.parametrize("nested", [[1, {"a": (2, 3)}], 1, [[[[[[[[1]]]]]]]]])
def test_a_caller_near_the_recursion_limit(nested):
    found = set()
    for left in range(60):
        depth = sys.getrecursionlimit() - len(inspect.stack()) - left
        try:
            found.add(type(below(depth, lambda: tree.flatten(nested))))
        except RecursionError as error:
            found.add(type(error))
    assert found == {tuple, RecursionError}


def test_kinds_are_told_apart():
    treedefs = [tree.flatten(x)[1] for x in ([], (), {}, None, OrderedDict(), Pair(None, None), 0)]
    assert all(a != b for i, a in enumerate(treedefs) for b in treedefs[:i])
    assert treedefs[0] != "a treedef"


def test_a_dataclass_is_made_without_its_init():
    frozen = Frozen(1)
    again = tree.map(lambda leaf: leaf + 5, frozen)
    assert (again.x, again.size) == (6, 5)


def test_map():
    assert tree.map(lambda a, b: a + b, {"u": 1, "v": [2]}, {"v": [20], "u": 10}) == {"u": 11, "v": [22]}
    with pytest.raises(
        ArgumentError,
        match=r"map: tree 2 differs from the first: tree\['v'\] is a list in one and a single value",
    ):
        tree.map(max, {"v": [2]}, {"v": 2})


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([1, 2], [1], "x has 2 elements in one and 1 in the other"),
        ({"a": 1}, {"b": 1}, r"x has the keys \['a'\] in one and \['b'\] in the other"),
        ([Layer(1, None)], [Layer(1, 2)], r"x\[0\].bias is None in one and a single value in the other"),
        ((1,), [1], "x is a tuple in one and a list in the other"),
    ],
)
def test_difference(first, second, text):
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(tree.difference(tree.flatten(first)[1], tree.flatten(second)[1], "x"))


def test_number_of_leaves():
    with pytest.raises(ArgumentError, match="unflatten: the tree has 2 leaves, but 1 were given"):
        tree.unflatten(tree.flatten([1, 2])[1], [1])


def test_repr():
    assert repr(tree.flatten({"a": [1, None]})[1]) == "TreeDef({'a': ['*', None]})"


@dataclasses.dataclass
class Scaled:
    factor: object
    shift: object


NESTED = {"b": [1, (2, None)], "a": Scaled(3, {2: 4, 1: 5})}


def test_fold_goes_from_the_leaves_to_the_root_with_keys_in_the_users_order():
    leaves, treedef = tree.flatten(NESTED)
    seen = []

    def container(kind, names, children):
        seen.append((kind.__name__, names, children))
        return f"<{kind.__name__}>"

    assert tree.fold(treedef.structure, treedef.orders, iter(leaves).__next__, container) == "<dict>"
    assert seen == [
        ("dict", (2, 1), [4, 5]),
        ("Scaled", ("factor", "shift"), [3, "<dict>"]),
        ("NoneType", None, []),
        ("tuple", None, [2, "<NoneType>"]),
        ("list", None, [1, "<tuple>"]),
        ("dict", ("b", "a"), ["<list>", "<Scaled>"]),
    ]


def test_walk_goes_from_the_root_to_the_leaves_and_gives_each_child_its_place():
    leaves, treedef = tree.flatten(NESTED)
    places = []

    def container(place, kind, names, length):
        return [f"{place}.{name}" for name in (range(length) if names is None else names)]

    tree.walk(treedef.structure, treedef.orders, "root", places.append, container)
    assert dict(zip(places, leaves, strict=True)) == {
        "root.a.factor": 3, "root.a.shift.1": 5, "root.a.shift.2": 4, "root.b.0": 1, "root.b.1.0": 2,
    }  # fmt: skip


def test_without_orders_keys_are_sorted():
    _, treedef = tree.flatten({"b": 1, "a": 2})
    names = tree.fold(treedef.structure, None, lambda: (), lambda kind, names, children: names)
    assert names == ("a", "b") and treedef.orders == [("b", "a")]


def test_nothing_is_kept_when_a_call_has_ended():
    """The arrays of a recording are released at once: what somebody holds is no constant of a trace."""

    class Leaf:
        pass

    leaf = Leaf()
    leaves, treedef = tree.flatten({"a": [leaf], "b": None})
    gc.disable()
    try:
        tree.unflatten(treedef, leaves)
        tree.paths(treedef, "x")
        tree.walk(treedef.structure, None, leaf, lambda place: None, lambda *given: [given[0]] * given[3])
        reference = weakref.ref(leaf)
        leaves.clear()
        del leaf
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "value", [1, "leaf", {"leaf": 1, "b": [2, (3, None)]}, OrderedDict(b=1, a={"x": 2}), Pair(1, [2])]
)
def test_a_treedef_of_a_pickle(value: Any) -> None:
    leaves, treedef = tree.flatten(value)
    read = pickle.loads(pickle.dumps(treedef))
    assert read == treedef and tree.unflatten(read, leaves) == value
    assert tree.paths(read, "x") == tree.paths(treedef, "x")


@dataclasses.dataclass
class Computed:
    """A dataclass that makes itself, and computes a field."""

    weights: np.ndarray
    size: int  # type: ignore[misc]

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    @property
    def size(self) -> int:  # type: ignore[no-redef]
        return self.weights.size


def test_a_dataclass_with_a_computed_field_is_an_object() -> None:
    model = Computed(np.arange(3.0))
    assert tree.leaves([model]) == [model]
    step = tj.dlaccelerate(lambda x, m: x * m.weights + m.size)
    for n in range(5):
        model.weights = np.arange(3.0) + n
        np.testing.assert_array_equal(step(np.ones(3), model), model.weights + 3)
    assert step.stats.hits > 1
    np.testing.assert_array_equal(tj.dlfeval(lambda x, m: x * m.weights, np.ones(3), model), model.weights)
