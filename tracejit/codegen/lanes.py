# SPDX-License-Identifier: BSD-3-Clause
"""Nests that run with rows side by side, in the lanes of vectors.

Note [short rows]
A row of 10 numbers is too short for a loop of vectors: most of it would run one number at a time, and every reduction
of a row would combine the lanes of a vector, step by step. So if rows are short, the lanes of a vector are neighbouring
rows. A number of a row becomes a vector, the loops over a row stay, and reductions go from vector to vector. Memory
that lies by rows is gathered lane by lane, once: values that a later pass needs again are kept in scratch memory by
columns. The loop over rows in lanes is the outermost one, so that reads that do not depend on further axes of rows come
before their loops.

Gathering takes time too, so rows without expensive functions have to be shorter to gain. Least times in ns for each
element, float32, AVX-512, 16000 elements, row by row and side by side:

    columns                        2          4         10         16         32         64
    softmax, cross-entropy    11.9  1.4   9.2  1.2   4.6  1.0   2.6  1.0   1.8  1.1   1.1  1.0
    layer normalisation        2.1  0.8   2.1  1.0   0.9  0.7   0.4  0.7   0.4  0.6   0.3  0.6
    sum of products            0.7  0.3   0.6  0.3   0.2  0.3   0.1  0.3   0.1  0.3   0.1  0.3
"""

import math

from tracejit.codegen.target import vector_bytes
from tracejit.passes import cost
from tracejit.passes.loops.nest import Accumulate, Compute, Nest, Reload, RowFold
from tracejit.passes.loops.vector_forms import has_vector_form

SHORT = 64  # elements: the longest row that runs in lanes
SHORT_IF_CHEAP = 8  # the same if its elements go through arithmetic only
_LARGEST_STRIDE = 2**26  # elements: the places of lanes have 32 bits
_MOST_SCRATCH = 16  # values of a row in scratch memory


def count() -> int:
    """Return how many rows run side by side: as many as fit into a vector of float32."""
    return vector_bytes() // 4


def lane_axis(extents: tuple[int, ...], split: int) -> int:
    """Return the axis of rows to lay into lanes: the last one that fills them."""
    return next((axis for axis in reversed(range(split)) if extents[axis] >= count()), split - 1)


def kept(nest: Nest) -> set[int]:
    """Return the writes that hold one row at a time, which nothing outside of the nest reads."""
    accumulated = {line.write for line in nest.lines if isinstance(line, Accumulate)}
    return {
        k
        for k, access in enumerate(nest.writes)
        if k not in accumulated and not any(access.strides[: nest.split])
    }


def suits(nest: Nest, extents: tuple[int, ...], split: int | None) -> bool:
    """Return whether a nest, whose loops have these extents, runs with rows in lanes (Note [short rows])."""
    if not split or nest.split is None or split == len(extents):
        return False
    longest = SHORT if _is_dear(nest) else min(SHORT, SHORT_IF_CHEAP)
    if _has_extremum(nest):  # which LLVM leaves to one number at a time after whole vectors
        longest = max(longest, SHORT - 1)
    if math.prod(extents[split:]) > longest and not _is_by_columns(nest):
        return False
    scratch = [nest.writes[k].dtype for k in kept(nest)]
    if len(scratch) + len(nest.reads) > _MOST_SCRATCH:
        return False
    for access in (*nest.reads, *nest.writes):
        moving = [stride for stride in access.strides[: nest.split] if stride]
        if moving and (access.dtype.itemsize < 4 or max(map(abs, moving)) >= _LARGEST_STRIDE):
            return False
    return all(dtype.itemsize >= 4 for dtype in scratch) and all(map(has_vector_form, nest.lines))


def _is_by_columns(nest: Nest) -> bool:
    """Return whether lanes are neighbours in all memory, and there is only one pass."""
    moving = [access for access in (*nest.reads, *nest.writes) if any(access.strides)]
    return nest.split == 1 and len(nest.full) == 1 and all(access.strides[0] == 1 for access in moving)


def _has_extremum(nest: Nest) -> bool:
    """Return whether rows are folded to their largest or smallest elements."""
    folds = [line.node for line in nest.lines if isinstance(line, RowFold)]
    return any(fold.op.name in ("max", "min") and fold.output.dtype.kind == "f" for fold in folds)


def _is_dear(nest: Nest) -> bool:
    """Return whether the elements of rows go through functions such as exp."""
    return any(cost.is_dear(line.node) for lines in nest.full for line in lines if isinstance(line, Compute))


def is_reloaded(nest: Nest, write: int) -> bool:
    """Return whether a later pass over a row reads what an earlier one stored."""
    return any(isinstance(line, Reload) and line.write == write for line in nest.lines)
