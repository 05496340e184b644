# SPDX-License-Identifier: BSD-3-Clause
"""Ufuncs of an array and a scalar: NumPy's dtypes, numbers and errors, for Python's numbers and NumPy's own."""

import itertools
from typing import Any

import numpy as np
import pytest

import tracejit as tj

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
UFUNCS = sorted(
    {u for u in vars(np).values() if type(u) is np.ufunc and u.nin == 2 and u.signature is None},
    key=lambda ufunc: ufunc.__name__,
)
DTYPES = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16")
PYTHONS = (0, 1, -1, 3, True, 200, -200, 70000, 2**31, -(2**31) - 1, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -1.5,
           1e300, np.inf, np.nan, 2j)  # fmt: skip
NUMPYS = (np.bool_(True), np.int8(-1), np.uint8(200), np.int16(-300), np.uint16(40000), np.int32(-70000), np.uint32(3),
          np.int64(-2), np.uint64(2**63), np.float32(1.5), np.float64(-2.5), np.complex64(1j))  # fmt: skip


def outcome(ufunc: np.ufunc, *operands: Any) -> Any:
    """Return the results, or the class of the error."""
    try:
        found = ufunc(*operands)
    except (TypeError, OverflowError, ValueError) as error:
        return type(error)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


def is_answered(ufunc: np.ufunc, scalar: Any) -> bool:
    """Return whether the answer for an integer is plain that NumPy cannot convert to 64 bits, or ldexp to 32."""
    asks = ufunc.__name__.startswith(("logical", "less", "greater", "equal", "not_equal"))
    return type(scalar) is int and abs(scalar) >= (2**63 if asks else 2**31) and (asks or ufunc is np.ldexp)


def check(ufunc: np.ufunc, operands: list[Any], want: Any, found: Any) -> None:
    case = f"{ufunc.__name__} of {str(operands)[:100]}: {found}, expected {want}"
    if isinstance(want, type):
        if isinstance(found, list):
            assert is_answered(ufunc, next(part for part in operands if np.ndim(part) == 0)), case
        else:
            kinds = (
                (OverflowError, TypeError, ValueError) if want is OverflowError else (TypeError, ValueError)
            )
            assert issubclass(found, kinds), case
        return
    assert isinstance(found, list), case
    if want[0].dtype == np.float16:  # float32 here, which neither rounds nor overflows so soon
        assert {part.dtype for part in found} == {np.dtype(np.float32)}, case
        if ufunc is np.nextafter or any(abs(complex(np.max(part))) > 1e4 for part in operands):
            return
        tolerance = 2e-3
        with np.errstate(all="ignore"):
            found = [part.astype(np.float16) for part in found]
    else:
        assert [part.dtype for part in found] == [part.dtype for part in want], case
        tolerance = 1e-5
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b.astype(a.dtype), rtol=tolerance, atol=tolerance / 100, err_msg=case)


@pytest.mark.sampled
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc(ufunc: np.ufunc) -> None:
    for dtype, scalar, swapped in itertools.product(DTYPES, PYTHONS + NUMPYS, (False, True)):
        x = np.array([0, 1, 3, 100], dtype)
        operands = [scalar, x] if swapped else [x, scalar]
        with np.errstate(all="ignore"):
            want = outcome(ufunc, *operands)
        found = outcome(ufunc, *[tj.dlarray(part) if part is x else part for part in operands])
        check(ufunc, operands, want, found)


@pytest.mark.parametrize("bounds", [(-1, 300), (-1, 100), (50, 10**30), (np.int64(-1), 300)])
def test_bounds_beyond_the_range_of_integers(bounds: Any) -> None:
    x = np.array([0, 60, 200], np.uint8)
    if isinstance(bounds[0], np.int64):
        with pytest.raises(OverflowError):
            tj.dlarray(x) + 300
        return
    found = np.clip(tj.dlarray(x), *bounds)
    assert found.dtype == np.uint8 and found.tolist() == np.clip(x, *bounds).tolist()


def test_the_same_in_replays() -> None:
    fun = tj.dlaccelerate(
        lambda x: (np.hypot(x, 70000), x < 300, np.clip(x, -5, 150), np.where(x > 1, x, 300))
    )
    x = np.array([1, 200], np.uint8)
    for _ in range(4):
        hypotenuse, is_less, clipped, chosen = fun(tj.dlarray(x))
    assert fun.stats.hits == 2
    assert hypotenuse.dtype == np.float32 and is_less.tolist() == [True, True]
    assert clipped.tolist() == [1, 150] and clipped.dtype == np.uint8
    assert chosen.tolist() == [300, 200]  # NumPy keeps the last bits of 300
    refused = tj.dlaccelerate(lambda x, n: x + n)
    with pytest.raises(
        tj.RangeError, match=r"add: y=300 does not fit uint8 \(0 to 255\); cast the array first"
    ):
        refused(tj.dlarray(x), 300)
