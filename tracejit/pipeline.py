# SPDX-License-Identifier: BSD-3-Clause
"""build(): the stages of the compiler, one after the other."""

from collections.abc import Sequence

from tracejit import config
from tracejit.codegen.emit import Origins, emit
from tracejit.describe.program import Stages
from tracejit.ir import Graph, verify
from tracejit.ops.op import Layout
from tracejit.passes.fusion.chop import chop
from tracejit.passes.fusion.fuse import fuse
from tracejit.passes.fusion.regroup import regroup
from tracejit.passes.graph.simplify import simplify
from tracejit.passes.graph.slices import through_slices
from tracejit.passes.graph.sums import accumulate
from tracejit.passes.schedule.plan import plan
from tracejit.program import Program


def build(graph: Graph, layouts: Sequence[Layout | None] = ()) -> Program:
    """Return the program of a graph.

    Args:
        graph: what was recorded, forward and adjoint together.
        layouts: where the elements of each input lie, None or absent for contiguous ones.
    """
    return stages(graph, layouts).program


def stages(graph: Graph, layouts: Sequence[Layout | None] = ()) -> Stages:
    """Return the program of a graph, and what it was made of on the way: `build` for who looks."""
    simplified = simplify(graph)
    accumulate(simplified)
    through_slices(simplified)
    if config.settings.verify:
        verify(graph)
        verify(simplified)
    strided = {
        value: layout
        for value, layout in zip(simplified.inputs, layouts, strict=False)
        if layout is not None
    }  # fmt: skip
    fused = fuse(simplified, strided)
    regroup(simplified, fused)
    chop(fused)
    planned = plan(simplified, fused)
    origins: Origins = {}
    program = emit(planned, [value.aval for value in graph.inputs], origins)
    return Stages(simplified, fused, planned, origins, program)
