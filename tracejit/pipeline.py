# SPDX-License-Identifier: BSD-3-Clause
"""build: the stages of the compiler, one after the other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tracejit import config
from tracejit.aval import is_half
from tracejit.codegen.emit import Origins, emit
from tracejit.codegen.other_sizes import kernels_elsewhere
from tracejit.describe.stages import DevicePlan, Stages
from tracejit.ir import Graph, Value, verify
from tracejit.ops import Kind
from tracejit.ops.op import Layout
from tracejit.passes.fusion.chop import chop
from tracejit.passes.fusion.fuse import fuse
from tracejit.passes.fusion.regroup import regroup
from tracejit.passes.graph.by_columns import by_columns
from tracejit.passes.graph.set_slices import set_slices
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.slices import through_slices
from tracejit.passes.graph.sums import accumulate
from tracejit.passes.loops.select import select
from tracejit.passes.schedule.epilogues import join_epilogues
from tracejit.passes.schedule.memory import place, place_roots
from tracejit.passes.schedule.sections import schedule
from tracejit.program import NO_WRITES, Program, Writes

if TYPE_CHECKING:
    from tracejit.passes.loops.bodies import BuiltBody


def build(graph: Graph, layouts: Sequence[Layout | None] = (), writes: Writes = NO_WRITES) -> Program:
    """Return the program of a graph.

    Args:
        graph: the recording, forward and adjoint together.
        layouts: of the inputs; None, or no entry, for contiguous ones.
        writes: the outputs that are new contents of inputs, which the program writes into them.
    """
    return stages(graph, layouts, writes).program


def stages(graph: Graph, layouts: Sequence[Layout | None] = (), writes: Writes = NO_WRITES) -> Stages:
    """Return the program of a graph together with what each stage made of it."""
    if writes.targets:
        return _stages_of(graph, layouts, writes)
    turned, numbers = by_columns(graph, layouts)
    turned, own = _pairs_moved(turned, layouts)
    made = _stages_of(turned, own, writes)
    if turned is graph:
        return made
    inputs, outputs = ([value.aval for value in values] for values in (graph.inputs, graph.outputs))
    program = made.program._replace(inputs=inputs, outputs=outputs, by_columns=numbers)
    return made._replace(program=program)


def _pairs_moved(graph: Graph, layouts: Sequence[Layout | None]) -> tuple[Graph, Sequence[Layout | None]]:
    """Return a graph that moves pairs where it only moves complex numbers, and the layouts of its inputs."""
    if not any(value.dtype.kind == "c" for value in graph.inputs):
        return graph, layouts
    from tracejit.passes.graph.complex_moves import complex_moves

    return complex_moves(graph, layouts)


def _stages_of(graph: Graph, layouts: Sequence[Layout | None], writes: Writes) -> Stages:
    """Return the program of a graph together with what each stage made of it, whatever its inputs are."""
    simplified = _simplified(graph, writes)
    fused = fuse(simplified, _strided(simplified, layouts), _accumulated(simplified, writes))
    regroup(simplified, fused)
    chop(fused)

    selection = select(simplified, fused, writes, _build_body)
    schedules = [schedule(some, selection.external) for some in (selection.launches, selection.commits)]
    launches, commits = [join_epilogues(made.launches, selection.external) for made in schedules]
    plan = place(launches, commits, selection)

    origins: Origins = {}
    program = emit(plan, [value.aval for value in graph.inputs], origins)
    elsewhere = kernels_elsewhere(program, plan.launches, [made.elsewhere for made in schedules])
    program = program._replace(of_other_sizes=elsewhere)
    return Stages(simplified, fused, plan, origins, _with_halves(program, graph, writes))


def _with_halves(program: Program, graph: Graph, writes: Writes) -> Program:
    """Return a program whose outputs are the 16-bit numbers of the graph where the plan has their bits."""
    if not any(is_half(value.dtype) for value in graph.outputs):
        return program
    own = [value.aval for number, value in enumerate(graph.outputs) if number not in writes.targets]
    return program._replace(outputs=own + program.outputs[len(own) :])


def _simplified(graph: Graph, writes: Writes, for_device: bool = False) -> Graph:
    """Return the graph that is fused."""
    simplified = _with_wanted_places(simplify(_rewritten(graph, for_device)))
    accumulate(simplified)
    set_slices(simplified, [simplified.inputs[target] for target in writes.targets.values()])
    through_slices(simplified)
    _verify(graph, simplified)
    return simplified


def _with_wanted_places(graph: Graph) -> Graph:
    """Return a graph that sorts what is wanted only; the pass is imported for graphs that sort."""
    if not any(node.op.name in ("sort", "order") for node in graph.nodes):
        return graph
    from tracejit.passes.graph.wanted_places import wanted_places

    return wanted_places(graph)


def _rewritten(graph: Graph, for_device: bool) -> Graph:
    """Return the graph after the passes that few graphs need, which are imported for these."""
    if any(node.op.kind is Kind.LOOP for node in graph.nodes):
        from tracejit.passes.graph.stacked_products import stacked_products
        from tracejit.passes.graph.tidy_loops import tidy_loops

        graph = stacked_products(tidy_loops(graph))
    if not for_device and any("matmul" in node.op.name or node.op.kind is Kind.LOOP for node in graph.nodes):
        from tracejit.passes.graph.numpy_products import numpy_products

        graph = numpy_products(graph)
    values = [*graph.inputs, *graph.constants, *(v for node in graph.nodes for v in node.outputs)]
    dtypes = {value.aval.dtype for value in values}
    if any(dtype.kind == "c" for dtype in dtypes):
        from tracejit.passes.graph.complex_parts import complex_parts

        graph = complex_parts(graph, for_device)
    if any(is_half(dtype) for dtype in dtypes):
        from tracejit.passes.graph.half_bits import half_bits

        graph = half_bits(graph)
    return graph


def _build_body(graph: Graph, layouts: Sequence[Layout | None], writes: Writes) -> "BuiltBody":
    """Return the program of the body of a loop."""
    from tracejit.passes.loops.bodies import BuiltBody

    built = _stages_of(graph, layouts, writes)
    return BuiltBody(built.program, built.plan.checked, built.origins)


def _build_body_for_device(graph: Graph, layouts: Sequence[Layout | None], writes: Writes) -> "BuiltBody":
    """Return the program of the body of a loop for a device."""
    from tracejit.passes.loops.bodies import BuiltBody

    built = device_stages(graph, layouts, writes, is_body=True)
    return BuiltBody(built.program, built.plan.checked, built.origins)


def _accumulated(graph: Graph, writes: Writes) -> dict[Value, Value]:
    """Return the inputs that products are added to where they lie, by the results of these products."""
    if writes.guarded:
        return {}
    uses = Counter([value for node in graph.nodes for value in node.inputs])
    uses.update(graph.outputs)
    found = {}
    for number, target in writes.targets.items():
        value, total = graph.outputs[number], graph.inputs[target]
        is_added = value.node is not None and value.node.inputs[-1] is total
        if is_added and uses[value] == uses[total] == 1 and value.aval == total.aval:
            found[value] = total
    return found


def build_for_device(
    graph: Graph, layouts: Sequence[Layout | None] = (), writes: Writes = NO_WRITES
) -> Program:
    """Return the program of a graph for a device of many threads.

    Args:
        graph: the recording, forward and adjoint together.
        layouts: of the inputs; None, or no entry, for contiguous ones.
        writes: the outputs that are new contents of inputs, which the program writes into them.
    """
    return device_stages(graph, layouts, writes).program


def device_stages(
    graph: Graph, layouts: Sequence[Layout | None] = (), writes: Writes = NO_WRITES, is_body: bool = False
) -> Stages:
    """Return the program of a graph for a device together with what each stage made of it.

    Args:
        graph, layouts, writes: as in build_for_device().
        is_body: whether the graph is the body of a loop.

    Raises:
        CodegenError: if there is no program for a device.
    """
    # Imported here, because few programs run on a device.
    from tracejit.codegen.device.emit import emit_for_device
    from tracejit.passes.loops.device_launches import spread_launches
    from tracejit.passes.loops.few_arguments import in_few_arguments

    simplified = _simplified(graph, writes, for_device=True)
    fused = fuse(simplified, _strided(simplified, layouts))
    regroup(simplified, fused)
    chop(fused)
    in_few_arguments(simplified, fused)
    selection = select(simplified, fused, writes, _build_body_for_device, for_device=True)
    launches, commits = [
        spread_launches(some, selection.external) for some in (selection.launches, selection.commits)
    ]
    memory = place_roots([launch.touched for launch in launches + commits], selection.external)
    origins: Origins = {}
    inputs = [value.aval for value in graph.inputs]
    program, counts = emit_for_device(launches, commits, memory, selection, inputs, origins, is_body)
    plan = DevicePlan(launches + commits, memory.places, counts, selection.checked)
    return Stages(simplified, fused, plan, origins, _with_halves(program, graph, writes))


def _verify(*graphs: Graph) -> None:
    if config.settings.verify:
        for graph in graphs:
            verify(graph)


def _strided(graph: Graph, layouts: Sequence[Layout | None]) -> Mapping[Value, Layout]:
    """Return the layouts of the inputs that are not contiguous."""
    pairs = zip(graph.inputs, layouts, strict=False)
    return {value: layout for value, layout in pairs if layout is not None}
