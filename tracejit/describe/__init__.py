# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of built programs, for inspection.

In: a program and the stages it was built in. Out: its operations, rows and memory as data; profiles and rooflines.
May import the compiler and everything below it.
"""
