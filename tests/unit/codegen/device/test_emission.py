# SPDX-License-Identifier: BSD-3-Clause
"""How the work of launches is shared among threads, and the text of their kernels."""

import math
import struct
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from tracejit.kernels.device import circular
from tracejit.kernels.device.libm import fmod

import tracejit as tj
from tracejit.errors import CodegenError
from tracejit.pipeline import build_for_device
from tracejit.program import Pointer, Program
from tracejit.record.recorder import Recorder


def program_of(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32") -> Program:
    with Recorder("function", accelerating=True) as recorder:
        results = function(*[recorder.input(tj.dlarray(np.ones(shape, dtype))) for shape in shapes])
        recorder.graph.outputs = [recorder.value(result) for result in results]
    return build_for_device(recorder.graph)


def test_elements_are_taken_in_turn() -> None:
    (row,) = program_of(lambda x: (tj.exp(x),), (3, 50)).rows
    assert row.kernel.text.partition(":\n")[2] == (
        "    n0 = index(args[0])\n"
        "    p0 = read_f32(args[1])\n"
        "    o0 = write_f32(args[2], 0)\n"
        "    i0 = index(thread() * 4)\n"
        "    while i0 <= n0 - 4:\n"
        "        v0 = load_x4(p0, i0)\n"
        "        v1 = exp_f32(v0)\n"
        "        store_x4(o0, i0, v1)\n"
        "        i0 = index(i0 + threads() * 4)\n"
        "    i0 = index(n0 - remainder(n0, 4) + thread())\n"
        "    while i0 < n0:\n"
        "        v0 = p0[i0]\n"
        "        v1 = exp_f32(v0)\n"
        "        o0[i0] = v1\n"
        "        i0 = index(i0 + threads())\n"
    )
    assert row.grid == (2, 128)


def test_axes_that_lie_apart_are_one_number() -> None:
    (row,) = program_of(lambda x, y: (x.T + y,), (3, 50), (50, 3)).rows
    assert "element = thread()" in row.kernel.text
    assert "i1 = remainder(element, n1)\n        i0 = quotient(element, n1)" in row.kernel.text


def test_rows_are_taken_by_groups_that_combine_what_they_fold() -> None:
    (row,) = program_of(lambda x, y: ((x * y).max(axis=(1, 2)),), (40, 6, 10), (10,)).rows
    text = row.kernel.text
    assert "i0 = group()" in text and "column = lane()" in text
    assert "v0 = fold_max_f32(v0, across_f32(v0, step))" in text
    assert "if lane() == 0:\n            o0[i0 * o0_0] = v0" in text
    assert row.grid == (10, 128)


def test_long_rows_are_taken_by_blocks() -> None:
    (row,) = program_of(lambda x: (x.max(axis=1),), (40, 1300)).rows
    text = row.kernel.text
    assert "i0 = block()" in text and "column = index(thread_of_block() * 4)" in text
    assert "if lane() == 0:\n            folded4[group_of_block] = v0\n        barrier()" in text
    assert "if thread_of_block() == 0:\n            o0[i0 * o0_0] = v0" in text
    assert row.grid == (40, 96)


def test_sums_over_rows_are_copied_for_each_group_and_combined() -> None:
    first, second = program_of(lambda x: (x.sum(axis=0),), (1000, 50)).rows
    assert "o0_copy = group() * o0_size" in first.kernel.text
    assert "folded[me] = fold_sum_f32(folded[me], folded[me + step])" in second.kernel.text


def test_a_sum_of_everything_is_kept_by_each_thread_and_combined() -> None:
    first, second = program_of(lambda x: (x.sum(),), (1000, 50)).rows
    assert "t0 = fold_sum_f32(t0, across_f32(t0, step))" in first.kernel.text
    assert "if lane() == 0:\n        o0[o0_copy] = t0" in first.kernel.text
    assert first.grid == (25, 128)
    assert second.grid == (1, 1024)


def test_a_number_is_computed_by_one_thread() -> None:
    (row,) = program_of(lambda x: (x + 1,), ()).rows
    assert "if thread() == 0:" in row.kernel.text


def test_kernels_run_in_the_parts_that_their_records_name() -> None:
    (row,) = program_of(lambda x: (tj.maxpool(x, 2, data_format="BSC"),), (5, 8, 3)).rows
    assert "part = thread()\n    while part < args[0]:" in row.kernel.text
    assert "part = index(part + threads())" in row.kernel.text


def test_a_kernel_of_one_part_runs_on_one_thread() -> None:
    rows = program_of(lambda x: (np.argmax(x), np.maximum.accumulate(x)), (9,)).rows
    assert any("if thread() == 0:" in row.kernel.text and row.grid == (1, 1) for row in rows)


def test_the_kernels_of_the_cpu_do_not_change() -> None:
    """A program for the device is built beside one for the CPU, of the same graph."""
    assert all(row.grid is None for row in tj_program(lambda x: (x.sum(axis=0),), (100, 5)).rows)


def tj_program(function: Callable[..., Any], shape: tuple[int, ...]) -> Program:
    from tracejit.pipeline import build

    with Recorder("function", accelerating=True) as recorder:
        results = function(recorder.input(tj.dlarray(np.ones(shape, "float32"))))
        recorder.graph.outputs = [recorder.value(result) for result in results]
    return build(recorder.graph)


def bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def test_fmod_is_exact() -> None:
    rng = np.random.default_rng(0)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        5e-324,
        -1.5e-323,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        math.pi,
    ]
    numbers = [*special, *(rng.standard_normal(60) * 10.0 ** rng.integers(-300, 300, 60)).tolist()]
    for x in numbers:
        for y in numbers:
            if y:
                assert bits(fmod(x, y)) == bits(math.fmod(x, y)), (x, y)


@pytest.mark.parametrize(("x", "y"), [(math.inf, 2.0), (math.nan, 2.0), (2.0, math.nan), (2.0, 0.0)])
def test_fmod_of_what_has_no_remainder_is_nan(x: float, y: float) -> None:
    assert math.isnan(fmod(x, y))


def test_fmod_by_infinity_is_the_number() -> None:
    assert fmod(-3.0, math.inf) == -3.0


def huge_numbers() -> list[float]:
    """Numbers over the whole range, near multiples of pi / 2, and that whose angle is nearest to one of all."""
    rng = np.random.default_rng(0)
    return [
        6381956970095103 * 2.0**797, 2.0**52, 2.0**53 - 1, 2.0**53, 2.0**1023, 1.7976931348623157e308, -1e22, 0.5,
        *np.exp(rng.uniform(math.log(1e5), math.log(1.79e308), 300)).tolist(),
        *(np.rint(rng.uniform(1e5, 1e15, 100)) * (math.pi / 2)).tolist(),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_circular_functions_of_huge_numbers(name: str) -> None:
    with mpmath.workprec(1400):
        for x in huge_numbers():
            want = getattr(mpmath, name)(mpmath.mpf(x))
            error = abs(getattr(circular, name)(x) - want) / math.ulp(float(want))
            assert error < 2, (x, float(want))


@pytest.mark.parametrize("function", [circular.sin, circular.cos, circular.tan])
def test_circular_functions_of_infinity_and_zero(function: Callable[[float], float]) -> None:
    assert (
        math.isnan(function(math.inf)) and math.isnan(function(-math.inf)) and math.isnan(function(math.nan))
    )
    expected = 1.0 if function is circular.cos else -0.0
    assert bits(function(-0.0)) == bits(expected)


def test_a_routine_of_the_cpu_is_refused() -> None:
    from tracejit.codegen.device.work import emit_kernel
    from tracejit.passes.loops.launches import KernelLaunch

    with pytest.raises(CodegenError, match=r"^gemm: a kernel of the CPU cannot run on a device\.$"):
        emit_kernel(KernelLaunch("gemm", (), (), 0, None, "sgemm"))


def test_the_rows_of_a_loop_move_on() -> None:
    """Parts of three float32 lie 32 bytes apart, so that vectors can begin where they do."""

    def function(x: Any) -> tuple[Any, ...]:
        return tuple(tj.dlscan(lambda carry, part: (carry + part, carry * part), x[0], x))

    program = program_of(function, (5, 3))
    (loop,) = program.loops
    assert (loop.most, loop.condition) == (5, None)
    rows = program.rows[loop.first : loop.end]
    steps = {a.steps for row in rows for a in row.arguments if isinstance(a, Pointer)}
    assert steps == {(0,), (32,)}
    assert all(row.needs for row in program.rows[loop.end :])


def test_kernels_of_a_branch_look_at_a_bool() -> None:
    def function(x: Any) -> tuple[Any, ...]:
        return (tj.dlcond(x.sum() > 0, tj.exp, tj.sin, x),)

    program = program_of(function, (300,))
    then, other = program.loops
    assert (then.most, other.most) == (1, 1)
    for loop in program.loops:
        for row in program.rows[loop.first : loop.end]:
            number = len(row.arguments) - 1
            assert row.arguments[-1] == loop.condition
            assert (
                f"    holds{number} = read_b1(args[{number}])\n    if not holds{number}[0]:\n"
                in row.kernel.text
            )
