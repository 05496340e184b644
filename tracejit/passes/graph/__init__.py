# SPDX-License-Identifier: BSD-3-Clause
"""Passes from Graph to Graph.

In: the graph of a recording, forward and adjoint together. Out: an equal graph with less to compute.
May import: `passes/cost.py`, and what is below passes (ir, ops, autodiff).
"""
