# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that are the inner loop of a ufunc of numpy.linalg, called by its address; spectral.py has the ops."""

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from math import prod

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import ArgumentError
from tracejit.ops.op import KernelCall, RangeCut

MATRIX_UFUNCS = {
    "eigh_lo": ("eigh_lo",),
    "eigvalsh_lo": ("eigvalsh_lo",),
    "svd_s": ("svd_s", "svd_n_s"),
    "svd": ("svd", "svd_n"),
}
"""The ufuncs over matrices that ops call, and their names in several versions of NumPy.

Those of singular values get no more columns than rows."""

PRODUCTS = ("complex_product", "complex_gram", "real_gram")
"""Matrix products by the loop of np.matmul; kernels have complex numbers as two real ones."""


@cache
def matrix_ufunc(name: str) -> np.ufunc:
    """Return NumPy's ufunc over matrices of a name, which np.linalg calls.

    Raises:
        ArgumentError: if the NumPy that is installed has none.
    """
    if name in PRODUCTS:
        return np.matmul
    module = importlib.import_module("numpy.linalg._umath_linalg")
    for each in MATRIX_UFUNCS.get(name, ()):
        ufunc = getattr(module, each, None)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is not None:
            return ufunc
    raise ArgumentError(
        f"numpy.linalg.{name}: the NumPy that is installed has no such function; install another version."
    )


def matrix_call(
    name: str, sizes: Callable[[Aval], tuple[int, ...]], ns: Callable[[Sequence[int]], float]
) -> KernelCall:
    """Return the emission of a ufunc over the matrices of one operand.

    Args:
        name: the ufunc.
        sizes: returns the extents of the axes of its matrices, in the order in which its signature names them.
        ns: returns about how long a matrix takes, by these.
    """

    def routine(x: Aval) -> str:
        results = ufunc_results(matrix_ufunc(name), x.dtype)
        return f"numpy.linalg.{name}/{x.dtype.char}->{results}"

    return KernelCall(
        f"matrix_loop_{name}",
        lambda out, x: (0, prod(x.shape[:-2]), *sizes(x)),
        cut=RangeCut(lambda numbers: numbers[1] * ns(numbers[2:]), lambda numbers: numbers[1]),
        routine=routine,
    )


def ufunc_results(ufunc: np.ufunc, dtype: np.dtype) -> str:
    """Return the characters of the results of a ufunc of one operand."""
    return next(types for types in ufunc.types if types.startswith(f"{dtype.char}->")).partition("->")[2]
