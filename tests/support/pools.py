# SPDX-License-Identifier: BSD-3-Clause
"""Programs on pools of several sizes, shared by the tests of what runs in parts."""

from collections.abc import Sequence

import numpy as np
import pytest

from tracejit.program import Program
from tracejit.runtime import cpu
from tracejit.runtime.cpu import CpuExecutable
from tracejit.runtime.thread_pool import Pool


def check_same_bits(
    program: Program, arrays: Sequence[np.ndarray], times: int, monkeypatch: pytest.MonkeyPatch
) -> list[np.ndarray]:
    """Check that results are the same to the bit on no pool, 2 and 4 threads, each run so many times; return them."""
    found = []
    for size in (0, 2, 4):
        pool = Pool(size) if size else None
        monkeypatch.setattr(cpu, "pool", lambda code, pool=pool: pool)
        run = CpuExecutable(program)
        for _ in range(times):
            results = run(arrays)
            found.append([part.tobytes() for part in results])
        if pool is not None:
            pool.stop()
    assert all(each == found[0] for each in found)
    return results
