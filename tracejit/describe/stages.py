# SPDX-License-Identifier: BSD-3-Clause
"""A program and its stages, for the CPU or for a device, from which descriptions are made."""

from typing import TYPE_CHECKING, TypeAlias

from tracejit.codegen.emit import Origins
from tracejit.ir import Graph, Node, Value
from tracejit.passes.fusion.fuse import Fused
from tracejit.passes.loops.launches import Launch, row_count
from tracejit.passes.schedule.memory import Plan
from tracejit.program import Place, Program
from tracejit.util.named_tuples import NamedTuple

if TYPE_CHECKING:  # few programs run on a device
    from tracejit.passes.loops.spread import DeviceLaunch, SpreadLaunch

AnyLaunch: TypeAlias = "Launch | SpreadLaunch"


class DevicePlan(NamedTuple):
    """Launches on the memory of a device.

    launches    in the order of execution
    places      of every root that a launch touches
    counts      the number of rows of each launch
    checked     the nodes whose indices are checked while they run
    """

    launches: "list[DeviceLaunch]"
    places: dict[Value, Place]
    counts: list[int]
    checked: list[Node]


class Stages(NamedTuple):
    """A program and its stages: the simplified graph, its steps, their launches, the origins of names in kernels."""

    graph: Graph
    fused: Fused
    plan: Plan | DevicePlan
    origins: Origins
    program: Program

    @property
    def launches(self) -> list[tuple[AnyLaunch, int]]:
        """The launches, and the number of rows of each."""
        if isinstance(self.plan, DevicePlan):
            return list(zip(self.plan.launches, self.plan.counts, strict=True))
        return [(launch, row_count(launch)) for launch in self.plan.launches]
