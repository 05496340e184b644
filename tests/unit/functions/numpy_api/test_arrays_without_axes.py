# SPDX-License-Identifier: BSD-3-Clause
"""Results without axes: where NumPy gives an array, += writes it; where it gives a number, += makes another one."""

from typing import Any

import numpy as np
import pytest

import tracejit as tj

OF_NUMBERS = (  # x has no axes
    "x.astype(bool)", "x.astype(np.float32)", "np.astype(x, np.complex128)", "np.array(x, dtype=float)",
    "np.asarray(x, dtype=np.float32)", "x.round()", "np.round(x)", "np.around(x, 1)", "np.conj(x)", "np.positive(x)",
    "+x", "np.flip(x)", "np.nan_to_num(x)", "np.einsum('...->...', x)", "np.copy(x)", "np.array(x)", "x.copy()",
    "np.where(x > 0, x, y)", "np.select([x > 0], [x], 5)", "np.i0(x)", "np.pad(x, 1)", "np.isin(x, y)",
    "np.broadcast_to(x, ())[...].copy()", "np.abs(x)", "-x", "x.clip(0, 1)", "x.T", "x[...]", "x.reshape(())",
    "x.imag", "np.imag(x)", "x.real", "np.real(x)",
)  # fmt: skip
OF_VECTORS = (
    "np.quantile(x, 0.3)",
    "np.percentile(x, 30)",
    "np.nanquantile(x, 0.3)",
    "np.median(x)",
    "np.where(x[0] > 0, x[0], x[1])",
    "np.select([x[0] > 0], [x[1]], 0.0)",
    "np.tensordot(x, x, 1)",
    "np.copy(x[0])",
    "np.array(x[0])",
    "np.array(x.sum(), dtype=np.float32)",
    "x[0].astype(int)",
    "x.sum().astype(np.float32)",
    "x[0].copy()",
    "x[0].imag",
    "x[0].real",
    "np.linalg.multi_dot([x, x])",
    "x @ x",
    "np.dot(x, x)",
    "np.trapezoid(x)",
    "np.linalg.norm(x)",
    "x.sum()",
    "np.isin(x[0], x)",
    "np.i0(x[0])",
    "x.std()",
    "x[0, ...]",
    "x[:1].squeeze()",
    "x[:1].reshape(())",
    "np.take(x, 1)",
)
CASES = [
    *[(code, (), dtype) for code in OF_NUMBERS for dtype in ("f8", "i8", "c16", "?")],
    *[(code, (5,), dtype) for code in OF_VECTORS for dtype in ("f8", "i8")],
]


@pytest.mark.parametrize(("code", "shape", "dtype"), CASES)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_as_in_numpy(code: str, shape: tuple[int, ...], dtype: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def program(x, y):\n    r = {code}\n    z = r\n    r += 1\n    return z, r, x", names)
    program = names["program"]

    def arguments(box: Any = lambda x: x) -> list[Any]:
        x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        return [box(x), box(np.ones(shape, dtype))]

    try:
        expected = program(*arguments())
    except (TypeError, ValueError):  # what NumPy does not do with these numbers
        return
    if (dtype == "c16" and "dtype=" in code) or np.asarray(expected[0]).dtype == np.float16:
        return  # tracejit loses no imaginary parts, and gives float32 in place of float16
    for how, found in (
        ("eager", program(*arguments(tj.dlarray))),
        ("dlfeval", tj.dlfeval(program, *arguments())),
    ):
        for have, want in zip(found, expected, strict=True):
            assert np.asarray(have).dtype == np.asarray(want).dtype, how
            np.testing.assert_allclose(np.asarray(have), want, err_msg=how)


def test_squares_of_truth_values() -> None:
    """NumPy gives int8 for an array, int64 for a number."""
    x = np.array([True, False])
    array, number = tj.dlfeval(lambda x: (x**2, x.any() ** 2), x)
    assert (array.dtype, number.dtype) == ((x**2).dtype, (x.any() ** 2).dtype) == (np.int8, np.int64)


def test_fill_of_a_number_does_nothing() -> None:
    def program(x: Any) -> Any:
        total, kept = x.sum(), x[0, ...]
        total.fill(2)
        kept.fill(7)
        return total, x

    x = np.array([1.0, 2.0])
    assert [tj.dlfeval(program, x.copy())[i].tolist() for i in (0, 1)] == [3.0, [7.0, 2.0]]


@pytest.mark.parametrize("ufunc", [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.hypot, np.logical_xor])
@pytest.mark.parametrize("dtype", ["u1", "u8", "i4", "?"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (0, 2)])
def test_reductions_start_as_numpys(ufunc: np.ufunc, dtype: str, shape: tuple[int, ...]) -> None:
    if ufunc is np.hypot and dtype in ("?", "u1"):  # float16 in NumPy
        return
    x = np.ones(shape, dtype)
    have, want = tj.dlfeval(ufunc.reduce, x), ufunc.reduce(x)
    assert np.asarray(have).dtype == np.asarray(want).dtype and np.array_equal(np.asarray(have), want)


def test_sums_at_places_of_truth_values() -> None:
    def program(m: Any, places: Any, values: Any) -> Any:
        np.add.at(m, places, values)
        np.add.at(m, [0], True)
        return m

    places = np.array([1, 1, 3])
    for values in (
        np.array([True, False, False]),
        np.array([-1, 1, 0]),
        np.array([1, -1, 2]),
        np.array([0.5, -0.5, 1]),
    ):
        for start in (np.zeros(4, bool), np.ones(4, bool)):
            found = tj.dlfeval(program, start.copy(), places, values)
            assert found.tolist() == program(start.copy(), places, values).tolist()


def test_copyto_of_numbers_of_another_kind() -> None:
    """Elements that stay keep all bits: they do not meet uint64, with which int64 is float64."""

    def program(x: Any, y: Any) -> Any:
        np.copyto(x, y, where=y > 1)
        return x

    x, y = np.array([2**62 + 1, 2**62 + 3]), np.array([1, 2], np.uint64)
    assert tj.dlfeval(program, x.copy(), y).tolist() == program(x, y).tolist() == [2**62 + 1, 2]


def test_an_empty_repeat_can_be_written() -> None:
    x = np.ones((0, 2))

    def program(x: Any) -> Any:
        y = np.repeat(x, 2, 0)
        y += 1
        return y

    assert tj.dlfeval(program, x).shape == (0, 2)


def test_astype_with_numpys_options() -> None:
    x = tj.dlarray(np.array([1.5, 2.5]))
    same = x.astype(float, copy=False)
    assert (
        same is x
        and x.astype(float) is not x
        and x.astype(np.int64, casting="unsafe", order="F").tolist() == [1, 2]
    )
    with pytest.raises(tj.DTypeError, match="cannot be cast to int64 with casting='same_kind'"):
        x.astype(np.int64, casting="same_kind")
