# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and the executor, written by hand: `loops`, `intrinsics`, `executor`. None of them imports tracejit."""
