# SPDX-License-Identifier: BSD-3-Clause
"""Exported functions: a folder with programs, constants and object code, which loads without tracing or compiling."""
