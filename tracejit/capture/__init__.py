# SPDX-License-Identifier: BSD-3-Clause
"""The capture of state that a run reads besides its arguments: closures, globals, attributes, arrays.

In: the functions that ran, and what their byte code can reach. Out: a `State`: more inputs of the graph, and guards.
May import: call/ and below. Only this folder knows byte code.
"""
