# SPDX-License-Identifier: BSD-3-Clause
"""Compiled call paths take what the general way would find the same, nothing else, and leave no references behind."""

import gc
import itertools
import random
import sys
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from effort import sweep
from tracejit.kernels.executor import state

import tracejit as tj
from tracejit import containers, tree
from tracejit.call import tables
from tracejit.call.result import ArrayLeaf, NumberLeaf, ResultLayout
from tracejit.call.signature import Key, NumberPart, key_call
from tracejit.errors import CodegenError
from tracejit.runtime import object_layout

Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: Any
    y: Any


class Name(str):
    __slots__ = ()


class Places(containers.Fixed):
    """The fixed part of nodes with some number of children."""

    title = "a bag"

    def __init__(self, count: int) -> None:
        self.count = count

    def places(self, kind: type) -> list[str]:
        return [f"<{number}>" for number in range(self.count)]


class Bag(tree.TreeNode):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"bag{self._leaves}"


PLACES = [Places(count) for count in range(5)]


def bag(*children: Any) -> Bag:
    made: Bag = tree.rebuild_node(Bag, PLACES[len(children)], children)
    return made


def array(*values: float) -> tj.dlarray:
    return tj.dlarray(np.array(values))


def key_of(*args: Any, **kwargs: Any) -> Key:
    return key_call("f", (args, kwargs), lambda *_: "x").key


KNOWN = [
    (array(1.0),),
    ({"w": array(1.0), "b": [array(2.0), None]}, 3, 2.5, "text", True, np.tanh),
    ((), [], {}, array(1.0)),
    (-0.0, float("inf"), 1 << 62, -(1 << 63), array(1.0)),
    (np.ones(2), ((((array(1.0),),),),)),
    (bag(array(1.0), 3), [bag(), bag(bag(array(2.0)))]),
]
UNKNOWN = [
    (Pair(array(1.0), 2),),
    (Point(array(1.0), 2),),
    (OrderedDict(a=array(1.0)),),
    ({1: array(1.0)},),
    (float("nan"), array(1.0)),
    (1 << 63, array(1.0)),
    (b"bytes", array(1.0)),
    (np.float32(2.0), array(1.0)),
    (2j, array(1.0)),
]


@pytest.mark.parametrize("args", KNOWN)
def test_patterns_for(args: Any) -> None:
    assert tables.pattern(key_of(*args)) is not None


@pytest.mark.parametrize("args", UNKNOWN)
def test_no_patterns_for(args: Any) -> None:
    assert tables.pattern(key_of(*args)) is None


def test_numbers_that_vary() -> None:
    structure, _, orders, _ = key_of(1.0, 2)
    found = tables.pattern(Key(structure, (NumberPart(float), NumberPart(int)), orders))
    assert found is not None
    assert (found.inputs, found.numbers) == (2, {0, 1})
    assert tables.pattern(Key(structure, (NumberPart(float), NumberPart(complex)), orders)) is None


@pytest.mark.parametrize(
    ("result", "known"),
    [
        (ArrayLeaf(None), True),
        ({"b": ArrayLeaf(None), "a": [1, None, "x"], "c": ()}, True),
        ((bag(ArrayLeaf(None), bag()), 1), True),
        ((np.ones(2), ArrayLeaf(None)), False),
        (NumberLeaf(float), False),
        (Pair(ArrayLeaf(None), 1), False),
        ({1: ArrayLeaf(None)}, False),
    ],
)
def test_recipes(result: Any, known: bool) -> None:
    leaves, treedef = tree.flatten(result, is_leaf=lambda leaf: isinstance(leaf, (ArrayLeaf, NumberLeaf)))
    assert (tables.recipe(ResultLayout(leaves, treedef)) is not None) is known


def leaves_of(value: Any) -> Iterator[Any]:
    """Give what is in a result, in order, with the types and keys of its containers."""
    if isinstance(value, (tj.dlarray, np.ndarray)):
        yield np.asarray(tj.extractdata(value) if isinstance(value, tj.dlarray) else value).tolist()
        yield getattr(value, "format", None)
        return
    yield type(value)
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from leaves_of(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves_of(part)
    elif isinstance(value, Point):
        yield from leaves_of((value.x, value.y))
    elif isinstance(value, Bag):
        yield value._fixed
        yield from leaves_of(value._leaves)
    else:
        yield value


def random_tree(rnd: random.Random, depth: int) -> Any:
    kind = rnd.randrange(8 if depth else 3)
    if kind <= 1:
        labels = rnd.choice(("", "C", "CB"))
        return tj.dlarray(np.asarray(rnd.random()) + np.zeros((2, 3)[: len(labels)]), labels)
    if kind == 2:
        return rnd.choice((None, 1, 2.5, "text", np.ones(2)))
    parts = [random_tree(rnd, depth - 1) for _ in range(rnd.randrange(4))]
    if kind == 3:
        return tuple(parts)
    if kind == 4:
        return parts
    if kind == 5:
        return Pair(*[*parts, 1, 2][:2]) if rnd.random() < 0.3 else [parts]
    if kind == 6:
        return bag(*parts)
    names = [f"n{i}" for i in range(len(parts))]
    rnd.shuffle(names)
    return dict(zip(names, parts, strict=True))


def bumped(value: Any) -> Any:
    """Return a tree with other arrays in it."""
    return tree.map(lambda leaf: leaf + 1.0 if isinstance(leaf, (tj.dlarray, np.ndarray)) else leaf, value)


@pytest.mark.parametrize("seed", range(sweep(10, 40)))
def test_random_arguments_and_results(seed: int) -> None:
    rnd = random.Random(seed)

    def step(given: Any, *, scale: Any = 1.0) -> Any:
        result = tree.map(
            lambda leaf: leaf * scale + 1.0 if isinstance(leaf, (tj.dlarray, np.ndarray)) else leaf, given
        )
        return result, {"z": result, "a": [7, None, "same"]}

    accelerated = tj.dlaccelerate(step, confirm=0, audit=False)
    given = {"p": random_tree(rnd, 3), "x": array(1.0, 2.0)}
    kept = []
    for i in range(12):
        wanted = step(given, scale=2.0)
        found = accelerated(given, scale=2.0)
        assert list(leaves_of(found)) == list(leaves_of(wanted))
        if rnd.random() < 0.3:
            kept.append((found, list(leaves_of(found))))
        given = bumped(given) if i % 3 else found[0]
    assert accelerated.stats.traces <= 2  # an ndarray comes back as a dlarray
    for found, before in kept:
        assert list(leaves_of(found)) == before


CHANGES: list[tuple[Any, Any, bool]] = [  # arguments, other ones, whether the same trace applies
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": 1}, {}, False),
    ({"a": 1}, {"b": 1}, False),
    ({"name": 1}, {"".join(("na", "me")): 1}, True),
    ({"a": 1}, OrderedDict(a=1), False),
    ((1, 2), [1, 2], False),
    ((1, 2), Pair(1, 2), False),
    ((1, 2), (1, 2, 3), False),
    ([1, 2], [1], False),
    (bag(1, 2), bag(1, 2), True),
    (bag(1, 2), bag(1, 3), False),
    (bag(1, 2), bag(1), False),
    (bag(1, 2), (1, 2), False),
    (bag(1), tree.rebuild_node(Bag, Places(1), (1,)), False),
    (1, True, False),
    (1, 1.0, False),
    (0, False, False),
    (1.0, np.float64(1.0), False),
    (0.0, -0.0, False),
    (float("nan"), float("nan"), True),
    (1 << 40, 1 << 40, True),
    (1 << 40, (1 << 40) + 1, False),
    (1 << 70, 1 << 70, True),
    ("text", "".join(("te", "xt")), True),
    ("text", "Text", False),
    ("text", Name("text"), False),
    (None, 0, False),
    (None, (), False),
    (np.tanh, np.sinh, False),
]


@pytest.mark.parametrize(("first", "second", "is_same"), CHANGES)
def test_a_different_argument_makes_a_new_trace(first: Any, second: Any, is_same: bool) -> None:
    def shown(x: tj.dlarray, given: Any) -> Any:
        return x * 2, repr(given), type(given).__name__

    function = tj.dlaccelerate(shown, confirm=0, audit=False)
    x = array(1.0, 2.0)
    for given in (first, first, first, second, second, second, first, second):
        assert list(leaves_of(function(x, given))) == list(leaves_of(shown(x, given)))
    assert function.stats.traces == (1 if is_same else 2)


@pytest.mark.parametrize("kind", [float, int])
def test_numbers_are_read_at_each_call(kind: type) -> None:
    function = tj.dlaccelerate(lambda x, s: {"y": x * s, "z": [s * 2 + x]}, confirm=0, audit=False)
    x = array(1.0, -2.0)
    values = [2, 3, 5, 7, 11, 13, -1, 0, 1 << 40, -(1 << 52)]
    for value in itertools.chain(values, values):
        found = function(x, kind(value))
        np.testing.assert_array_equal(tj.extractdata(found["y"]), np.array([1.0, -2.0]) * kind(value))
        np.testing.assert_array_equal(tj.extractdata(found["z"][0]), kind(value) * 2 + np.array([1.0, -2.0]))
    assert function.stats.traces < 10


def test_integers_that_do_not_fit() -> None:
    function = tj.dlaccelerate(lambda x, n: x * (n % 1000), confirm=0, audit=False)
    for n in (5, 6, 7, 8, 9, 1 << 62, (1 << 63) - 1, 3, (1 << 64) + 7, 4, -(1 << 64) - 7):
        assert function(array(1.0), n).tolist() == [float(n % 1000)]


def test_a_number_of_another_kind() -> None:
    function = tj.dlaccelerate(lambda x, s: [x * s], confirm=0, audit=False)
    for value in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7, 8, 9, 10, 11, 12):
        assert function(array(1.0), value)[0].tolist() == [value]
    for other in (3, True, 2.5, np.float64(7.0), array(6.0), 1.25, -4):
        assert function(array(1.0), other)[0].tolist() == [float(other)]


def test_an_array_without_labels_is_a_different_argument() -> None:
    function = tj.dlaccelerate(lambda p: [p["x"] * 2], confirm=0, audit=False)
    data = np.ones((2, 3))
    for _ in range(3):
        for _ in range(3):
            assert function({"x": tj.dlarray(data, "CB")})[0].format == "CB"
        assert function({"x": data})[0].format is None


def counted(function: Callable[[], Any], objects: list[Any], calls: int = 200) -> list[int]:
    """Return by how many references to each object calls leave more."""
    for _ in range(100):  # after which traces that are used by turns share a call path
        function()
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(calls):
        function()
    gc.collect()
    after = [sys.getrefcount(each) for each in objects]
    return [now - then for now, then in zip(after, before, strict=True)]


def test_references_are_given_back() -> None:
    constant, key = object(), "a key of no other dict"
    x, y = array(1.0, 2.0), np.ones(2)
    weights = {"w": x, key: [y, 1 << 50], "bag": bag(x, constant)}

    @tj.dlaccelerate(confirm=0, audit=False)
    def step(given: Any, scale: float) -> Any:
        total = bag(given["w"].sum(), constant) if "bag" in given else None
        return {"out": [given["w"] * scale + given[key][0]], key: (constant, None, ()), "s": total}

    scales = itertools.cycle((0.5, 2.5, 3.5))
    numbers = list(itertools.islice(scales, 3))
    for scale in (*numbers, 1.0, 9.0):
        step(weights, scale)
    objects = [constant, key, x, x._data, y, weights, weights[key], *numbers, 1 << 50, type(x), dict, list]
    for call in (
        lambda: step(weights, next(scales)),
        lambda: step({"w": x, key: [y, 2]}, next(scales)),  # a miss at first
        lambda: step(weights, next(scales))["out"],
    ):
        assert counted(call, objects) == [0] * len(objects)
    blocks = sys.getallocatedblocks()
    for _ in range(2000):
        step(weights, next(scales))
    assert sys.getallocatedblocks() - blocks < 500


def test_when_there_is_no_memory() -> None:
    memory_of = pytest.importorskip("_testcapi")
    constant, key, x = object(), "another key of no other dict", array(1.0, 2.0)

    @tj.dlaccelerate(confirm=0, audit=False)
    def step(given: Any) -> Any:
        return {
            key: [given["x"] * 2, (constant, {"z": given["x"] + 1, key: constant})],
            "bag": [constant, bag(given["x"] + 3, bag(constant))],
            "s": dict.fromkeys("abcdefghij", constant),
        }

    objects = [constant, key, x, x._data]
    failed = 0
    given = {"x": x}
    for _ in range(5):
        step(given)
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    for start in range(60):
        memory_of.set_nomemory(start, start + 1)
        try:
            step(given)
        except MemoryError:
            memory_of.remove_mem_hooks()
            failed += 1
        finally:
            memory_of.remove_mem_hooks()
        assert step(given)[key][0].tolist() == [2.0, 4.0]
    gc.collect()
    assert failed > 4
    assert [sys.getrefcount(each) for each in objects] == before


def test_inputs_live_as_long_as_the_program_runs() -> None:
    """Another thread empties the containers while the program runs without the lock of Python."""
    n = 200_000
    holder: dict[str, Any] = {}
    function = tj.dlaccelerate(lambda given: given["x"][0] * 2 + 1, confirm=0, audit=False)
    for _ in range(3):
        function({"x": [tj.dlarray(np.zeros(n))]})
    stop = threading.Event()

    def clear() -> None:
        while not stop.is_set():
            given = holder.get("given")
            if given:
                given["x"].clear()
                given["x"] = []
                np.full(n, np.nan)  # what is freed is used again

    thread = threading.Thread(target=clear)
    thread.start()
    try:
        for i in range(300):
            given = {"x": [tj.dlarray(np.full(n, float(i)))]}
            holder["given"] = given
            try:
                found = function(given)
            except IndexError:  # it was emptied before
                continue
            assert (tj.extractdata(found) == 2 * i + 1).all()
    finally:
        stop.set()
        thread.join()


def test_a_result_may_call_the_function_as_it_goes() -> None:
    function = tj.dlaccelerate(lambda x: {"y": [x + 1], "n": None}, confirm=0, audit=False)
    seen = []

    class Goes:
        def __del__(self) -> None:
            seen.append(function(array(5.0))["y"][0].tolist())

    for i in range(30):
        found = function(array(float(i)))
        found["n"] = Goes()
        assert found["y"][0].tolist() == [i + 1.0]
        del found
    assert seen == [[6.0]] * 30


def test_containers_of_results_are_the_callers() -> None:
    function = tj.dlaccelerate(lambda x: {"y": [x + 1], "t": (x * 2,)}, confirm=0, audit=False)
    for i in range(10):
        found = function(array(float(i)))
        assert list(found) == ["y", "t"]
        found["y"].append(1)
        found["t"] = found.pop("y")
        assert gc.is_tracked(found)


def test_one_result_under_several_names() -> None:
    def twice(x: tj.dlarray) -> Any:
        y = x + 1
        return {"a": y, "b": [y, x]}

    function = tj.dlaccelerate(twice, confirm=0, audit=False)
    for i in range(6):
        assert list(leaves_of(function(array(float(i))))) == list(leaves_of(twice(array(float(i)))))


def test_arrays_of_an_evaluation_go_the_general_way() -> None:
    function = tj.dlaccelerate(lambda p: {"loss": (p["x"] * p["x"]).sum()}, confirm=0, audit=False)
    for _ in range(4):
        function({"x": array(3.0)})

    def gradient(x: tj.dlarray) -> Any:
        loss = function({"x": x})["loss"]
        return loss, tj.dlgradient(loss, x)

    for i in range(4):
        loss, slope = tj.dlfeval(gradient, array(float(i)))
        assert (loss.item(), slope.tolist()) == (i * i, [2.0 * i])
        assert function({"x": array(2.0)})["loss"].item() == 4.0


def test_guards_that_do_not_hold() -> None:
    def branching(x: tj.dlarray) -> Any:
        return {"y": x * 2} if x.sum() > 0 else {"z": [x - 1]}

    function = tj.dlaccelerate(branching, confirm=0, audit=False)
    rnd = random.Random(0)
    for _ in range(60):
        x = array(rnd.uniform(-1, 1), 0.0)
        assert list(leaves_of(function(x))) == list(leaves_of(branching(x)))
    assert function.stats.traces == 2


def test_captured_arrays() -> None:
    weights = {"w": array(2.0)}
    function = tj.dlaccelerate(lambda given: [given["x"] * weights["w"]], confirm=0, audit=False)
    for i in range(8):
        weights["w"] = array(float(i))
        assert function({"x": array(3.0)})[0].tolist() == [3.0 * i]
    assert function.stats.traces == 1


@pytest.mark.parametrize("missing", ["_data", "_format", "_value"])
def test_an_array_whose_attribute_was_deleted(missing: str) -> None:
    function = tj.dlaccelerate(lambda p: [p["x"] * 2], confirm=0, audit=False)
    for _ in range(3):
        function({"x": array(1.0)})
    x = array(1.0)
    delattr(x, missing)
    with pytest.raises(AttributeError, match=missing):
        function({"x": x})


def test_arrays_that_are_not_aligned() -> None:
    function = tj.dlaccelerate(lambda p: [p["x"] * 2], confirm=0, audit=False)
    aligned = np.arange(12.0)[::2]
    other = np.zeros(97, np.uint8)[1:].view(np.float64)[::2]
    other[:] = aligned + 1
    assert (aligned.strides, aligned.flags.aligned) == (other.strides, not other.flags.aligned)
    for _ in range(4):
        assert function({"x": aligned})[0].tolist() == (2 * aligned).tolist()
    assert function({"x": other})[0].tolist() == (2 * aligned + 2).tolist()
    assert function.stats.traces == 2


def test_who_keeps_what_runs_programs() -> None:
    """A profiler is shown the compiled function, and may ask for its name when the program is long gone."""
    function = tj.dlaccelerate(lambda p: [p["x"] * 2], confirm=0, audit=False)
    used = [function({"x": array(1.0)}) for _ in range(3)]  # so that Python replaces results of the next call
    seen: list[Any] = []
    sys.setprofile(lambda _, event, given: seen.append(given) if event == "c_call" else None)
    try:
        function({"x": array(1.0)})
    finally:
        sys.setprofile(None)
    (kept,) = {id(each): each for each in seen if each.__name__ == "enter"}.values()  # twice at first
    del seen[:], function
    gc.collect()
    others = [bytes([i % 256] * 31) for i in range(5000)]  # what is freed is used again
    assert kept.__name__ == "enter"
    assert len(others) == 5000
    assert len(used) == 3


def test_a_python_whose_objects_begin_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    object_layout.check_layout.__wrapped__()
    for name, value in (("OBJECT_BYTES", 32), ("ARRAY_WEAK", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(state, name, value)
            with pytest.raises(
                CodegenError, match=r"lays out its objects differently\. Set TRACEJIT_BACKEND=python"
            ):
                object_layout.check_layout.__wrapped__()


def test_many_threads_at_once() -> None:
    function = tj.dlaccelerate(
        lambda p, s: {"p": {"w": p["w"] * s, "b": [p["b"][0] + 1]}, "loss": p["w"].sum()},
        confirm=0,
        audit=False,
    )
    wrong = []

    def run(start: float) -> None:
        p: Any = {"w": array(start, 1.0), "b": [array(0.0)]}
        for i in range(400):
            out = function(p, 1.0)
            if out["loss"].item() != start + 1 or out["p"]["b"][0].item() != i + 1:
                wrong.append((start, i))
            p = out["p"]

    threads = [threading.Thread(target=run, args=(100.0 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("missing", ["_fixed", "_leaves"])
def test_a_node_whose_attribute_was_deleted(missing: str) -> None:
    @tj.dlaccelerate(confirm=0, audit=False)
    def doubled(given: Any) -> Any:
        return bag(*[2 * child for child in given._leaves])

    for _ in range(4):
        assert doubled(bag(array(1.0)))._leaves[0].tolist() == [2.0]
    broken = bag(array(1.0))
    delattr(broken, missing)
    with pytest.raises(AttributeError):
        doubled(broken)
    broken = bag(array(1.0))
    broken._leaves = [array(4.0)]
    assert doubled(broken)._leaves[0].tolist() == [8.0]  # the general way
