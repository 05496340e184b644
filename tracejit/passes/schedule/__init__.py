# SPDX-License-Identifier: BSD-3-Clause
"""Passes that put launches in order, share them out among threads, and place their memory.

In: launches in the order of the program. Out: a `Plan`.
May import: passes/loops/ and below.
"""
