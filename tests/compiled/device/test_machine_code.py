# SPDX-License-Identifier: BSD-3-Clause
"""NVIDIA's linker makes machine code of the kernels for a device, and keeps their numbers in registers.

It needs no GPU, but its package, nvidia-nvjitlink-cu12 or nvidia-nvjitlink (12.8 or newer). A sweep builds each kernel
for one of the capabilities, and the search at night for all of them.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import golden_cases
import numpy as np
import pytest
from convolutions import Operands
from convolutions import graph_of as convolution_graph
from device_programs import LONG_ROWS, PROGRAMS
from effort import EFFORT, Effort, by_turns, sweep
from on_device import program_of, ptx_of
from op_cases import draw, dtypes_of_cases, graph_of

import tracejit as tj
from tracejit.codegen.device import product_tiles
from tracejit.compile import link
from tracejit.compile.capability import PTX_VERSIONS, Capability
from tracejit.ops import Op
from tracejit.ops.op import Sample
from tracejit.passes.loops import convolution_parts
from tracejit.pipeline import build_for_device
from tracejit.program import Kernel, Program

CAPABILITIES = tuple([Capability(*version) for version in PTX_VERSIONS])
OF_MANY_REGISTERS = tuple([Capability(*version) for version in ((8, 0), (9, 0), (10, 0), (12, 0))])
CIRCULAR = re.compile("(sin|cos|tan)_")
STACK_OF_HUGE_ANGLES = 168  # bytes, of which some are spilled registers: digits of a product with 2 / pi
pytestmark = pytest.mark.skipif(
    link.linker_version() is None, reason="nvJitLink is not installed: pip install nvidia-nvjitlink-cu12"
)


def check(
    program: Program, capabilities: Sequence[Capability] = (), among: Sequence[Capability] = CAPABILITIES
) -> None:
    """Build the kernels of a program for capabilities; if none are given each for one of some, at night for all."""
    for kernel in program.kernels:
        one = zlib.crc32(kernel.name.encode()) % len(among)
        every = among if EFFORT is Effort.LONG else among[one : one + 1]
        for capability in capabilities or every:
            built(kernel, capability)


@cache
def built(kernel: Kernel, capability: Capability) -> None:
    """Build a kernel, which several programs may share."""
    found = link.linked(ptx_of(kernel, capability), capability, "-verbose")
    assert found is not None and found.cubin is not None, f"{capability}\n{found}\n{kernel.text}"
    assert found.cubin.startswith(b"\x7fELF")
    on_stack = [*map(int, re.findall(r"(\d+) bytes stack frame", found.report))]
    most = STACK_OF_HUGE_ANGLES if CIRCULAR.search(kernel.name) else 0
    assert max(on_stack) <= most, f"{capability}\n{found.report}\n{kernel.text}"


@pytest.mark.parametrize(
    ("op", "sample", "dtype"),
    [
        pytest.param(op, sample, dtype, id=name)
        for name, op, sample, dtype in dtypes_of_cases()
        if sample in sweep((op.samples[0], op.samples[-1]), op.samples)  # test_emulated.py has all
    ],
)
@pytest.mark.sampled(by=lambda case: case["op"].name)
@pytest.mark.slow
def test_ops(op: Op, sample: Sample, dtype: str) -> None:
    def results(b: Any, *values: Any) -> list[Any]:
        result = b.apply(op, values, dict(sample.params))
        return list(result) if isinstance(result, tuple) else [result]

    try:
        graph = graph_of(results, draw(op, sample, dtype))
    except tj.DTypeError:
        pytest.skip("not defined for this dtype")
    check(build_for_device(graph))


@pytest.mark.parametrize(("function", "shapes"), PROGRAMS, ids=range(len(PROGRAMS)))
@pytest.mark.slow
def test_programs(function: Callable[..., tuple[Any, ...]], shapes: tuple[tuple[int, ...], ...]) -> None:
    check(program_of(function, [np.ones(shape, np.float32) for shape in shapes])[0])


@pytest.mark.parametrize("name", golden_cases.CASES)
@pytest.mark.slow
def test_golden_programs(name: str) -> None:
    check(build_for_device(golden_cases.graph_of(golden_cases.CASES[name])), CAPABILITIES)


@pytest.mark.parametrize(
    ("name", "columns", "dtype"),
    by_turns(
        [name for name, (_, shapes) in LONG_ROWS.items() if len(shapes[0]) == 2],
        sweep([1000, 1028, 4095, 8192], [256, 1000, 1023, 2047, 4096, 4095, 8192, 40_000]),
        ["float32", "float64", "float16"],
    ),
)
@pytest.mark.slow
def test_long_rows(name: str, columns: int, dtype: str) -> None:
    """Rows are kept in registers where a thread has them, of which blocks of many threads leave each of them few."""
    function, shapes = LONG_ROWS[name]
    check(program_of(function, [np.ones((*shape[:-1], columns), dtype) for shape in shapes])[0])


@pytest.mark.parametrize("full", [0, 0.4, 2], ids=["tiles", "chosen", "threads"])
@pytest.mark.parametrize(("channels", "filters"), [(1, 20), (20, 50), (64, 64), (3, 5)])
@pytest.mark.slow
def test_convolutions(channels: int, filters: int, full: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_parts, "_FULL", full)
    labels = "BCSS", "UCSS", "BUSS"
    shapes = (128, channels, 24, 24), (filters, channels, 5, 5), (128, filters, 20, 20)
    params = {"labels": labels, "strides": (1, 1), "before": (0, 0), "dilation": (1, 1), "groups": 1}
    operands = Operands(shapes, ((24, 24), (5, 5), (20, 20)), params)
    # Filters by threads that tiles would serve better have 24 bytes in memory for 8.9.
    check(build_for_device(convolution_graph(operands, "float32", 1)[0]), among=OF_MANY_REGISTERS)


TILES = [
    (product_tiles.HUGE, "float32"),
    *[
        (tile, dtype)
        for tile in (product_tiles.LARGE, product_tiles.MEDIUM, product_tiles.SMALL)
        for dtype in ("float32", "float64")
    ],
]


@pytest.mark.parametrize(("tile", "dtype"), TILES, ids=lambda value: getattr(value, "name", value))
@pytest.mark.slow
def test_products_by_tiles(tile: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_tiles, "suitable", lambda product: tile)
    ones = [np.ones((64, 64), dtype)] * 2
    check(program_of(lambda x, y: (x @ y,), ones)[0], CAPABILITIES)
    check(program_of(lambda x, y: (x[1:, 1:].T @ y[1:, 3:],), ones)[0])


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_a_kernel_for_each_capability(capability: Capability) -> None:
    check(program_of(lambda x: (tj.tanh(x),), [np.ones(50, np.float32)])[0], [capability])


def test_what_is_refused_is_said() -> None:
    (kernel,) = program_of(lambda x: (x + 1,), [np.ones(5, np.float32)])[0].kernels
    text = ptx_of(kernel, CAPABILITIES[0])
    found = link.linked(text.replace("ret;", "return;"), CAPABILITIES[0])
    assert found is not None and found.cubin is None and "'return'" in found.report
    assert link.cubin_of(text, Capability(2, 0)) is None  # the driver is asked then
