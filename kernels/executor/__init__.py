# SPDX-License-Identifier: BSD-3-Clause
"""Functions that run a program: a table of launches and arrays go in, and the launches fill the output arrays.

They are written in a subset of Python whose only type is int64 (machine), which tracejit/compile/machine_words.py
lowers to LLVM. Imports nothing but the standard library.
"""
