# SPDX-License-Identifier: BSD-3-Clause
"""Passes that turn steps into launches, in the loop IR of nest.py.

In: `Fused`. Out: launches of loop nests and of kernels, and the ways in which each can be cut.
May import: passes/fusion/ and below.
"""
