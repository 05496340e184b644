# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a graph, in words."""

from tracejit import pipeline
from tracejit.ir import Graph
from tracejit.passes.loops.launches import NestLaunch, Section, Single


def launches_of(graph: Graph) -> list[Single | Section]:
    return pipeline.stages(graph).plan.launches


def name(launch: Single) -> str:
    if isinstance(launch, NestLaunch):
        return " ".join(node.op.name for node in launch.nodes) or "copy"
    if launch.epilogue is not None:
        return f"{launch.name} {name(NestLaunch(launch.epilogue.nest))}"
    return launch.name


def shape(graph: Graph) -> list[str]:
    """Return the launches in words: sections as the number of bands and the launches of the first."""
    return [
        f"{len(each.tasks)}: {', '.join(map(name, each.tasks[0]))}"
        if isinstance(each, Section)
        else name(each)
        for each in launches_of(graph)
    ]
