# SPDX-License-Identifier: BSD-3-Clause
"""The limits of registers in PTX, with every version of LLVM: blocks of many threads do not start without them."""

import re

import numpy as np
import pytest
from device_programs import LONG_ROWS
from on_device import program_of, ptx_of

from tracejit.compile.capability import Capability


@pytest.mark.parametrize("name", ["softmax", "norm"])
@pytest.mark.parametrize("columns", [1028, 4095, 8192])
def test_the_limit_of_a_kernel_is_that_of_its_entry(name: str, columns: int) -> None:
    function, shapes = LONG_ROWS[name]
    arrays = [np.ones((*shape[:-1], columns), np.float32) for shape in shapes]
    limits: list[str] = []
    for kernel in program_of(function, arrays)[0].kernels:
        wanted = re.findall(r"^ *registers\((\d+)\)", kernel.text, re.MULTILINE)
        ptx = ptx_of(kernel, Capability(8, 0))
        assert re.findall(r"\.maxnreg (\d+)", ptx) == wanted
        assert len(re.findall(rf"\.entry {kernel.name}\([^)]*\)\n(?:\.maxnreg \d+\n)?{{", ptx)) == 1
        limits += wanted
    assert limits or columns == 1028, "a block of so few threads needs none"
