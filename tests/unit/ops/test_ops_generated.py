# SPDX-License-Identifier: BSD-3-Clause
"""Every op against its reference, its emitted code and an independent derivative, by the op records."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import effort
import numpy as np
import pytest
from bits import same_bits
from op_cases import CASES, all_pairs, assert_computed, draw, known_operands, operands_of
from op_derivatives import (
    DIFFERENTIABLE,
    STEP,
    assert_derivative,
    computed,
    ct_shape,
    derivative,
    directions,
    dot,
    graph_of,
    moved,
    name_of,
    smooth,
    spread,
    zeros_like,
)

from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.errors import DTypeError, GradientError
from tracejit.ir import Builder, Graph, Value, evaluate, verify
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.op import Layout, OnlyOnce, Sample, Scalar
from tracejit.pipeline import build
from tracejit.program import Program
from tracejit.runtime import python
from tracejit.runtime.python import PythonExecutable, namespace

DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")


every_op = pytest.mark.parametrize("case", CASES, ids=name_of)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


WAYS = {  # how operands lie in memory; the dtype makes no difference to that
    "float64": ("contiguous", "columns", "every second", "backwards"),
    "float32": ("contiguous", "backwards"),
}


def arrangements(array: np.ndarray) -> dict[str, np.ndarray]:
    """Return arrays equal to `array` that lie in memory in other ways."""
    found = {"contiguous": array}
    if array.ndim:
        found["columns"] = np.asfortranarray(array)
        spread = np.zeros([2 * n for n in array.shape], array.dtype)
        spread[(slice(None, None, 2),) * array.ndim] = array
        found["every second"] = spread[(slice(None, None, 2),) * array.ndim]
        back = (slice(None, None, -1),) * array.ndim
        found["backwards"] = array[back].copy()[back]
    return found


def layout_of(array: np.ndarray) -> Layout:
    return Layout(0, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def assert_close(have: np.ndarray, want: np.ndarray, what: str) -> None:
    if same_bits(have, want):
        return
    assert have.dtype == want.dtype, what
    assert have.shape == want.shape, what
    if have.dtype.kind in "fc":
        eps = np.finfo(have.dtype).eps
        np.testing.assert_allclose(have, want, rtol=8 * eps, atol=4 * eps, err_msg=what)
    else:
        np.testing.assert_array_equal(have, want, err_msg=what)


def defined(op: Op, sample: Sample, dtype: str) -> bool:
    arrays = draw(op, sample, dtype)
    try:
        op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays], **sample.params)
    except DTypeError:
        return False
    return True


@pytest.mark.sampled
@every_op
def test_infer_is_what_the_reference_returns(case: tuple[Op, Sample]) -> None:
    for dtype in DTYPES:
        check_infer(*case, dtype)


def check_infer(op: Op, sample: Sample, dtype: str) -> None:
    arrays = draw(op, sample, dtype)
    avals = [Aval(a.shape, None, a.dtype) for a in arrays]
    if not defined(op, sample, dtype):
        # What infer refuses either NumPy refuses as well, or the op says so in words.
        try:
            op.numpy(*arrays, **sample.params)
        except (TypeError, ValueError):
            return
        assert op.name in ("scatter_add", "add_along_axis"), "infer refuses what the reference computes"
        return
    results = computed(op, arrays, sample.params)
    inferred = op.infer(*avals, **sample.params)
    # In a graph the operands are cast before the op, which must give the same numbers.
    recorded = evaluate(graph_of(op, sample.params, arrays), arrays)
    for aval, result, found in zip(
        (inferred,) if isinstance(inferred, Aval) else inferred, results, recorded, strict=True
    ):
        assert (aval.shape, aval.format, aval.dtype) == (result.shape, None, result.dtype)
        assert_close(found, result, "recorded")


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@every_op
def test_emitted_code_is_the_reference(case: tuple[Op, Sample]) -> None:
    for dtype in effort.sample(DTYPES, name_of(case), share=3):
        if defined(*case, dtype):
            check_emitted(*case, dtype)


def check_emitted(op: Op, sample: Sample, dtype: str) -> None:
    arrays = draw(op, sample, dtype)
    graph = graph_of(op, sample.params, arrays)
    expected = evaluate(graph, arrays)
    arranged = [arrangements(array) for array in arrays]
    tried = set()
    for way in WAYS.get(dtype, ("contiguous",)):
        placed = [found.get(way, array) for found, array in zip(arranged, arrays, strict=True)]
        layouts = tuple(map(layout_of, placed))
        if layouts in tried:  # as vectors lie in columns and contiguously
            continue
        tried.add(layouts)
        program = build(graph, layouts)
        before = [array.copy() for array in placed]
        for have, want in zip(PythonExecutable(program)(placed), expected, strict=True):
            assert_close(have, want, way)
        for array, copy in zip(placed, before, strict=True):
            assert same_bits(array, copy)


def adjoint(op: Op, params: Any, arrays: Sequence[np.ndarray]) -> tuple[Graph, list[int]]:
    """Return a graph of the inputs and a cotangent that gives the cotangent of each floating-point input.

    Of several outputs of an op, each that is floating-point has the elements of the cotangent, or as many of them."""
    graph = graph_of(op, params, arrays)
    b = Builder(graph)
    wrt = [i for i, value in enumerate(graph.inputs) if value.dtype.kind == "f"]
    outputs = smooth(graph.outputs[: len(graph.outputs) - op.saved])
    ct = b.input(outputs[0].aval._replace(shape=ct_shape(outputs)))
    found = gradient(b, outputs, spread(b, ct, outputs), [graph.inputs[i] for i in wrt])
    graph.outputs = [
        zeros_like(b, graph.inputs[i]) if g is None else g for i, g in zip(wrt, found, strict=True)
    ]
    verify(graph)
    return graph, wrt


def check_adjoint(op: Op, sample: Sample) -> None:
    """Compare <ct, J v> by an independent derivative with <J' ct, v>."""
    arrays = draw(op, sample, "float64")
    graph, wrt = adjoint(op, sample.params, arrays)
    ct = np.random.default_rng(1).uniform(0.5, 1.5, graph.inputs[-1].shape)
    by = directions(arrays, wrt, 2)
    found = dot(evaluate(graph, [*arrays, ct]), [by[i] for i in wrt])

    expected, tolerance = derivative(op, sample.params, arrays, by, ct)
    assert_derivative(found, expected, tolerance)


differentiable_ops = pytest.mark.parametrize("case", DIFFERENTIABLE, ids=name_of)


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@differentiable_ops
def test_adjoint_is_the_derivative(case: tuple[Op, Sample]) -> None:
    check_adjoint(*case)


@pytest.mark.sampled
@differentiable_ops
def test_adjoint_of_the_adjoint_is_the_second_derivative(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "float64")
    graph, wrt = adjoint(op, sample.params, arrays)
    b = Builder(graph)
    if any(isinstance(node.op.vjp, OnlyOnce) for node in graph.nodes):
        with pytest.raises(GradientError, match="there are no second derivatives"):
            gradient(b, graph.outputs, graph.outputs, graph.inputs)
        return
    first = list(graph.outputs)
    weights = directions(arrays, wrt, 3)
    ct = np.random.default_rng(1).uniform(0.5, 1.5, graph.inputs[-1].shape)
    # <weights, J' ct> has one number; its derivative by the inputs and by ct is the second adjoint.
    cts = [b.constant(weights[i]) for i in wrt]
    by_values = [graph.inputs[i] for i in (*wrt, len(arrays))]
    second = gradient(b, first, cts, by_values)
    graph.outputs = [zeros_like(b, v) if g is None else g for v, g in zip(by_values, second, strict=True)]
    verify(graph)
    inputs = [*arrays, ct]
    by = directions(inputs, [*wrt, len(arrays)], 4)
    found = dot(evaluate(graph, inputs), list(by.values()))
    graph.outputs = first

    def value(step: float) -> Any:
        return dot(evaluate(graph, moved(inputs, by, step)), [weights[i] for i in wrt])

    assert_derivative(found, (value(STEP) - value(-STEP)) / (2 * STEP), 2e-7)


@pytest.mark.sampled
@differentiable_ops
def test_adjoint_is_linear_in_the_cotangent(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "float64")
    graph, _ = adjoint(op, sample.params, arrays)
    rng = np.random.default_rng(5)
    one, two = rng.standard_normal((2, *graph.inputs[-1].shape))
    parts = zip(evaluate(graph, [*arrays, one]), evaluate(graph, [*arrays, two]), strict=True)
    joint = evaluate(graph, [*arrays, 2.0 * one - 3.0 * two])
    for have, (first, second) in zip(joint, parts, strict=True):
        np.testing.assert_allclose(have, 2.0 * first - 3.0 * second, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(by=lambda case: case["dtype"])
@differentiable_ops
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_emitted_adjoint_is_the_adjoint(case: tuple[Op, Sample], dtype: str) -> None:
    op, sample = case
    arrays = draw(op, sample, dtype)
    graph, _ = adjoint(op, sample.params, arrays)
    ct = np.random.default_rng(1).uniform(0.5, 1.5, graph.inputs[-1].shape).astype(graph.inputs[-1].dtype)
    found = PythonExecutable(build(graph))([*arrays, ct])
    for value, have, want in zip(graph.outputs, found, evaluate(graph, [*arrays, ct]), strict=True):
        assert have.dtype == want.dtype == value.dtype == np.dtype(dtype)
        if not same_bits(have, want):
            np.testing.assert_allclose(
                have, want, rtol=64 * np.finfo(dtype).eps, atol=16 * np.finfo(dtype).eps
            )


KINKED = [(op, kink) for op in OPS.values() for kink in op.kinks]


@pytest.mark.parametrize(("op", "kink"), KINKED, ids=lambda x: getattr(x, "name", x))
def test_at_a_kink_the_adjoint_lies_between_the_slopes(op: Op, kink: float) -> None:
    at = np.full(1, kink)
    if op.vjp is None or op.name == "sign":  # only complex numbers have a derivative of it
        assert op.numpy(at + STEP) != op.numpy(at - STEP)
        return
    graph, _ = adjoint(op, {}, [at])
    (found,) = evaluate(graph, [at, np.ones(1)])
    slopes = [(op.numpy(at + step) - op.numpy(at)) / step for step in (STEP, -STEP)]
    assert min(slopes) <= found <= max(slopes)
    assert not np.isclose(*slopes)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_ties_of_two_share_the_cotangent(name: str) -> None:
    arrays = [np.array([1.0, 2.0]), np.array([1.0, -1.0])]
    graph, _ = adjoint(OPS[name], {}, arrays)
    first, second = evaluate(graph, [*arrays, np.array([3.0, 3.0])])
    np.testing.assert_array_equal(first + second, 3.0)
    assert first[0] == second[0]


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_of_many_share_the_cotangent(name: str) -> None:
    x = np.array([[2.0, 2.0, 2.0], [1.0, 0.0, 1.0]])
    graph, _ = adjoint(OPS[name], {"axes": (1,), "keepdims": False}, [x])
    (found,) = evaluate(graph, [x, np.array([3.0, 3.0])])
    np.testing.assert_array_equal(found[0], 1.0)
    np.testing.assert_array_equal(found.sum(1), 3.0)


def test_relu_has_the_derivative_one_half_or_none_at_zero() -> None:
    # maximum(x, 0) at 0 shares the cotangent with the constant.
    graph = Graph()
    b = Builder(graph)
    x = b.input(Aval((1,), None, np.dtype(np.float64)))
    (found,) = gradient(b, [b.maximum(x, 0.0)], [b.constant(np.ones(1))], [x])
    graph.outputs = [found]
    assert 0.0 <= evaluate(graph, [np.zeros(1)])[0][0] <= 1.0


def specials(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    near = (0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0)  # not 0.5: NumPy computes x ** 0.5 in two ways
    return np.array(
        [*near, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal], dtype
    )


def same_class(have: np.ndarray, want: np.ndarray, what: str, *, zeros: bool = True) -> None:
    if same_bits(have, want):
        return
    assert have.dtype == want.dtype, what
    if have.dtype.kind == "f":
        np.testing.assert_allclose(have, want, rtol=8 * np.finfo(have.dtype).eps, atol=0, err_msg=what)
        if zeros:
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(have)[number], np.signbit(want)[number], err_msg=what)
    else:
        np.testing.assert_array_equal(have, want, err_msg=what)


ELEMENTWISE = [op for op in OPS.values() if isinstance(op.emit, Scalar) and op.name not in ("cast", "where")]


@pytest.mark.sampled(by=lambda case: case["dtype"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_special_values(op: Op, dtype: str) -> None:
    arrays = all_pairs(op, specials(dtype))
    if not defined_for(op, arrays):
        return
    graph = graph_of(op, {}, arrays)
    (found,) = PythonExecutable(build(graph))(arrays)
    # Which zero is the larger of 0.0 and -0.0 is up to the vector instruction in NumPy too.
    same_class(found, evaluate(graph, arrays)[0], op.name, zeros=op.name not in ("maximum", "minimum"))


@pytest.mark.sampled
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_extreme_integers(op: Op) -> None:
    for dtype in ("int64", "int32", "int8", "uint8", "uint64"):
        check_extremes(op, dtype)


def check_extremes(op: Op, dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)
    if info.min < 0:
        values = np.append(values, np.array([-1, -2, -3], dtype))
    values = values[known_operands(op.name, values)]
    arrays = all_pairs(op, values)
    if op.name == "pow":
        arrays[1] = np.array([[0, 1, 2, 3, 5]], dtype)  # NumPy refuses negative powers
    if not defined_for(op, arrays):
        return
    graph = graph_of(op, {}, arrays)
    (found,) = PythonExecutable(build(graph))(arrays)
    same_class(found, evaluate(graph, arrays)[0], f"{op.name} {dtype}")


def defined_for(op: Op, arrays: Sequence[np.ndarray]) -> bool:
    try:
        op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays])
    except DTypeError:
        return False
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_reductions_of_special_values_and_sizes(name: str, dtype: str) -> None:
    op = OPS[name]
    kind = np.dtype(dtype).kind
    first = specials(dtype) if kind == "f" else np.arange(14).astype(dtype)
    rows = np.stack([first, np.roll(first, 1), np.ones_like(first), np.zeros_like(first)])
    empty = [np.zeros((0, 3), dtype), np.zeros((2, 0, 3), dtype)]
    cases = [(rows, (1,)), (rows, (0,)), (rows, (0, 1)), (rows[:, :1], (1,)), (rows[:1], (0, 1))]
    if name not in ("max", "min"):
        cases += [(empty[0], (0,)), (empty[0], (0, 1)), (empty[1], (1,)), (empty[1], (0, 2))]
    cases += [(empty[0], (1,))]
    for array, axes in [(np.ascontiguousarray(array), axes) for array, axes in cases]:
        for keepdims in (False, True):
            graph = graph_of(op, {"axes": axes, "keepdims": keepdims}, [array])
            (found,) = PythonExecutable(build(graph))([array])
            # Sums may be reassociated, and a sum of negative zeros may be either zero.
            same_class(found, evaluate(graph, [array])[0], f"{array.shape} {axes}", zeros=False)


@pytest.mark.sampled
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_empty_and_single_arrays(op: Op) -> None:
    dtype = "float64" if op.samples[0].dtypes is None else "int64"
    for shape in ((0,), (2, 0, 3), (1, 1)):
        arrays = [np.full(shape, 1, dtype) for _ in op.samples[0].shapes]
        graph = graph_of(op, {}, arrays)
        (found,) = PythonExecutable(build(graph))(arrays)
        assert_close(found, evaluate(graph, arrays)[0], f"{op.name} {shape}")


CASTS = [
    pair for pair in itertools.product((*DTYPES, "int8", "uint16", "uint64"), repeat=2) if pair[0] != pair[1]
]


@pytest.mark.sampled
@pytest.mark.parametrize(("source", "target"), CASTS, ids="-".join)
def test_casts(source: str, target: str) -> None:
    values = np.array([0, 1, 2, 100, 127, 3])
    if np.dtype(source).kind in "iu":
        info = np.iinfo(source)
        array = np.append(values.astype(source), np.array([info.max, info.min], source))
    else:
        array = np.append(values.astype(source), np.array([0.5, 2.9]).astype(source))
    graph = graph_of(OPS["cast"], {"dtype": np.dtype(target)}, [array])
    (found,) = PythonExecutable(build(graph))([array])
    np.testing.assert_array_equal(found, array.astype(target), strict=True)


def test_places_out_of_range_are_never_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Program, "check", lambda program, fault, outputs: None
    )  # to see the memory behind the error
    x = np.arange(6.0).reshape(2, 3)
    index = np.array([0, 5, -4, -1])
    graph = graph_of(OPS["take"], {"axis": 1}, [x, index])
    (found,) = PythonExecutable(build(graph))([x, index])
    np.testing.assert_array_equal(found, x[:, [0, 0, 0, -1]] + np.array([0, np.nan, np.nan, 0]))
    for name in ("scatter_add", "put"):
        graph = graph_of(OPS[name], {"axis": 1}, [x, index, np.ones((2, 4))])
        (found,) = PythonExecutable(build(graph))([x, index, np.ones((2, 4))])
        expected = x + np.array([1.0, 0, 1.0]) if name == "scatter_add" else np.where([1, 0, 1], 1.0, x)
        np.testing.assert_array_equal(found, expected)


def wrong(op: Op, change: Callable[[Builder, Value], Value]) -> Op:
    """Return `op` with another rule: its cotangents changed."""

    def vjp(b: Any, node: Any, ct: Any) -> Any:
        assert op.vjp is not None
        contributions = op.vjp(b, node, ct)
        return [
            None if part is None else change(b, part if isinstance(part, Value) else part())
            for part in contributions
        ]

    return dataclasses.replace(op, vjp=vjp)


@pytest.mark.parametrize(
    "name", ["tanh", "mul", "div", "sum", "matmul", "maximum", "take", "where", "concatenate"]
)
def test_the_checker_finds_a_rule_that_is_off_by_a_millionth(name: str) -> None:
    op = OPS[name]
    check_adjoint(op, op.samples[0])
    with pytest.raises(AssertionError):
        check_adjoint(wrong(op, lambda b, ct: b.mul(ct, 1.0 + 1e-6)), op.samples[0])


def test_the_checker_finds_a_rule_of_the_wrong_sign_or_with_nan() -> None:
    op = OPS["exp"]
    for change in (lambda b, ct: b.neg(ct), lambda b, ct: b.mul(ct, float("nan"))):
        with pytest.raises(AssertionError, match="by the rules of the record, but"):
            check_adjoint(wrong(op, change), op.samples[0])


def test_an_op_of_three_operands_gets_all_triples() -> None:
    assert np.broadcast(*all_pairs(OPS["where"], np.arange(5.0))).shape == (5, 5, 5)
    assert operands_of(OPS["where"], ["x", "y"]) == ["x", "y", "x"]


def test_a_mismatch_is_shown_with_its_operands() -> None:
    x, y = np.array([2.0, -1.0]), np.array([3.0, 1e308])
    with pytest.raises(
        AssertionError, match=r"^mul\(-1.0, 1e\+308\): -0.0, expected -1e\+308 \(1 of 2 differ"
    ):
        assert_computed(OPS["mul"], np.array([6.0, -0.0]), x * y, [x, y])
    with pytest.raises(AssertionError, match=r"^mul\(2.0, 3.0\): 0.0, expected -0.0"):
        assert_computed(OPS["mul"], np.zeros(2), np.array([-0.0, 0.0]), [x, y])


def test_the_ops_of_the_page_on_ops_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "adding_an_op.md").read_text()
    defined: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, defined)
    known = namespace()
    monkeypatch.setattr(python, "namespace", lambda: {**known, "cumprod": defined["cumprod"]})
    for op in (defined["log1mexp"], defined["softcap"], defined["cumulative_product"]):
        monkeypatch.setitem(OPS, op.name, op)
        for sample in op.samples:
            check_infer(op, sample, "float64")
            check_emitted(op, sample, "float32")
            check_adjoint(op, sample)


def test_a_template_that_chooses_in_python_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"^op 'relu': its template chooses with if, and, or or; choose with where\(condition, a, b\), because "
        r"operands may be vectors$",
    ):
        dataclasses.replace(OPS["relu"], emit=Scalar("{0} if {0} > {T}(0.0) else {T}(0.0)"))


def test_a_function_of_the_python_backend_is_the_reference_of_its_own_op() -> None:
    # sigmoid and softplus call exp and log1p of other ops; their own references are not these functions.
    names = namespace()
    assert names["exp_f64"] is OPS["exp"].numpy
    assert names["log1p_f64"] is OPS["log1p"].numpy


def test_an_op_that_lacks_what_the_tests_need_is_refused() -> None:
    with pytest.raises(TypeError, match="lacks its doc or its samples"):
        dataclasses.replace(OPS["tanh"], samples=())
    with pytest.raises(TypeError, match="of kind REDUCE has emit"):
        dataclasses.replace(OPS["tanh"], kind=Kind.REDUCE)
