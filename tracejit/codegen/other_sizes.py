# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that a program of another size needs in addition.

Note [other sizes]
Kernels take sizes as arguments, so that programs of all sizes of a function share them. But a size whose loops take
long enough for parts has more launches than another: they add up what the parts have accumulated. And rows that are
short run several at a time, for which a row is copied, where there are enough of them. These kernels have a few lines
each, and are the same in all programs of a dtype. So a program knows them too if it does without, and they are compiled
beside its own: then no size compiles them when it is first met.
"""

from collections.abc import Hashable, Mapping, Sequence

from tracejit.codegen.row_sums import emit_nest
from tracejit.codegen.target import vector_bytes
from tracejit.passes.loops.launches import Launch, LoopLaunch
from tracejit.passes.loops.nest import Nest
from tracejit.program import Kernel, Program

_kernels: dict[Hashable, Kernel] = {}


def kernels_elsewhere(
    program: Program, launches: Sequence[Launch], nests: Sequence[Mapping[Hashable, Nest]]
) -> tuple[Kernel, ...]:
    """Return the kernels of nests that no row of a program has.

    Args:
        program: the program.
        launches: of the program; the bodies of loops know kernels too.
        nests: by what their kernels depend on.
    """
    bodies = [launch.body for launch in launches if isinstance(launch, LoopLaunch)]
    found = dict.fromkeys(kernel for body in bodies for kernel in body.of_other_sizes)
    for some in nests:
        for likeness, nest in some.items():
            key = likeness, vector_bytes()
            if key not in _kernels:
                _kernels[key] = emit_nest(nest).kernel
            found[_kernels[key]] = None
    if not found:
        return ()
    own = set(program.kernels)
    return tuple([kernel for kernel in found if kernel not in own])
