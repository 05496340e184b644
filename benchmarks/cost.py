# SPDX-License-Identifier: BSD-3-Clause
"""The least work of a step, and the rates of the machine: the two sides of the roofline."""

from dataclasses import dataclass
from typing import Any

from tracejit import tree
from tracejit.array import dlarray
from tracejit.describe import roofline
from tracejit.ir import Graph
from tracejit.passes.graph.simplify import simplify
from tracejit.record.recorder import Recorder


@dataclass(frozen=True)
class Cost:
    """The least work of a step.

    flops           two for each term of a matrix product, one for each element of another op
    size_bytes      of arguments and results, each once
    dtype           of most of the work
    """

    flops: int
    size_bytes: int
    dtype: str


@dataclass(frozen=True)
class Rates:
    """The rates of the machine in this run: a large matrix product by dtype, and a large copy."""

    flops_per_s: dict[str, float]
    bytes_per_s: float


def record(function: Any, *args: Any) -> Graph:
    """Return what an accelerated function computes for arguments, as recorded."""
    leaves, treedef = tree.flatten(args)
    with Recorder(function.__name__, accelerating=True) as recorder:
        inputs = [recorder.input(leaf) if type(leaf) is dlarray else leaf for leaf in leaves]
        results = tree.flatten(function.function(*tree.unflatten(treedef, inputs)))[0]
        recorder.graph.outputs = [recorder.value(leaf) for leaf in results if type(leaf) is dlarray]
    return recorder.graph


def cost(graph: Graph) -> Cost:
    """Return what a graph does at least."""
    simplified = simplify(graph)
    flops = sum(
        roofline.flops(node.op.name, [value.aval.size for value in node.inputs], node.output.shape)
        for node in simplified.nodes
    )
    values = (*simplified.inputs, *simplified.outputs)
    size_bytes = sum(value.aval.size * value.dtype.itemsize for value in values)
    return Cost(flops, size_bytes, str(max(values, key=lambda value: value.aval.size).dtype))


def rates(repeats: int = 10) -> Rates:
    """Measure the machine: the best of a few repeats."""
    flops_per_s = {
        dtype: roofline.product_rate(dtype, roofline.PRODUCT, repeats) for dtype in ("float32", "float64")
    }
    return Rates(flops_per_s, roofline.copy_rate(roofline.COPY_BYTES, repeats))


def roofline_us(cost: Cost, rates: Rates) -> float:
    """Return the time that the larger of computing and moving takes at the machine's rates."""
    return 1e6 * max(cost.flops / rates.flops_per_s[cost.dtype], cost.size_bytes / rates.bytes_per_s)
