# SPDX-License-Identifier: BSD-3-Clause
"""scipy.linalg on dlarrays, under SciPy's names: ``tj.linalg.expm(a)``.

In: matrices, real or complex, along the last two axes of dlarrays, ndarrays or lists. Out: results without labels, with
derivatives of any order, except `schur`, which has none. Functions of scipy.linalg itself convert their operands to
ndarrays, and refuse traced arrays.
May import: functions/.

Examples:
    >>> import numpy as np, tracejit as tj
    >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> bool(np.allclose(tj.linalg.expm(turn * np.pi), -np.eye(2)))
    True
"""

from tracejit.linalg.banded import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded
from tracejit.linalg.equations import (
    matmul_toeplitz,
    solve,
    solve_circulant,
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
    solve_sylvester,
    solve_toeplitz,
    solve_triangular,
)
from tracejit.linalg.factors import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    inv,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr,
    schur,
)
from tracejit.linalg.functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    signm,
    sinhm,
    sinm,
    sqrtm,
    tanhm,
    tanm,
)
from tracejit.linalg.hermitian import funmh
from tracejit.linalg.structured import block_diag, circulant, companion, hankel, khatri_rao, toeplitz
from tracejit.linalg.values import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    norm,
    null_space,
    orth,
    pinv,
    pinvh,
    svd,
    svdvals,
)
from tracejit.util.missing import refusal

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cho_solve_banded", "cholesky", "cholesky_banded", "circulant",
    "companion", "coshm", "cosm", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "expm_frechet",
    "fractional_matrix_power", "funmh", "hankel", "inv", "khatri_rao", "logm", "lstsq", "lu", "lu_factor", "lu_solve",
    "matmul_toeplitz", "norm", "null_space", "orth", "pinv", "pinvh", "polar", "qr", "schur", "signm", "sinhm", "sinm",
    "solve", "solve_banded", "solve_circulant", "solve_continuous_are", "solve_continuous_lyapunov",
    "solve_discrete_are", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular",
    "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]  # fmt: skip

__getattr__ = refusal("linalg", __all__)
