# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of 16 bits: each op record on float16 against NumPy's float16 and against float32 that is rounded once."""

from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from op_cases import CASES, ELEMENTWISE, draw, exact, numbers

import tracejit as tj
from tracejit import dlarray
from tracejit.errors import DTypeError, TraceJitError
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.halves import takes_halves
from tracejit.ops.op import Sample
from tracejit.record.halves import NO_OPS
from tracejit.record.recorder import apply

HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
OF_FLOATS = [
    (op, sample)
    for op, sample in CASES
    if op.kind not in (Kind.LOOP, Kind.HOST) and op.name != "cast" and not op.name.endswith(("64", "32"))
]
UFUNCS = [
    op for op in ELEMENTWISE if isinstance(getattr(np, op.title, None), np.ufunc) and op.name not in NO_OPS
]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def drawn(op: Op, sample: Sample) -> list[np.ndarray]:
    return [x.astype(HALF) if x.dtype == SINGLE else x for x in draw(op, sample, "float32")]


def listed(results: Any) -> list[np.ndarray]:
    return [tj.extractdata(x) for x in (results if isinstance(results, tuple) else (results,))]


def spacing(x: np.ndarray) -> np.ndarray:
    return np.abs(np.spacing(np.abs(x.astype(HALF)))).astype(float)


def assert_same_bits(have: np.ndarray, want: np.ndarray, what: str) -> None:
    assert have.dtype == want.dtype, what
    np.testing.assert_array_equal(have, want, err_msg=what)
    if have.dtype.kind == "f":
        told = ~np.isnan(want)
        assert np.array_equal(np.signbit(have)[told], np.signbit(want)[told]), what


@pytest.mark.sampled(by=lambda case: case["case"][0].name)
@pytest.mark.parametrize("case", OF_FLOATS, ids=lambda case: case[0].name)
def test_an_op_computes_in_single_and_rounds_once(case: tuple[Op, Sample]) -> None:
    op, sample = case
    arrays = drawn(op, sample)
    if op.name in NO_OPS:
        if arrays[0].dtype == HALF:
            with pytest.raises(DTypeError, match="cast them first"):
                apply(op.name, *map(dlarray, arrays), **sample.params)
        return
    if not any(x.dtype == HALF for x in arrays):
        return
    wide = [x.astype(SINGLE) if x.dtype == HALF else x for x in arrays]
    try:
        wanted = listed(apply(op.name, *map(dlarray, wide), **sample.params))
    except TraceJitError:  # such as one of complex numbers
        with pytest.raises(TraceJitError):
            apply(op.name, *map(dlarray, arrays), **sample.params)
        return
    found = listed(apply(op.name, *map(dlarray, arrays), **sample.params))
    for have, want in zip(found, wanted, strict=True):
        if want.dtype == SINGLE and have.dtype == HALF:
            assert_same_bits(have, want.astype(HALF), op.name)
        else:
            assert_same_bits(have, want, op.name)
    if takes_halves(op):
        assert all(have.dtype == HALF for have in found), op.name


@pytest.mark.parametrize("op", UFUNCS, ids=lambda op: op.name)
def test_ufuncs_are_those_of_numpy(op: Op) -> None:
    ufunc = getattr(np, op.title)
    x, y = (operand.astype(HALF) for operand in numbers("float32"))
    operands = (x, y)[: ufunc.nin]
    try:
        want = ufunc(*operands)
    except TypeError:
        with pytest.raises(TraceJitError):
            ufunc(*map(dlarray, operands))
        return
    have = tj.extractdata(ufunc(*map(dlarray, operands)))
    assert have.dtype == want.dtype
    if op.name in ("maximum", "minimum"):  # of 0 and -0 either is right
        np.testing.assert_array_equal(have, want)
        return
    if exact(op) or want.dtype != HALF:
        assert_same_bits(have, want, op.name)
        return
    # By the instructions of some CPUs, NumPy before 2.4 is wrong by three units.
    want = ufunc(*[operand.astype(SINGLE) for operand in operands]).astype(HALF)
    assert np.array_equal(np.isnan(have), np.isnan(want))
    finite = np.isfinite(want)
    assert np.array_equal(have[~finite & ~np.isnan(want)], want[~finite & ~np.isnan(want)])
    error = np.abs(have[finite].astype(float) - want[finite].astype(float))
    assert (error <= spacing(want[finite])).all(), op.name


OTHERS = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.parametrize("other", OTHERS)
def test_promotion_is_that_of_numpy(other: str) -> None:
    x, y = np.array([1.5, -2.0, 3.25], HALF), np.array([1, 0, 2]).astype(other)
    for ufunc in (np.add, np.multiply, np.greater, np.maximum):
        for operands in ((x, y), (y, x)):
            want = ufunc(*operands)
            have = tj.extractdata(ufunc(*map(dlarray, operands)))
            assert_same_bits(have, want, f"{ufunc.__name__} {other}")
    for want, have in (
        (np.where(y > 0, x, y), np.where(dlarray(y) > 0, dlarray(x), dlarray(y))),
        (np.concatenate([x, y]), np.concatenate([dlarray(x), dlarray(y)])),
        (x @ y, dlarray(x) @ dlarray(y)),
    ):
        assert tj.extractdata(have).dtype == want.dtype
        np.testing.assert_allclose(tj.extractdata(have), want, rtol=1e-3)


@pytest.mark.parametrize("number", [2, 0.1, True, 1e-8, 70000, 1e6, 2049, -3.5])
def test_numbers_of_python_take_16_bits_first(number: float) -> None:
    x = np.array([1.5, -2.0, 0.1, 60000.0], HALF)
    for operation in (
        lambda a: a + number,
        lambda a: number * a,
        lambda a: a < number,
        lambda a: a == number,
    ):
        assert_same_bits(tj.extractdata(operation(dlarray(x))), operation(x), str(number))


def test_casts_are_those_of_numpy() -> None:
    x = np.array([0.0, -0.0, 1.5, 200.0, 6e-8, 65504.0])
    for source in ("float16", "float32", "float64", "int64", "uint8", "bool"):
        for target in ("float16", "float32", "float64", "int32", "bool", "complex64"):
            if HALF not in (np.dtype(source), np.dtype(target)):
                continue
            given = np.abs(x).astype(source)
            want = given.astype(target)
            have = tj.extractdata(dlarray(given).astype(target))
            assert have.dtype == want.dtype
            np.testing.assert_array_equal(have, want)


REDUCTIONS = {
    "mean": np.mean, "var": np.var, "std": np.std, "sum": np.sum, "max": np.max, "argmax": np.argmax,
    "softmax": lambda a: tj.softmax(dlarray(a, "BC")), "norm": np.linalg.norm, "sort": np.sort, "median": np.median,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_functions_of_many_numbers_do_not_overflow_on_the_way(name: str) -> None:
    x = np.random.default_rng(0).uniform(100, 300, (4, 100)).astype(HALF)
    function = REDUCTIONS[name]
    have = tj.extractdata(function(dlarray(x)))
    want = tj.extractdata(function(dlarray(x.astype(np.float64))))
    if want.dtype.kind == "i":
        assert np.array_equal(have, want)
        return
    assert have.dtype == HALF
    np.testing.assert_allclose(have.astype(float), want.astype(HALF).astype(float), rtol=2**-10, atol=2**-24)


def test_derivatives_have_16_bits_and_are_summed_in_single() -> None:
    x = np.linspace(-1.0, 1.0, 6).astype(HALF).reshape(2, 3)
    w = np.linspace(0.5, 1.5, 12).astype(HALF).reshape(3, 4)

    def step(x: Any, w: Any) -> Any:
        y = np.tanh(x @ w) * 0.5 + np.concatenate([x, x[:, :1]], 1) ** 2
        loss = np.mean(np.exp(y))
        return loss, tj.dlgradient(loss, [x, w])

    wide = tj.dlfeval(step, dlarray(x.astype(float)), dlarray(w.astype(float)))
    accelerated = dlaccelerate(step)
    for call in (lambda *a: tj.dlfeval(step, *a), accelerated, accelerated):
        loss, gradients = call(dlarray(x), dlarray(w))
        assert loss.dtype == HALF and all(g.dtype == HALF for g in gradients)
        for have, want in zip(gradients, wide[1], strict=True):
            want = tj.extractdata(want)
            np.testing.assert_allclose(
                tj.extractdata(have).astype(float), want, atol=3e-3 * np.abs(want).max()
            )
    assert accelerated.hit_rate == 50

    ones = np.full(5000, 1.0, HALF)  # a sum in float16 would end at 2048
    (gradient,) = tj.dlfeval(
        lambda s, x: (tj.dlgradient((s * x).sum(), s),), dlarray(np.ones((), HALF)), dlarray(ones)
    )
    assert tj.extractdata(gradient) == 5000


def test_assignments_keep_16_bits() -> None:
    def written(x: Any) -> Any:
        x = x.copy()
        x[0] = 1.0 / 3
        x[1:] += 0.1
        x *= np.float32(2)
        return x

    x = np.array([1.0, 2.0, 3.0], HALF)
    step = dlaccelerate(written)
    for call in (written, step, step):
        assert_same_bits(tj.extractdata(call(dlarray(x))), written(x), "written")


def test_what_has_no_16_bits_says_so() -> None:
    square = dlarray(np.eye(2, dtype=HALF))
    for call in (
        lambda: np.linalg.inv(square),
        lambda: np.linalg.svd(square),
        lambda: np.nextafter(square, square),
        lambda: np.spacing(square),
    ):
        with pytest.raises(DTypeError, match="16 bits"):
            call()


def test_ops_of_bits_are_known() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = OPS["half_value"].numpy(bits.astype(SINGLE))
    np.testing.assert_array_equal(values, bits.view(HALF).astype(SINGLE))
    np.testing.assert_array_equal(OPS["half_round"].numpy(values), values)
    back = OPS["half_bits"].numpy(values)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(back[numbers], bits[numbers])
