# SPDX-License-Identifier: BSD-3-Clause
"""Every op on complex numbers: its reference, the formulas of its parts, adjoints by derivatives along both axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, draw

from tracejit.autodiff import gradient
from tracejit.aval import Aval, part_dtype
from tracejit.errors import DTypeError
from tracejit.ir import Builder, Graph, evaluate, verify
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.op import Layout, Sample, Scalar
from tracejit.passes.graph.complex_parts import complex_parts, is_known
from tracejit.pipeline import build
from tracejit.runtime.python import PythonExecutable

STEP, NEAR = 6e-6, 3e-8
pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def takes(op: Op, sample: Sample, dtype: str = "complex128") -> bool:
    arrays = draw(op, sample, dtype)
    try:
        found = op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays], **sample.params)
    except DTypeError:
        return False
    return any(x.dtype.kind == "c" for x in (*arrays, *([found] if isinstance(found, Aval) else found)))


COMPLEX = [case for case in CASES if takes(*case)]
complex_ops = pytest.mark.parametrize(
    "case", COMPLEX, ids=lambda case: f"{case[0].name}{case[0].samples.index(case[1])}"
)


def graph_of(op: Op, params: Any, arrays: Sequence[np.ndarray]) -> Graph:
    graph = Graph()
    b = Builder(graph)
    results = b.apply(op, [b.input(Aval(a.shape, None, a.dtype)) for a in arrays], dict(params))
    graph.outputs = list(results) if isinstance(results, tuple) else [results]
    verify(graph)
    return graph


def assert_near(have: np.ndarray, want: np.ndarray, what: str, eps: int = 64) -> None:
    assert (have.dtype, have.shape) == (want.dtype, want.shape), what
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(have, want, err_msg=what)
        return
    scale = np.finfo(want.dtype).eps * eps
    np.testing.assert_allclose(have, want, rtol=scale, atol=scale, err_msg=what)


def test_there_are_cases_of_all_kinds() -> None:
    kinds = {op.kind for op, _ in COMPLEX}
    assert kinds == {Kind.ELEMENTWISE, Kind.REDUCE, Kind.MOVE, Kind.CONTRACT, Kind.KERNEL}


def test_each_op_that_takes_complex_numbers_has_a_formula_of_their_parts() -> None:
    assert {op.name for op, _ in COMPLEX if not is_known(op.name)} == set()


def test_ops_of_real_numbers_refuse_complex_ones() -> None:
    refused = [
        op for op in OPS.values() if not op.takes_complex and op.kind in (Kind.ELEMENTWISE, Kind.KERNEL)
    ]
    assert len(refused) > 30
    for op in refused:
        avals = [Aval(shape, None, np.dtype("complex64")) for shape in op.samples[0].shapes]
        with pytest.raises(DTypeError, match="not defined for complex64"):
            op.infer(*avals, **op.samples[0].params)


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@complex_ops
def test_parts_compute_what_the_reference_does(case: tuple[Op, Sample]) -> None:
    op, sample = case
    for dtype in ("complex128", "complex64"):
        arrays = draw(op, sample, dtype)
        if not takes(op, sample, dtype):
            continue
        avals = [Aval(a.shape, None, a.dtype) for a in arrays]
        results = op.numpy(*arrays, **sample.params)
        inferred = op.infer(*avals, **sample.params)
        for result, aval in zip(
            results if isinstance(results, tuple) else (results,),
            (inferred,) if isinstance(inferred, Aval) else inferred,
            strict=True,
        ):
            assert (np.shape(result), np.asarray(result).dtype) == (aval.shape, aval.dtype)
        graph = graph_of(op, sample.params, arrays)
        split = complex_parts(graph)
        verify(split)
        for value in (v for node in split.nodes for v in node.outputs):
            assert value.dtype.kind != "c" or value.node.op.name in (
                "complex_of",
                "fft_lines",
                "lines_by_numpy",
                "reshape",
                "complex_product",
                "gram",
            )
        for have, want in zip(evaluate(split, arrays), evaluate(graph, arrays), strict=True):
            assert_near(have, want, f"{op.name} of {dtype}")


def test_both_parts_of_moved_numbers_are_stored_at_once() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)) for _ in range(2)]
    b = Builder(Graph())
    x, y = [b.input(Aval(a.shape, None, a.dtype)) for a in arrays]
    b.graph.outputs = [b.add(b.concatenate(x, y, axis=1), b.concatenate(y, x, axis=1))]
    program = build(b.graph)
    assert len(program.rows) == 10  # a copy of each part of each operand, and a sum for each part
    (found,) = PythonExecutable(program)(arrays)
    np.testing.assert_array_equal(
        found, np.concatenate(arrays, axis=1) + np.concatenate(arrays[::-1], axis=1)
    )


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@complex_ops
def test_emitted_code_is_the_reference(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "complex128")
    graph = graph_of(op, sample.params, arrays)
    spread = []
    for array in arrays:
        wide = np.zeros([2 * n for n in array.shape], array.dtype)
        wide[(slice(None, None, 2),) * array.ndim] = array
        spread.append(wide[(slice(None, None, 2),) * array.ndim])
    want = evaluate(graph, arrays)
    for placed in (arrays, spread):
        layouts = [Layout(0, a.shape, tuple(s // a.itemsize for s in a.strides)) for a in placed]
        program = build(graph, layouts)
        for have, expected in zip(PythonExecutable(program)(placed), want, strict=True):
            assert_near(have, expected, op.name)


def differentiable(op: Op, sample: Sample) -> bool:
    to = np.dtype(sample.params.get("dtype", "float64"))
    return op.vjp is not None and to == np.float64


def adjoint(op: Op, sample: Sample, arrays: Sequence[np.ndarray]) -> tuple[Graph, list[int], np.ndarray]:
    """Return a graph of the cotangents (Note [complex cotangents]) of all smooth inputs, and that of the output."""
    graph = graph_of(op, sample.params, arrays)
    out = graph.outputs[0]
    rng = np.random.default_rng(1)
    ct = rng.uniform(0.5, 1.5, out.shape).astype(out.dtype)
    if out.dtype.kind == "c":
        ct = ct + 1j * rng.uniform(0.5, 1.5, out.shape).astype(part_dtype(out.dtype))
    b = Builder(graph)
    wrt = [i for i, value in enumerate(graph.inputs) if value.dtype.kind in "fc"]
    seed = b.input(Aval(ct.shape, None, ct.dtype))
    found = gradient(b, [out], [seed], [graph.inputs[i] for i in wrt])
    graph.outputs = [
        b.constant(np.zeros(graph.inputs[i].shape, graph.inputs[i].dtype)) if g is None else g
        for i, g in zip(wrt, found, strict=True)
    ]
    verify(graph)
    return graph, wrt, ct


def pairing(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    return float(sum(np.real(x * y).sum() for x, y in zip(xs, ys, strict=True)))


def changes(
    arrays: Sequence[np.ndarray], wrt: Sequence[int], unit: complex, seed: int
) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for i in wrt:
        step = rng.uniform(0.5, 1.5, arrays[i].shape) * rng.choice((-1, 1), arrays[i].shape)
        found[i] = step * unit if arrays[i].dtype.kind == "c" else step
    return found


def moved(arrays: Sequence[np.ndarray], by: dict[int, np.ndarray], step: float) -> list[np.ndarray]:
    return [array + step * by[i] if i in by else array for i, array in enumerate(arrays)]


SMOOTH = [case for case in COMPLEX if differentiable(*case)]


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: f"{case[0].name}{case[0].samples.index(case[1])}")
def test_adjoints_are_derivatives_along_both_axes(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "complex128")
    graph, wrt, ct = adjoint(op, sample, arrays)
    cts = evaluate(graph, [*arrays, ct])
    parts = PythonExecutable(build(graph))([*arrays, ct])
    for have, want in zip(parts, cts, strict=True):
        assert_near(have, want, op.name, 256)

    def value(by: dict[int, np.ndarray], step: float) -> float:
        return pairing([op.numpy(*moved(arrays, by, step), **sample.params)], [ct])

    for unit in (1.0, 1j):
        by = changes(arrays, wrt, unit, 2)
        expected = (value(by, STEP) - value(by, -STEP)) / (2 * STEP)
        found = pairing(cts, [by[i] for i in wrt])
        assert abs(found - expected) <= NEAR * max(1.0, abs(expected)), (op.name, unit, found, expected)


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: f"{case[0].name}{case[0].samples.index(case[1])}")
def test_second_derivatives(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = draw(op, sample, "complex128")
    graph, wrt, ct = adjoint(op, sample, arrays)
    weights = changes(arrays, wrt, np.exp(0.7j), 3)
    b = Builder(graph)
    first = list(graph.outputs)
    second = gradient(b, first, [b.constant(weights[i]) for i in wrt], [graph.inputs[i] for i in wrt])
    graph.outputs = [
        b.constant(np.zeros(graph.inputs[i].shape, graph.inputs[i].dtype)) if g is None else g
        for i, g in zip(wrt, second, strict=True)
    ]
    found = evaluate(graph, [*arrays, ct])
    graph.outputs = first

    def value(by: dict[int, np.ndarray], step: float) -> float:
        return pairing(evaluate(graph, [*moved(arrays, by, step), ct]), [weights[i] for i in wrt])

    for unit in (1.0, 1j):
        by = changes(arrays, wrt, unit, 4)
        expected = (value(by, STEP) - value(by, -STEP)) / (2 * STEP)
        have = pairing(found, [by[i] for i in wrt])
        assert abs(have - expected) <= 3e-7 * max(1.0, abs(expected)), (op.name, unit, have, expected)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.75, -2.5, np.inf, -np.inf, np.nan]
ONE_OPERAND = [
    op
    for op in OPS.values()
    if isinstance(op.emit, Scalar) and op.takes_complex and len(op.samples[0].shapes) == 1 and op.name != "cast"
    and takes(op, op.samples[0])
]  # fmt: skip


@pytest.mark.parametrize("name", ["add", "sub", "mul", "equal", "not_equal", "less", "less_equal", "greater", "maximum",
                                  "greater_equal", "minimum", "logical_and", "logical_or", "logical_xor"])  # fmt: skip
def test_pairs_of_special_values(name: str) -> None:
    numbers = np.array([complex(x, y) for x in SPECIAL for y in SPECIAL])
    x, y = (part.ravel() for part in np.meshgrid(numbers, numbers))
    graph = graph_of(OPS[name], {}, [x, y])
    (have,) = evaluate(complex_parts(graph), [x, y])
    (want,) = evaluate(graph, [x, y])
    np.testing.assert_array_equal(have, want)
    if want.dtype.kind == "c" and name not in ("maximum", "minimum"):
        np.testing.assert_array_equal(
            np.signbit(have.real[~np.isnan(want)]), np.signbit(want.real[~np.isnan(want)])
        )


@pytest.mark.parametrize("op", ONE_OPERAND, ids=lambda op: op.name)
def test_special_values(op: Op) -> None:
    """Values and signs of parts are NumPy's, on branch cuts too, where they are no NaN."""
    z = np.array([complex(x, y) for x in SPECIAL for y in SPECIAL])
    graph = graph_of(op, {}, [z])
    (have,) = evaluate(complex_parts(graph), [z])
    (want,) = evaluate(graph, [z])
    if want.dtype.kind == "b":
        np.testing.assert_array_equal(have, want)
        return
    for mine, theirs, part in ((have.real, want.real, "real"), (have.imag, want.imag, "imaginary")):
        known = ~np.isnan(theirs) if op.name in EXACT_AT_INFINITY else np.isfinite(z)
        known &= ~np.isnan(theirs)
        # ISO C leaves some signs open where an operand is not finite.
        close = np.isclose(np.abs(mine), np.abs(theirs), rtol=1e-13, atol=1e-14)
        close &= (np.signbit(mine) == np.signbit(theirs)) | ~np.isfinite(z)
        wrong = [(z[i], mine[i], theirs[i]) for i in np.flatnonzero(known & ~close)]
        assert not wrong, (part, wrong)


EXACT_AT_INFINITY = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "sinh",
        "cosh",
        "tanh",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "arcsinh",
        "arccosh",
        "arctanh",
        "conj",
        "neg",
        "stop_gradient",
        "rint",
        "square",
        "abs",
        "sign",
    ]
)
