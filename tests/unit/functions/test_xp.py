# SPDX-License-Identifier: BSD-3-Clause
"""tj.xp, the functions of the array API standard: numbers and dtypes as NumPy's, recorded and replayed.

The public suite of the standard is run by hand (docs/array_api.md).
"""

import inspect
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tracejit import ArgumentError, DimsError, dlarray

ARRAYS: dict[str, np.ndarray] = {
    "x": np.array([[0.5, -1.25, 2.0], [0.75, 0.5, -0.5]]), "y": np.array([1.5, 0.25, 2.5]),
    "u": np.array([0.1, 0.9, 0.3]),
    "n": np.array([[3, 1, 2], [5, 7, 1]]), "k": np.array([1, 0, 2]), "b": np.array([True, False, True]),
    "M": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]),
}  # fmt: skip
ONE = """
abs asinh atan ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan logical_not negative positive real
reciprocal round sign signbit sin sinh square tan tanh trunc
"""
OF_UNIT = "acos asin atanh log log1p log2 log10 sqrt"
TWO = """
add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
logical_or logical_xor maximum minimum multiply nextafter not_equal remainder subtract
"""
OTHERS = """
acosh(y + 1) | bitwise_invert(n) | bitwise_and(n, k) | bitwise_or(n, k) | bitwise_xor(n, k) | bitwise_left_shift(n, k)
bitwise_right_shift(n, k) | pow(y, x) | clip(x, -0.5, 0.5) | clip(x, max=y) | asarray(x) | asarray([[1, 2], [3, 4]])
asarray(x, dtype=xp.float32) | arange(5) | arange(1.0, 4.0, 0.5) | linspace(0.0, 1.0, 5) | eye(3, 4, k=1)
zeros((2, 3)) | ones(3, dtype=xp.int32) | full((2, 2), 7) | zeros_like(x) | ones_like(n) | full_like(x, 2.5) | tril(x)
triu(x, k=1) | astype(x, xp.float32) | astype(n, xp.float64) | broadcast_to(y, (4, 3)) | concat([x, x], axis=1)
concat([x, y], axis=None) | expand_dims(x, 1) | flip(x, axis=1) | moveaxis(x, 0, 1) | permute_dims(x, (1, 0))
repeat(x, 2, axis=0) | repeat(y, k) | reshape(x, (3, 2)) | roll(x, 1, axis=1) | squeeze(x[:1], 0)
stack([y, u], axis=1) | tile(y, (2, 2)) | unstack(x) | matmul(x, M) | matrix_transpose(x) | tensordot(x, M, axes=1)
vecdot(x, y) | take(x, k, axis=1) | take_along_axis(x, n % 3, axis=1) | argmax(x, axis=1) | argmin(x, keepdims=True)
count_nonzero(n, axis=0) | nonzero(b) | searchsorted(sort(y), u) | where(x > 0, x, y) | where(b, 1.0, y)
unique_values(n) | unique_counts(n) | unique_inverse(n) | argsort(x, axis=1) | argsort(x, descending=True)
sort(x, axis=0) | sort(x, descending=True) | cumulative_sum(x, axis=1) | cumulative_sum(y, include_initial=True)
cumulative_prod(y) | max(x, axis=0) | min(x, keepdims=True) | mean(x, axis=1) | std(x, axis=0, correction=1) | var(x)
sum(n) | sum(x, axis=1, keepdims=True) | prod(x, axis=0) | all(b) | any(x > 1, axis=1) | diff(x, axis=1) | isin(n, k)
meshgrid(y, u) | broadcast_arrays(x, y) | linalg.cholesky(M) | linalg.cholesky(M, upper=True) | linalg.cross(x, M[:2])
linalg.det(M) | linalg.diagonal(M, offset=1) | linalg.eigvalsh(M) | linalg.eigh(M) | linalg.inv(M)
linalg.matrix_norm(M) | linalg.matrix_power(M, 3) | linalg.matrix_rank(M) | linalg.outer(y, u) | linalg.pinv(M)
linalg.slogdet(M) | linalg.solve(M, y) | linalg.svd(M) | linalg.svdvals(M) | linalg.trace(M) | linalg.vector_norm(x)
linalg.vector_norm(x, axis=1, ord=1) | linalg.qr(M) | linalg.qr(x, mode="complete")
fft.fft(x) | fft.ifft(x, n=4, axis=0) | fft.fftn(x) | fft.ifftn(x, s=(2, 2), axes=(0, 1)) | fft.rfft(x, norm="ortho")
fft.irfft(fft.rfft(y), n=3) | fft.rfftn(x) | fft.irfftn(fft.rfftn(M), s=(3, 3), axes=(0, 1))
fft.hfft(y) | fft.ihfft(y)
fft.fftfreq(5, d=0.5) | fft.rfftfreq(5) | fft.fftshift(x, axes=1) | fft.ifftshift(x)
linalg.vector_norm(x, axis=(0, 1), keepdims=True)
"""
ROWS = [
    *(f"{name}(x)" for name in ONE.split()), *(f"{name}(u)" for name in OF_UNIT.split()),
    *(f"{name}(x, y)" for name in TWO.split()),
    *(row.strip() for row in OTHERS.replace("|", "\n").splitlines() if row.strip()),
]  # fmt: skip
BY_NUMPY = {  # what NumPy spells in another way
    "argsort(x, descending=True)": "argsort(-x, stable=True)", "sort(x, descending=True)": "flip(sort(x), -1)",
    "fft.ifftn(x, s=(2, 2), axes=(0, 1))": "fft.ifftn(x, (2, 2), (0, 1))",
    "linalg.eigh(M)": "linalg.eigvalsh(M)", "linalg.svd(M)": "linalg.svdvals(M)", "unique_values(n)": "unique(n)",
}  # fmt: skip


def computed(row: str, xp: Any, arrays: dict[str, Any]) -> Any:
    names = {
        name: getattr(xp, name) for name in dir(xp) if not name.startswith("_") and name not in ("e", "pi")
    }
    with np.errstate(all="ignore"):
        return eval(row, {**names, "xp": xp, **arrays})


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(have: Any, want: Any, row: str) -> None:
    found, wanted = listed(have), [np.asarray(part) for part in listed(want)]
    if row in ("linalg.eigh(M)", "linalg.svd(M)"):  # vectors have signs of their own
        found = [found[row.count("svd")]]
    assert len(found) == len(wanted), row
    for part, expected in zip(found, wanted, strict=True):
        assert isinstance(part, dlarray), row
        assert (part.shape, part.dtype) == (expected.shape, expected.dtype), row
        np.testing.assert_allclose(tj.extractdata(part), expected, rtol=1e-12, atol=1e-14, err_msg=row)


def test_numbers_are_those_of_numpy() -> None:
    for row in ROWS:
        want = computed(BY_NUMPY.get(row, row), np, ARRAYS)
        check(computed(row, tj.xp, {name: dlarray(array) for name, array in ARRAYS.items()}), want, row)


@pytest.mark.slow
def test_replays() -> None:
    for row in ROWS:
        step = dlaccelerate(lambda arrays, row=row: computed(row, tj.xp, arrays))
        want = computed(BY_NUMPY.get(row, row), np, ARRAYS)
        for _ in range(3):
            check(step({name: array.copy() for name, array in ARRAYS.items()}), want, row)
        assert step.hit_rate > 0, row


def test_the_namespace_of_an_array() -> None:
    x = dlarray([1.0, 2.0])
    assert x.__array_namespace__() is tj.xp
    assert x.__array_namespace__(api_version="2024.12").__array_api_version__ == "2025.12"
    assert x.device == "cpu" and x.to_device("cpu") is x
    np.testing.assert_array_equal(tj.extractdata(dlarray(ARRAYS["x"]).mT), ARRAYS["x"].T)
    for call, error, text in (
        (
            lambda: x.__array_namespace__(api_version="1999"),
            ArgumentError,
            "__array_namespace__: api_version is '1999'",
        ),
        (lambda: x.to_device("gpu"), ArgumentError, "to_device: device must be 'cpu', not 'gpu'"),
        (lambda: x.mT, DimsError, "mT: an array of 1 axes holds no matrices"),
        (
            lambda: tj.xp.zeros(3, device="gpu"),
            ArgumentError,
            "xp.zeros: device must be 'cpu' or None, not 'gpu'",
        ),
    ):
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


def complex_numbers(*parts: tuple[float, float]) -> np.ndarray:
    return np.array([complex(*part) for part in parts])


NAN, INF = np.nan, np.inf
SPECIAL: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    # a function, its arguments, and its values as the text of the standard has them
    ("floor_divide", ([INF, INF, -INF, -INF], [2.0, -2.0, 2.0, -2.0]), [INF, -INF, -INF, INF]),
    ("floor_divide", ([1.0, -1.0, 1.0, -1.0], [-INF, INF, INF, -INF]), [-0.0, -0.0, 0.0, 0.0]),
    ("floor_divide", ([INF, -INF, INF, NAN, 7.0, -7.0], [INF, INF, NAN, 1.0, 2.0, 2.0]), [NAN] * 4 + [3.0, -4.0]),
    ("expm1", (complex_numbers((-0.0, 0.0), (0.0, 0.0), (INF, 0.0), (NAN, 0.0)),),
     complex_numbers((0.0, 0.0), (0.0, 0.0), (INF, 0.0), (NAN, 0.0))),
    ("expm1", (complex_numbers((-INF, INF), (-INF, NAN), (INF, INF), (INF, NAN), (-INF, 1.0), (2.0, INF)),),
     complex_numbers((-1.0, 0.0), (-1.0, 0.0), (INF, NAN), (INF, NAN), (-1.0, 0.0), (NAN, NAN))),
    ("tanh", (complex_numbers((INF, 2.0), (INF, -2.0), (-INF, 1.0), (-INF, 2.0)),),
     complex_numbers((1.0, 0.0), (1.0, -0.0), (-1.0, 0.0), (-1.0, 0.0))),
    ("tanh", (complex_numbers((-1e9, INF), (1e9, NAN), (2.0, INF), (INF, INF), (-INF, NAN), (0.0, INF)),),
     complex_numbers((NAN, NAN), (NAN, NAN), (NAN, NAN), (1.0, 0.0), (-1.0, 0.0), (0.0, NAN))),
)  # fmt: skip


@pytest.mark.parametrize("case", SPECIAL, ids=lambda case: case[0])
def test_special_cases_of_the_standard(case: tuple[str, tuple[Any, ...], Any]) -> None:
    name, operands, want = case
    expected = np.asarray(want)
    step = dlaccelerate(lambda arrays: getattr(tj.xp, name)(*arrays))
    with np.errstate(all="ignore"):
        for call in (lambda arrays: getattr(tj.xp, name)(*arrays), step, step):
            found = tj.extractdata(call([dlarray(np.asarray(x)) for x in operands]))
            for part, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
                np.testing.assert_array_equal(part, wanted)
                numbers = ~np.isnan(wanted)
                assert np.array_equal(np.signbit(part)[numbers], np.signbit(wanted)[numbers]), (
                    found,
                    expected,
                )


@given(st.complex_numbers(max_magnitude=50.0))
def test_expm1_of_finite_complex_numbers_is_that_of_numpy(z: complex) -> None:
    found = tj.extractdata(tj.xp.expm1(dlarray(np.array(z))))
    np.testing.assert_allclose(found, np.expm1(z), rtol=1e-13)


@given(st.floats(allow_nan=False, width=32), st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_floor_divide_by_finite_numbers_is_that_of_numpy_or_infinite(x: float, y: float) -> None:
    with np.errstate(all="ignore"):
        found = tj.xp.floor_divide(dlarray(np.array([x])), dlarray(np.array([y])))
        want = np.floor_divide([x], [y]) if np.isfinite(x) else np.divide([x], [y])
    np.testing.assert_array_equal(tj.extractdata(found), want)


def test_every_result_without_axes_can_be_written() -> None:
    x = dlarray([3.0, 4.0])

    def written(x: Any) -> Any:
        total = tj.xp.sum(x)
        total[...] = 2 * total
        copied = tj.xp.asarray(total, copy=True)
        copied[()] = 1.0
        return total, copied

    step = dlaccelerate(written)
    for call in (written, step, step):
        assert [part.item() for part in call(x)] == [14.0, 1.0]


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_general_matrices_have_complex_eigenvalues(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(1).normal(size=shape)
    symmetric = a + np.swapaxes(a, -1, -2)
    for matrix in (a, symmetric, a.astype(np.float32)):
        values, vectors = tj.xp.linalg.eig(dlarray(matrix))
        assert (
            values.dtype.kind == vectors.dtype.kind == tj.xp.linalg.eigvals(dlarray(matrix)).dtype.kind == "c"
        )
        w, v = tj.extractdata(values), tj.extractdata(vectors)
        tolerance = 1e-4 if matrix.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(matrix @ v, v * w[..., None, :], atol=tolerance)


def test_places_of_new_axes_are_checked_as_indices_are() -> None:
    with pytest.raises(IndexError):
        tj.xp.expand_dims(dlarray([1.0]), axis=3)


def test_information() -> None:
    info = tj.xp.__array_namespace_info__()
    assert info.default_device() == "cpu" and info.devices() == ("cpu",)
    assert info.capabilities()["boolean indexing"]
    assert info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    }
    assert all(getattr(tj.xp, name) == dtype for name, dtype in info.dtypes().items())
    with pytest.raises(ArgumentError, match=r"xp\.dtypes: kind is 'real', expected one of bool, signed"):
        info.dtypes(kind="real")
    assert tj.xp.finfo(np.float32).bits == 32 and isinstance(tj.xp.finfo(dlarray(1.0)).eps, float)
    assert tj.xp.iinfo(tj.xp.int8).max == 127 and tj.xp.isdtype(tj.xp.int8, "integral")
    assert tj.xp.result_type(dlarray([1]), tj.xp.float32) == np.float64 and tj.xp.can_cast(
        tj.xp.int8, tj.xp.int16
    )


def test_every_function_has_types_and_a_docstring() -> None:
    for name in tj.xp.__all__:
        value = getattr(tj.xp, name)
        if inspect.isfunction(value):
            assert value.__doc__, name
            assert not name.startswith("_")


def test_a_derivative_through_the_namespace() -> None:
    def loss(x: Any) -> Any:
        xp = x.__array_namespace__()
        return tj.dlgradient(xp.sum(xp.exp(x) * xp.where(x > 0, x, 0.0)), x)

    x = ARRAYS["y"]
    np.testing.assert_allclose(tj.extractdata(tj.dlfeval(loss, x)), np.exp(x) * (x + 1))
