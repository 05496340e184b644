# SPDX-License-Identifier: BSD-3-Clause
"""Operations on arrays of a device, each of which is a program of one operation, through the stand-in for the driver.

What their kernels compute, test_emulated.py and test_emulated_elements.py test with all cases.
"""

import pytest
from device_ops import OTHER_DTYPES, check_op
from effort import EFFORT, Effort, sweep
from fake_driver import FakeLibrary
from llvm_texts import NEEDS_LLVM_22
from op_cases import CASES, ON_DEVICES
from ptx_emulator import Memory

from tracejit.ops import Op
from tracejit.ops.op import Sample

pytestmark = NEEDS_LLVM_22


def check(op: Op, sample: Sample, dtype: str, fake: FakeLibrary) -> None:
    if "fft" in op.name:  # lanes without a line compute with what is left in memory
        fake.memory = Memory(reads_unwritten=True)
    check_op(op, sample, dtype)


@pytest.mark.parametrize(
    ("op", "sample"),
    [
        pytest.param(op, sample, id=f"{op.name}-{i}")
        for i, (op, sample) in enumerate(CASES)
        if sample in sweep((op.samples[0], op.samples[-1]), op.samples)
    ],
)
@pytest.mark.sampled(by=lambda case: case["op"].name)
@pytest.mark.slow
def test_ops(op: Op, sample: Sample, fake: FakeLibrary) -> None:
    check(op, sample, "float32", fake)


@pytest.mark.parametrize(
    ("op", "sample", "dtype"),
    [
        pytest.param(op, sample, dtype, id=f"{op.name}-{i}-{dtype}")
        for i, (op, sample) in enumerate(ON_DEVICES)
        for turn, dtype in enumerate(OTHER_DTYPES)
        if EFFORT is Effort.LONG or (i % len(OTHER_DTYPES) == turn and sample == op.samples[0])
    ],
)
@pytest.mark.sampled(by=lambda case: case["dtype"])
@pytest.mark.slow
def test_other_dtypes(op: Op, sample: Sample, dtype: str, fake: FakeLibrary) -> None:
    """Of each operation one dtype by turns, at night each."""
    check(op, sample, dtype, fake)
