# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of ops that are written as text, because they keep tiles in vector registers (codegen/gemm.py).

Other kernels of ops are functions in kernels/loops/, which a generated adapter calls.
"""

from collections.abc import Callable

from tracejit.codegen import attention, ctc, recurrent
from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

TEXTS: dict[str, Callable[[KernelLaunch], Kernel]] = {
    "attention_forward": attention.forward,
    "attention_backward": attention.backward,
    **dict.fromkeys(ctc.NAMES, ctc.kernel),
    **dict.fromkeys(recurrent.NAMES, recurrent.kernel),
}
"""A kernel by the name in an op's KernelCall; a new dtype, or a number that the text depends on, makes a new kernel."""


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None if it is not written as text."""
    written = TEXTS.get(launch.name)
    return None if written is None else written(launch)
