# SPDX-License-Identifier: BSD-3-Clause
"""bodies: a loop of a graph becomes one launch, whose body is a program of its own on memory of this one.

Note [bodies]
The body of a loop is built as any program, once: for inputs that lie as one step's parts of the arrays around it do,
and with its carry as inputs that it writes. So the passes find out what may be written in place, and sums over steps
are added to where they are. Its rows then become rows of the program around it. Nothing of a kernel depends on how many
steps there are: addresses move on between the steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.ir import Graph, Node, Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.inputs import Writes
from tracejit.passes.loops.launches import LoopLaunch
from tracejit.passes.loops.nest import Access
from tracejit.program import Program


class BuiltBody(NamedTuple):
    """The program of a body, its nodes whose indices are checked, and the nodes that names in its kernels come from."""

    program: Program
    checked: Sequence[Node]
    origins: Mapping[str, dict[str, Node]]


BuildBody = Callable[[Graph, Sequence[Layout | None], Writes], BuiltBody]


def no_bodies(graph: Graph, layouts: Sequence[Layout | None], writes: Writes) -> BuiltBody:
    """Refuse the body of a loop, for graphs that have none.

    Raises:
        CodegenError: always.
    """
    raise CodegenError("a graph with a loop is selected without a function that builds its body.")


def launch_scan(
    builder: LaunchBuilder, node: Node, build: BuildBody, fault: Callable[[], Value]
) -> Sequence[Node]:
    """Launch a scan.

    Args:
        builder: takes the launches.
        node: the scan.
        build: returns the program of a body.
        fault: returns the value that is set where an index is out of range.

    Returns:
        The nodes of the body whose indices are checked.
    """
    body, count, is_reversed = (node.params[name] for name in ("body", "length", "reverse"))
    operands = [builder.fused.view(value) for value in node.inputs]
    for value, (root, layout) in zip(node.outputs[: body.carries], operands, strict=False):
        builder.copy((root, layout), (value, contiguous(value.shape)))
    inputs: list[tuple[Access, int]] = []
    layouts: list[Layout | None] = []
    for number, (value, (root, layout)) in enumerate(zip(node.inputs, operands, strict=True)):
        if number < body.carries:
            out = node.outputs[number]
            inputs.append((Access(out, 0, (), out.dtype), 0))
            layouts.append(None)
        elif number < body.carries + body.slices:
            inputs.append(_moving(root, layout.offset, layout.strides[0], value.dtype, count, is_reversed))
            layouts.append(_if_strided(Layout(0, layout.shape[1:], layout.strides[1:])))
        elif 0 in layout.strides:
            inputs.append((Access(root, layout.offset, (), value.dtype), 0))
            layouts.append(_if_strided(layout._replace(offset=0)))
        else:
            # All steps read it: what a kernel may have to lay out by rows is laid out once.
            inputs.append((builder.contiguous(value), 0))
            layouts.append(None)
    built = build(body.graph, layouts, Writes({number: number for number in range(body.carries)}))
    outputs = [
        _moving(value, 0, contiguous(value.shape).strides[0], value.dtype, count, is_reversed)
        for value in node.outputs[body.carries :]
    ]
    if built.checked:
        outputs.append((Access(fault(), 0, (), np.dtype(np.int64)), 0))
    _add(builder, node, built, count, inputs, outputs)
    return built.checked


def _add(
    builder: LaunchBuilder,
    node: Node,
    built: BuiltBody,
    count: int,
    inputs: Sequence[tuple[Access, int]],
    outputs: Sequence[tuple[Access, int]],
    condition: Access | None = None,
) -> None:
    """Append the launch of a body."""
    program = built.program
    if not program.rows or not count:
        return
    constants = [_constant(array) for array in program.constants]
    scratch = Value(Aval((program.arena_bytes,), None, np.dtype(np.uint8)), None)
    memory = inputs, outputs, constants, scratch
    builder.add(LoopLaunch(node, program, count, *memory, condition, built.origins))


def _moving(
    root: Value, offset: int, stride: int, dtype: np.dtype, count: int, is_reversed: bool
) -> tuple[Access, int]:
    """Return the memory of the first step that runs, and how many bytes it moves on after each."""
    if is_reversed:
        offset, stride = offset + (count - 1) * stride, -stride
    return Access(root, offset, (), dtype), stride * dtype.itemsize


def _if_strided(layout: Layout) -> Layout | None:
    return None if layout == contiguous(layout.shape) else layout


def _constant(array: np.ndarray) -> Value:
    data: Any = array
    return Value(Aval(array.shape, None, array.dtype), None, data=data)
