# SPDX-License-Identifier: BSD-3-Clause
"""Ops of 16-bit numbers: operands are cast to float32, results back (Note [numbers of 16 bits] in ops/halves.py)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.aval import BOOL, FLOAT16, FLOAT32, is_half
from tracejit.errors import DTypeError
from tracejit.ops import OPS, Kind, Op
from tracejit.ops.halves import takes_halves

_OF_ALL = (Kind.ELEMENTWISE, Kind.CONTRACT)
_JOINS = frozenset({"where", "concatenate", "assemble"})
NO_OPS = frozenset({"nextafter", "spacing"})


_Apply = Callable[[Op, Sequence[Any], dict[str, Any]], Any]


def apply(op: Op, arrays: Sequence[Any], params: dict[str, Any], apply_op: _Apply) -> Any:
    """Apply a record to aligned arrays, some of which may have 16 bits; `apply_op` takes all others.

    Raises:
        DTypeError: for an op that looks at the bits of its operands, which would be those of float32.
    """
    halves = {array._data.dtype for array in arrays if is_half(array._data.dtype)}
    if not halves or (takes_halves(op) and not _meet_others(halves, op, arrays)):
        return apply_op(op, arrays, params)
    if op.name in NO_OPS:
        raise DTypeError(
            f"{op.title}: not supported for numbers of 16 bits; cast them first (x.astype(np.float32))."
        )
    cast = OPS["cast"]
    wide = [
        apply_op(cast, (array,), {"dtype": FLOAT32}) if is_half(array._data.dtype) else array
        for array in arrays
    ]
    results = apply_op(op, wide, params)
    dtype = result_dtype([array._data.dtype for array in arrays], op.kind in _OF_ALL)
    if dtype is None:
        return results
    if type(results) is not tuple:
        return _rounded(results, dtype, apply_op)
    return tuple([_rounded(result, dtype, apply_op) for result in results])


def _meet_others(halves: set[np.dtype], op: Op, arrays: Sequence[Any]) -> bool:
    """Return whether an op that joins arrays has bfloat16 beside another dtype: NumPy knows no promotion for it."""
    if op.name not in _JOINS or halves == {FLOAT16}:
        return False
    return len({array._data.dtype for array in arrays} - {BOOL}) > 1


def _rounded(result: Any, dtype: np.dtype, apply_op: _Apply) -> Any:
    if result._data.dtype != FLOAT32:
        return result
    return apply_op(OPS["cast"], (result,), {"dtype": dtype})


def result_dtype(dtypes: Sequence[np.dtype], count_integers: bool = True) -> np.dtype | None:
    """Return the dtype of 16 bits that the result of operands has, or None if it has another one.

    Integers and bools count as in NumPy: int8 and uint8 meet float16 in float16, int16 meets it in float32. Both
    formats of 16 bits meet in float32.
    """
    halves = {dtype for dtype in dtypes if is_half(dtype)}
    others = {dtype for dtype in dtypes if not is_half(dtype) and (count_integers or dtype.kind in "fc")}
    if len(halves) != 1 or any(np.result_type(FLOAT16, dtype) != FLOAT16 for dtype in others):
        return None
    return halves.pop()
