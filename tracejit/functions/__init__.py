# SPDX-License-Identifier: BSD-3-Clause
"""The toolbox: the functions that users call, a file per family; those of networks in layers/, NumPy's in numpy_api/.

In: dlarrays, ndarrays and numbers. Out: dlarrays, composed of ops through the door, `apply`.
May import: array.py and below; no compiler. The files here import neither folder; the folders do not import each other.
"""
