# SPDX-License-Identifier: BSD-3-Clause
"""Small programs whose emitted source is compared with golden files; each is named for the property that it pins."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tracejit.autodiff import gradient
from tracejit.aval import Aval
from tracejit.ir import Builder, Graph, Value

Make = Callable[..., list[Value]]


class Case(NamedTuple):
    """A program to emit, the sizes of its inputs, and its launches and memory."""

    make: Make
    shapes: tuple[tuple[int, ...], ...]
    launches: list[str]  # beginnings of the kernels' names
    arena: bool = False  # True if there is memory besides inputs and outputs
    blas: bool = False  # True if BLAS multiplies, as if the matrices were large


def _layer(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    return [b.tanh(b.add(b.matmul(x, w), bias))]


def _ones(b: Builder, value: Value) -> Value:
    return b.broadcast_to(b.constant(np.ones((), value.dtype)), shape=value.shape)


def _chain(b: Builder, x: Value) -> list[Value]:
    y = b.tanh(x)
    for _ in range(2):
        y = b.mul(b.tanh(y), b.sigmoid(y))
    (found,) = gradient(b, [y], [_ones(b, y)], [x])
    return [y, found]


def _softmax(b: Builder, x: Value) -> list[Value]:
    e = b.exp(b.sub(x, b.max(x, axes=(1,), keepdims=True)))
    return [b.div(e, b.sum(e, axes=(1,), keepdims=True))]


def _bias_gradient(b: Builder, z: Value, bias: Value, ct: Value) -> list[Value]:
    y = b.tanh(b.add(z, bias))
    return gradient(b, [y], [ct], [z, bias])


def _adam(b: Builder, p: Value, g: Value, m: Value, v: Value) -> list[Value]:
    m = b.add(b.mul(m, 0.9), b.mul(g, 0.1))
    v = b.add(b.mul(v, 0.999), b.mul(b.square(g), 0.001))
    step = b.div(b.mul(m, 0.003), b.add(b.sqrt(v), 1e-8))
    return [b.sub(p, step), m, v]


def _column_sums(b: Builder, x: Value) -> list[Value]:
    return [b.sum(b.exp(x), axes=(0,), keepdims=False)]


def _losses(b: Builder, x: Value, target: Value) -> list[Value]:
    shifted = b.sub(x, b.max(x, axes=(1,), keepdims=True))
    log_p = b.sub(shifted, b.log(b.sum(b.exp(shifted), axes=(1,), keepdims=True)))
    return [b.sum(b.mul(target, log_p), axes=(0, 1), keepdims=False)]


def _outputs(b: Builder, x: Value) -> list[Value]:
    y = b.exp(x)
    z = b.sum(y, axes=(1,), keepdims=False)
    return [y, z, b.matmul(y, y)]


def _transposed(b: Builder, x: Value, y: Value) -> list[Value]:
    return [b.matmul(b.transpose(x, axes=(1, 0)), b.transpose(y, axes=(1, 0)))]


CASES = {
    "layer_is_a_product_and_one_loop": Case(
        _layer, ((4, 3), (3, 5), (5,)), ["product", "add_tanh"], arena=True
    ),
    "product_goes_on_with_its_rows": Case(_layer, ((9, 3), (3, 64), (64,)), ["product_add_tanh"]),
    "chain_value_and_gradient_in_one_loop": Case(_chain, ((6,),), ["tanh"]),
    "softmax_is_three_passes_of_one_kernel": Case(_softmax, ((3, 70),), ["max"], arena=True),
    "short_rows_lie_in_lanes": Case(_softmax, ((20, 4),), ["max"], arena=True),
    "bias_gradient_accumulates_in_the_adjoint_loop": Case(
        _bias_gradient, ((4, 3), (3,), (4, 3)), ["add_tanh"]
    ),
    "adam_update_is_one_loop": Case(_adam, ((2, 3),) * 4, ["mul"]),
    "cross_entropy_is_one_kernel": Case(_losses, ((3, 70), (3, 70)), ["max"]),
    "two_uses_share_a_load": Case(lambda b, x: [b.add(b.exp(x), b.mul(x, x))], ((5,),), ["exp"]),
    "left_factors_lie_as_they_like_and_right_ones_by_rows": Case(
        _transposed, ((3, 4), (5, 3)), ["transpose", "product"], arena=True
    ),
    "transposes_are_flags_of_blas": Case(_transposed, ((3, 4), (5, 3)), ["gemm"], blas=True),
    "reshape_and_transpose_are_free": Case(
        lambda b, x: [b.exp(b.transpose(b.reshape(x, shape=(4, 3)), axes=(1, 0)))],
        ((2, 2, 3),),
        ["exp"],
    ),
    "concatenate_writes_each_part_in_place": Case(
        lambda b, x, y: [b.concatenate(x, y, axis=1)], ((2, 3), (2, 1)), ["copy", "copy"]
    ),
    "outputs_are_written_directly": Case(_outputs, ((3, 3),), ["exp", "product"]),
    "column_sum_keeps_the_inner_axis_innermost": Case(_column_sums, ((3, 4),), ["exp_sum"]),
    "constants_are_arguments": Case(lambda b, x: [b.add(b.mul(x, 0.3), 7.0)], ((3,),), ["mul_add"]),
}


def graph_of(case: Case) -> Graph:
    """Return the graph of a case."""
    graph = Graph()
    b = Builder(graph)
    graph.outputs = case.make(b, *[b.input(Aval(shape, None, np.dtype(np.float32))) for shape in case.shapes])
    return graph
