# SPDX-License-Identifier: BSD-3-Clause
"""Operands of every kind for ops of one element, and how near results must be."""

from collections.abc import Callable, Sequence

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import DTypeError
from tracejit.ir import Builder, Graph, Value
from tracejit.ops import OPS, Op
from tracejit.ops.op import Scalar

ELEMENTWISE = [op for op in OPS.values() if isinstance(op.emit, Scalar) and op.name not in ("cast", "where")]
ROUNDED_RIGHT = (
    "sqrt",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "sign",
    "reciprocal",
    "isinf",
    "isfinite",
    "floordiv",
    "mod",
)


def graph_of(make: Callable[..., list[Value]], arrays: Sequence[np.ndarray]) -> Graph:
    graph = Graph()
    b = Builder(graph)
    graph.outputs = make(b, *[b.input(Aval(a.shape, None, a.dtype)) for a in arrays])
    return graph


def exact(op: Op) -> bool:
    assert isinstance(op.emit, Scalar)
    return op.name in ROUNDED_RIGHT or "_{T}(" not in op.emit.template


def assert_ulps(have: np.ndarray, want: np.ndarray, ulps: int, what: str) -> None:
    assert have.dtype == want.dtype, what
    assert have.shape == want.shape, what
    if have.dtype.kind != "f":
        np.testing.assert_array_equal(have, want, err_msg=what)
        return
    info = np.finfo(have.dtype)
    # Denormal results are flushed to zero while a program runs.
    np.testing.assert_allclose(have, want, rtol=ulps * info.eps, atol=info.tiny, err_msg=what)


def numbers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return operands: all pairs of special values, then pairs from ranges in which the functions differ."""
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, False, True, True]), np.array([False, True, False, True])
    if kind.kind == "f":
        info = np.finfo(kind)
        special = np.array(
            [0.0, -0.0, 1, -1, 0.75, -2.5, 3, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny]
        )
        spread = [rng.uniform(-1, 1, 50) * width for width in (1e-4, 1, 3, 30, 800)]
        rest = np.concatenate(spread)
    else:
        info = np.iinfo(kind)
        special = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)
        if info.min < 0:
            special = np.append(special, np.array([-1, -2, -3], dtype))
        rest = rng.integers(info.min, info.max, 100, dtype)
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    x, y = np.append(x, rest), np.append(y, rng.permutation(rest))
    return x.astype(kind), y.astype(kind)


def defined(ops: Sequence[Op], arrays: Sequence[np.ndarray]) -> list[Op]:
    found = []
    for op in ops:
        try:
            op.infer(*[Aval(a.shape, None, a.dtype) for a in arrays[: len(op.samples[0].shapes)]])
            found.append(op)
        except DTypeError:
            pass
    return found
