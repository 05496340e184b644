# SPDX-License-Identifier: BSD-3-Clause
"""The disk cache: object code by the hash of everything that it depends on, and descriptions of programs.

Kernels and programs go in, and come out checked; anything missing, damaged or not private is a miss.
Imports config, errors and util.
"""
