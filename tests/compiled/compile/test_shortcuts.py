# SPDX-License-Identifier: BSD-3-Clause
"""Code is the same with the steps of Numba that kernels do without (Note [less work for the same code])."""

from typing import Any

import numpy as np
import pytest
from device_programs import PROGRAMS
from effort import sample
from numba.core import cpu, lowering, untyped_passes
from on_device import CAPABILITY, program_of
from op_cases import CASES, draw, graph_of

import tracejit as tj
from tracejit.compile import numba_shortcuts, numba_target
from tracejit.compile.device_target import ptx_of
from tracejit.pipeline import build
from tracejit.program import Kernel


def kernels_of_ops(dtype: str) -> list[Kernel]:
    """Return the kernels of some ops for the CPU."""
    kernels: dict[str, Kernel] = {}
    for op, case in sample(CASES[::20], "shortcuts"):

        def results(b: Any, *values: Any, op: Any = op, case: Any = case) -> list[Any]:
            result = b.apply(op, values, dict(case.params))
            return list(result) if isinstance(result, tuple) else [result]

        try:
            graph = graph_of(results, draw(op, case, dtype))
        except tj.DTypeError:
            continue
        kernels.update({kernel.name: kernel for kernel in build(graph).kernels if kernel.host is None})
    return [*kernels.values()]


def lowered_by_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels lowered by all steps of Numba."""
    monkeypatch.setattr(numba_target, "Lower", lowering.Lower)
    monkeypatch.setattr(numba_shortcuts.Context, "get_function", cpu.CPUContext.get_function)
    for pipeline in (numba_target._Pipeline, numba_target._ShortPipeline):
        passes = [
            untyped_passes.TranslateByteCode if step is numba_shortcuts.Translate else step
            for step in pipeline.passes
        ]
        monkeypatch.setattr(pipeline, "passes", tuple(passes))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.slow
def test_kernels_of_the_cpu(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = kernels_of_ops(dtype)
    found = [numba_target.lower(kernel).object_code() for kernel in kernels]
    lowered_by_numba(monkeypatch)
    for kernel, code in zip(kernels, found, strict=True):
        assert numba_target.lower(kernel).object_code() == code, kernel.text


@pytest.mark.slow
def test_kernels_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels: dict[str, Kernel] = {}
    for function, shapes in sample(PROGRAMS[::5], "shortcuts"):
        program, _ = program_of(function, [np.ones(shape, np.float32) for shape in shapes])
        kernels.update({kernel.name: kernel for kernel in program.kernels})
    found = [ptx_of(kernel, CAPABILITY) for kernel in kernels.values()]
    lowered_by_numba(monkeypatch)
    for kernel, ptx in zip(kernels.values(), found, strict=True):
        assert ptx_of(kernel, CAPABILITY) == ptx, kernel.text
