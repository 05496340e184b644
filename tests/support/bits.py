# SPDX-License-Identifier: BSD-3-Clause
"""The quick part of comparisons: most arrays that tests compare agree in every bit."""

import numpy as np


def same_bits(have: np.ndarray, want: np.ndarray) -> bool:
    """Return whether arrays agree in dtype, shape and every bit; then any comparison with a tolerance holds too.

    numpy.testing takes a hundred times as long, and is asked where this is False.
    """
    return (
        have.dtype == want.dtype
        and have.shape == want.shape
        and not want.dtype.hasobject
        and have.tobytes() == want.tobytes()
    )
