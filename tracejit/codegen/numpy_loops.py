# SPDX-License-Identifier: BSD-3-Clause
"""A nest of one op whose inner loop in NumPy is faster than our own code becomes a call of that loop.

Note [loops of NumPy]
NumPy has functions of vectors, for CPUs with AVX-512 on Linux, that are faster than our polynomials. The program gets
the address of such a loop in the same way as those of SciPy's loops (Note [loops of ufuncs] in runtime/ufunc_loops.py),
so the address is never stored. An op that is fused with others keeps our polynomials: a loop needs its operands in
memory.
"""

import sys

from tracejit.codegen.loop_order import joined
from tracejit.codegen.target import of_this_machine, vector_bytes
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.passes.loops.nest import Compute, Load, Nest, Store

# The names of ufuncs by those of ops, for each character of a dtype.
_UFUNCS = {
    "f": {
        "arccosh": "arccosh", "arcsinh": "arcsinh", "arctanh": "arctanh", "cbrt": "cbrt", "cos": "cos",
        "log10": "log10", "log1p": "log1p", "log2": "log2", "pow": "power", "sin": "sin", "tan": "tan",
    },
    "d": {"arcsinh": "arcsinh", "cbrt": "cbrt", "pow": "power"},
}  # fmt: skip
_AVX512_BYTES = 64


def numpy_loop(nest: Nest) -> KernelLaunch | None:
    """Return the launch of NumPy's loop that does what a nest does, None if our own code is to do it."""
    if min(vector_bytes(), of_this_machine()) < _AVX512_BYTES or sys.platform != "linux":
        return None
    if len(nest.nodes) != 1 or nest.split is not None:
        return None
    (node,), accesses = nest.nodes, (*nest.reads, *nest.writes)
    dtype = node.output.dtype
    ufunc = _UFUNCS.get(dtype.char, {}).get(node.op.name)
    if ufunc is None or any(access.dtype != dtype for access in accesses):
        return None
    *loads, compute, store = nest.full[0]
    order = joined(nest)
    if not isinstance(compute, Compute) or not isinstance(store, Store) or len(nest.writes) > 1:
        return None
    if not all(isinstance(line, Load) for line in loads) or order.depth != 1:
        return None
    operands = [operand for operand in compute.operands if isinstance(operand, int)]
    pointers = (*[nest.reads[operand] for operand in operands], nest.writes[0])
    steps = [order.strides(access)[0] for access in pointers]
    if len(operands) != len(compute.operands) or not {*steps} <= {0, 1}:
        return None
    numbers = (0, *order.extents, *[step * dtype.itemsize for step in steps])
    symbol = f"numpy.{ufunc}/{dtype.char * len(operands)}->{dtype.char}"
    return KernelLaunch(f"ufunc_loop_{len(pointers)}", numbers, pointers, 1, node, symbol)
