# SPDX-License-Identifier: BSD-3-Clause
"""device_launches: launches become those of a device, in which threads share the work."""

from collections.abc import Container, Sequence

from tracejit.aval import Aval
from tracejit.ir import Node, Value
from tracejit.ops import OPS
from tracejit.passes.loops.kept_values import GROUP
from tracejit.passes.loops.launches import KernelLaunch, LoopLaunch, Single
from tracejit.passes.loops.nest import Access
from tracejit.passes.loops.spread import (
    COLUMN_THREADS,
    COLUMNS,
    ELEMENTS_OF_A_COPY,
    MOST_COPIES,
    DeviceLaunch,
    Spread,
    SpreadLaunch,
    columns_of,
    combination,
    spread,
)
from tracejit.program import ALIGNMENT


def spread_launches(launches: Sequence[Single], external: Container[Value]) -> list[DeviceLaunch]:
    """Return launches for a device.

    Args:
        launches: of nests and of kernels.
        external: the roots that are inputs or outputs of the program.
    """
    result: list[DeviceLaunch] = []
    for launch in launches:
        if isinstance(launch, LoopLaunch):
            result.append(_with_flag(launch))
            continue
        if isinstance(launch, KernelLaunch):
            result += first_places_by_groups(launch) if launch.name == "first_place" else [launch]
            continue
        writes = launch.nest.writes
        is_scratch = {a.root for a in writes if a.root.node is None and a.root not in external}
        result += map(SpreadLaunch, spread(launch.nest, is_scratch))
    return result


def first_places_by_groups(launch: KernelLaunch) -> list[DeviceLaunch]:
    """Return the launches that search for first places by groups: several of each row, of which the least counts."""
    rows, n, inner = launch.numbers
    x, best, out = launch.pointers  # `out` may be a part of memory
    if inner != 1 or not rows or not n or out.offset or out.root.aval.size != rows:
        return [launch]
    search = KernelLaunch("first_places", (rows, n, 1), launch.pointers, 1, launch.node)
    pieces = min(-(-n // (GROUP * ELEMENTS_OF_A_COPY)), MOST_COPIES // rows)
    if pieces < 2:
        return [search]
    memory = Value(Aval((pieces, *out.root.shape), None, out.root.dtype), None)
    found = Access(memory, 0, (), memory.dtype)
    search = search._replace(numbers=(rows, n, pieces), pointers=(x, best, found))
    least = Node(OPS["min"], (memory,), {}, None)
    least.makes((Value(Aval((), None, memory.dtype), None),))
    total = combination(least, memory, out.root, None)._replace(nodes=launch.nodes)
    return [
        search,
        SpreadLaunch(Spread(total, COLUMNS, -(-rows // columns_of(rows)), threads=COLUMN_THREADS)),
    ]


def _with_flag(launch: LoopLaunch) -> LoopLaunch:
    """Return a loop whose scratch memory has room for a bool behind that of its body."""
    size = launch.body.arena_bytes + ALIGNMENT
    return launch._replace(scratch=Value(Aval((size,), None, launch.scratch.dtype), None))
