# SPDX-License-Identifier: BSD-3-Clause
"""Programs compiled by Numba: the ops, the loop skeletons, and how many kernels are compiled for what.

A kernel takes tens of milliseconds to compile, so many ops of one dtype are put into one graph: they read a common
value of the same loop, and fuse into one kernel with many outputs.
"""

import itertools
import random
import threading
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.special
from emitted import CALLS, names_needed
from graphs import assert_same, random_case, strided
from op_cases import (
    CASES,
    ELEMENTWISE,
    OF_SCIPY,
    assert_computed,
    assert_ulps,
    defined,
    draw,
    exact,
    graph_of,
    known_operands,
    numbers,
    operands_of,
)

from tracejit.autodiff import gradient
from tracejit.codegen import target
from tracejit.codegen.names import SUFFIXES
from tracejit.codegen.templates import by_op
from tracejit.compile import numba_target
from tracejit.compile.numba_target import _loops, namespace
from tracejit.compile.objects import host
from tracejit.compile.registry import registry
from tracejit.errors import CodegenError
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.ops import OPS, Kind, Op, linalg
from tracejit.ops.op import Layout
from tracejit.pipeline import build
from tracejit.program import Kernel, Program, Symbol
from tracejit.runtime.cpu import CpuExecutable


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def layout_of(array: np.ndarray) -> Layout:
    return Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def run(
    graph: Graph, arrays: Sequence[np.ndarray], placed: Sequence[np.ndarray] | None = None
) -> list[np.ndarray]:
    """Return what the compiled graph computes; `placed` are equal arrays that lie otherwise in memory."""
    layouts = () if placed is None else [layout_of(array) for array in placed]
    used = arrays if placed is None else placed
    before = [array.copy() for array in used]
    found = CpuExecutable(build(graph, layouts), layouts)(used)
    for array, copy in zip(used, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    return found


def all_ops(b: Builder, ops: Sequence[Op], x: Value, y: Value) -> list[Value]:
    # Through a first value, so that the ops find themselves in one loop.
    flip = OPS["logical_not" if x.dtype.kind == "b" else "neg"]
    operands = [b.apply(flip, (value,), {}) for value in (x, y)]
    return [b.apply(op, operands_of(op, operands), {}) for op in ops]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8", "uint64", "bool"])
def test_elementwise_ops(dtype: str) -> None:
    arrays = numbers(dtype)
    skipped = ("pow",) if np.dtype(dtype).kind == "i" else ()  # NumPy refuses negative powers of integers
    ops = [op for op in defined(ELEMENTWISE, arrays) if op.name not in skipped]
    graph = graph_of(lambda b, x, y: all_ops(b, ops, x, y), arrays)
    flipped = [np.logical_not(x) if dtype == "bool" else np.negative(x) for x in arrays]  # as in all_ops
    before = len(registry)
    found = run(graph, arrays)
    assert len(registry) - before <= 2
    for op, have, want in zip(ops, found, evaluate(graph, arrays), strict=True):
        here = known_operands(op.name, arrays[0])
        assert_computed(op, have[here], want[here], [x[here] for x in operands_of(op, flipped)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise_ops_on_strided_arrays(dtype: str) -> None:
    x, y = (part[:90].reshape(9, 10) for part in numbers(dtype))
    ops = [OPS[name] for name in ("add", "div", "exp", "tanh", "maximum", "less", "abs", "sqrt")]
    graph = graph_of(lambda b, x, y: all_ops(b, ops, x, y), (x, y))
    spread = np.zeros((9, 20), dtype)[:, ::2]
    spread[...] = x
    found = run(graph, (x, y), (spread, np.asfortranarray(y)[:, :]))
    for op, have, want in zip(ops, found, evaluate(graph, (x, y)), strict=True):
        assert_ulps(have, want, 0 if exact(op) else 8, op.name, [-part for part in operands_of(op, (x, y))])


def test_arrays_with_negative_and_zero_strides() -> None:
    x = np.arange(12.0).reshape(3, 4)
    y = np.broadcast_to(np.arange(4.0), (3, 4))
    graph = graph_of(
        lambda b, x, y: [b.sub(b.mul(x, y), y), b.sum(b.mul(x, y), axes=(1,), keepdims=False)], (x, y)
    )
    back = np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    for have, want in zip(run(graph, (x, y), (back, y)), evaluate(graph, (x, y)), strict=True):
        np.testing.assert_array_equal(have, want)


def test_casts_and_choices() -> None:
    kinds = ("float64", "float32", "int64", "int32", "int8", "uint8", "uint64", "bool")
    arrays = [np.array([0, 1, 2, 3, 100, 127]).astype(kind) for kind in kinds]

    def make(b: Builder, *xs: Value) -> list[Value]:
        outputs = []
        for x in xs:
            y = b.where(b.equal(x, xs[2]), x, b.cast(b.cast(x, dtype=np.dtype(bool)), dtype=x.dtype))
            outputs += [b.cast(y, dtype=np.dtype(kind)) for kind in kinds]
        return outputs

    graph = graph_of(make, arrays)
    for have, want in zip(run(graph, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


def test_casts_of_negative_numbers_keep_their_last_bits() -> None:
    arrays = [
        np.array([-5.0, -1, -0.5, 3.7, -300, 70000, -70000] * 5, dtype) for dtype in ("float64", "float32")
    ]
    arrays.append(np.array([2.0**63, 1e19, 3e9, -3e9, -1.0]))
    kinds = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32")

    def make(b: Builder, *xs: Value) -> list[Value]:
        all_kinds = [b.cast(x, dtype=np.dtype(kind)) for x in xs[:2] for kind in kinds]
        return [*all_kinds, b.cast(xs[2], dtype=np.dtype("uint64"))]

    graph = graph_of(make, arrays)
    for have, want in zip(run(graph, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


FOLDS = ("sum", "max", "min", "any", "all")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_reductions_of_thousands(dtype: str) -> None:
    x = (np.random.default_rng(0).standard_normal((3, 4099)) * 10).astype(dtype)
    axes = ((1,), (0,), (0, 1))

    def make(b: Builder, x: Value) -> list[Value]:
        y = b.square(x)
        return [getattr(b, name)(y, axes=a, keepdims=False) for name in FOLDS for a in axes]

    graph = graph_of(make, [x])
    wide = np.zeros((4099, 6), dtype)[::-1, ::2].T
    wide[...] = x
    for placed in (None, [wide]):
        for have, want in zip(run(graph, [x], placed), evaluate(graph, [x]), strict=True):
            if have.dtype.kind == "f":
                np.testing.assert_allclose(have, want, rtol=30 * np.finfo(dtype).eps)
            else:
                np.testing.assert_array_equal(have, want, strict=True)


def test_loops_use_the_widest_vectors_of_the_cpu() -> None:
    source = "def half(args):\n    x = read_f32(args[1])\n    y = write_f32(args[2], 0)\n"
    source += "    for i in range(args[0]):\n        y[i] = f32(0.5) * x[i]\n"
    assembly = numba_target.lower(Kernel("half", source)).assembly()
    # LLVM writes loops for the features that it finds itself, also where NumPy was told to leave some out.
    assert ("zmm" in assembly) == ("+avx512f" in host()[2].split(","))


def test_loops_that_say_so_use_vectors_of_32_bytes() -> None:
    source = "def half(args):\n    x = read_f32(args[1])\n    y = write_f32(args[2], 0)\n    vectors_of_32_bytes()\n"
    source += "    for i in range(args[0]):\n        y[i] = f32(0.5) * x[i]\n"
    assembly = numba_target.lower(Kernel("half", source)).assembly()
    assert "zmm" not in assembly
    assert ("ymm" in assembly) == ("+avx" in host()[2].split(","))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_loops_with_a_call_for_huge_numbers_are_vectorised(name: str) -> None:
    source = "def circular(args):\n    x = read_f32(args[1])\n    y = write_f32(args[2], 0)\n"
    source += f"    for i in range(args[0]):\n        y[i] = {name}_f32(x[i])\n"
    assembly = numba_target.lower(Kernel("circular", source)).assembly()
    # The variant of the C library's function for a whole vector, which the loop calls.
    assert f"tracejit_{name}_float_{target.vector_bytes() // 4}" in assembly


def test_reductions_of_special_values() -> None:
    x = np.zeros((4, 100))
    x[0, 50], x[1, 99], x[2, 0] = np.nan, np.inf, -np.inf
    x[3] = -0.0

    def make(b: Builder, x: Value) -> list[Value]:
        y = b.neg(x)
        return [getattr(b, name)(y, axes=(a,), keepdims=False) for name in (*FOLDS, "prod") for a in (0, 1)]

    graph = graph_of(make, [x])
    for have, want in zip(run(graph, [x]), evaluate(graph, [x]), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


def test_empty_arrays() -> None:
    x, y = np.zeros((0, 3)), np.zeros((3, 0))

    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        return [b.exp(x), b.sum(b.exp(x), axes=(0,), keepdims=False), b.matmul(y, x), b.matmul(x, y),
                b.concatenate(x, x, axis=0), b.pad(x, widths=((1, 1), (0, 0)), value=2.0)]  # fmt: skip

    graph = graph_of(make, [x, y])
    for have, want in zip(run(graph, [x, y]), evaluate(graph, [x, y]), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_products_of_matrices_however_they_lie(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (2, 3, 4, 5)).astype(dtype)
    y = rng.integers(0, 3, (3, 5, 4)).astype(dtype)

    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        turned = b.transpose(y, axes=(0, 2, 1))
        part = b.slice(x, starts=(0, 0, 3, 0), stops=(2, 3, -1, 5), steps=(1, 1, -1, 2))
        few = b.slice(y, starts=(0, 0, 0), stops=(3, 3, 4), steps=(1, 1, 1))
        outputs = [b.matmul(x, y), b.matmul(turned, b.transpose(x, axes=(0, 1, 3, 2))), b.matmul(part, few)]
        single = b.slice(x, starts=(0, 0, 0, 0), stops=(2, 3, 1, 5), steps=(1, 1, 1, 1))
        return [
            *outputs,
            b.matmul(single, y),
            b.matmul(y, b.broadcast_to(b.constant(np.ones((), dtype)), shape=(4, 2))),
        ]

    graph = graph_of(make, [x, y])
    for have, want in zip(run(graph, [x, y]), evaluate(graph, [x, y]), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_hand_written_kernels(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (3, 4, 2)).astype(dtype)
    index = np.array([3, 0, -1, 3])
    beside = np.random.default_rng(1).integers(-4, 4, (3, 5, 2))

    def make(b: Builder, x: Value, index: Value, beside: Value) -> list[Value]:
        taken, along = b.take(x, index, axis=1), b.take_along_axis(x, beside, axis=1)
        outputs = [
            taken,
            along,
            b.scatter_add(x, index, taken, axis=1),
            b.add_along_axis(x, beside, along, axis=1),
        ]
        outputs += [
            b.put(x, index, b.neg(taken), axis=1),
            b.put(x, index, 5, axis=1),
            b.cumsum(x, axis=1, reverse=False),
        ]
        outputs += [b.cumsum(x, axis=2, reverse=True)]
        outputs += [getattr(b, name)(x, axis=1, keepdims=False) for name in ("argmax", "argmin")]
        return outputs if dtype == "float64" else [taken, outputs[2], outputs[-1]]

    graph = graph_of(make, [x, index, beside])
    found = run(graph, [x, index, beside])
    for have, want in zip(found, evaluate(graph, [x, index, beside]), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)


KERNELS = [op for op in OPS.values() if op.kind is Kind.KERNEL and op not in OF_SCIPY]


@pytest.mark.parametrize("op", KERNELS, ids=lambda op: op.name)
def test_kernel_of_the_record(op: Op) -> None:
    samples = [sample for owner, sample in CASES if owner is op]
    arrays = [draw(op, sample, "float64") for sample in samples]

    def make(b: Builder, *inputs: Value) -> list[Value]:
        left, outputs = list(inputs), []
        for sample in samples:
            operands = [left.pop(0) for _ in sample.shapes]
            results = b.apply(op, operands, dict(sample.params))
            outputs += results if isinstance(results, tuple) else [results]
        return outputs

    flat = list(itertools.chain.from_iterable(arrays))
    graph = graph_of(make, flat)
    for have, want in zip(run(graph, flat), evaluate(graph, flat), strict=True):
        want = np.asarray(want)
        is_sum = op.name in set(by_op.TEXTS) - set(by_op.BESIDE_LOOPS) or op in linalg.OPS or "fft" in op.name
        if is_sum and want.dtype.kind in "fc":  # of products, in which terms may cancel
            atol = 8 * np.finfo(want.dtype).eps * np.abs(want).max(initial=0.0)
            np.testing.assert_allclose(have, want, rtol=0, atol=atol, strict=True)
        else:
            assert_ulps(have, want, 8, op.name)


@pytest.mark.filterwarnings(
    "ignore:floating point number truncated:RuntimeWarning", "ignore:non-integer arg n"
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_of_scipy(dtype: str) -> None:
    loops = [op for op in OF_SCIPY if op.kind is Kind.KERNEL]
    ops = [op for op in loops if hasattr(scipy.special, op.name.partition(".")[2])]
    arrays = list(
        draw(ops[-1], ops[-1].samples[0]._replace(shapes=((2, 3), (3,), (), (2, 1), (2, 3))), dtype)
    )

    def make(b: Builder, *inputs: Value) -> list[Value]:
        outputs = []
        for op in defined(ops, arrays):
            results = b.apply(op, inputs[: len(op.samples[0].shapes)], {})
            outputs += results if isinstance(results, tuple) else [results]
        return outputs

    graph = graph_of(make, arrays)
    program = build(graph)
    calls = [row for row in program.rows if isinstance(row.arguments[0], Symbol)]
    dtypes = {row.arguments[0].name.partition("/")[2] for row in calls}
    assert len(calls) == len(defined(ops, arrays))
    assert len({row.kernel for row in calls}) == len(dtypes)
    for have, want in zip(CpuExecutable(program)(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(have, want, strict=True)  # denormal numbers too


def test_loops_of_scipy_in_parts_and_of_no_elements() -> None:
    for count in (0, 1, 300_000):
        x = np.linspace(0.1, 9, count)
        graph = graph_of(lambda b, x: [getattr(b, "special.betaln")(b.mul(x, 2.0), x)], [x])
        program = build(graph)
        assert (max(row.parts for row in program.rows) > 1) == (count > 1)
        (found,) = CpuExecutable(program)([x])
        np.testing.assert_array_equal(found, scipy.special.betaln(2 * x, x))


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_places_out_of_range_are_never_touched(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Program, "check", lambda program, fault, outputs: None
    )  # to see the memory behind the error
    x, index = np.arange(4).astype(dtype), np.array([0, 10**12, -5, -4, 4, -(2**63)])

    def make(b: Builder, x: Value, index: Value) -> list[Value]:
        added = b.scatter_add(x, index, b.constant(np.ones(6, dtype)), axis=0)
        return [b.take(x, index, axis=0), added, b.put(x, index, 7, axis=0)]

    taken, added, replaced = run(graph_of(make, [x, index]), [x, index])
    missing = np.nan if dtype == "float64" else np.iinfo(dtype).min
    np.testing.assert_array_equal(taken, np.array([0, missing, missing, 0, missing, missing]).astype(dtype))
    np.testing.assert_array_equal(added, [2, 1, 2, 3])
    np.testing.assert_array_equal(replaced, [7, 1, 2, 3])


@pytest.mark.parametrize("seed", [1, 2])
def test_random_graphs(seed: int) -> None:
    rnd = random.Random(seed)
    maker = random_case(rnd, 20, ("float64", "float32", "int64"))
    assert maker is not None
    pairs = [strided(rnd, array) for array in maker.arrays]
    layouts = [layout for _, layout in pairs]
    found = CpuExecutable(build(maker.graph, layouts), layouts)([array for array, _ in pairs])
    assert_same(maker, found, evaluate(maker.graph, maker.arrays))


def mlp_step(batch: int, sizes: Sequence[int]) -> tuple[Graph, list[np.ndarray]]:
    """Return a step of stochastic gradient descent on the cross-entropy of a multilayer perceptron, and inputs."""
    rng = np.random.default_rng(0)
    shapes = [(batch, sizes[0]), (batch, sizes[-1])]
    for fan_in, fan_out in itertools.pairwise(sizes):
        shapes += [(fan_in, fan_out), (fan_out,)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def make(b: Builder, x: Value, target: Value, *parameters: Value) -> list[Value]:
        for weights, bias in zip(parameters[::2], parameters[1::2], strict=True):
            z = b.add(b.matmul(x, weights), bias)
            x = b.tanh(z)
        shifted = b.sub(z, b.stop_gradient(b.max(z, axes=(1,), keepdims=True)))
        log_p = b.sub(shifted, b.log(b.sum(b.exp(shifted), axes=(1,), keepdims=True)))
        loss = b.neg(b.div(b.sum(b.mul(target, log_p), axes=(0, 1), keepdims=False), float(batch)))
        found = gradient(b, [loss], [b.constant(np.float32(1))], parameters)
        return [loss, *(b.sub(p, b.mul(g, 0.01)) for p, g in zip(parameters, found, strict=True))]

    return graph_of(make, arrays), arrays


def check_step(batch: int, sizes: Sequence[int]) -> int:
    """Check a step against the references, and return how many kernels were compiled for it."""
    graph, arrays = mlp_step(batch, sizes)
    before = len(registry)
    for have, want in zip(run(graph, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)
    return len(registry) - before


def test_other_sizes_compile_nothing() -> None:
    with target.written_for(64):  # of a vector; smaller ones have a kernel for each of these products
        assert check_step(4, (5, 6, 3)) > 0
        assert check_step(32, (5, 6, 3)) == 0
        assert check_step(7, (11, 13, 4)) == 0


def test_equal_layers_share_kernels() -> None:
    check_step(3, (4, 4, 4, 4, 2))
    assert check_step(3, (*(4,) * 20, 2)) == 0


def test_a_program_may_be_called_by_several_threads_at_once() -> None:
    graph, arrays = mlp_step(32, (5, 6, 3))
    executable = CpuExecutable(build(graph))
    inputs = [[array + number for array in arrays] for number in range(2)]
    expected = [executable(own) for own in inputs]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(300):
                for have, want in zip(executable(inputs[number]), expected[number], strict=True):
                    np.testing.assert_array_equal(have, want)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_backend_defines_what_is_emitted() -> None:
    known = {*namespace(), *_loops()}
    for op in OPS.values():
        if op.kind in (Kind.ELEMENTWISE, Kind.REDUCE):
            for dtype in SUFFIXES:
                assert names_needed(op, dtype) <= known, f"{op.name} of {dtype}"
    functions = {name for _, name in CALLS} - set(by_op.TEXTS)
    assert functions | {"gemm_f32", "gemm_f64"} <= known


def test_an_array_of_another_kind_is_refused() -> None:
    graph = graph_of(lambda b, x: [b.neg(x)], [np.zeros((2, 3))])
    executable = CpuExecutable(build(graph))
    np.testing.assert_array_equal(executable([np.ones((2, 3))])[0], -1.0)
    for other in (np.zeros((3, 2)), np.zeros((2, 3), np.float32), np.zeros((3, 2)).T, np.zeros(6)):
        with pytest.raises(CodegenError, match="input 0 of a program is"):
            executable([other])
