# SPDX-License-Identifier: BSD-3-Clause
"""strided reads: copies what a loop reads from places far apart, if the loop can then use vectors.

Note [strided reads]
LLVM makes no vectors of a loop whose innermost reads lie at distances that the text does not tell: it guesses 1, and
otherwise runs one number at a time. That is fast enough for an addition. For a function such as exp, or a fold whose
steps wait for each other, copying a number takes much less time than computing with it. So the operand is copied to
where its elements are neighbours. Times in us for 10,000 numbers at every third place, float32, AVX-512, before and
after:

    log(x)  51.6  8.0    sqrt(x)  14.2  5.5    max(x, axis=1)  44.9  9.1    sum(x)  8.7  4.3
"""

from collections.abc import Iterable

from tracejit.aval import Aval
from tracejit.ir import Value
from tracejit.ops.op import Layout, contiguous
from tracejit.passes import cost
from tracejit.passes.loops.launches import NestLaunch, Single
from tracejit.passes.loops.nest import (
    Access,
    Accumulate,
    Compute,
    Nest,
    RowFold,
    copy_nest,
    is_of_part,
    read_in_place,
)

NEAR = (0, 1, -1, 2, -2)  # distances at which loops use vectors
_LEAST_RUN = 64  # elements of the innermost loop; shorter rows run in lanes, which are gathered
_DEAR = 4  # the cost of an op that takes longer for a number than the copy of one


def with_copies(launches: Iterable[Single]) -> list[Single]:
    """Return launches in which loops that could use vectors read copies (Note [strided reads])."""
    result: list[Single] = []
    for launch in launches:
        nests = copied(launch.nest) if isinstance(launch, NestLaunch) else ()
        result += map(NestLaunch, nests) if nests else [launch]
    return result


def copied(nest: Nest) -> list[Nest]:
    """Return the copies that a nest needs, and the nest that reads them; nothing if it needs none."""
    inner = _innermost(nest)
    if inner is None or nest.extents[inner] < _LEAST_RUN or not _gains(nest):
        return []
    if any(access.strides[inner] not in NEAR for access in nest.writes):
        return []
    in_place = read_in_place(nest)
    reads = list(nest.reads)
    copies: dict[Access, Access] = {}
    for number, access in enumerate(reads):
        if number in in_place or is_of_part(access) or access.strides[inner] in NEAR:
            continue
        if access not in copies:
            copies[access] = _copy_of(access, nest.extents)
        reads[number] = copies[access]
    made = [copy_nest((old.root, _layout(old, nest.extents)), (new.root, contiguous(new.root.shape)))
            for old, new in copies.items()]  # fmt: skip
    return [*made, nest._replace(reads=reads)] if made else []


def _gains(nest: Nest) -> bool:
    """Return whether a number takes longer than its copy."""
    return any(
        isinstance(line, RowFold) or (isinstance(line, Accumulate) and not any(nest.writes[line.write].strides))
        or (isinstance(line, Compute) and (cost.op_cost(line.node) or 0) >= _DEAR)
        for lines in nest.full for line in lines
    )  # fmt: skip


def _innermost(nest: Nest) -> int | None:
    """Return the axis of the innermost loop: the last one, or that which most memory is walked along by neighbours."""
    axes = range(len(nest.extents))
    if not axes:
        return None
    if nest.split is not None:
        return axes[-1]
    accesses = [*nest.reads, *nest.writes]
    return max(axes, key=lambda axis: (sum(access.strides[axis] == 1 for access in accesses), axis))


def _moving(access: Access) -> list[int]:
    return [axis for axis, stride in enumerate(access.strides) if stride]


def _layout(access: Access, extents: tuple[int, ...]) -> Layout:
    """Return the layout of all that an access reads."""
    axes = _moving(access)
    return Layout(
        access.offset, tuple([extents[axis] for axis in axes]), tuple([access.strides[axis] for axis in axes])
    )


def _copy_of(access: Access, extents: tuple[int, ...]) -> Access:
    """Return an access to new memory in which neighbours along the last axis lie side by side."""
    axes = _moving(access)
    shape = tuple([extents[axis] for axis in axes])
    memory = Value(Aval(shape, None, access.dtype), None)
    own = dict(zip(axes, contiguous(shape).strides, strict=True))
    return Access(memory, 0, tuple([own.get(axis, 0) for axis in range(len(extents))]), access.dtype)
