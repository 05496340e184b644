# SPDX-License-Identifier: BSD-3-Clause
"""Short rows lie side by side in the lanes of vectors."""

import random
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from effort import sweep
from graphs import assert_same, random_case, strided
from hypothesis import given, settings
from hypothesis import strategies as st
from op_cases import ELEMENTWISE, assert_computed, defined, graph_of, numbers, operands_of
from programs import program_of

import tracejit as tj
from tracejit.codegen import lanes
from tracejit.compile.registry import registry
from tracejit.ir import Builder, Graph, Value, evaluate
from tracejit.ops.op import Layout, Op, Scalar
from tracejit.pipeline import build
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.python import PythonExecutable


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def laned(vector_bytes: int, longest: int = 64) -> mock._patch_dict:
    """Return a context in which rows of up to `longest` elements run in the lanes of vectors of `vector_bytes`."""
    names = {"vector_bytes": lambda: vector_bytes, "SHORT": longest, "SHORT_IF_CHEAP": longest}
    return mock.patch.multiple(lanes, **names)


def texts(graph: Graph) -> str:
    return "".join(kernel.text for kernel in build(graph).kernels)


@settings(max_examples=sweep(15, 120))
@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 32, 64]), st.booleans())
def test_rows_in_lanes_agree_with_the_reference(seed: int, vector_bytes: int, is_short: bool) -> None:
    rnd = random.Random(seed)
    maker = random_case(rnd, 25, ("float64", "float32", "int64", "int32"))
    if maker is None:
        return
    pairs = [strided(rnd, array) for array in maker.arrays]
    with laned(vector_bytes, 64 if is_short else 0):
        program = build(maker.graph, [layout for _, layout in pairs])
    found = PythonExecutable(program)([array for array, _ in pairs])
    assert_same(maker, found, evaluate(maker.graph, maker.arrays))


@pytest.mark.parametrize("seed", [13, 110])
def test_compiled_rows_in_lanes_agree_with_the_reference(seed: int) -> None:
    rnd = random.Random(seed)
    maker = random_case(rnd, 20, ("float64", "float32", "int64"))
    assert maker is not None
    pairs = [strided(rnd, array) for array in maker.arrays]
    layouts = [layout for _, layout in pairs]
    with laned(16):
        program = build(maker.graph, layouts)
    assert "gather_x4(" in "".join(kernel.text for kernel in program.kernels)
    found = CpuExecutable(program, layouts)([array for array, _ in pairs])
    assert_same(maker, found, evaluate(maker.graph, maker.arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_every_function_in_lanes(dtype: str) -> None:
    x, y = (part[: len(part) // 3 * 3].reshape(-1, 3) for part in numbers(dtype))
    integral = np.dtype(dtype).kind == "i"
    ops = [op for op in defined(ELEMENTWISE, (x, y)) if lanes_know(op, x.dtype)]
    assert len(ops) > (15 if integral else 40)

    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        # A condition on the whole row, always true, ties all ops to rows.
        some = b.any(
            b.less_equal(b.cast(b.equal(x, x), dtype=np.dtype("int64")), 1), axes=(1,), keepdims=True
        )
        operands = [b.where(some, value, b.neg(value)) for value in (x, y)]
        results = [b.apply(op, operands[: len(op.samples[0].shapes)], {}) for op in ops]
        # Truth values are bytes, which are not stored lane by lane.
        return [b.cast(v, dtype=np.dtype(dtype)) if v.dtype.kind == "b" else v for v in results]

    graph = graph_of(make, [x, y])
    assert "i0 in range(0, n0, " in texts(graph)
    found = CpuExecutable(build(graph))([x, y])
    for op, have, want in zip(ops, found, evaluate(graph, [x, y]), strict=True):
        assert_computed(op, have, want, operands_of(op, (x, y)))


def lanes_know(op: Op, dtype: np.dtype) -> bool:
    assert isinstance(op.emit, Scalar)
    casts = () if op.promote is None else op.promote(*[dtype] * len(op.samples[0].shapes))
    if dtype.kind == "f" and any(cast.kind != "f" for cast in casts):  # which lanes do not cast
        return False
    return "_{T}(" not in op.emit.template or (dtype.kind == "f" and op.name not in ("floordiv", "mod"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_reductions_of_short_rows(dtype: str) -> None:
    x = (np.random.default_rng(0).standard_normal((37, 5)) * 10).astype(dtype)
    if dtype != "int64":
        x[3, 2], x[4, 4], x[5, 0], x[20] = np.nan, np.inf, -np.inf, -0.0
    names = ("sum", "max", "min", "any", "all", "prod")

    def make(b: Builder, x: Value) -> list[Value]:
        y = b.neg(x)
        outputs = [getattr(b, name)(y, axes=(1,), keepdims=False) for name in names]
        total = b.sum(y, axes=(1,), keepdims=True)
        folds = ("sum", "max", "min") if dtype != "int64" else ()
        return outputs + [getattr(b, name)(b.mul(y, total), axes=(0,), keepdims=False) for name in folds]

    graph = graph_of(make, [x])
    with laned(64):
        found = CpuExecutable(build(graph))([x])
    for have, want in zip(found, evaluate(graph, [x]), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5 if dtype == "float32" else 1e-13)


def softmax_loss(x, t):
    z = x - x.max(axis=1, keepdims=True)
    e = tj.exp(z)
    s = e.sum(axis=1, keepdims=True)
    return -(t * (z - tj.log(s))).sum(), e / s - t, (e / s).sum(axis=0)


@pytest.mark.parametrize("columns", [2, 10, 64, 65])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 40])
def test_softmax_of_any_number_of_rows(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((2, rows, columns))
    with laned(64):
        program = program_of(softmax_loss, x, t)
    assert (rows > 1 and columns <= 64) == any("gather_x16" in kernel.text for kernel in program.kernels)


def test_other_numbers_of_rows_and_columns_compile_nothing() -> None:
    rng = np.random.default_rng(0)
    known = []
    for rows, columns in ((40, 10), (3, 10), (128, 7), (17, 64)):
        x, t = rng.standard_normal((2, rows, columns)).astype(np.float32)
        function = tj.dlaccelerate(softmax_loss)
        for _ in range(2):
            loss, gradient, total = function(x, t)
        known.append(len(registry))
        e = np.exp(x - x.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(loss, -(t * np.log(y)).sum(), rtol=1e-4)
        np.testing.assert_allclose(gradient, y - t, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(total, y.sum(axis=0), rtol=1e-5)
    assert set(known[1:]) == {known[0]}


def test_reads_that_do_not_depend_on_further_axes_are_gathered_before_them() -> None:
    def distances(x, means):
        return ((x[:, None, :] - means) ** 2).sum(axis=2)

    x, means = np.random.default_rng(0).standard_normal((2, 33, 3))
    with laned(64):
        program = program_of(distances, x, means[:20])
    (kernel,) = program.kernels
    before, _, inner = kernel.text.partition("for i1 in range(n1):")
    assert "gather_x16(p1" in before
    assert "gather" not in inner


@pytest.mark.parametrize("strides", [(2**27, 1), (-(2**27), 1)])
def test_rows_far_apart_run_one_after_the_other(strides: tuple[int, int]) -> None:
    graph = graph_of(lambda b, x: [b.sum(x, axes=(1,), keepdims=False)], [np.zeros((4, 3))])
    far = Layout(0, (4, 3), strides)
    assert "gather" in texts(graph)
    assert "gather" not in "".join(kernel.text for kernel in build(graph, [far]).kernels)


def test_rows_of_bytes_run_one_after_the_other() -> None:
    graph = graph_of(lambda b, x: [b.any(x, axes=(1,), keepdims=False)], [np.zeros((4, 3), np.int8)])
    assert "gather" not in texts(graph)
