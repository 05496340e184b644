# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers with infinities, NaN, zeros of both signs and huge parts: uncompiled and in replays as in NumPy."""

import itertools
from typing import Any

import numpy as np
import pytest

import tracejit as tj

SMALL = (0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan)
HUGE = (
    *SMALL,
    1e307,
    -1e307,
    1e-307,
)  # whose products overflow before they are added, or not: by the CPU's NumPy
BINARY = ("add", "subtract", "multiply", "divide", "equal", "less", "maximum", "minimum", "fmax", "fmin")
UNARY = ("negative", "conjugate", "absolute", "exp", "log", "sqrt", "reciprocal", "cos", "tan", "sinh", "cosh", "tanh",
         "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "log2", "log10", "log1p", "expm1", "exp2",
         "isnan", "isfinite", "isinf", "angle", "sign")  # fmt: skip


def numbers(parts: Any) -> np.ndarray:
    return np.array([complex(*pair) for pair in itertools.product(parts, parts)])


def check(fun: Any, *operands: Any) -> None:
    with np.errstate(all="ignore"):
        want = fun(*operands)
    accelerated = tj.dlaccelerate(fun)
    given = [tj.dlarray(part) if isinstance(part, np.ndarray) else part for part in operands]
    for found in (fun(*given), *[accelerated(*given) for _ in range(3)]):
        data = np.asarray(found)
        assert data.dtype == want.dtype
        for a, b in (
            ((data.real, want.real), (data.imag, want.imag)) if want.dtype.kind == "c" else ((data, want),)
        ):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=0)
            if want.dtype.kind == "c" and fun is not np.sign:
                zero = b == 0
                assert (np.signbit(a) == np.signbit(b))[zero].all()
    assert accelerated.stats.hits == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kinds", ["cc", "cr", "rc"])
def test_of_two(name: str, kinds: str) -> None:
    z, r = numbers(SMALL), np.array(SMALL)
    x, y = (z if kind == "c" else r for kind in kinds)
    check(getattr(np, name), np.repeat(x, len(y)), np.tile(y, len(x)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["multiply", "divide", "add"])
@pytest.mark.parametrize("number", [2.0, 0.0, -0.0, np.inf, 1j, complex(np.inf, 0), complex(0, np.nan)])
def test_with_a_number(name: str, number: complex) -> None:
    fun = getattr(np, name)
    check(lambda z: fun(z, number), numbers(SMALL))
    check(lambda z: fun(number, z), numbers(SMALL))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_of_one(name: str) -> None:
    check(getattr(np, name), numbers(HUGE))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, complex(0, np.inf), complex(np.nan, 1)])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 12])
def test_transforms(value: complex, n: int) -> None:
    """No element of a transform is finite if one of the operand is not."""
    z = np.ones((3, n), complex)
    z[1, n // 2] = value
    accelerated = tj.dlaccelerate(
        lambda z: (np.fft.fft(z), np.fft.ifft(z), np.fft.rfft(z.real), np.fft.irfft(z, 2 * n))
    )
    for _ in range(3):
        found = accelerated(tj.dlarray(z))
    for part, of in zip(found, (z, z, z.real, z), strict=True):
        finite = np.isfinite(np.asarray(part)).all(1)
        assert finite[[0, 2]].all()
        assert np.isfinite(of[1]).all() == finite[1] or n == 1
