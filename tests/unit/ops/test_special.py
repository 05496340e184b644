# SPDX-License-Identifier: BSD-3-Clause
"""Special functions: SciPy's own loops in programs, and derivatives by formulas."""

import ctypes
from typing import Any

import effort
import numpy as np
import pytest
import scipy.special
from op_cases import OF_SCIPY, draw, graph_of

from tracejit.autodiff import gradient
from tracejit.errors import ArgumentError, CodegenError, DTypeError, GradientError
from tracejit.functions.special_ufuncs import ALIASES, OPERANDS, results_of
from tracejit.ir import Builder, Value, evaluate, verify
from tracejit.ops import Op
from tracejit.ops.rules import UNKNOWN, ZERO
from tracejit.ops.special import RULES
from tracejit.ops.ufunc_loops import PREFIX, loop_for, routine_name, ufunc_of
from tracejit.pipeline import build
from tracejit.runtime import ufunc_loops
from tracejit.runtime.python import PythonExecutable

PUBLIC = {
    name: ufunc
    for name in dir(scipy.special)
    if isinstance(ufunc := getattr(scipy.special, name), np.ufunc)
    if ufunc.signature is None
}
THERE = [op for op in OF_SCIPY if hasattr(scipy.special, op.name[len(PREFIX) :])]
DTYPES = ("float64", "float32", "int64", "uint8", "bool")
STEP = 1e-4  # of differences of the fourth order
ROUGH = {
    "gdtria", "kolmogi", "smirnovi", "nrdtrisd", "btdtria", "btdtrib", "chdtriv", "fdtridfd", "gdtrib", "pdtrik",
    "stdtridf",
}  # fmt: skip
"""Functions that SciPy finds by iterations, to fewer digits."""


DEGREES = """
    eval_chebyt eval_chebyu eval_chebyc eval_chebys eval_sh_chebyt eval_sh_chebyu eval_legendre eval_sh_legendre
    eval_hermite eval_hermitenorm eval_laguerre eval_gegenbauer eval_genlaguerre eval_jacobi eval_sh_jacobi expn kn yn
    _spherical_jn _spherical_yn _spherical_in _spherical_kn pdtr pdtrc pdtri mathieu_a mathieu_b lpmv
"""
WHOLE: dict[str, tuple[tuple[int, int], ...]] = {
    **dict.fromkeys(DEGREES.split(), ((0, 5),)),
    **dict.fromkeys(
        ("smirnov", "smirnovi", "_smirnovp", "mathieu_cem", "mathieu_sem", "obl_cv", "pro_cv"), ((1, 5),)
    ),
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"), ((0, 3), (3, 7))),
}
"""Ranges of the first operands that are integers."""


def operands(op: Op, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Return operands within the domain of a function."""
    (sample,) = op.samples
    arrays = draw(op, sample, dtype, seed)
    rng = np.random.default_rng(seed)
    for place, (low, high) in enumerate(WHOLE.get(bare(op), ())):
        arrays[place] = rng.integers(low, high, arrays[place].shape)
    return arrays


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def bare(op: Op) -> str:
    return op.name.removeprefix(PREFIX)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_program_has_the_numbers_of_scipy(dtype: str) -> None:
    for op in effort.sample(THERE, dtype, share=8):
        if dtype[0] != "f" and bare(op).startswith(("obl_", "pro_")):
            continue  # SciPy's loops do not end for some whole numbers
        arrays = operands(op, dtype)
        want = ufunc_of(bare(op))(*arrays)
        graph = graph_of(lambda b, *inputs, op=op: listed(b.apply(op, inputs, {})), arrays)
        wanted = want if isinstance(want, tuple) else (want,)
        for way in (evaluate(graph, arrays), PythonExecutable(build(graph))(arrays)):
            for found, expected, value in zip(way, wanted, graph.outputs, strict=True):
                assert value.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected, err_msg=op.name, strict=True)


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def derivative(op: Op, arrays: list[np.ndarray], place: int, by: np.ndarray, cts: list[np.ndarray]) -> float:
    """Return the derivative along a direction of one operand by the op's adjoint."""

    def make(b: Builder, *inputs: Value) -> list[Value]:
        outputs = listed(b.apply(op, inputs, {}))
        (found,) = gradient(b, outputs, [b.constant(ct) for ct in cts], [inputs[place]])
        return [] if found is None else [found]

    graph = graph_of(make, arrays)
    verify(graph)
    return float(sum((part * by).sum() for part in evaluate(graph, arrays)))


DIFFERENTIABLE = [op for op in THERE if op.vjp is not None and any(map(callable, RULES[bare(op)]))]


def test_formulas_are_the_derivatives() -> None:
    """By differences of SciPy's results, along each operand that has a formula."""
    rng = np.random.default_rng(3)
    for op in effort.sample(DIFFERENTIABLE, share=8):
        arrays = operands(op, "float64", 1)
        cts = [rng.uniform(0.5, 1.5, np.shape(result)) for result in listed(op.numpy(*arrays))]
        for place, rule in enumerate(RULES[bare(op)]):
            if rule is UNKNOWN or arrays[place].dtype.kind != "f":
                continue
            by = rng.uniform(0.5, 1.5, arrays[place].shape)

            def value(
                step: float, op: Op = op, arrays: Any = arrays, place: int = place, by: Any = by
            ) -> float:
                moved = [*arrays[:place], arrays[place] + step * by, *arrays[place + 1 :]]
                return float(sum((result * ct).sum() for result, ct in zip(listed(op.numpy(*moved)), cts)))  # noqa: B023,B905

            wanted = (8 * (value(STEP) - value(-STEP)) - value(2 * STEP) + value(-2 * STEP)) / (12 * STEP)
            found = derivative(op, arrays, place, by, cts)
            tolerance = 1e-5 if bare(op) in ROUGH else 1e-7
            assert abs(found - wanted) <= tolerance * max(1.0, abs(wanted)), (op.name, place, found, wanted)


def test_another_operand_has_a_typed_error() -> None:
    op = next(op for op in OF_SCIPY if bare(op) == "jv")
    arrays = operands(op, "float64")
    with pytest.raises(
        GradientError, match=r"^special\.jv: there is no formula for its derivative by operand 1"
    ):
        derivative(op, arrays, 0, arrays[0], [np.ones((2, 3))])


def test_every_rule_is_of_a_record_and_every_ufunc_has_one() -> None:
    real = {
        name
        for name, ufunc in PUBLIC.items()
        if any(set(types.replace("->", "")) <= set("fdl") for types in ufunc.types)
    }
    assert real <= {*OPERANDS, *ALIASES}
    for name, count in OPERANDS.items():
        if name in PUBLIC:
            assert (PUBLIC[name].nin, PUBLIC[name].nout) == (count, results_of(name)), name
    assert all(len(RULES[bare(op)]) == len(op.samples[0].shapes) for op in OF_SCIPY)
    assert all(rule in (ZERO, UNKNOWN) or callable(rule) for rules in RULES.values() for rule in rules)


class TestLoops:
    def test_dtypes_are_those_of_scipy(self) -> None:
        cases: list[tuple[str, tuple[Any, ...], str]] = [
            ("gammaln", ("int8",), PUBLIC["gammaln"].types[0]),  # SciPy changed their order
            ("entr", ("int8",), "f->f"),
            ("gammaln", ("int64",), "d->d"),
            ("jv", (int, "float32"), "ff->f"),
            ("eval_legendre", ("int64", "float64"), "ld->d"),
            ("sici", ("float32",), "f->ff"),
        ]
        for name, dtypes, expected in cases:
            loop = loop_for(name, tuple(np.dtype(d) if isinstance(d, str) else d for d in dtypes))
            assert routine_name(name, loop) == f"scipy.special.{name}/{expected}"

    def test_operands_that_scipy_refuses(self) -> None:
        with pytest.raises(
            DTypeError, match=r"^special\.eval_hermite: not defined for float64, float64; cast"
        ):
            loop_for("eval_hermite", (np.dtype("float64"), np.dtype("float64")))
        with pytest.raises(DTypeError, match=r"^special\.wofz: not defined for float64"):
            loop_for("wofz", (np.dtype("float64"),))

    def test_names_that_are_no_loops(self) -> None:
        with pytest.raises(
            ArgumentError, match=r"^scipy\.special\.nothing: the SciPy that is installed has no such"
        ):
            ufunc_of("nothing")
        for name, why in (
            ("scipy.special.gammaln", "no routine"), ("os.system/d->d", "no routine"),
            ("scipy.special.gammaln/dd->d", "has no loop"),
        ):  # fmt: skip
            with pytest.raises(CodegenError, match=why):
                ufunc_loops.address(name)

    def test_the_loop_at_an_address_computes(self) -> None:
        pair = (ctypes.c_void_p * 2).from_address(ufunc_loops.address("scipy.special.jv/dd->d"))
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
        order, x, out = np.array(2.0), np.linspace(0.5, 3, 5), np.zeros(5)
        arrays = np.array([a.ctypes.data for a in (order, x, out)])
        count, steps = np.array([5]), np.array([0, 8, 8])
        kind(pair[0])(arrays.ctypes.data, count.ctypes.data, steps.ctypes.data, pair[1])
        np.testing.assert_array_equal(out, scipy.special.jv(2.0, x))

    def test_a_table_of_another_layout_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fields = [("more", ctypes.c_int * 2), *ufunc_loops.Head._fields_]
        other = type("Other", (ctypes.Structure,), {"_fields_": fields})
        monkeypatch.setattr(ufunc_loops, "Head", other)
        with pytest.raises(CodegenError, match="has an unknown layout"):
            ufunc_loops.head_of(scipy.special.gammaln)
