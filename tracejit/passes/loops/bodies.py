# SPDX-License-Identifier: BSD-3-Clause
"""bodies: turns a loop of a graph into one launch, whose body is a program of its own on memory of this one.

Note [bodies]
The body of a loop is built once, like any program: for inputs that lie as one step's parts of the arrays around it do,
and with its carry as inputs that it writes. So the passes find out what may be written in place, and sums over steps
are accumulated in place. The rows of the body then become rows of the program around it. Kernels do not depend on the
number of steps: addresses move on between the steps.

A device reads and writes up to 32 bytes at once, beginning at a multiple of 32. So there the operands and results of
the steps lie in memory with room between them. They are copied before and after the loop, unless they lie that way
already.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.aval import Aval
from tracejit.errors import CodegenError
from tracejit.ir import Graph, Node, Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes.loops.builder import LaunchBuilder
from tracejit.passes.loops.launches import LoopLaunch
from tracejit.passes.loops.nest import Access
from tracejit.program import Program, Writes
from tracejit.util.named_tuples import NamedTuple


class BuiltBody(NamedTuple):
    """The program of a body, its nodes whose indices are checked, and the nodes that names in its kernels come from."""

    program: Program
    checked: Sequence[Node]
    origins: Mapping[str, dict[str, Node]]


_MOST = 1 << 62  # steps of a loop that a value ends
_UNIT = 32  # bytes: four neighbours of float64

BuildBody = Callable[[Graph, Sequence[Layout | None], Writes], BuiltBody]


def launch_loop(
    builder: LaunchBuilder, node: Node, build: BuildBody | None, fault: Callable[[], Value]
) -> Sequence[Node]:
    """Launch a loop, or a choice of bodies.

    Args:
        builder: takes the launches.
        node: a scan, a while or a cond.
        build: returns the program of a body; None where no graph with a loop is expected.
        fault: returns the value that is set where an index is out of range.

    Returns:
        The nodes of the bodies whose indices are checked.

    Raises:
        CodegenError: if there is no `build`.
    """
    if build is None:
        raise CodegenError("a graph with a loop is selected without a function that builds its body.")
    if node.op.name == "cond":
        condition = [builder.contiguous(value) for value in node.inputs[:2]]
        bodies = zip((node.params["then"], node.params["other"]), condition, strict=True)
        return [
            checked
            for body, access in bodies
            for checked in _launch_branch(builder, node, build, fault, body, access)
        ]
    body = node.params["body"]
    inputs, layouts = _operands(builder, node)
    built = build(body.graph, layouts, Writes({number: number for number in range(body.carries)}))
    results = [_with_room(builder, value) for value in node.outputs[body.carries :]]
    outputs = [_part(node, root, layout, root.dtype) for root, layout in results]
    goes_on = None
    if node.op.name == "while":
        goes_on = Access(node.outputs[0], 0, (), node.outputs[0].dtype)
    _add(builder, node, built, (node.params.get("length", _MOST), inputs, outputs), fault, goes_on)
    for value, result in zip(node.outputs[body.carries :], results, strict=True):
        if result[0] is not value:
            builder.copy(result, (value, contiguous(value.shape)))
    return built.checked


def _launch_branch(
    builder: LaunchBuilder, node: Node, build: BuildBody, fault: Callable[[], Value], body: Any, condition: Access
) -> Sequence[Node]:  # fmt: skip
    """Launch a body that runs if a condition holds: a loop of at most one step."""
    inputs: list[tuple[Access, int]] = []
    layouts: list[Layout | None] = []
    for value in node.inputs[2:]:
        root, layout = _aligned(builder, *builder.fused.view(value))
        inputs.append((Access(root, layout.offset, (), value.dtype), 0))
        layouts.append(_if_strided(layout._replace(offset=0)))
    built = build(body.graph, layouts, Writes())
    outputs = [(Access(value, 0, (), value.dtype), 0) for value in node.outputs]
    _add(builder, node, built, (1, inputs, outputs), fault, condition)
    return built.checked


def _operands(builder: LaunchBuilder, node: Node) -> tuple[list[tuple[Access, int]], list[Layout | None]]:
    """Return the memory of the inputs of a loop's body in the first step, and their layouts."""
    body = node.params["body"]
    inputs: list[tuple[Access, int]] = []
    layouts: list[Layout | None] = []
    operands = [builder.fused.view(value) for value in node.inputs]
    for value, (root, layout) in zip(node.outputs[: body.carries], operands, strict=False):
        builder.copy((root, layout), (value, contiguous(value.shape)))
    for number, (value, (root, layout)) in enumerate(zip(node.inputs, operands, strict=True)):
        if number < body.carries:
            out = node.outputs[number]
            inputs.append((Access(out, 0, (), out.dtype), 0))
            layouts.append(None)
        elif number < body.carries + body.slices:
            root, layout = _aligned(builder, root, layout, is_sliced=True)
            inputs.append(_part(node, root, layout, value.dtype))
            layouts.append(_if_strided(Layout(0, layout.shape[1:], layout.strides[1:])))
        elif 0 in layout.strides:
            root, layout = _aligned(builder, root, layout)
            inputs.append((Access(root, layout.offset, (), value.dtype), 0))
            layouts.append(_if_strided(layout._replace(offset=0)))
        else:
            # All steps read it: what a kernel may have to lay out by rows is laid out once.
            access = builder.contiguous(value)
            root, layout = _aligned(
                builder, access.root, contiguous(value.shape)._replace(offset=access.offset)
            )
            inputs.append((Access(root, layout.offset, (), access.dtype), 0))
            layouts.append(None)
    return inputs, layouts


def _aligned(
    builder: LaunchBuilder, root: Value, layout: Layout, is_sliced: bool = False
) -> tuple[Value, Layout]:
    """Return memory that begins where a device needs it, in each step if it `is_sliced`; a copy if it did not."""
    steps = layout.strides[:1] if is_sliced else ()
    places = [number * root.dtype.itemsize % _UNIT for number in (layout.offset, *steps)]
    if not builder.for_device or not any(places) or 0 in layout.shape:
        return root, layout
    copy, target = _roomy(layout.shape, root.dtype, is_sliced)
    builder.copy((root, layout), (copy, target))
    return copy, target


def _with_room(builder: LaunchBuilder, value: Value) -> tuple[Value, Layout]:
    """Return the memory in which steps write their parts of a result, itself unless a device needs more room."""
    layout = contiguous(value.shape)
    if not builder.for_device or layout.strides[0] * value.dtype.itemsize % _UNIT == 0:
        return value, layout
    return _roomy(value.shape, value.dtype, True)


def _roomy(shape: tuple[int, ...], dtype: np.dtype, is_sliced: bool) -> tuple[Value, Layout]:
    """Return new memory, in which the parts of an array begin at multiples of _UNIT if it `is_sliced`."""
    layout = contiguous(shape)
    if not is_sliced:
        return Value(Aval(shape, None, dtype), None), layout
    unit = _UNIT // dtype.itemsize
    step = -(-layout.strides[0] // unit) * unit
    strides = (step, *layout.strides[1:])
    return Value(Aval((shape[0], step), None, dtype), None), layout._replace(strides=strides)


def _part(node: Node, root: Value, layout: Layout, dtype: np.dtype) -> tuple[Access, int]:
    """Return the memory of an array's part for the first step that runs, and how many bytes it moves on after each."""
    offset, stride = layout.offset, layout.strides[0]
    if node.params["reverse"]:
        offset, stride = offset + (node.params["length"] - 1) * stride, -stride
    return Access(root, offset, (), dtype), stride * dtype.itemsize


def _add(
    builder: LaunchBuilder,
    node: Node,
    built: BuiltBody,
    memory: tuple[int, Sequence[tuple[Access, int]], Sequence[tuple[Access, int]]],
    fault: Callable[[], Value],
    condition: Access | None = None,
) -> None:
    """Append the launch of a body, given the number of its steps and the memory of its inputs and outputs."""
    program = built.program
    most, inputs, outputs = memory
    if not program.rows or not most:
        return
    if built.checked:
        outputs = [*outputs, (Access(fault(), 0, (), np.dtype(np.int64)), 0)]
    constants = [_constant(array) for array in program.constants]
    scratch = Value(Aval((program.arena_bytes,), None, np.dtype(np.uint8)), None)
    builder.add(
        LoopLaunch(node, program, most, inputs, outputs, constants, scratch, condition, built.origins)
    )


def _if_strided(layout: Layout) -> Layout | None:
    return None if layout == contiguous(layout.shape) else layout


def _constant(array: np.ndarray) -> Value:
    data: Any = array
    return Value(Aval(array.shape, None, array.dtype), None, data=data)
