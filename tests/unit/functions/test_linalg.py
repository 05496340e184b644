# SPDX-License-Identifier: BSD-3-Clause
"""Linear systems, inverses, determinants and factors: NumPy's numbers, derivatives to second order, errors of NumPy."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated import dlaccelerate

import tracejit as tj
from tracejit import dlarray
from tracejit.errors import ArgumentError, DimsError
from tracejit.testing import check_gradients

LinAlgError = np.linalg.LinAlgError


def positive(x: Any) -> Any:
    """Return positive definite matrices made of any."""
    return x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": np.linalg.solve,
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: tuple(np.linalg.slogdet(a)),
    "cholesky": lambda a, b: np.linalg.cholesky(positive(a)),
    "upper": lambda a, b: np.linalg.cholesky(positive(a), upper=True),
    "power": lambda a, b: np.linalg.matrix_power(a, 5),
    "inverse power": lambda a, b: np.linalg.matrix_power(a, -2),
}
SHAPES = {
    "one matrix": ((4, 4), (4, 2)),
    "a vector": ((3, 3), (3,)),
    "1x1": ((1, 1), (1, 1)),
    "a batch": ((2, 3, 3), (2, 3, 2)),
    "broadcast": ((3, 1, 2, 2), (2, 2, 1)),
    "a vector for each": ((2, 3, 3), (3,)),
}
EMPTY = {"no rows": ((0, 0), (0, 2)), "no matrices": ((0, 3, 3), (0, 3, 2)), "no columns": ((2, 2), (2, 0))}


def operands(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: Any = np.float64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def assert_close(found: Any, expected: Any) -> None:
    for have, want in zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        assert have.dtype == want.dtype and have.shape == want.shape
        assert isinstance(have, dlarray)
        tolerance = 2e-4 if want.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(np.asarray(have), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", {**SHAPES, **EMPTY}.values(), ids=[*SHAPES, *EMPTY])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_numpy(name: str, shapes: Any, dtype: Any) -> None:
    a, b = operands(shapes, dtype)
    assert_close(FUNCTIONS[name](dlarray(a), dlarray(b)), FUNCTIONS[name](a, b))


@pytest.mark.parametrize("shapes", [SHAPES["broadcast"], SHAPES["a vector"], EMPTY["no rows"]])
def test_recorded_and_replayed(shapes: Any) -> None:
    step = dlaccelerate(lambda a, b: [function(a, b) for function in FUNCTIONS.values()])
    for seed in range(3):
        a, b = operands(shapes, seed=seed)
        for found, function in zip(step(dlarray(a), dlarray(b)), FUNCTIONS.values(), strict=True):
            assert_close(found, function(a, b))
    assert step.hit_rate > 60


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_derivatives(name: str, shapes: Any) -> None:
    check_gradients(FUNCTIONS[name], *map(dlarray, operands(shapes, seed=1)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name: str) -> None:
    weights = np.random.default_rng(3).normal(size=(2, 2))

    def gradient(a: Any, b: Any) -> Any:
        found = FUNCTIONS[name](a, b)
        value = found[-1] if isinstance(found, tuple) else found
        return tj.dlgradient(
            (value * (weights if value.ndim else 1.0)).sum() ** 2, a, enable_higher_derivatives=True
        )

    check_gradients(gradient, *map(dlarray, operands(((2, 2), (2, 2)), seed=4)))


@pytest.mark.parametrize("trans", [0, 1, "N", "T"])
@pytest.mark.parametrize("is_lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((2, 3, 3), (3, 2))])
def test_triangular_systems(trans: Any, is_lower: bool, unit: bool, shapes: Any) -> None:
    a, b = operands(shapes)
    a = a + 3 * np.eye(3)
    half = np.tril(a) if is_lower else np.triu(a)
    if unit:
        half = half - half * np.eye(3) + np.eye(3)
    expected = np.linalg.solve(np.swapaxes(half, -1, -2) if trans in (1, "T") else half, b)
    solve = lambda a, b: tj.solve_triangular(a, b, trans, lower=is_lower, unit_diagonal=unit)
    assert_close(solve(dlarray(a), dlarray(b)), expected)
    check_gradients(solve, dlarray(a), dlarray(b))


def test_products_of_many_matrices() -> None:
    rng = np.random.default_rng(0)
    chain = [rng.normal(size=shape) for shape in ((4,), (4, 3), (3, 9), (9, 2), (2,))]
    for part in (chain, chain[1:], chain[:-1], chain[1:-1], chain[1:3], chain[:2]):
        found = np.linalg.multi_dot([dlarray(x) for x in part])
        np.testing.assert_allclose(np.asarray(found), np.linalg.multi_dot(part), rtol=1e-12)
        check_gradients(lambda *xs: np.linalg.multi_dot(xs), *map(dlarray, part))


def test_powers_of_integers_are_integers() -> None:
    x = np.array([[1, 2], [3, 4]])
    for n in (0, 1, 2, 3, 6):
        found = np.linalg.matrix_power(dlarray(x), n)
        np.testing.assert_array_equal(found, np.linalg.matrix_power(x, n), strict=False)
        assert found.dtype == np.linalg.matrix_power(x, n).dtype


def test_integers_and_mixed_operands() -> None:
    x, f = np.array([[2, 1], [1, 3]]), np.array([[2, 1], [1, 3]], np.float32)
    for a, b in ((x, x), (f, x), (f, np.ones(2)), (x, np.ones(2, np.float32)), (x, [1, 2])):
        assert_close(np.linalg.solve(dlarray(a), dlarray(b)), np.linalg.solve(a, b))
    assert_close(np.linalg.inv(dlarray(x)), np.linalg.inv(x))
    assert_close(np.linalg.cholesky(dlarray(x)), np.linalg.cholesky(x))


def test_other_half_is_not_read() -> None:
    x = positive(np.random.default_rng(0).normal(size=(3, 3)))
    other = x + np.triu(np.full((3, 3), np.nan), 1)
    assert_close(np.linalg.cholesky(dlarray(other)), np.linalg.cholesky(x))
    assert_close(np.linalg.cholesky(dlarray(other.T), upper=True), np.linalg.cholesky(x).T)


def test_the_derivative_of_a_factor_is_symmetric() -> None:
    x = positive(np.random.default_rng(0).normal(size=(3, 3)))
    found = tj.dlfeval(lambda a: tj.dlgradient(np.linalg.cholesky(a).sum(), a), x)
    np.testing.assert_allclose(found, np.asarray(found).T)


SINGULAR = np.ones((3, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.linalg.solve(a, np.ones(3)),
        np.linalg.inv,
        lambda a: np.linalg.matrix_power(a, -1),
        lambda a: np.linalg.cholesky(a - np.eye(3) / 2),
        lambda a: tj.solve_triangular(a * (a - 1), np.ones(3)),
    ],
)
def test_what_has_no_solution_is_an_error(function: Any) -> None:
    with pytest.raises(LinAlgError, match=r"singular|not positive definite"):
        function(dlarray(SINGULAR))
    step = dlaccelerate(function)
    good = np.diag([3.0, 4.0, 5.0])
    step(dlarray(good)), step(dlarray(good))
    assert step.hit_rate == 50
    with pytest.raises(LinAlgError, match=r"singular|not positive definite"):
        step(dlarray(SINGULAR))
    batch = np.stack([good, SINGULAR])
    with pytest.raises(LinAlgError):
        function(dlarray(batch))
    np.testing.assert_allclose(
        step(dlarray(good)), function(good) if function is np.linalg.inv else function(dlarray(good))
    )


def test_a_function_that_catches_the_error_replays_both_ways() -> None:
    @dlaccelerate
    def step(a: Any) -> Any:
        try:
            return np.linalg.inv(a)
        except LinAlgError:
            return a * 0.0 - 1.0

    good = np.diag([2.0, 4.0])
    for matrix, expected in (
        (good, 0.5),
        (good * 2, 0.25),
        (np.ones((2, 2)), -1.0),
        (good, 0.5),
        (good * 0, -1.0),
    ):
        assert step(dlarray(matrix))[0, 0].item() == expected


def test_determinants_of_singular_matrices_are_zero() -> None:
    step = dlaccelerate(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)))
    for matrix in (
        np.diag([2.0, 3.0]),
        np.diag([2.0, 3.0]),
        np.ones((2, 2)),
        np.zeros((2, 2)),
        -np.eye(2)[::-1],
    ):
        for found, expected in zip(
            step(dlarray(matrix)), (np.linalg.det(matrix), *np.linalg.slogdet(matrix)), strict=True
        ):
            np.testing.assert_allclose(np.asarray(found), expected)


def test_not_a_number_stays_one() -> None:
    x = np.array([[1.0, np.nan], [2.0, 1.0]])
    assert np.isnan(np.asarray(np.linalg.solve(dlarray(x), np.ones(2)))).any()
    with pytest.raises(LinAlgError):
        np.linalg.cholesky(dlarray(x * [[np.nan, 1], [1, 1]]))


def test_labels_are_dropped() -> None:
    x = dlarray(np.diag([2.0, 4.0]), "CB")
    assert tj.solve(x, dlarray(np.ones(2), "C")).format is None
    assert np.linalg.inv(x).format is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.linalg.inv(dlarray(np.ones((2, 3)))),
        lambda: np.linalg.solve(dlarray(np.eye(2)), np.ones(3)),
        lambda: np.linalg.solve(dlarray(np.ones((2, 2, 2))), np.ones((3, 2, 2))),
        lambda: np.linalg.det(dlarray(np.ones(3))),
    ],
)
def test_sizes_that_do_not_fit(call: Any) -> None:
    with pytest.raises(DimsError):
        call()


def test_arguments_of_other_kinds() -> None:
    with pytest.raises(ArgumentError):
        np.linalg.multi_dot([dlarray(np.eye(2))])
    with pytest.raises(ArgumentError):
        tj.solve_triangular(np.eye(2), np.ones(2), trans=3)
    with pytest.raises(ArgumentError):
        np.linalg.matrix_power(dlarray(np.eye(2)), 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: np.linalg.trace(a),
        lambda a, b: np.linalg.trace(a, offset=1),
        lambda a, b: np.linalg.diagonal(a, offset=-1),
        lambda a, b: np.linalg.matmul(a, b),
        lambda a, b: np.linalg.outer(a[0, 0], b[0, 1]),
        lambda a, b: np.linalg.tensordot(a, b, axes=([2], [1])),
        lambda a, b: np.linalg.matrix_transpose(b),
    ],
)
def test_products_and_parts_under_their_second_names(call: Any) -> None:
    a, b = operands(((2, 3, 3), (2, 3, 4)))
    assert_close(call(dlarray(a), dlarray(b)), call(a, b))
    check_gradients(call, dlarray(a), dlarray(b))


def permuted(a: Any) -> Any:
    """Return a determinant by its definition."""
    total = 0.0
    for order in itertools.permutations(range(len(a))):
        term = round(np.linalg.det(np.eye(len(a))[list(order)]))
        for row, column in enumerate(order):
            term = term * a[row, column]
        total = total + term
    return total


DEFECTIVE = {
    "rank 2": np.arange(1.0, 10.0).reshape(3, 3), "rank 1": np.array([[1.0, 2.0], [2.0, 4.0]]),
    "zero": np.zeros((3, 3)), "rank 2 of 4": np.diag([1.0, 0.0, 2.0, 0.0]), "nearly": np.diag([1.0, 1e-13, 1.0]),
    "regular": np.eye(3) + 0.3,
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTIVE)
def test_derivatives_of_determinants_of_singular_matrices(name: str) -> None:
    """They were NaN."""
    a = DEFECTIVE[name]
    d, e = np.random.default_rng(0).normal(size=(2, *a.shape))

    def slopes(det: Any) -> Any:
        def first(x: Any) -> Any:
            return tj.dlgradient(det(x), x)

        def second(x: Any) -> Any:
            return tj.dlgradient((first(x) * d).sum(), x)

        return lambda x: (first(x), second(x), tj.dlgradient((second(x) * e).sum(), x) if len(a) > 2 else x)

    want = tj.dlfeval(slopes(permuted), a)
    for det in (tj.det, np.linalg.det):
        for have, exact in zip(tj.dlfeval(slopes(det), a), want, strict=True):
            np.testing.assert_allclose(tj.extractdata(have), tj.extractdata(exact), rtol=1e-9, atol=1e-12)


def test_a_replay_of_a_regular_matrix_does_not_serve_a_singular_one() -> None:
    step = dlaccelerate(lambda a: (tj.det(a), tj.dlgradient(tj.det(a), a)))
    for a in (
        np.eye(3),
        np.eye(3) * 2,
        np.eye(3) * 3,
        DEFECTIVE["rank 2"],
        np.eye(3) * 4,
        DEFECTIVE["rank 2"] * 2,
    ):
        value, slope = step(a)
        np.testing.assert_allclose(tj.extractdata(value), np.linalg.det(a), atol=1e-13)
        exact = tj.dlfeval(lambda x: tj.dlgradient(permuted(x), x), a)
        np.testing.assert_allclose(tj.extractdata(slope), tj.extractdata(exact), rtol=1e-9, atol=1e-12)
