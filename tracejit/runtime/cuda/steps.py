# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a program as graphs, and loops of graphs that the host runs, as data.

Note [graphs of loops]
A loop of known length is repeated in a graph, step by step. So a replay is one launch of a graph, and nothing waits for
the host. If that takes more than MOST_NODES launches, the host repeats a graph of as many steps as fit, with addresses
that move on. A loop that a value ends is repeated by the host. Its graph has some steps, whose launches do nothing once
the value is false (Note [loops on a device] in codegen/device/loops.py), and the host reads the value after each graph.
A branch is part of the graph around, and does nothing where it is not taken.
"""

from collections.abc import Iterator, Sequence

from tracejit.program import Program, Row, RowLoop
from tracejit.runtime.cuda.graph import GraphNode, GraphPlan, Patch, Turn, node_of, patch_of
from tracejit.util.named_tuples import NamedTuple

MOST_NODES = 1024  # of a graph, if it has loops
_WHILE_NODES, _WHILE_STEPS = 64, 8  # of a loop that a value ends, in a graph


class HostLoop(NamedTuple):
    """Graphs that the host runs up to `most` times, as long as all bools hold that lie at `flags`.

    With `is_moving` addresses move on from turn to turn.
    """

    most: int
    body: "Steps"
    flags: tuple[Patch, ...] = ()
    is_moving: bool = False


Steps = tuple[GraphPlan | HostLoop, ...]


def steps_of(program: Program) -> tuple[Steps, Steps]:
    """Return the graphs of a program, and those of what it writes where its results count.

    Raises:
        CodegenError: if some of its rows cannot run on a device.
    """
    last = len(program.rows) - program.commits
    graphs = _Unrolling(program.rows, 0, last, program.loops).steps
    return graphs, _Unrolling(program.rows, last, len(program.rows), program.loops).steps


def nodes_of(steps: Steps) -> Iterator[GraphNode]:
    """Give the nodes of graphs, and of those in loops."""
    for step in steps:
        yield from nodes_of(step.body) if isinstance(step, HostLoop) else step.nodes


class _Unrolling:
    """Makes the graphs of some rows.

    Args:
        rows: of a program.
        first, end: the rows that become graphs; the numbers that they need are counted from the first.
        loops: of the program.
    """

    def __init__(self, rows: Sequence[Row], first: int, end: int, loops: Sequence[RowLoop]) -> None:
        self._rows = rows
        self._needs = [tuple([first + number for number in row.needs]) for row in rows[first:end]]
        self._first = first
        self._loops = [loop for loop in loops if first <= loop.first < end]
        self._ends = {loop: self._ends_of(loop) for loop in self._loops}
        self._done: list[GraphPlan | HostLoop] = []
        self._nodes: list[GraphNode] = []
        self._dependencies: list[tuple[int, ...]] = []
        self._latest: dict[int, int] = {}  # the latest node of each row in the graph
        self._around: list[tuple[RowLoop, Turn]] = []
        self._product: int | None = None  # the latest node that the library computes
        self._repeated: list[bool] = []  # whether a step of each loop around is in the graph already
        self._rows_of(first, end, self._loops)
        self._flush()
        self.steps: Steps = tuple(self._done)

    def _ends_of(self, loop: RowLoop) -> tuple[int, ...]:
        """Return the rows of a loop that no other one of its rows needs."""
        rows = range(loop.first, loop.end)
        needed = {number for row in rows for number in self._needs[row - self._first]}
        return tuple([row for row in rows if row not in needed])

    def _flush(self) -> None:
        """End the graph."""
        if self._nodes:
            self._done.append(GraphPlan(tuple(self._nodes), tuple(self._dependencies)))
        self._nodes, self._dependencies, self._latest, self._product = [], [], {}, None
        self._repeated = [False] * len(self._repeated)

    def _rows_of(self, first: int, end: int, loops: Sequence[RowLoop]) -> None:
        """Append some rows, given the loops among them."""
        row, rest = first, list(loops)
        while row < end:
            if rest and rest[0].first == row:
                loop = rest[0]
                inner = [other for other in rest[1:] if other.first < loop.end]
                self._loop(loop, inner)
                row, rest = loop.end, rest[1 + len(inner) :]
            else:
                self._row(row)
                row += 1

    def _row(self, number: int) -> None:
        dependencies = {self._latest[other] for other in self._before(number) if other in self._latest}
        node = node_of(self._rows[number], [turn for _, turn in self._around])
        self._latest[number] = len(self._nodes)
        if node.product is not None:  # they share a workspace: Note [products by the library]
            if self._product is not None:
                dependencies.add(self._product)
            self._product = len(self._nodes)
        self._nodes.append(node)
        self._dependencies.append(tuple(sorted(dependencies)))

    def _before(self, number: int) -> Sequence[int]:
        """Return the rows whose latest nodes a row needs: of the same step, or those that end the one before."""
        needs = self._needs[number - self._first]
        for (loop, _), is_repeated in zip(reversed(self._around), reversed(self._repeated), strict=True):
            inside = [other for other in needs if loop.first <= other < loop.end]
            if inside:
                return inside
            if is_repeated:
                return self._ends[loop]
        return needs

    def _loop(self, loop: RowLoop, inner: Sequence[RowLoop]) -> None:
        size = self._size(loop, inner)
        if loop.condition is not None and loop.most > 1:
            steps = max(1, min(_WHILE_STEPS, _WHILE_NODES // max(1, size))) if size else 1
            self._by_host(loop, inner, loop.most, 0, steps)
        elif size and size * loop.most <= MOST_NODES:
            self._steps(loop, inner, range(loop.most), 0)
        else:
            steps = max(1, MOST_NODES // size) if size else 1
            turns = loop.most // steps
            self._by_host(loop, inner, turns, steps, steps)
            self._steps(loop, inner, range(turns * steps, loop.most), 0)

    def _size(self, loop: RowLoop, inner: Sequence[RowLoop]) -> int:
        """Return how many nodes a step of a loop is; 0 if the host has to run a loop inside it."""
        size, row, rest = 0, loop.first, list(inner)
        while row < loop.end:
            if not rest or rest[0].first != row:
                size, row = size + 1, row + 1
                continue
            other = rest[0]
            within = [loop for loop in rest[1:] if loop.first < other.end]
            of_step = self._size(other, within)
            is_ended = other.condition is not None and other.most > 1
            if is_ended or not of_step or of_step * other.most > MOST_NODES:
                return 0
            size, row, rest = size + of_step * other.most, other.end, rest[1 + len(within) :]
        return size

    def _steps(self, loop: RowLoop, inner: Sequence[RowLoop], steps: range, stride: int) -> None:
        """Append steps of a loop, one after the other."""
        self._repeated.append(False)
        for step in steps:
            self._around.append((loop, Turn(step, stride)))
            self._rows_of(loop.first, loop.end, inner)
            self._around.pop()
            self._repeated[-1] = bool(self._nodes)
        self._repeated.pop()

    def _by_host(self, loop: RowLoop, inner: Sequence[RowLoop], most: int, stride: int, steps: int) -> None:
        """Append a loop of graphs with some steps each."""
        self._flush()
        before, self._done = self._done, []
        self._steps(loop, inner, range(steps), stride)
        self._flush()
        body, self._done = tuple(self._done), before
        flags = []
        if loop.condition is not None:
            around = [*self._around, (loop, Turn(0, 0))]
            for number, (other, _) in enumerate(around):
                if other.condition is not None:
                    turns = [turn for _, turn in around[: number + 1]]
                    flags.append(patch_of(other.condition, 0, turns))
        self._done.append(HostLoop(most, body, tuple(flags), bool(stride)))
