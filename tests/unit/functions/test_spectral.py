# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues, singular values, ranks, pseudo-inverses and least squares: NumPy's numbers, derivatives, edges."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate
from effort import sweep

import tracejit as tj
from tracejit import dlarray
from tracejit.errors import ArgumentError, DimsError, MatrixError
from tracejit.testing import check_gradients


def symmetric(x: Any) -> Any:
    return x + np.swapaxes(x, -1, -2)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "singular values": lambda a: np.linalg.svd(a, compute_uv=False),
    "pinv": np.linalg.pinv,
    "cond": np.linalg.cond,
    "smallest cond": lambda a: np.linalg.cond(a, -2),
}
OF_SQUARES: dict[str, Callable[[Any], Any]] = {
    "eigvalsh": lambda a: np.linalg.eigvalsh(symmetric(a)),
    "upper half": lambda a: np.linalg.eigvalsh(np.triu(a), "U"),
    "cond by norm": lambda a: np.linalg.cond(a[0] if a.ndim > 2 else a, 1),
}
SQUARES = [(4, 4), (1, 1), (2, 3, 3), (2, 5, 5)]  # LAPACK computes those of more than three columns
SHAPES = [*SQUARES, (5, 3), (2, 3, 4), (3, 1), (1, 3), (2, 6, 5), (5, 7)]
CASES = [
    *((name, shape) for name in FUNCTIONS for shape in SHAPES),
    *((name, shape) for name in OF_SQUARES for shape in SQUARES),
]
ALL = {**FUNCTIONS, **OF_SQUARES}


def draw(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_numbers_of_numpy(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    function = ALL[name]
    step = dlaccelerate(function)
    for seed in range(2):
        a = draw(shape, dtype, seed)
        expected = np.asarray(function(a))
        tolerance = 1e-9 if dtype is np.float64 else 2e-3
        for found in (function(dlarray(a)), step(dlarray(a))):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_derivatives(name: str, shape: tuple[int, ...]) -> None:
    if name != "upper half":  # whose derivative is symmetric
        check_gradients(ALL[name], dlarray(draw(shape, seed=1)))


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors(shape: tuple[int, ...]) -> None:
    def vectors(a: Any) -> Any:
        parts = tuple(np.linalg.svd(a, full_matrices=False))
        return (*parts, *np.linalg.eigh(symmetric(a))) if shape[-1] == shape[-2] else parts

    step = dlaccelerate(vectors)
    for seed in range(2):
        a = draw(shape, seed=seed)
        once, replayed = vectors(dlarray(a)), step(dlarray(a))
        for one, other, theirs in zip(once, replayed, vectors(a), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-10)
            np.testing.assert_allclose(np.abs(np.asarray(one)), np.abs(theirs), atol=1e-10)
        u, s, v = (np.asarray(part) for part in replayed[:3])
        np.testing.assert_allclose(u * s[..., None, :] @ v, a, atol=1e-12)
    check_gradients(vectors, dlarray(draw(shape, seed=2)))


def test_second_derivatives() -> None:
    def gradient(function: Any) -> Any:
        return lambda a: tj.dlgradient((function(a) ** 3).sum(), a, enable_higher_derivatives=True)

    for function in (
        lambda a: np.linalg.eigvalsh(symmetric(a)),
        lambda a: np.linalg.eigh(symmetric(a))[1],
        lambda a: np.linalg.svd(a, compute_uv=False),
        lambda a: np.linalg.svd(a, full_matrices=False)[0],
    ):
        for n in (3, 4):
            check_gradients(gradient(function), dlarray(draw((n, n), seed=5)))


@pytest.mark.parametrize("scale", [1.0, 2.0**24, 1e-20])
def test_equal_values_have_finite_derivatives(scale: float) -> None:
    """Functions of the values have their derivative there too."""

    def root(a: Any) -> Any:
        w, v = np.linalg.eigh(a)
        return ((v * np.sqrt(w)) @ v.T).sum()

    def of_singular(a: Any) -> Any:
        u, s, v = np.linalg.svd(a)
        return ((u * s) @ v).sum()

    for n in (3, 5):
        a = scale * np.eye(n)
        found = tj.dlfeval(lambda a: tj.dlgradient(np.linalg.eigvalsh(a).sum(), a), a)
        np.testing.assert_allclose(np.asarray(found), np.eye(n), atol=1e-12)
        for function in (root, of_singular):
            assert np.isfinite(np.asarray(tj.dlfeval(lambda a, f=function: tj.dlgradient(f(a), a), a))).all()


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (7, 5)])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_ranks(shape: tuple[int, int], rank: int) -> None:
    rng = np.random.default_rng(rank)
    a = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    step = dlaccelerate(
        lambda a: (*np.linalg.svd(a, full_matrices=False), np.linalg.matrix_rank(a), np.linalg.pinv(a))
    )
    for _ in range(2):
        u, s, v, count, inverse = (np.asarray(part) for part in step(dlarray(a)))
        assert count == rank == np.linalg.matrix_rank(a)
        np.testing.assert_allclose(inverse, np.linalg.pinv(a), atol=1e-10)
        np.testing.assert_allclose(u.T @ u, np.eye(len(s)), atol=1e-10)
        np.testing.assert_allclose(v @ v.T, np.eye(len(s)), atol=1e-10)
        np.testing.assert_allclose(u * s @ v, a, atol=1e-12)


@pytest.mark.parametrize("tol", [0.5, [0.5, 1.5], [[0.2], [1.0]]])
def test_a_rank_by_bounds_of_each_matrix(tol):
    a = np.random.default_rng(0).normal(size=(2, 3, 3))
    found = dlaccelerate(lambda a: np.linalg.matrix_rank(a, tol))(a)
    assert found.tolist() == np.linalg.matrix_rank(a, tol).tolist()


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-150, 1e150, 1e200, 1e300])
def test_singular_values_of_sizes_whose_squares_overflow_or_vanish(scale: float) -> None:
    step = dlaccelerate(lambda a: (np.linalg.svdvals(a), np.linalg.matrix_rank(a), np.linalg.norm(a[0], -2)))
    for a in 2 * [draw((2, 4, 3)) * scale, draw((2, 6, 5)) * scale]:
        s, rank, norm = (np.asarray(part) for part in step(dlarray(a)))
        np.testing.assert_allclose(s, np.linalg.svdvals(a), rtol=1e-12)
        assert np.array_equal(rank, np.linalg.matrix_rank(a))
        np.testing.assert_allclose(norm, np.linalg.norm(a[0], -2), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 4, 2), (3, 3), (3, 0), (0, 3), (4, 1)])
def test_bases_of_whole_spaces(shape: tuple[int, ...]) -> None:
    a = draw(shape)
    step = dlaccelerate(np.linalg.svd)
    for found in (np.linalg.svd(dlarray(a)), step(dlarray(a)), step(dlarray(a))):
        u, s, v = map(np.asarray, found)
        assert [x.shape for x in (u, s, v)] == [x.shape for x in np.linalg.svd(a)]
        for basis in (u, v):
            unit = basis @ basis.swapaxes(-1, -2)
            np.testing.assert_allclose(unit, np.broadcast_to(np.eye(unit.shape[-1]), unit.shape), atol=1e-12)
        middle = np.zeros(a.shape)
        places = np.arange(min(a.shape[-2:]))
        middle[..., places, places] = s
        np.testing.assert_allclose(u @ middle @ v, a, atol=1e-12)


def test_derivatives_by_the_space_beside_singular_vectors() -> None:
    weights = draw((5, 5), seed=3)

    def left(a: Any) -> Any:
        beside = np.linalg.svd(a)[0][:, 2:]
        return np.sum((beside @ beside.T) * weights)

    def right(a: Any) -> Any:
        beside = np.linalg.svd(a)[2][2:]
        return np.sum((beside.T @ beside) * weights)

    check_gradients(left, dlarray(draw((5, 2))))
    check_gradients(right, dlarray(draw((2, 5))))
    check_gradients(lambda a: tj.dlgradient(left(a), a)[0, 1], dlarray(draw((5, 2))))


def test_tolerances_of_each_matrix() -> None:
    a, share = draw((3, 4, 2)), np.array([0.0, 0.5, 1.0])
    for tolerance in (share, dlarray(share)):
        found = np.linalg.pinv(dlarray(a), rtol=tolerance)
        np.testing.assert_allclose(np.asarray(found), np.linalg.pinv(a, rtol=share), atol=1e-12)
        rank = np.linalg.matrix_rank(dlarray(a), rtol=tolerance)
        assert np.array_equal(np.asarray(rank), np.linalg.matrix_rank(a, rtol=share))


def test_norms_of_complex_vectors() -> None:
    z = draw((3, 4)) + 1j * draw((3, 4), seed=2)
    z[0, 1] = 0
    for ord, axis in [
        *((order, 1) for order in (0, 1, 2, 3, -1, np.inf, -np.inf)),
        (-1, None),
        (-np.inf, None),
    ]:
        with np.errstate(divide="ignore"):
            found, want = np.linalg.norm(dlarray(z), ord, axis), np.linalg.norm(z, ord, axis)
        np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12)


def test_vectors_of_other_lengths_have_no_product() -> None:
    for x, y in (((2, 3), (2, 1)), ((), ()), ((3,), ())):
        with pytest.raises(ValueError):
            np.vecdot(np.ones(x), np.ones(y))
        with pytest.raises(DimsError, match="vectors of one length"):
            np.vecdot(dlarray(np.ones(x)), dlarray(np.ones(y)))


def test_least_squares() -> None:
    for shape, k in (((5, 3), ()), ((5, 3), (2,)), ((3, 5), ()), ((3, 3), (2,))):
        step = dlaccelerate(lambda a, b: np.linalg.lstsq(a, b))
        for seed in range(2):
            a, b = draw(shape, seed=seed), draw((shape[0], *k), seed=seed + 5)
            for found in (np.linalg.lstsq(dlarray(a), dlarray(b)), step(dlarray(a), dlarray(b))):
                for have, want in zip(found, np.linalg.lstsq(a, b), strict=True):
                    assert np.shape(have) == np.shape(want)
                    np.testing.assert_allclose(np.asarray(have), want, rtol=1e-9, atol=1e-9)
        check_gradients(lambda a, b: np.linalg.lstsq(a, b)[0], dlarray(a), dlarray(b))


@pytest.mark.parametrize(("shape", "more"), [((5, 3), ()), ((5, 3), (2,)), ((2, 4), ()), ((3, 3), (2,))])
def test_least_squares_of_complex_numbers(shape: tuple[int, int], more: tuple[int, ...]) -> None:
    step = dlaccelerate(lambda a, b: np.linalg.lstsq(a, b))
    for seed in range(2):
        a, b = (
            draw(size, seed=seed + first) + 1j * draw(size, seed=seed + first + 7)
            for size, first in ((shape, 0), ((shape[0], *more), 20))
        )
        for y in (b, b.real):
            for found in (np.linalg.lstsq(dlarray(a), dlarray(y)), step(dlarray(a), dlarray(y))):
                for have, want in zip(found, np.linalg.lstsq(a, y), strict=True):
                    assert np.shape(have) == np.shape(want)
                    np.testing.assert_allclose(np.asarray(have), want, rtol=1e-9, atol=1e-9)

    def parts(real: Any, imaginary: Any, right: Any) -> Any:
        found = np.linalg.lstsq(real + 1j * imaginary, right + 0.5j * right)[0]
        return np.concatenate([found.real, found.imag])

    check_gradients(parts, *[dlarray(part.copy()) for part in (a.real, a.imag, b.real)])
    deficient = np.outer(a[:, 0], np.ones(3))
    for have, want in zip(
        np.linalg.lstsq(dlarray(deficient), dlarray(b)), np.linalg.lstsq(deficient, b), strict=True
    ):
        np.testing.assert_allclose(np.asarray(have), want, rtol=1e-9, atol=1e-9)


def test_empty_matrices() -> None:
    for shape in ((0, 0), (0, 3, 3)):
        empty = np.zeros(shape)
        for have, want in zip(np.linalg.eigh(dlarray(empty)), np.linalg.eigh(empty), strict=True):
            assert have.shape == want.shape
    for shape in ((0, 2), (3, 0), (0, 3, 2)):
        empty = np.zeros(shape)
        assert np.linalg.pinv(dlarray(empty)).shape == np.linalg.pinv(empty).shape
        for have, want in zip(
            np.linalg.svd(dlarray(empty), full_matrices=False),
            np.linalg.svd(empty, full_matrices=False),
            strict=True,
        ):
            assert have.shape == want.shape


@pytest.mark.parametrize("function", [np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd, np.linalg.pinv])
def test_what_is_not_finite_is_an_error(function: Any) -> None:
    bad = np.array([[1.0, np.nan], [np.nan, 1.0]])
    step = dlaccelerate(function)
    for _ in range(2):
        step(dlarray(np.diag([1.0, 2.0])))
    for call in (function, step):
        with pytest.raises(np.linalg.LinAlgError, match="not finite"):
            call(dlarray(bad))


def test_arguments_of_other_kinds() -> None:
    one = dlarray(np.ones((2, 3)))
    for call in (
        lambda: np.linalg.svd(dlarray(np.eye(2)), hermitian=True),
        lambda: np.linalg.eigh(dlarray(np.eye(2)), "X"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentError):
            call()
    for call in (
        lambda: np.linalg.lstsq(one, np.ones(3)),
        lambda: np.linalg.eigvalsh(one),
        lambda: np.linalg.cond(dlarray(np.zeros((0, 0)))),
    ):
        with pytest.raises(MatrixError):
            call()


ORDERS = [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf]


@pytest.mark.parametrize("keepdims", [True, False])
def test_norms_of_all_orders(keepdims: bool) -> None:
    x, m = draw((2, 4, 3)), draw((4, 3))
    calls = [lambda a, order=ord: np.linalg.norm(a, order, 1, keepdims=keepdims) for ord in ORDERS]
    calls += [
        lambda a, order=ord, axis=axis: np.linalg.norm(a, order, axis, keepdims=keepdims)
        for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
        for axis in ((1, 2), (2, 0), (-1, -2))
    ]
    step = dlaccelerate(lambda a: [call(a) for call in calls])
    for _ in range(2):
        for call, found in zip(calls, step(dlarray(x)), strict=True):
            np.testing.assert_allclose(np.asarray(found), call(x), rtol=1e-10)
            assert found.shape == call(x).shape
    for call in calls[:: sweep(1, 1, sample=4)]:
        np.testing.assert_allclose(np.asarray(call(dlarray(x))), call(x), rtol=1e-10)
        check_gradients(call, dlarray(x))
    for ord in ("nuc", 2, -2, -1):
        np.testing.assert_allclose(float(np.linalg.norm(dlarray(m), ord)), np.linalg.norm(m, ord))


def test_the_derivative_of_a_norm_at_zero_is_zero() -> None:
    for ord in (2, 3, 1.5):
        found = tj.dlfeval(lambda a, order=ord: tj.dlgradient(np.linalg.norm(a, order), a), np.zeros(3))
        assert np.asarray(found).tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,), (0, 1, 2), "matrices"])
@pytest.mark.parametrize("order", [2, 1, 3, 0.5, np.inf, -np.inf, -2, "nuc"])
def test_norms_of_vectors_and_of_matrices(kind: Any, axis: Any, order: Any) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(kind)
    if axis == "matrices":
        if order in (3, 0.5):
            return
        norm = lambda x, **options: np.linalg.matrix_norm(x, ord=order, **options)
    elif order == "nuc":
        return
    else:
        norm = lambda x, **options: np.linalg.vector_norm(x, axis=axis, ord=order, **options)
    for keepdims in (False, True):
        value = lambda x: norm(x, keepdims=keepdims)  # noqa: B023
        found, slope = tj.dlfeval(lambda x: (value(x), tj.dlgradient(value(x).sum(), x)), tj.dlarray(x))  # noqa: B023
        assert found.shape == np.shape(value(x))
        np.testing.assert_allclose(found, value(x), rtol=1e-12)
        along, h = np.random.default_rng(1).normal(size=x.shape), 1e-6
        expected = (value(x + h * along).sum() - value(x - h * along).sum()) / (2 * h)
        np.testing.assert_allclose(
            (np.asarray(slope).conj() * along).sum().real, expected, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_columns_have_the_bits_of_numpy(dtype: Any) -> None:
    """LAPACK computes them in float64, as NumPy lets it do."""

    def values(a: Any) -> Any:
        return (
            np.linalg.eigvalsh(symmetric(a)),
            np.linalg.svd(a, compute_uv=False),
            np.linalg.eigh(symmetric(a))[0],
        )

    a = draw((3, 9, 9), dtype)
    step = dlaccelerate(values)
    for found in (values(dlarray(a)), step(dlarray(a)), step(dlarray(a))):
        for ours, theirs in zip(found, values(a), strict=True):
            assert np.array_equal(np.asarray(ours), theirs)
            assert np.asarray(ours).dtype == dtype
