# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and the executor, written by hand: `loops`, `intrinsics`, `device`, `executor`. None imports tracejit."""
