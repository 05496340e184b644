# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that are no matrices, or no square ones: what NumPy's errors are caught by catches ours."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj

pytestmark = pytest.mark.sampled
SHAPES: dict[str, Any] = {
    "number": 2.0, "vector": np.ones(2), "wide": np.ones((2, 3)), "tall": np.ones((3, 2)),
    "wide ones": np.ones((2, 2, 3)), "row": np.ones((1, 3)), "flat": np.ones((0, 3)), "none": np.ones((0, 0)),
    "no matrices": np.ones((0, 2, 2)), "singular": np.ones((2, 2)),
    "one is singular": np.stack([np.eye(2), np.ones((2, 2))]),
    "indefinite": np.array([[1.0, 2.0], [2.0, 1.0]]), "square": np.eye(3),
}  # fmt: skip
RIGHT_SIDES = {
    "a number": np.array(1.0), "1": np.ones(1), "2": np.ones(2), "3": np.ones(3), "2 x 2": np.ones((2, 2)),
    "3 x 1": np.ones((3, 1)), "2 x 3": np.ones((2, 3)), "2 x 3 x 2": np.ones((2, 3, 2)), "0": np.ones(0),
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np.linalg, name)
    for name in (
        "inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "eigvals", "svd", "qr", "pinv", "matrix_rank", "cond",
    )
} | {
    "matrix_power": lambda a: np.linalg.matrix_power(a, 2),
    "inverse": lambda a: np.linalg.matrix_power(a, -1),
}  # fmt: skip


def _class(call: Callable[[], Any]) -> type[Exception] | None:
    try:
        call()
    except Exception as error:
        return type(error)
    return None


def _check(function: Callable[..., Any], arguments: list[Any]) -> None:
    expected = _class(lambda: function(*arguments))
    fast = tj.dlaccelerate(lambda *arguments: function(*arguments))
    calls = [lambda: function(*map(tj.dlarray, arguments)), lambda: tj.dlfeval(function, *arguments)]
    given = [np.asarray(x) for x in arguments]
    for found in map(_class, [*calls, *[lambda: fast(*given)] * 4]):
        assert found is expected or (
            found is not None and expected is not None and issubclass(found, expected)
        )
        if found is not None and expected is not np.linalg.LinAlgError:
            assert not issubclass(found, np.linalg.LinAlgError)


@pytest.mark.filterwarnings("ignore:(divide|invalid):RuntimeWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_matrix(name: str, shape: str) -> None:
    _check(FUNCTIONS[name], [SHAPES[shape]])


@pytest.mark.parametrize("right", RIGHT_SIDES)
@pytest.mark.parametrize("shape", SHAPES)
def test_right_sides(shape: str, right: str) -> None:
    _check(np.linalg.solve, [SHAPES[shape], RIGHT_SIDES[right]])


@pytest.mark.parametrize("right", ["2", "2 x 2", "2 x 3 x 2", "1"])
@pytest.mark.parametrize("shape", ["number", "vector", "wide", "tall", "square", "singular"])
def test_least_squares(shape: str, right: str) -> None:
    _check(lambda a, b: np.linalg.lstsq(a, b, rcond=None), [SHAPES[shape], RIGHT_SIDES[right]])


def test_a_function_that_handles_the_error_of_numpy() -> None:
    def inverse(a: Any) -> Any:
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return np.linalg.pinv(a)

    fast = tj.dlaccelerate(inverse)
    for matrix in (np.ones((2, 3)), np.ones((2, 2)), np.eye(2)) * 3:
        np.testing.assert_allclose(fast(matrix), inverse(matrix), atol=1e-15)
