# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms that are left to the loops of np.fft, because these were measured to be faster."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tracejit.aval import complex_dtype, part_dtype
from tracejit.ir import Node, Value
from tracejit.ops.fourier import factor_of, primes
from tracejit.ops.fourier_ufuncs import has_ufunc
from tracejit.passes.graph import pairs
from tracejit.passes.graph.complex_fourier import FOURIER, LARGEST, LONGEST
from tracejit.passes.graph.pairs import Operand, Parts

_FEWEST = 8  # lines at equal distances, from which NumPy's loop gains
_BYTES = {"fft": 6e6, "rfft": 3e6, "irfft": 3e5}
"""The operand and the result from which on loops are faster, by op: ours write more than the result, or in places."""
_SHORT = range(12, 32)  # elements of lines whose results our kernel stores at places that collide


def _is_faster(node: Node, n: int) -> bool:
    """Return whether NumPy's loop was measured to be faster for transforms of n elements."""
    name, axis, x, out = node.op.name, node.params["axis"], node.inputs[0].aval, node.output.aval
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    if (outer if inner == 1 else inner) < _FEWEST or not outer:
        return False
    own = n // 2 if name != "fft" and n % 2 == 0 else n  # the elements of a line of our kernel
    if own > LONGEST or (own > 1 and primes(own)[-1] > LARGEST):
        return True
    if name == "fft" and (n not in _SHORT or inner > 1):
        return False
    return x.size * x.dtype.itemsize + out.size * out.dtype.itemsize >= _BYTES[name]


def _ufunc(node: Node, n: int) -> str:
    """Return the name of NumPy's ufunc of a transform."""
    if node.op.name == "rfft":
        return "rfft_n_odd" if n % 2 else "rfft_n_even"
    return "ifft" if node.params.get("inverse") else node.op.name


def _transformed(b: Any, node: Node, x: Operand) -> Operand:
    """Return a transform, by NumPy's loop or by kernels."""
    name, axis = node.op.name, node.params["axis"]
    n = node.inputs[0].shape[axis] if name == "rfft" else node.output.shape[axis]
    ufunc = _ufunc(node, n)
    if not (_is_faster(node, n) and has_ufunc(ufunc)):
        found: Operand = FOURIER[name](b, node, x)
        return found
    if name != "rfft":
        pair = pairs.pair_of(b, x)
        x = pairs.whole_of(pair) or b.complex_of(*pair)
    assert isinstance(x, Value)
    factor = np.array([factor_of(n, node.params.get("power", 0.0))], part_dtype(complex_dtype(x.dtype)))
    made: Value = b.lines_by_numpy(x, b.constant(factor), ufunc=ufunc, axis=axis, n=n)
    return made if name == "irfft" else Parts(b.real(made), b.imag(made))


def _of_lines(b: Any, node: Node, x: Operand, factor: Value) -> Operand:
    """Return the result of lines_by_numpy as it is."""
    operand = b.complex_of(*x) if isinstance(x, Parts) else x
    found: Value = b.lines_by_numpy(operand, factor, **node.params)
    return Parts(b.real(found), b.imag(found)) if found.dtype.kind == "c" else found


BY_NUMPY: dict[str, Callable[..., Any]] = {
    "lines_by_numpy": _of_lines, "fft": _transformed, "rfft": _transformed, "irfft": _transformed,
}  # fmt: skip
"""The formulas of ops of transforms on a CPU."""
