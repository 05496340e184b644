# SPDX-License-Identifier: BSD-3-Clause
"""order: the launches of a device's program that have to be done before each launch begins.

A device runs launches at the same time unless one is said to need the other. A launch needs an earlier one if both
touch the same bytes and one of them writes there. Launches that touch much memory follow each other in any case,
because they would evict each other's data from the cache.

Times in ms of a step with gradients on an H100, first with one launch after the other, then as here: a perceptron of
64-128-10 units 0.034 and 0.025, LeNet 0.61 and 0.54, a transformer block of width 128 0.24 and 0.16. A transformer
block of width 512, with 16 sequences of 256, took 3.06 ms, and 3.33 ms without the rule about much memory.
"""

import re
from collections.abc import Container, Iterable, Sequence
from enum import Enum

from tracejit.codegen.nest import Emitted
from tracejit.ir import Value
from tracejit.passes.loops.launches import LoopLaunch
from tracejit.passes.loops.nest import Access
from tracejit.passes.schedule.memory import Memory
from tracejit.util.named_tuples import NamedTuple

_READ = re.compile(r"\bread_\w+\(args\[(\d+)\]")  # an argument whose memory is only read
_END = 1 << 62  # behind all memory
_LARGE_BYTES = 1 << 23  # that a launch touches: a sixth of the cache of a large device


class Written(Enum):
    """The memory of inputs where a program writes some: two may be the same, or each lies APART from the others."""

    TOGETHER = "together"
    APART = "apart"

    def memory(self, number: int) -> tuple[str, int]:
        """Return the memory of an input."""
        return ("input", number if self is Written.APART else 0)


class Touch(NamedTuple):
    """Bytes that a launch reads, or may write: a piece of memory, and where they begin and end in it."""

    memory: tuple[str, int]
    start: int
    stop: int
    is_written: bool


def touches_of(emitted: Emitted, memory: Memory, written: Written | None) -> list[Touch]:
    """Return what a launch touches.

    Args:
        emitted: its kernel and arguments.
        memory: the places of what it touches.
        written: how inputs lie if the program writes some, None if not.
    """
    touches = []
    read = {int(number) for number in _READ.findall(emitted.kernel.text)}
    for number, argument in enumerate(emitted.arguments):
        if not isinstance(argument, Access):
            continue
        kind, place, offset = memory.places[argument.root]
        if kind == "input" and written is not None:
            touches.append(Touch(written.memory(place), 0, _END, number not in read))
        elif kind not in ("input", "constant"):
            end = offset + _bytes(argument.root)
            touches.append(Touch((kind, place), offset, end, number not in read))
    return touches


def touches_of_loop(launch: LoopLaunch, memory: Memory, written: Written | None) -> list[Touch]:
    """Return what a loop touches, as touches_of() does."""
    touches = []
    for roots, is_written in ((launch.reads, False), (launch.writes, True)):
        for root in roots:
            kind, place, offset = memory.places[root]
            if kind not in ("input", "constant"):
                touches.append(Touch((kind, place), offset, offset + _bytes(root), is_written))
            elif kind == "input" and written is not None:
                touches.append(Touch(written.memory(place), 0, _END, is_written))
    return touches


def _bytes(root: Value) -> int:
    return root.aval.size * root.dtype.itemsize


def is_large(emitted: Emitted) -> bool:
    """Return whether a launch touches much memory."""
    roots = {argument.root for argument in emitted.arguments if isinstance(argument, Access)}
    return sum(map(_bytes, roots)) >= _LARGE_BYTES


def needed(launches: Sequence[Iterable[Touch]], large: Container[int] = ()) -> list[tuple[int, ...]]:
    """Return for each launch the numbers of earlier ones that it needs, without those that these need in turn.

    Args:
        launches: what each of them touches, in an order in which they can run one after the other.
        large: the numbers of those that touch much memory.
    """
    last_large = None
    history: dict[tuple[str, int], list[tuple[Touch, int]]] = {}
    before: list[int] = []  # bit k: launch k is done before
    result = []
    for number, touches in enumerate(launches):
        conflicts = {
            other
            for touch in touches
            for earlier, other in history.get(touch.memory, ())
            if (touch.is_written or earlier.is_written)
            and touch.start < earlier.stop
            and earlier.start < touch.stop
        }
        if number in large:
            conflicts |= set() if last_large is None else {last_large}
            last_large = number
        done, direct = 0, []
        for other in sorted(conflicts, reverse=True):
            if not done >> other & 1:
                direct.append(other)
                done |= before[other] | 1 << other
        before.append(done)
        result.append(tuple(sorted(direct)))
        for touch in touches:
            kept = history.get(touch.memory, [])
            if touch.is_written:  # who needs what was there needs this launch
                kept = [
                    (earlier, other)
                    for earlier, other in kept
                    if not touch.start <= earlier.start <= earlier.stop <= touch.stop
                ]
            history[touch.memory] = [*kept, (touch, number)]
    return result
