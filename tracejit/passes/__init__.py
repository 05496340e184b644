# SPDX-License-Identifier: BSD-3-Clause
"""The optimising half of the compiler: a Graph becomes a Plan of launches on memory.

The folders run in the order graph/, fusion/, loops/, schedule/, and each imports only earlier ones. cost.py, the cost
model, lies below all of them.
"""
