# SPDX-License-Identifier: BSD-3-Clause
"""The disk cache: object code by the hash of all that it depends on, and descriptions of programs.

Kernels and programs go in, the same come out, checked; whatever is missing, damaged or not private is a miss.
Imports config, errors and util.
"""
