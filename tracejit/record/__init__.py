# SPDX-License-Identifier: BSD-3-Clause
"""The recording of one run of a function.

In: the operations of the run. Out: a `Graph`, the guards of the values that steered it, or a reason not to replay it.
May import: ir.py and below. The class of arrays stands above, in array.py, and registers itself.
"""
