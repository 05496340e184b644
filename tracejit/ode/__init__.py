# SPDX-License-Identifier: BSD-3-Clause
"""Ordinary differential equations: a right-hand side, times and a first state go in; states come out, with gradients.

A step is an accelerated function; the loop around it is Python, or a dlscan where the number of steps is fixed. May
import: accelerate/ and above.
"""
