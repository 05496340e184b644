# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs: a Program goes in, an executable comes out, which takes input arrays and returns output arrays.

`cpu` runs object code by the compiled executor, on a pool of threads; `python` runs the emitted text as it is, as the
reference of the tests. Imports program, call (tables), compile and kernels, and no pass.
"""
