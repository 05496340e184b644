# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracejit.aval import UNIQUE_LABELS, Aval, describe_shape, supported
from tracejit.errors import DimsError, DTypeError
from tracejit.ops import batch
from tracejit.ops.matrices import transposed
from tracejit.ops.op import KernelCall, Kind, Op, Sample


def join_labels(function: str, first: str, second: str, sizes: str) -> str:
    """Return the label of a result's axis to which two operands contribute; U gives way to the other.

    Raises:
        DimsError: the labels are different and neither is U.
    """
    if second in (first, "U"):
        return first
    if first == "U":
        return second
    raise DimsError(
        f"{function}: an axis labelled {first} meets an axis labelled {second} in operands of {sizes}; "
        "transpose one of them, or drop the labels with stripdims."
    )


def check_unique(function: str, labels: str, sizes: str) -> str:
    """Return the labels of a result, or raise a DimsError in the name of `function` if C, B or T repeats."""
    for label in UNIQUE_LABELS:
        if labels.count(label) > 1:
            raise DimsError(
                f"{function}: the result of operands of {sizes} would be labelled {labels!r}, with "
                f"{label} {labels.count(label)} times, but C, B and T occur once; drop the labels of one "
                "operand with stripdims."
            )
    return labels


@lru_cache(maxsize=1024)
def _loop(x: np.dtype, y: np.dtype) -> tuple[np.dtype, ...]:
    try:
        return tuple(supported(dtype) for dtype in np.matmul.resolve_dtypes((x, y, None)))
    except TypeError:
        raise DTypeError(
            f"matmul: not defined for {x} and {y}; cast the operands first (x.astype(np.float64))."
        ) from None


def _sizes(x: Aval, y: Aval) -> str:
    return f"{describe_shape(x.shape, x.format)} and {describe_shape(y.shape, y.format)}"


def _suggest(x: Aval, y: Aval) -> str:
    """Return advice on inner sizes that differ: the transpose that would fit, if there is one."""
    plain = x.ndim == 2 and y.ndim == 2
    if x.shape[-1] == y.shape[-1]:
        return "Transpose y" + (" (x @ y.T)?" if plain else " (x @ y.swapaxes(-1, -2))?")
    if x.shape[-2] == y.shape[-2]:
        return "Transpose x" + (" (x.T @ y)?" if plain else " (x.swapaxes(-1, -2) @ y)?")
    if x.shape[-2] == y.shape[-1]:
        return "Swap the operands (y @ x)?"
    return "Check the sizes of both."


@lru_cache(maxsize=1024)
def _infer(x: Aval, y: Aval) -> Aval:
    for name, operand in (("x", x), ("y", y)):
        if len(operand.shape) < 2:
            raise DimsError(
                f"matmul: {name} ({describe_shape(operand.shape, operand.format)}) has {operand.ndim} axes, "
                "but a matrix has at least 2; reshape it to one row or one column."
            )
    if x.shape[-1] != y.shape[-2]:
        raise DimsError(
            f"matmul: x has {_extent(x, -1)} columns but y has {_extent(y, -2)} rows in operands of "
            f"{_sizes(x, y)}; these must be equal. {_suggest(x, y)}"
        )
    try:
        batch = (
            x.shape[:-2] if x.shape[:-2] == y.shape[:-2] else np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        )
    except ValueError:
        raise DimsError(
            f"matmul: the batch axes (all but the last two) of operands of {_sizes(x, y)} do not align; "
            "aligned from the last, their sizes must be equal or 1."
        ) from None
    shape = (*batch, x.shape[-2], y.shape[-1])
    return Aval(shape, _format(x, y), _loop(x.dtype, y.dtype)[-1])


def _extent(x: Aval, axis: int) -> str:
    return str(x.shape[axis]) if x.format is None else f"{x.shape[axis]}({x.format[axis]})"


def _format(x: Aval, y: Aval) -> str | None:
    """Return the labels of the result: batch axes merged by position, rows from x, columns from y."""
    if x.format is None and y.format is None:
        return None
    ndim = max(x.ndim, y.ndim)
    rows = (x.format or "U" * x.ndim).rjust(ndim, "U")
    columns = (y.format or "U" * y.ndim).rjust(ndim, "U")
    sizes = _sizes(x, y)
    batch = [join_labels("matmul", *pair, sizes) for pair in zip(rows[:-2], columns[:-2], strict=True)]
    return check_unique("matmul", "".join(batch) + rows[-2] + columns[-1], sizes)


def _reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.matmul(x, y)
    return result.astype(np.float32) if result.dtype.char == "e" else result


def _vjp(b: Any, node: Any, ct: Any) -> Any:
    x, y = node.inputs
    return (lambda: b.matmul(ct, transposed(b, y)), lambda: b.matmul(transposed(b, x), ct))


def _numbers(out: Aval, x: Aval, y: Aval) -> Sequence[int]:
    return (math.prod(out.shape[:-2]), x.shape[-2], x.shape[-1], y.shape[-1])


def _infer_add(x: Aval, y: Aval, z: Aval) -> Aval:
    product = _infer(x, y)
    if z.shape != product.shape or z.dtype != product.dtype:
        raise DimsError(
            f"matmul_add: z is {z.dtype} of size {describe_shape(z.shape, z.format)}, but the product that is added "
            f"to it is {product.dtype} of size {describe_shape(product.shape, product.format)}; sizes "
            "and dtypes must be equal. Use matmul and add, which broadcasts."
        )
    return product


def _reference_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    result: np.ndarray = _reference(x, y) + z
    return result


def _vjp_add(b: Any, node: Any, ct: Any) -> Any:
    x, y, _ = node.inputs
    return (lambda: b.matmul(ct, transposed(b, y)), lambda: b.matmul(transposed(b, x), ct), ct)


def _numbers_add(out: Aval, x: Aval, y: Aval, z: Aval) -> Sequence[int]:
    return _numbers(out, x, y)


OPS = (
    Op(name="matmul", doc="x y over the last two axes, batch axes broadcast; ct y', x' ct. Bools: or of and.",
       kind=Kind.CONTRACT, infer=_infer, numpy=_reference, promote=lambda x, y: _loop(x, y)[:-1], vjp=_vjp,
       linear=((0,), (1,)), batch=batch.matmul, emit=KernelCall("matmul", _numbers),
       samples=(Sample(((2, 3), (3, 4))), Sample(((2, 2, 3), (2, 3, 1))), Sample(((1, 3), (2, 3, 2))),
                Sample(((2, 0), (0, 3))))),
    Op(name="matmul_add", doc="x y + z, where z is as large as x y: a sum of products; ct y', x' ct, ct.",
       kind=Kind.CONTRACT, infer=_infer_add, numpy=_reference_add,
       promote=lambda x, y, z: (*_loop(x, y)[:-1], z), vjp=_vjp_add,
       batch=batch.matmul_add, emit=KernelCall("matmul_add", _numbers_add),
       samples=(Sample(((2, 3), (3, 4), (2, 4))), Sample(((2, 2, 3), (2, 3, 1), (2, 2, 1))))),
)  # fmt: skip
