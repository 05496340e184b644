# SPDX-License-Identifier: BSD-3-Clause
"""The functions of emitted kernels against wider arithmetic (floats) and NumPy (special values, integers)."""

import ctypes
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from effort import sweep
from llvmlite.binding import get_host_cpu_features
from numba import carray, types
from op_cases import known_operands
from tracejit.kernels.intrinsics import polynomials, scalar

from tracejit.ops import elementwise
from tracejit.ops.op import Scalar

FLOATS: dict[str, np.dtype] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
INTEGERS: dict[str, np.dtype] = {
    f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)
}
DTYPES: dict[str, np.dtype] = {**FLOATS, **INTEGERS, "b1": np.dtype(bool)}
EXACT = {
    "ceil",
    "floor",
    "trunc",
    "rint",
    "sign",
    "reciprocal",
    "sqrt",
    "isinf",
    "isfinite",
    "mod",
    "floordiv",
    "frexp_fraction",
    "frexp_exponent",
    "ldexp",
    "nextafter",
    "spacing",
}
LIMIT_ULP = 4.0
LIBM = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "exp",
    "exp2", "expm1", "floor", "fmod", "log", "log10", "log1p", "log2", "nearbyint", "pow", "rint", "sin",
    "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip
NUMPY = {
    "pow": np.power,
    "mod": np.remainder,
    "floordiv": np.floor_divide,
    "frexp_fraction": lambda x: np.frexp(x)[0],
    "frexp_exponent": lambda x: np.frexp(x)[1].astype(x.dtype),
    "ldexp": lambda x, n: np.ldexp(x, np.clip(n, -9999, 9999).astype(np.int64)),
}


def _reference(name: str) -> Any:
    return np.frompyfunc(math.erf, 1, 1) if name == "erf" else NUMPY.get(name) or getattr(np, name)


def _names(suffix: str, arity: int) -> list[str]:
    if suffix in FLOATS:
        names = polynomials.UNARY if arity == 1 else polynomials.BINARY
        return sorted(name for name in names if "half" not in name and "brain" not in name)  # test_halves.py
    known = [
        name for name in (*polynomials.UNARY, *polynomials.BINARY) if f"{name}_{suffix}" in scalar.FUNCTIONS
    ]
    return sorted(name for name in known if (name in polynomials.BINARY) == (arity == 2))


def _compile(suffix: str, names: Sequence[str], arity: int) -> Any:
    """Return one kernel with a loop for each function; the results stand one after the other."""
    operands = ("x[i]", "y[i]")[:arity]
    lines = ["def kernel(px, py, po, n):", " x = carray(px, n)", " y = carray(py, n)"]
    for number, name in enumerate(names):
        lines += [
            f" o = carray(po, ({len(names)}, n))[{number}]",
            " for i in range(n):",
            f"  o[i] = {name}_{suffix}({', '.join(operands)})",
        ]
    namespace: dict[str, Any] = {"carray": carray, **scalar.FUNCTIONS}
    exec("\n".join(lines), namespace)
    pointer = types.CPointer(numba.from_dtype(DTYPES[suffix]))
    signature = types.void(pointer, pointer, pointer, types.intp)
    return numba.cfunc(signature, nopython=True, error_model="numpy")(namespace["kernel"])


def _run(kernel: Any, count: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = np.empty((count, x.size), x.dtype)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_ssize_t)(kernel.address)
    function(x.ctypes.data, y.ctypes.data, result.ctypes.data, x.size)
    return result


COUNT = sweep(500, 2000)  # of numbers from each range


def _special(dtype: np.dtype) -> np.ndarray:
    limits = np.finfo(dtype)
    numbers = [
        0.0, np.inf, np.nan, limits.tiny, limits.smallest_subnormal, limits.max, 1.0, 2.0, 0.5, 3.0, 1e5,
        1e30, 1 + limits.eps, 1 - limits.epsneg, limits.tiny / 8,
    ]  # fmt: skip
    return np.array([sign * number for number in numbers for sign in (1.0, -1.0)], dtype)


@cache
def _inputs(suffix: str, arity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return special values, random bit patterns, dense ranges, and neighbours of multiples of pi / 2."""
    dtype = FLOATS[suffix]
    random = np.random.default_rng(7)
    special = _special(dtype)
    patterns = random.integers(0, 256, 2 * COUNT * dtype.itemsize, np.uint8).view(dtype)
    widths = (1e-3, 0.5, 1.0, 1.5, 6.0, 30.0, 1.05 * math.log(np.finfo(dtype).max), 1e5)
    parts = [patterns, *[random.uniform(-width, width, COUNT) for width in widths]]
    parts.append(1.0 + random.uniform(-1, 1, COUNT) * 10.0 ** random.uniform(-8, 0, COUNT))
    parts.append(np.pi / 2 * np.concatenate([np.arange(-500, 500), np.arange(60000, 60500)]))
    x = np.concatenate([part.astype(dtype) for part in parts])
    if arity == 1:
        return np.concatenate([special, x]), np.concatenate([special, x])
    near_one = random.uniform(0.9, 1.1, 4000).astype(dtype)
    left, right = (part.ravel() for part in np.meshgrid(special, special))
    x, y = (
        np.concatenate([left, x, near_one]),
        np.concatenate([right, random.permutation(x), random.uniform(-500, 500, 4000).astype(dtype)]),
    )
    return x, y


@cache
def _kernel(suffix: str, arity: int) -> Any:
    return _compile(suffix, _names(suffix, arity), arity)


@cache
def _results(suffix: str, arity: int) -> dict[str, np.ndarray]:
    names = _names(suffix, arity)
    x, y = _inputs(suffix, arity)
    return dict(zip(names, _run(_kernel(suffix, arity), len(names), x, y), strict=True))


def _error_ulp(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the distance from wider results in units of the last place; infinite if the sign differs."""
    limits = np.finfo(found.dtype)
    rounded = expected.astype(found.dtype)
    exponent = np.frexp(np.maximum(np.abs(expected), limits.smallest_normal))[1] - 1
    error = np.abs(found - expected) / np.ldexp(np.ones_like(expected), exponent - limits.nmant)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    finite = np.isfinite(found) & np.isfinite(rounded)
    error = np.where(finite, error, np.where(same, 0.0, np.inf))
    other_sign = ~np.isnan(rounded) & (np.signbit(found) != np.signbit(rounded))
    return np.where(other_sign, np.inf, error)


def _expected(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    operands = (x, y) if name in polynomials.BINARY else (x,)
    if name == "erf":
        return np.array([math.erf(number) for number in x.tolist()])
    if name not in EXACT:
        wider = np.float64 if x.dtype == np.float32 else np.longdouble
        operands = tuple(operand.astype(wider) for operand in operands)
    expected = _reference(name)(*operands)
    return expected.astype(float) if expected.dtype == bool else expected  # type: ignore[no-any-return]


CASES = [
    (name, suffix)
    for suffix in FLOATS
    for name in (*_names(suffix, 1), *_names(suffix, 2))
]  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), CASES, ids=[f"{name}_{suffix}" for name, suffix in CASES])
def test_floats_are_right_to_few_units_in_the_last_place(name: str, suffix: str) -> None:
    if suffix == "f64" and name not in EXACT and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("long double is no wider than double here")
    arity = 2 if name in polynomials.BINARY else 1
    x, y = _inputs(suffix, arity)
    found = _results(suffix, arity)[name]
    if name == "ldexp":  # whose exponents are integers
        with np.errstate(all="ignore"):
            known = y == np.trunc(y)
        x, y, found = x[known], y[known], found[known]
    with np.errstate(all="ignore"):
        error = _error_ulp(found, _expected(name, x, y))
    worst = int(np.argmax(error))
    limit = 0.0 if name in EXACT else LIMIT_ULP
    assert error[worst] <= limit, f"{name}({x[worst]!r}, {y[worst]!r}) = {found[worst]!r}, {error[worst]} ulp"


@pytest.mark.parametrize("bits", [4, 16, 24, 29, 40])
def test_remainders_of_float32_are_exact_where_quotients_are_near_integers(bits: int) -> None:
    random = np.random.default_rng(bits)
    y = random.uniform(0.5, 8.0, COUNT).astype(np.float32)
    products = (random.integers(0, 2**bits, COUNT) * y.astype(np.float64)).astype(np.float32)
    x = (products.view(np.int32) + random.integers(-2, 3, COUNT).astype(np.int32)).view(np.float32)
    y *= random.choice(np.array([-1, 1], np.float32), COUNT)
    names = _names("f32", 2)
    found = dict(zip(names, _run(_kernel("f32", 2), len(names), x, y), strict=True))
    with np.errstate(all="ignore"):
        for name in ("mod", "floordiv"):
            np.testing.assert_array_equal(found[name], NUMPY[name](x, y), err_msg=name)


def test_the_measure_of_errors_sees_one_unit_and_the_sign_of_zero() -> None:
    found = np.array([1.0, 0.0, np.inf, 3.0], np.float32)
    expected = np.array([1.0 - 2.0**-23, -0.0, 3.0, 3.0])
    assert _error_ulp(found, expected).tolist() == [2.0, np.inf, np.inf, 0.0]


@pytest.mark.parametrize("suffix", FLOATS)
@pytest.mark.parametrize("arity", [1, 2])
def test_only_rare_cases_call_the_c_library(suffix: str, arity: int) -> None:
    code = _kernel(suffix, arity)._library.get_llvm_str()
    called = set(re.findall(r"call [^\n]*@(\w+)\(", code))
    ending = "f" if suffix == "f32" else ""
    kind = "float" if suffix == "f32" else "double"
    libm = called & {f"{name}{ending}" for name in LIBM}
    scalar_only = ["mod", "floordiv"] if arity == 2 and suffix == "f64" else []
    rare = ["sin", "cos", "tan"] if arity == 1 else [] if scalar_only else ["fmod"]
    assert libm == {f"{name}{ending}" for name in (rare or ["fmod"])}
    # Vectors reach the C library through these only, when an argument, or a quotient, is huge.
    for name in rare:
        assert any(re.fullmatch(rf"tracejit_{name}_{kind}_\d+", function) for function in called)
    # Two lanes of float64, without AVX, do not always pay.
    if get_host_cpu_features().get("avx2"):
        loops = set(re.findall(r"^(vector\.body\w*):", code, re.MULTILINE))
        assert len(loops) == len(_names(suffix, arity)) - len(scalar_only)


def _integers(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    limits = np.iinfo(dtype)
    if dtype.itemsize == 1:
        every = np.arange(limits.min, limits.max + 1).astype(dtype)
        x, y = np.meshgrid(every, every)
        return x.ravel(), y.ravel()
    random = np.random.default_rng(7)
    edges = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7, 10, 63, 64]
    edges += [-1, -2, -3, -7] if limits.min < 0 else []
    # A float has 53 bits.
    far = [2**31, 2**32 - 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1024, 2**63 - 1025]
    edges += [number for number in (*far, *(-number for number in far)) if limits.min <= number <= limits.max]
    left, right = (part.ravel() for part in np.meshgrid(np.array(edges, dtype), np.array(edges, dtype)))
    x = random.integers(limits.min, limits.max, 3000, dtype, endpoint=True)
    y = random.integers(limits.min, limits.max, 3000, dtype, endpoint=True)
    y[:1500] >>= dtype.type(8 * dtype.itemsize - 5)
    # Multiples and their neighbours, whose quotients are integers or nearly so.
    with np.errstate(over="ignore"):
        exact = x // np.where(y == 0, 1, y).astype(dtype) * y
        near = [exact, exact + dtype.type(1), exact - dtype.type(1)]
    return np.concatenate([left, x, *near]), np.concatenate([right, y, y, y, y])


@pytest.mark.parametrize("suffix", [*INTEGERS, "b1"])
def test_integers_are_as_in_numpy(suffix: str) -> None:
    dtype = DTYPES[suffix]
    x, y = _integers(dtype) if suffix != "b1" else (np.array([False, True]),) * 2
    for arity in (1, 2):
        names = _names(suffix, arity)
        if not names:
            continue
        results = _run(_compile(suffix, names, arity), len(names), x, y)
        for name, found in zip(names, results, strict=True):
            # NumPy rounds integers as floats, and refuses negative powers.
            reference = np.positive if name == "rint" and suffix != "b1" else _reference(name)
            here = y >= 0 if name == "pow" else known_operands(name, x)
            with np.errstate(all="ignore"):
                expected = reference(*(x[here], y[here])[:arity])
            np.testing.assert_array_equal(found[here], expected.astype(dtype), f"{name}_{suffix}")


def test_a_negative_power_of_an_integer_is_rounded_towards_zero() -> None:
    base = np.array([0, 1, -1, -1, 2, -3, -128], np.int8)
    exponent = np.array([-1, -5, -5, -4, -1, -1, -128], np.int8)
    found = _run(_compile("i8", ["pow"], 2), 1, base, exponent)[0]
    assert found.tolist() == [0, 1, -1, 1, 0, 0, 0]


def test_every_function_that_a_template_names_is_defined() -> None:
    suffixes = {dtype: suffix for suffix, dtype in DTYPES.items()}
    named = []
    for op in elementwise.OPS:
        assert isinstance(op.emit, Scalar)
        for function in re.findall(r"(\w+)_\{T\}\(", op.emit.template):
            arity = len(op.samples[0].shapes)
            promote = op.promote
            assert promote is not None
            for dtype in DTYPES.values():
                try:
                    operand = promote(*[dtype] * arity)[0]
                except TypeError:
                    continue
                named.append(f"{function}_{suffixes[operand]}")
    assert len(named) > 300
    assert set(named) <= set(scalar.FUNCTIONS)
