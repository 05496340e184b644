# SPDX-License-Identifier: BSD-3-Clause
"""Emission for devices of many threads: a Spread or another launch goes in, the text that each thread runs comes out.

The text has the same form as for the CPU, and calls the same functions. Only the loops differ: a thread takes its own
elements or rows, by `thread()`, `group()` and `lane()`. Imports codegen's own files and passes.
"""
