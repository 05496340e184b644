# SPDX-License-Identifier: BSD-3-Clause
"""Random graphs whose programs write new contents into their inputs, compared with their evaluation."""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from graphs import FLOATS, Maker, assert_same, random_case, strided
from in_parts import reordered
from races import check_races

from tracejit import pipeline
from tracejit.describe.program import describe
from tracejit.ir import Value, evaluate
from tracejit.program import Program, Writes
from tracejit.record.guards import GuardFailed
from tracejit.runtime.python import PythonExecutable

Run = Callable[[Program, Sequence[Any], Sequence[np.ndarray]], list[np.ndarray]]


class WritingCase(NamedTuple):
    """A graph whose outputs are results, then new contents of inputs, then perhaps a guard."""

    maker: Maker
    writes: Writes
    results: int


def contents_of(maker: Maker, target: Value) -> Value | None:
    """Return a value that may become the content of an input."""
    rnd, b = maker.rnd, maker.b
    same = [v for v in maker.values if v.shape == target.shape and v.dtype == target.dtype]
    choice = rnd.random()
    if choice < 0.25:
        return rnd.choice(same)
    if choice < 0.5 and target.ndim:
        value = target
        for _ in range(rnd.choice((1, 1, 2, 3, 5))):
            places = maker.places(target.shape)
            part = b.slice(rnd.choice((target, value, value, rnd.choice(same))), **places)
            if rnd.random() < 0.5:
                part = b.add(part, b.slice(value, **places))
            value = maker.derived(b.setslice(value, part, **places), target, *same)
        return value
    value = rnd.choice(same)
    if choice < 0.65 and target.ndim and 0 not in target.shape:
        return at_places(maker, target, same)
    if choice < 0.8 and target.ndim and 0 not in target.shape:
        value = neighbours(maker, rnd.choice([target, target, value]))
    for _ in range(rnd.randint(1, 2)):
        other = rnd.choice([target, value, rnd.choice(same)])
        value = maker.derived(getattr(b, rnd.choice(("add", "sub", "maximum")))(value, other), value, other)
    if rnd.random() < 0.3 and target.dtype.kind == "f":
        value = maker.keep(b.tanh(value), False)
    return value


def at_places(maker: Maker, target: Value, same: Sequence[Value]) -> Value:
    """Return what several writes at computed places make of an input, or of another value of its size."""
    rnd, b = maker.rnd, maker.b
    value = rnd.choice((target, target, target, rnd.choice(same)))
    for _ in range(rnd.choice((1, 1, 2, 3))):
        axis = rnd.randrange(target.ndim)
        name = rnd.choice(("put", "put", "scatter_add", "add_along_axis"))
        if target.dtype.kind == "b":
            name = "put"
        source = rnd.choice((target, value, rnd.choice(same)))
        if name == "add_along_axis":
            index = maker.index(target.shape[axis], target.shape)
            part = source
        else:
            index = maker.index(target.shape[axis], rnd.choice(((), (1,), (2,), (5,))))
            part = b.take(source, maker.index(target.shape[axis], index.shape), axis=axis)
            if index.shape and index.shape[0] <= target.shape[axis] and rnd.random() < 0.5:
                stops = tuple(index.shape[0] if a == axis else size for a, size in enumerate(target.shape))
                part = b.slice(source, starts=(0,) * target.ndim, stops=stops, steps=(1,) * target.ndim)
        value = maker.derived(getattr(b, name)(value, index, part, axis=axis), target, *same)
        if rnd.random() < 0.2:
            value = maker.derived(b.add(value, value), target, *same)
    return value


def neighbours(maker: Maker, x: Value) -> Value:
    """Return a value of the size of `x` whose elements depend on several of it: its rows, or `x` backwards."""
    rnd, b = maker.rnd, maker.b
    axis = rnd.randrange(x.ndim)
    choice = rnd.randrange(4)
    if choice == 0:
        n = x.ndim
        steps = tuple(-1 if a == axis else 1 for a in range(n))
        starts = tuple(size - 1 if a == axis else 0 for a, size in enumerate(x.shape))
        stops = tuple(-1 if a == axis else size for a, size in enumerate(x.shape))
        return maker.derived(b.slice(x, starts=starts, stops=stops, steps=steps), x)
    total = maker.derived(b.sum(x, axes=(axis,), keepdims=True), x)
    value = maker.derived(b.sub(x, total), x, total)
    if choice == 1 and x.dtype.kind == "f":
        e = b.exp(b.tanh(x))
        value = maker.keep(b.div(e, b.sum(e, axes=(axis,), keepdims=True)), False)
    elif choice == 2:
        value = maker.derived(b.maximum(value, b.max(value, axes=(axis,), keepdims=True)), value)
        value = maker.derived(b.add(value, x), value, x)
    return value


def writing_case(rnd: random.Random, steps: int = 12, dtypes: Sequence[str] = FLOATS) -> WritingCase | None:
    """Return a random graph that writes into inputs, or None."""
    maker = random_case(rnd, steps, dtypes)
    if maker is None:
        return None
    graph = maker.graph
    wanted = [v for v in graph.inputs if v in maker.values and rnd.random() < 0.7]
    results = list(graph.outputs) if rnd.random() < 0.7 else []
    pairs = [(target, contents_of(maker, target)) for target in wanted]
    if rnd.random() < 0.3:
        results += [value for _, value in pairs[:1] if value is not None]
    contents = [value for _, value in pairs if value is not None]
    guards = [v for v in maker.values if v in maker.exact and v.shape == () and v.dtype.kind == "b"]
    if rnd.random() < 0.4 and not guards:
        number = rnd.choice([v for v in maker.values if v in maker.exact])
        limit = float(rnd.randint(-3, 3))
        guards = [maker.b.greater(maker.b.sum(maker.b.cast(number, dtype=np.dtype(np.float64)),
                                              axes=tuple(range(number.ndim)), keepdims=False), limit)]  # fmt: skip
    guards = guards[:1] if rnd.random() < 0.5 else []
    graph.outputs = [*results, *contents, *guards]
    targets = {len(results) + i: graph.inputs.index(target) for i, (target, _) in enumerate(pairs)}
    return WritingCase(maker, Writes(targets, bool(guards)), len(results))


def in_python(program: Program, layouts: Sequence[Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return PythonExecutable(program)(arrays)


def check_written(seed: int, steps: int, dtypes: Sequence[str], run: Run = in_python) -> tuple[int, int]:
    """Compare a program that writes inputs with the graph; return how many it writes, and how many without a copy."""
    rnd = random.Random(seed)
    case = writing_case(rnd, steps, dtypes)
    if case is None or not case.writes.targets:
        return 0, 0
    maker, writes, results = case
    with np.errstate(all="ignore"):
        want = evaluate(maker.graph, maker.arrays)
    arrays: Any = [array.copy() for array in maker.arrays]
    layouts: Any = ()
    if seed % 3 == 0:
        arrays, layouts = zip(*[strided(rnd, a) for a in arrays], strict=True)
    stages = pipeline.stages(maker.graph, layouts, writes)
    check_races(stages.plan)
    described = describe(stages)
    assert {row.number for row in described.rows} == set(range(len(stages.program.rows)))
    program = stages.program._replace(guard=results if writes.guarded else None)
    holds = not writes.guarded or bool(want[-1])
    try:
        outputs = run(reordered(program, rnd), layouts, arrays)
    except GuardFailed:
        assert not holds
        outputs = [want[i] for i in range(results)] + [want[-1]]
    else:
        assert holds
    for old, new, target in zip(maker.arrays, arrays, range(len(arrays)), strict=True):
        if not holds or target not in writes.targets.values():
            np.testing.assert_array_equal(new, old)
    given = {output: arrays[target] for output, target in writes.targets.items()}
    if not holds:
        given = {output: want[output] for output in given}
    rest = iter(outputs)
    found = [given[i] if i in given else next(rest) for i in range(len(want))]
    assert_same(maker, found, want)
    copies = sum(not row.where and row.note in ("copy", "fill") for row in program.rows)
    return len(writes.targets), max(0, len(writes.targets) - copies)
