# SPDX-License-Identifier: BSD-3-Clause
"""Emission for devices of many threads: a Spread, or another launch, goes in; the text that each thread runs comes out.

The text has the form of that for the CPU, and calls the same functions. What differs are the loops: a thread takes the
elements or rows that are its own, by `thread()`, `group()` and `lane()`. Imports codegen's own files and passes.
"""
