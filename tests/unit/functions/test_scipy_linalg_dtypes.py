# SPDX-License-Identifier: BSD-3-Clause
"""Dtypes and sizes of what functions of matrices give for single precision and integers: SciPy's and NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sp

import tracejit as tj

M = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
SMALL = ("int8", "uint8", "int16", "uint16", "bool")
BY_LAPACK: dict[str, Callable[[Any], Any]] = {
    "lu": sp.lu,
    "places of lu": lambda a: sp.lu(a, p_indices=True),
    "lu_factor": sp.lu_factor,
    "lu_solve": lambda a: sp.lu_solve(sp.lu_factor(a), a[0]),
    "cholesky": sp.cholesky,
    "cho_solve": lambda a: sp.cho_solve(sp.cho_factor(a), a[0]),
    "qr": lambda a: abs(sp.qr(a, mode="r")[0]),
    "polar": sp.polar,
    "solve_triangular": lambda a: sp.solve_triangular(a, a[0]),
    "lstsq": lambda a: sp.lstsq(a, a[0]),
    "lstsq of wide integers": lambda a: sp.lstsq(a, np.arange(3)),
    "lstsq of matrices": lambda a: sp.lstsq(a[:, :2], a[:, 1:]),
    "inv": sp.inv,
    "pinv": sp.pinv,
    "pinvh": sp.pinvh,
    "eigvalsh": sp.eigvalsh,
    "generalised eigvalsh": lambda a: sp.eigvalsh(a, np.eye(3, dtype=a.dtype)),
    "svdvals": sp.svdvals,
    "det": sp.det,
}
IN_DOUBLE: dict[str, Callable[[Any], Any]] = {
    "expm_frechet": lambda a: sp.expm_frechet(a, a),
    "logm": sp.logm,
    "fractional_matrix_power": lambda a: sp.fractional_matrix_power(a, 0.5),
    "solve_toeplitz": lambda a: sp.solve_toeplitz(a[0], a[1]),
    "matmul_toeplitz": lambda a: sp.matmul_toeplitz(a[0], a[1]),
    "solve_discrete_lyapunov": lambda a: sp.solve_discrete_lyapunov(a, a),
    "solve_continuous_are": lambda a: sp.solve_continuous_are(a, a, a, a),
    "solve_discrete_are": lambda a: sp.solve_discrete_are(a, a, a, a),
    "norm by columns": lambda a: sp.norm(a, 1),
    "norm by rows": lambda a: sp.norm(a, np.inf),
}
CASES = {
    **{
        f"{name} of {kind}": (one, kind)
        for name, one in BY_LAPACK.items()
        for kind in (*SMALL, "float32", "complex64")
    },
    **{f"{name} of {kind}": (one, kind) for name, one in IN_DOUBLE.items() for kind in ("float32", "complex64")},
    "matmul_toeplitz of int64": (IN_DOUBLE["matmul_toeplitz"], "int64"),
    **{f"{one.__name__} of {kind}": (one, kind) for one in (sp.coshm, sp.sinhm) for kind in ("int8", "uint8")},
    "companion of uint8": (lambda a: sp.companion(a[0, :2]), "uint8"),
}  # fmt: skip


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in tj.tree.flatten(result)[0]]


def compare(function: Callable[..., Any], *arguments: np.ndarray, rtol: float = 1e-4) -> None:
    expected = leaves(function(*arguments))
    accelerated = tj.dlaccelerate(function)
    for _ in range(3):
        found = leaves(accelerated(*arguments))
        assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in expected]
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=rtol, atol=rtol)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:logm result may be inaccurate:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Calling .* with arguments of dtype=bool:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_dtypes_are_those_of_scipy(name: str) -> None:
    function, kind = CASES[name]
    compare(function, np.eye(3, dtype=bool) if kind == "bool" else M.astype(kind))


TALL, SIDE = np.array([[0.0, 1], [1, 1], [2, 1], [3, 1]]), np.array([-1, 0.2, 0.9, 2.1])
SYSTEMS = {
    "single precision and double": (TALL.astype(np.float32), SIDE),
    "double precision and single": (TALL, SIDE.astype(np.float32)),
    "single precision": (TALL.astype(np.float32), SIDE.astype(np.float32)),
    "single precision and integers": (TALL.astype(np.float32), np.arange(4)),
    "complex numbers and double precision": (TALL.astype(np.complex64), SIDE),
    "integers": (TALL.astype(int), np.arange(4)),
    "small integers": (TALL.astype(np.int8), np.arange(4, dtype=np.int16)),
    "small integers and single precision": (TALL.astype(np.int8), SIDE.astype(np.float32)),
    "several sides": (TALL, np.stack([SIDE, SIDE[::-1]], 1)),
    "no rows": (TALL[:0], SIDE[:0]),
    "no columns": (TALL[:, :0], SIDE),
    "a singular matrix": (TALL[:, [1, 1]], SIDE),
    "a singular matrix and several sides": (TALL[:, [1, 1]], np.stack([SIDE, SIDE[::-1]], 1)),
    "a singular matrix of complex numbers": (TALL[:, [1, 1]].astype(np.complex128), SIDE),
    "a wide singular matrix": (TALL[:, [1, 1]].T, SIDE[:2]),
}

LESS_EXACT = ("single", "complex", "small")


@pytest.mark.parametrize("name", SYSTEMS)
def test_least_squares_of_numpy(name: str) -> None:
    compare(np.linalg.lstsq, *SYSTEMS[name], rtol=1e-6 if "single" in name or "complex" in name else 1e-12)
    assert type(tj.dlfeval(np.linalg.lstsq, *SYSTEMS[name])[2]) is np.int32


@pytest.mark.parametrize("name", [name for name in SYSTEMS if not name.startswith("no ")])
def test_least_squares_of_scipy(name: str) -> None:
    compare(sp.lstsq, *SYSTEMS[name], rtol=1e-5 if any(kind in name for kind in LESS_EXACT) else 1e-12)


def test_least_squares_of_two_precisions_have_the_digits_of_the_larger() -> None:
    found = tj.dlfeval(np.linalg.lstsq, TALL.astype(np.float32), SIDE)[0]
    np.testing.assert_allclose(found, [1.0, -0.95], rtol=1e-14)


ONES, PLAIN = np.ones((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
HOLED, ENDLESS = np.array([[np.nan, 2.0], [3.0, 4.0]]), np.array([[np.inf, 2.0], [3.0, 4.0]])
OF_NUMPY = {
    **{
        f"cond of {title} by {p}": (lambda x, p=p: np.linalg.cond(x, p), array)
        for p in (1, -1, np.inf, -np.inf, "fro")
        for title, array in (
            ("a singular matrix", ONES),
            ("zeros", ONES * 0),
            ("a matrix with NaN", HOLED),
            ("a matrix with an infinity", ENDLESS),
            ("a singular one among matrices", np.array([ONES, PLAIN])),
            ("a singular complex matrix", ONES * (1 + 1j)),
            ("a complex matrix", PLAIN * (1 + 1j)),
        )
    },
    "det with an infinity": (np.linalg.det, ENDLESS),
    "det with an infinity among others": (np.linalg.det, np.array([PLAIN, ENDLESS])),
    "det with NaN": (np.linalg.det, HOLED),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_matrices_without_an_inverse(name: str) -> None:
    function, array = OF_NUMPY[name]
    with np.errstate(all="ignore"):
        compare(function, array, rtol=1e-12)


def test_diagonals_that_are_not_positive_definite() -> None:
    given = np.array([[1.0, 3.0, 1.0], [4.0, 1.0, 2.0]]), np.ones(3)
    with pytest.raises(np.linalg.LinAlgError):
        sp.solveh_banded(*given)
    with pytest.raises(np.linalg.LinAlgError):
        tj.dlaccelerate(sp.solveh_banded)(*given)
