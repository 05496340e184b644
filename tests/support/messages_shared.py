# SPDX-License-Identifier: BSD-3-Clause
"""Values and calls that provoke messages of several areas (messages.py)."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

M = np.ones((2, 3))
V = np.ones(3)
X = tj.dlarray(M, "BC")
N = tj.dlarray([[1, 2, 3], [4, 5, 6]])


def traced(fun: Callable[[Any], object]) -> object:
    """Return ``fun(x)`` with a traced 2x3 array."""
    return tj.dlfeval(fun, M)
