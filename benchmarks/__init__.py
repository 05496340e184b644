# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks: training steps measured side by side with other libraries, and what the compiler itself costs."""
