# SPDX-License-Identifier: BSD-3-Clause
"""Programs for a device mean what the graph means: their PTX is run by an emulator."""

import math
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from device_programs import PROGRAMS, layer
from effort import sweep
from graphs import random_case
from llvm_texts import NEEDS_LLVM_22
from on_device import CAPABILITY, EmulatedProgram, in_any_order, program_of, ptx_of
from op_cases import draw, dtypes_of_cases, graph_of
from ptx_emulator import Kernel as PtxKernel
from ptx_emulator import Memory, PtxError

import tracejit as tj
from tracejit.compile.capability import Capability
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Value, evaluate
from tracejit.ops import Op
from tracejit.ops.op import Sample
from tracejit.pipeline import build_for_device
from tracejit.program import Kernel

F32 = np.float32
LOOPS = re.compile("attention|ctc|gru|lstm|rnn").match  # ops that the emulator runs for seconds
pytestmark = NEEDS_LLVM_22


def agree(found: Any, want: Any) -> None:
    for have, expected in zip(found, want, strict=True):
        expected = np.asarray(expected)
        assert have.dtype == expected.dtype and have.shape == expected.shape
        if have.dtype.kind in "fc":
            finite = np.where(np.isfinite(expected), expected, 0)
            atol = 2e-5 * max(1.0, float(np.abs(finite).max(initial=0)))  # terms of sums may cancel
            np.testing.assert_allclose(have, expected, rtol=2e-5, atol=atol)
        else:
            np.testing.assert_array_equal(have, expected)


def results(b: Builder, op: Op, values: Sequence[Value], sample: Sample) -> list[Value]:
    result = b.apply(op, values, dict(sample.params))
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(
    ("op", "sample", "dtype"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if LOOPS(name) else [])
        for name, *case in dtypes_of_cases()
    ],
)
@pytest.mark.sampled(by=lambda case: case["op"].name)
def test_ops(op: Op, sample: Sample, dtype: str) -> None:
    with np.errstate(all="ignore"):
        try:
            arrays = draw(op, sample, dtype)
            graph = graph_of(lambda b, *values: results(b, op, values, sample), arrays)
            want = evaluate(graph, arrays)
        except tj.DTypeError:
            pytest.skip("not defined for this dtype")
    agree(EmulatedProgram(build_for_device(graph))(arrays), want)


@pytest.mark.parametrize("seed", range(sweep(24, 400, sample=6)))
def test_random_graphs(seed: int) -> None:
    dtypes = ("float32", "float64") if seed % 2 else ("float32", "int32")
    with np.errstate(all="ignore"):
        case = random_case(random.Random(seed), 14, dtypes)
        if case is None:
            pytest.skip("numbers leave the range where rounding can be judged")
        want = evaluate(case.graph, case.arrays)
    agree(EmulatedProgram(build_for_device(case.graph))(case.arrays), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_circular_functions_of_huge_numbers(name: str, dtype: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array([6381956970095103 * 2.0**797, 2e5, -1e22, 3e38, 1e300, -7e9, np.inf, 0.5, -0.0], dtype)
    with mpmath.workprec(1400):  # the C library has 15 digits of the first
        exact = [
            getattr(mpmath, name)(y) if math.isfinite(y) else math.nan for y in map(mpmath.mpf, x.tolist())
        ]
    want = np.array([*map(float, exact)], dtype)
    program, _ = program_of(lambda x: (getattr(tj, name)(x),), [np.ones_like(x)])
    (found,) = EmulatedProgram(program)([x])
    np.testing.assert_allclose(found, want, rtol=4 * np.finfo(dtype).eps)


def test_quotients_are_those_of_numpy() -> None:
    """Note [divisions of a GPU]: rounded right, also at the ends of the range and for numbers that are not finite."""
    rng = np.random.default_rng(0)
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 1e-45, -1e-39, 3e38, 1e-38, 2.0**64], F32
    )
    scales = 2.0 ** rng.integers(-140, 125, (2, 3000))
    x, y = (np.concatenate([a, b]) for a, b in zip(
        map(np.ravel, np.meshgrid(special, special)), (rng.standard_normal((2, 3000)) * scales).astype(F32), strict=True
    ))  # fmt: skip
    y[-1000:], x[-1000:] = rng.standard_normal((2, 1000)).astype(F32)
    program, _ = program_of(lambda x, y: (x / y, 1 / y), [x, y])
    assert "div." not in ptx_of(program.kernels[0], CAPABILITY)
    with np.errstate(all="ignore"):
        for found, want in zip(EmulatedProgram(program)([x, y]), (x / y, 1 / y), strict=True):
            np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
            is_exact = ~(np.abs(want) < 4 * np.finfo(F32).tiny) & ~((np.abs(x) < 1e-29) & (np.abs(y) > 1e-19))
            np.testing.assert_array_equal(found[is_exact], want[is_exact])
            # Where the rest of the division is subnormal it is not exact, and subnormal quotients are rounded twice.
            np.testing.assert_allclose(found, want, rtol=2.0**-23, atol=2.0**-149)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_integers_that_are_narrower_than_registers_keep_their_sign(dtype: str) -> None:
    x, least = np.array([-1.2, 2.0, -127.6, 0.4], F32), np.zeros((), dtype)

    def function(x: Any, least: Any) -> tuple[Any, ...]:
        rounded = tj.cast(tj.round(x), dtype)
        return rounded > least, tj.maximum(rounded, least), rounded

    program, want = program_of(function, [x, least])
    agree(EmulatedProgram(program)([x, least]), want)


def test_a_kernel_that_calls_what_a_device_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracejit.compile.device_target._LIBM", {})
    program, _ = program_of(lambda x: (tj.sin(x),), [np.ones(3, F32)])
    with pytest.raises(CodegenError, match=r"a device has no function sinf\.$"):
        ptx_of(program.kernels[0], CAPABILITY)


def test_the_emulator_refuses_calls_of_what_is_nowhere() -> None:
    name, kernel = (
        "unknown",
        ptx_of(program_of(lambda x: (x + 1,), [np.ones(3, F32)])[0].kernels[0], CAPABILITY),
    )
    text = mutated(kernel, ".visible .entry", f".extern .func {name}();\n.visible .entry")
    with pytest.raises(PtxError, match="nowhere"):
        PtxKernel(text)


@pytest.mark.parametrize(("function", "shapes"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs(function: Callable[..., tuple[Any, ...]], shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in shapes]
    program, want = program_of(function, arrays)
    agree(EmulatedProgram(program)(arrays), want)


def branches(w: Any, v: Any, x: Any) -> tuple[Any, ...]:
    """Many results of few inputs, and memory that is used again."""
    y, z = tj.tanh(x @ w), tj.exp(x @ v)
    loss = (y * y).sum() + (z[:, :2] * y[:, :2]).sum()
    return (loss, y.sum(axis=0) + z.max(axis=0), *tj.dlgradient(loss, w, v, x), tj.softmax(y @ z.T, axis=1))


def test_launches_run_in_any_order_that_has_what_each_needs() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in ((13, 9), (13, 9), (20, 13))]
    program, _ = program_of(branches, arrays)
    assert any(len(row.needs) == 0 for row in program.rows[1:])  # some can run at the same time
    in_turn = EmulatedProgram(program)(arrays)
    for seed in range(sweep(3, 40)):
        order = partial(in_any_order, rng=random.Random(seed))
        results = zip(EmulatedProgram(program, order=order)(arrays), in_turn, strict=True)
        assert all(found.tobytes() == want.tobytes() for found, want in results), seed


def test_launches_that_touch_much_memory_follow_each_other() -> None:
    def names(columns: int) -> list[tuple[int, ...]]:
        ones = [np.ones((1000, columns), F32)] * 2
        return [
            row.needs for row in program_of(lambda x, y: (tj.exp(x).max(axis=0), y.T[::-1]), ones)[0].rows
        ]

    assert [numbers for numbers in names(100) if numbers] == [(0,)]
    assert [numbers for numbers in names(2000) if numbers] == [(0,), (0,)]


def test_launches_that_do_not_wait_are_found() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in ((13, 9), (13, 9), (20, 13))]
    program, want = program_of(branches, arrays)
    rows = [row._replace(needs=()) for row in program.rows]
    order = partial(in_any_order, rng=random.Random(0))
    with pytest.raises((PtxError, AssertionError)):
        agree(EmulatedProgram(program._replace(rows=rows), order=order)(arrays), want)


@pytest.mark.parametrize("seed", range(sweep(24, 400, sample=6)))
def test_random_graphs_in_any_order(seed: int) -> None:
    with np.errstate(all="ignore"):
        case = random_case(random.Random(seed), 14, ("float32",))
        if case is None:
            pytest.skip("numbers leave the range where rounding can be judged")
        want = evaluate(case.graph, case.arrays)
    order = partial(in_any_order, rng=random.Random(seed))
    agree(EmulatedProgram(build_for_device(case.graph), order=order)(case.arrays), want)


def test_other_sizes_have_the_same_kernels() -> None:
    """As on the CPU, sizes are arguments."""

    def names(rows: int, columns: int) -> set[str]:
        shapes = (30, columns), (columns,), (rows, 30)
        return {k.name for k in program_of(layer, [np.ones(shape, F32) for shape in shapes])[0].kernels}

    # The text of rows in registers says how many vectors or numbers a thread has, that of sums how many columns.
    lengths = (
        1,
        3,
        4,
        6,
        9,
        12,
        17,
        24,
        33,
        36,
        60,
        70,
        90,
        100,
        150,
        180,
        300,
        301,
        360,
        600,
        700,
        1000,
        1001,
    )
    known = set().union(*[names(rows, n) for rows in (40, 702) for n in lengths])
    assert len(known) <= 30
    for rows, n in ((43, 5), (45, 40), (900, 99), (800, 200), (500, 303), (77, 1023), (64, 128), (39, 1020)):
        assert names(rows, n) <= known


def mutated(text: str, old: str, new: str) -> str:
    assert old in text, f"{old!r} is not in the text"
    return text.replace(old, new)


FAULTS_OF_LOOPS = [
    ("column = index(column + 32)", "column = index(column + 31)"),  # elements of a row twice
    ("column = lane()", "column = index(lane() + 1)"),  # the first one never
    ("step = index(16)", "step = index(8)"),  # half of a group is not combined
    ("fold_sum_f32(v5, across_f32(v5, step))", "across_f32(v5, step)"),
    ("i0 = index(i0 + groups())", "i0 = index(i0 + groups() + 1)"),
    ("while column < columns:", "while column <= columns:"),  # beyond the end of a row
    ("i0 = group()", "i0 = thread()"),
    ("o1_copy = group() * o1_size", "o1_copy = index(0)"),  # groups overwrite each other
    ("        while step > 0:", "        while step > lane():"),  # threads part before they exchange
]


FAULTS_OF_REGISTERS = [
    ("column = index(lane() * 4)", "column = index(lane() * 3)"),
    ("is_in1 = index(column + 128) < n1", "is_in1 = index(column + 132) < n1"),  # the last vector never
    ("if is_in1 else v3", "if is_in0 else v3"),  # the first elements again
    ("at1 = index(column + 128)", "at1 = index(column + 0)"),
    ("v10 = v7 * v8", "v10 = v5 * v8"),
    ("step = index(16)", "step = index(8)"),
    ("i0 = index(i0 + groups())", "i0 = index(i0 + groups() + 1)"),
]


def of_two_axes(x: Any, y: Any) -> tuple[Any, ...]:
    """Return rows of two axes, which lie as one in the memory of x, but not in that of y."""
    z = tj.exp(x * y)
    z = z - z.max(axis=(1, 2), keepdims=True)
    return (z / z.sum(axis=(1, 2), keepdims=True),)


@pytest.mark.parametrize(
    ("function", "shapes", "old", "new"),
    [
        *[
            pytest.param(of_two_axes, ((19, 6, 31), (31,)), *fault, id=f"loops{i}")
            for i, fault in enumerate(FAULTS_OF_LOOPS)
        ],
        *[
            pytest.param(lambda x: (tj.softmax(x, axis=1),), ((19, 184),), *fault, id=f"registers{i}")
            for i, fault in enumerate(FAULTS_OF_REGISTERS)
        ],
    ],
)
def test_planted_faults_are_found(
    function: Callable[..., tuple[Any, ...]], shapes: tuple[tuple[int, ...], ...], old: str, new: str
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(F32) for shape in shapes]
    program, want = program_of(function, arrays)
    (row,) = program.rows
    faulty = Kernel(row.kernel.name, mutated(row.kernel.text, old, new))
    # A single block has less groups than rows, so that each group takes several.
    grid = row.grid._replace(blocks=2) if row.grid else None
    agree(EmulatedProgram(program._replace(rows=[row._replace(grid=grid)]))(arrays), want)
    with pytest.raises((PtxError, AssertionError)):
        agree(EmulatedProgram(program._replace(rows=[row._replace(kernel=faulty, grid=grid)]))(arrays), want)


@pytest.mark.parametrize(
    ("waits", "apart", "error"),
    [
        ("", 1, "a load of what another thread writes"),
        ("together()", 1, None),
        ("together()", 32, "a load of what another thread writes"),
        ("barrier()", 32, None),
        ("barrier()", 64, "a load of what another thread writes"),
    ],
)
@pytest.mark.parametrize("is_read_first", [False, True])
def test_the_emulator_refuses_what_depends_on_the_order_of_threads(
    waits: str, apart: int, error: str | None, is_read_first: bool
) -> None:
    """Blocks of 64 threads: each thread writes a number, and reads that of another one, or the other way round."""
    lines = ["x[thread()] = f32(1)", f"y[thread()] = x[thread() ^ {apart}]"]
    if is_read_first:
        lines.reverse()
        error = error and "a store where another thread reads"
    head = ["def ordered(args):", "x = write_f32(args[0], 0)", "y = write_f32(args[1], 1)"]
    text = "\n    ".join([*head, lines[0], *([waits] if waits else []), lines[1]]) + "\n"
    kernel = PtxKernel(ptx_of(Kernel("ordered", text), CAPABILITY))
    memory = Memory(reads_unwritten=True)
    words = [memory.add(np.zeros(128, F32)) for _ in range(2)]
    if error is None:
        kernel.run(words, memory, 2, 64)
    else:
        with pytest.raises(PtxError, match=error):
            kernel.run(words, memory, 2, 64)


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_kernels_of_float32_use_what_is_fast(capability: tuple[int, int]) -> None:
    arrays = [np.ones(shape, F32) for shape in ((30, 20), (20,), (40, 30))]
    for kernel in program_of(layer, arrays)[0].kernels:
        text = ptx_of(kernel, Capability(*capability))
        assert f".target sm_{capability[0]}{capability[1]}" in text
        code = text.partition("{")[2]
        assert ".local" not in text
        assert "f64" not in code
        assert "call" not in code
        assert not re.search(r"\b(div|rem)\.[us]64", code)
        assert not re.search(r"\b(ld|st)\.(b|v|u|s(?!hared))", code), "memory that is looked up at run time"


def test_a_loop_of_one_function_is_short() -> None:
    """A load, a store, the exponential, and the step of one index."""
    program, _ = program_of(lambda x: (tj.exp(x),), [np.ones(5000, F32)])
    code = ptx_of(program.rows[0].kernel, CAPABILITY)
    loop = code[code.index("ld.global.b32") : code.index("st.global.b32")]
    assert code.count("ld.global.b32") == code.count("st.global.b32") == 1
    assert loop.count(";") < 28


def test_neighbours_are_accessed_by_16_bytes() -> None:
    def function(x: Any, y: Any) -> tuple[Any, ...]:
        return tj.tanh(x) * y, x + y

    program, want = program_of(function, [np.linspace(-1, 1, 4 * 301 + 3, dtype=F32).reshape(1, -1)] * 2)
    code = ptx_of(program.rows[0].kernel, CAPABILITY)
    assert code.count("ld.global.v4.b32") == code.count("st.global.v4.b32") == 2
    agree(EmulatedProgram(program)([np.linspace(-1, 1, 4 * 301 + 3, dtype=F32).reshape(1, -1)] * 2), want)


def test_a_capability_that_is_newer_than_llvm_gets_the_newest_it_knows() -> None:
    program, _ = program_of(lambda x: (x + 1,), [np.ones(5, F32)])
    assert ".target sm_120" in ptx_of(program.rows[0].kernel, Capability(13, 1))
    with pytest.raises(CodegenError, match=re.escape("compute capability 7.0: expected 7.5 or greater.")):
        ptx_of(program.rows[0].kernel, Capability(7, 0))
