# SPDX-License-Identifier: BSD-3-Clause
"""Valid calls of linear algebra: the arguments by position, and those by name."""

from typing import Any

import numpy as np

MATRIX = np.array([[4.0, 2.0], [2.0, 5.0]])
VECTOR = np.array([0.5, 1.5])

CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "solve": [((MATRIX, VECTOR), {})],
    "inv": [((MATRIX,), {})],
    "det": [((MATRIX,), {})],
    "slogdet": [((MATRIX,), {})],
    "cholesky": [((MATRIX,), {"upper": True})],
    "solve_triangular": [((MATRIX, VECTOR), {"trans": 1, "lower": True, "unit_diagonal": True})],
}
