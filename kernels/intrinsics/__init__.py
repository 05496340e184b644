# SPDX-License-Identifier: BSD-3-Clause
"""Functions that emitted kernels call by name, as intrinsics of Numba: LLVM instructions go into the kernel.

`pointers` access memory, `scalar` and `polynomials` compute with numbers, `tiles` and `lanes` with vectors, and `blas`
calls matrix products. Imports Numba and llvmlite.
"""
