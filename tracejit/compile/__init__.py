# SPDX-License-Identifier: BSD-3-Clause
"""Compiles kernels: a kernel's source, or an int64 function of kernels/executor, goes in, object code comes out.

Numba types and lowers kernels, machine_words lowers the int64 functions; LLVM optimises both. The registry keeps the
addresses of this process, and looks into the store first. Imports program, codegen (names only), store and kernels.
"""
