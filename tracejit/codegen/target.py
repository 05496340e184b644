# SPDX-License-Identifier: BSD-3-Clause
"""What the code generator knows of the CPU."""

from functools import cache

import numpy as np


@cache
def vector_bytes() -> int:
    """Return the size of the vectors that kernels for this machine are written with: 64, 32 or 16 bytes."""
    # NumPy knows, and unlike Numba it is loaded already. Its names for groups of features changed with 2.4.
    known = np.show_config(mode="dicts")["SIMD Extensions"]
    features = {*known["baseline"], *known["found"]}
    if features & {"X86_V4", "AVX512_SKX"}:
        return 64
    return 32 if "X86_V3" in features or {"AVX2", "FMA3"} <= features else 16
