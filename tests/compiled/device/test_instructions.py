# SPDX-License-Identifier: BSD-3-Clause
"""The instructions of kernels for a device: what costs many cycles, and what reads memory four numbers at a time."""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import golden_cases
import numpy as np
import pytest
from device_programs import LONG_ROWS, PROGRAMS
from effort import EFFORT, Effort
from llvm_texts import NEEDS_LLVM_22
from on_device import program_of, ptx_of

import tracejit as tj
from tracejit.compile.capability import Capability
from tracejit.pipeline import build_for_device
from tracejit.program import Kernel, Program

F32 = np.float32
CAPABILITIES = (Capability(8, 0), Capability(9, 0), Capability(10, 0))
_COSTLY = {
    "float64": r"\.f64", "memory of a thread": r"\.local", "a call": r"\bcall",
    "64-bit quotient": r"\b(div|rem)\.[su]64",
}  # fmt: skip
pytestmark = NEEDS_LLVM_22


def inside_loops(ptx: str) -> str:
    """Return the lines of a kernel that a loop repeats."""
    lines = ptx.splitlines()
    labels = {line.rstrip(":"): i for i, line in enumerate(lines) if line.endswith(":")}
    repeated: set[int] = set()
    for i, line in enumerate(lines):
        jump = re.search(r"\bbra(?:\.uni)?\s+([$\w]+);", line)
        if jump is not None and labels.get(jump[1], len(lines)) <= i:
            repeated |= set(range(labels[jump[1]], i + 1))
    return "\n".join(lines[i] for i in sorted(repeated))


def check(program: Program) -> None:
    """Find nothing costly in kernels, of each for one capability, at night for all."""
    for kernel in program.kernels:
        one = zlib.crc32(kernel.name.encode()) % len(CAPABILITIES)
        for capability in CAPABILITIES if EFFORT is Effort.LONG else CAPABILITIES[one : one + 1]:
            ptx = ptx_of(kernel, capability)
            found = [what for what, pattern in _COSTLY.items() if re.search(pattern, ptx)]
            assert not found, f"{capability}\n{kernel.text}"


@pytest.mark.parametrize(
    ("function", "shapes"), [*PROGRAMS, *LONG_ROWS.values()], ids=range(len(PROGRAMS) + len(LONG_ROWS))
)
def test_programs_have_nothing_costly(
    function: Callable[..., tuple[Any, ...]], shapes: tuple[tuple[int, ...], ...]
) -> None:
    check(program_of(function, [np.ones(shape, F32) for shape in shapes])[0])


@pytest.mark.parametrize("name", golden_cases.CASES)
def test_golden_programs_have_nothing_costly(name: str) -> None:
    check(build_for_device(golden_cases.graph_of(golden_cases.CASES[name])))


WINDOWS: dict[str, dict[str, Any]] = {
    "pairs": {"pool_size": 2, "stride": 2}, "padded": {"pool_size": 3, "padding": 1},
    "means of own elements": {"pool_size": (3, 2), "padding": 1, "padding_value": "mean"},
    "all": {"pool_size": "global"},
}  # fmt: skip


@pytest.mark.parametrize("data_format", ["BCSS", "BSSC"])
@pytest.mark.parametrize("name", WINDOWS)
def test_pooling_has_no_float64(name: str, data_format: str) -> None:
    def pooled(x: Any) -> tuple[Any, ...]:
        mean = tj.avgpool(x, data_format=data_format, **WINDOWS[name])
        window = {key: value for key, value in WINDOWS[name].items() if key != "padding_value"}
        largest = tj.maxpool(x, data_format=data_format, **window)
        return (mean, largest, tj.dlgradient((mean * mean).sum() + (largest * largest).sum(), x))

    program, _ = program_of(pooled, [np.ones((2, 6, 7, 8), F32)])
    names = {kernel.name.partition("_")[0] for kernel in program.kernels}
    assert "maxpool" in names
    assert "avgpool" in names or name == "all"  # the mean of all channels that lie last is a sum
    for kernel in program.kernels:
        assert ".f64" not in ptx_of(kernel, CAPABILITIES[0]), kernel.name


def counts(kernel: Kernel, capability: Capability) -> tuple[int, int, int, int, int]:
    """Return the loads and stores of four numbers, those of one, and the products of 64 bits in loops.

    From 10.0 on there is arithmetic with pairs of numbers, and four are two pairs.
    """
    ptx = ptx_of(kernel, capability)
    of_four = [len(re.findall(rf"\b{name}\.global\.(?:v4\.b32|v2\.b64)", ptx)) for name in ("ld", "st")]
    of_one = [len(re.findall(rf"\b{name}\.global\.b32", ptx)) for name in ("ld", "st")]
    products = len(re.findall(r"\b(?:mul|mad)\.(?:lo|hi)\.[su]64", inside_loops(ptx)))
    return of_four[0], of_four[1], of_one[0], of_one[1], products


COUNTED: dict[str, tuple[Callable[..., tuple[Any, ...]], Sequence[tuple[int, ...]], tuple[int, ...]]] = {
    # Four neighbours each; a second loop takes what four do not divide.
    "chain": (lambda x, y: (tj.tanh(x) * y,), [(1000,), (1000,)], (2, 1, 2, 1, 0)),
    "rows of a chain": (lambda x, y: (tj.exp(x) + y,), [(30, 64), (64,)], (2, 1, 0, 0, 2)),
    "a turned array": (lambda x, y: (x.T * y,), [(64, 32), (32, 64)], (0, 0, 2, 1, 4)),
    "softmax of 1024": (lambda x: (tj.softmax(x, axis=1),), [(50, 1024)], (8, 8, 0, 0, 2)),
    "a sum of all": (lambda x: ((x * x).sum(),), [(100_000,)], (1, 0, 1, 1, 0)),
}


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("name", COUNTED)
def test_counts_of_instructions(name: str, capability: Capability) -> None:
    function, shapes, want = COUNTED[name]
    first, *_ = program_of(function, [np.ones(shape, F32) for shape in shapes])[0].kernels
    assert counts(first, capability) == want
