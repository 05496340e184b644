# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of a row are as many and of the kinds that its kernel takes; any other list is refused."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from effort import sample, sweep

from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.exports.parameters import misfit, parameters
from tracejit.exports.program_json import decoded, encoded
from tracejit.ir import Builder, Graph, Value
from tracejit.ops import OPS, Op
from tracejit.ops.op import KernelCall
from tracejit.passes.loops import multiplier
from tracejit.pipeline import build
from tracejit.program import NO_WRITES, Kernel, Pointer, Program, Writes

Make = Callable[..., list[Value]]


def softmax(b: Builder, x: Value) -> list[Value]:
    e = b.exp(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
    return [b.div(e, b.sum(e, axes=(1,), keepdims=True))]


def layer(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    return [b.tanh(b.add(b.matmul(x, w), bias))]


def written(b: Builder, x: Value) -> list[Value]:
    return [b.add(b.mul(x, 0.3), 7.0)]


GRAPHS: dict[str, tuple[Make, tuple[tuple[int, ...], ...], Writes]] = {
    "a nest with numbers": (written, ((2, 3),), NO_WRITES),
    "a nest that writes into an input": (written, ((2, 3),), Writes({0: 0})),
    "rows in lanes": (softmax, ((20, 4),), NO_WRITES),
    "rows": (softmax, ((3, 70),), NO_WRITES),
    "a product and a nest": (layer, ((4, 3), (3, 5), (5,)), NO_WRITES),
    "a product with an epilogue": (layer, ((9, 3), (3, 64), (64,)), NO_WRITES),
    "a product of BLAS": (lambda b, x, y: [b.matmul(x, y)], ((4, 3), (3, 5)), NO_WRITES),
}
FEW = ("special.gammaln", "special.sici", "special.betainc")  # of the loops of SciPy
KERNELS = [
    op.name
    for op in OPS.values()
    if isinstance(op.emit, KernelCall) and (op.emit.routine is None or op.name in FEW)
]


def graph_of_op(op: Op, dtype: str) -> Graph:
    sample = op.samples[0]
    owns = sample.dtypes or (None,) * len(sample.shapes)
    graph = Graph()
    b = Builder(graph)
    avals = [Aval(s, None, np.dtype(own or dtype)) for s, own in zip(sample.shapes, owns, strict=True)]
    made = b.apply(op, [b.input(aval) for aval in avals], dict(sample.params))
    graph.outputs = [made] if isinstance(made, Value) else list(made)
    return graph


@cache
def program_of(name: str) -> Program:
    if name in KERNELS:
        return build(graph_of_op(OPS[name], "float32"))
    make, shapes, writes = GRAPHS[name]
    graph = Graph()
    b = Builder(graph)
    graph.outputs = make(b, *[b.input(Aval(shape, None, np.dtype(np.float32))) for shape in shapes])
    with pytest.MonkeyPatch.context() as patch:
        if "BLAS" in name:
            patch.setattr(multiplier, "BLAS_FROM", 0)
        return build(graph, (), writes)


def constants_of(program: Program) -> dict[str, np.ndarray]:
    return {f"constants/{i}": array for i, array in enumerate(program.constants)}


def data_of(program: Program) -> Any:
    return json.loads(json.dumps(encoded(program, list(constants_of(program)))))


def read(program: Program, data: Any) -> Program:
    return decoded(data, constants_of(program))


@pytest.mark.parametrize("name", [*GRAPHS, *KERNELS])
def test_rows_that_were_written_fit(name: str) -> None:
    program = program_of(name)
    assert read(program, data_of(program)).rows == program.rows


def others(program: Program) -> list[Any]:
    """Return arguments of all kinds that a program may have."""
    found: list[Any] = [0, *(["symbol", name] for name in ("sgemm", "dgemm", "scipy.special.jv/dd->d"))]
    numbers = map(np.dtype, ("float32", "float64", "int64", "bool"))
    found += [["number", str(dtype), "00" * dtype.itemsize] for dtype in numbers]
    for place, avals in (("input", program.inputs), ("output", program.outputs)):
        found += [[place, i, 0, 0, str(aval.dtype)] for i, aval in enumerate(avals)]
    found += [["arena", 0, 0, 0, dtype] for dtype in ("float32", "float64", "int8") if program.arena_bytes]
    found += [["constant", i, 0, 0, str(array.dtype)] for i, array in enumerate(program.constants)]
    return found


@pytest.mark.parametrize("name", [*GRAPHS, *sweep(KERNELS[::4], KERNELS)])
def test_lists_of_a_different_kind_are_refused(name: str) -> None:
    """Each argument of each row is left out, doubled, and replaced by one of each kind; all lists are exchanged."""
    program = program_of(name)
    data = data_of(program)
    kinds = [list(map(kind, row["arguments"])) for row in data["rows"]]
    for number, row in enumerate(data["rows"]):
        arguments = row["arguments"]
        lists = [[*arguments, other] for other in others(program)]
        lists += [[], *[arguments[:i] + arguments[i + 1 :] for i in range(len(arguments))]]
        lists += [
            [*arguments[:i], other, *arguments[i + 1 :]]
            for i in range(len(arguments))
            for other in others(program)
        ]
        lists += [other["arguments"] for other in data["rows"]]
        for changed in sample(lists, name):
            row["arguments"] = changed
            if list(map(kind, changed)) == kinds[number]:
                read(program, data) if is_written(program, changed, number) else refused(program, data)
            else:
                refused(program, data)
        row["arguments"] = arguments


def kind(argument: Any) -> Any:
    """Return what a kernel cares for: that it is an integer, a routine, or a number or an address of a dtype."""
    if isinstance(argument, int):
        return "integer"
    return (
        argument
        if argument[0] == "symbol"
        else ("number", argument[1])
        if argument[0] == "number"
        else argument[-1]
    )


def is_written(program: Program, arguments: list[Any], number: int) -> bool:
    """Return whether a row may write where the arguments say that it does."""
    places = [
        argument
        for argument, parameter in zip(arguments, parameters(program.rows[number].kernel), strict=True)
        if parameter.kind == "write"
    ]
    return all(
        place[0] in ("output", "arena") or (place[0] == "input" and place[1] in program.written)
        for place in places
    )


def refused(program: Program, data: Any) -> None:
    with pytest.raises(
        CodegenError, match=r"^a program is not what was written: row \d+ has (\d+ arguments|argument \d+)"
    ):
        read(program, data)


def test_random_lists_are_refused_or_of_the_right_kinds() -> None:
    rng = random.Random(3)
    names = [*GRAPHS, *KERNELS]
    found = 0
    for _ in range(sweep(100, 20_000)):
        program = program_of(rng.choice(names))
        data = data_of(program)
        row = rng.choice(data["rows"])
        pool = [a for other in data["rows"] for a in other["arguments"]] + others(program)
        kinds = list(map(kind, row["arguments"]))
        row["arguments"] = rng.choices(pool, k=max(0, len(kinds) + rng.choice((-1, 0, 0, 0, 1))))
        try:
            read(program, data)
        except CodegenError:
            found += 1
        else:
            assert list(map(kind, row["arguments"])) == kinds
    assert found > sweep(60, 10_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    n0 = args[1]\n", "does not use each of its arguments once"),
        ("    n0 = args[0] + args[0]\n", "does not use each of its arguments once"),
        ("    n0 = args[-1]\n", "does not use each of its arguments once"),
        ("    n0 = args[0]\n    n1 = args[n0]\n", "does not use each of its arguments once"),
        ("    n0 = args[0]\n    exp(args)\n", "does not use each of its arguments once"),
        ("    p0 = read_c64(args[0])\n", "has an argument of the unknown type c64"),
    ],
)  # fmt: skip
def test_texts_that_no_emitter_writes(text: str, message: str) -> None:
    with pytest.raises(CodegenError, match=f"^kernel forged {message}$"):
        parameters(Kernel("forged", f"def forged(args):\n{text}"))


def test_what_a_kernel_takes_in_words() -> None:
    program = program_of("a product of BLAS")
    (kernel,) = program.kernels
    found = list(map(str, parameters(kernel)))
    assert found == [
        "the routine sgemm", *["an integer"] * 11, *["an address of float32 to read"] * 2,
        "an address of float32 to write",
    ]  # fmt: skip
    (row,) = program.rows
    assert isinstance(row.arguments[-1], Pointer)
    assert misfit(parameters(kernel), row.arguments, ()) is None
