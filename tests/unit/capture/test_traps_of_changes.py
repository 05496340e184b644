# SPDX-License-Identifier: BSD-3-Clause
"""Traps: what a function changes outside, and reads for that change only or not at all.

After each call everything outside is as after the plain function, or a warning says that it is not.
"""

import collections
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changing_programs import MODULE, REPLAYED, TOLD, frozen

import tracejit as tj
from tracejit.record.side_effects import SideEffects


def followed(body: str, accelerated: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """Return what was outside after each of 12 calls, and the function."""
    names: dict[str, Any] = {"collections": collections}
    exec(MODULE.replace("BODY", body), names)
    program, outside, reset = names["make"](accelerated)
    found = []
    for call in range(12):
        if call in (4, 8):
            reset()
        result = program(np.full(2, float(call)))
        found.append([frozen(result), frozen(outside())])
    return found, program


@pytest.mark.sampled
@pytest.mark.parametrize("body", REPLAYED)
def test_what_replays_repeat(body: str) -> None:
    found, program = followed(body, tj.dlaccelerate(audit=False))
    assert found == followed(body, lambda fun: fun)[0]
    assert program.stats.hits >= 2
    assert not program.stats.uncompiled


@pytest.mark.sampled
@pytest.mark.parametrize("body", TOLD)
def test_what_replays_do_not_repeat_is_told(body: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, program = followed(body, tj.dlaccelerate(audit=False))
    (warning,) = told
    if issubclass(warning.category, tj.NotAcceleratedWarning):
        assert found == followed(body, lambda fun: fun)[0]
    else:
        assert issubclass(warning.category, tj.LostChangeWarning)
        assert program.stats.hits == 10


class Box:
    def __init__(self) -> None:
        self.n, self.t, self.x = 0, 0.0, tj.dlarray(np.zeros(2))


def same_as_plain(
    make: Callable[[Any], tuple[list[Callable[[Any], Any]], Callable[[], Any], Callable[[int], Any]]],
    confirm: int = 1,
) -> Any:
    """Call functions as plain ones and accelerated, and compare results and state; return the accelerated ones.

    `make` gives functions, one that returns the state, and one that changes it before a call.
    """
    found: list[Any] = []
    made: list[Any] = []
    for accelerated in (tj.dlaccelerate(audit=False, confirm=confirm), lambda fun: fun):
        functions, outside, change = make(accelerated)
        found.append([])
        for number in range(18):
            change(number)
            results = [frozen(function(np.full(2, float(number)))) for function in functions]
            found[-1].append((results, frozen(outside())))
        made = made or functions
    assert found[0] == found[1]
    return made


@pytest.mark.parametrize("kind", ["counts", "floats", "arrays", "read"])
def test_objects_that_were_apart_become_one(kind: str) -> None:
    def make(accelerated: Any) -> Any:
        boxes = [Box(), Box()]

        def counts(x: Any) -> Any:
            boxes[0].n += 1
            boxes[1].n += 2
            return x

        def floats(x: Any) -> Any:
            boxes[0].t += 0.5
            boxes[1].t += 0.25
            return x

        def arrays(x: Any) -> Any:
            boxes[0].x = boxes[0].x + x
            boxes[1].x = boxes[1].x * 2 + x
            return x

        def read(x: Any) -> Any:
            boxes[0].n += 1
            return x * boxes[1].n

        step = {"counts": counts, "floats": floats, "arrays": arrays, "read": read}[kind]

        def change(number: int) -> None:
            if number == 6:
                boxes[1] = boxes[0]
                boxes[0].n = 0
            if number == 12:
                boxes[1] = Box()

        def outside() -> Any:
            return [[box.n, box.t, box.x] for box in boxes]

        return [accelerated(step)], outside, change

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        (step,) = same_as_plain(make)
    assert step.stats.hits > 0


@pytest.mark.parametrize("kind", ["cell", "namespace", "attributes"])
def test_two_paths_to_one_number(kind: str) -> None:
    def make(accelerated: Any) -> Any:
        c = 0
        module = types.ModuleType("of_a_test")
        exec("n = 0\ndef bump():\n    global n\n    n += 1", vars(module))
        box = Box()

        def first() -> None:
            nonlocal c
            if kind == "cell":
                c += 1
            elif kind == "namespace":
                module.n += 1
            else:
                box.n += 1

        def second() -> None:
            nonlocal c
            if kind == "cell":
                c += 10
            elif kind == "namespace":
                module.bump()
            else:
                box.__dict__["n"] += 10

        def step(x: Any) -> Any:
            first()
            second()
            first()
            return x * 2

        return [accelerated(step)], lambda: [c, module.n, box.n], lambda _: None

    (step,) = same_as_plain(make)
    assert step.stats.hits > 10


@pytest.mark.parametrize("confirm", [0, 1])
def test_what_a_function_with_a_cache_assigns_when_it_runs(confirm: int) -> None:
    def make(accelerated: Any) -> Any:
        box = Box()

        @functools.lru_cache
        def table(k: int) -> Any:
            box.n += 1
            return np.arange(2.0) * k

        def step(x: Any) -> Any:
            return x * table(3)

        def change(number: int) -> None:
            if number == 9:
                table.cache_clear()

        return [accelerated(step)], lambda: box.n, change

    (step,) = same_as_plain(make, confirm)
    assert step.stats.hits > 10


@pytest.mark.parametrize("size", [300, 20_000, (1 << 20) + 1])
@pytest.mark.parametrize("kind", ["adds", "assigns", "assigns by a name", "appends"])
def test_large_lists(kind: str, size: int) -> None:
    box, k = [*range(size)], 7

    def adds(x: Any) -> Any:
        box[7] += 1
        return x

    def assigns(x: Any) -> Any:
        box[7] = -1
        return x

    def assigns_by_a_name(x: Any) -> Any:
        box[k] = -1
        return x

    def appends(x: Any) -> Any:
        box.append(1)
        return x

    functions = {"adds": adds, "assigns": assigns, "assigns by a name": assigns_by_a_name, "appends": appends}
    step = tj.dlaccelerate(functions[kind], audit=False)
    is_told = kind in ("appends", "assigns by a name") and size > 1 << 20
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for call in range(10):
            if call == 5:
                box[7] = 7
            step(np.ones(2))
            if kind == "adds":
                assert box[7] == (8 + call if call < 5 else 3 + call)
            elif not is_told and kind != "appends":
                assert box[7] == -1
    if kind == "appends" and not is_told:
        assert box[size:] == [1] * 10
    assert [warning.category for warning in told] == [tj.LostChangeWarning] * is_told
    assert step.stats.hits >= 6


class Part:
    total = 0

    def __init__(self) -> None:
        self.on, self.d, self.row = False, {"k": 0}, [0, 0]


@pytest.mark.parametrize("what", ["attribute", "item", "element", "attribute of a class", "object"])
def test_an_assignment_of_what_is_there_to_what_no_path_leads_to(what: str) -> None:
    def make(accelerated: Any) -> Any:
        kind = type("Kind", (Part,), {})
        parts = [kind(), kind()]
        clocks = [Box(), Box()]

        def attribute(x: Any) -> Any:
            for part in parts:
                part.on = True
            return x

        def item(x: Any) -> Any:
            for part in parts:
                part.d["k"] = 1
            return x

        def element(x: Any) -> Any:
            for part in parts:
                part.row[1] = 1
            return x

        def of_class(x: Any) -> Any:
            type(parts[0]).total = 6
            return x

        def reference(x: Any) -> Any:
            parts[0].clock = parts[1].clock
            return x

        functions = {"attribute": attribute, "item": item, "element": element, "object": reference}
        parts[0].clock = parts[1].clock = clocks[0]

        def change(number: int) -> None:
            if number == 6:
                parts[0].on, parts[0].d["k"], parts[1].row[1], kind.total = False, 0, 0, 9
                parts[0].clock = clocks[1]
            if number == 12:
                parts[1].clock = clocks[1]

        def outside() -> Any:
            return [kind.total, *[[part.on, part.d, part.row, clocks.index(part.clock)] for part in parts]]

        return [accelerated(functions.get(what, of_class))], outside, change

    (step,) = same_as_plain(make)
    assert step.stats.hits > 5


class Clock:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def tick(self) -> None:
        self.n += 1


def test_a_method_of_an_object_with_slots() -> None:
    def make(accelerated: Any) -> Any:
        clock, total = Clock(), tj.dlarray(np.zeros(2))

        def step(x: Any) -> Any:
            clock.tick()
            total[0] = 3
            return x

        return [accelerated(step)], lambda: [clock.n, total], lambda _: None

    (step,) = same_as_plain(make)
    assert step.stats.hits > 10


@pytest.mark.parametrize("confirm", [0, 1])
def test_a_count_that_is_inherited_from_one_that_counts_too(confirm: int) -> None:
    kind = type("Kind", (Part,), {})
    part = kind()

    inner = type("Inner", (kind,), {})

    @tj.dlaccelerate(audit=False, confirm=confirm)
    def step(x: Any) -> Any:
        kind.total += 1
        part.total += 1
        inner.total += 1
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tj.NotAcceleratedWarning)
        for call in range(8):
            step(np.ones(2))
            assert (kind.total, part.total, inner.total) == (call + 1, call + 2, call + 2)


def set_last(items, x):
    items[-1] = x * 2


def set_before_last(items, x):
    items[-2] = items[-1] + x


def set_all(items, x):
    items[:] = [x, x * 2]


def set_two_ends(items, x):
    items[1] = x
    items[-1] = x * 2


def set_by_length(items, x):
    items[len(items) - 1] = x


@pytest.mark.parametrize(
    "change",
    [set_last, set_before_last, set_two_ends, set_by_length],
    ids=lambda f: f.__name__,
)
def test_items_counted_from_the_end_of_a_list_that_grows(change):
    mine, plain = [1.0, 2.0], [1.0, 2.0]

    @tj.dlaccelerate
    def fun(x):
        change(mine, x)
        return x + 1

    for n in range(14):
        if n in (4, 5):
            mine.append(7.0)
            plain.append(7.0)
        if n == 9:
            del mine[2:], plain[2:]
        x = np.array(1.0 + n)
        change(plain, x)
        fun(x)
        assert [float(item) for item in mine] == [float(item) for item in plain]
    assert fun.stats.uncompiled == 0
    assert fun.stats.hits >= 3


@pytest.mark.filterwarnings("ignore::tracejit.TraceJitWarning")
def test_a_list_that_grew_is_replaced_whole():
    mine = [1.0, 2.0]

    @tj.dlaccelerate
    def fun(x):
        set_all(mine, x)
        return x + 1

    for n in range(8):
        if n == 4:
            mine.append(7.0)
        fun(np.array(1.0 + n))
        assert [float(item) for item in mine] == [1.0 + n, 2.0 + 2 * n]


def test_a_dict_that_is_emptied_loses_what_it_got_elsewhere():
    mine = {"a": 1.0}

    @tj.dlaccelerate
    def fun(x):
        mine.clear()
        mine["k"] = x * 2
        return x + 1

    for n in range(9):
        if n == 5:
            mine["z"] = 1.0
        fun(np.array(1.0 + n))
        assert [*mine] == ["k"]
        assert float(mine["k"]) == 2.0 + 2 * n


def test_the_last_item_of_a_list_that_grows_is_counted():
    counts = [0, 10]

    @tj.dlaccelerate
    def fun(x):
        counts[-1] += 1
        return x + 1

    for n in range(9):
        if n == 5:
            counts.append(100)
        fun(np.ones(2))
    assert counts == [0, 15, 104]
    assert fun.stats.hits >= 5


def test_attributes_of_classes_that_no_name_leads_to_are_assigned():
    class Base:
        kept = None

    class Model(Base):
        last = None

        @tj.dlaccelerate
        def step(self, x):
            kind = type(self)
            kind.last = x * 2
            kind.fresh = x.sum()
            type(self).kept = x
            return x + 1

    model = Model()
    for n in range(8):
        if n == 5:
            Model.last = None
            del Model.fresh
        model.step(np.full(2, float(n)))
        assert np.array_equal(Model.last, [2.0 * n, 2.0 * n])
        assert float(Model.fresh) == 2 * n
        assert Base.kept is None
        assert np.array_equal(vars(Model)["kept"], [n, n])
    assert Model.step.stats.uncompiled == 0


def test_a_slice_replaces_what_an_index_from_the_end_had_assigned():
    mine, plain = [1.0, 2.0], [1.0, 2.0]

    def change(items, x):
        items[-1] = items[0] * 2
        items[1:] = [x]

    @tj.dlaccelerate
    def fun(x):
        mine[-1] = mine[0] * 2
        mine[1:] = [x]
        return x + 1

    for n in range(10):
        if n == 5:
            mine.pop()
            plain.pop()
        x = np.array(1.0 + n)
        change(plain, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tj.TraceJitWarning)
            fun(x)
        assert [float(item) for item in mine] == [float(item) for item in plain]


def test_a_warning_about_an_object_that_no_line_leads_to_shows_no_line() -> None:
    effects = SideEffects()
    effects.resized([], ("", 0))
    effect = effects.first(lambda ident: True, lambda value: False)
    assert effect is not None
    assert effect.what == "changes a list that it did not make"
    assert effect.where is None


@pytest.mark.parametrize("above", ["Base", "Meta"])
def test_a_class_does_not_get_what_changes_above_it(above: str) -> None:
    names: dict[str, Any] = {"__name__": "classes"}
    exec(
        "class Meta(type):\n    n = 1\n\n"
        "class Base:\n    n = 1\n\n"
        f"class Below({'metaclass=Meta' if above == 'Meta' else 'Base'}):\n    pass\n\n"
        f"def step(x, k=1):\n    if k:\n        {above}.n += 1\n    else:\n        Below.n = 5\n    return x * 1",
        names,
    )
    step = tj.dlaccelerate(names["step"])
    for call in range(6):
        step(np.ones(1))
        assert names[above].n == names["Below"].n == call + 2
        assert "n" not in vars(names["Below"])
    step(np.ones(1), 0)
    assert (names[above].n, vars(names["Below"])["n"]) == (7, 5)
