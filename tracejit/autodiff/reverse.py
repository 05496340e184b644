# SPDX-License-Identifier: BSD-3-Clause
"""Reverse mode: appends the adjoint of a graph to that graph.

The adjoint consists of the same ops, appended through the same builder, so it can be simplified, fused,
emitted and differentiated again like the forward pass.

Note [complex cotangents]
The cotangent of a complex value z is the complex number c with dL = Re(c dz): real losses have such a c whether the ops
between are holomorphic or not. Rules are then the same for real and complex operands, without conjugates: for y = f(z),
the cotangent of z is c f'(z); for a product x y, those of x and y are c y and c x. Where a real value goes into a
complex one, the real part of c arrives. dlgradient returns the conjugate of c, the direction in which the loss grows
fastest: dL/dx + i dL/dy for z = x + i y.
"""

from collections.abc import Sequence

import numpy as np

from tracejit.aval import FLOAT32, is_half, is_inexact
from tracejit.errors import GradientError
from tracejit.ir import Builder, Node, Value
from tracejit.ops import Kind


def gradient(
    b: Builder,
    outputs: Sequence[Value],
    cotangents: Sequence[Value],
    wrt: Sequence[Value],
    nodes: Sequence[Node] | None = None,
) -> list[Value | None]:
    """Append the product of `cotangents` with the Jacobian of `outputs`, and return it for each of `wrt`.

    Args:
        b: builder of the graph that holds the values.
        outputs: values to differentiate, of floating-point dtype.
        cotangents: one for each output, of its shape and dtype.
        wrt: values to differentiate by.
        nodes: those that compute the values, in order; None for those of the graph.

    Returns:
        For each of `wrt` the cotangent, of its shape and dtype, or None where no output depends on it.
    """
    if nodes is None:
        nodes = b.graph.nodes[:]  # a copy: the adjoint is appended to the list
    active: set[Value] = {v for v in wrt if is_inexact(v.dtype)}
    path: list[Node] = []
    for node in nodes:
        if node.op.vjp is not None and not active.isdisjoint(node.inputs):
            path.append(node)
            active.update([v for v in node.outputs if is_inexact(v.aval.dtype)])

    around, b.active = b.active, active
    cts: dict[Value, Value] = {}
    for output, ct in zip(outputs, cotangents, strict=True):
        if output in active:
            cts[output] = b.add(cts[output], ct) if output in cts else ct
    wanted = set(wrt)
    location = b.location
    for node in reversed(path):
        received = [cts.get(v) if v in wanted else cts.pop(v, None) for v in node.outputs]
        if received.count(None) == len(received):
            continue
        if node.op.kind is Kind.LOOP:  # whose body has the dtypes of its outputs
            received = [rounded(b, ct, v) for ct, v in zip(received, node.outputs, strict=True)]
        b.location = node.where
        assert node.op.vjp is not None
        contributions = node.op.vjp(b, node, received[0] if len(received) == 1 else tuple(received))
        if len(contributions) != len(node.inputs):
            raise GradientError(
                f"{node.op.name}: its adjoint gives {len(contributions)} cotangents for {len(node.inputs)} inputs."
            )
        for value, contribution in zip(node.inputs, contributions, strict=True):
            if value not in active or contribution is None:
                continue
            ct = contribution if type(contribution) is Value else contribution()
            if ct is None:
                continue
            ct = fit(b, ct, value)
            cts[value] = b.add(cts[value], ct) if value in cts else ct
    found = [rounded(b, cts.get(v), v) for v in wrt]
    b.location, b.active = location, around
    return found


def rounded(b: Builder, ct: Value | None, value: Value) -> Value | None:
    """Return the cotangent of a value in its dtype: those of 16-bit numbers are summed in float32."""
    return b.cast(ct, dtype=value.dtype) if ct is not None and ct.dtype != value.dtype else ct


def fit(b: Builder, ct: Value, value: Value) -> Value:
    """Return `ct` summed over the axes that broadcasting added to `value`, in the dtype of `value`."""
    if ct.aval == value.aval:
        return ct
    if ct.shape != value.shape:
        extra = ct.ndim - value.ndim
        if extra < 0 or any(c == 1 and v != 1 for c, v in zip(ct.shape[extra:], value.shape, strict=True)):
            ct = b.broadcast_to(ct, shape=np.broadcast_shapes(ct.shape, value.shape))
            extra = ct.ndim - value.ndim
        axes = tuple(range(extra)) + tuple(
            i for i in range(extra, ct.ndim) if value.shape[i - extra] == 1 and ct.shape[i] != 1
        )
        if axes:
            ct = b.sum(ct, axes=axes, keepdims=False)
        if ct.shape != value.shape:
            ct = b.reshape(ct, shape=value.shape)
    if ct.dtype != value.dtype and not (ct.dtype == FLOAT32 and is_half(value.dtype)):
        if ct.dtype.kind == "c" and value.dtype.kind == "f":
            ct = b.real(ct)  # Note [complex cotangents]
        ct = b.cast(ct, dtype=value.dtype)
    return ct
