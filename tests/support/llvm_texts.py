# SPDX-License-Identifier: BSD-3-Clause
"""What tests need of LLVM's version."""

import llvmlite.binding as llvm
import pytest

NEEDS_LLVM_22 = pytest.mark.skipif(
    llvm.llvm_version_info[0] < 22,
    reason="the emulator reads what LLVM 22 writes; earlier ones write other text",
)
