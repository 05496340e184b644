# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of op records: the graph of an op, directions, and independent derivatives to compare with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from op_cases import CASES

from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value, verify
from tracejit.ops import Op
from tracejit.ops.op import OnlyOnce, Sample

STEP = 6e-6  # of central differences: about the cube root of the rounding error
EXACT, NEAR = 1e-12, 2e-8  # relative errors allowed of the complex step, and of central differences


def name_of(case: Any) -> str:
    op, sample = case
    return f"{op.name}{op.samples.index(sample)}"


def graph_of(op: Op, params: Any, arrays: Sequence[np.ndarray]) -> Graph:
    graph = Graph()
    b = Builder(graph)
    inputs = [b.input(Aval(array.shape, None, array.dtype)) for array in arrays]
    results = b.apply(op, inputs, dict(params))
    graph.outputs = list(results) if isinstance(results, tuple) else [results]
    verify(graph)
    return graph


def computed(op: Op, arrays: Sequence[np.ndarray], params: Any) -> list[np.ndarray]:
    """Return what the reference computes, as a list of the outputs."""
    results = op.numpy(*arrays, **params)
    return [np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))]


def smooth(outputs: Sequence[Any]) -> list[Any]:
    """Return the outputs, values or arrays, that have derivatives."""
    return [output for output in outputs if output.dtype.kind in "fc"]


def ct_shape(outputs: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of a cotangent of outputs together: that of the only one, or all elements in a row."""
    return outputs[0].shape if len(outputs) == 1 else (sum(int(np.prod(value.shape)) for value in outputs),)


def spread(b: Builder, ct: Value, outputs: Sequence[Value]) -> list[Value]:
    """Return the parts of a cotangent for each output."""
    if len(outputs) == 1:
        return [ct]
    edges = np.cumsum([0, *(int(np.prod(value.shape)) for value in outputs)])
    return [
        b.reshape(b.slice(ct, starts=(int(start),), stops=(int(stop),), steps=(1,)), shape=value.shape)
        for start, stop, value in zip(edges, edges[1:], outputs, strict=False)
    ]


def joined(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Return what corresponds to a cotangent of outputs together."""
    found = smooth(outputs)
    return found[0] if len(found) == 1 else np.concatenate([array.ravel() for array in found])


def zeros_like(b: Builder, value: Value) -> Value:
    return b.broadcast_to(b.constant(np.zeros((), value.dtype)), shape=value.shape)


def directions(arrays: Sequence[np.ndarray], wrt: Sequence[int], seed: int) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {i: rng.uniform(0.5, 1.5, arrays[i].shape) * rng.choice((-1, 1), arrays[i].shape) for i in wrt}


def moved(arrays: Sequence[np.ndarray], by: dict[int, np.ndarray], step: complex) -> list[np.ndarray]:
    return [array + step * by[i] if i in by else array for i, array in enumerate(arrays)]


def dot(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> Any:
    return sum((x * y).sum() for x, y in zip(xs, ys, strict=True))


def assert_derivative(found: float, expected: float, tolerance: float) -> None:
    # NaN fails as well.
    error, allowed = abs(found - expected), tolerance * max(1.0, abs(found), abs(expected))
    assert error <= allowed, (
        f"the derivative along a random direction is {found} by the rules of the record, but {expected} by an "
        f"independent derivative; they differ by {error:.1e}, where {allowed:.1e} is allowed. Either vjp is wrong, or "
        "the reference does not compute the function at a complex step: compare x.real, and square instead of taking "
        "abs, or give the record analytic=False."
    )


def differentiable(op: Op, sample: Sample) -> bool:
    dtypes = sample.dtypes or (None,)
    to = np.dtype(sample.params.get("dtype", "float64"))
    # A cast through float32 has no small differences.
    once = isinstance(op.vjp, OnlyOnce)
    return op.vjp is not None and not once and None in dtypes and to == np.float64


def derivative(
    op: Op, params: Any, arrays: Sequence[np.ndarray], by: dict[int, np.ndarray], ct: np.ndarray
) -> Any:
    """Return <ct, J v> by the complex step, or by differences, and the relative error allowed."""

    def value(step: complex) -> Any:
        values = computed(op, moved(arrays, by, step), params)
        return dot([joined(values[: len(values) - op.saved])], [ct])

    if op.analytic:
        return np.imag(value(1e-30j)) / 1e-30, EXACT
    return (value(STEP) - value(-STEP)) / (2 * STEP), NEAR


DIFFERENTIABLE = [case for case in CASES if differentiable(*case) and not case[0].name.startswith("special.")]
"""Without the fractions of special functions, which have no second derivatives by all operands, and own tests."""
