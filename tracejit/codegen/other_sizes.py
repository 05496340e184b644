# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that a program needs in addition at other sizes.

Note [other sizes]
Kernels take sizes as arguments, so programs of all sizes of a function share them. But a size whose loops take long
enough for parts has further launches, which add up what the parts have accumulated. And where there are enough short
rows, they run several at a time, for which a row is copied. These kernels have a few lines each, and are the same in
all programs of a dtype. So a program lists them even if it does without them, and they are compiled beside its own.
Then no later size has to compile them.
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
